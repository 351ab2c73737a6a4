"""
Thousands of connections at once: an echo server in a process of its own, and clients that open them all, exchange
bytes that no other connection ever had, half close, see the end, and come again.
"""
import select
import socket
import struct

from harness import Failure, PATIENCE, check, listener, same_bytes

CHUNK = 3000


def _serve(sock):
    """Echoes until the listener's process is killed; a connection that is done gets its end after its last byte."""
    sock.setblocking(False)
    ep = select.epoll()
    ep.register(sock, select.EPOLLIN)
    conns = {}
    while True:
        for fd, events in ep.poll():
            if fd == sock.fileno():
                for _ in range(64):
                    try:
                        s, _ = sock.accept()
                    except BlockingIOError:
                        break
                    s.setblocking(False)
                    conns[s.fileno()] = [s, bytearray(), False]
                    ep.register(s, select.EPOLLIN)
                continue
            s, out, _ = conn = conns[fd]
            try:
                if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) and not conn[2]:
                    part = s.recv(65536)
                    conn[2] = not part
                    out += part
                if out:
                    del out[:s.send(out)]
            except BlockingIOError:
                pass
            except OSError:
                conn[2], out[:] = True, b""
            if conn[2] and not out:
                del conns[fd]
                ep.unregister(fd)
                s.close()
            else:
                want = (0 if conn[2] else select.EPOLLIN) | (select.EPOLLOUT if out else 0)
                ep.modify(fd, want)


class echo_server:
    def __init__(self, t):
        sock = listener(t)
        self.at = sock.getsockname()[:2]
        self.helper = t.fork(_serve, sock)

    def ok(self):
        check(self.helper.alive(), "the echo server is alive")


def own_bytes(number, generation, n):
    """Bytes that no other connection has: every 8 of them name connection, generation and place."""
    base = (generation << 24 | number) & 0xffffffff
    return b"".join(struct.pack(">II", base, i) for i in range(n // 8 + 1))[:n]


class _Client:
    __slots__ = ("sock", "number", "data", "at", "out")

    def __init__(self, at, number, generation):
        self.sock = socket.socket()
        self.sock.setblocking(False)
        self.sock.connect_ex(at)
        self.number = number
        self.data = own_bytes(number, generation, CHUNK + number % 500)
        self.at = self.out = 0


def _everybody(clients, step, what):
    """Runs step(client, events) -> done for all clients until each is done."""
    ep = select.epoll()
    by_fd = {c.sock.fileno(): c for c in clients}
    for fd in by_fd:
        ep.register(fd, select.EPOLLIN | select.EPOLLOUT)
    while by_fd:
        ready = ep.poll(60 * PATIENCE)
        if not ready:
            raise Failure(f"{what}: no progress, {len(by_fd)} of {len(clients)} connections are not done")
        for fd, events in ready:
            c = by_fd.get(fd)
            if c is None:
                continue
            try:
                mask = step(c, events)
            except OSError as e:
                raise Failure(f"{what}: connection {c.number} after {c.out} bytes out, {c.at} back: {e}") from None
            if mask:
                ep.modify(fd, mask)
            else:
                del by_fd[fd]
                ep.unregister(fd)
    ep.close()


def _exchange(c, events, stop):
    """Sends up to `stop`, reads as much back; compares at once."""
    if events & select.EPOLLOUT and c.out < stop:
        try:
            c.out += c.sock.send(c.data[c.out:stop])
        except BlockingIOError:
            pass
    if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
        try:
            part = c.sock.recv(65536)
        except BlockingIOError:
            part = None
        if part is not None:
            check(part, f"connection {c.number}: the stream ends after {c.at} bytes")
            same_bytes(part, c.data[c.at:c.at + len(part)], f"connection {c.number}, from byte {c.at}")
            c.at += len(part)
    return (select.EPOLLIN if c.at < stop else 0) | (select.EPOLLOUT if c.out < stop else 0)


def _ending(c, events):
    if not events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
        return select.EPOLLIN
    check(c.sock.recv(100) == b"", f"connection {c.number}: bytes behind the echo")
    return 0


def rounds(t, at, count, generations, when_full, batch=500):
    """Each generation: opens `count` connections, a batch at a time; echoes half of the bytes on each; calls
    when_full(); echoes the rest; half closes all; waits for the end on all; closes."""
    for generation in range(generations):
        clients = []
        t.later(lambda cs=clients: [c.sock.close() for c in cs])
        while len(clients) < count:
            part = [_Client(at, len(clients) + i, generation) for i in range(min(batch, count - len(clients)))]
            clients += part
            _everybody(part, lambda c, e: _exchange(c, e, len(c.data) // 2), f"generation {generation}, first half")
        when_full()
        _everybody(clients, lambda c, e: _exchange(c, e, len(c.data)), f"generation {generation}, second half")
        for c in clients:
            c.sock.shutdown(socket.SHUT_WR)
        _everybody(clients, _ending, f"generation {generation}, ends")
        for c in clients:
            c.sock.close()
