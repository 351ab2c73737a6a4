#!/usr/bin/env python3
# kernel: linux-image-6.12-amd64
# cards: 2
# takes: 55 s
# load: 90
"""Linux's own SMC in one machine, and smcrd in the other one: bytes, and how connections begin and end."""
from afsmc import HOSTILE_NAME, Scene
from harness import case, check, equal, logs, main

MIB = 1 << 20
WAYS = ("in", "out")
SHORT = 260		# more than a group has places


@case("6 MiB both ways at the same time, with a checksum", timeout=60)
def _(t):
    scene = Scene(t, "smcrd")
    for way in WAYS:
        took, _ = scene.run(way, "bulk", timeout=60, size=6 * MIB)
        t.note(f"{way}: {took:.1f} s")
    over = scene.over_smcr("b")
    equal((over["client 2"], over["server 2"]), (1, 1), "connections by version 2 of SMC-R in the kernel")


@case("a host name of escape sequences reaches no terminal, and makes no line of the log")
def _(t):
    scene = Scene(t, "smcrd", group_idle="30s")
    for way in WAYS:
        scene.run(way, "bulk", size=1000)
    d, shown = scene.daemons[0], "".join(chr(x) if 0x20 < x < 0x7f else "?" for x in HOSTILE_NAME)
    equal({g["peer_host"] for g in d.ctl("groups")["groups"]}, {shown}, "the peer's host")
    logs(d, f" host={shown} ")
    for text in (d.log(), d.ctl_text("groups"), d.ctl_text("--json", "groups"), d.ctl_text("events")):
        left = {x for x in text if x != "\n" and not 0x20 <= ord(x) < 0x7f}
        equal(left, set(), f"characters that are none to be shown: {text}")
        check(not any(line.startswith("notice: evil") for line in text.split("\n")), "a line of the peer's own")


@case("200 round trips of one byte", timeout=40)
def _(t):
    scene = Scene(t, "smcrd")
    for way in WAYS:
        flow = scene.start(way, "echo")
        took = flow.wait(flow.client("ping", count=200), patience=20)
        flow.only_smcr()
        t.note(f"{way}: {took * 1e3:.2f} ms a round")


@case(f"{SHORT} short connections in sequence, in both directions at once", timeout=60)
def _(t):
    scene = Scene(t, "smcrd")
    flows = [scene.start(way, "echo", one_by_one=True) for way in WAYS]
    for flow, number in [(f, f.client("short", count=SHORT)) for f in flows]:
        took = flow.wait(number, 60, patience=5)
        flow.served(SHORT)
        flow.only_smcr()
        t.note(f"{flow.way}: {took * 1e3:.1f} ms each")


@case(f"{SHORT} connections at once: more than one group", timeout=90)
def _(t):
    scene = Scene(t, "smcrd")
    # A client in the kernel that gets no Accept within 6 s gives up, and those that need a second group get one when it is at the
    # Confirm that makes it, behind all others.
    for way, making in (("out", SHORT), ("in", 60)):
        flow = scene.start(way, "echo")
        before = scene.daemons[0].counters()["first_contacts"]
        took = flow.wait(flow.client("many", count=SHORT, making=making), 90)
        flow.served(SHORT)
        flow.only_smcr()
        groups = scene.daemons[0].counters()["first_contacts"] - before
        check(groups > 1, f"{way}: {groups} groups were made")
        t.note(f"{way}: {took:.1f} s until all were there")


@case("each direction ends separately: half close", timeout=40)
def _(t):
    scene = Scene(t, "smcrd")
    for way in WAYS:
        for late in (False, True):
            scene.run(way, "half", size=300000, late=late)


@case("aborts with unread data", timeout=40)
def _(t):
    scene = Scene(t, "smcrd")
    for way in WAYS:
        for server in (False, True):
            got, served = scene.run(way, "abort", server=server)
            aborts, sees = (served[0], got) if server else (got, served[0])
            equal(aborts, "aborted", f"{way}: the aborting end")
            # AF_SMC may tell its program of an end only; to a plain program that would be an end of data that looks well.
            plain = server == (way == "out")
            check(sees == "reset" or (sees == "end" and not plain), f"{way}: the other end sees: {sees}")


@case("urgent byte in both directions", timeout=40)
def _(t):
    scene = Scene(t, "smcrd")
    for way in WAYS:
        got, served = scene.run(way, "urgent")
        for end in (got, served[0]):
            equal(list(end), ["0123456789!abcde", [10]], f"{way}: bytes, places of the urgent one")


@case("slow reader", timeout=40)
def _(t):
    scene = Scene(t, "smcrd")
    for way in WAYS:
        took, _ = scene.run(way, "slow", size=8 * MIB, pause=1.5)
        check(took > 1, f"{way}: all was taken after {took:.1f} s")


main()
