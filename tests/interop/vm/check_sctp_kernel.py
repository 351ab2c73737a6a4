#!/usr/bin/env python3
# takes: 70 s
"""The soft iWARP device over the kernel's SCTP: as protocol 132 against a peer in Python that has the same, and in UDP
against one with an SCTP of its own, which can hold back and lose any chunk."""
import ksctp
import pysctp
import pysctp_ddp as ddp
import sctp_cases
import sctp_wire
from harness import main

sctp_wire.wire()
sctp_wire.register(*(sctp_wire.Transport(profile, ksctp, {}, sctp_stack="kernel") for profile in ddp.PROFILES))
in_udp = sctp_wire.Transport(ddp.RFC5043, pysctp, {}, sctp_stack="kernel", sctp_udp=sctp_wire.UDP)
sctp_cases.register(in_udp, where=", in UDP")
sctp_cases.register_ways(in_udp, where=", in UDP")

main()
