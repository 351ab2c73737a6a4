#!/usr/bin/env python3
"""The ends of connections: half close both ways, with data still to come; the server speaks first; nothing at all."""
import hashlib
import socket

from harness import (Pair, pair_to, Server, case, equal, main, need, pattern, recv_all, recv_exact, same_bytes, in_thread,
                     wait_until, SHRINK, UNIX)
from programs import wait_port, wait_socket

BIG = (20 << 20) // SHRINK


@case("the client ends first: 20 MiB out, then 20 MiB back")
def _(t):
    request, answer = pattern(BIG, 1), pattern(BIG, 2)

    def serve(s):
        same_bytes(recv_all(s), request, "request at the server")
        s.sendall(answer)
    pair = pair_to(t, serve)
    c = pair.connect()
    c.sendall(request)
    c.shutdown(socket.SHUT_WR)
    same_bytes(recv_all(c), answer, "answer")
    c.close()
    pair.ended_well()


@case("the server ends first and continues to read")
def _(t):
    request, answer = pattern(BIG, 3), pattern(70000, 4)
    got = []

    def serve(s):
        s.sendall(answer)
        s.shutdown(socket.SHUT_WR)
        got.append(recv_all(s))
    pair = pair_to(t, serve)
    c = pair.connect()
    same_bytes(recv_all(c), answer, "answer")
    c.sendall(request)
    c.close()
    wait_until(lambda: got, "the server has seen the end", 30)
    same_bytes(got[0], request, "request at the server")
    pair.ended_well()


@case("both directions full at once, then closed crosswise")
def _(t):
    up, down = pattern(BIG, 5), pattern(BIG, 6)

    def serve(s):
        reader = in_thread(recv_all, s)
        s.sendall(down)
        s.shutdown(socket.SHUT_WR)
        same_bytes(reader.result(), up, "at the server")
    pair = pair_to(t, serve)
    socks = [pair.connect() for _ in range(4)]
    readers = [in_thread(recv_all, c) for c in socks]

    def write(c):
        c.sendall(up)
        c.shutdown(socket.SHUT_WR)
    writers = [in_thread(write, c) for c in socks]
    for task in writers:
        task.result()
    for task in readers:
        same_bytes(task.result(), down, "at the client")
    for c in socks:
        c.close()
    pair.ended_well(4)


@case("the server sends first; the client only reads")
def _(t):
    banner = b"220 ready\r\n"

    def serve(s):
        s.sendall(banner)
        s.sendall(recv_exact(s, 4).upper())
    pair = pair_to(t, serve)
    for _ in range(50):
        c = pair.connect()
        same_bytes(recv_exact(c, len(banner)), banner, "banner")
        c.sendall(b"quit")
        same_bytes(recv_all(c), b"QUIT", "answer")
        c.close()
    pair.ended_well(50)


@case("connections without a byte, closed by either side")
def _(t):
    held = []
    server = Server(t, lambda s: held.append(s.recv(1)))
    hangup = Server(t, lambda s: None)
    pair = Pair(t, {"x": server.at, "y": hangup.at})
    for _ in range(20):
        c = pair.connect("x")
        c.shutdown(socket.SHUT_WR)
        same_bytes(recv_all(c), b"", "at the client")
        c.close()
        c = pair.connect("y")
        same_bytes(recv_all(c), b"", "at the client")
        c.close()
    wait_until(lambda: len(held) == 20, "every connection reached the server")
    equal(held, [b""] * 20, "what the server read")
    pair.ended_well(40)


@case("one byte at a time, each answered")
def _(t):
    def serve(s):
        if not UNIX:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := s.recv(100):
            s.sendall(data)
    pair = pair_to(t, serve)
    c = pair.connect()
    if not UNIX:
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for i in range(3000 // SHRINK):
        c.sendall(bytes([i & 255]))
        equal(c.recv(10), bytes([i & 255]), f"byte {i}")
    pair.only_smcr()


@case("socat: a file through sha256sum, half closed by the client")
def _(t):
    socat = need("socat")
    data = pattern(BIG, 7)
    with open(t.path("data"), "wb") as f:
        f.write(data)
    if UNIX:
        path = t.socket_path("socat")
        at = (f"unix:{path}", 0)
        wait_socket(t.spawn([socat, f"UNIX-LISTEN:{path},fork", "EXEC:sha256sum"]), path)
    else:
        port = t.port()
        at = (t.addr, port)
        wait_port(t.spawn([socat, f"TCP-LISTEN:{port},bind={t.addr},fork,reuseaddr", "EXEC:sha256sum"]), *at)
    pair = Pair(t, {"x": at})
    to = f"UNIX-CONNECT:{pair.path['x']}" if UNIX else f"TCP:{pair.host}:{pair.port['x']}"
    with open(t.path("data"), "rb") as f:
        out = t.run([socat, "-t", "60", "-", to], stdin=f)
    equal(out.split()[:1], [hashlib.sha256(data).hexdigest().encode()], "checksum from the far side")
    pair.ended_well()


@case("nc -N sends a file and gets one back after its end")
def _(t):
    nc = need("nc")
    up, down = pattern(BIG, 8), pattern(BIG, 9)

    def serve(s):
        same_bytes(recv_all(s), up, "at the server")
        s.sendall(down)
    pair = pair_to(t, serve)
    with open(t.path("up"), "wb") as f:
        f.write(up)
    with open(t.path("up"), "rb") as f:
        to = ["-U", pair.path["x"]] if UNIX else [pair.host, str(pair.port["x"])]
        same_bytes(t.run([nc, "-N", *to], stdin=f), down, "at the client")
    pair.ended_well()


@case("nc -l -N sends a file and ends first")
def _(t):
    nc = need("nc")
    down, port, path = pattern(BIG, 10), t.port(), t.socket_path("nc")
    with open(t.path("down"), "wb") as f:
        f.write(down)
    with open(t.path("down"), "rb") as f:
        far = t.spawn([nc, "-l", "-N", *(["-U", path] if UNIX else [t.addr, str(port)])], stdin=f)
    if UNIX:
        wait_socket(far, path)
    else:
        wait_port(far, t.addr, port)
    pair = Pair(t, {"x": (f"unix:{path}", 0) if UNIX else (t.addr, port)})
    c = pair.connect()
    same_bytes(recv_all(c), down, "at the client")
    c.close()
    equal(far.wait(), 0, "exit status of the far nc")
    pair.ended_well()


main()
