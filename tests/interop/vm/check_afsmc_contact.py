#!/usr/bin/env python3
# needs: linux-image-6.12-amd64
# cards: 2
# takes: 100 s
"""
First contact between smcrd and Linux's own SMC, interrupted at each step, with smcrd as client and as server at the same time: a
message does not arrive and is sent in vain again and again, smcrd is killed then, or stands still. The programs get TCP or a
reset, in time, what arrives is right, nothing is left of it, and the next connection is on SMC-R.
"""
import signal

from afsmc import Scene
from harness import SMCRCTL, case, check, equal, main, wait_until
from pair import Far

WAYS = ("in", "out")
# A link that is lost is missed soon, which by default takes TEST LINK 30 s, at both ends.
QUICK = {"links": 2, "testlink_s": 2, "test_link_interval": "1s", "test_link_timeout": "1s"}
GONE = {"ECONNRESET", "ECONNABORTED", "ETIMEDOUT", "EPIPE", "ENOTCONN", "end"}
IN_TIME_S = 20		# no timer in question is longer than 6 s, but some follow one another
TCP = {"echo"}


class Contact:
    """Clients of both ways whose first contact comes to nothing."""

    def __init__(self, t):
        self.t = t
        self.scene = Scene(t, "smcrd", **QUICK)
        self.flows = {way: self.scene.start(way, "echo") for way in WAYS}
        self.daemon = self.scene.daemons[0]
        t.spawn([SMCRCTL, "--socket", self.daemon.control, "trace", "--clc", "--llc"], "trace")		# seen when a case fails
        t.later(self.heal)

    def lose(self, message):
        """Both hosts get no such message; the clients begin, and it has been sent to both."""
        for host in self.scene.hosts.values():
            host.lose(message)
        self.tried = {way: flow.client("try", size=2000) for way, flow in self.flows.items()}
        for side, host in self.scene.hosts.items():
            wait_until(host.lost, f"{side}: a {message} was lost")

    def heal(self):
        for host in self.scene.hosts.values():
            host.lose_nothing()

    def ends(self):
        """How it ended for each client: "echo" or an error."""
        out = {}
        for way, flow in self.flows.items():
            got = flow.wait(self.tried[way])
            self.t.note(f"{way}: {got['how']} after {got['over']:.1f} s; server: {flow.server()['failures']}")
            check(got["over"] < IN_TIME_S, f"{way}: {got}")
            out[way] = got["how"]
        return out

    def next_is_smcr(self):
        d, b = self.daemon, self.scene.hosts["b"]
        wait_until(lambda: not d.connections() and not d.groups(), "smcrd has nothing left", 20)
        wait_until(lambda: not b.groups(), "Linux has nothing left", 20)
        before = self.scene.over_smcr("b")
        for way, flow in self.flows.items():
            got = flow.wait(flow.client("try", size=2000))
            equal(got["how"], "echo", f"{way}: the next connection")
        now = self.scene.over_smcr("b")
        equal({k: now[k] - before[k] for k in ("client 2", "server 2")}, {"client 2": 1, "server 2": 1},
              "connections on SMC-R afterwards")


def lost(message, **want):
    @case(f"no {message} arrives", timeout=60)
    def _(t):
        contact = Contact(t)
        contact.lose(message)
        ends = contact.ends()
        for way in WAYS:
            check(ends[way] in want.get(way, GONE), f"{way}: {ends[way]}")
        contact.heal()
        t.note(f"fallbacks of Linux: {contact.scene.fallbacks('b')}")
        contact.next_is_smcr()


lost("Proposal")
lost("Accept")
lost("Confirm")
lost("RoCE packet", **{"in": TCP, "out": TCP})
lost("CONFIRM LINK reply")
lost("ADD LINK")
lost("ADD LINK reply")


@case("smcrd is killed between two steps", timeout=90)
def _(t):
    contact = Contact(t)
    for message in ("Accept", "RoCE packet", "ADD LINK"):
        contact.lose(message)
        contact.daemon.kill()
        contact.heal()
        t.note(f"without {message}:")
        for way, how in contact.ends().items():
            check(how in GONE, f"{way}, {message}: {how}")
        contact.daemon.expect_dead = False
        contact.daemon.start()
    contact.next_is_smcr()


@case("smcrd stands still before the link is confirmed", timeout=60)
def _(t):
    contact = Contact(t)
    contact.lose("RoCE packet")
    contact.daemon.send_signal(signal.SIGSTOP)
    # Not healed before: the card would repeat smcrd's CONFIRM LINK, and Linux go on.
    wait_until(lambda: len(contact.scene.fallbacks("b")) >= 2, "Linux has given up both", 20)
    t.note(f"fallbacks of Linux: {contact.scene.fallbacks('b')}")
    contact.heal()
    contact.daemon.send_signal(signal.SIGCONT)
    contact.ends()
    contact.next_is_smcr()


main()
