#!/usr/bin/env python3
# takes: 30 s
# load: 55
"""The verbs device alone (verbs_host.c) on rxe devices: what a real one does, and what the kernel has of ours afterwards."""
import rxe
from harness import case, check, main
from verbs_host import ABSENT, run_case


def host(t, net, name, **doing):
    return run_case(t, net, rxe.device, name, **doing)


@case("data in both directions; many requests, few completions")
def _(t):
    net = rxe.Wires(t, 1)
    host(t, net, "data")
    host(t, net, "many")


@case("each request ends once with every behaviour of the peer", timeout=60)
def _(t):
    net = rxe.Wires(t, 1)
    for name in ("access", "too_long", "rnr", "retry"):
        host(t, net, name)


@case("our own end: posted requests are flushed, or arrive if the end is orderly", timeout=60)
def _(t):
    net = rxe.Wires(t, 1)
    for name in ("flush", "flush_quiet", "last_words"):
        host(t, net, name)


@case("an unused address blocks no other connect", timeout=60)
def _(t):
    net = rxe.Wires(t, 1)
    net.ip(f"rule add pref 30 iif lo to {ABSENT} lookup {net._table('a', 1)}",
           f"route replace {ABSENT} dev a1 src {rxe.address('a', 1)} table {net._table('a', 1)}")
    host(t, net, "absent")


@case("loss and return of port and GID", timeout=60)
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
