#!/usr/bin/env python3
"""The cases of check_redis.py over links of SCTP."""
from again import over_sctp

over_sctp("check_redis.py")
