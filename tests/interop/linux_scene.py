"""
What the tests with a Linux host in Python share: an engine and such a host, a bystander between them that is used before and
after all that happens, and the cases that hold for both roles. SMCRD_SEED=N: with other delays.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "integration")]

import pylinux
import pysmc as smc
from harness import case, check, equal, pattern, same_bytes
from pylinux import ELEM, Card, Host, Linux


class Scene:
    """client: Linux is the client of all connections, the engine their server; else the other way."""

    def __init__(self, t, client, cards=2, engine_cards=None, **settings):
        settings.setdefault("seed", int(os.environ.get("SMCRD_SEED", "1")))
        self.host = Host(t, **settings)
        self.client = client
        self.expected = {}	# counters that may not be 0 in the end
        for nr in range(cards if engine_cards is None else engine_cards):
            Card(self.host, nr + 1, engine=True)
        self.linux = Linux(self.host, cards)
        self.bystander = self.open()
        self.bystander.echo(3000)

    def open(self, **app):
        return self.linux.connect(**app) if self.client else self.linux.accept(**app)

    @property
    def group(self):
        return self.linux.groups[0]

    def look(self):
        """The bystander has noticed nothing."""
        check(not self.group.dead, f"the group lives: {self.host.logs}")
        equal(self.bystander.app.state, "established", f"the bystander ({self.bystander.app.why}); {self.host.logs}")
        self.bystander.echo(70000)

    def settled(self, links):
        """So many links are up at both ends, as many as Linux knows, and the engine waits for nothing."""
        self.host.wait(f"{links} links; {self.host.links()}, {[x.number for x in self.group.active()]}",
                       lambda: sorted(n for n, state, _ in self.host.links() if state == "active")
                       == sorted(x.number for x in self.group.active()) and len(self.group.active()) == links, 20000)

    def ended(self, conn):
        """Both programs are through, and the engine's connection is: the reason."""
        app = conn.app
        self.host.wait(f"the end of data; {app.state}", lambda: app.eof or app.state == "closed")
        if app.state != "closed" and not app.closing:
            app.close()
        self.host.wait(f"the engine's connection ends; {app.state}", lambda: app.state == "closed")
        self.host.wait("the kernel's connection ends", lambda: conn.aborted or conn.closed)
        app.release()
        return app.why

    def closed_well(self, conn):
        equal(self.ended(conn), "closed", "the reason")

    def finish(self):
        self.look()
        self.bystander.close()
        self.host.wait("the bystander ends", lambda: self.bystander.app.state == "closed")
        for name in ("bad_cdc", "bad_llc", "bad_clc", "failover_lost", "elem_conflicts"):
            equal(self.host.counter(name), self.expected.get(name, 0), name)
        self.host.end()


def lost_packets(t, client, **settings):
    """No RoCE packet arrives: the peer is held off for all its ports, from the release of the connection that failed on."""
    host = Host(t, lossy=1, **settings)
    Card(host, 1, engine=True)
    linux = Linux(host)
    contact = linux.lost_client if client else linux.lost_server
    took = [contact((port,)) for port in range(1, 10)]
    check(min(took[:2]) > 2900 and max(took[2:]) < 10, f"two ports show it, the others do not stall: {took}")
    check(contact((1, 62)) > 2900, "a peer with this id at another address is not held off")
    host.idle(5000)	# the hold-off is over
    stall, port = contact((10,)), 11
    check(stall > 2900, f"tried again: {stall}")
    released = host.now
    while host.now < released + 1990000:	# twice the first one
        check((stall := contact((port,))) < 10, f"{(host.now - released) // 1000} ms behind the release: {stall}, {host.logs}")
        host.idle(50)
        port += 1
    host.idle(100)
    check(contact((11,)) > 2900, "tried again")
    host.end()


def linux_case(client, name, cards=2, **settings):
    """@case for a function of a Scene, which is finished behind it."""
    def register(fn):
        @case(name)
        def _(t):
            s = Scene(t, client, cards, **settings)
            try:
                fn(s)
                s.finish()
            except Exception:
                t.note("\n".join(s.host.logs))
                raise
        return fn
    return register


# -- honest --


def data(s):
    """Both ways, over many wraps, with either reader slow."""
    a = s.open(echo=False)
    a.app.reading = False
    sent = pattern(ELEM, 1)
    a.send(sent)
    s.host.idle(50)
    equal(a.sent - a.acked, ELEM, "bytes that the slow program holds up")
    a.app.reading = True
    a.app.work()
    s.host.wait("all bytes", lambda: len(a.app.got) == ELEM)
    same_bytes(a.app.got, sent, "to the engine")
    for n in range(6):
        out = pattern(150000, n)
        a.app.put(out)
        s.host.idle(20)
        check(a.to_rcv > ELEM // 3, f"{a.to_rcv} bytes fill the window")
        same_bytes(a.recv(len(out)), out, "to Linux")
    s.bystander.echo(500000)
    a.close()
    s.closed_well(a)


def urgent(s):
    a = s.open(echo=False)
    a.send(b"0123456789")
    a.send(b"!", smc.URGENT_PENDING | smc.URGENT_PRESENT)
    a.send(b"abcde")
    s.host.wait("data", lambda: len(a.app.got) == 16)
    equal((a.app.got, a.app.urgent), (b"0123456789!abcde", [10]), "what comes, and where it was urgent")
    a.app.put(b"vwxyz?", urgent=True)
    s.host.wait("data", lambda: a.to_rcv == 6)
    equal(a.urgent, 6, "behind the urgent byte")
    same_bytes(a.recv(6), b"vwxyz?", "with an urgent byte")
    a.app.put(b"more")
    same_bytes(a.recv(4), b"more", "behind it")
    a.close()


def ends(s):
    """Half close, close and abort, by either side first."""
    a = s.open(echo=False)	# Linux is done; the engine goes on
    a.send(pattern(5000))
    a.shutdown()
    s.host.wait("the end of data", lambda: a.app.eof)
    s.host.idle(5000)
    out = pattern(100000)
    a.app.put(out)
    same_bytes(a.recv(len(out)), out, "after Linux' D")
    a.app.finish()
    equal(a.recv(1), b"", "the end")
    a.close()
    s.closed_well(a)
    b = s.open(echo=False)	# the engine is done; Linux goes on
    b.app.finish()
    equal(b.recv(1), b"", "the end")
    s.host.idle(5000)
    b.send(out)
    s.host.wait("all", lambda: len(b.app.got) == len(out))
    b.close()
    s.host.wait("end", lambda: b.app.eof)
    b.app.close()
    s.closed_well(b)
    c = s.open()		# Linux closes
    c.echo(10)
    c.close()
    s.closed_well(c)
    d = s.open(echo=False)	# the engine closes
    d.app.close()
    s.host.wait("C", lambda: d.peer_state & smc.CLOSED)
    d.close()
    s.closed_well(d)
    e = s.open()		# Linux aborts
    e.abort()
    s.host.wait("end", lambda: e.app.state == "closed")
    check("abort" in e.app.why, f"the reason: {e.app.why}")
    e.app.release()
    f = s.open()		# the engine does
    f.app.abort()
    s.host.wait("A", lambda: f.aborted)
    f.close()
    s.host.wait("end", lambda: f.app.state == "closed")
    f.app.release()


def many(s):
    """A buffer and its key for each of them, and again for those that come later, which get the buffers of those that left."""
    conns = [s.open() for _ in range(60)]
    for n, c in enumerate(conns):
        c.echo(100 + n)
    for c in conns:
        c.close()
        s.closed_well(c)
    s.host.idle(100)
    made = len(s.group.rmbs)
    for n in range(40):
        c = s.open()
        c.echo(4000 + n)
        c.close()
        s.closed_well(c)
    equal(len(s.group.rmbs), made, "buffers of Linux: the old ones")


def second_link(s):
    s.settled(2)
    conns = [s.open() for _ in range(6)]
    equal(len({c.link for c in conns}), 2, "links in use by Linux")
    for c in conns:
        c.echo(100000)
    equal(s.host.counter("links_down"), 0, "links lost")
    for c in conns:
        c.close()
        s.closed_well(c)


def one_card(s):
    s.settled(1)
    check(not s.group.waited, "Linux waits for no ADD LINK")
    s.open().echo(20000)


# -- links are lost --


WAYS = ("reset", "late", "silent", "local")


def lose(s, link, way):
    """The link is lost; how. local: at Linux, which destroys its queue pair and then says so."""
    if way == "local":
        s.group.link_down(link)
        return
    s.host.cmd("break", link.name, way)
    if way == "silent":
        # Only a sender notices it. Linux is first: its program sends.
        link.send(smc.llc_test_link(bytes(16)))
    s.host.wait("Linux notices", lambda: link.dead)


def in_state(s, state):
    """A connection, what happens at the moment before its link is lost, and what has to come about afterwards."""
    c = s.open(echo=state in ("active", "in flight to the engine"))
    out = pattern(100000, 5)

    def nothing():
        pass

    def to_linux():
        c.app.put(out)
        same_bytes(c.recv(len(out)), out, "to Linux")
        c.app.finish()

    def to_engine():
        c.send(out)
        s.host.wait("all", lambda: len(c.app.got) == len(out))
        same_bytes(c.app.got, out, "to the engine")
        c.close()

    if state == "active":
        return c, nothing, lambda: (c.echo(100000), c.close())
    if state == "in flight to the engine":
        return c, lambda: c.send(out[:3000]), lambda: (same_bytes(c.recv(3000), out[:3000], "echo"), c.close())
    if state == "in flight to Linux":
        c.app.put(b"-")
        equal(c.recv(1), b"-", "the first byte")
        return c, lambda: (c.app.put(out), s.host.idle_us(3)), lambda: (same_bytes(c.recv(len(out)), out, "to Linux"), c.close())
    if state == "D by Linux":
        c.shutdown()
        s.host.wait("D", lambda: c.app.eof)
        s.host.idle(5)
        return c, nothing, lambda: (to_linux(), c.close())
    if state == "D by the engine":
        c.app.finish()
        equal(c.recv(1), b"", "the end")
        return c, nothing, to_engine
    if state == "D by both":
        c.shutdown()
        c.app.finish()
        s.host.wait("both", lambda: c.app.eof and c.peer_state & smc.DONE)
        return c, nothing, c.close
    if state == "C by Linux":
        c.close()
        s.host.wait("C", lambda: c.app.eof)
        s.host.idle(5)
        return c, nothing, nothing
    if state == "C by the engine":
        c.app.close()
        s.host.wait("C", lambda: c.peer_state & smc.CLOSED)
        return c, nothing, c.close
    c.app.abort()
    s.host.wait("A", lambda: c.aborted)
    return c, nothing, c.close


STATES = ("active", "in flight to the engine", "in flight to Linux", "D by Linux", "D by the engine", "D by both", "C by Linux",
          "C by the engine", "A by the engine")


def failover(s, way):
    """Connections in every state lose their link."""
    s.settled(2)
    for lost in range(2):
        conns = [(state, *in_state(s, state)) for state in STATES for _ in range(2)]
        gone = s.group.active()[lost]
        for _, c, before, _ in conns:
            if c.link is gone:
                before()
        equal({state for state, c, _, _ in conns if c.link is gone}, set(STATES), "states on the link")
        lose(s, gone, way)
        start = s.host.now
        for state, c, before, rest in conns:
            if not c.moves:
                before()
            rest()
            equal(s.ended(c), "reset by the application" if state[0] == "A" else "closed", f"how {state} ends")
        s.look()
        # Linux says "orderly", and "lost path": there is nothing to be drained, nor a card's time limit to be waited for.
        if way == "local":
            check(s.host.now - start < 500000, f"after {(s.host.now - start) // 1000} ms all have gone on and ended")
        if s.client:
            s.settled(2)	# the engine makes a new one
        else:
            s.settled(1)
            s.host.wait("a new link", s.group.add_link)
            s.settled(2)


def lost_when_closing(s):
    """What was under way when a half closed connection moved is not said again: it may not go on as if it had come."""
    s.settled(2)
    gone = next(x for x in s.group.active() if x is not s.bystander.link)
    conns = [in_state(s, "D by the engine")[0] for _ in range(8)]
    lossy = [c for c in conns if c.link is gone]
    for c in conns[4:]:
        c.send(b"before")	# of the others nothing has come yet
    s.host.idle(5)
    for c in lossy:
        c.send(b"lost")
    s.host.cmd("break", gone.name, "reset")
    s.group.link_down(gone)
    for c in conns:
        c.send(b"after")
    for c in conns:
        if c in lossy:
            s.host.wait("a reset", lambda c=c: c.app.state == "closed")
            s.host.idle(5)
            equal((c.app.got, c.aborted), (b"before" if c in conns[4:] else b"", True), "no byte behind the gap, and A")
        else:
            s.host.wait("data", lambda c=c: c.app.got.endswith(b"after"))
    equal(s.host.counter("failover_lost"), len(lossy), "gaps")
    s.expected["failover_lost"] = s.expected["bad_cdc"] = len(lossy)


def wrap_0(s):
    """What is said again after a failover is not taken for the wrap after the 65535th: Linux would count bytes that are not
    there."""
    s.settled(2)
    c = s.open(echo=False)
    out = pattern(90000, 3)
    c.app.put(out[:40000])
    same_bytes(c.recv(40000), out[:40000], "to Linux")
    s.host.idle(5)
    for nr in (1, 2):
        s.host.cmd("withhold", f"e{nr}", "on")
    c.app.put(out[40000:])
    s.host.wait("all of it", lambda: c.to_rcv == 50000)
    equal(c.prod[0], 1, "wrap")
    gone = c.link
    s.host.cmd("break", gone.name, "reset")
    s.host.wait("Linux notices", lambda: gone.dead)
    for nr in (1, 2):
        s.host.cmd("withhold", f"e{nr}", "off")
    s.host.idle(50)
    equal(c.to_rcv, 50000, "bytes that Linux has counted")
    same_bytes(c.recv(50000), out[40000:], "to Linux")
    c.close()
    s.closed_well(c)


# -- quirks --


def late_abort(s):
    """The answer to A comes when the program closes: much later than anybody waits for."""
    conns = [s.open() for _ in range(5)]
    for c in conns:
        c.app.abort()
    s.host.wait("A", lambda: all(c.aborted for c in conns))
    s.host.idle(60000)
    equal(s.host.counter("elems_quarantined"), 5, "elements that Linux may still write to")
    for c in conns:
        equal(c.app.state, "closed", "the engine's user hears of it at once")
        c.close()
    s.host.idle(100)
    equal(s.host.counter("elems_let_go"), 5, "elements that it has released")
    equal(s.host.counter("cdc_unknown"), 0, "messages that say nothing to the engine")


def unanswered(s, says=True):
    """Both ends ask for the deletion of a link that both have lost, and Linux drops what comes across its own; or
    it has other things to do, and does not even say so."""
    s.settled(2)
    c = s.open()
    s.linux.deaf_to = lambda m: m.type == smc.DELETE_LINK
    gone = next(x for x in s.group.active() if x is not s.bystander.link)
    for conn in list(s.group.conns.values()):
        if conn.link is gone:
            conn.move(s.bystander.link)
    s.host.idle(5)
    if says:
        lose(s, gone, "reset")
    else:
        s.host.cmd("break", gone.name, "reset")
        s.group.link_down(gone, tell=False)
    s.host.idle(60000)
    s.linux.deaf_to = None
    c.echo(50000)
    s.look()
    check(gone.number not in [n for n, _, _ in s.host.links()], f"the engine has given up on the link: {s.host.links()}")
    c.close()


def shrinking(s):
    """ADD LINK CONTINUATION counts connections that have no buffer yet: fewer keys come than were announced."""
    s.settled(2)
    s.linux.uncounted = 2
    for n in range(3):
        gone = next(x for x in s.group.active() if x is not s.bystander.link)
        extra = [s.open() for _ in range(n)]
        lose(s, gone, "reset")
        if s.client:
            s.settled(2)
        else:
            s.settled(1)
            s.host.wait("a new link", s.group.add_link)
            s.settled(2)
        for c in (*extra, s.bystander):
            c.move(next(x for x in s.group.active() if x is not c.link))
            c.echo(1000)
    equal(s.host.counter("links_down"), 3, "links that were lost: no more than were cut")


def full(s):
    """Linux has no room for a key of the engine's: that connection is TCP, the others go on."""
    a = s.open()
    s.linux.full = True
    for _ in range(3):
        try:
            s.open()
            check(False, "declined")
        except smc.Declined:
            pass
        a.echo(1000)
        s.look()
    s.linux.full = False
    s.host.idle(100)
    s.open().echo(1000)


def keepalive(s):
    """Both ends ask, nothing else goes on for an hour."""
    s.host.idle(3600000)
    check(s.group.llc_count(smc.TEST_LINK, False) > 2, "TEST LINK")
    equal(s.host.counter("links_down"), 0, "links lost")


def unloaded(s):
    """rmmod smc: DELETE LINK for all; then a new group."""
    for n in range(2):
        a = s.open()
        group = a.group
        group.active()[0].send(smc.llc_delete_link(all=True, reason=smc.PROGRAM))
        if s.client:
            s.host.wait("the server's word", lambda: group.dead, 2000)
        else:
            s.host.idle(1)
            group.terminate()
        s.host.wait("a reset", lambda: a.app.state == "closed")
        s.host.wait("no group", lambda: not s.host.groups())
        a.app.release()
        s.bystander.app.release()
        s.linux.groups.clear()
        s.bystander = s.open()
        s.look()


def idle_group(s):
    """The engine ends an unused group, in order."""
    s.bystander.close()
    s.closed_well(s.bystander)
    group = s.group
    s.host.idle(700000)
    if s.client:
        check(group.dead, "DELETE LINK for all from the server")
    else:
        s.host.wait("the client's word", lambda: group.llc_count(smc.DELETE_LINK, False), 5000)
        group.terminate()
    s.host.wait("no group", lambda: not s.host.groups())
    s.linux.groups.clear()
    s.bystander = s.open()


def declines(s):
    """No device at Linux, as in e1 and e2: data go by TCP."""
    app = pylinux.App(s.host, "server" if s.client else "client")
    if not s.client:
        app.clc_read()
    s.linux.decline(app, 0x03030000)
    s.host.wait("fallback", lambda: app.state == "fallback")
    equal(app.why.split()[-1], "03030000", "the peer's reason")
    app.release()


def both_roles(client):
    """Cases that hold whichever side Linux is on."""
    two = {"cards": 2}
    one = {"cards": 1}
    for name, fn, settings in (
            ("data both ways, over many wraps, slow readers", data, one),
            ("an urgent byte in each direction", urgent, one),
            ("half close, close and abort, by either side", ends, one),
            ("60 connections at once, then 40 in sequence: buffers are reused", many, two),
            ("two links, connections on both", second_link, two),
            ("one card: Linux gets ADD LINK at once", one_card, one),
            ("data lost as a half closed connection moves", lost_when_closing, two),
            ("a repetition behind wrap 0", wrap_0, {"cards": 2, "credit_bytes": 8192}),
            ("the answer to A comes late", late_abort, one),
            ("DELETE LINK across DELETE LINK, without an answer", unanswered, two),
            ("DELETE LINK without an answer", lambda s: unanswered(s, says=False), two),
            ("ADD LINK CONTINUATION with a count that shrinks", shrinking, two),
            ("CONFIRM RKEY refused by Linux", full, {"cards": 2, "rmb_elems": 1}),
            ("nothing happens for an hour", keepalive, two),
            ("the module is unloaded", unloaded, two),
            ("an idle group ends", idle_group, two),
            ("Linux declines", declines, one)):
        linux_case(client, name, **settings)(fn)
    for retry_ms in (300, 1500, 4000, 10000):
        case(f"no RoCE packet arrives, and the card reports it after {retry_ms} ms")(
            lambda t, retry_ms=retry_ms: lost_packets(t, client, retry_ms=retry_ms))
    for way in WAYS:
        linux_case(client, f"a link is lost ({way}) under connections in every state", **two)(
            lambda s, way=way: failover(s, way))
