#!/usr/bin/env python3
# kernel: user-mode-linux
# takes: 75 s
# load: 40
"""The soft iWARP device over the kernel's SCTP: as protocol 132 against a peer in Python that has the same, and in UDP
against one with an SCTP of its own, which can hold back and lose any chunk; and the device's unit tests over it."""
import os
import re
import subprocess
import time

import ksctp
import pysctp
import pysctp_ddp as ddp
import sctp_cases
import sctp_wire
from harness import TOP_BUILD, Failure, case, check, main, wait_until
from siw_scene import exchange, host_case, to_host

FLOOD_S = 4
LINGERING, UNASSIGNED = 64, 128	# of a device, at most: doc/threat-model.md

sctp_wire.wire()
sctp_wire.register(*(sctp_wire.Transport(profile, ksctp, {}, sctp_stack="kernel") for profile in ddp.PROFILES))
in_udp = sctp_wire.Transport(ddp.RFC5043, pysctp, {}, sctp_stack="kernel", sctp_udp=sctp_wire.UDP)
sctp_cases.register(in_udp, where=", in UDP")
sctp_cases.register_ways(in_udp, where=", in UDP")


def descriptors(host):
    return len(os.listdir(f"/proc/{host.proc.pid}/fd"))


@host_case("refused associations without acknowledgements: their descriptors are bounded, in UDP", in_udp)
def _(host):
    before, most = descriptors(host), 0
    flood = host.t.fork(ddp.swarm, (host.addr, host.port), host.peer, FLOOD_S)
    while flood.alive():
        most = max(most, descriptors(host) - before)
        time.sleep(0.01)	# raw: between two looks
    made = flood.result()
    early = int(host.cmd("stats")["linger_refused"])
    host.t.note(f"{made} associations, {early} ended early, {most} descriptors")
    check(early > 0, "more than may linger")
    check(most <= LINGERING + UNASSIGNED, f"{most} descriptors")
    wait_until(lambda: descriptors(host) <= before + 1, "all of them are closed", 20)
    qp, ep = to_host(host)
    exchange(host, qp, ep)
    ep.close()


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
