#!/usr/bin/env python3
"""when_down = "close_listener": while no target of a service works its clients are refused by the kernel, as by the server itself, so
that clients with a list of hosts go on to the next one. And the default, with which they are accepted and reset."""
import os
import signal

from harness import Daemon, Pair, Server, Skip, case, check, connect_to, echo, equal, hostport, logs, main, need, recv_exact, same_bytes, wait_until
from programs import Postgres

TRIES = 20
CLOSES = {"when_down": "close_listener", "target_retry": "1s"}
REFUSED, CUT = "refused", "cut"


def says(text):
    def fn(s):
        s.sendall(text)
        s.recv(1)
    return fn


def ask(host, port):
    """What the server there says of itself, or how the connection fails."""
    try:
        s = connect_to((host, port))
    except ConnectionRefusedError:
        return REFUSED
    except ConnectionError:
        return CUT
    with s:
        try:
            return s.recv(1).decode() or CUT
        except ConnectionError:
            return CUT


def first_of(*places):
    """A client with a list of hosts: the first that can be connected is the one."""
    for place in places:
        got = ask(*place)
        if got != REFUSED:
            return got
    return REFUSED


def state(daemon, name="x"):
    [s] = [s for s in daemon.services() if s["name"] == name]
    return "disabled" if s["disabled"] else "closed" if s["closed"] else "open"


def becomes(daemon, want, patience=20):
    wait_until(lambda: state(daemon) == want, f"daemon {daemon.name} is {want}", patience)


class Hosts:
    """A pair with a server, and a second host where another server listens itself."""

    def __init__(self, t, ingress=CLOSES, egress=None, **kw):
        self.t = t
        self.server = Server(t, says(b"1"), unix=False)
        self.second = Server(t, says(b"2"), unix=False)
        self.pair = Pair(t, {"x": self.server.at}, ingress=ingress, egress=egress, unix=False, **kw)
        self.a, self.b = self.pair.a, self.pair.b
        self.at = (self.pair.host, self.pair.port["x"])
        equal(self.tries(), ["1"] * TRIES, "the first host works")

    def tries(self):
        return [first_of(self.at, self.second.at) for _ in range(TRIES)]

    def go_down(self, end):
        """One client finds out; then all of a list's clients reach the second host."""
        end()
        ask(*self.at)
        becomes(self.a, "closed")
        equal(self.tries(), ["2"] * TRIES, "clients with a list")

    def comes_back(self):
        becomes(self.a, "open")
        # Where one client tries, others are refused until the worker knows that it got through.
        wait_until(lambda: self.tries() == ["1"] * TRIES, "again")

    def server_back(self):
        self.server = Server(self.t, says(b"1"), host=self.server.host, port=self.server.port, unix=False)


@case("the other daemon is down, and returns; shown in status, log and reports")
def _(t):
    h = Hosts(t)
    equal(state(h.a), "open", "at first")
    h.go_down(h.b.stop)
    check("  closed  " in h.a.ctl_text("status"), "in the table")
    check("CLOSED: no target works" in h.a.ctl_text("service", "x"), "in the report")
    equal(h.a.services()[0]["accepted"], TRIES + 1, "no other connection was accepted")
    h.b.start()
    h.comes_back()
    for text in ("listener closed, no target works: service=x", "listener open again, a target works: service=x"):
        logs(h.a, text, times=1)


@case("the server behind the other daemon is down, with the setting on both hosts")
def _(t):
    h = Hosts(t, egress=CLOSES)

    def end():
        h.server._close()
        ask(*h.at)
        becomes(h.b, "closed")
    h.go_down(end)
    h.server_back()
    becomes(h.b, "open")
    h.comes_back()


@case("the server behind the other daemon is down, with the setting on the client's host alone: one client tries at intervals")
def _(t):
    h = Hosts(t, ingress={"when_down": "close_listener", "target_retry": "30s"})
    h.go_down(h.server._close)
    h.server_back()
    h.a.ctl_text("retry")
    h.comes_back()


@case("with several workers")
def _(t):
    h = Hosts(t, egress=CLOSES, a={"workers": 3}, b={"workers": 2})
    for _ in range(2):
        h.go_down(h.b.stop)
        h.b.start()
        h.comes_back()


@case("several targets: closed when the last one is down, open when one returns")
def _(t):
    servers = [Server(t, says(b"1"), unix=False), Server(t, says(b"3"), unix=False)]
    at = t.port()
    d = Daemon(t, "d", {"egress": [{"name": "x", "listen": hostport(t.addr, at), "to": [hostport(*s.at) for s in servers],
                                    "peer": "auto", **CLOSES}]})
    plain = (t.addr, at)

    def ask_plain():
        """A plain client of peer = auto."""
        try:
            with connect_to(plain) as s:
                s.sendall(b"h")
                return s.recv(1).decode() or CUT
        except ConnectionRefusedError:
            return REFUSED
        except ConnectionError:
            return CUT
    equal(ask_plain(), "1", "the first")
    servers[0]._close()
    equal(ask_plain(), "3", "the second")
    equal(state(d), "open", "one works")
    servers[1]._close()
    ask_plain()
    becomes(d, "closed")
    equal(ask_plain(), REFUSED, "none works")
    Server(t, says(b"3"), host=servers[1].host, port=servers[1].port, unix=False)
    becomes(d, "open")
    equal(ask_plain(), "3", "the second is back")


@case("smcrctl retry probes at once; disable and enable have precedence")
def _(t):
    h = Hosts(t, ingress={"when_down": "close_listener", "target_retry": "1h"})
    h.go_down(h.b.stop)
    h.a.ctl_text("disable", "x")
    equal(state(h.a), "disabled", "an operator's word")
    h.a.ctl_text("enable", "x")
    equal(state(h.a), "closed", "still down")
    equal(ask(*h.at), REFUSED, "still down")
    h.a.ctl_text("disable", "x")
    h.b.start()
    h.a.ctl_text("retry")
    wait_until(lambda: h.a.ctl("service", "x")["addresses"][0]["state"] == "ok", "the target is back")
    equal(ask(*h.at), REFUSED, "disabled all the same")
    h.a.ctl_text("enable", "x")
    h.comes_back()


@case("a reload: of the setting, of the target, of neither")
def _(t):
    h = Hosts(t)
    h.go_down(h.b.stop)
    conf = h.a.conf
    h.a.write_conf(dict(conf, log_level="debug"))
    h.a.ctl_text("reload")
    equal(state(h.a), "closed", "another setting")
    service = conf["ingress"][0]
    h.a.write_conf(dict(conf, ingress=[dict(service, when_down="accept")]))
    h.a.ctl_text("reload")
    equal(state(h.a), "open", "the default")
    equal([ask(*h.at) for _ in range(3)], [CUT] * 3, "accepted and reset")
    h.a.write_conf(conf)
    h.a.ctl_text("reload")
    equal(ask(*h.at), CUT, "the first client finds out")
    becomes(h.a, "closed")
    other = Server(t, says(b"1"), unix=False)
    b2 = Daemon(t, "b2", dict(h.b.conf, egress=[dict(h.b.conf["egress"][0], listen=hostport(t.addr, t.port()), to=hostport(*other.at))]))
    h.a.write_conf(dict(conf, ingress=[dict(service, to=b2.conf["egress"][0]["listen"])]))
    h.a.ctl_text("reload")
    equal(state(h.a), "open", "another target")
    equal(h.tries(), ["1"] * TRIES, "which works")


@case("a new process takes over while the listener is closed")
def _(t):
    h = Hosts(t)
    h.go_down(h.b.stop)
    new = h.a.successor()
    ask(*h.at)
    becomes(new, "closed")
    equal(h.tries(), ["2"] * TRIES, "clients with a list")
    h.b.start()
    becomes(new, "open")
    equal(h.tries(), ["1"] * TRIES, "again")


@case("a port below 1024, without the capability after the start")
def _(t):
    if os.geteuid() != 0:
        raise Skip("needs root")
    server, at = Server(t, echo, unix=False), (t.addr, 81)
    d = Daemon(t, "d", {"egress": [{"name": "x", "listen": hostport(*at), "to": hostport(*server.at), "peer": "auto", **CLOSES}]})
    server._close()
    ask(*at)
    becomes(d, "closed")
    equal(ask(*at), REFUSED, "closed")
    Server(t, echo, host=server.host, port=server.port)
    becomes(d, "open")
    with connect_to(at) as s:
        s.sendall(b"hello")
        same_bytes(recv_exact(s, 5), b"hello", "echo")


@case("libpq with two hosts", timeout=120)
def _(t):
    psql, first, second = need("psql"), Postgres(t), Postgres(t)
    pair = Pair(t, {"x": first.at}, ingress=CLOSES, egress=CLOSES, unix=False)
    url = f"postgresql://postgres@{pair.host}:{pair.port['x']},{second.at[0]}:{second.at[1]}/postgres"

    def who():
        return int(t.run([psql, url, "-qAtXc", "show port"], status=None).decode() or 0)
    equal([who() for _ in range(3)], [first.at[1]] * 3, "the first host")
    first.proc.stop(signal.SIGINT)
    for d in (pair.b, pair.a):
        ask(pair.host, pair.port["x"])
        becomes(d, "closed")
    equal([who() for _ in range(TRIES)], [second.at[1]] * TRIES, "the second host")


@case("the default: each client triggers an attempt, accepted and then reset")
def _(t):
    h = Hosts(t, ingress=None)
    h.b.stop()
    equal([ask(*h.at) for _ in range(5)], [CUT] * 5, "while the server is down")
    equal(state(h.a), "open", "it listens")
    h.b.start()
    equal(ask(*h.at), "1", "the first client that comes")


main()
