#!/usr/bin/env python3
# needs: linux-image-6.12-amd64
# cards: 2
# takes: 90 s
"""smcrd and Linux's own SMC: when there is to be TCP, when one of the two is gone, programs, what smcrctl says, and speed."""
import time

import afsmc
from afsmc import Scene
from harness import case, check, equal, main, wait_until
from pair import Far

MIB = 1 << 20
WAYS = ("in", "out")
RESET = {"reset", "end"}


def falls_back(t, scene, way, code):
    """The data goes by TCP; the reason is that of the end which declined, and both know it."""
    flow = scene.start(way, "bulk", size=300000)
    flow.finish(flow.client())
    words = {x for x in {**flow.modes, **flow.server()["modes"]} if x != "plain"}
    t.note(f"{way}: {words}")
    check(len(words) == 1 and all(x.startswith("tcp") and code in x for x in words), f"{way}: {code} in the kernel: {words}")
    check(f"code=0x{code}" in scene.daemons[0].log(), f"{way}: {code} in the daemon's log")


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


@case("plain programs in place of AF_SMC ones: TCP without a byte of CLC", timeout=40)
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
    return flow, number


@case("the kernel's module is unloaded with an idle group: smcrd hears of it, and has a group again afterwards", timeout=60)
def _(t):
    for way in WAYS:
        scene = Scene(t, "smcrd", group_idle="10m")
        scene.run(way, "bulk", size=100000)
        d = scene.daemons[0]
        equal(len(d.groups()), 1, "groups")
        Far("peer").reset()
        scene.hosts["b"].unload()
        wait_until(lambda: not d.groups(), f"{way}: no group is left", 10)
        said = [x for x in d.log().split("\n") if "link group down" in x]
        t.note(f"{way}: {said[-1].split('reason=')[-1]}")
        scene.hosts["b"].smc([afsmc.UEID], False)
        scene.counts["b"] = scene.hosts["b"].counts()
        scene.run(way, "bulk", size=100000)
        d.finish()


@case("smcrd is killed while bytes are under way: resets; the next daemon is served", timeout=90)
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


@case("the kernel's cards are gone while bytes are under way: an end or a reset", timeout=60)
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


@case("smcrctl says who the peer is", timeout=40)
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


@case("speed: smcrd in place of one kernel", timeout=120)
def _(t):
    got = {}
    for peer in ("kernel", "smcrd"):
        for kib in (64, 512):
            own = {"send_buffer": f"{kib}K"} if peer == "smcrd" else {}
            scene = Scene(t, peer, **own)
            for way in WAYS:
                flow = scene.start(way, "sink", size=6 * MIB, buffer=kib << 10, service={"rmb_element": f"{kib}K"})
                flow.wait(flow.client())
                got[peer, f"{way}, buffers of {kib} KiB, MB/s"] = 6 * MIB / 1e6 / flow.wait(flow.client())
                if kib == 64:
                    flow = scene.start(way, "echo")
                    flow.wait(flow.client("ping", count=50))
                    got[peer, f"{way}, one byte, rounds/s"] = 1 / flow.wait(flow.client("ping", count=200))
            for d in scene.daemons:
                d.finish()
            Far("peer").reset()
    for what in [k for p, k in got if p == "kernel"]:
        kernel, ours = got["kernel", what], got["smcrd", what]
        t.note(f"{what:32} kernel {kernel:8.1f}   smcrd {ours:8.1f}   {ours / kernel:.2f}")


main()
