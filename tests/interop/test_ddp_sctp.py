#!/usr/bin/env python3
"""The soft iWARP device (siw_host) over SCTP and the DDP stream session written in Python, both profiles: all of
sctp_cases.py."""
import os
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration")]

import pysctp_ddp as ddp
import sctp_cases
from sctp_cases import Sctp
from harness import main

BOTH = [Sctp(profile) for profile in ddp.PROFILES]
sctp_cases.register(*BOTH)
sctp_cases.register_ways(*BOTH)

if __name__ == "__main__":
    main()
