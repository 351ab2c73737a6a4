#!/usr/bin/env python3
"""
Time limits of a daemon that is otherwise idle: nothing but its own timer wakes it, so a limit that counts from the wrong
moment shows. The middle connections run over pair 1 of the network namespaces, links over the others.
"""
from netns import ADDR_A, ADDR_B, Net, enter

enter()

import re								# noqa: E402
import time								# noqa: E402

from harness import PATIENCE, Daemon, Server, case, check, echo, equal, main, recv_exact, wait_until	# noqa: E402

PORT, MIDDLE = 12000, 13000
CONNECT_MS, ANSWER_MS, LAST_MS = 1000, 1000, 1000
LONG = "60s"
IDLE, ASLEEP_S = 100, 5


class Gateways:
    def __init__(self, t, links, connect_ms=None):
        self.net = Net(t, 1 + links)
        for side in (t, self.net.b):	# addresses of IPv6 come seconds later, and wake daemons
            side.run(["sh", "-c", "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$f; done"])
        server = Server(t, echo, host=ADDR_A)
        limits = {"connect_timeout": f"{connect_ms}ms" if connect_ms else LONG, "answer_timeout": f"{ANSWER_MS}ms"}
        smcr = {"links_max": links, "test_link_interval": LONG, "add_link_retry": LONG, "add_link_retry_max": LONG,
                "last_link_timeout": f"{LAST_MS}ms"}
        self.a = Daemon(t, "a", {
            "log_level": "debug", "smcr": smcr, "devices": [dict(d, **limits) for d in self.net.devices("a")[1:]],
            "ingress": [{"name": "echo", "listen": f"{ADDR_A}:{PORT}", "to": f"{ADDR_B}:{MIDDLE}"}]})
        self.b = Daemon(t, "b", {
            "log_level": "debug", "smcr": smcr,
            "devices": [dict(d, connect_timeout=LONG, answer_timeout=LONG) for d in self.net.devices("b")[1:]],
            "egress": [{"name": "echo", "listen": f"{ADDR_B}:{MIDDLE}", "to": f"{ADDR_A}:{server.port}"}]},
            wrap=self.net.b.wrap())


def rest():
    """Until timers of the event loop that were armed for what is over have rung."""
    time.sleep(2.2 * ANSWER_MS / 1000)	# raw: timers cannot be seen


def took(t, what, start, limit_ms, d):
    """It was neither early nor late, but for the time that a thread of the daemon stood still."""
    s = time.monotonic() - start
    stalled = sum(int(ms) for ms in re.findall(r"thread stalled: for_ms=(\d+)", d.log())) / 1000
    t.note(f"{what}: {s:.3f} s, its limit is {limit_ms / 1000} s; the daemon stood still for {stalled} s")
    check(s > limit_ms / 1000 - 0.01, f"{what}: {s:.3f} s, before its time")
    check(s < limit_ms / 1000 * 1.1 + 0.1 * PATIENCE + stalled, f"{what}: {s:.3f} s, late")


def wakes(d):
    """How often the threads of a daemon have slept."""
    return sum(int(line.split()[1]) for status in d.threads("status").values() for line in status.split("\n")
               if line.startswith("voluntary_ctxt_switches"))


def talk(s, data):
    s.sendall(data)
    equal(recv_exact(s, len(data)), data, "echo")


@case("a connect to a silent MPA port ends after connect_timeout")
def _(t):
    gw = Gateways(t, 1, CONNECT_MS)
    gw.net.silence(2)
    rest()
    start = time.monotonic()
    gw.a.ctl_text("check", f"{ADDR_B}:{MIDDLE}", status=1)
    took(t, "the check", start, CONNECT_MS, gw.a)


@case("one link: the peer's silence ends it after answer_timeout and last_link_timeout")
def _(t):
    gw = Gateways(t, 1)
    s = gw.net.connect(PORT)
    talk(s, b"hello")
    rest()
    gw.net.silence(2)
    rest()
    start = time.monotonic()
    s.sendall(b"anybody there?")
    try:
        end = s.recv(1)
    except ConnectionResetError:
        end = "reset"
    took(t, "the reset", start, ANSWER_MS + LAST_MS, gw.a)
    equal(end, "reset", "what the client sees")


@case("two links: failover after answer_timeout")
def _(t):
    gw = Gateways(t, 2)
    s = gw.net.connect(PORT)
    talk(s, b"hello")
    wait_until(lambda: sum(x["state"] == "active" for x in gw.a.ctl("links")["links"]) == 2, "two links are there")
    talk(s, b"hello again")
    pair = next(int(x["device"][1:]) for x in gw.a.ctl("links")["links"] if x["connections"] == 1)
    rest()
    gw.net.silence(pair)
    rest()
    start = time.monotonic()
    talk(s, b"anybody there?")
    took(t, "failover", start, ANSWER_MS, gw.a)


@case("daemons sleep while connections are idle")
def _(t):
    gw = Gateways(t, 1)
    socks = [gw.net.connect(PORT) for _ in range(IDLE)]
    for s in socks:
        talk(s, b"hello")
    rest()
    before = [wakes(d) for d in (gw.a, gw.b)]
    time.sleep(ASLEEP_S)	# raw: what happens meanwhile is the question
    for d, was in zip((gw.a, gw.b), before):
        n = wakes(d) - was
        t.note(f"{d.name}: {n} times awake in {ASLEEP_S} s")
        check(n <= ASLEEP_S, f"{d.name} was awake {n} times in {ASLEEP_S} s")
    for s in socks:
        talk(s, b"hello again")


main()
