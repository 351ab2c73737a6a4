#!/usr/bin/env python3
"""Urgent bytes (MSG_OOB) end to end: value and place in the stream, both ways, alone, first, last, two in a row."""
import socket

from harness import (Pair, Server, case, check, equal, in_thread, main, pattern, read_marked, recv_exact,
                     same_bytes, wait_until)


class Ends:
    """A client's and a server's socket with a pair between them, urgent data kept in line."""

    done = False

    def __init__(self, t, **kw):
        self.accepted = []
        self.server = Server(t, self.hold)
        self.pair = Pair(t, {"x": self.server.at}, **kw)
        self.client = self.pair.connect()
        wait_until(lambda: self.accepted, "the connection reaches the server")
        self.far = self.accepted[0]
        for s in (self.client, self.far):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        t.later(self.release)

    def hold(self, s):
        self.accepted.append(s)
        wait_until(lambda: self.done, "the case is over", 60)

    def release(self):
        self.done = True

    def both_ways(self):
        return (("to the server", self.client, self.far), ("to the client", self.far, self.client))


def run_ends(e):
    for what, a, b in e.both_ways():
        a.sendall(b"0123456789")
        a.send(b"!", socket.MSG_OOB)
        a.sendall(b"abcde")
        data, marks = read_marked(b, 16)
        same_bytes(data, b"0123456789!abcde", f"{what}: the stream")
        equal(marks, [10], f"{what}: place of the urgent byte")


@case("between ordinary bytes, in both directions")
def _(t):
    e = Ends(t)
    run_ends(e)
    e.pair.only_smcr()
    urgent = [d.counters()["urgent_sent"] for d in (e.pair.a, e.pair.b)]
    equal(urgent, [1, 1], "urgent bytes sent by each daemon")


@case("alone on a new connection, and as the last byte before a half close")
def _(t):
    e = Ends(t)
    for what, a, b in e.both_ways():
        a.send(b"U", socket.MSG_OOB)
        equal(read_marked(b, 1), (b"U", [0]), f"{what}: a lone urgent byte")
    for what, a, b in e.both_ways():
        a.sendall(b"last:")
        a.send(b"V", socket.MSG_OOB)
        a.shutdown(socket.SHUT_WR)
        data, marks = read_marked(b, 100)
        same_bytes(data, b"last:V", f"{what}: the stream")
        equal(marks, [5], f"{what}: place of the urgent byte")
    e.pair.only_smcr()


@case("out of line: recv(MSG_OOB) returns the byte, the stream lacks it")
def _(t):
    e = Ends(t)
    for what, a, b in e.both_ways():
        b.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 0)
        a.sendall(b"before")
        a.send(b"*", socket.MSG_OOB)

        def urgent():
            try:
                return b.recv(1, socket.MSG_OOB)
            except (BlockingIOError, OSError):
                return None
        equal(wait_until(urgent, f"{what}: the urgent byte"), b"*", f"{what}: the urgent byte")
        a.sendall(b"after")
        same_bytes(recv_exact(b, 11), b"beforeafter", f"{what}: the stream")
    e.pair.only_smcr()


@case("two in a row, the first one read before the second is sent: both are urgent")
def _(t):
    e = Ends(t)
    for what, a, b in e.both_ways():
        for i, byte in enumerate((b"1", b"2", b"3")):
            a.send(byte, socket.MSG_OOB)
            equal(read_marked(b, 1), (byte, [0]), f"{what}: urgent byte {i}")
    e.pair.only_smcr()


@case("two in a row at once: no byte lost or doubled, the last one is urgent")
def _(t):
    e = Ends(t)
    for what, a, b in e.both_ways():
        for round in range(20):
            a.sendall(b"xy")
            a.send(b"1", socket.MSG_OOB)
            a.send(b"2", socket.MSG_OOB)
            a.sendall(b"z")
            data, marks = read_marked(b, 5)
            same_bytes(data, b"xy12z", f"{what}, round {round}: the stream")
            check(3 in marks, f"{what}, round {round}: the last urgent byte is at 3, marks {marks}")
    e.pair.only_smcr()


@case("during bulk data that wraps the buffers many times")
def _(t):
    e = Ends(t)
    block = pattern(777777, 5)
    for what, a, b in e.both_ways():
        def send():
            for _ in range(5):
                a.sendall(block)
                a.send(b"!", socket.MSG_OOB)
        task = in_thread(send)
        got = bytearray()
        marks = []
        for _ in range(5):
            data, seen = read_marked(b, len(block) + 1)
            marks += seen
            got += data
        task.result()
        same_bytes(bytes(got), (block + b"!") * 5, f"{what}: the stream")
        check(all(m == len(block) for m in marks) and marks, f"{what}: places of urgent bytes {marks}")
    e.pair.only_smcr()


@case("with the cursors of RFC 7609", timeout=30)
def _(t):
    e = Ends(t, a={"smcr": {"rfc_cursors": True}}, b={"smcr": {"rfc_cursors": True}})
    run_ends(e)
    check(all(g["rfc_cursors"] for g in e.pair.a.groups() + e.pair.b.groups()), "the cursors of the groups")
    e.pair.only_smcr()


main()
