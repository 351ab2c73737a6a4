#!/usr/bin/env python3
# needs: linux-image-6.12-amd64
# cards: 2
# takes: 100 s
"""Linux's own SMC in one machine, and in the other one the same, which tells that the laboratory works, or smcrd."""
from afsmc import Scene
from harness import case, check, equal, main

MIB = 1 << 20
WAYS = ("in", "out")


def bulk(peer):
    @case(f"{peer}: 5 MiB both ways at the same time, with a checksum", timeout=60)
    def _(t):
        scene = Scene(t, peer)
        for way in WAYS:
            took, _ = scene.run(way, "bulk", size=5 * MIB)
            t.note(f"{way}: {took:.1f} s")
        for side in scene.counts:
            t.note(f"{side}: {scene.over_smcr(side)} {[(x['role'], x['type']) for x in scene.hosts[side].groups()]}")
            over = scene.over_smcr(side)
            equal((over["client 2"], over["server 2"]), (1, 1), f"connections by version 2 of SMC-R in the kernel of {side}")


def ping(peer):
    @case(f"{peer}: one byte there and back, 200 times", timeout=40)
    def _(t):
        scene = Scene(t, peer)
        for way in WAYS:
            flow = scene.start(way, "echo")
            took = flow.wait(flow.client("ping", count=200))
            flow.only_smcr()
            t.note(f"{way}: {took * 1e3:.2f} ms a round")


def cases(peer):
    """The rest of what connections do."""
    bulk(peer)
    ping(peer)

    def one(name, **kw):
        return case(f"{peer}: {name}", **kw)

    @one("300 connections at once: more than one group", timeout=90)
    def _(t):
        scene = Scene(t, peer)
        for way in ("out", "in"):
            flow = scene.start(way, "echo")
            flow.wait(flow.client("many", count=300), 90)
            flow.served(300)
            flow.only_smcr()
            groups = [x["role"] for x in scene.hosts["b"].groups()]
            check(len(groups) > 1, f"{way}: groups {groups}")

    @one("short ones, one after another", timeout=60)
    def _(t):
        scene = Scene(t, peer)
        for way in WAYS:
            flow = scene.start(way, "echo")
            took = flow.wait(flow.client("short", count=200), 60)
            flow.only_smcr()
            t.note(f"{way}: {took * 1e3:.1f} ms each")

    @one("each direction ends by itself: half close", timeout=40)
    def _(t):
        scene = Scene(t, peer)
        for way in WAYS:
            for late in (False, True):
                scene.run(way, "half", size=300000, late=late)

    @one("aborts with data unread", timeout=40)
    def _(t):
        scene = Scene(t, peer)
        for way in WAYS:
            for server in (False, True):
                got, served = scene.run(way, "abort", server=server)
                check({got, *served} <= {"aborted", "end", "reset"}, f"{way}: {got} {served}")

    @one("urgent byte in both directions", timeout=40)
    def _(t):
        scene = Scene(t, peer)
        for way in WAYS:
            got, served = scene.run(way, "urgent")
            for end in (got, served[0]):
                equal(list(end), ["0123456789!abcde", [10]], f"{way}: bytes, places of the urgent one")

    @one("slow reader", timeout=40)
    def _(t):
        scene = Scene(t, peer)
        for way in WAYS:
            took, _ = scene.run(way, "slow", size=8 * MIB, pause=1.5)
            check(took > 1, f"{way}: all was taken after {took:.1f} s")


bulk("kernel")
ping("kernel")
cases("smcrd")
main()
