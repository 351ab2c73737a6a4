#!/usr/bin/env python3
"""The cases of check_last_words.py over links of SCTP."""
from again import over_sctp

over_sctp("check_last_words.py")
