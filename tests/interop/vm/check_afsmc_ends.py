#!/usr/bin/env python3
# kernel: linux-image-6.12-amd64
# cards: 2
# takes: 100 s
# load: 70
"""smcrd and Linux's own SMC: when there is to be TCP, when one of the two is gone, programs, what smcrctl says."""
import time

import afsmc
from afsmc import Scene
from harness import case, check, equal, hostport, logs, main, wait_until
from pair import Far
from rxe import settles

WAYS = ("in", "out")
RESET = {"reset", "end"}


def falls_back(t, scene, way, code):
    """The data goes by TCP; the reason is that of the end which declined, and both know it."""
    flow = scene.start(way, "bulk", size=300000)
    flow.finish(flow.client())
    words = {x for x in {**flow.modes, **flow.server()["modes"]} if x != "plain"}
    t.note(f"{way}: {words}")
    check(len(words) == 1 and all(x.startswith("tcp") and code in x for x in words), f"{way}: {code} in the kernel: {words}")
    logs(scene.daemons[0], f"code=0x{code}")


@case("no enterprise id in common: TCP", timeout=40)
def _(t):
    scene = Scene(t, "smcrd", ueids=("OTHER.ID",))
    falls_back(t, scene, "in", "03030008")
    falls_back(t, scene, "out", "03030000")		# Linux has not even a device, then


@case("the kernel has no device: TCP", timeout=40)
def _(t):
    scene = Scene(t, "smcrd")
    for i in (1, 2):
        scene.hosts["b"].card(i, "unplug")
    try:
        falls_back(t, scene, "in", "03030000")
        falls_back(t, scene, "out", "03030002")
    finally:
        for i in (1, 2):
            scene.hosts["b"].card(i, "plug")


@case("smcrd has no usable device: TCP; with a card SMC-R", timeout=60)
def _(t):
    scene = Scene(t, "smcrd", devices=[{"type": "siw", "address": afsmc.address("a")}])		# iWARP, which Linux does not take
    falls_back(t, scene, "in", "03030002")
    falls_back(t, scene, "out", "03030000")
    scene.daemons[0].finish()
    Far("peer").reset()
    scene = Scene(t, "smcrd")
    scene.hosts["a"].card(1, "unplug")
    try:
        falls_back(t, scene, "in", "03030002")
        falls_back(t, scene, "out", "03030000")
    finally:
        scene.hosts["a"].card(1, "plug")
    d = scene.daemons[0]
    wait_until(lambda: [x for x in d.ctl("devices")["devices"] if x["port"] == "up"], "the daemon has the card", 20)
    scene.counts["b"] = scene.hosts["b"].counts()
    for way in WAYS:
        flow = scene.start(way, "bulk", size=100000)
        flow.finish(flow.client())
        equal(set(flow.modes) | set(flow.server()["modes"]), {"smcr", "plain"}, f"{way}: modes")


@case("peer auto: SMC-R with AF_SMC, TCP without, at the same time", timeout=60)
def _(t):
    scene = Scene(t, "smcrd")
    auto = {"peer": "auto"}
    for role, settings in (("echo", {"count": 10}), ("half", {"size": 300000, "late": False})):		# the server speaks first
        client = "many" if role == "echo" else None
        flows = [(scene.start("in", role, service=auto, **settings), kind) for kind in ("smc", "plain")]
        flows += [(scene.start("out", role, service=auto, kind=kind, **settings), kind) for kind in ("smc", "plain")]
        before = scene.daemons[0].established()
        numbers = [f.client(client, kind=kind if f.way == "in" else None) for f, kind in flows]
        for (f, kind), n in zip(flows, numbers):
            f.wait(n)
            f.served(settings.get("count", 1))
            modes = set(f.modes) | set(f.server()["modes"])
            equal(modes, {"plain"} if kind == "plain" else {"plain", "smcr"}, f"{f.way}, {role}, {kind}: modes")
        equal(scene.daemons[0].established() - before, 2 * settings.get("count", 1), f"{role}: connections on SMC-R")
    equal(scene.fallbacks("b"), {}, "fallbacks in the kernel")


def refusing(scene, way, kind="smc", peer="linux"):
    """How a client of a service fares that refuses what is not SMC-R."""
    flow = scene.start(way, "echo", kind=kind, service={"fallback": "refuse", "peer": peer})
    how = flow.wait(flow.client("try", size=2000))["how"]
    return how, set(flow.modes) | set(flow.server()["modes"])


@case("fallback refuse: a reset without SMC-R, SMC-R for the others", timeout=60)
def _(t):
    scene = Scene(t, "smcrd", ueids=("OTHER.ID",), clc_timeout="1s")
    for way in WAYS:
        equal(refusing(scene, way), ("ECONNRESET", set()), f"{way}: without an EID in common")
    t.note(f"fallbacks of Linux: {scene.fallbacks('b')}")
    scene.hosts["b"].smc([afsmc.UEID], False)
    for peer in ("linux", "auto"):
        for way in WAYS:
            equal(refusing(scene, way, "plain", peer), ("ECONNRESET", set()), f"{way}, {peer}: without AF_SMC")
            equal(refusing(scene, way, "smc", peer), ("echo", {"smcr", "plain"}), f"{way}, {peer}: with AF_SMC")
    d = scene.daemons[0]
    for code, times in (("local_code=0x03030008", 1), ("peer_code=0x03030000", 1), ("local_code=0x03010000", 3)):
        settles(lambda c=code: sum("mode=refused" in x and c in x for x in d.log().split("\n")), times, f"refused, {code}")
    # A service with "auto" waits for a CLC message of a client without the option, and this one sent something else.
    logs(d, "no CLC message where one was expected")


@case("plain programs instead of AF_SMC ones: TCP without a byte of CLC", timeout=40)
def _(t):
    scene = Scene(t, "smcrd")
    for way in WAYS:
        flow = scene.start(way, "bulk", size=300000, kind="plain")
        flow.finish(flow.client())
        equal(set(flow.modes) | set(flow.server()["modes"]), {"plain"}, f"{way}: modes")
    equal([scene.daemons[0].established()], [0], "connections on SMC-R")


def busy(scene, way, count=4):
    scene.until("over", False)
    flow = scene.start(way, "echo")
    number = flow.client("busy", count=count, size=30000, until="over")
    wait_until(lambda: len(flow.rounds()) == count and min(flow.rounds()) > 1, f"{way}: bytes are under way", 20)
    check(scene.daemons[0].established() >= count, f"{way}: connections on SMC-R")
    return flow, number


@case("the kernel's module: in use under load, no effect; unloaded with an idle group, smcrd gets DELETE LINK", timeout=90)
def _(t):
    for way in WAYS:
        scene = Scene(t, "smcrd", group_idle="10m")
        flow, number = busy(scene, way)
        d, end = scene.daemons[0], scene.hosts["b"]
        said = end.try_unload()
        check("in use" in said, f"{way}: rmmod under load says {said}")
        before = flow.rounds()
        wait_until(lambda: all(n > before[i] + 1 for i, n in enumerate(flow.rounds())), f"{way}: bytes are under way", 20)
        scene.until("over", True)
        equal(flow.wait(number), ["done"] * 4, f"{way}: how the connections ended")
        flow.only_smcr()
        equal(len(d.groups()), 1, "groups")
        Far("peer").reset()
        end.unload()
        wait_until(lambda: not d.groups(), f"{way}: no group is left", 10)
        said = [x for x in d.log().split("\n") if "link group down" in x]
        t.note(f"{way}: {said[-1].split('reason=')[-1]}")
        end.smc([afsmc.UEID], False)
        scene.counts["b"] = end.counts()
        scene.run(way, "bulk", size=100000)
        d.finish()


@case("smcrd is killed with data in flight: resets; the next daemon is served", timeout=90)
def _(t):
    for way in WAYS:
        scene = Scene(t, "smcrd", testlink_s=2)
        flow, number = busy(scene, way)
        d = scene.daemons[0]
        start = time.monotonic()
        d.kill()
        ends = flow.wait(number, 40)
        t.note(f"{way}: {ends} after {time.monotonic() - start:.1f} s")
        check(set(ends) <= RESET, f"{way}: how the connections ended: {ends}")
        scene.until("over", True)
        d.expect_dead = False
        d.start()
        after = flow.client("short", count=3)
        flow.wait(after)
        wait_until(lambda: d.established() >= 3, f"{way}: SMC-R again")
        Far("peer").reset()


@case("the kernel's cards are removed with data in flight: an end or a reset", timeout=60)
def _(t):
    scene = Scene(t, "smcrd")
    flow, number = busy(scene, "in")
    for i in (1, 2):
        scene.hosts["b"].card(i, "unplug")
    try:
        ends = flow.wait(number, 40)
        t.note(f"{ends}")
        check(set(ends) <= RESET, f"how the connections ended: {ends}")
        wait_until(lambda: not scene.daemons[0].connections(), "the daemon has no connections left")
        wait_until(lambda: not scene.daemons[0].groups(), "the daemon has no groups left", 20)
    finally:
        scene.until("over", True)
        for i in (1, 2):
            scene.hosts["b"].card(i, "plug")


@case("data sent before a reset arrives before it", timeout=60)
def _(t):
    scene = Scene(t, "smcrd")
    for way in WAYS:
        for rests in (0, 0.5):		# Linux drops what it has not sent when its program resets
            _, got = scene.run(way, "words", size=50000, pause=3, rests=rests)
            t.note(f"{way}, {rests} s between last byte and reset: {got}")
            check(got[0][0] == 50000 or (way == "in" and rests == 0), f"{way}: {got}")


@case("smcrctl shows the peer", timeout=40)
def _(t):
    scene = Scene(t, "smcrd")
    flow, number = busy(scene, "out")
    d = scene.daemons[0]
    for what in ("groups", "links", "connections"):
        t.note(d.ctl_text(what))
    group = d.ctl("groups")["groups"][0]
    equal((group["version"], group["release"], group["eid"], group["peer_os"], group["peer_host"]),
          (2, 1, afsmc.UEID, "Linux", "afsmc-ends-peer"), "the group's version, release, EID, peer's OS and host")
    scene.until("over", True)
    equal(flow.wait(number), ["done"] * 4, "how the connections ended")
    for kind, status, words in (("smc", 0, f"done: SMC-R version 2.1, EID {afsmc.UEID}, Linux, host afsmc-ends-peer"),
                                ("plain", 1, "no SMC-R option in its SYN/ACK: its kernel has no SMC, or a middlebox drops it")):
        port, _ = scene.programs["b"].serve(kind, afsmc.address("b"), "echo", {})
        said = d.ctl_text("check", hostport(afsmc.address("b"), port), status=status)
        check(words in said, f"check of a server of kind {kind}: {said}")


main()
