#!/usr/bin/env python3
# needs: linux-image-6.12-amd64
# cards: 2
# takes: 100 s
"""Two links between Linux's own SMC and smcrd, or another kernel: one is lost, and comes back, while bytes are under way."""
import time

import rxe
from afsmc import Scene
from harness import case, equal, main, wait_until

COUNT = 6
BACK = {"unplug": "plug", "down": "up", "silence": "unsilence"}


def active(scene):
    """Device -> connections, of the kernel's active links in side b."""
    out = {}
    for x in scene.hosts["b"].links():
        if x["state"] == "active":
            out[x["device"]] = out.get(x["device"], 0) + x["connections"]
    return out


def daemon_links(scene):
    return [{x["device"]: x["connections"] for x in d.ctl("links")["links"] if x["state"] == "active"} for d in scene.daemons]


def links(scene):
    return active(scene), daemon_links(scene)


def on(scene, cards):
    """Are there links over these cards and no other, by all that can be asked?"""
    want = {rxe.device("b", i) for i in cards}
    there = {rxe.device("a", i) for i in cards}
    return set(active(scene)) == want and all(set(x) == there for x in daemon_links(scene))


def without(scene, side, card):
    """Are there links, and none over this card? The other side may have one from its own card to the other one here."""
    has = [active(scene)] if side == "b" else daemon_links(scene) or [active(scene)]
    gone = rxe.device(side, card) if side == "b" or scene.daemons else rxe.device("b", card)
    return all(x and gone not in x for x in has)


def all_go_on(flow, rounds=2, timeout=30):
    before = flow.rounds()

    def more():
        now = flow.rounds()
        return len(now) == COUNT and all(n >= before[i] + rounds for i, n in enumerate(now))
    wait_until(more, f"{flow.way}: each connection has done {rounds} rounds more than {before}: {flow.rounds()}", timeout)


def loss(t, peer, way, side, what, returns=True, card=2):
    """A card of one side is lost and comes back; returns: there are links over both again."""
    scene = Scene(t, peer, links=2, testlink_s=2, test_link_interval="1s", test_link_timeout="2s")
    scene.until("over", False)
    flow = scene.start(way, "echo")
    busy = flow.client("busy", count=COUNT, size=30000, until="over")
    try:
        wait_until(lambda: on(scene, (1, 2)), f"two links: {links(scene)}", 20)
        all_go_on(flow)
        t.note(f"{way}, {what} in {side}: {links(scene)}")
        start = time.monotonic()
        host = scene.hosts[side]
        host.card(card, what)
        try:
            wait_until(lambda: without(scene, side, card), f"no link over the lost card: {links(scene)}", 30)
            t.note(f"moved after {time.monotonic() - start:.1f} s: {links(scene)}")
            all_go_on(flow)
        finally:
            host.card(card, BACK[what])
        start = time.monotonic()
        if returns:
            wait_until(lambda: on(scene, (1, 2)), f"two links again: {links(scene)}", 30)
            t.note(f"two links again after {time.monotonic() - start:.1f} s")
        all_go_on(flow)
    finally:
        scene.until("over", True)
    equal(flow.wait(busy), ["done"] * COUNT, "how the connections ended")
    flow.served(COUNT)
    flow.only_smcr()


for spec in (("kernel", "in", "b", "unplug"), ("smcrd", "in", "a", "down"), ("smcrd", "in", "a", "silence"),
             ("smcrd", "in", "b", "unplug", False), ("smcrd", "in", "b", "silence", False)):
    case(f"{spec[0]}: {spec[1]}: {spec[3]} in {spec[2]}", timeout=60)(lambda t, spec=spec: loss(t, *spec))


main()
