#!/usr/bin/env python3
"""
Conversations go on while something happens to the world around two daemons, with direct connections beside them over the same
wire: what lives on directly lives on here; what ends directly ends here.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "integration")]

from netns import Net, enter					# noqa: E402

enter()

import signal							# noqa: E402
import time							# noqa: E402

from harness import Daemon, NoFiles, case, check, connect_to, equal, logs, main, soft_device, wait_until	# noqa: E402
from live import KINDS, Live, LiveServer, socket_in		# noqa: E402

NEAR, FAR = "10.77.1.1", "10.77.1.2"
SERVER, MIDDLE, CLIENTS = 12000, 12001, 12002
MPA = "7471-7570"
LONG = 7		# seconds: longer than what a gateway waits for an answer


class World:
    """Clients and the ingress here, the egress and the server over there, one wire between them."""

    def __init__(self, t, kinds=KINDS, **top):
        self.t = t
        self.net = Net(t, 1)
        pid = self.net.far
        self.server = LiveServer(t, socket_in(pid), (FAR, SERVER))
        common = {"log_level": "info", **top}
        self.b = Daemon(t, "b", {**common, "devices": [soft_device(FAR)], "egress": [
            {"name": "x", "listen": f"{FAR}:{MIDDLE}", "to": f"{FAR}:{SERVER}"}]}, wrap=self.net.b.wrap())
        self.a = Daemon(t, "a", {**common, "devices": [soft_device(NEAR)], "ingress": [
            {"name": "x", "listen": f"127.0.0.1:{CLIENTS}", "to": f"{FAR}:{MIDDLE}"}]})
        self.direct = {k: Live(k, self.connect((FAR, SERVER))) for k in kinds}
        self.here = {k: Live(k, self.connect(("127.0.0.1", CLIENTS))) for k in kinds}
        equal(self.states(), [{k: "alive" for k in kinds}] * 2, "before")
        check(all(c["mode"] == "smcr" for c in self.a.connections()), "all are on SMC-R")

    def connect(self, at):
        s = connect_to(at)
        self.t.later(s.close)
        return s

    def states(self):
        """How the direct ones are, and those through the daemons."""
        return [{k: c.goes_on() for k, c in side.items()} for side in (self.direct, self.here)]

    def as_directly(self, what):
        direct, here = self.states()
        equal(here, direct, what)

    def rules(self, verb, ports):
        """Packets to and from these ports of the other side are dropped."""
        for side in "ab":
            for way in ("dport", "sport"):
                self.net.ip(side, f"rule {verb} ipproto tcp {way} {ports} blackhole pref 10")


def for_a_while(seconds):
    """How long the world is as it is: nothing is waited for."""
    time.sleep(seconds)	# raw: the length of the fault


@case("a gateway is stopped for a while, on either side", timeout=90)
def _(t):
    w = World(t)
    for d in (w.a, w.b):
        d.send_signal(signal.SIGSTOP)
        for_a_while(LONG)
        d.send_signal(signal.SIGCONT)
        w.as_directly(f"after {d.name} stood still")


@case("packets of the CLC connection are dropped, and keepalive detects it")
def _(t):
    w = World(t, keepalive={"idle": 1, "interval": 1, "probes": 3, "smcr_idle_min": 1}, smcr={"open_over_link": False})
    w.rules("add", str(MIDDLE))
    for_a_while(LONG)
    w.as_directly("while it is dropped")
    for d in (w.a, w.b):
        logs(d, "CLC connection lost")
    w.rules("del", str(MIDDLE))
    w.as_directly("afterwards")


@case("packets of the link are dropped for a while")
def _(t):
    w = World(t)
    w.rules("add", MPA)
    for_a_while(LONG)
    w.rules("del", MPA)
    w.as_directly("afterwards")
    logs(w.a, "link silent")


@case("the wire is silent for a while: link, CLC connection and direct connections")
def _(t):
    w = World(t)
    w.net.silence(1)
    for_a_while(LONG)
    w.net.unsilence(1)
    w.as_directly("afterwards")


@case("the address of either side is lost, and returns", timeout=90)
def _(t):
    w = World(t)
    for side, end, seconds in (("b", 2, 3), ("a", 1, 12)):	# 10: a device without links would be closed
        w.net.ip(side, f"addr del 10.77.1.{end}/24 dev {side}1")
        for_a_while(seconds)
        w.net.ip(side, f"addr add 10.77.1.{end}/24 dev {side}1")
        w.as_directly(f"after {side}")


@case("the interface of either side is down for a while", timeout=90)
def _(t):
    w = World(t)
    for side in "ba":
        w.net.down(side, 1)
        for_a_while(3)
        w.net.up(side, 1)
        w.as_directly(f"after {side}")


@case("a gateway has no file descriptor left: connections continue, new ones wait")
def _(t):
    w = World(t)
    for d in (w.a, w.b):
        limit = NoFiles(d)
        new = Live("echo", w.connect(("127.0.0.1", CLIENTS)))
        for_a_while(1)
        w.as_directly(f"while {d.name} has none")
        limit.over()
        if d is w.a:
            check(d.counters()["accept_pauses"] > 0, "nothing was accepted meanwhile")
            equal(new.goes_on(), "alive", "the one that waited")
        wait_until(lambda: Live("echo", w.connect(("127.0.0.1", CLIENTS))).goes_on() == "alive", "a new one works")


def killed(t, victim):
    w = World(t)
    getattr(w, victim).kill()

    def ended(c):
        return c.goes_on(1) != "alive" and c.outcome
    ends = {k: wait_until(lambda c=c: ended(c), f"{k} ends") for k, c in w.here.items()}
    t.note(f"at clients: {ends}")
    check(set(ends.values()) <= {"end", "ConnectionResetError", "BrokenPipeError"}, f"ends at clients: {ends}")
    wait_until(lambda: len(w.server.ends) == len(w.here), f"ends at the server: {w.server.ends}")
    check("wrong bytes" not in w.server.ends, f"ends at the server: {w.server.ends}")
    equal({k: c.goes_on() for k, c in w.direct.items()}, {k: "alive" for k in w.direct}, "directly")


@case("the ingress is killed: every conversation ends, on both sides, without a wrong byte")
def _(t):
    killed(t, "a")


@case("the egress is killed: the same")
def _(t):
    killed(t, "b")


main()
