#!/usr/bin/env python3
"""What happens when SMC-R is not possible: data and urgent bytes on TCP, or refusal; and the reported reason."""
import socket

import clc
from harness import (PATIENCE, Pair, connect_to, exchange, logs, pair_to, Server, case, check, echo, equal, hostport,
                     in_thread, main, pattern, read_marked, recv_all, recv_exact, same_bytes, unlinkable_pair,
                     wait_until, Daemon, SHRINK)
from many import echo_server, rounds

def outcome(s):
    try:
        return recv_all(s)
    except ConnectionResetError:
        return "reset"


def echo_until_end(s):
    try:
        while data := s.recv(65536):
            s.sendall(data)
    except OSError:
        pass


def all_tcp(daemon, count):
    """Every connection fell back, and each says why in words."""
    conns = daemon.connections()
    equal(len(conns), count, f"connections of daemon {daemon.name}")
    for c in conns:
        equal(c["mode"], "tcp", f"mode of {c}")
        why = c["reason"]
        check(why["local_text"] or why["peer_text"] or why["held_off"], f"a reason in {c}")


@case("an ingress whose peer declines: data and urgent bytes in both directions, half close")
def _(t):
    up, down = pattern(3000000, 1), pattern(3000000, 2)

    def declining(s):
        equal(clc.read_message(s)[0], clc.PROPOSAL, "first message of the daemon")
        s.sendall(clc.decline())
        s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        data, marks = read_marked(s, 6)
        same_bytes(data, b"0123!5", "urgent at the server")
        equal(marks, [4], "place of the urgent byte at the server")
        s.sendall(b"abc")
        s.send(b"!", socket.MSG_OOB)
        s.sendall(b"e")
        reader = in_thread(recv_all, s)
        s.sendall(down)
        same_bytes(reader.result(), up, "at the server")
        s.shutdown(socket.SHUT_WR)
    peer = Server(t, declining)
    port = t.port()
    a = Daemon(t, "a", {"log_level": "info", "devices": [{"type": "siw", "address": t.addr}],
                        "ingress": [{"name": "x", "listen": hostport(t.addr, port), "to": hostport(*peer.at)}]})
    c = connect_to((t.addr, port), 30)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    c.sendall(b"0123")
    c.send(b"!", socket.MSG_OOB)
    c.sendall(b"5")
    data, marks = read_marked(c, 5)
    same_bytes(data, b"abc!e", "urgent at the client")
    equal(marks, [3], "place of the urgent byte at the client")
    all_tcp(a, 1)
    equal(a.connections()[0]["reason"]["peer_code"], "0x03030000", "the peer's reason")
    t.note(a.ctl_text("connections"))

    def send():
        c.sendall(up)
        c.shutdown(socket.SHUT_WR)
    writer = in_thread(send)
    same_bytes(recv_all(c), down, "at the client")
    writer.result()
    peer.ok()
    logs(a, "no SMC-R")


@case("an egress whose client declines at once, or proposes RoCE only: data and urgent bytes on TCP")
def _(t):
    pair = pair_to(t, echo)
    for how in ("decline", "propose"):
        s = connect_to((t.addr, pair.middle["x"]), 30)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        if how == "decline":
            s.sendall(clc.decline())
        else:
            s.sendall(clc.proposal())
            equal(clc.read_message(s)[0], clc.DECLINE, "answer to a RoCE-only Proposal")
        exchange(s, pattern(2000000, 3), "echo on TCP")
        all_tcp(pair.b, 1)
        s.close()
        pair.quiet()
    pair.server.ok()


@case("urgent bytes reach the server of a fallen-back egress")
def _(t):
    got = []

    def serve(s):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        got.append(read_marked(s, 6))
        s.sendall(b"ab")
        s.send(b"!", socket.MSG_OOB)
    pair = pair_to(t, serve)
    s = connect_to((t.addr, pair.middle["x"]), 30)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    s.sendall(clc.decline() + b"0123")
    wait_until(lambda: any(c["bytes_to_app"] == 4 for c in pair.b.connections()), "four bytes went to the server")
    s.send(b"!", socket.MSG_OOB)
    s.sendall(b"5")
    equal(read_marked(s, 3), (b"ab!", [2]), "at the client")
    equal(got, [(b"0123!5", [4])], "at the server")
    pair.server.ok()


@case("two daemons that cannot make a link: all on TCP, each side reports the reason, no data lost", timeout=90)
def _(t):
    server = Server(t, echo)
    pair = unlinkable_pair(t, {"x": server.at})
    socks = [pair.connect() for _ in range(10)]
    data = pattern(1000000, 4)
    for s in socks:
        exchange(s, data, "echo on TCP")
    for d in (pair.a, pair.b):
        all_tcp(d, 10)
        equal(sum(s["fallbacks"] for s in d.services()), 10, f"fallbacks counted by daemon {d.name}")
    t.note(pair.a.ctl_text("connections"))
    for s in socks:
        s.shutdown(socket.SHUT_WR)
        same_bytes(recv_all(s), b"", "after half close")
    pair.quiet()
    server.ok()


@case('fallback = "refuse" at the ingress: the client is reset and no byte uses TCP')
def _(t):
    seen = []
    server = Server(t, lambda s: seen.append(s.recv(100)))
    pair = unlinkable_pair(t, {"x": server.at}, ingress={"fallback": "refuse"})
    for _ in range(5):
        try:
            c = pair.connect()
            c.sendall(b"secret")
            got = outcome(c)
        except ConnectionError:
            got = "reset"
        equal(got, "reset", "at the client")
    pair.quiet()
    check(not any(seen), f"bytes at the server: {seen}")
    equal(sum(s["resets"] > 0 for s in pair.a.services()), 1, "the service counts them")


@case('fallback = "refuse" against a peer that declines, and at an egress')
def _(t):
    after = []

    def declining(s):
        clc.read_message(s)
        s.sendall(clc.decline())
        try:
            after.append(s.recv(100))
        except ConnectionResetError:
            after.append(b"")
    peer, server = Server(t, declining), Server(t, echo)
    port = t.port()
    Daemon(t, "a", {"devices": [{"type": "siw", "address": t.addr}],
                    "ingress": [{"name": "x", "listen": hostport(t.addr, port), "to": hostport(*peer.at),
                                 "fallback": "refuse"}]})
    c = connect_to((t.addr, port), 30)
    c.sendall(b"secret")
    equal(outcome(c), "reset", "at the client")
    wait_until(lambda: after, "the peer has seen the end")
    equal(after, [b""], "bytes at the peer after its Decline")

    pair = Pair(t, {"y": server.at}, egress={"fallback": "refuse"})
    for first in (clc.decline(), clc.proposal()):
        s = connect_to((t.addr, pair.middle["y"]), 30)
        s.sendall(first)
        got = outcome(s)
        check(got == "reset" or got[:4] in (b"", clc.EYE) and b"secret" not in got, f"at the SMC client: {got}")
    c = pair.connect()
    c.sendall(b"fine")
    same_bytes(recv_exact(c, 4), b"fine", "a good peer is served")


@case("a server slow to accept: TCP before the peer's timeout, and no hold-off")
def _(t):
    slow = socket.socket()
    t.later(slow.close)
    slow.bind((t.addr, t.port()))
    slow.listen(0)
    for _ in range(3):		# the backlog is full: a SYN is dropped, and said again after 1, 3, 7 s
        c = socket.socket()
        t.later(c.close)
        c.setblocking(False)
        c.connect_ex(slow.getsockname())
    pair = Pair(t, {"x": slow.getsockname()})
    c = pair.connect()
    c.sendall(b"hello")
    wait_until(lambda: [x["mode"] for x in pair.a.connections()] == ["tcp"], "the ingress has fallen back")
    equal(pair.a.connections()[0]["reason"]["peer_text"],
          "the server behind the gateway was not connected in time for SMC-R", "why")
    slow.listen(100)
    slow.settimeout(20 * PATIENCE)
    slow.setblocking(True)
    served = []

    def serve():
        while True:
            try:
                s, _ = slow.accept()
            except OSError:
                return
            served.append(s)
            in_thread(echo_until_end, s)
    in_thread(serve)
    same_bytes(recv_exact(c, 5), b"hello", "echo")
    late = pair.connect()
    late.sendall(b"again")
    same_bytes(recv_exact(late, 5), b"again", "echo")
    equal(sorted(x["mode"] for x in pair.a.connections()), ["smcr", "tcp"], "modes")
    for d in (pair.a, pair.b):
        equal(d.counters()["first_contacts_failed"], 0, f"failed first contacts of {d.name}")
        equal(d.counters()["fallback_held_off"], 0, f"held off at {d.name}")


@case("3,000 fallen-back connections echo, half close and reconnect", timeout=240)
def _(t):
    count = 3000 // SHRINK
    server = echo_server(t)
    pair = unlinkable_pair(t, {"x": server.at}, a={"smcr": {"hold_off": "10s"}})
    before = [d.rss() for d in (pair.a, pair.b)]

    def full():
        for d in (pair.a, pair.b):
            all_tcp(d, count)
        after = [d.rss() for d in (pair.a, pair.b)]
        t.note("resident memory per fallen-back connection: "
               + " and ".join(str((y - x) // count) for x, y in zip(before, after)) + " bytes")
    rounds(t, (pair.host, pair.port["x"]), count, 2, full)
    pair.quiet(60)
    server.ok()


main()
