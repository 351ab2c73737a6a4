#!/usr/bin/env python3
# kernel: linux-image-6.12-amd64
# cards: 2
# takes: 140 s
# load: 90
"""Two links between Linux's own SMC and smcrd: one is lost, and comes back, while bytes are under way."""
import ipaddress
import time

import rxe
from afsmc import Scene, address
from harness import Failure, case, check, equal, main, wait_until

COUNT = 6
BACK = {"unplug": "plug", "down": "up", "silence": "unsilence"}


def active(scene):
    """Device -> connections, of the kernel's active links in side b."""
    out = {}
    for x in scene.hosts["b"].links():
        if x["state"] == "active":
            out[x["device"]] = out.get(x["device"], 0) + x["connections"]
    return out


def uids(scene):
    """Of the kernel's active links in side b, each made but once."""
    return {x["uid"] for x in scene.hosts["b"].links() if x["state"] == "active"}


def uids_over(scene, side, card):
    """Of those over this card of either side that have connections: which card there is at the other end is chance."""
    end, gid = "gid" if side == "b" else "peer_gid", ipaddress.ip_address(f"::ffff:{address(side, card)}")
    return {x["uid"] for x in scene.hosts["b"].links()
            if x["state"] == "active" and x["connections"] and ipaddress.ip_address(x[end]) == gid}


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


def explained(scene, what, fn):
    """Runs fn(); a failure has the cursors of all connections with it."""
    try:
        return fn()
    except Failure as e:
        raise Failure(f"{what}: {e}\n{scene.cursors()}") from None


def all_go_on(scene, flow, count=COUNT, rounds=2, timeout=15):
    before = flow.rounds()

    def more():
        now = flow.rounds()
        return len(now) == count and all(n >= before[i] + rounds for i, n in enumerate(now))
    explained(scene, f"{flow.way}: connections stand still",
              lambda: wait_until(more, f"each has done {rounds} rounds more than {before}: {flow.rounds()}", timeout))


def begin(t):
    scene = Scene(t, "smcrd", links=2, testlink_s=2, test_link_interval="1s", test_link_timeout="2s", add_link_retry="2s")
    for name in ("over", "close"):
        scene.until(name, False)
    return scene


class Lost:
    """A card of one side is lost, for a while."""

    def __init__(self, t, scene, side, what, card):
        self.t, self.scene, self.side, self.what, self.card = t, scene, side, what, card

    def __enter__(self):
        self.start = time.monotonic()
        self.scene.hosts[self.side].card(self.card, self.what)
        return self

    def noticed(self):
        wait_until(lambda: without(self.scene, self.side, self.card), f"no link over the lost card: {links(self.scene)}", 30)
        self.t.note(f"moved after {time.monotonic() - self.start:.1f} s: {links(self.scene)}")

    def __exit__(self, *_):
        self.scene.hosts[self.side].card(self.card, BACK[self.what])


def two_links(t, scene, timeout=30):
    start = time.monotonic()
    try:
        wait_until(lambda: on(scene, (1, 2)), "two links", timeout)
    except Failure as e:
        raise Failure(f"{e}: {[d.ctl('links')['links'] for d in scene.daemons]}\n{scene.hosts['b'].links()}") from None
    t.note(f"two links after {time.monotonic() - start:.1f} s")


def loss(t, way, side, what, card=2):
    """A card of one side is lost and comes back, and a link with it."""
    scene = begin(t)
    flow = scene.start(way, "echo")
    busy = flow.client("busy", count=COUNT, size=30000, until="over")
    try:
        two_links(t, scene)
        all_go_on(scene, flow)
        with Lost(t, scene, side, what, card) as lost:
            lost.noticed()
            all_go_on(scene, flow)
        two_links(t, scene)
        all_go_on(scene, flow)
    finally:
        scene.until("over", True)
    equal(flow.wait(busy), ["done"] * COUNT, "how the connections ended")
    flow.served(COUNT)
    flow.only_smcr()


def same_end(kind, by, linux, client, server):
    """Of a connection that one end has closed, or half of it: all has arrived. What Linux had under way when it closed is lost
    with the link, as it does not repeat it: that is a reset, or what it closed before, and never an end that looks well."""
    what = f"{kind} by {by}: {client}, {server}"
    if "reset" in (client, server):
        check(kind == "close" and by == linux, what)
        return f"{what}: reset"
    check(isinstance(client, dict) and isinstance(server, dict), what)
    equal((client["got"], server["got"]), (server["sent"], client["sent"]), what)
    return f"{what}: all"


def closing(t, way, side, what):
    """A link is lost while connections are half closed, and while others close with data under way."""
    scene = begin(t)
    earlier = uids(scene)		# of groups of other cases
    linux, ours = ("client", "server") if way == "in" else ("server", "client")
    # Connections take turns at the links, so each kind is on both.
    kinds = [["half", linux], ["late", ours], ["close", linux], ["close", ours]]
    ends = kinds + kinds[1:] + kinds[:1]
    flow = scene.start(way, "ends", ends=ends, until="over", close="close", last=40000)
    number = flow.client()
    half = sum(x[0] == "half" for x in ends)
    try:
        two_links(t, scene)
        all_go_on(scene, flow, half)
        before = uids_over(scene, side, 2) - earlier
        check(before, f"a link over the second card: {links(scene)}")
        with Lost(t, scene, side, what, 2) as lost:
            scene.until("close", True)
            lost.noticed()
            # What Linux sends over the lost link from a connection that is half closed is not sent again.
            wait_until(lambda: not before & uids(scene), f"Linux has found the link lost, too: {links(scene)}", 15)
            all_go_on(scene, flow, half)
            scene.until("over", True)
            results = explained(scene, "ends", lambda: flow.wait(number, 15))
            served = dict(map(tuple, explained(scene, "ends", lambda: flow.served(len(ends), 15))))
    finally:
        scene.until("over", True)
    flow.only_smcr()
    said = [same_end(*ends[i], linux, x, served[i]) for i, x in enumerate(results)]
    for x in said:
        t.note(x)
    # Or more: the word of an end that both programs have seen may be lost.
    resets = sum(d.counters()["closed_reset"] for d in scene.daemons)
    check(resets >= sum(x.endswith("reset") for x in said), f"smcrd has reset {resets} connections")
    if way == "out":
        # What smcrd ends waits until Linux has moved. As the client Linux has found nothing yet when it hears of the end, and what
        # it says then is lost; such a connection takes close_timeout.
        explained(scene, "left", lambda: wait_until(lambda: not any(d.connections() for d in scene.daemons), "all are through", 10))


for spec in (("in", "a", "down"), ("in", "a", "silence"), ("in", "b", "unplug", 1), ("in", "b", "down"), ("in", "b", "silence", 1),
             ("out", "a", "unplug", 1), ("out", "a", "down"), ("out", "a", "silence", 1), ("out", "b", "unplug"), ("out", "b", "down")):
    case(f"{spec[0]}: {spec[2]} in {spec[1]}{', the first card' if spec[3:] else ''}", timeout=60)(lambda t, spec=spec: loss(t, *spec))

for spec in (("in", "b", "silence"), ("in", "a", "unplug"), ("out", "a", "silence"), ("out", "b", "down")):
    case(f"{spec[0]}: connections close, {spec[2]} in {spec[1]}", timeout=60)(lambda t, spec=spec: closing(t, *spec))


if __name__ == "__main__":
    main()
