#!/usr/bin/env python3
"""Sizes of receive and send buffers that the daemon chooses, and the memory that comes back from connections that rest."""
import time

from harness import PATIENCE, SANITIZERS, Pair, Server, case, check, echo, equal, exchange, main, pattern, wait_until

MIB = 1 << 20
CONNECTIONS = 60


def pair_of(t, **kw):
    return Pair(t, {"x": Server(t, echo).at}, **kw)


def sizes(d):
    """Of the elements of this end and of the peer's, and of the send buffers."""
    return {(c["rmbe_bytes"], c["peer_rmbe_bytes"], c["sndbuf_bytes"]) for c in d.connections()}


@case("auto: 512 KiB, and a ring for two windows")
def _(t):
    pair = pair_of(t)
    s = pair.connect()
    exchange(s, b"x" * 1000)
    for d in (pair.a, pair.b):
        equal(sizes(d), {(512 * 1024, 512 * 1024, MIB)}, f"sizes at {d.name}")


@case("configured sizes apply, also above RFC 7609's codes, and at one end alone")
def _(t):
    pair = pair_of(t, a={"smcr": {"send_buffer": "128K"}}, ingress={"rmb_element": "4M"}, egress={"rmb_element": "16K"})
    s = pair.connect()
    exchange(s, pattern(3 * MIB))
    equal(sizes(pair.a), {(4 * MIB, 16 * 1024, 128 * 1024)}, "sizes at a")
    equal(sizes(pair.b), {(16 * 1024, 4 * MIB, 8 * MIB)}, "sizes at b")
    pair.only_smcr(1)


@case("small messages stay at the start of the element")
def _(t):
    pair = pair_of(t)
    s = pair.connect()
    for i in range(300):
        exchange(s, b"%1000d" % i)
    for d in (pair.a, pair.b):
        check(d.counters()["started_over"] > 200, f"{d.name}: {d.counters()['started_over']} times")


@case("short memory: smaller elements; existing connections continue",
      one_worker="each worker has its part of the limit")
def _(t):
    little = {"smcr": {"rmb_memory_max": "24M"}}
    pair = pair_of(t, a=little, b=little)
    first = pair.connect()
    exchange(first, b"first")
    socks = [pair.connect() for _ in range(20)]
    for s in socks:
        exchange(s, b"hello")
    used = {c["rmbe_bytes"] for c in pair.a.connections()}
    check(len(used) > 1 and min(used) >= 64 * 1024, f"sizes: {used}")
    check(pair.a.counters()["elems_shrunk"] > 0, "they are counted")
    pair.only_smcr(21)
    exchange(first, pattern(MIB))


@case("idle connections after 1 MB hold no more memory than fresh ones", timeout=120)
def _(t):
    brief = {"smcr": {"rmb_idle": "300ms"}}
    pair = pair_of(t, a=brief, b=brief)
    exchange(pair.connect(), pattern(MIB))	# what is there once
    socks = [pair.connect() for _ in range(CONNECTIONS)]
    for s in socks:
        exchange(s, b"fresh")
    time.sleep(0.7)		# raw: what has been idle for rmb_idle is given back meanwhile
    fresh = {d.name: d.rss() for d in (pair.a, pair.b)}
    for s in socks:
        exchange(s, pattern(MIB))
    for d in (pair.a, pair.b):
        wait_until(lambda d=d: SANITIZERS or d.rss() < fresh[d.name] + MIB, f"{d.name} is as it was", 10 * PATIENCE)
        wait_until(lambda d=d: d.counters()["pages_given_back"] > CONNECTIONS * 65536, "it is counted", 10 * PATIENCE)
    for s in socks:
        exchange(s, pattern(MIB))


main()
