#!/usr/bin/env python3
# kernel: linux-image-6.12-amd64
# cards: 2
# takes: 160 s
# load: 60
"""
First contact between smcrd and Linux's own SMC, interrupted at each step, with smcrd as client and as server at the same time: a
message does not arrive and is repeated without success; smcrd is killed then, or stands still, the program on Linux is
killed, or the TCP connection reset. The programs get TCP or a reset, in time, what arrives is right, nothing is left of it, and the
next connection is on SMC-R. And Linux lies, in LLC of version 2 at any time.
"""
import random
import signal

from afsmc import UEID, Scene, address
from harness import SANITIZERS, SMCRCTL, Daemon, case, check, equal, hostport, main, wait_until
from liar import Liar

WAYS = ("in", "out")
# A link that is lost is missed soon, which by default takes TEST LINK 30 s, at both ends; a round is not held off by those before it.
QUICK = {"links": 2, "testlink_s": 2, "test_link_interval": "1s", "test_link_timeout": "1s", "clc_timeout": "2s", "hold_off": "10ms",
         "hold_off_max": "1s"}
GONE = {"ECONNRESET", "ECONNABORTED", "ETIMEDOUT", "EPIPE", "ENOTCONN", "end"}
IN_TIME_S = 20		# no timer in question is longer than 6 s, but some follow one another
TCP = {"echo"}
SMCR = {"in": "echo", "out": "echo"}, {"client 2": 1, "server 2": 1}
LIAR_ROUNDS, LIAR_IN_TIME_S = 8, 60	# timers of ADD LINK and DELETE LINK as well


class Contact:
    """Clients of both ways whose first contact comes to nothing."""

    def __init__(self, t, **smcr):
        self.t = t
        self.scene = Scene(t, "smcrd", **QUICK, **smcr)
        self.flows = {way: self.scene.start(way, "echo", service={"connect_timeout": "4s"}) for way in WAYS}
        self.daemon = self.scene.daemons[0]
        self.port, self.out = 0, None		# the server that is killed, and where its clients connect
        t.spawn([SMCRCTL, "--socket", self.daemon.control, "trace", "--clc", "--llc"], "trace")		# seen when a case fails
        t.later(self.heal)

    def lose(self, message):
        """Both hosts get no such message."""
        for host in self.scene.hosts.values():
            host.lose(message)

    def begin(self):
        self.tried = {way: flow.client("try", size=2000) for way, flow in self.flows.items()}

    def stop_at(self, message):
        """The clients begin, and come so far."""
        self.lose(message)
        self.begin()
        self.has_lost(message)

    def has_lost(self, message):
        for side, host in self.scene.hosts.items():
            wait_until(host.lost, f"{side}: a {message} was lost")

    def heal(self):
        for host in self.scene.hosts.values():
            host.lose_nothing()

    def ends(self, when, in_time_s=IN_TIME_S):
        """How it ended for each client: "echo" or an error."""
        out = {}
        for way, flow in self.flows.items():
            got = flow.wait(self.tried[way])
            self.t.note(f"{when}, {way}: {got['how']} after {got['over']:.1f} s")
            check(got["over"] < in_time_s, f"{when}, {way}: {got}")
            out[way] = got["how"]
        return out

    def all_reset(self, when):
        for way, how in self.ends(when).items():
            check(how in GONE, f"{when}, {way}: {how}")

    def nothing_left(self):
        d, b = self.daemon, self.scene.hosts["b"]
        wait_until(lambda: not d.connections() and not d.groups(), "smcrd has nothing left", 20)
        wait_until(lambda: not b.groups(), "Linux has nothing left", 20)

    def next_ends(self, in_time_s):
        """How the next ones end, and how many Linux had on SMC-R."""
        before = self.scene.over_smcr("b")
        self.begin()
        ends = self.ends("the next connection", in_time_s)
        now = self.scene.over_smcr("b")
        return ends, {k: now[k] - before[k] for k in ("client 2", "server 2")}

    def next_is_smcr(self):
        self.nothing_left()
        equal(self.next_ends(IN_TIME_S), SMCR, "the next connection")


def lost(contact, messages, **want):
    for message in messages:
        contact.stop_at(message)
        ends = contact.ends(message)
        for way in WAYS:
            check(ends[way] in want.get(message, GONE), f"{message}, {way}: {ends[way]}")
        contact.heal()
        contact.nothing_left()


def handshakes(contact):
    """The option in the TCP handshake: lost and sent again, lost for ever, removed."""
    host = contact.scene.hosts["b"]
    both_echo = {"in": "echo", "out": "echo"}
    counts = host.counts()
    for message in ("SYN", "SYN/ACK"):
        contact.stop_at(message)
        contact.heal()
        equal(contact.ends(f"one {message} lost"), both_echo, f"one {message} lost")
    now = host.counts()
    equal([now[k] - counts[k] for k in ("client 2", "server 2")], [2, 2], "connections on SMC-R")
    # A middlebox that drops a SYN with the option. One without passes, but neither end tries that.
    host.retry_syns(1)
    contact.t.later(lambda: host.retry_syns(6))
    contact.stop_at("SYN")
    flow = contact.flows["in"]
    equal(flow.wait(flow.client("try", kind="plain", size=2000))["how"], "echo", "a plain client")
    contact.all_reset("all SYNs lost")
    contact.heal()
    # One that takes it out, of both or of the answer alone.
    for message, want in (("SYN", TCP), ("SYN/ACK", GONE)):
        for end in contact.scene.hosts.values():
            end.strip(message)
        contact.begin()
        for way, how in contact.ends(f"no option in the {message}").items():
            check(how in want, f"no option in the {message}, {way}: {how}")
        contact.heal()
    fallbacks = contact.scene.fallbacks("b")
    contact.t.note(f"fallbacks of Linux: {fallbacks}")
    check({"03010000 client", "03010000 server"} <= set(fallbacks), f"Linux had no option: {fallbacks}")


@case("a CLC message, the SYN or its option never arrives", timeout=120)
def _(t):
    contact = Contact(t)
    lost(contact, ("Proposal", "Accept", "Confirm"))
    handshakes(contact)


@case("an LLC message never arrives", timeout=120)
def _(t):
    contact = Contact(t)
    lost(contact, ("RoCE packet", "CONFIRM LINK reply", "ADD LINK", "ADD LINK reply"), **{"RoCE packet": TCP})
    t.note(f"fallbacks of Linux: {contact.scene.fallbacks('b')}")
    contact.next_is_smcr()


def kill_the_program(contact, message):
    """A client and a server of its own on Linux."""
    scene = contact.scene
    here, there = scene.programs["a"], scene.programs["b"]
    server, port = there.mortal("smc", address("b"), contact.port, True)
    if not contact.port:
        contact.port, contact.out = port, scene.gateway("out", port)
    contact.lose(message)
    client, _ = there.mortal("smc", *contact.flows["in"].at)
    tried = here.client("plain", *contact.out, "try", {"size": 2000})
    contact.has_lost(message)
    there.kill(client)
    there.kill(server)
    got = wait_until(lambda: here.done(tried), "the client has ended", IN_TIME_S)["ok"]["result"]
    contact.heal()
    contact.t.note(f"{message}, out: {got['how']} after {got['over']:.1f} s")
    check(got["how"] in GONE, f"{message}, out: {got}")


def reset_the_middle(contact, message, side):
    contact.stop_at(message)
    for flow in contact.flows.values():
        contact.scene.hosts[side].reset(flow.middle)
    contact.heal()
    contact.all_reset(f"{message}, by {side}")


@case("the program on Linux is killed, or the TCP connection reset, between two steps", timeout=150)
def _(t):
    contact = Contact(t)
    for message in ("Accept", "RoCE packet", "ADD LINK"):
        kill_the_program(contact, message)
        contact.nothing_left()
    for message, side in (("Proposal", "a"), ("Accept", "b"), ("Confirm", "a"), ("ADD LINK", "b")):
        reset_the_middle(contact, message, side)
        contact.nothing_left()
    contact.next_is_smcr()


@case("Linux is at another first contact for longer than the timeout of a Confirm", timeout=60)
def _(t):
    scene = Scene(t, "smcrd", clc_timeout="1s")
    scene.until("over", False)
    flow = scene.start("in", "echo")
    busy = flow.client("busy", count=1, size=100, until="over")
    wait_until(lambda: len(flow.rounds()) == 1 and min(flow.rounds()) > 1, "bytes are under way")
    # What is to take long is with another daemon, as this one has a group.
    at = (address("a"), t.port())
    Daemon(t, "other", {"log_level": "info", "smcr": {"ueids": [UEID]}, "devices": scene.devices,
                        "egress": [{"name": "other", "listen": hostport(*at), "to": hostport(t.addr, flow.server_port),
                                    "peer": "linux"}]})
    host, programs = scene.hosts["b"], scene.programs["b"]
    t.later(host.lose_nothing)
    host.lose("CONFIRM LINK")
    other = programs.client("smc", *at, "try", {"size": 2000})
    wait_until(host.lost, "a CONFIRM LINK was lost")
    waits = flow.client("try", size=2000)
    for what, got in (("that one", wait_until(lambda: programs.done(other), "the other")["ok"]["result"]), ("the waiter", flow.wait(waits))):
        t.note(f"{what}: {got['how']} after {got['over']:.1f} s")
        equal(got["how"], "echo", what)
    check(got["over"] > 1.2, "it took longer than a Confirm is waited for")
    scene.until("over", True)
    equal(flow.wait(busy), ["done"], "how the connection before ended")
    equal(scene.over_smcr("b")["client 2"], 2, "connections on SMC-R")


@case("smcrd is killed or stopped between two steps", timeout=120)
def _(t):
    contact = Contact(t)
    d, fallbacks = contact.daemon, contact.scene.fallbacks
    for message in ("Accept", "RoCE packet", "ADD LINK"):
        contact.stop_at(message)
        d.kill()
        contact.heal()
        contact.all_reset(f"{message}, killed")
        d.expect_dead = False
        d.start()
    contact.nothing_left()
    before = sum(fallbacks("b").values())
    contact.stop_at("RoCE packet")
    d.send_signal(signal.SIGSTOP)
    # Not healed before: the card would repeat smcrd's CONFIRM LINK, and Linux go on.
    wait_until(lambda: sum(fallbacks("b").values()) >= before + 2, "Linux has given up both", 20)
    t.note(f"fallbacks of Linux: {fallbacks('b')}")
    contact.heal()
    d.send_signal(signal.SIGCONT)
    contact.ends("RoCE packet, stands still")
    contact.next_is_smcr()


@case("Linux lies on its links of version 2: a plain client goes on, nothing is left, SMC-R goes on", timeout=300)
def _(t):
    contact = Contact(t, last_link_timeout="2s")
    d, flow = contact.daemon, contact.flows["in"]
    seed = random.randrange(1 << 31)
    t.note(f"seed {seed}")
    liar = Liar(t, contact.scene.hosts["a"], seed)
    contact.scene.until("over", False)
    bystander = flow.client("busy", kind="plain", count=1, size=100, until="over")
    wait_until(lambda: min(flow.rounds(), default=0) > 1, "the plain client has had answers")
    resident = d.rss()
    liar.lies = True
    for n in range(LIAR_ROUNDS):
        contact.begin()
        for way, how in contact.ends(f"round {n}", LIAR_IN_TIME_S).items():
            check(how in GONE | TCP | {"EPROTO"}, f"round {n}, {way}: {how}")
        before = flow.rounds()[0]
        wait_until(lambda before=before: flow.rounds()[0] > before, "the plain client has an answer")
    liar.lies = False
    liar.end()
    contact.scene.until("over", True)
    equal(flow.wait(bystander), ["done"], "the plain client")
    c = d.counters()
    t.note(f"lies: {dict(liar.told)}; counters: {({k: n for k, n in c.items() if n})}")
    check(c["bad_llc"] > 0, "the daemon has found wrong messages")
    contact.nothing_left()
    # Linux may need a while, of which smcrd is not the cause.
    wait_until(lambda: contact.next_ends(LIAR_IN_TIME_S) == SMCR, "the next connection is on SMC-R", 60)
    contact.nothing_left()
    grown = d.rss() - resident
    check(SANITIZERS or grown < 16 << 20, f"memory grows by {grown} bytes")


main()
