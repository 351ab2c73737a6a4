#!/usr/bin/env python3
"""
Readers that stand still: of the log, the journal, systemd's socket, a trace, events. Connections go on meanwhile, and smcrctl is
answered; when the reader reads again, it gets what was kept, and the count of what was not.
"""
import fcntl
import json
import os
import re
import signal
import socket

from harness import SMCRCTL, Server, case, check, echo, equal, main, need, Pair, recv_exact, wait_until

F_SETPIPE_SZ, PIPE_BYTES = 1031, 4096
ROOM = 512 * 1024	# LOG_WRITER_ROOM of base/log_writer.h; records are a little longer than lines
LOST = r"warning: log lines lost: count=(\d+)$"


def works(s, data=b"x" * 1000):
    s.sendall(data)
    equal(recv_exact(s, len(data)), data, "the bytes of a connection")


def serve_new(pair, cnt):
    for _ in range(cnt):
        with pair.connect() as s:
            works(s, b"ping")


def echo_pair(t, start=True, **settings):
    return Pair(t, {"x": Server(t, echo).at}, start=start, **settings)


class StuckPipe:
    """Standard error of a daemon, a pipe that is read only when the test does so. The log in the file has no lines then."""

    def __init__(self, t, name):
        path = t.path(f"{name}.stderr")
        os.mkfifo(path)
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(self.fd, F_SETPIPE_SZ, PIPE_BYTES)
        t.later(lambda: os.close(self.fd))
        self.wrap = ["sh", "-c", f'exec "$@" 2> {path}', "sh"]
        self.text = ""

    def read(self):
        try:
            while data := os.read(self.fd, 65536):
                self.text += data.decode()
        except BlockingIOError:
            pass
        return self.text


@case("blocked standard error: connections continue, and the count of lost lines follows", timeout=120)
def _(t):
    pair = echo_pair(t, a={"log_level": "debug"}, b={"log_level": "debug"}, start=False)
    pipes = {}
    for d in (pair.b, pair.a):
        pipes[d] = StuckPipe(t, d.name)
        d.wrap = pipes[d].wrap
        d.start()
    bystander = pair.connect()
    works(bystander)
    # Until lines have been dropped for certain: each connection has some at debug.
    for _ in range(40):
        serve_new(pair, 50)
        works(bystander)
    for d in (pair.a, pair.b):
        check(d.counters()["log_lines_lost"] > 0, "the counter says so while the log cannot")
        d.ctl("log-level", "info")
    works(bystander)
    for d, pipe in pipes.items():
        wait_until(lambda: re.search(LOST, pipe.read(), re.M), f"the count of {d.name}")
    serve_new(pair, 1)
    for d, pipe in pipes.items():
        wait_until(lambda: "connection closed" in pipe.read().rpartition("lines lost")[2], f"lines of {d.name} go on")
        check(len(pipe.text) > ROOM // 2, "what was kept")
        for line in pipe.text.splitlines():
            check(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (debug|info|notice|warning): ", line), f"whole lines: {line}")
    works(bystander)


@case("a daemon with blocked standard error ends, and writes as many lines as possible")
def _(t):
    pair = echo_pair(t, start=False)
    pipe = StuckPipe(t, "a")
    pair.a.wrap = pipe.wrap
    pair.b.start()
    pair.a.start()
    serve_new(pair, 200)
    pair.a.finish()
    check("notice: ready" in pipe.read(), "the lines that the pipe had room for")
    # With a reader all comes out.
    again = StuckPipe(t, "again")
    pair.a.wrap = again.wrap
    pair.a.start()
    wait_until(lambda: "notice: ready" in again.read(), "it has started")
    pair.a.expect_dead = True
    pair.a.send_signal(signal.SIGTERM)
    wait_until(lambda: again.read().endswith("notice: smcrd ends\n"), "the last line")
    pair.a.finish()


class StuckSocket:
    """A datagram socket without room, at a path."""

    def __init__(self, t, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(path)
        self.sock.setblocking(False)
        t.later(self.sock.close)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.setblocking(False)
            try:
                while True:
                    s.sendto(b"full=1", path)
            except BlockingIOError:
                pass
        self.heard = []

    def read(self):
        """All datagrams so far, each a dict."""
        try:
            while True:
                rows = self.sock.recv(65536).decode().splitlines()
                if rows != ["full=1"]:
                    self.heard.append(dict(row.split("=", 1) for row in rows))
        except BlockingIOError:
            return self.heard


@case("a blocked journal: connections continue, and the entries follow in order")
def _(t):
    need("unshare")
    pair = echo_pair(t, start=False)
    at = t.path("journal")
    os.mkdir(at)
    journal = StuckSocket(t, os.path.join(at, "socket"))
    pair.a.wrap = ["unshare", "--mount", "--", "sh", "-c",
                   f"mount -t tmpfs none /run && mkdir -p /run/systemd/journal && mount --bind {at} /run/systemd/journal && "
                   'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) && export JOURNAL_STREAM && exec "$@"', "sh"]
    pair.b.start()
    pair.a.start()
    bystander = pair.connect()
    works(bystander)
    # The links that have come up are entries; they are not read.
    told = wait_until(lambda: [json.loads(x)["kind"] for x in pair.a.ctl_text("--json", "events").splitlines()], "events")
    serve_new(pair, 50)
    works(bystander)
    check(pair.a.status()["version"], "smcrctl is answered")
    check("connection closed" not in pair.a.log(), "the lines wait behind the entries")
    wait_until(lambda: len(journal.read()) >= len(told), "the entries")
    equal([e["SMCRD_EVENT"] for e in journal.heard][:len(told)], told, "in their order")
    wait_until(lambda: pair.a.log().count("connection closed") >= 50, "and the lines")
    works(bystander)


@case("systemd that does not read: orders are executed, and the states follow in order")
def _(t):
    pair = echo_pair(t, start=False)
    path = t.path("notify")
    systemd = StuckSocket(t, path)
    pair.a.env = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2000000"}
    pair.b.start()
    pair.a.start()
    bystander = pair.connect()
    works(bystander)
    pair.a.ctl("reload")
    check(pair.a.status()["version"], "smcrctl is answered")
    works(bystander)

    def states():
        return [next(k for k in ("READY", "RELOADING") if k in m) for m in systemd.read() if "READY" in m or "RELOADING" in m]
    wait_until(lambda: len(states()) == 3, "the states")
    equal(states(), ["READY", "RELOADING", "READY"], "in their order")
    wait_until(lambda: any("WATCHDOG" in m for m in systemd.read()), "a sign of life")
    wait_until(lambda: any("FDSTORE" in m for m in systemd.read()), "the listening socket")
    works(bystander)


@case("a stopped smcrctl that follows events: connections continue, and it gets the kept events when it resumes")
def _(t):
    pair = echo_pair(t)
    bystander = pair.connect()
    works(bystander)
    followers = [t.spawn([SMCRCTL, "--socket", pair.a.control, "--json", *words], words[0])
                 for words in (("trace",), ("events", "--follow"))]
    before = pair.a.counters()["control_clients"]
    wait_until(lambda: pair.a.counters()["control_clients"] > before, "the daemon answers")
    wait_until(lambda: serve_new(pair, 1) or followers[0].log(), "the trace has begun")
    for p in followers:
        p.send_signal(signal.SIGSTOP)
    for _ in range(10):
        serve_new(pair, 100)
        works(bystander)
        check(pair.a.status()["version"], "smcrctl is answered")
    for p in followers:
        p.send_signal(signal.SIGCONT)
    serve_new(pair, 1)
    wait_until(lambda: followers[0].log().count("\n") > 100, "the trace goes on")
    check(all(json.loads(line) for line in followers[0].log().splitlines()[:-1]), "whole lines")
    works(bystander)
    for p in followers:
        p.stop()


main()
