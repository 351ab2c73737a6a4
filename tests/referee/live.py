"""Conversations that go on while something happens to the world: each notes how it ended, if it did, and every byte is looked at."""
import ctypes
import os
import socket
import threading
import time

from harness import PATIENCE, pattern, recv_exact

CLONE_NEWNET = 0x40000000
DATA = pattern(1 << 20, 77)
AGAIN = memoryview(DATA + DATA)
PAUSE = 0.05


def data_at(at, n):
    """n bytes of DATA again and again, from that place on."""
    at %= len(DATA)
    return AGAIN[at:at + n]


def socket_in(pid):
    """A TCP socket in the network namespace of that process: a socket's is its thread's when it is made."""
    made = []

    def make():
        fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET) == 0:
            made.append(socket.socket())
        os.close(fd)
    t = threading.Thread(target=make)
    t.start()
    t.join()
    made[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made[0]


class LiveServer:
    """Echoes, sends DATA again and again, or counts what comes; the first byte says which. `ends`: how its connections ended."""

    def __init__(self, t, sock, at):
        self.sock = sock
        self.ends = []
        sock.bind(at)
        sock.listen(128)
        t.later(sock.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        try:
            with s:
                what = s.recv(1)
                if what in (b"e", b"q"):
                    while data := s.recv(4096):
                        s.sendall(data)
                elif what in (b"d", b"h"):
                    at = 0
                    while True:
                        at += s.send(data_at(at, 8192))
                        time.sleep(PAUSE / 4)	# raw: the pace of the data
                elif what == b"u":
                    at = 0
                    while data := s.recv(65536):
                        if data != data_at(at, len(data)):
                            self.ends.append("wrong bytes")
                            return
                        at += len(data)
            self.ends.append("end")
        except OSError as e:
            self.ends.append(type(e).__name__)


class Live(threading.Thread):
    """kind: echo, quiet (an echo that is used before and after alone), down, half (down, the client is done sending), up."""

    def __init__(self, kind, s):
        super().__init__(daemon=True)
        self.kind, self.s = kind, s
        self.rounds = 0
        self.outcome = None		# while it lives
        self.resting = kind == "quiet"
        self.done = False
        s.settimeout(60 * PATIENCE)
        s.sendall(kind[0].encode())
        if kind == "half":
            s.shutdown(socket.SHUT_WR)
        self.start()

    def run(self):
        try:
            while not self.done:
                if self.resting and self.rounds > 0:
                    time.sleep(PAUSE)	# raw: it rests until it is asked
                    continue
                self.outcome = self._round()
                if self.outcome is not None:
                    return
                self.rounds += 1
        except OSError as e:
            self.outcome = type(e).__name__

    def _round(self):
        if self.kind in ("echo", "quiet"):
            word = b"%08d" % self.rounds
            self.s.sendall(word)
            got = recv_exact(self.s, 8)
            time.sleep(PAUSE)	# raw: the pace of the data
            return None if got == word else "end" if not got else "wrong bytes"
        n = 8192
        want = bytes(data_at(self.rounds * n, n))
        if self.kind == "up":
            self.s.sendall(want)
            time.sleep(PAUSE / 4)	# raw: the pace of the data
            return None
        got = recv_exact(self.s, n)
        return None if got == want else "end" if want.startswith(got) else "wrong bytes"

    def goes_on(self, rounds=3):
        """Does it live, and come along?"""
        self.resting = False
        end = time.monotonic() + 20 * PATIENCE
        at = self.rounds
        while self.outcome is None and self.rounds < at + rounds and time.monotonic() < end:
            time.sleep(0.01)	# raw: a turn of a loop with a deadline, which is no failure here
        alive = self.outcome is None and self.rounds >= at + rounds
        self.resting = self.kind == "quiet"
        return "alive" if alive else self.outcome or "stuck"


KINDS = ("echo", "quiet", "down", "half", "up")
