#!/usr/bin/env python3
"""
Bytes that a program has sent before it resets its connection arrive before the reset, as they do directly: in both directions, on
SMC-R and after a fallback, in set-up, behind a half close, with readers that are slow, or do not read at all.
"""
import array
import fcntl
import socket
import termios
import time

from harness import (PATIENCE, SHRINK, UNIX, Pair, Server, case, check, equal, fill, in_thread, listener, main, outcome, pattern,
                     recv_exact, same_bytes, set_reset_on_close, unix_listener, unlinkable_pair, wait_until)

MAKERS = {"on SMC-R": Pair, "on TCP": unlinkable_pair}
GREETING = b"220 mail.example ready\r\n"


def listening(t):
    """A server's socket and its address for a pair."""
    if not UNIX:
        lsn = listener(t)
        return lsn, lsn.getsockname()[:2]
    lsn = unix_listener(t)
    return lsn, (f"unix:{lsn.getsockname()}", 0)


def ends(t, pair, lsn):
    client = pair.connect()
    server, _ = lsn.accept()
    server.settimeout(client.gettimeout())
    t.later(server.close)
    return client, server


def each_way(t, make, **kw):
    """For both directions: a connection with a reset to come, the program that resets first."""
    lsn, at = listening(t)
    pair = make(t, {"x": at}, **kw)
    for client_resets in (True, False):
        client, server = ends(t, pair, lsn)
        yield pair, *((client, server) if client_resets else (server, client)), client_resets


def reset(s):
    """Closes by RST what the kernel at the other end has acknowledged; a UNIX socket by bytes that were not read."""
    if not UNIX:
        def unsent():
            return array.array("i", fcntl.ioctl(s, termios.TIOCOUTQ, b"\0" * 4))[0]
        wait_until(lambda: unsent() == 0, "the gateway has all bytes")
        set_reset_on_close(s)
    s.close()


def ends_by_reset(s, sent, what):
    kind, got = outcome(s)
    same_bytes(got, sent, f"{what}: bytes before the reset")
    check(kind == "reset" or UNIX, f"{what}: the stream ends by {kind}")  # of a UNIX socket only if something was left unread


def over(pair):
    pair.quiet()
    pair.as_made()


for name, make in MAKERS.items():
    @case(f"{name}: a line and a close with the greeting unread, by many clients")
    def _(t, make=make):
        lines = set()

        def serve(s):
            s.sendall(GREETING)
            lines.add(outcome(s))
        pair = make(t, {"x": Server(t, serve).at})
        want = set()
        for n in range(100 // SHRINK):
            with pair.connect() as c:
                c.recv(1)
                c.sendall(b"line %d\n" % n)
            want.add(b"line %d\n" % n)
        wait_until(lambda: {line for _, line in lines} == want, "all lines have come")
        wait_until(lambda: UNIX or {kind for kind, _ in lines} == {"reset"}, "all ended by a reset")
        over(pair)

    @case(f"{name}: a line of the server, and a close with the request unread")
    def _(t, make=make):
        def serve(s):
            s.recv(1)
            s.sendall(GREETING)
        pair = make(t, {"x": Server(t, serve).at})
        for _ in range(50 // SHRINK):
            c = pair.connect()
            c.sendall(b"EHLO client.example\r\n")
            ends_by_reset(c, GREETING, "at the client")
            c.close()
        over(pair)

    @case(f"{name}: before data may flow")
    def _(t, make=make):
        got = []
        pair = make(t, {"x": Server(t, lambda s: got.append(outcome(s))).at})
        for n in range(60 // SHRINK):
            c = pair.connect()
            c.sendall(b"%d" % n)
            if not UNIX:
                set_reset_on_close(c)
            c.close()
        wait_until(lambda: len(got) == 60 // SHRINK, "all have come")
        equal({data for _, data in got}, {b"%d" % n for n in range(60 // SHRINK)}, "bytes")
        check(UNIX or {kind for kind, _ in got} == {"reset"}, "all end by a reset")
        over(pair)

    @case(f"{name}: bulk, with a slow reader")
    def _(t, make=make):
        data, first = pattern((3 << 20) + 900000), 3 << 20
        grace = 1.5 * PATIENCE
        short = {"smcr": {"reset_grace": f"{grace * 1000:.0f}ms"}}
        for pair, a, b, way in each_way(t, make, a=short, b=short):
            if not UNIX:	# a large buffer opens its window in steps that take longer than grace
                b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            b.sendall(b"for nobody")
            writer = in_thread(a.sendall, data)
            same_bytes(recv_exact(b, first), data[:first], "the first bytes")
            writer.result()
            reset(a)
            got = bytearray()
            end = time.monotonic() + 2 * grace
            try:
                while part := b.recv(1 << 15):
                    got += part
                    time.sleep(max(0, min(grace / 15, end - time.monotonic())))	# raw: a slow reader
            except ConnectionResetError:
                pass
            same_bytes(bytes(got), data[first:], f"client resets: {way}: the last bytes")
            over(pair)

    @case(f"{name}: after the other end's end of data")
    def _(t, make=make):
        for pair, a, b, way in each_way(t, make):
            b.sendall(b"for nobody")
            b.shutdown(socket.SHUT_WR)
            equal(a.recv(1), b"f", "what a reads")
            a.sendall(b"last words")
            reset(a)
            ends_by_reset(b, b"last words", f"client resets: {way}")
            over(pair)

    @case(f"{name}: a program that does not read delays a reset for reset_grace")
    def _(t, make=make):
        grace = {"smcr": {"reset_grace": "1500ms"}}
        for pair, a, b, way in each_way(t, make, a=grace, b=grace):
            b.sendall(b"for nobody")
            sent = fill(a, b)
            start = time.monotonic()
            set_reset_on_close(a) if not UNIX else None
            a.close()
            over(pair)
            check(time.monotonic() - start > 1.4, f"the connection ended after {time.monotonic() - start:.3f} s")
            kind, got = outcome(b)
            check(kind == "reset" or UNIX, f"client resets: {way}: the stream ends by {kind}")
            check(0 < len(got) <= sent and not got.strip(b"\0"), f"{len(got)} of {sent} bytes are what was sent")


@case("data that has arrived when the other daemon is killed is delivered")
def _(t):
    data = pattern(200000)
    lsn, at = listening(t)
    pair = Pair(t, {"x": at})
    client, server = ends(t, pair, lsn)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sendall(data)
    wait_until(lambda: pair.b.counters()["bytes_received"] >= len(data), "b has all bytes")
    pair.a.kill()
    wait_until(lambda: not any(c["mode"] == "smcr" and c["state"] == "SMC-R" for c in pair.b.connections()), "b knows")
    ends_by_reset(server, data, "at the server")
    wait_until(lambda: not pair.b.connections(), "nothing is left at b")


main()
