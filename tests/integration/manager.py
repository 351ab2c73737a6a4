"""As much of systemd as a test of one daemon needs; see harness.py."""
import os
import socket
import sys
import threading

EXEC_WITH = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.connect(sys.argv[1])
data, fds, _, _ = socket.recv_fds(s, 4096, 200)
n = len(fds)
for i, fd in enumerate(fds):
    os.dup2(fd, 100 + i)
for i in range(n):
    os.dup2(100 + i, 3 + i)
for i in range(n):
    os.set_inheritable(3 + i, True)
if n:
    os.environ.update(LISTEN_FDS=str(n), LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES=data.decode().partition(" ")[2])
os.execv(sys.argv[2], sys.argv[2:])
"""


class Manager:
    """As much of systemd as keeps descriptors of a service, and gives them to the next process."""

    def __init__(self, t):
        self.path, self.give = t.path("notify"), t.path("give")
        self.stored, self.said = [], []
        self.of_unit = []	# of a socket unit
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)
        self.lsn = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.lsn.bind(self.give)
        self.lsn.listen()
        self.env = {"NOTIFY_SOCKET": self.path}
        self.wrap = [sys.executable, "-c", EXEC_WITH, self.give]
        threading.Thread(target=self._hear, daemon=True).start()
        threading.Thread(target=self._give, daemon=True).start()
        t.later(self.sock.close)
        t.later(self.lsn.close)

    def _hear(self):
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.sock, 4096, 250)
            except OSError:
                return
            words = dict(line.split("=", 1) for line in data.decode().splitlines())
            self.said.append(words)
            if "FDSTOREREMOVE" in words:
                while self.stored:
                    os.close(self.stored.pop())
            self.stored += fds if "FDSTORE" in words else []

    def _give(self):
        while True:
            try:
                s, _ = self.lsn.accept()
            except OSError:
                return
            with s:
                names = ["smcrd.socket"] * len(self.of_unit) + ["smcrd-listen"] * len(self.stored)
                socket.send_fds(s, [b"names " + ":".join(names).encode()], [*self.of_unit, *self.stored])

    def has_said(self, key, value):
        return any(words.get(key) == str(value) for words in self.said)
