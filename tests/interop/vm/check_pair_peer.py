#!/usr/bin/env python3
"""The second machine of check_pair.py: does as it is told."""
import pair

pair.serve()
