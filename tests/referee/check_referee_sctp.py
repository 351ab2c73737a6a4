#!/usr/bin/env python3
"""The conversations of check_referee.py over links of SCTP."""
import os
import runpy

# The user's stack is for one worker.
os.environ.update(SMCRD_TRANSPORT="sctp", SMCRD_WORKERS="1")
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_referee.py"), run_name="__main__")
