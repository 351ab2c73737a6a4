#!/usr/bin/env python3
"""What the logs say at the default level when something is out: on both hosts, once when it begins, once when it is over."""
import socket

from harness import (Daemon, Pair, connect_to, pair_to, Server, case, check, echo, equal, hostport, logged, main, recv_exact,
                     same_bytes, turned_away, wait_until)

DEFAULT = {"log_level": None}		# as if the file said nothing


def lines(daemon, text):
    return [line for line in daemon.log().splitlines() if text in line]


def logged_once(daemon, text, *words):
    """One line with this phrase, and all the words in it."""
    [got] = logged(daemon, text, times=1)
    for w in words:
        check(w in got, f"{w} in: {got}")


def works(pair):
    c = pair.connect()
    c.sendall(b"hello")
    same_bytes(recv_exact(c, 5), b"hello", "echo")
    c.close()


def service(daemon):
    return daemon.services()[0]


def full_backlog(t, port):
    """A port that answers no SYN, like one that a firewall drops."""
    s = socket.socket()
    t.later(s.close)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((t.addr, port))
    s.listen(0)
    waiting = []
    for _ in range(4):
        c = socket.socket()
        t.later(c.close)
        c.setblocking(False)
        c.connect_ex((t.addr, port))
        waiting.append(c)
    return [s, *waiting]


def out_and_back(t, why, ingress=None, before=None):
    """The egress port is closed; then a daemon serves it."""
    pair = pair_to(t, echo, ingress=ingress, a=DEFAULT, b=DEFAULT, start=False)
    held = before(t, pair.middle["x"]) if before else []
    pair.a.start()
    for _ in range(5):
        check(pair.turned_away(), "while the target is down")
    peer = "peer=" + hostport(t.addr, pair.middle["x"])
    logged_once(pair.a, "not available", "warning: peer not available", "service=x", peer, why)
    equal(service(pair.a)["refused_connect"], 5, "counted")
    for s in held:
        s.close()
    pair.b.start()
    for _ in range(3):
        works(pair)
    logged_once(pair.a, "available again", "notice: peer available again", "service=x", peer, "connections=5")
    equal(lines(pair.b, "not available"), [], "at the other host")


@case("the peer's port is dropped: begin and end are logged once")
def _(t):
    out_and_back(t, 'reason="cannot be connected: Connection timed out"', {"connect_timeout": "300ms"}, full_backlog)


@case("the peer's daemon is down: begin and end are logged once")
def _(t):
    out_and_back(t, 'reason="cannot be connected: Connection refused"')


@case("a reload to another target that is down: logged, and counted from then on")
def _(t):
    pair = pair_to(t, echo, a=DEFAULT, b=DEFAULT)
    nobody = [hostport(t.addr, t.port()) for _ in range(2)]
    for to in nobody:
        pair.a.conf["ingress"][0]["to"] = to
        pair.a.write_conf(pair.a.conf)
        pair.a.ctl("reload")
        for _ in range(2):
            check(pair.turned_away(), "closed")
        found = wait_until(lambda: lines(pair.a, f"peer={to} reason="), f"{to} is logged")
        check(len(found) == 1 and found[0].endswith(" connections=1"), f"{found}")
    equal(lines(pair.a, "available again"), [], "nothing is well")


@case("the server behind the egress is down: logged and counted as a failed connect on both hosts")
def _(t):
    port = t.port()
    pair = Pair(t, {"x": (t.addr, port)}, a=DEFAULT, b=DEFAULT)
    for _ in range(5):
        check(pair.turned_away(), "while the server is down")
    logged_once(pair.b, "not available", "warning: server not available", "service=x", "server=" + hostport(t.addr, port),
              'reason="cannot be connected: Connection refused"')
    logged_once(pair.a, "not available", "warning: peer not available", "service=x",
              "peer=" + hostport(t.addr, pair.middle["x"]), "closed the connection during set-up; its server may be down")
    for d in (pair.a, pair.b):
        equal(service(d)["refused_connect"], 5, f"counted by {d.name}")
    Server(t, echo, port=port)
    for _ in range(3):
        works(pair)
    logged_once(pair.b, "available again", "server available again", "connections=5")
    logged_once(pair.a, "available again", "peer available again", "connections=5")


@case("the peer is a plain TCP server, silent or sending: no SMC-R peer")
def _(t):
    def silent(s):
        while s.recv(100):
            pass

    def talking(s):
        s.sendall(b"-ERR unknown command\r\n")
        silent(s)
    for handler, limit, words in ((silent, "300ms", "no answer to the Proposal"),
                                  (talking, "10s", "no CLC message where one was expected")):
        server = Server(t, handler)
        port = t.port()
        a = Daemon(t, "a", {"devices": [{"type": "siw", "address": t.addr}],
                            "smcr": {"clc_timeout": limit}, "ingress": [
            {"name": "x", "listen": hostport(t.addr, port), "to": hostport(*server.at), "fallback": "refuse"}]})
        check(turned_away(connect_to, (t.addr, port)), "at the client")
        logged_once(a, "not available", "peer not available", "service=x", "peer=" + hostport(*server.at),
                  'reason="is no SMC-R peer: ' + words)
        equal(service(a)["refused_connect"], 1, "counted")
        out = a.ctl_text("check", hostport(*server.at), status=1)
        check(words in out, f"smcrctl check: {out}")


@case("strangers at the egress port: a plain client, a silent one; limited; a client that only connects is not logged")
def _(t):
    pair = pair_to(t, echo, a=DEFAULT, b={**DEFAULT, "smcr": {"clc_timeout": "2s"}})
    at = (t.addr, pair.middle["x"])
    for _ in range(20):
        connect_to(at, 20).close()	# a health check
    s = connect_to(at, 20)
    s.sendall(b"GET / HTTP/1.0\r\n\r\n")
    mine = hostport(*s.getsockname())
    logged_once(pair.b, "no SMC-R peer", "notice: no SMC-R peer, or a broken one", "service=x", "peer=" + mine,
              'reason="no CLC message where one was expected"')
    with connect_to(at, 20) as quiet:
        mine = hostport(*quiet.getsockname())
        wait_until(lambda: lines(pair.b, "no Proposal received"), "the silent one is logged")
        check("peer=" + mine in lines(pair.b, "no Proposal received")[0], "and its address")
    sent = 1

    def limited():
        """So many in so little time, however busy the machine is, that lines are left out."""
        nonlocal sent
        for _ in range(200):
            with connect_to(at, 20) as s:
                s.sendall(b"*1\r\n$4\r\nPING\r\n")
        sent += 200
        wait_until(lambda: pair.b.counters()["bad_clc"] == sent, "all were counted")
        return len(lines(pair.b, "no SMC-R peer")) < sent * 3 // 4
    wait_until(limited, "the log is limited")
    equal([x for x in lines(pair.b, "warning") if "limit" not in x], [], "warnings")
    works(pair)


@case("a link that cannot be made: the reason on both hosts", one_worker="each worker has a port of its own")
def _(t):
    server = Server(t, echo)
    pair = Pair(t, {"x": server.at}, a={**DEFAULT, "devices": [{"type": "siw", "address": t.addr, "rtr": ["send"]}]},
                b={**DEFAULT, "devices": [{"type": "siw", "address": t.addr, "rtr": ["read"]}]})
    works(pair)
    port = pair.b.ctl("devices")["devices"][0]["mpa_port"]
    logged_once(pair.a, "MPA port cannot be used", "mpa=" + hostport(t.addr, port))
    logged_once(pair.a, "fallback begins", "service=x", 'reason="queue pair could not be made ready: ')
    logged_once(pair.b, "MPA port cannot be used", "mpa=" + hostport(t.addr, port))
    logged_once(pair.b, "fallback begins", "service=x", 'reason="declined by the peer: queue pair could not be made ready"')
    equal(lines(pair.a, "no SMC-R:"), [], "nothing for each connection")
    out = pair.a.ctl_text("check", hostport(t.addr, pair.middle["x"]), status=1)
    check("could not be made ready" in out and hostport(t.addr, port) in out, f"smcrctl check: {out}")


main()
