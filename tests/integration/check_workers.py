#!/usr/bin/env python3
"""Several workers in a daemon: distribution of connections, limits and reloads over all of them, and the effect of a stopped
worker on the others."""
import ctypes
import json
import os
import socket
import subprocess
import sys
import time

from harness import (Daemon, Failure, Pair, Server, Skip, case, check, connect_to, echo, equal, exchange, hostport,
                     in_thread, logs, main, pattern, recv_exact, unix_connect, wait_until, LIBC, PATIENCE, SMCRCTL, SHRINK)


def works(s, seed=0, n=3000):
    exchange(s, pattern(n, seed))


def pair_of(t, workers, **kw):
    a, b = kw.pop("a", {}), kw.pop("b", {})
    return Pair(t, {"x": Server(t, echo).at}, a={"workers": workers, **a}, b={"workers": workers, **b}, **kw)


def open_all(pair, cnt, name=None):
    socks = [pair.connect(name) for _ in range(cnt)]
    for s in socks:
        s.sendall(b"x")
    for s in socks:
        equal(recv_exact(s, 1), b"x", "echo")
    return socks


def per_worker(d):
    """Connections of each worker, of all modes."""
    return [sum(w["connections"].values()) for w in d.status()["workers"]]


def by_worker(d, socks):
    """The clients' sockets of each worker of an ingress."""
    whose = {c["app"]: c["worker"] for c in d.connections()}
    found = {}
    for s in socks:
        found.setdefault(whose[hostport(*s.getsockname()[:2])], []).append(s)
    return found


# -- sharing --


@case("600 connections: each of two workers has half, within 20 percent, at both ends", timeout=120)
def _(t):
    cnt = 600
    pair = pair_of(t, 2)
    socks = open_all(pair, cnt)
    for d in (pair.a, pair.b):
        shares = per_worker(d)
        t.note(f"daemon {d.name}: {shares}")
        equal(sum(shares), cnt, "connections of all workers")
        for n in shares:
            check(cnt / 2 * 0.8 <= n <= cnt / 2 * 1.2, f"daemon {d.name}: {shares}")
    pair.only_smcr(cnt)
    for s in socks:
        s.close()
    pair.quiet()


def ports_can_be_chosen():
    """IP_LOCAL_PORT_RANGE, Linux 6.3"""
    with socket.socket() as s:
        try:
            s.setsockopt(socket.IPPROTO_IP, 51, bytes(4))
        except OSError:
            return False
    return True


@case("equal numbers of workers have one link group each; unequal ones as many as their ports select")
def _(t):
    for a, b in ((3, 3), (2, 1), (1, 2)):
        pair = Pair(t, {"x": Server(t, echo).at}, a={"workers": a}, b={"workers": b})
        socks = open_all(pair, 60)
        if a == 1 or ports_can_be_chosen():
            equal(len(pair.b.groups()), max(a, b), f"link groups of {a} and {b} workers")
        shares = per_worker(pair.b)
        check(min(shares) >= 5, f"connections of each of {b} workers: {shares}")
        for s in socks:
            s.close()
        for d in (pair.a, pair.b):
            equal(d.stop(), 0, f"exit status of {d.name}")


PASS_ONE = """
import os, socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2])))
s.listen(4096)
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[3], sys.argv[3:])
"""


@case("all workers accept from a systemd socket, also after a reload")
def _(t):
    server = Server(t, echo)
    pair = Pair(t, {"x": server.at}, a={"workers": 3}, start=False)
    pair.b.start()
    pair.a.wrap = [sys.executable, "-c", PASS_ONE, t.addr, str(pair.port["x"])]
    pair.a.start()
    for _ in range(2):
        socks = open_all(pair, 120)
        shares = per_worker(pair.a)
        t.note(f"shares: {shares}")
        equal(sum(shares), 120, "connections of all workers")
        # Each worker deals out what it accepted, so all have the same number, plus or minus one for each acceptor.
        check(max(shares) - min(shares) <= 3, f"shares: {shares}")
        for s in socks:
            s.close()
        pair.quiet()
        conf = dict(pair.conf_a)
        conf["ingress"] = [dict(conf["ingress"][0], name="renamed", max_connections=500)]
        pair.a.write_conf(conf)
        pair.a.ctl_text("reload")


# -- one daemon to its observers --


@case("smcrctl shows the sum, and one worker with --worker; ids belong to one worker")
def _(t):
    pair = pair_of(t, 3)
    socks = open_all(pair, 60)
    for d in (pair.a, pair.b):
        conns, groups = d.connections(), d.groups()
        equal(len(conns), 60, "connections")
        equal(len({c["id"] for c in conns}), 60, "different ids of connections")
        equal(len({g["id"] for g in groups}), len(groups), "different ids of groups")
        owner = {g["id"]: g["worker"] for g in groups}
        for c in conns:
            equal(c["worker"], owner[c["group"]], "the worker of a connection and of its group")
        for kind in ("connections", "groups", "links", "rmbs", "devices"):
            everything = d.ctl(kind)[kind]
            parts = [d.ctl(kind, "--worker", str(w))[kind] for w in (1, 2, 3)]
            equal([len(p) for p in parts], [sum(x["worker"] == w for x in everything) for w in (1, 2, 3)],
                  f"{kind} of each worker")
            equal(sum(map(len, parts)), len(everything), f"{kind} of all")
        whole = d.status()
        for w in (1, 2, 3):
            part = d.ctl("status", "--worker", str(w))
            equal(part["connections"], whole["workers"][w - 1]["connections"], "connections of one")
            equal(part["groups"], sum(x == w for x in owner.values()), "groups of one")
        equal(whole["groups"], len(groups), "groups of all")
        parts = [d.ctl("stats", "--worker", str(w))["counters"]["sessions_opened"] for w in (1, 2, 3)]
        equal((sum(parts), min(parts) > 0), (60, True), f"opened by each: {parts}")
        equal(d.counters()["sessions_opened"], 60, "opened by all")
        for g in groups:
            mine = d.ctl("connections", "--group", str(g["id"]))["connections"]
            equal(len(mine), g["connections"], "connections of a group")
            equal(d.ctl("rebalance", str(g["id"]))["moving"], 0, "nothing to move")
            check("last active link" in d.t.run([SMCRCTL, "--socket", d.control, "link", "delete", str(g["id"]), "1"],
                                                status=1, stderr=subprocess.STDOUT).decode(), "link delete")
        check("no such worker" in d.t.run([SMCRCTL, "--socket", d.control, "--worker", "4", "status"], status=None,
                                          stderr=subprocess.STDOUT).decode(), "a worker that is not there")
    ports = [x["mpa_port"] for x in pair.a.ctl("devices")["devices"]]
    equal(len(set(ports)), 3, f"MPA ports: {ports}")
    for w in (1, 2, 3):
        before = pair.a.ctl("stats", "--worker", str(w))["counters"]["conns_client"]
        check(pair.a.ctl("check", "--worker", str(w), hostport(t.addr, pair.middle["x"]))["possible"], "check")
        equal(pair.a.ctl("stats", "--worker", str(w))["counters"]["conns_client"], before + 1, "made by this one")
    for s in socks:
        s.close()
    pair.ended_well(60)


def trace(t, d, *args):
    """A trace's lines until fn() gives True for them."""
    p = subprocess.Popen([SMCRCTL, "--socket", d.control, "--json", "trace", "--cdc", *args], stdout=subprocess.PIPE)
    t.later(lambda: (p.terminate(), p.wait(), p.stdout.close()))
    return p


def read_trace(p, cnt):
    return [json.loads(p.stdout.readline()) for _ in range(cnt)]


@case("a trace has the messages of all workers, or of one")
def _(t):
    pair = pair_of(t, 3)
    socks = open_all(pair, 60)
    mine = by_worker(pair.a, socks)
    equal(sorted(mine), [1, 2, 3], "workers that have connections")
    everybody, second = trace(t, pair.a), trace(t, pair.a, "--worker", "2")
    group = pair.a.ctl("groups", "--worker", "3")["groups"][0]["id"]
    of_group = trace(t, pair.a, "--group", str(group))
    tasks = [in_thread(read_trace, p, cnt) for p, cnt in ((everybody, 1000), (second, 20), (of_group, 2))]

    def are_read():
        for s in socks:
            works(s)
        return not any(task.is_alive() for task in tasks)
    wait_until(are_read, "a trace that began late has lines of later traffic")
    seen, of_second, of_third = (task.result() for task in tasks)
    equal({m["worker"] for m in seen}, {1, 2, 3}, "workers in the trace of all")
    equal({m["worker"] for m in of_second}, {2}, "workers in the trace of the second")
    equal({(m["worker"], m["group"]) for m in of_third}, {(3, group)}, "workers in the trace of a group")


# -- limits --


@case("max_connections and max_connections_per_peer hold over all workers")
def _(t):
    pair = pair_of(t, 3, ingress={"max_connections": 20})
    socks = open_all(pair, 20)
    shares = per_worker(pair.a)
    check(max(shares) < 20, f"more than one worker has some: {shares}")	# that one of three has none is 1 in 1,100
    for _ in range(10):
        check(pair.turned_away(), "one too many")
    equal(pair.a.services()[0]["refused_max"], 10, "refused")
    equal(pair.a.services()[0]["connections_max"], 20, "the limit")
    for s in socks[:5]:
        s.close()
    wait_until(lambda: len(pair.a.connections()) == 15, "five have ended")
    socks = socks[5:] + open_all(pair, 5)
    check(pair.turned_away(), "one too many again")

    conf = dict(pair.conf_a)
    conf["ingress"] = [dict(conf["ingress"][0], max_connections=1000, max_connections_per_peer=25)]
    pair.a.write_conf(conf)
    pair.a.ctl_text("reload")
    socks += open_all(pair, 5)	# those from before the reload count
    for _ in range(10):
        check(pair.turned_away(), "one too many of this client")
    equal(pair.a.services()[0]["refused_per_peer"], 10, "refused")
    for s in socks:
        works(s)


# -- reload and end --


@case("a reload is for all workers or for none")
def _(t):
    pair = pair_of(t, 3)
    socks = open_all(pair, 30)
    taken = socket.socket()
    t.later(taken.close)
    taken.bind((t.addr, t.port()))
    taken.listen()
    new = t.port()
    conf = dict(pair.conf_a)
    old = conf["ingress"][0]
    conf["ingress"] = [dict(old, max_connections=1), dict(old, name="new", listen=hostport(t.addr, new)),
                       dict(old, name="taken", listen=hostport(*taken.getsockname()))]
    pair.a.write_conf(conf)
    said = t.run([SMCRCTL, "--socket", pair.a.control, "reload"], status=1, stderr=subprocess.STDOUT).decode()
    check("service taken: cannot listen on" in said and said.count("cannot listen") == 1, f"reload says: {said}")
    equal([s["name"] for s in pair.a.services()], ["x"], "services")
    try:
        connect_to((t.addr, new)).close()
        raise Failure("a service of a failed reload listens")
    except ConnectionRefusedError:
        pass
    socks += open_all(pair, 5)	# max_connections as it was
    taken.close()
    said = pair.a.ctl_text("reload")
    equal(said.count("service new added"), 1, f"said once: {said}")
    check(pair.turned_away(), "max_connections as it is now")
    pair.port["new"] = new
    socks += open_all(pair, 60, "new")
    shares = per_worker(pair.a)
    check(min(shares) > 0, f"all listen: {shares}")
    for s in socks:
        works(s)
    pair.a.write_conf(pair.conf_a)
    pair.a.ctl_text("reload")
    equal([s["name"] for s in pair.a.services()], ["x"], "services")
    for s in socks:
        works(s)
    logs(pair.a, "service removed: service=new", times=1)


def on_unix(svc, path, **kw):
    return dict(svc, listen=f"unix:{path}", **kw)


def shares_by_unix(t, pair, path, cnt):
    """Connections to a UNIX socket, until each worker has accepted some."""
    socks, before = [], per_worker(pair.a)

    def spread():
        for _ in range(cnt):
            socks.append(unix_connect(path))
        for s in socks[-cnt:]:
            works(s)
        return min(n - b for n, b in zip(per_worker(pair.a), before)) > 0
    t.later(lambda: [s.close() for s in socks])
    wait_until(spread, "all workers accept from the socket")
    return socks


@case("a UNIX socket is shared by all workers: created once, removed once, also by reloads", timeout=60)
def _(t):
    first, second, third = (t.path(n) for n in ("first", "second", "third"))
    pair = pair_of(t, 3, start=False)
    conf = dict(pair.conf_a)
    old = conf["ingress"][0]
    conf["ingress"] = [on_unix(old, first)]
    pair.a.write_conf(conf)
    pair.b.start()
    pair.a.start()
    made = os.stat(first)
    socks = shares_by_unix(t, pair, first, 20)

    # None of the workers gets new sockets when one cannot be had, and what was made for that is gone.
    with open(third, "w"):
        pass
    conf["ingress"] = [on_unix(old, first), on_unix(old, second, name="y"), on_unix(old, third, name="z")]
    pair.a.write_conf(conf)
    said = t.run([SMCRCTL, "--socket", pair.a.control, "reload"], status=1, stderr=subprocess.STDOUT).decode()
    equal(said.count("that is not a socket"), 1, f"said once: {said}")
    check(not os.path.exists(second), "the file of a failed reload is gone")
    os.unlink(third)

    # A new one, and one that goes from a service to another, which keeps its file.
    conf["ingress"] = [on_unix(old, second), on_unix(old, first, name="y")]
    pair.a.write_conf(conf)
    pair.a.ctl_text("reload")
    equal((os.stat(first).st_dev, os.stat(first).st_ino), (made.st_dev, made.st_ino), "the first file")
    socks += shares_by_unix(t, pair, first, 20)
    socks += shares_by_unix(t, pair, second, 20)
    conf["ingress"] = [on_unix(old, second, max_connections_per_peer=len(socks))]
    pair.a.write_conf(conf)
    pair.a.ctl_text("reload")
    check(not os.path.exists(first), "the file of a service that was removed is gone")
    for s in socks:
        works(s)
    for s in socks:
        s.close()
    pair.a.stop()
    check(not os.path.exists(second), "no file is left")


@case("max_connections_per_peer of a UNIX socket is per user, over all workers")
def _(t):
    path = t.path("s")
    pair = pair_of(t, 3, start=False)
    conf = dict(pair.conf_a)
    conf["ingress"] = [on_unix(conf["ingress"][0], path, max_connections_per_peer=30)]
    pair.a.write_conf(conf)
    pair.b.start()
    pair.a.start()
    socks = [unix_connect(path) for _ in range(30)]
    t.later(lambda: [s.close() for s in socks])
    for s in socks:
        works(s)
    with unix_connect(path) as s:
        equal(s.recv(1), b"", "one too many of this user")
    equal(pair.a.services()[0]["refused_per_peer"], 1, "refused")
    socks.pop().close()
    wait_until(lambda: len(pair.a.connections()) == 29, "one has ended")
    with unix_connect(path) as s:
        works(s)


@case("a second daemon of the same user does not get the port of the first")
def _(t):
    pair = pair_of(t, 2)
    second = Daemon(t, "c", dict(pair.conf_a), start=False)
    second.start(ready=False)
    second.expect_dead = True
    check(second.wait() != 0, "exit status")
    logs(second, "Address already in use")
    works(pair.connect())


@case("a drain waits for the last connection of every worker")
def _(t):
    pair = pair_of(t, 3)
    socks = open_all(pair, 60)
    pair.a.expect_dead = True
    pair.a.ctl_text("drain", "--then-exit")
    wait_until(pair.turned_away, "no new connection is accepted", 5)
    for mine in by_worker(pair.a, socks).values():
        check(pair.a.alive(), "the daemon waits")
        for s in mine:
            works(s)
            s.close()
    equal(pair.a.wait(), 0, "exit status")
    logs(pair.a, "drained")


# -- a worker that stands still --

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000


class Stopped:
    """One thread of a daemon stands still, as in a debugger."""

    def __init__(self, t, d, name):
        self.tid = next(tid for tid, comm in d.threads("comm").items() if comm.strip() == name)
        LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        LIBC.ptrace.restype = ctypes.c_long
        if LIBC.ptrace(PTRACE_SEIZE, self.tid, None, None) != 0:
            raise Skip("threads of other processes cannot be stopped here")
        LIBC.ptrace(PTRACE_INTERRUPT, self.tid, None, None)
        os.waitpid(self.tid, WALL)
        self.stopped = True
        t.later(self.go)

    def go(self):
        if self.stopped:
            self.stopped = False
            LIBC.ptrace(PTRACE_DETACH, self.tid, None, None)


@case("a stopped worker does not delay the others")
def _(t):
    pair = pair_of(t, 2)
    socks = open_all(pair, 60)
    mine = by_worker(pair.a, socks)
    equal(sorted(mine), [1, 2], "workers that have connections")
    still = Stopped(t, pair.a, "smcrd-worker-2")
    slowest = 0
    for i in range(10):
        for s in mine[1]:
            begin = time.monotonic()
            works(s, i)
            slowest = max(slowest, time.monotonic() - begin)
    t.note(f"the slowest of {10 * len(mine[1])} round trips: {slowest * 1000:.1f} ms")
    check(slowest < 2 * PATIENCE, f"a round trip took {slowest} s")
    # New ones, too, where the kernel gives them to the worker that runs.
    fresh = [pair.connect() for _ in range(40)]
    for s in fresh:
        s.sendall(b"x")
        s.settimeout(0.01)

    def answered():
        done = 0
        for s in fresh:
            try:
                done += s.recv(1, socket.MSG_PEEK) == b"x"
            except TimeoutError:
                pass
        return done
    wait_until(lambda: answered() >= 5, "new connections are served")
    still.go()
    wait_until(lambda: answered() == 40, "those that waited, too")
    for s in socks:
        works(s)


@case("no watchdog notification while a worker is stopped")
def _(t):
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    t.later(notify.close)
    notify.bind(t.path("notify"))
    pair = pair_of(t, 2, start=False)
    pair.a.env = {"NOTIFY_SOCKET": t.path("notify"), "WATCHDOG_USEC": "400000"}
    pair.b.start()
    pair.a.start()

    def heard(seconds):
        """Signs of life within this time."""
        cnt, end = 0, time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            notify.settimeout(left)
            try:
                cnt += b"WATCHDOG=1" in notify.recv(4096)
            except TimeoutError:
                break
        return cnt
    wait_until(lambda: heard(1.5) >= 3, "signs of life")
    still = Stopped(t, pair.a, "smcrd-worker-2")
    heard(0.5)	# one may have been under way
    equal(heard(1), 0, "signs of life of a daemon with a worker that stands still")
    still.go()
    wait_until(lambda: heard(0.5) > 0, "signs of life again")
    works(pair.connect())


@case("no thread has a privilege or system call that the process dropped")
def _(t):
    pair = pair_of(t, 3)
    open_all(pair, 10)
    for d in (pair.a, pair.b):
        seen = {}
        for text in d.threads("status").values():
            status = dict(line.split(":\t", 1) for line in text.strip().split("\n") if ":\t" in line)
            seen[status["Name"]] = tuple(status[k].strip() for k in ("CapEff", "CapPrm", "NoNewPrivs", "Seccomp"))
        check({f"smcrd-worker-{n}" for n in (1, 2, 3)} <= set(seen), f"threads: {sorted(seen)}")
        equal(len(set(seen.values())), 1, f"rights of all threads: {seen}")


main()
