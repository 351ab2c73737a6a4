#!/usr/bin/env python3
"""PROXY protocol: the server learns the client's address from the bytes that the ingress puts first."""
import socket

from harness import Pair, Server, case, check, equal, main, need, pattern, recv_all, same_bytes
from programs import Nginx
from proxy_headers import read_v1, read_v2

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
