"""Measurements of connections by their number: their memory, what idle ones cost in CPU, which worker has them."""
import resource
import socket
import time

import measure
from harness import PATIENCE, check, connect_to, recv_exact, wait_until
from programs import RedisClient
from ways import VALUES

SPARE_FILES = 400	# that a process has beside those of connections: listeners, links, epoll
RMB_IDLE_S = 2		# of setup "idle"


def at_most():
    """Connections of one pair of processes: 10,000, or what the two files of each leave room for."""
    return min(10000, (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES) // 2)


def ask(s):
    s.sendall(b"PING\r\n")


def take_answer(s):
    check(recv_exact(s, 7) == b"+PONG\r\n", "Redis answers")


def connected(way, count):
    """So many sockets to Redis, each of which has had an answer."""
    socks = []
    for _ in range(count):
        socks.append(connect_to(way.at("redis"), 20))
        ask(socks[-1])
        take_answer(socks[-1])
    return socks


def at_server(s):
    """Connections that the Redis at the other end of s has."""
    return int(RedisClient(s).call("INFO", "clients").partition(b"connected_clients:")[2].split()[0])


def spread(_bench, way, connections):
    """Of so many connections at once, the percentage that the busiest worker has: near, far."""
    socks = connected(way, connections)
    of_workers = [[w["connections"]["smcr"] for w in d.status()["workers"]] for d in way.procs]
    for s in socks:
        s.close()
    return {end: 100 * max(counts) / connections for end, counts in zip(("near", "far"), of_workers)}


def fetch_large(s):
    """1 MB by this connection."""
    s.sendall(b"GET k1M\r\n")
    head = b"$%d\r\n" % VALUES["k1M"]
    want = len(head) + VALUES["k1M"] + 2
    check(len(recv_exact(s, want)) == want, "a large value arrives whole")


def settled_rss(way):
    """Memory once it has not fallen for two times what memory is kept for."""
    state = {"least": way.rss(), "since": time.monotonic()}

    def stands():
        now = way.rss()
        if now < state["least"]:
            state.update(least=now, since=time.monotonic())
        return time.monotonic() - state["since"] > 2 * RMB_IDLE_S
    wait_until(stands, "memory of idle connections stands still", 30)
    return way.rss()


class Crowd:
    """So many connections of a way, held by a process of its own."""

    def __init__(self, t, way, count):
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(120 * PATIENCE)
        self.process = t.fork(self._hold, way, count, theirs)
        theirs.close()

    @staticmethod
    def _hold(way, count, theirs):
        socks = connected(way, count)
        theirs.sendall(b"+")
        theirs.recv(1)
        return len(socks)

    def wait(self):
        if not self.ours.recv(1):
            self.process.result()	# raises what went wrong

    def end(self):
        self.ours.sendall(b"-")
        self.ours.close()
        return self.process.result()


def many(bench, setup, side):
    """The connections of a setup of several pairs: KiB of each, all processes between together, and us of CPU of each in a minute in
    which nothing happens."""
    way, count = bench.fresh_way(setup, side), bench.setup(setup).count
    try:
        first = [connected(part, 1) for part in way.parts]
        before = way.rss()
        shares = [count // len(way.parts) + (i < count % len(way.parts)) for i in range(len(way.parts))]
        crowds = [Crowd(bench.t, part, n) for part, n in zip(way.parts, shares)]
        for crowd in crowds:
            crowd.wait()
        rss = way.rss()
        cpu, since = way.cpu(), time.monotonic()
        time.sleep(5 * bench.seconds)	# raw: what an idle process does is what is measured
        cpu, took = way.cpu() - cpu, time.monotonic() - since
        check(way.fallbacks() == 0, "all connections are on SMC-R")
        count = sum(crowd.end() for crowd in crowds)
        for s, in first:
            s.close()
        return {"count": count, "memory": (rss - before) / count / 1024, "idle": cpu / took * 60 * 1e6 / count}
    finally:
        way.end()


def growing(bench, setup, side, count):
    """So many connections, as far as a process may have files: KiB of each, both processes together; then figures of GETs on all."""
    way, count = bench.fresh_way(setup, side), min(count, at_most())
    result = {"count": count}
    try:
        if way.procs:
            first = connected(way, 1)
            before = way.rss()
            socks = connected(way, count - 1)
            result["memory"] = (way.rss() - before) / (count - 1) / 1024
            for s in socks + first:
                s.close()
        result.update(measure.redis_run(way, count, max(int(20000 * bench.seconds), 10 * count), ("get", "k3")))
        check(way.fallbacks() == 0, "all connections are on SMC-R")
        return result
    finally:
        way.end()


def memory(bench, setup, side, count):
    """KiB of each of so many connections, both processes together: fresh (no byte so far), once (an answer so far), busy (the most
    while all are asked at once), used (1 MB, then idle)."""
    way = bench.fresh_way(setup, side)
    try:
        first, = connected(way, 1)
        before, there = way.rss(), at_server(first)
        socks = []
        while len(socks) < count:	# few at a time, as a rendezvous that takes seconds ends in TCP
            socks += [connect_to(way.at("redis"), 20) for _ in range(min(100, count - len(socks)))]
            wait_until(lambda: at_server(first) == there + len(socks), "all connections are at the server", 30)
        figures = {"fresh": settled_rss(way)}
        for s in socks:
            ask(s)
            take_answer(s)
        figures["once"] = way.rss()
        way.forget_peak()
        for do in (ask, take_answer):
            for s in socks:
                do(s)
        figures["busy"] = way.peak()
        for s in socks:
            fetch_large(s)
        figures["used"] = settled_rss(way)
        check(way.fallbacks() == 0, "all connections are on SMC-R")
        for s in (*socks, first):
            s.close()
        return {key: (rss - before) / count / 1024 for key, rss in figures.items()}
    finally:
        way.end()
