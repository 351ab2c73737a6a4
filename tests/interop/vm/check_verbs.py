#!/usr/bin/env python3
# takes: 40 s
"""The verbs device alone (verbs_host.c) on rxe devices: what a real one does, and what the kernel has of ours afterwards."""
import os
import subprocess

import rxe
from harness import Failure, Skip, case, check, main

HOST = os.path.join(os.environ["top_builddir"], "tests", "interop", "vm", "verbs_host")
ABSENT = "10.78.1.77"		# of the wire's subnet, nobody's


def host(t, net, name, **doing):
    """Runs a case; doing: what it asks for -> function. Its words are notes of ours."""
    if not os.path.exists(HOST):
        raise Skip("verbs_host is not built (make vm, or make check TESTS=)")
    p = subprocess.Popen([HOST, name, *[rxe.device(s, 1) for s in "ab"], *[rxe.address(s, 1) for s in "ab"], ABSENT],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
    t.later(p.kill)
    said = []
    for line in p.stdout:
        said.append(line.strip())
        if line.startswith("do: "):
            doing[line[4:].strip()]()
            p.stdin.write("done\n")
            p.stdin.flush()
    status = p.wait(10)
    for line in said:
        t.note(f"{name}: {line}")
    if status != 0:
        raise Failure(f"verbs_host {name}: exit status {status}")
    net.let_go("qp", "mr", "cq", "pd")
    return said


@case("data goes both ways; many requests take few completions")
def _(t):
    net = rxe.Wires(t, 1)
    host(t, net, "data")
    host(t, net, "many")


@case("each request ends once, whatever the peer does", timeout=60)
def _(t):
    net = rxe.Wires(t, 1)
    for name in ("access", "too_long", "rnr", "retry"):
        host(t, net, name)


@case("our own end: what was posted is flushed, or arrives when the end is in order", timeout=60)
def _(t):
    net = rxe.Wires(t, 1)
    for name in ("flush", "flush_quiet", "last_words"):
        host(t, net, name)


@case("an address that nobody has blocks nobody", timeout=60)
def _(t):
    net = rxe.Wires(t, 1)
    net.ip(f"rule add pref 30 iif lo to {ABSENT} lookup {net._table('a', 1)}",
           f"route replace {ABSENT} dev a1 src {rxe.address('a', 1)} table {net._table('a', 1)}")
    host(t, net, "absent")


@case("port and GID go and come back", timeout=60)
def _(t):
    net = rxe.Wires(t, 1)
    here = rxe.address("a", 1)

    def give():
        net.ip("addr add 10.99.1.1/24 dev a1", f"addr add {here}/24 dev a1")
        net.up("a", 1)

    def up():
        for side in "ab":
            net.up(side, 1)
    host(t, net, "port", down=lambda: net.down("a", 1), up=up)
    host(t, net, "gid", take=lambda: net.ip(f"addr del {here}/24 dev a1"), give=give)
    check(True, "")


main()
