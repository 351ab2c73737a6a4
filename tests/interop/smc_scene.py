"""
What the tests of smcrd against a Python peer share: a pair of daemons with short timers, a witness connection through
both that is used all the time, and a strange peer beside it. After each scenario everything of the stranger has to be
gone from the daemons, and the witness never noticed.
"""
import os
import select
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "integration")]

import pyiwarp as iw
import pysmc as smc
from harness import (PATIENCE, Daemon, Failure, case, check, connect_to, equal, hostport, in_thread, listener,
                     pattern, recv_exact, same_bytes, wait_until)

MS = int(300 * PATIENCE)	# what the daemons wait for an answer
TIMERS = {
    "clc_timeout": f"{MS}ms", "llc_timeout": f"{MS}ms", "confirm_link_timeout": f"{MS}ms",
    "add_link_timeout": f"{MS}ms", "close_timeout": f"{MS}ms", "abort_timeout": f"{MS}ms", "fin_grace": "100ms",
    "hold_off": "10ms", "hold_off_max": "1s",
    # The test is no answer at all; an answer delayed by a busy machine is in time.
    "test_link_interval": "2s", "test_link_timeout": f"{5 * MS}ms",
    "last_link_timeout": f"{max(1000, int(250 * PATIENCE))}ms",	# a busy machine stands still for a second
}
SOON = 6 * PATIENCE		# the longest that anything may take


def how_it_ends(sock, timeout=SOON):
    """"closed" or "reset" and the bytes before it."""
    data, end = b"", time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([sock], [], [], left)[0]:
            raise Failure(f"the connection did not end within {timeout:.0f} s; {data!r} came")
        try:
            got = sock.recv(4096)
        except ConnectionError:
            return "reset", data
        if not got:
            return "closed", data
        data += got


class EchoServer:
    """Sends back what comes; notes how each connection ended."""

    def __init__(self, t):
        self.sock = listener(t)
        self.at = self.sock.getsockname()[:2]
        self.ends = []
        self.accepted = 0
        self.sock.settimeout(None)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._echo, args=(s,), daemon=True).start()

    def _echo(self, s):
        with s:
            try:
                while data := s.recv(65536):
                    s.sendall(data)
                self.ends.append("closed")
            except OSError:
                self.ends.append("reset")


class Witness:
    """An echo connection that is used all the time from a thread of its own."""

    def __init__(self, t, sock):
        self.sock = sock
        self.turns, self.longest = 0, 0.0
        self.stop = threading.Event()
        t.later(self.stop.set)
        self.task = in_thread(self._work)

    def _work(self):
        while not self.stop.is_set():
            data = pattern(300, self.turns)
            start = time.monotonic()
            self.sock.sendall(data)
            same_bytes(recv_exact(self.sock, len(data)), data, f"witness' echo {self.turns}")
            self.longest = max(self.longest, time.monotonic() - start)
            self.turns += 1
            time.sleep(0.02)	# raw: the witness' pace

    def check(self):
        if not self.task.is_alive():
            self.task.result()
        before = self.turns
        wait_until(lambda: self.turns > before or not self.task.is_alive(), "the witness goes on")
        if not self.task.is_alive():
            self.task.result()

    def finish(self):
        self.stop.set()
        self.task.result()
        self.sock.close()	# a daemon that still has connections takes its time to end


def decline_on(sock, diag=None):
    """The Decline that comes next."""
    try:
        m = smc.clc_read(sock, SOON)
    except smc.Declined as e:
        if diag is not None:
            equal(f"{e.diag:#010x}", f"{diag:#010x}", "diagnosis")
        return e
    raise Failure(f"{m} for a Decline")


def declined_back(sock):
    """Two smcrd answer a Decline of first contact, once both may decline, so that what comes first is certain."""
    decline_on(sock, smc.PEER_DECLINED)


def all_correct(s, correct, mpa_kind):
    """What a correct client, or a correct server, may be like."""
    for name, kw in (("plain", {}), ("RFC 7609 cursors with eye catchers", {"eye_catcher": True}),
                     ("few receives", {"recv_depth": 4}), ("large elements", {"size_code": 3, "elems": 3})):
        s.run(name, correct, kw)
    for markers in (False, True):
        for crc in (False, True):
            for rtr in ("send", "write", "read"):
                s.run(f"MPA: markers {markers}, CRC {crc}, RTR {rtr}", mpa_kind, markers, crc, rtr)


def sends(*msgs):
    return lambda c: [c.link.send(m) for m in msgs]


def lie(**over):
    """Sends a CDC message with these fields, or what they are of the connection."""
    return lambda c: c.send_cdc(**{k: v(c) if callable(v) else v for k, v in over.items()})


class Strangers:
    """Strange clients of a daemon at self.smc_at, and a strange server, self.server, that app() comes to through a daemon. A
    scene has peer(), app(), keep(link), and self.open: what is theirs and gets closed."""

    def client(self, peer=None, link=None, **kw):
        c = smc.Client(peer or self.peer(), self.smc_at, link, **kw)
        self.open.append(c)
        return c

    def connected(self, peer=None, link=None):
        """A correct connection to the daemon: a Conn."""
        conn = self.client(peer, link).run()
        self.keep(conn.link)
        return conn

    def serving(self):
        """(application's socket, the Serving at the strange server's side of the daemon's connection)."""
        s = self.app()
        return s, self.next_serving()

    def proposed(self):
        """serving(), with the Proposal read."""
        s, v = self.serving()
        v.read_proposal()
        return s, v

    def next_serving(self):
        v = self.server.accept(SOON)
        self.open.append(v)
        return v

    def served(self, rmb=None):
        """A correct connection: (application's socket, Conn). rmb: of the server, if not that of first contact."""
        s, v = self.serving()
        conn = v.run(rmb)
        self.keep(conn.link)
        return s, conn

    def served_over_two(self, lefts=(1,), **confirm):
        """The group's first connection, with a second link: (application's socket, Conn, second link)."""
        s, v = self.proposed()
        v.to_confirm()
        v.link.number = 1
        v.link.send(v.link.confirm_link_msg(False, **confirm))
        v.link.check_confirm_link(v.link.next_llc(smc.CONFIRM_LINK))
        second = v.link.server_second(v, lefts)
        self.keep(second)
        conn = v.finish()
        self.keep(conn.link)
        second.start()
        return s, conn, second

    def fresh_server(self, **kw):
        """The strange server forgets its group and has a new identity."""
        self.server.peer = self.peer(**kw)
        self.server.link = None


class Scene(Strangers):
    """witness client -> a (ingress "good") == SMC-R == b (egress "good") -> echo server. A strange client talks to b
    at self.smc_at; a strange server is where a's ingress "evil" leads, with its clients at self.evil_at."""

    def __init__(self, t, smcr=None, device=None, service=None):
        self.t = t
        self.echo = EchoServer(t)
        self.smc_at, good_at, self.evil_at = ((t.addr, t.port()) for _ in range(3))
        self.server = smc.Server(smc.Peer(t.addr))
        t.later(self.server.close)
        common = {
            "log_level": "debug",
            "smcr": {**TIMERS, **(smcr or {})},
            "devices": [{"type": "siw", "address": t.addr, "connect_timeout": f"{MS}ms",
                         "answer_timeout": f"{MS}ms", **(device or {})}],
        }
        service = {"rmb_element": "16K", **(service or {})}
        self.b = Daemon(t, "b", {**common, "egress": [
            {"name": "good", "listen": hostport(*self.smc_at), "to": hostport(*self.echo.at), **service}]})
        self.a = Daemon(t, "a", {**common, "ingress": [
            {"name": "good", "listen": hostport(*good_at), "to": hostport(*self.smc_at), **service},
            {"name": "evil", "listen": hostport(*self.evil_at), "to": hostport(*self.server.at), **service}]})
        self.witness = Witness(t, self.tcp(good_at))
        self.witness.check()
        for d in (self.a, self.b):
            equal([c["mode"] for c in d.connections()], ["smcr"], f"mode of the witness at {d.name}")
        self.rest = {d: self.at_rest(d) for d in (self.a, self.b)}
        self.marks = {}
        self.open = []
        self.links = []
        self.failures = []
        self.sinned = self.looked = False
        self.mark()

    def tcp(self, at):
        s = connect_to(at, 6)
        self.t.later(s.close)
        return s

    # -- what a daemon has --

    @staticmethod
    def state(d):
        """What has to be the same before and after: connections, link groups, descriptors."""
        conns, groups = len(d.connections()), len(d.groups())
        return conns, groups, d.fds()

    def at_rest(self, d):
        """The state once it stops changing."""
        seen = []

        def steady():
            seen.append(self.state(d))
            return len(seen) > 2 and seen[-3:] == [seen[-1]] * 3
        wait_until(steady, f"{d.name} is at rest", SOON)
        return seen[-1]

    def rests(self, d):
        """As before; a descriptor of the daemon's start may still have been open then."""
        now, before = self.state(d), self.rest[d]
        if now[:2] != before[:2] or now[2] > before[2]:
            return False
        self.rest[d] = now
        return True

    def mark(self):
        self.marks = {d: len(d.log()) for d in (self.a, self.b)}

    def wait_log(self, d, text):
        """Until the daemon has said so since the mark."""
        self.looked = True
        wait_until(lambda: text in self.news(d), f'"{text}" in the log of {d.name}', SOON)

    # -- the strangers --

    def peer(self, **kw):
        return smc.Peer(self.t.addr, **kw)

    def keep(self, link):
        if link not in self.links:
            self.links.append(link)

    def echoing(self, peer=None, link=None):
        """connected(), and some bytes were there and back."""
        conn = self.connected(peer, link)
        self.echoes(conn, 10)
        return conn

    def joined(self, conn):
        """A further connection on the group works."""
        self.echoes(self.connected(conn.link.peer, conn.link), 3000)

    def app(self):
        """An application's connection to a's ingress "evil"."""
        self.sinned = True
        s = self.tcp(self.evil_at)
        self.open.append(s)
        return s

    # -- looks --

    def echoes(self, conn, n=2000):
        data = pattern(n, conn.sent & 0xffff)
        task = in_thread(lambda: conn.send(data, SOON))
        same_bytes(conn.recv(n, SOON), data, "echo by SMC-R")
        task.result()
        check(conn.link.ended is None, f"the link ended: {conn.link.ended}")

    def tcp_echoes(self, sock, data=b"hello by TCP"):
        sock.settimeout(SOON)
        sock.sendall(data)
        same_bytes(recv_exact(sock, len(data)), data, "echo by TCP")

    def run(self, name, fn, *args):
        """One scenario; then all is as before. A failure is reported by finish(), the next scenario is tried all the
        same."""
        self.mark()
        start = time.monotonic()
        try:
            fn(self, *args)
        except (Failure, iw.Error, smc.SmcError, OSError) as e:
            self.fail(name, e)
        try:
            self.settle()
        except Failure as e:
            self.fail(name, e)
            self.finish()
        took = time.monotonic() - start
        if took > 2:
            self.t.note(f"{name}: {took:.1f} s")
        if self.looked:
            # The daemon logs no more than some lines a second of what strangers do.
            self.looked = False
            time.sleep(max(0.0, 0.12 - took))	# raw: the log's own time

    def fail(self, name, e):
        at = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in traceback.extract_tb(e.__traceback__)]
        logs = "".join(f"\n  -- log of {d.name}:\n{self.news(d)}" for d in (self.a, self.b) if self.news(d))
        self.failures.append(f"{name}: {type(e).__name__}: {e}\n  at {' '.join(reversed(at))}{logs}")

    def news(self, d):
        """What the daemon has logged since the scenario began."""
        return d.log()[self.marks[d]:]

    def close_all(self):
        for x in self.open:
            if getattr(x, "link", None) and x.link not in self.links:
                self.links.append(x.link)
            x.close()
        for link in self.links:
            link.close()
        self.links.clear()
        self.open.clear()
        self.server.forget()
        self.fresh_server()

    def redeem(self):
        """The strange server behaves: a connects again, and does not hold it off."""
        def once():
            app, v = self.serving()
            try:
                v.run()
                return True
            except smc.Declined:
                return False
            finally:
                self.close_all()
        wait_until(once, "a connects to the server that failed", SOON)
        self.sinned = False

    def settle(self):
        self.close_all()
        if self.sinned:
            self.redeem()
        for d in (self.a, self.b):
            try:
                wait_until(lambda d=d: self.rests(d), f"{d.name} is back at rest", SOON)
            except Failure as e:
                raise Failure(f"{e}: (connections, groups, descriptors) {self.rest[d]} before, {self.state(d)} now"
                              ) from None
            d.ctl_text("status")
        self.witness.check()

    def finish(self):
        check(not self.failures, f"{len(self.failures)} scenarios failed:\n" + "\n".join(self.failures))
        self.witness.finish()
        self.t.note(f"witness: {self.witness.turns} echoes, the longest took {self.witness.longest * 1000:.0f} ms")


def scene_case(name, scene=Scene, one_worker=None, **settings):
    """@case for a function of a Scene with these settings, which is finished behind it."""
    def register(fn):
        @case(name, one_worker=one_worker)
        def _(t):
            s = scene(t, **settings)
            fn(s)
            s.finish()
        return fn
    return register
