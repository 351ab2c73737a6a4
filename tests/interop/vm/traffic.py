"""
Roles of clients and servers on sockets of any kind, which afsmc.py makes and whose results it carries between machines.
A server's role: fn(socket, settings, mode); mode() has the kernel asked how this connection runs. A client's: fn(connect,
settings, mode), with connect() for as many as it wants and mode(socket).
"""
import errno
import os
import select
import socket
import struct
import threading
import time
import zlib

from harness import PATIENCE, check, equal, pattern, read_marked, recv_exact, same_bytes, set_reset_on_close

BLOCK = pattern(1 << 20, 7)
# What a program gets from its kernel when the connection was aborted: of AF_SMC ENOTCONN as well.
GONE = (errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ENOTCONN)
ROUNDS = {}		# of the busy client, by connection, so far


def buffers(s, settings):
    """Sizes of the buffers, for the connections of a listener as well."""
    if size := settings.get("buffer"):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size // 2)	# the kernel takes it twice
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size // 2)


def prepare(s):
    s.settimeout(30 * PATIENCE)


def _send(s, size):
    """Bytes that differ from place to place; their checksum."""
    crc = sent = 0
    while sent < size:
        at = sent * 7 % 977
        part = BLOCK[at:at + min(size - sent, 1 << 18)]
        crc = zlib.crc32(part, crc)
        s.sendall(part)
        sent += len(part)
    return crc


def _receive(s, size=None):
    """So many bytes, or all up to the end: count and checksum."""
    crc = got = 0
    while size is None or got < size:
        part = s.recv(min(1 << 18, size - got if size is not None else 1 << 18))
        if not part:
            break
        crc = zlib.crc32(part, crc)
        got += len(part)
    return got, crc


class _Beside(threading.Thread):
    def __init__(self, fn, *args):
        super().__init__(daemon=True)
        self.fn, self.args, self.value, self.error = fn, args, None, None
        self.start()

    def run(self):
        try:
            self.value = self.fn(*self.args)
        except Exception as e:
            self.error = e

    def result(self):
        self.join()
        if self.error:
            raise self.error
        return self.value


def _both_ways(s, size):
    """Sends and receives at the same time and compares: both ends send the same."""
    start = time.monotonic()
    writer = _Beside(_send, s, size)
    got, crc = _receive(s, size)
    sent = writer.result()
    took = time.monotonic() - start
    equal((got, crc), (size, sent), "bytes that came, their checksum")
    return took


# -- servers --


def echo_server(s, settings, mode):
    """Sends back what comes, to the end. How much that was."""
    count, asked = 0, False
    while data := s.recv(1 << 16):
        if not asked:
            asked = True
            mode()
        s.sendall(data)
        count += len(data)
    return count


def bulk_server(s, settings, mode):
    mode()
    took = _both_ways(s, settings["size"])
    equal(s.recv(1), b"", "the end")
    return took


def sink_server(s, settings, mode):
    """Takes all there is, says so with one byte; seconds from the first to the last byte."""
    mode()
    first = s.recv(1)
    start = time.monotonic()
    got, crc = _receive(s, settings["size"] - 1)
    took = time.monotonic() - start
    check(first and got == settings["size"] - 1, f"{got + 1} bytes came")
    s.sendall(b"!")
    s.recv(1)
    return took


def half_server(s, settings, mode):
    """Sends, ends its direction, reads on to the end; with "late" it ends only after the other one."""
    mode()
    size = settings["size"]
    if settings["late"]:
        got = _receive(s)
        crc = _send(s, size)
    else:
        crc = _send(s, size)
        s.shutdown(socket.SHUT_WR)
        got = _receive(s)
    equal(got, (size, crc), "bytes up to the end, and checksum")


def abort_server(s, settings, mode):
    """With "server" it goes with data unread, else it learns that the client did."""
    mode()
    if settings["server"]:
        _unread(s)
        set_reset_on_close(s)
        return "aborted"
    return _aborted(s)


def words_server(s, settings, mode):
    """Begins to read when the client has reset the connection: how much came, and how it ended."""
    mode()
    s.sendall(b"greeting")
    time.sleep(settings["pause"])	# raw: nothing tells this program of the reset
    got = 0
    try:
        while part := s.recv(1 << 16):
            got += len(part)
        return got, "end"
    except OSError as e:
        return got, errno.errorcode.get(e.errno, str(e))


def urgent_server(s, settings, mode):
    mode()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    data, marks = read_marked(s, 16)
    _send_urgent(s)
    s.recv(1)
    return data.decode(), marks


def slow_server(s, settings, mode):
    """Reads only after a while, and then in small pieces at first."""
    mode()
    time.sleep(settings["pause"])	# raw: the slow reader's
    crc = got = 0
    while got < settings["size"]:
        part = s.recv(1000 if got < 50000 else 1 << 18)
        if not part:
            break
        crc = zlib.crc32(part, crc)
        got += len(part)
    s.sendall(struct.pack(">QI", got, crc))
    s.recv(1)
    return got


def _told(settings, what):
    """There is a file."""
    return os.path.exists(os.path.join(os.environ["SMCRD_VM_SHARE"], settings[what]))


def _stream(s, settings, on=lambda: None):
    """Sends until a stop call, then ends its direction; count and checksum."""
    size = crc = 0
    while not _told(settings, "until"):
        part = pattern(5000, size)
        s.sendall(part)
        size, crc = size + len(part), zlib.crc32(part, crc)
        on()
        time.sleep(0.02)		# raw: others want the machine, too
    s.shutdown(socket.SHUT_WR)
    return size, crc


def _last(s, settings):
    """Waits for the word, sends what fits into all buffers, and closes with it under way; count and checksum."""
    while not _told(settings, "close"):
        time.sleep(0.02)	# raw: between two looks
    crc = _send(s, settings["last"])
    return settings["last"], crc


def _end(s, kind, first, settings, on=lambda: None):
    """This end's part, what it sent and what came: of a connection that is half closed from its start, by the one that is
    `first`, while the other sends on ("half"), or says something at the end ("late"); or that the one closes behind its last
    bytes ("close")."""
    if kind == "late" and not first:
        got = _receive(s)
        while not _told(settings, "until"):
            time.sleep(0.02)	# raw: between two looks
        return {"got": list(got), "sent": [settings["last"], _send(s, settings["last"])]}
    if kind in ("half", "late"):
        if first:
            sent = _send(s, 1000)
            s.shutdown(socket.SHUT_WR)
            got = crc = 0
            while part := s.recv(1 << 16):
                got, crc = got + len(part), zlib.crc32(part, crc)
                on()
            return {"sent": [1000, sent], "got": [got, crc]}
        got = _receive(s)
        return {"got": list(got), "sent": list(_stream(s, settings, on))}
    if first:
        return {"sent": list(_last(s, settings)), "got": [0, 0]}
    return {"got": list(_receive(s)), "sent": [0, 0]}


def ends_server(s, settings, mode):
    """The client's first byte says which of its connections it is."""
    i = recv_exact(s, 1)[0]
    if i == 0:
        mode()
    s.sendall(b"!")
    kind, by = settings["ends"][i]
    try:
        return [i, _end(s, kind, by == "server", settings)]
    except OSError as e:
        if e.errno not in GONE:
            raise
        return [i, "reset"]


# -- clients --


def bulk_client(connect, settings, mode):
    with connect() as s:
        mode(s)
        took = _both_ways(s, settings["size"])
    return took


def sink_client(connect, settings, mode):
    with connect() as s:
        mode(s)
        start = time.monotonic()
        _send(s, settings["size"])
        equal(s.recv(1), b"!", "the server's word")
        return time.monotonic() - start


def ping_client(connect, settings, mode):
    """One byte there and back, so many times: seconds of a round."""
    with connect() as s:
        mode(s)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = time.monotonic()
        for i in range(settings["count"]):
            s.sendall(bytes([i & 255]))
            equal(s.recv(1), bytes([i & 255]), f"byte {i}")
        return (time.monotonic() - start) / settings["count"]


def many_client(connect, settings, mode):
    """All are open at the same time, so many ("making") made at the same time, each with bytes of its own, twice; every tenth has the
    kernel asked. Seconds until the last one had its first bytes."""
    making = threading.Semaphore(settings.get("making", settings["count"]))

    def one(i):
        with making:
            s = connect()
            s.sendall(pattern(2000, i))
            same_bytes(recv_exact(s, 2000), pattern(2000, i), f"first echo of {i}")
            return s
    start = time.monotonic()
    socks, failures = [], []
    for i, x in enumerate([_Beside(one, i) for i in range(settings["count"])]):
        try:
            socks.append(x.result())
        except Exception as e:
            failures.append(f"{i}: {type(e).__name__}: {e}")
    took = time.monotonic() - start
    check(not failures, f"{len(failures)} of {settings['count']} failed within {took:.1f} s: {failures[:3]}")
    for i, s in enumerate(socks):
        s.sendall(pattern(2000, i + 1))
    for i, s in enumerate(socks):
        same_bytes(recv_exact(s, 2000), pattern(2000, i + 1), f"second echo of {i}")
    for s in socks[::10]:
        mode(s)
    for s in socks:
        s.close()
    return took


def short_client(connect, settings, mode):
    """One after another; seconds of each."""
    start = time.monotonic()
    for i in range(settings["count"]):
        with connect() as s:
            data = pattern(100, i)
            s.sendall(data)
            same_bytes(recv_exact(s, 100), data, f"echo of {i}")
            if i % 50 == 0:
                mode(s)
    return (time.monotonic() - start) / settings["count"]


def half_client(connect, settings, mode):
    with connect() as s:
        mode(s)
        half_server(s, {**settings, "late": not settings["late"]}, lambda: None)


def abort_client(connect, settings, mode):
    with connect() as s:
        mode(s)
        if settings["server"]:
            return _aborted(s)
        _unread(s)
        set_reset_on_close(s)
        return "aborted"


def words_client(connect, settings, mode):
    """Leaves most of the greeting unread."""
    with connect() as s:
        mode(s)
        s.recv(1)
        s.sendall(pattern(settings["size"]))
        time.sleep(settings["rests"])	# raw: for the kernel to send it
        set_reset_on_close(s)


def _unread(s):
    """Says something, and waits for data that it will not read."""
    s.sendall(b"x" * 1000)
    check(select.select([s], [], [], 20 * PATIENCE)[0], "data to leave unread")


def _aborted(s):
    """Sends what the other end leaves unread; the end as seen here."""
    recv_exact(s, 1000)
    s.sendall(b"y" * 5000)
    try:
        return "end" if s.recv(1) == b"" else "data"
    except ConnectionResetError:
        return "reset"


def _send_urgent(s):
    s.sendall(b"0123456789")
    time.sleep(0.2)	# raw: or it would be one segment
    s.send(b"!", socket.MSG_OOB)
    time.sleep(0.2)	# raw: or it would be one segment
    s.sendall(b"abcde")


def urgent_client(connect, settings, mode):
    with connect() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        mode(s)
        _send_urgent(s)
        data, marks = read_marked(s, 16)
        return data.decode(), marks


def slow_client(connect, settings, mode):
    """Writes all, which the server is slow to take; how far it came at once, and how long all took."""
    with connect() as s:
        mode(s)
        start = time.monotonic()
        crc = _send(s, settings["size"])
        took = time.monotonic() - start
        got = struct.unpack(">QI", recv_exact(s, 12))
        equal(got, (settings["size"], crc), "bytes that came, their checksum")
        return took


def _steps(s, settings, i):
    """Blocks both ways, each checked, until a stop call."""
    size, over = settings["size"], os.path.join(os.environ["SMCRD_VM_SHARE"], settings["until"])
    while not os.path.exists(over):
        data = pattern(size, i * 1000003 + ROUNDS[i])
        writer = _Beside(s.sendall, data)
        got = recv_exact(s, size)
        same_bytes(got, data[:len(got)], f"connection {i}, round {ROUNDS[i]}")
        if len(got) < size:
            return "end"
        writer.result()
        ROUNDS[i] += 1
        time.sleep(0.1)		# raw: leaves the emulated processor to the daemons
    return "done"


def busy_client(connect, settings, mode):
    """So many connections of which some always have bytes under way, until there is a file: how each one ended."""
    def one(i):
        try:
            with connect() as s:
                mode(s)
                return _steps(s, settings, i)
        except OSError as e:
            return "reset" if e.errno in GONE else str(e)
        except Exception as e:
            return f"{type(e).__name__}: {e}"
    ROUNDS.clear()
    ROUNDS.update((i, 0) for i in range(settings["count"]))
    threads = [_Beside(one, i) for i in range(settings["count"])]
    return [x.result() for x in threads]


def try_client(connect, settings, mode):
    """One connection that may fail at any moment: how it ended, and after how long it was connected and had ended."""
    start = time.monotonic()
    connected = None
    try:
        with connect() as s:
            connected = time.monotonic() - start
            data = pattern(settings["size"], 5)
            s.sendall(data)
            got = recv_exact(s, len(data))
            same_bytes(got, data[:len(got)], "echo")
            if len(got) < len(data):
                return {"how": "end", "connected": connected, "over": time.monotonic() - start}
            mode(s)
            how = "echo"
    except OSError as e:
        how = errno.errorcode.get(e.errno, str(e))
    return {"how": how, "connected": connected, "over": time.monotonic() - start}


def ends_client(connect, settings, mode):
    """Connections that end in all the ways of settings["ends"], [kind, the first end]: what became of each. Those that are half
    closed count in ROUNDS."""
    kinds = settings["ends"]

    def one(i, s):
        def on():
            if i in ROUNDS:
                ROUNDS[i] += 1
        try:
            with s:
                return _end(s, kinds[i][0], kinds[i][1] == "client", settings, on)
        except OSError as e:
            return "reset" if e.errno in GONE else str(e)
        finally:
            if i in ROUNDS:
                ROUNDS[i] += 1000000	# enough
    ROUNDS.clear()
    ROUNDS.update((i, 0) for i, x in enumerate(kinds) if x[0] == "half")
    threads = []
    for i in range(len(kinds)):
        s = connect()
        if i == 0:
            mode(s)
        s.sendall(bytes([i]))
        equal(s.recv(1), b"!", "the server's word")
        threads.append(_Beside(one, i, s))
    return [x.result() for x in threads]


SERVERS = {"echo": echo_server, "bulk": bulk_server, "sink": sink_server, "half": half_server, "abort": abort_server,
           "urgent": urgent_server, "words": words_server, "slow": slow_server, "ends": ends_server}
CLIENTS = {"bulk": bulk_client, "sink": sink_client, "ping": ping_client, "many": many_client, "short": short_client,
           "half": half_client, "abort": abort_client, "urgent": urgent_client, "words": words_client, "slow": slow_client, "try": try_client,
           "busy": busy_client, "ends": ends_client}
