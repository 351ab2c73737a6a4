#!/usr/bin/env python3
"""
The program and another version of it: on the wire in both roles, and in take-overs both ways (doc/compatibility.md). SMCRD_BEFORE is
that version's program, or its Debian package. Without it, a copy of the program takes its place.
"""
import os
import shutil
import subprocess

from harness import SMCRD, Pair, Server, case, check, echo, equal, main, wait_until, works

GIVEN = os.environ.get("SMCRD_BEFORE")


def before(t):
    if not GIVEN:
        t.note("no other version: SMCRD_BEFORE is not set")
        return shutil.copy(SMCRD, t.path("smcrd-before"))
    if not GIVEN.endswith(".deb"):
        return os.path.abspath(GIVEN)
    subprocess.run(["dpkg-deb", "-x", GIVEN, t.path("package")], check=True)
    return t.path("package/usr/sbin/smcrd")


def pair_of(t, a, b):
    """A pair that runs these programs."""
    pair = Pair(t, {"x": Server(t, echo).at}, start=False)
    for d, program in ((pair.b, b), (pair.a, a)):
        d.program = program
        d.start()
    return pair


@case("the version before as ingress and as egress: connections use SMC-R, the first one and those over the link", timeout=60,
      one_worker="another one has no ticket yet")
def _(t):
    old = before(t)
    for programs in ((old, SMCRD), (SMCRD, old)):
        pair = pair_of(t, *programs)
        for i in range(4):
            with pair.connect() as s:
                works(s, i, 300000)
        wait_until(lambda pair=pair: not pair.a.connections(), "their ends")
        pair.only_smcr(4)
        counters = pair.a.counters()
        check(counters["opened_client"] > counters["not_opened_client"], f"some open over the link: {counters}")
        for d in (pair.a, pair.b):
            d.finish()


@case("take-overs from the version before, and back to it, at both ends; connections of all continue", timeout=90)
def _(t):
    old = before(t)
    pair = pair_of(t, old, old)
    running = []
    for step, program in enumerate((SMCRD, old)):
        for side in "ab":
            running.append(pair.connect())
            works(running[-1], step)
            d = getattr(pair, side)
            d.program, path = program, d.program
            setattr(pair, side, d.successor())
            d.program = path
            equal(os.readlink(f"/proc/{getattr(pair, side).pid}/exe"), program, "the program that accepts")
            for i, s in enumerate(running):
                works(s, i)
            with pair.connect() as s:
                works(s)
    check(len(running) == 4, "connections of each process")
    for s in running:
        s.close()


main()
