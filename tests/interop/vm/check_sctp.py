#!/usr/bin/env python3
# kernel: user-mode-linux
# takes: 45 s
# load: 40
"""The soft iWARP device over SCTP by usrsctp in UDP, against a peer in Python whose SCTP is the kernel's: neither stack is a
copy of the other. In both roles and both profiles, also over a wire that loses and reorders."""
import ksctp
import pysctp_ddp as ddp
import sctp_wire
from harness import main

sctp_wire.wire()
sctp_wire.register(*(sctp_wire.Transport(profile, ksctp, {"udp": sctp_wire.UDP}, sctp_stack="user") for profile in ddp.PROFILES))

main()
