#!/usr/bin/env python3
"""accept_proxy: an ingress behind a balancer takes its PROXY header off, and serves the client that it names."""
import signal
import socket
import struct

from harness import Pair, Server, case, check, connect_to, equal, logs, main, outcome, recv_all, same_bytes, wait_until
from proxy_headers import V2_SIGNATURE, read_v1, read_v2

BALANCER = "127.0.0.7"


def v2(command, family, body):
    return V2_SIGNATURE + bytes([command, family]) + struct.pack(">H", len(body)) + body


def v2_of(client, port, tlvs=b""):
    family = socket.AF_INET6 if ":" in client else socket.AF_INET
    other = "2001:db8::2" if ":" in client else "192.0.2.2"
    return v2(0x21, 0x21 if ":" in client else 0x11, socket.inet_pton(family, client) + socket.inet_pton(family, other) +
              struct.pack(">HH", port, 443) + tlvs)


def v1_of(client, port):
    return b"PROXY TCP%d %s %s %d 443\r\n" % (6 if ":" in client else 4, client.encode(),
                                            b"2001:db8::2" if ":" in client else b"192.0.2.2", port)


def balanced(t, seen=None, read=None, ingress=None, **settings):
    def serve(s):
        if read is not None:
            seen.append(read(s)[1])
        s.sendall(recv_all(s))
    server = Server(t, serve)
    return Pair(t, {"x": server.at}, ingress={"accept_proxy": [BALANCER], **(ingress or {})}, unix=False, **settings)


def connect(pair, source=BALANCER):
    c = connect_to((pair.host, pair.port["x"]), 20, source=source)
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return c


def echo(c, data, what):
    c.shutdown(socket.SHUT_WR)
    same_bytes(recv_all(c), data, what)
    c.close()


def is_reset(c):
    return outcome(c)[1] == b""


def counts(pair, name):
    return pair.a.services()[0][name]


@case("versions 1 and 2, IPv4 and IPv6, cut at each byte, and with TLVs")
def _(t):
    pair = balanced(t)
    for client in ("198.51.100.9", "2001:db8::9"):
        for header in (v1_of(client, 4711), v2_of(client, 4711), v2_of(client, 4711, b"\x04\0\x03\0\0\0\x01\0\x02h2")):
            for n in range(1, len(header)):
                c = connect(pair)
                c.sendall(header[:n])
                pair.a.status()
                c.sendall(header[n:] + b"PROXY data")
                echo(c, b"PROXY data", f"{header!r} cut at {n}")
    equal(counts(pair, "refused_header"), 0, "refused")


@case("the client counts for connections, proxy_protocol, forward_client and the log")
def _(t):
    seen = []
    pair = balanced(t, seen, read_v2, ingress={"proxy_protocol": "v2"})
    c = connect(pair)
    c.sendall(v1_of("198.51.100.9", 4711) + b"x")
    wait_until(lambda: [k["app"] for k in pair.a.connections()] == ["198.51.100.9:4711"], "the ingress shows the client")
    echo(c, b"x", "echo")
    equal(seen, [("198.51.100.9", 4711)], "client at the server")
    wait_until(lambda: "client=198.51.100.9:4711" in pair.a.log(), "the log has the client")
    seen = []
    pair = balanced(t, seen, read_v1, ingress={"forward_client": "required"},
                    egress={"client_address": "proxy_v1", "clients": ["198.51.100.0/24"]})
    for port in (4711, 4712):
        c = connect(pair)
        c.sendall(v2_of("198.51.100.9", port) + b"y")
        echo(c, b"y", "echo")
    equal(seen, [("198.51.100.9", 4711), ("198.51.100.9", 4712)], "clients at the server")
    c = connect(pair)
    c.sendall(v2_of("192.0.2.77", 5))
    check(is_reset(c), "a client that is not in clients")


@case("the client counts for allow and max_connections_per_peer")
def _(t):
    pair = balanced(t, ingress={"allow": ["198.51.100.0/24", "127.0.0.9"], "max_connections_per_peer": 1})
    c = connect(pair)
    c.sendall(v2_of("192.0.2.77", 5))
    check(is_reset(c), "a client that is not allowed")
    wait_until(lambda: counts(pair, "refused_allow") == 1, "counted")
    logs(pair.a, "from=192.0.2.77:5")
    first, second, other = connect(pair), connect(pair), connect(pair)
    first.sendall(v2_of("198.51.100.1", 1) + b"a")
    wait_until(lambda: len(pair.a.connections()) == 1, "the first is served")
    second.sendall(v2_of("198.51.100.1", 2))
    check(is_reset(second), "a second one of the same client")
    other.sendall(v2_of("198.51.100.2", 1) + b"b")
    echo(other, b"b", "another client")
    echo(first, b"a", "the first client")
    wait_until(lambda: not pair.a.connections(), "the end is counted")
    again = connect(pair)
    again.sendall(v2_of("198.51.100.1", 3) + b"c")
    echo(again, b"c", "the client again")
    # The balancer's own address is not allowed, other sources need no header.
    c = connect(pair)
    c.sendall(v2(0x20, 0, b""))
    check(is_reset(c), "LOCAL of a balancer that is not allowed")
    plain = connect(pair, "127.0.0.9")
    plain.sendall(v2_of("198.51.100.1", 9))
    echo(plain, v2_of("198.51.100.1", 9), "a header from elsewhere is data")


@case("LOCAL, UNKNOWN, UNSPEC and UNIX: the balancer speaks for itself")
def _(t):
    pair = balanced(t)
    for header in (v2(0x20, 0, b""), v2(0x20, 0x11, bytes(12)), b"PROXY UNKNOWN\r\n", v2(0x21, 0, b""),
                   b"PROXY UNKNOWN " + b" ".join([b":".join([b"ffff"] * 8)] * 2) + b" 65535 65535\r\n",
                   v2(0x21, 0x31, bytes(216))):
        c = connect(pair)
        c.sendall(header + b"z")
        wait_until(lambda: [k["app"] for k in pair.a.connections()] == ["%s:%d" % c.getsockname()], "the balancer is the client")
        echo(c, b"z", f"{header!r}")
        wait_until(lambda: not pair.a.connections(), "the end")


@case("malformed, cut short, or none within 3 s: reset, counted, logged with words")
def _(t):
    pair = balanced(t)
    bad = ((b"GET / HTTP/1.1\r\n\r\n", "no PROXY header"), (b"PROXY TCP4 1.2.3.4\r\n", "malformed PROXY header"),
           (b"PROXY UNKNOWN " + 93 * b"x", "the line of the PROXY header is too long"),
           (v2(0x21, 0x11, bytes(5)), "malformed PROXY header"), (v2(0x31, 0x11, bytes(12)), "unknown version or command"),
           (v2(0x21, 0x12, bytes(12)), "not of a stream"), (v1_of("224.0.0.1", 5), "an address that none can have"),
           (v2(0x21, 0x11, bytes(4081)), "longer than 4096 bytes"))
    for nr, (data, words) in enumerate(bad, 1):
        c = connect(pair)
        c.sendall(data)
        check(is_reset(c), f"reset after {data[:40]!r}")
        wait_until(lambda: counts(pair, "refused_header") == nr, f"counted: {words}")
        logs(pair.a, words)
    c = connect(pair)
    c.sendall(v1_of("198.51.100.9", 1)[:-1])
    c.shutdown(socket.SHUT_WR)
    check(is_reset(c), "cut short")
    wait_until(lambda: "ended within the PROXY header" in pair.a.log(), "the log says so")
    silent = connect(pair)
    check(is_reset(silent), "nothing within 3 s")
    wait_until(lambda: "no PROXY header within 3 s" in pair.a.log(), "the log says so")
    equal(counts(pair, "refused_header"), len(bad) + 2, "refused")
    # A health check by connect alone.
    connect(pair).close()
    c = connect(pair)
    c.sendall(v1_of("198.51.100.9", 1) + b"fine")
    echo(c, b"fine", "after all that")
    equal(counts(pair, "refused_header"), len(bad) + 2, "a health check is no fault")


@case("connections that wait for their header outlive a reload")
def _(t):
    pair = balanced(t)
    waiting = connect(pair)
    waiting.sendall(b"PROXY ")
    conf = dict(pair.a.conf, ingress=[dict(e, accept_proxy=["127.0.0.8"]) for e in pair.a.conf["ingress"]])
    pair.a.write_conf(conf)
    pair.a.ctl_text("reload")
    plain = connect(pair)
    plain.sendall(b"data")
    echo(plain, b"data", "no balancer any more")
    waiting.sendall(v1_of("198.51.100.9", 1)[6:] + b"late")
    echo(waiting, b"late", "accepted before the reload")


@case("a daemon that drains waits for a header, and for that connection")
def _(t):
    pair = balanced(t)
    waiting = connect(pair)
    waiting.sendall(b"PROXY ")
    # In order: the ingress has accepted both.
    other = connect(pair)
    other.sendall(v1_of("198.51.100.8", 1))
    wait_until(pair.a.connections, "the ingress has accepted the next one")
    pair.a.expect_dead = True
    pair.a.send_signal(signal.SIGTERM)
    wait_until(lambda: pair.a.status()["draining"], "the daemon drains")
    other.close()
    waiting.sendall(v1_of("198.51.100.9", 1)[6:] + b"late")
    echo(waiting, b"late", "accepted before the drain")
    equal(pair.a.wait(), 0, "exit status")


main()
