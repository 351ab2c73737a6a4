#!/usr/bin/env python3
"""The client's address travels from the ingress to the egress, and the server learns it there (doc/transparent.md)."""
import socket

from harness import Pair, Server, case, check, equal, logs, main, pattern, recv_all, same_bytes, unlinkable_pair, wait_until
from proxy_headers import read_v1, read_v2


def echo_behind(read, seen):
    def serve(s):
        seen.append(read(s))
        s.sendall(recv_all(s))
    return serve


def forwarding(t, version, read, seen, host=None, ingress=None, egress=None, make=Pair, **settings):
    server = Server(t, echo_behind(read, seen), host)
    return make(t, {"x": server.at}, ingress={"forward_client": "required", **(ingress or {})},
                egress={"client_address": f"proxy_{version}", **(egress or {})}, host=host, unix=False, **settings)


def reload(daemon, kind, **change):
    daemon.write_conf(dict(daemon.conf, **{kind: [dict(e, **change) for e in daemon.conf[kind]]}))
    daemon.ctl_text("reload")


def rounds(pair, seen, count, size=100000):
    data = pattern(size)
    for i in range(count):
        c = pair.connect()
        c.sendall(data)
        c.shutdown(socket.SHUT_WR)
        same_bytes(recv_all(c), data, "echo behind the header")
        equal(seen[-1][:2], (c.family, c.getsockname()[:2]), f"client of connection {i}")
        c.close()


@case("versions 1 and 2, IPv4 and IPv6, on SMC-R", one_worker="another one has no ticket yet")
def _(t):
    for host in (None, "::1"):
        for version, read in (("v1", read_v1), ("v2", read_v2)):
            seen = []
            pair = forwarding(t, version, read, seen, host)
            rounds(pair, seen, 4)
            pair.only_smcr(4)
            equal(pair.a.counters()["opened_client"] > 0, host is None, "some open over the link, if their client has room")


@case("on TCP: after a first contact that failed, and while the peer is held off")
def _(t):
    seen = []
    pair = forwarding(t, "v2", read_v2, seen, make=unlinkable_pair, a={"workers": 1, "smcr": {"hold_off": "1m"}}, b={"workers": 1})
    rounds(pair, seen, 4)
    check(pair.a.counters()["fallback_held_off"] > 0, "the peer was held off")
    equal(sum(s["fallbacks"] for s in pair.b.services()), 4, "fallbacks")


@case("the header is sent at once, and the egress shows the client")
def _(t):
    def serve(s):
        read_v2(s)
        s.sendall(b"welcome")
        recv_all(s)
    server = Server(t, serve)
    pair = Pair(t, {"x": server.at}, ingress={"forward_client": "on"}, egress={"client_address": "proxy_v2"}, unix=False)
    c = pair.connect()
    same_bytes(c.recv(7), b"welcome", "the server's first bytes")
    name = "%s:%u" % c.getsockname()[:2]
    equal([k["client"] for k in pair.b.connections()], [name], "client at the egress")
    equal([k["client"] for k in pair.a.connections()], [""], "client at the ingress")


@case("a client that is not in clients is reset, and the server sees nothing of it")
def _(t):
    seen = []
    pair = forwarding(t, "v2", read_v2, seen, egress={"clients": ["192.0.2.0/24"]})
    for _ in range(2):
        check(pair.turned_away(), "a client that may not be named")
    equal(seen, [], "connections at the server")
    wait_until(lambda: pair.b.services()[0]["refused_allow"] == 2, "refusals are counted")
    logs(pair.b, "client=127.0.0.1:", "not in clients")
    reload(pair.b, "egress", clients=["127.0.0.1"])
    rounds(pair, seen, 1)


@case("a peer that names no client is reset, on SMC-R and on TCP")
def _(t):
    for b in ({}, {"devices": [{"type": "siw", "interface": "none0"}]}):
        seen = []
        pair = forwarding(t, "v2", read_v2, seen, ingress={"forward_client": "off"}, b=b)
        for _ in range(3):
            check(pair.turned_away(), "a client without a name")
        equal(seen, [], "connections at the server")
        equal(pair.b.services()[0]["fallbacks"], 3 if b else 0, "connections that are declined first")
        logs(pair.b, "names no client")


@case("a peer that passes no client on: counted, or the client is reset")
def _(t):
    server = Server(t, lambda s: s.sendall(recv_all(s)))
    for make in (Pair, unlinkable_pair):
        pair = make(t, {"x": server.at}, ingress={"forward_client": "required"}, unix=False)
        check(pair.turned_away(), "a client that would not be passed on")
        reload(pair.a, "ingress", forward_client="on")
        c = pair.connect()
        c.sendall(b"x")
        c.shutdown(socket.SHUT_WR)
        same_bytes(recv_all(c), b"x", "echo")
        equal(pair.a.services()[0]["clients_unused"], 2, "connections without the client")


@case("an egress that stops to pass clients on: no OPEN brings one without, and required resets the client", one_worker="another one has no ticket yet")
def _(t):
    seen = []
    pair = forwarding(t, "v1", read_v1, seen, a={"workers": 1}, b={"workers": 1})
    rounds(pair, seen, 3)
    check(pair.a.counters()["opened_client"] > 0, "some opened over the link")
    reload(pair.b, "egress", client_address="off")
    for _ in range(3):
        check(pair.turned_away(), "a client that would not be passed on")
    equal(len(seen), 3, "connections that the server has read from")
    equal(pair.a.services()[0]["clients_unused"], 3, "clients that were not passed on")


main()
