#!/usr/bin/env python3
"""
A new process replaces a running daemon: no connect is refused, no connection is cut while the old one drains, and
when the new one fails, nothing has happened. Restarts under systemd, which keeps the listening sockets.
"""
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import threading
import time

from harness import (PATIENCE, SECURE, SMCRCTL, SMCRD, UNIX, WORKERS, Daemon, Failure, Pair, Server, case, check, connect_to,
                     echo, equal, in_thread, logs, main, need, outcome, pattern, recv_exact, same_bytes, soft_device,
                     unix_connect, wait_until, works)
from manager import Manager
from scrape import get
from programs import Nginx, Redis, RedisClient, wrk


def echo_pair(t, **kw):
    return Pair(t, {"x": Server(t, echo).at}, **kw)


def with_workers(d, n):
    return dict(d.conf, workers=n)


class Knocking:
    """Connects one after the other from a thread, each of which has to be served."""

    def __init__(self, pair):
        self.pair = pair
        self.done = 0
        self.ending = False
        self.task = in_thread(self._run)

    def _run(self):
        while not self.ending:
            with self.pair.connect() as s:
                works(s, self.done, 2000)
            self.done += 1

    def more(self, n=5):
        want = self.done + n
        wait_until(lambda: self.done >= want or not self.task.is_alive(), f"{n} more connections")
        if not self.task.is_alive():
            self.task.result()

    def end(self):
        self.ending = True
        self.task.result()


@case("successive take-overs on either side: old and new connections continue; reports name the process", timeout=90)
def _(t):
    pair = echo_pair(t)
    for side in ("a", "b"):
        old = getattr(pair, side)
        running = pair.connect()
        works(running, 1)
        knocking = Knocking(pair)
        new = old.successor()
        setattr(pair, side, new)
        equal(new.status()["pid"], new.pid, "the process at the control socket")
        status = old.status()
        equal((status["pid"], status["draining"], status["successor"]), (old.pid, True, new.pid), "status of the old one")
        check(f"pid {new.pid} has the listening sockets" in old.ctl_text("status"), "smcrctl names it")
        knocking.more()
        works(running, 2, 1000000)
        check(old.alive(), "the old one waits for its connection")
        knocking.end()
        running.close()
        equal(old.wait(), 0, "exit status of the old one")
        check(not os.path.exists(old.control), "its control socket is gone")
        with pair.connect() as s:
            works(s, 3)
    pair.quiet()
    for d in (pair.a, pair.b):
        equal(sum(s["fallbacks"] for s in d.services()), 0, f"fallbacks of {d.name}")
    for d in (pair.a, pair.b):
        d.finish()
        check(not os.path.exists(d.control), "the file of the control socket goes with the last process")



def generations(t, transport, **settings):
    """A pair whose ingress was taken over twice: the processes, and a connection of each, which has outlived drain_timeout."""
    pair = echo_pair(t, a={"devices": [soft_device(t.addr, transport)], "drain_timeout": "300ms", **settings},
                     b={"devices": [soft_device(t.addr, transport)]})
    processes, running = [pair.a], [pair.connect()]
    for i in range(2):
        pair.a = pair.a.successor()
        processes.append(pair.a)
        running.append(pair.connect())
    time.sleep(0.8)	# raw: longer than drain_timeout
    return pair, processes, running


@case("three generations serve connections beyond drain_timeout; each is shown, asked and ended by its process id", timeout=90,
      one_worker="SCTP")
def _(t):
    for transport in ("tcp", "sctp"):
        pair, (first, second, last), running = generations(t, transport)
        for i, s in enumerate(running):
            works(s, i, 100000)
        pair.only_smcr()
        status = first.status()
        equal((status["successor"], status["ends"], status["limit_in_ms"]), (second.pid, True, -1), "status of the first")
        equal([p["pid"] for p in last.status()["predecessors"]], [first.pid, second.pid], "what the last one knows")
        equal([p["pid"] for p in second.status()["predecessors"]], [first.pid], "what the second one knows")
        check(f"smcrctl --pid {first.pid} status" in last.ctl_text("status"), "how to ask it")
        by_pid = ["--pid", str(first.pid)]
        check("however long it lasts" in last.ctl_text(*by_pid, "status"), "asked by its process id")
        last.ctl_text(*by_pid, "drain", "--then-exit")
        equal(first.wait(), 0, "ended by order, within its drain_timeout")
        logs(first, "the time for draining has expired")
        wait_until(lambda: [p["pid"] for p in last.status()["predecessors"]] == [second.pid], "the last one knows")
        for s in running[1:]:
            works(s, 3)
        second.kill()
        left = f"{last.control}.{second.pid}"
        check(os.path.exists(left), "a killed one leaves its file")
        pair.a = last.successor()
        check(not os.path.exists(left), "which the next one removes")
        works(running[2], 4)
        pair.a.expect_dead = True
        pair.a.send_signal(signal.SIGTERM)
        equal((pair.a.wait(), last.wait()), (0, 0), "SIGTERM to the last one ends all of them, within drain_timeout")


@case("take_over_timeout limits how long a process that was taken over serves its connections")
def _(t):
    limit_ms = round(1000 * PATIENCE)
    pair = echo_pair(t, a={"take_over_timeout": f"{limit_ms}ms"})
    old, running = pair.a, pair.connect()
    pair.a = old.successor()
    check(0 < old.status()["limit_in_ms"] <= limit_ms, "how much is left")
    check("at the latest in" in old.ctl_text("status"), "in words")
    works(running)
    equal(old.wait(), 0, "exit status")
    try:
        equal(running.recv(1), None, "a reset")
    except ConnectionResetError:
        pass


class Download:
    """A file that comes slowly, over one connection."""

    def __init__(self, pair, data, rate):
        self.data, self.got, self.rate = data, bytearray(), rate
        self.sock = pair.connect("http")
        self.sock.sendall(f"GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())

    def take(self):
        """One piece more; the rest waits in both daemons, and at the server."""
        piece = recv_exact(self.sock, self.rate)
        check(piece, "the download goes on")
        self.got += piece

    def end(self):
        while True:
            piece = self.sock.recv(1 << 20)
            if not piece:
                break
            self.got += piece
        head, _, body = bytes(self.got).partition(b"\r\n\r\n")
        check(head.startswith(b"HTTP/1.1 200"), head)
        same_bytes(body, self.data, "download")


def gap_ms(new):
    """From the end of the old one's accepting to the start of the new one's."""
    return int(re.search(r"taken over, .* gap_ms=(\d+) ", new.log())[1])


def repeat(run):
    """Runs it again and again until stopped, or until it fails."""
    stop = threading.Event()

    def runs():
        n = 0
        while not stop.is_set():
            run()
            n += 1
        return n
    return stop, in_thread(runs)


def redis_benchmark(t, host, port):
    out = t.run([need("redis-benchmark"), "-h", host, "-p", str(port), "-t", "set,get", "-c", "8", "-n", "300", "-k", "0", "-q"],
                stderr=subprocess.STDOUT).decode()
    check(not any(bad in out for bad in ("Could not connect", "Error", "error")), f"redis-benchmark: {out}")


UPGRADES = 6 if SECURE else 20


def twenty(t, workers):
    """20 upgrades, of the two sides in turn, each of which has other numbers of workers one after the other."""
    need("redis-benchmark")
    need("wrk")
    redis, nginx = Redis(t), Nginx(t)
    data = pattern(24 << 20, 7)
    nginx.file("big", data)
    pair = Pair(t, {"redis": (redis.host, redis.port), "http": (nginx.host, nginx.port)}, a={"workers": workers[0]},
                b={"workers": workers[0]})
    client = RedisClient(pair.connect("redis"))
    download = Download(pair, data, (24 << 20) // 32)
    url = f"http://{pair.host}:{pair.port['http']}/small"
    loads = [repeat(lambda: redis_benchmark(t, pair.host, pair.port["redis"])),
             repeat(lambda: wrk(t.run, url, 8, 1, "-H", "Connection: close"))]
    olds, gaps, fallbacks = [], [], 0

    def loaded(new):
        for _, task in loads:
            if not task.is_alive():
                task.result()
        return all(service["accepted"] >= 20 for service in new.services())
    for i in range(UPGRADES):
        side = "ab"[i % 2]
        old = getattr(pair, side)
        new = old.successor(dict(old.conf, workers=workers[(i // 2 + 1) % len(workers)]))
        setattr(pair, side, new)
        olds.append(old)
        gaps.append(gap_ms(new))
        wait_until(lambda new=new: loaded(new), "connections of both loads")
        client.send("APPEND", "long", b"%04d" % i)
        equal(int(client.reply()), 4 * (i + 1), "the long connection's answer")
        download.take()
        fallbacks += sum(service["fallbacks"] for service in new.services())
    for stop, _ in loads:
        stop.set()
    t.note(f"runs of redis-benchmark and wrk: {[task.result() for _, task in loads]}")
    t.note(f"ms in which no process accepted: {sorted(gaps)}")
    check(min(gaps) < 50, "nothing of the start lies in that time, which a busy machine lengthens, but not each time")
    equal(fallbacks, 0, "connections that fell back to TCP")
    equal(client.call("GET", "long"), b"".join(b"%04d" % i for i in range(UPGRADES)), "what the long connection stored")
    download.end()
    check(olds[0].alive() and olds[1].alive(), "the first ones wait for the long connections")
    client.sock.close()
    client.file.close()
    download.sock.close()
    for old in olds:
        equal(old.wait(), 0, "exit status of an old one")


@case("20 upgrades under redis-benchmark and wrk: no connect refused, no connection cut; one worker", timeout=120)
def _(t):
    twenty(t, [1])


@case("20 upgrades under redis-benchmark and wrk: workers from 3 to 3, to 1, to 2, and back", timeout=120)
def _(t):
    twenty(t, [3, 3, 1, 2])




def mpa_ports(d):
    return sorted(x["mpa_port"] for x in d.ctl("devices")["devices"])


@case("ports for links are taken over, as a firewall may pass no others; old and new links continue")
def _(t):
    port = t.port()
    t.port()
    one = {"devices": [soft_device(t.addr, mpa_ports=f"{port}-{port + 1}")], "workers": 1}
    pair = echo_pair(t, b=one)
    old, running = pair.b, [pair.connect()]
    for _ in range(3):
        pair.b = pair.b.successor(dict(one, egress=old.conf["egress"]))
        equal(mpa_ports(pair.b), [port], "port of the new one")
        running.append(pair.connect())
        for i, s in enumerate(running):
            works(s, i)
        equal(pair.b.services()[0]["fallbacks"], 0, "fallbacks")
    pair.a.finish()
    for s in running:
        s.close()
    equal(old.wait(), 0, "exit status")


@case("ports for links are taken over by fewer workers, and by more, which use further ports")
def _(t):
    port = t.port()
    t.port()
    t.port()
    one = {"devices": [soft_device(t.addr, mpa_ports=f"{port}-{port + 2}")], "workers": 2}
    pair = echo_pair(t, b=one)
    running = [pair.connect() for _ in range(4)]
    old = pair.b
    equal(mpa_ports(old), [port, port + 1], "ports of the old one")
    for workers, has in ((2, [port, port + 1]), (1, [port]), (2, [port, port + 2])):	# that of one that drains is its own
        before, pair.b = pair.b, pair.b.successor(dict(one, egress=old.conf["egress"], log_level="info", workers=workers))
        for i, s in enumerate(running):
            works(s, i)
        running.append(pair.connect())
        works(running[-1], 9)
        equal(mpa_ports(pair.b), has, "ports of the new one")
    pair.a.finish()
    for s in running:
        s.close()
    equal(old.wait(), 0, "exit status")
    fallbacks = sum(s["fallbacks"] for s in pair.b.services())
    equal(fallbacks, 0, "fallbacks")


@case("a silent client does not delay a hand-over: others wait for less than a second")
def _(t):
    pair = echo_pair(t)
    running = pair.connect()
    works(running, 1)
    silent = connect_to((t.addr, int(pair.b.conf["egress"][0]["listen"].rsplit(":", 1)[1])), 20)
    wait_until(lambda: pair.b.status()["connections"]["setup"] == 1, "it is being set up")
    took = []

    def connects():
        while not done.is_set():
            begin = time.monotonic()
            with pair.connect() as s:
                works(s, 2)
            took.append(time.monotonic() - begin)
    done = threading.Event()
    task = in_thread(connects)
    old, pair.b = pair.b, pair.b.successor()
    with pair.connect() as s:
        works(s, 3)
    done.set()
    task.result()
    check(max(took) < 1 + PATIENCE, f"a connection took {max(took):.1f} s")
    equal(mpa_ports(pair.b), mpa_ports(old), "its port")
    equal(sum(d.services()[0]["fallbacks"] for d in (old, pair.a, pair.b)), 0, "fallbacks")
    works(running, 4)
    silent.close()
    running.close()
    equal(old.wait(), 0, "exit status")


def full_backlog(t):
    """The address of a server that answers no SYN."""
    s = socket.socket()
    t.later(s.close)
    s.bind((t.addr, t.port()))
    s.listen(0)
    for _ in range(4):
        c = socket.socket()
        t.later(c.close)
        c.setblocking(False)
        c.connect_ex(s.getsockname())
    return s.getsockname()


@case("a hand-over waits for no connection that hangs: of a silent client, to a dead server, to a gateway that does not answer")
def _(t):
    mute = socket.socket()
    t.later(mute.close)
    mute.bind((t.addr, t.port()))
    mute.listen()
    long = {"smcr": {"clc_timeout": "60s"}}
    pair = Pair(t, {"x": Server(t, echo).at, "dead": full_backlog(t)}, {"connect_timeout": "60s"}, {"connect_timeout": "60s"}, long, long,
                unix=False, start=False)
    more = t.port()
    pair.a.write_conf(dict(pair.a.conf, ingress=[*pair.a.conf["ingress"], {"name": "mute", "listen": f"{t.addr}:{more}",
                                                                           "to": "%s:%u" % mute.getsockname()}]))
    pair.b.start()
    pair.a.start()
    hanging = [pair.connect("dead"), connect_to((t.addr, more), 20), connect_to((t.addr, pair.middle["x"]), 20)]
    for d, n in ((pair.a, 2), (pair.b, 2)):
        wait_until(lambda d=d, n=n: [c["mode"] for c in d.connections() if c["age_ms"] > 300] == ["setup"] * n, "they hang")
    for side in "ab":
        old = getattr(pair, side)
        setattr(pair, side, old.successor())
        logs(old, "waited_ms=0 ")
        with pair.connect("x") as s:
            works(s)
    for s in hanging:
        s.close()


# -- what fails --


class Taker:
    """The new process's words, without the process."""

    def __init__(self, d, request=b"smcrd-take-over 1\n"):
        self.sock = connect_to(d.control)
        self.sock.sendall(request)

    def hear(self):
        """(type, kind, text, descriptors) of the next message; None at the end."""
        data, fds = b"", []
        while len(data) < 160:
            more, got, _, _ = socket.recv_fds(self.sock, 160 - len(data), 4)
            fds += got
            if not more:
                equal(data, b"", "a message cut short")
                return None
            data += more
        magic, version, kind_of, kind = struct.unpack_from(">4sHHH", data)
        equal((magic, version), (b"SMCH", 1), "head")
        return kind_of, kind, data[48:].rstrip(b"\0").decode(), fds

    def take(self):
        """Everything up to END; the descriptors."""
        fds = []
        equal(self.hear()[0], HELLO, "the first message")
        while True:
            what, _, _, got = self.hear()
            fds += got
            if what == END:
                return fds
            equal((what, len(got)), (SOCKET, 1), "a socket")

    def close(self):
        self.sock.close()


HELLO, REFUSED, SOCKET, END, USED, READY, DONE = range(1, 8)


def message(what, kind=0, cnt=0, pid=1, text="", version=1):
    return struct.pack(">4sHHH6xIIQQQ112s", b"SMCH", version, what, kind, cnt, pid, 0, 0, 0, text.encode())


def goes_on(pair, running, d):
    """As if nothing had been asked."""
    works(running, 5)
    with pair.connect() as s:
        works(s, 6)
    status = d.status()
    equal((status["pid"], status["draining"], status["successor"]), (d.pid, False, 0), "status")


def ends_with(new, *words, status=1):
    new.expect_dead = True
    equal(new.wait(), status, f"exit status: {new.log()}")
    for word in words:
        logs(new, word)


@case("a new process that fails before it is ready: the old one keeps everything, UNIX sockets and their files included")
def _(t):
    pair = echo_pair(t, unix=True, a={"workers": 2})
    old, running = pair.a, pair.connect()
    works(running)
    files = os.stat(pair.path["x"]).st_ino, os.stat(old.control).st_ino
    good = old.conf
    knocking = Knocking(pair)
    taken = socket.socket()
    t.later(taken.close)
    taken.bind((t.addr, t.port()))
    taken.listen()
    in_use = dict(good, ingress=[*good["ingress"], dict(good["ingress"][0], name="y", listen="%s:%d" % taken.getsockname())])
    for conf, status, words in ((dict(good, nonsense=1), 78, ["unknown key nonsense"]),
                                (in_use, 1, ["taking over from a running daemon", "Address already in use"])):
        ends_with(old.successor(conf, ready=False), *words, status=status)
        old.write_conf(good)
        goes_on(pair, running, old)
        knocking.more(2)
        equal((os.stat(pair.path["x"]).st_ino, os.stat(old.control).st_ino), files, "the files")
    taker = Taker(old)
    fds = taker.take()
    equal(len(fds), 4, "sockets: control, one for both workers, the port of each one's device")
    for fd in fds:
        os.close(fd)
    taker.close()	# killed before it was ready
    wait_until(lambda: "this process goes on" in old.log(), "the old one notices")
    goes_on(pair, running, old)
    knocking.end()
    pair.a = old.successor()
    works(running, 9)
    running.close()
    equal(old.wait(), 0, "exit status")


@case("hand-over: permitted user, valid messages, one at a time, none from a daemon with a successor or in its end")
def _(t):
    pair = echo_pair(t)
    d, running = pair.a, pair.connect()
    for request in (b"smcrd-take-over\n", b"smcrd-take-over 2\n", b"smcrd-take-over 1 \n", b"smcrd-take-overs\n"):
        taker = Taker(d, request)
        what, _, text, _ = taker.hear()
        equal((what, text), (REFUSED, "this daemon hands over in version 1 of the protocol only"), request)
        equal(taker.hear(), None, "the end")
    first, second = Taker(d), None
    fds = first.take()
    second = Taker(d)
    equal(second.hear()[2], "another process is taking over", "the second one")
    for words in (message(DONE), b"x" * 160, message(READY, version=2), None):
        if words is None:	# a descriptor with READY
            socket.send_fds(first.sock, [message(READY)], [fds[0]])
        else:
            first.sock.sendall(words)
        equal(first.hear(), None, "it is dropped")
        goes_on(pair, running, d)
        first = Taker(d)
        for fd in fds:
            os.close(fd)
        fds = first.take()
    d.send_signal(signal.SIGSTOP)
    first.sock.sendall(message(READY))
    first.close()
    d.send_signal(signal.SIGCONT)
    wait_until(lambda: d.log().count("this process goes on") == 5, "a process that died after READY takes nothing over")
    goes_on(pair, running, d)
    first = Taker(d)
    for fd in fds:
        os.close(fd)
    fds = first.take()
    d.ctl("reload")
    equal(first.hear(), None, "a reload ends it")
    goes_on(pair, running, d)
    first = Taker(d)
    for fd in fds:
        os.close(fd)
    fds = first.take()
    first.sock.sendall(message(READY)[:80])
    first.sock.shutdown(socket.SHUT_WR)
    equal(first.hear(), None, "half a message")
    goes_on(pair, running, d)
    if os.geteuid() == 0:
        os.chmod(d.control, 0o666)
        os.chmod(os.path.dirname(d.control), 0o755)

        def as_nobody():
            os.setgid(65534)
            os.setuid(65534)
            return Taker(d).hear()[2]
        equal(t.fork(as_nobody).result(), "only a process of the daemon's own user may take over", "another user")
    old_fds, before = d.fds(), d
    new = d.successor()
    equal(Taker(d).hear()[2], "another process has taken over", "one that has a successor")
    pair.a, last = new, Taker(new)
    last.take()
    new.expect_dead = True
    new.send_signal(signal.SIGTERM)
    equal(last.hear(), None, "a daemon that ends meanwhile drops its successor")
    running.close()	# it waits for the one before
    new.wait()
    before.wait()
    check(old_fds < 100, "descriptors of takers that are gone")


@case("a false daemon: each message is a clear error")
def _(t):
    conf = {"devices": [{"type": "siw", "address": t.addr}]}
    lsn, not_listening, datagram = socket.socket(), socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    lsn.bind((t.addr, t.port()))
    lsn.listen()
    for s in (lsn, not_listening, datagram):
        t.later(s.close)
    sock = ("sent a socket that does not match its message", message(SOCKET, 1, text="/nowhere"))
    talks = [("of a version that cannot hand over", [(b'{"schema":1,"error":{}}\n', [])]),
             ("another version of this protocol", [(message(HELLO, version=9), [])]),
             ("refused: not today", [(message(REFUSED, text="not today"), [])]),
             ("out of order", [(message(READY), [])]),
             ("Protocol error", [(b"S" * 160, [])]),
             ("Protocol error", [(message(HELLO, cnt=1 << 20), [])]),
             ("Protocol error", [(message(HELLO, cnt=1), [lsn])]),
             ("has ended the hand-over", [(message(HELLO)[:100], [])]),
             ("Protocol error", [(message(HELLO, cnt=1), []), (message(SOCKET, 2), [])]),
             ("Protocol error", [(message(HELLO, cnt=1), []), (message(SOCKET, 2), [lsn, lsn])]),
             ("Protocol error", [(message(HELLO, cnt=1), []), (message(SOCKET, 2), [lsn] * 9)]),
             (sock[0], [(message(HELLO, cnt=1), []), (sock[1], [lsn])]),
             (sock[0], [(message(HELLO, cnt=1), []), (message(SOCKET, 2, text="/tmp/x"), [lsn])]),
             (sock[0], [(message(HELLO, cnt=1), []), (message(SOCKET, 2), [not_listening])]),
             (sock[0], [(message(HELLO, cnt=1), []), (message(SOCKET, 3), [datagram])]),
             ("out of order", [(message(HELLO, cnt=2), []), (message(SOCKET, 2), [lsn]), (message(END), [])]),
             ("did not send its control socket", [(message(HELLO, cnt=1), []), (message(SOCKET, 2), [lsn]), (message(END), [])])]
    d = Daemon(t, "lonely", conf, start=False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as fake:
        fake.bind(d.control)
        fake.listen()
        for words, talk in talks:
            d.log_path = t.path(f"log.{t.count()}")
            d.start(ready=False, args=["--take-over"])
            s, _ = fake.accept()
            with s:
                equal(s.recv(100), b"smcrd-take-over 1\n", "request")
                for data, fds in talk:
                    socket.send_fds(s, [data], [f.fileno() for f in fds])
                s.shutdown(socket.SHUT_WR)
                ends_with(d, words)
    check(os.path.exists(d.control), "the file is left alone")


@case("take-over from a draining daemon, and without a daemon; an error names the option")
def _(t):
    pair = echo_pair(t)
    old, running = pair.a, pair.connect()
    works(running)
    old.send_signal(signal.SIGTERM)
    wait_until(lambda: old.status()["draining"], "it drains")
    ends_with(old.successor(ready=False, args=()), "a running daemon listens there", "--take-over")
    pair.a = old.successor()
    with pair.connect() as s:
        works(s)
    works(running)
    running.close()
    equal(old.wait(), 0, "exit status")
    pair.a.finish()
    pair.a.start(args=["--take-over"])
    logs(pair.a, "no daemon to take over from")
    with pair.connect() as s:
        works(s)


@case("take-over with a disabled service, an undone drain, the read-only socket")
def _(t):
    pair = echo_pair(t, a={"control": {"readonly": True}})
    old, running = pair.a, pair.connect()
    works(running)
    old.ctl_text("disable", "x")
    old.ctl_text("enable", "x")
    old.ctl_text("drain")
    old.ctl_text("undrain")
    ends_with(old.successor(ready=False, args=(f"--take-over={old.readonly}",)), "refused", "this socket is read-only")
    pair.a = old.successor()
    with pair.connect() as s:
        works(s)
    undrain = subprocess.run([SMCRCTL, "--socket", old.control, "undrain"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    equal(undrain.returncode, 1, "undrain of one that has a successor")
    check(b"another process has taken over" in undrain.stderr, f"it says why: {undrain.stderr}")
    readonly = json.loads(t.run([SMCRCTL, "--socket", old.readonly, "--json", "status"]))["data"]
    equal(readonly["pid"], pair.a.status()["pid"], "the process for readers")
    works(running)
    running.close()
    equal(old.wait(), 0, "exit status")
    old = pair.a
    old.ctl_text("disable", "x")
    pair.a = old.successor()
    with pair.connect() as s:
        works(s)
    equal(old.wait(), 0, "exit status")


def refused(pair, name):
    """Does the kernel refuse a connect at once?"""
    try:
        pair.connect(name, 5).close()
        return False
    except ConnectionRefusedError:
        return True


def served(d, names):
    """Services of the daemon that are enabled, and are all of these."""
    return sorted(s["name"] for s in d.services() if not s["disabled"]) == sorted(names)


def three_services(t, **kw):
    """x and y on TCP, u on a UNIX socket; nothing runs yet."""
    pair = echo_pair(t, start=False, **kw)
    d, path = pair.a, t.socket_path("u")
    one = d.conf["ingress"][0]
    pair.port["y"] = t.port()
    pair.unix = path
    d.write_conf(dict(d.conf, ingress=[one, dict(one, name="y", listen=f"{t.addr}:{pair.port['y']}"),
                                       dict(one, name="u", listen=f"unix:{path}")]))
    return pair


def tries(pair, name, ending):
    """Connects again and again: "refused" or "served", each time."""
    said = []
    while not (ending.is_set() and "served" in said[-1:]):
        try:
            with pair.connect(name) as s:
                works(s, len(said), 2000)
            said.append("served")
        except ConnectionRefusedError:
            said.append("refused")
    return said


@case("disabled services: a shut socket is not handed over, disable or enable meanwhile ends the hand-over; the new process "
      "has all enabled", timeout=90)
def _(t):
    pair = three_services(t, a={"workers": 2}, unix=False)
    d, at = pair.a, (t.addr, pair.port["x"])
    pair.b.start()
    d.start()
    running = pair.connect("y")
    works(running)
    for order, name, ports in (("disable", "x", 2), ("enable", "x", 0), ("disable", "u", 2), ("enable", "u", 2)):
        taker = Taker(d)
        socks = [socket.socket(fileno=fd) for fd in taker.take()]
        check(all(s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) for s in socks), "all that is handed over listens")
        equal([s.getsockname() for s in socks].count(at), ports, f"sockets of x before {order} {name}")
        d.ctl_text(order, name)
        equal(taker.hear(), None, f"{order} {name} ends the hand-over")
        taker.close()
        for s in socks:
            s.close()
        works(running)
    taker = Taker(d)
    fds = taker.take()
    d.ctl_text("disable", "none", status=1)
    d.status()
    equal(select.select([taker.sock], [], [], 0)[0], [], "an order about no service ends nothing")
    d.ctl_text("drain")
    equal(taker.hear(), None, "drain ends it")
    taker = Taker(d)
    for fd in [*fds, *taker.take()]:
        os.close(fd)
    d.ctl_text("undrain")
    equal(taker.hear(), None, "undrain ends it")
    works(running)
    for name in "xu":
        d.ctl_text("disable", name)
    ending = threading.Event()
    task = in_thread(tries, pair, "x", ending)
    new = pair.a = d.successor()
    ending.set()
    said = task.result()
    equal(said, sorted(said), "refused until the new process listens, and then served")
    check(served(new, "xyu") and served(d, "y"), "what both processes say")
    for s in (pair.connect("x"), unix_connect(pair.unix), running):
        works(s)
        s.close()
    equal(d.wait(), 0, "exit status of the old one")


@case("another configuration: services come and go, UNIX sockets with their files; reloads afterwards; another control socket")
def _(t):
    pair = echo_pair(t, unix=True, a={"workers": 3})
    old, first = pair.a, pair.path["x"]
    second = t.socket_path("second")
    both = dict(old.conf, ingress=[*old.conf["ingress"], dict(old.conf["ingress"][0], name="y", listen=f"unix:{second}")])
    ino = os.stat(first).st_ino
    a = old.successor(dict(both, workers=1))
    old.wait()
    equal(os.stat(first).st_ino, ino, "the file stays the same")
    pair.path = {"x": first, "y": second}
    for name in "xy":
        works(pair.connect(name))
    a.write_conf(dict(both, workers=1, ingress=both["ingress"][1:]))
    a.ctl("reload")
    check(not os.path.exists(first), "a reload removes it as if it had been made here")
    b = a.successor(dict(both, workers=2, ingress=both["ingress"][:1]))
    check(not os.path.exists(second), "the new configuration has no use for it")
    works(pair.connect("x"))
    before = b.control
    b.expect_dead = True
    c = Daemon(t, "c", b.conf, start=False)
    c.start(ready=False, args=[f"--take-over={before}"])
    c.wait_ready()
    equal(c.status()["pid"], c.pid, "at its own control socket")
    check(not os.path.exists(before), "the old control socket is gone")
    works(pair.connect("x"))
    pair.a = c
    c.finish()
    check(not os.path.exists(first), "files go with the last process")


def asked(at):
    """The process that answers at the metrics endpoint."""
    status, _, body = get(at, "/status.json")
    equal(status, 200, "status of /status.json")
    return json.loads(body)["data"]["pid"]


@case("the metrics endpoint moves to the new process, at an address and at a path")
def _(t):
    at = (t.addr, t.port())
    path = t.socket_path("metrics")
    for where, listen in ((at, f"{at[0]}:{at[1]}"), (path, f"unix:{path}")):
        pair = echo_pair(t, a={"metrics": {"listen": listen}})
        old, running = pair.a, pair.connect()
        equal(asked(where), old.pid, "the old process first")
        pair.a = old.successor()
        equal(asked(where), pair.a.pid, "then the new one")
        works(running)
        equal(asked(where), pair.a.pid, "and while the old one drains")
        running.close()
        equal(old.wait(), 0, "exit status")
        equal(asked(where), pair.a.pid, "the new one after the old one's end")
    pair.a.finish()
    check(not os.path.exists(path), "the file goes with the last process")


@case("--background returns when the daemon is ready, with 1 if it fails")
def _(t):
    pair = echo_pair(t)
    argv = [SMCRD, "-f", pair.a.conf_path, "--background"]
    pair.a.expect_dead = True
    t.run([*argv], status=1, stderr=subprocess.STDOUT)
    with open(t.path("background.log"), "wb") as log:
        subprocess.run([*argv, "--take-over"], check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=60 * PATIENCE)
    equal(pair.a.wait(), 0, "the old one")
    pid = pair.a.status()["pid"]
    t.later(lambda: os.kill(pid, signal.SIGKILL))
    check(pid != pair.a.pid, "another process")
    with pair.connect() as s:
        works(s)


# -- systemd --

@case("systemd's store: connects wait during a restart, TCP and UNIX; a reload changes the stored sockets", timeout=90)
def _(t):
    pair = echo_pair(t, a={"workers": 2}, start=False)
    manager, path, d = Manager(t), t.socket_path("x"), pair.a
    conf = dict(d.conf, ingress=[*d.conf["ingress"], dict(d.conf["ingress"][0], name="u", listen=f"unix:{path}")])
    d.write_conf(conf)
    d.env, d.wrap = manager.env, manager.wrap
    pair.b.start()
    d.start()
    wait_until(lambda: len(manager.stored) == 3, "a socket for each worker, and the UNIX socket")
    ino = os.stat(path).st_ino
    for _ in range(3):
        d.stop()
        waiting = [pair.connect("x") for _ in range(6)]
        u = connect_to(path)
        t.later(u.close)
        task = [in_thread(works, s, i) for i, s in enumerate([*waiting, u])]
        d.log_path = t.path(f"log.{t.count()}")
        d.start(ready=False)
        d.wait_ready()
        for one in task:
            one.result()
        for s in [*waiting, u]:
            s.close()
        wait_until(lambda: not d.connections(), "no connections")
        check("closed: address" not in d.log(), d.log())
    equal(os.stat(path).st_ino, ino, "the file")
    d.write_conf(dict(conf, ingress=conf["ingress"][:1]))
    d.ctl("reload")
    wait_until(lambda: len(manager.stored) == 2, "the UNIX socket is stored no more")
    check(not os.path.exists(path), "nor is its file there")


@case("sockets of a socket unit are not stored, nor their files removed; also by a successor")
def _(t):
    pair = echo_pair(t, unix=True, start=False)
    manager, d, path = Manager(t), pair.a, pair.path["x"]
    unit = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    t.later(unit.close)
    unit.bind(path)
    unit.listen()
    manager.of_unit = [unit.fileno()]
    other = t.port()
    d.write_conf(dict(d.conf, ingress=[*d.conf["ingress"], dict(d.conf["ingress"][0], name="y", listen=f"{t.addr}:{other}")]))
    d.env, d.wrap = manager.env, manager.wrap
    pair.b.start()
    d.start()
    wait_until(lambda: len(manager.stored) == (WORKERS or 1), "the other service's sockets are stored, one a worker")
    with pair.connect() as s:
        works(s)
    d.wrap = []
    new = pair.a = d.successor()
    with pair.connect() as s:
        works(s)
    wait_until(lambda: manager.has_said("MAINPID", new.pid) and
               [w for w in manager.said if w.get("READY")][1:], "the new one is ready")
    new.ctl("reload")
    wait_until(lambda: sum("FDSTOREREMOVE" in w for w in manager.said) == 3 and len(manager.stored) == (WORKERS or 1),
               "stored by the new one")
    for p in (d, new):
        p.stop()
    check(os.path.exists(path), "the unit's file stays")


def under_systemd(t):
    """A pair with three_services() that runs, a as a service of systemd: it, systemd's stand-in, a."""
    pair = three_services(t, a={"workers": 2}, unix=False)
    manager, d = Manager(t), pair.a
    d.env, d.wrap = manager.env, manager.wrap
    pair.b.start()
    d.start()
    return pair, manager, d


@case("systemd's store and disabled services: refused until the next process enables them; also after a crash", timeout=90)
def _(t):
    pair, manager, d = under_systemd(t)
    shut = socket.socket()	# as left by a daemon that dies before it has notified systemd
    t.later(shut.close)
    shut.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for crashes in (False, True):
        for name in "xu":
            d.ctl_text("disable", name)
        check(refused(pair, "x"), "a disabled service on TCP")
        equal(outcome(unix_connect(pair.unix))[1], b"", "a disabled service on a UNIX socket")
        check(served(d, "y"), "the other one is as it was")
        running = pair.connect("y")
        works(running)
        if crashes:
            d.kill()
        else:
            d.send_signal(signal.SIGTERM)
            wait_until(lambda: d.status()["draining"], "it drains")
        waiting = [pair.connect("y"), unix_connect(pair.unix)]
        check(refused(pair, "x"), "no client waits for a disabled service, at a port")
        running.close()
        d.expect_dead = True
        equal(d.wait(), -signal.SIGKILL if crashes else 0, "exit status")
        check(refused(pair, "x"), "the same when no process is there")
        task = [in_thread(works, s, i) for i, s in enumerate(waiting)]
        if crashes:
            shut.bind((t.addr, pair.port["x"]))
            manager.stored.append(os.dup(shut.fileno()))
        d.log_path = t.path(f"log.{t.count()}")
        d.start(ready=False)
        d.wait_ready()
        check("closed: address" not in d.log(), d.log())
        for one in task:
            one.result()
        for s in [*waiting, pair.connect("x"), pair.connect("y"), unix_connect(pair.unix)]:
            works(s)
            s.close()
        check(served(d, "xyu"), "all are enabled")


@case("systemd's store has the sockets of a service that was disabled and enabled")
def _(t):
    pair, manager, d = under_systemd(t)
    wait_until(lambda: len(manager.stored) == 5, "two for each port, one for the UNIX socket")
    for reloads in (False, True):
        d.ctl_text("disable", "x")
        wait_until(lambda: len(manager.stored) == 3, "what is shut is not kept")
        if reloads:
            d.ctl("reload")
        d.ctl_text("enable", "x")
        wait_until(lambda: len(manager.stored) == 5, "all are kept again")
        d.stop()
        waiting = [pair.connect("x") for _ in range(4)]
        task = [in_thread(works, s, i) for i, s in enumerate(waiting)]
        d.log_path = t.path(f"log.{t.count()}")
        d.start(ready=False)
        d.wait_ready()
        for one in task:
            one.result()
        for s in waiting:
            s.close()
        wait_until(lambda: len(manager.stored) == 5, "and by the next process")
    running = pair.connect("y")
    works(running)
    manager.said.clear()
    d.ctl_text("drain", "--then-exit")
    for order in ("disable", "enable"):
        d.ctl_text(order, "x")
    d.expect_dead = True
    running.close()
    equal(d.wait(), 0, "exit status")
    wait_until(lambda: manager.has_said("STOPPING", 1), "its last word")
    equal(manager.stored, [], "a drain ends the service: nothing is kept, whatever is enabled then")


@case("systemd is notified of the new main process, which sends further notifications")
def _(t):
    pair = echo_pair(t, start=False)
    manager, old = Manager(t), pair.a
    old.env = dict(manager.env, WATCHDOG_USEC="30000000")
    pair.b.start()
    old.start()
    running = pair.connect()
    works(running)
    wait_until(lambda: manager.has_said("READY", 1), "READY")
    manager.said.clear()
    old.env = {}	# started by hand: it learns from the old one where systemd hears
    pair.a = new = old.successor()
    wait_until(lambda: manager.has_said("READY", 1), "READY of the new one")
    said = list(manager.said)
    check(manager.has_said("MAINPID", new.pid), said)
    check([k for words in said for k in words if k in ("MAINPID", "READY")][:2] == ["MAINPID", "READY"], f"in this order: {said}")
    check(not manager.has_said("STOPPING", 1), f"the service does not stop: {said}")
    running.close()
    equal(old.wait(), 0, "exit status")
    check(not manager.has_said("STOPPING", 1), "the old one says nothing at its end")
    new.send_signal(signal.SIGTERM)
    wait_until(lambda: manager.has_said("STOPPING", 1), "the new one speaks for the service")
    new.expect_dead = True
    new.wait()


if __name__ == "__main__":
    main()
