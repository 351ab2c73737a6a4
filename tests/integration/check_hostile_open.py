#!/usr/bin/env python3
"""Hostile peers of both roles with connections that open over a link (doc/open.md)."""
import time
from types import SimpleNamespace

from harness import PATIENCE, check, equal, main, recv_exact, same_bytes, wait_until
from hostile import MIB, SOON, how_it_ends, iw, scene_case, smc

ON = {"smcr": {"open_over_link": True}, "one_worker": "groups and granted elements are each worker's"}
TICKET = 4711
NO_MIDDLE = SimpleNamespace(close=lambda: None)


def still(s, conn):
    """The connection goes on, as everything else of its peer's."""
    s.echoes(conn, 100)


# -- clients --


class Opener:
    """A client with a first connection, and what it was granted."""

    def __init__(self, s, i=1, **kw):
        self.s = s
        c = s.client(s.peer(i, **{"features": smc.OPENS, "elems": 64, **kw}))
        self.first = c.run()
        self.link = self.first.link
        s.keep(self.link)
        self.ticket = c.accept.ext.ticket
        check(self.ticket != 0, "the server gives a ticket")
        self.link.wait_llc(smc.GRANT, timeout=SOON)
        self.granted, self.known = [], 0
        self.more()

    def more(self):
        """Adds what has been granted since, by one GRANT after another; what is left."""
        elems = [e for m in list(self.link.llc_log) if m.type == smc.GRANT for e in m.elems]
        self.granted += elems[self.known:]
        self.known = len(elems)
        return self.granted

    def elem(self):
        """One that was granted, as soon as there is one."""
        return self.link.wait("a granted element", self.more, SOON).pop()

    def message(self, conn, elem, own=None, **lies):
        own = conn.elem() if own is None else own
        return smc.llc_open(**{"granted": elem.token, "ticket": self.ticket, "own": own, **lies})

    def conn_for(self, elem):
        conn = self.link.new_conn(NO_MIDDLE)
        conn.set_remote(elem)
        return conn

    def open(self, own=None, change=None, **lies):
        """own: changes of our element; change: of the bytes."""
        elem = self.elem()
        conn = self.conn_for(elem)
        e = conn.elem()
        for k, v in (own or {}).items():
            setattr(e, k, v)
        msg = bytearray(self.message(conn, elem, e, **lies))
        for at, value in (change or {}).items():
            msg[at] = value
        self.link.send(bytes(msg))
        return conn


@scene_case("a client that opens over its link", **ON)
def _(s):
    c = Opener(s)
    for _ in range(3):
        conn = c.open()
        s.echoes(conn, 5000)
        conn.close(SOON)
    still(s, c.first)
    equal(s.b.counters()["opened_server"], 3, "opened over the link")


def refused(s, c, conn):
    conn.wait_state(smc.ABORT | smc.NOT_OPENED, SOON)
    conn.send_cdc(state=smc.ABORT)
    still(s, c.first)


def ends_link(_s, c, _conn):
    c.link.wait_ended(SOON)


def ignored(s, c, conn):
    still(s, c.first)
    equal(conn.peer_state, 0, "no answer")


def is_opened(s, c, conn):
    s.echoes(conn, 100)
    still(s, c.first)


def first_ends(s, c, conn):
    c.link.wait("the answer", lambda: conn.last_seq, SOON)
    wait_until(lambda: s.b.counters()["elem_conflicts"] == 1, "the end of the connection whose element was taken")


LIES = (
    ("no ticket", {"ticket": 0}, refused),
    ("another ticket", {"ticket": 1}, refused),
    ("a circle", {"hops": 255}, refused),
    ("a token that was not granted", {"granted": 0x7ffffff0}, ignored),
    ("an unknown rkey", {"own": {"rkey": 5}}, ends_link),
    ("an unknown address", {"own": {"vaddr": 4096}}, ends_link),
    ("another size", {"own": {"size_code": 3}}, ends_link),
    ("element 0", {"change": {28: 0}}, ends_link),
    ("size code 16", {"change": {29: 16}}, ends_link),
    ("length 43", {"change": {1: 43}}, ends_link),
    ("a kind of client that no OPEN has", {"change": {31: 6}}, ends_link),
    ("reserved bytes", {"change": {3: 255, 42: 255, 43: 255}}, is_opened),
    ("a client, where none is used", {"change": {31: 1, 41: 5}}, refused),
    ("the element of another connection of its own", {"own": {"idx": 1}}, first_ends),
)


@scene_case("OPENs with one wrong field", **ON)
def _(s):
    for i, (name, lies, expect) in enumerate(LIES):
        s.t.note(name)
        c = Opener(s, 1 + i)
        expect(s, c, c.open(**lies))
        s.witness.alive()
    s.leave()


@scene_case("OPENs for connections that are there, and for those of another peer", **ON)
def _(s):
    a, b = Opener(s, 1), Opener(s, 2)
    elem = a.elem()
    conn = a.conn_for(elem)
    for token in (a.first.remote.token, b.first.remote.token, *(e.token for e in b.granted)):
        a.link.send(a.message(conn, elem, granted=token))
    still(s, a.first)
    still(s, b.first)
    equal(s.b.counters()["opened_server"], 0, "opened")
    # What was tried in vain is good for its owner.
    for _ in range(2):
        s.echoes(b.open(), 100)
    a.link.send(a.message(conn, elem))
    s.echoes(conn, 100)
    a.link.send(a.message(conn, elem))	# repeated
    s.echoes(conn, 100)


@scene_case("CDC messages and data for an element before its OPEN", **ON)
def _(s):
    c = Opener(s)
    elem = c.elem()
    conn = c.conn_for(elem)
    conn.write_at(0, b"early")
    for state in (0, smc.DONE, smc.CLOSED, smc.ABORT):
        c.link.send(smc.Cdc(1, elem.token, (0, 5), state=state).encode())
    still(s, c.first)
    c.link.send(c.message(conn, elem))
    s.echoes(conn, 100)


@scene_case("a client that grants", **ON)
def _(s):
    c = Opener(s)
    conn = c.link.new_conn(NO_MIDDLE)
    c.link.send(smc.llc_grant([conn.elem()]))
    c.link.wait_ended(SOON)


@scene_case("OPEN, then silence, then the end of the link", **ON)
def _(s):
    for i in range(3):
        c = Opener(s, 1 + i)
        conns = [c.open() for _ in range(len(c.granted))]
        for conn in conns[:2]:
            s.echoes(conn, 10)
        c.link.close(reset=i == 1)
    s.leave()


@scene_case("all that is granted, again and again", **ON)
def _(s):
    c = Opener(s)
    end, n = time.monotonic() + 1.5, 0
    while time.monotonic() < end and len(c.link.conns) < 50:
        while c.more() and len(c.link.conns) < 50:
            c.open(left=0)
            n += 1
        time.sleep(0.01)	# raw: its pace
    s.t.note(f"{n} opened, {c.known} elements granted")
    still(s, c.first)
    s.bound(s.b, connections=60)


@scene_case("OPENs at the rate of the link", **ON)
def _(s):
    c = Opener(s)
    elem = c.elem()
    conn = c.conn_for(elem)
    start, sent = time.monotonic(), 0
    while time.monotonic() < start + 1.5:
        with c.link.cond:
            c.link.ep.send(c.message(conn, elem, granted=0x70000000 + sent), iw.SEND_SE)
        sent += 1
    s.t.note(f"{sent / (time.monotonic() - start):.0f} OPENs/s")
    still(s, c.first)
    wait_until(lambda: s.b.counters()["llc_ignored"] >= sent, "all of them are counted")
    s.bound(s.b, rss=4 * MIB, connections=1)


# -- servers --


EVIL = {**ON, "hostile_server": True, "service": {"connect_timeout": f"{PATIENCE:.0f}s"}}


class Granter:
    """A server with a first connection that gives a ticket."""

    def __init__(self, s):
        self.s = s
        s.fresh_server(features=smc.OPENS, elems=64)
        self.app, v = s.proposed()
        v.send_accept(ext=v.peer.ext(mpa_port=s.server.mpa.at[1], token=v.token, ticket=TICKET))
        v.accept_mpa()
        v.read_confirm()
        v.link.server_llc()
        self.first = v.finish()
        self.link = self.first.link
        s.keep(self.link)

    def still(self):
        self.s.echo_from(self.first, self.app, 100)

    def send(self, msg):
        before = self.s.a.counters()["llc_received"]
        self.link.send(msg)
        wait_until(lambda: self.s.a.counters()["llc_received"] > before, "it has arrived")

    def grant(self, cnt=1):
        self.send(smc.llc_grant([self.link.new_conn(NO_MIDDLE).elem() for _ in range(cnt)]))

    def opened(self, data=b"hello"):
        """An application's connection that a opens over the link: (its socket, the Conn here)."""
        seen = sum(m.type == smc.OPEN for m in list(self.link.llc_log))
        app = self.s.app()
        app.sendall(data)
        m = self.link.wait_llc(smc.OPEN, count=seen + 1, timeout=SOON)
        equal(m.ticket, TICKET, "ticket")
        conn = self.link.conns[m.granted]
        conn.set_remote(m.own)
        return app, conn


@scene_case("a server that grants", **EVIL)
def _(s):
    g = Granter(s)
    g.grant(2)
    for _ in range(2):
        app, conn = g.opened()
        same_bytes(conn.recv(5, SOON), b"hello", "first bytes")
        conn.send(b"world", SOON)
        app.settimeout(SOON)
        same_bytes(recv_exact(app, 5), b"world", "answer")
    g.still()
    equal(s.a.counters()["opened_client"], 2, "opened over the link")


@scene_case("refused: a rendezvous brings the same bytes", **EVIL)
def _(s):
    g = Granter(s)
    g.grant(2)
    app, conn = g.opened()
    conn.send_cdc(state=smc.ABORT | smc.NOT_OPENED)
    v = s.next_serving()
    again = v.run()
    same_bytes(again.recv(5, SOON), b"hello", "first bytes")
    s.echo_from(again, app, 100)
    g.still()
    equal(s.a.counters()["not_opened_client"], 1, "refused")


@scene_case("reset before the answer", **EVIL)
def _(s):
    g = Granter(s)
    g.grant()
    app, conn = g.opened()
    conn.send_cdc(state=smc.ABORT)
    equal(how_it_ends(app)[0], "reset", "the client's connection")
    g.still()


@scene_case("refused after the answer: a reset, and no second connection", **EVIL)
def _(s):
    g = Granter(s)
    g.grant()
    app, conn = g.opened()
    conn.send(b"world", SOON)
    app.settimeout(SOON)
    same_bytes(recv_exact(app, 5), b"world", "answer")
    conn.send_cdc(state=smc.ABORT | smc.NOT_OPENED)
    equal(how_it_ends(app)[0], "reset", "the client's connection")
    g.still()


@scene_case("no answer to an OPEN", **EVIL)
def _(s):
    g = Granter(s)
    g.grant(2)
    app, _ = g.opened()
    start = time.monotonic()
    equal(how_it_ends(app)[0], "reset", "the client's connection")
    s.t.note(f"reset after {time.monotonic() - start:.1f} s")
    g.still()
    # Others do not try for a while.
    s.app()
    s.next_serving()


@scene_case("the link ends behind an OPEN with data", **EVIL)
def _(s):
    g = Granter(s)
    g.grant()
    app, _ = g.opened()
    g.link.wait("its first bytes", lambda: g.link.cdc_log, SOON)
    g.link.close(reset=True)
    equal(how_it_ends(app)[0], "reset", "the client's connection")


def wrong(g, **fields):
    e = g.link.new_conn(NO_MIDDLE).elem()
    for k, v in fields.items():
        setattr(e, k, v)
    return e


@scene_case("GRANTs with one wrong field", **EVIL)
def _(s):
    for name, make in (
            ("none", lambda g: smc.llc_grant([], 0)),
            ("three", lambda g: smc.llc_grant([wrong(g), wrong(g)], 3)),
            ("element 0", lambda g: smc.llc_grant([wrong(g, idx=0)])),
            ("token 0", lambda g: smc.llc_grant([wrong(g, token=0)])),
            ("size code 16", lambda g: smc.llc_grant([wrong(g, size_code=16)])),
            ("OPEN from a server", lambda g: smc.llc_open(1, TICKET, wrong(g)))):
        s.t.note(name)
        g = Granter(s)
        g.link.send(make(g))
        g.link.wait_ended(SOON)
        s.witness.alive()
        s.leave()


@scene_case("a GRANT of another size, or of an unknown RMB, opens nothing", **EVIL)
def _(s):
    g = Granter(s)
    for fields in ({"rkey": 5}, {"vaddr": 4096}, {"size_code": 2}):
        g.send(smc.llc_grant([wrong(g, **fields)]))
    app = s.app()
    again = s.next_serving().run()
    s.echo_from(again, app, 100)
    g.still()


@scene_case("a GRANT of the element of another connection", **EVIL)
def _(s):
    g = Granter(s)
    g.send(smc.llc_grant([wrong(g, idx=g.first.idx)]))
    app = s.app()
    app.sendall(b"hello")
    g.link.wait_llc(smc.OPEN, timeout=SOON)
    equal(how_it_ends(g.app)[0], "reset", "the connection that had it")


@scene_case("GRANTs at the rate of the link", **EVIL)
def _(s):
    g = Granter(s)
    msg = smc.llc_grant([g.link.new_conn(NO_MIDDLE).elem() for _ in range(2)])
    before = s.a.counters()["llc_received"]
    start, sent = time.monotonic(), 0
    while time.monotonic() < start + 1.5:
        with g.link.cond:
            g.link.ep.send(msg, iw.SEND_SE)
        sent += 1
    s.t.note(f"{sent / (time.monotonic() - start):.0f} GRANTs/s")
    wait_until(lambda: s.a.counters()["llc_received"] >= before + sent, "all of them have arrived")
    g.still()
    s.bound(s.a, rss=4 * MIB)


if __name__ == "__main__":
    main()
