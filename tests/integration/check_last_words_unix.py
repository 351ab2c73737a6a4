#!/usr/bin/env python3
"""The cases of check_last_words.py with the application's legs on UNIX sockets."""
from again import over_unix

over_unix("check_last_words.py")
