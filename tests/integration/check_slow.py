#!/usr/bin/env python3
"""Readers that are slow or asleep: memory stays bounded, others are not held up, nothing is lost."""
import socket
import threading

from harness import (Pair, pair_to, Server, case, check, echo, equal, in_thread, main, pattern, recv_exact, same_bytes,
                     wait_until, SANITIZERS, SHRINK)

SLOW = 20
TOTAL = 16 << 20
# What one stuck connection may cost a daemon: an element of 512 KiB at one end, a send ring of 1 MiB at the other, as the engine
# chooses them, with room for bookkeeping.
BOUND = (1 << 20) + 256 * 1024


@case("20 sleeping readers: bounded memory, round trips of another connection continue, all bytes arrive", timeout=120)
def _(t):
    wake = threading.Event()
    data = [pattern(TOTAL, i) for i in range(SLOW)]
    got = {}

    def sleeper(s):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262144)
        which = recv_exact(s, 1)[0]
        wake.wait(100)
        got[which] = recv_exact(s, TOTAL)
    slow, fast = Server(t, sleeper), Server(t, echo)
    pair = Pair(t, {"slow": slow.at, "fast": fast.at})
    bystander = pair.connect("fast")
    bystander.sendall(b"x")
    recv_exact(bystander, 1)
    before = [d.rss() for d in (pair.a, pair.b)]

    clients = [pair.connect("slow") for _ in range(SLOW)]

    def send(i):
        clients[i].sendall(bytes([i]) + data[i])
    tasks = [in_thread(send, i) for i in range(SLOW)]

    def stuck():
        seen = []
        for d in (pair.a, pair.b):
            seen += [c["bytes_from_app"] + c["bytes_to_app"] for c in d.connections() if c["service"] == "slow"]
        was, stuck.seen = stuck.seen, seen
        return len(seen) == 2 * SLOW and min(seen) > 65536 and seen == was
    stuck.seen = None
    wait_until(stuck, "the slow connections stop moving", 30)
    for i in range(500):
        bystander.sendall(pattern(100, i))
        same_bytes(recv_exact(bystander, 100), pattern(100, i), "bystander's echo")
    after = [d.rss() for d in (pair.a, pair.b)]
    growth = [(y - x) // SLOW for x, y in zip(before, after)]
    t.note(f"resident memory per stuck connection: {growth[0]} and {growth[1]} bytes")
    if not SANITIZERS:
        check(max(growth) < BOUND, f"resident memory per stuck connection {growth}, bound {BOUND}")
    check(any(task.is_alive() for task in tasks), "the senders are held back")
    wake.set()
    for task in tasks:
        task.result()
    wait_until(lambda: len(got) == SLOW, "all data arrived", 60)
    for i in range(SLOW):
        same_bytes(got[i], data[i], f"connection {i}")
    slow.ok()
    pair.only_smcr(SLOW + 1)


@case("a client that does not read blocks the server, and gets all data later", timeout=60)
def _(t):
    sent = []

    def serve(s):
        for i in range(16):
            s.sendall(data)
            sent.append(i)
    data = pattern((4 << 20) // SHRINK)
    pair = pair_to(t, serve)
    c = pair.connect()
    wait_until(lambda: any(x["bytes_to_app"] > 65536 for x in pair.a.connections()), "data at the client's leg")
    out = recv_exact(c, len(data) * 16)
    same_bytes(out, data * 16, "what the client read")
    equal(c.recv(1), b"", "end of the stream")
    pair.server.ok()
    pair.only_smcr()


@case("a reader of 700 bytes at a time", timeout=60)
def _(t):
    data = pattern((3 << 20) // SHRINK)
    server = Server(t, lambda s: s.sendall(data))
    pair = Pair(t, {"x": server.at})
    c = pair.connect()
    out = bytearray()
    while part := c.recv(700):
        out += part
    same_bytes(bytes(out), data, "what the client read")
    server.ok()
    pair.only_smcr()


main()
