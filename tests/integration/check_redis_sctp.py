#!/usr/bin/env python3
"""The cases of check_redis.py over links of SCTP."""
import os
import runpy
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ["SMCRD_TRANSPORT"] = "sctp"
os.environ["SMCRD_WORKERS"] = "1"
sys.path.insert(0, HERE)
runpy.run_path(os.path.join(HERE, "check_redis.py"), run_name="__main__")
