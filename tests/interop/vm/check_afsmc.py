#!/usr/bin/env python3
# needs: linux-image-6.12-amd64
# cards: 2
# takes: 150 s
"""Linux's own SMC in one machine, and in the other one the same, which tells that the laboratory works, or smcrd."""
from afsmc import Scene
from harness import case, check, equal, main

MIB = 1 << 20
WAYS = ("in", "out")


def bulk(peer, size):
    @case(f"{peer}: {size >> 20} MiB both ways at the same time, with a checksum", timeout=90)
    def _(t):
        scene = Scene(t, peer)
        for way in WAYS:
            took, _ = scene.run(way, "bulk", timeout=90, size=size)
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


def short(peer, count):
    @case(f"{peer}: {count} short ones, one after another", timeout=120)
    def _(t):
        scene = Scene(t, peer)
        for way in WAYS:
            flow = scene.start(way, "echo")
            took = flow.wait(flow.client("short", count=count), 120)
            flow.served(count)
            flow.only_smcr()
            t.note(f"{way}: {took * 1e3:.1f} ms each")


def cases(peer):
    """The rest of what connections do."""
    bulk(peer, 50 * MIB)
    ping(peer)
    short(peer, 2000)

    def one(name, **kw):
        return case(f"{peer}: {name}", **kw)

    @one("300 connections at once: more than one group", timeout=90)
    def _(t):
        scene = Scene(t, peer)
        # A client in the kernel that gets no Accept within 6 s gives up, and those that need a second group get one when it is at the
        # Confirm that makes it, behind all others.
        for way, making in (("out", 300), ("in", 60)):
            flow = scene.start(way, "echo")
            took = flow.wait(flow.client("many", count=300, making=making), 90)
            flow.served(300)
            flow.only_smcr()
            groups = [x["role"] for x in scene.hosts["b"].groups()]
            check(len(groups) > 1, f"{way}: groups {groups}")
            t.note(f"{way}: {took:.1f} s until all were there")

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


bulk("kernel", 5 * MIB)
ping("kernel")
short("kernel", 200)
cases("smcrd")
main()
