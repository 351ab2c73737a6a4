#!/usr/bin/env python3
"""The cases of check_hostile_link.py over links of SCTP."""
from again import over_sctp

over_sctp("check_hostile_link.py")
