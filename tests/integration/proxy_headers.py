"""PROXY protocol headers, as a server reads them."""
import socket
import struct

from harness import check, equal, recv_exact

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
