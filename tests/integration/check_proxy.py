#!/usr/bin/env python3
"""PROXY protocol: the server learns the client's address from the bytes that the ingress puts first."""
import socket
import struct

from harness import (Pair, Server, case, check, equal, main, need, pattern, recv_all, recv_exact, same_bytes)
from programs import Nginx

V2_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def read_v1(s):
    line = b""
    while not line.endswith(b"\r\n"):
        line += recv_exact(s, 1)
        check(len(line) <= 107, f"header {line!r}")
    proxy, family, src, dst, sport, dport = line.decode().split()
    equal(proxy, "PROXY", "first word")
    return {"TCP4": socket.AF_INET, "TCP6": socket.AF_INET6}[family], (src, int(sport)), (dst, int(dport))


def read_v2(s):
    head = recv_exact(s, 16)
    equal(head[:12], V2_SIGNATURE, "signature")
    equal(head[12], 0x21, "version and command")
    family, size = {0x11: (socket.AF_INET, 4), 0x21: (socket.AF_INET6, 16)}[head[13]]
    body = recv_exact(s, struct.unpack(">H", head[14:])[0])
    src, dst = body[:size], body[size:2 * size]
    sport, dport = struct.unpack(">HH", body[2 * size:2 * size + 4])
    return family, (socket.inet_ntop(family, src), sport), (socket.inet_ntop(family, dst), dport)


def run(t, version, read, host=None):
    seen = []

    def serve(s):
        seen.append(read(s))
        s.sendall(recv_all(s))
    server = Server(t, serve, host)
    pair = Pair(t, {"x": server.at}, ingress={"proxy_protocol": version}, host=host)
    data = pattern(500000)
    for i in range(5):
        c = pair.connect()
        c.sendall(data[:i * 100000])
        c.shutdown(socket.SHUT_WR)
        same_bytes(recv_all(c), data[:i * 100000], "echo behind the header")
        server.ok()
        family = socket.AF_INET6 if host else socket.AF_INET
        equal(seen[-1], (family, c.getsockname()[:2], (pair.host, pair.port["x"])), f"header of connection {i}")
        c.close()
    pair.only_smcr(5)


@case("version 1, IPv4")
def _(t):
    run(t, "v1", read_v1)


@case("version 2, IPv4")
def _(t):
    run(t, "v2", read_v2)


@case("versions 1 and 2, IPv6")
def _(t):
    run(t, "v1", read_v1, "::1")
    run(t, "v2", read_v2, "::1")


@case("the header is sent at once, before the client's first data")
def _(t):
    for version, read in (("v1", read_v1), ("v2", read_v2)):
        def serve(s, read=read):
            read(s)
            s.sendall(b"welcome")
        server = Server(t, serve)
        pair = Pair(t, {"x": server.at}, ingress={"proxy_protocol": version})
        same_bytes(recv_all(pair.connect()), b"welcome", version)
        server.ok()
        pair.only_smcr()


@case("nginx accepts both")
def _(t):
    server = Nginx(t, proxy_protocol=True)
    for version in ("v1", "v2"):
        pair = Pair(t, {"x": (server.host, server.port)}, ingress={"proxy_protocol": version})
        out = t.run([need("curl"), "-sSf", "--interface", "127.0.0.42", f"http://{pair.host}:{pair.port['x']}/small"])
        equal(out, b"hello from nginx\n", "page")
        pair.only_smcr()
    with open(server.access_log) as f:
        lines = f.read().strip().split("\n")
    check(len(lines) == 2 and all(line.startswith("127.0.0.42 ") for line in lines), f"nginx logged {lines}")


main()
