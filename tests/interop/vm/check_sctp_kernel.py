#!/usr/bin/env python3
# kernel: user-mode-linux
# takes: 75 s
# load: 40
"""The soft iWARP device over the kernel's SCTP: as protocol 132 against a peer in Python that has the same, and in UDP
against one with an SCTP of its own, which can hold back and lose any chunk; and the device's unit tests over it."""
import os
import re
import subprocess

import ksctp
import pysctp
import pysctp_ddp as ddp
import sctp_cases
import sctp_wire
from harness import TOP_BUILD, Failure, case, check, main

sctp_wire.wire()
sctp_wire.register(*(sctp_wire.Transport(profile, ksctp, {}, sctp_stack="kernel") for profile in ddp.PROFILES))
in_udp = sctp_wire.Transport(ddp.RFC5043, pysctp, {}, sctp_stack="kernel", sctp_udp=sctp_wire.UDP)
sctp_cases.register(in_udp, where=", in UDP")
sctp_cases.register_ways(in_udp, where=", in UDP")


@case("the unit tests of the device, two ends of the kernel's SCTP", timeout=120)
def _(t):
    name = os.path.join(TOP_BUILD, "tests/unit/lib/rnic/siw/check_siw_sctp_kernel")
    r = subprocess.run([name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = r.stdout.decode(errors="replace")
    if r.returncode != 0 or "# SKIP" in said:
        raise Failure(f"status {r.returncode}: " + " / ".join(x for x in said.split("\n") if not x.startswith("ok ") or "SKIP" in x))
    results = len(re.findall("^ok ", said, re.M))
    check(results > 50, f"{results} results")
    t.note(f"{results} passed")

main()
