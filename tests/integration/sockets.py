"""Sockets of the tests: clients, listeners, servers, how a stream ends; see harness.py."""
import fcntl
import os
import select
import socket
import struct
import sys
import termios
import threading
import traceback

from basics import PATIENCE, UNIX, check, pattern, same_bytes


def recv_exact(s, n):
    """n bytes, or what came before the end."""
    out = bytearray(n)
    view, at = memoryview(out), 0
    while at < n:
        got = s.recv_into(view[at:], min(n - at, 1 << 20))
        if got == 0:
            break
        at += got
    return bytes(out[:at])


def outcome(s):
    """How the stream ends: "reset" or "end", with the bytes that came before."""
    got = bytearray()
    try:
        while part := s.recv(1 << 16):
            got += part
        return "end", bytes(got)
    except ConnectionResetError:
        return "reset", bytes(got)


def recv_all(s):
    """Everything up to the end of the stream."""
    parts = []
    while True:
        part = s.recv(1 << 18)
        if not part:
            return b"".join(parts)
        parts.append(part)


def at_mark(s):
    """Is the next byte the urgent one? (SIOCATMARK)"""
    return struct.unpack("i", fcntl.ioctl(s, 0x8905, b"\0" * 4))[0] != 0


def read_marked(s, total):
    """Reads total bytes from a socket with SO_OOBINLINE; gives them, and the places where a byte was seen as urgent."""
    out, marks = bytearray(), []
    while len(out) < total:
        check(select.select([s], [], [], 20 * PATIENCE)[0], f"{len(out)} of {total} bytes came")
        if at_mark(s) and (not marks or marks[-1] != len(out)):
            marks.append(len(out))
            part = s.recv(1)
        else:
            part = s.recv(total - len(out))	# stops at the mark
        if not part:
            break
        out += part
    return bytes(out), marks


def unread(s):
    """Bytes that have arrived."""
    return int.from_bytes(fcntl.ioctl(s, termios.FIONREAD, bytes(4)), sys.byteorder)


def fill(s, reader):
    """Sends zeros until nothing goes on to the other end, `reader`, which does not read: how many. A gateway that gets no time from
    the machine takes nothing for a while, too; so nothing may arrive from one wait to the next."""
    before, sent, had = s.gettimeout(), 0, 0
    s.settimeout(0.5 * PATIENCE)
    while True:
        try:
            sent += s.send(bytes(1 << 16))
        except TimeoutError:
            if 0 < had == unread(reader):
                break
            had = unread(reader)
    s.settimeout(before)	# raw: as it was
    return sent


def set_reset_on_close(s):
    """close() then sends RST."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Client(socket.socket):
    """A client's socket. The other end may reset it so early that connect() already fails of that, on a busy machine: then the
    first call after it fails, as on any other."""

    early = None

    def connect(self, at):
        try:
            super().connect(at)
        except ConnectionResetError as e:
            self.early = e


def _unless_reset(name):
    def call(self, *args):
        if self.early:
            raise self.early
        return getattr(socket.socket, name)(self, *args)
    return call


for _name in ("recv", "recv_into", "send", "sendall", "shutdown", "getpeername"):
    setattr(Client, _name, _unless_reset(_name))


def connect_to(at, timeout=20.0, source=None):
    """A client's socket: at (host, port) or the path of a UNIX socket, from the address `source`. The timeout, before PATIENCE, is
    that of later calls, too."""
    unix = isinstance(at, str)
    s = Client(socket.AF_UNIX if unix else socket.AF_INET6 if ":" in at[0] else socket.AF_INET, socket.SOCK_STREAM)
    try:
        seconds = timeout * PATIENCE
        if unix:	# it waits for a place in the backlog only when it blocks
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(seconds) + 1, 0))
        else:
            s.settimeout(seconds)
        if source:
            s.bind((source, 0))	# raw: as connect() would choose it
        s.connect(at)	# raw: here alone
        s.settimeout(seconds)
        return s
    except BaseException:
        s.close()
        raise


unix_connect = connect_to


def turned_away(connect, *args):
    """How a client fares that is not to be served, connected by that function: True when it gets a reset or an end without a
    byte."""
    try:
        with connect(*args) as s:
            return s.recv(100) == b""
    except ConnectionError:
        return True


def unix_listener(t, path=None, backlog=4096):
    """A listening UNIX socket, for all users."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    t.later(s.close)
    path = path or t.socket_path("server")
    s.bind(path)
    os.chmod(path, 0o777)
    s.listen(backlog)
    s.settimeout(20 * PATIENCE)
    return s


def listener(t, host=None, port=None, backlog=4096):
    """A listening socket on the test's address."""
    host = host or t.addr
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((host, port or (t.port6() if ":" in host else t.port())))
    s.listen(backlog)
    s.settimeout(20 * PATIENCE)
    t.later(s.close)
    return s


class Server:
    """Runs fn(socket) in a thread for each connection to a port, or UNIX socket, of its own; `errors` collects what went
    wrong."""

    def __init__(self, t, fn, host=None, port=None, unix=None):
        """unix: True, or a path."""
        if (UNIX and not host and not port) if unix is None else unix:
            self.sock = unix_listener(t, unix if isinstance(unix, str) else None)
            self.host, self.port = f"unix:{self.sock.getsockname()}", 0
        else:
            self.sock = listener(t, host, port)
            self.host, self.port = self.sock.getsockname()[:2]
        self.errors = []
        self.fn = fn
        self.sock.settimeout(None)
        self.closing = False
        t.later(self._close)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def at(self):
        return (self.host, self.port)

    def _close(self):
        """Stops listening; may be called by a test."""
        if self.closing:
            return
        self.closing = True
        # Wakes the thread: a call that is under way when the socket is closed may be restarted by the kernel, with the number
        # of a descriptor that is the next case's server by then.
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            s.settimeout(30 * PATIENCE)
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        try:
            with s:
                self.fn(s)
        except Exception:
            if not self.closing:
                self.errors.append(traceback.format_exc())

    def ok(self):
        check(not self.errors, f"in the server: {self.errors and self.errors[0]}")


def echo(s):
    """Sends back what comes, until the client is done."""
    while True:
        data = s.recv(1 << 16)
        if not data:
            return
        s.sendall(data)


def in_thread(fn, *args):
    """Runs fn beside the test; join() gives its value or raises what it raised."""
    class Task(threading.Thread):
        value = error = None

        def run(self):
            try:
                self.value = fn(*args)
            except BaseException as e:
                self.error = e

        def result(self, timeout=60.0):
            self.join(timeout * PATIENCE)
            check(not self.is_alive(), f"{getattr(fn, '__name__', fn)} still runs after {timeout * PATIENCE:.0f} s")
            if self.error:
                raise self.error
            return self.value
    task = Task(daemon=True)
    task.start()
    return task


def exchange(s, data, what="echo"):
    """The data to an echo and back, both ways at the same time."""
    writer = in_thread(s.sendall, data)
    same_bytes(recv_exact(s, len(data)), data, what)
    writer.result()


def works(s, seed=0, n=30000):
    """A connection to an echo carries n bytes there and back."""
    exchange(s, pattern(n, seed))
