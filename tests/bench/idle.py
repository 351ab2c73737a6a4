"""Measurements of connections that stand still: their memory, what they cost in CPU, which worker has them."""
import resource
import time

from harness import check, connect_to, recv_exact, wait_until
from ways import VALUES

FRESH = 5000
SPARE_FILES = 400	# that a process has beside those of connections: listeners, links, epoll
RMB_IDLE_S = 1.0	# as setup "idle" has it


def connected(way, count):
    """So many sockets to Redis, each of which has had an answer."""
    socks = []
    for _ in range(count):
        s = connect_to(way.at("redis"), 20)
        s.sendall(b"PING\r\n")
        check(recv_exact(s, 7) == b"+PONG\r\n", "Redis answers")
        socks.append(s)
    return socks


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


def many_count():
    """10,000, or what the two files of each connection leave room for in one process."""
    return min(10000, (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES) // 2)


def many(bench, setup, side):
    """So many connections: KiB of each, both processes together, and ms of CPU in 30 s in which nothing happens."""
    way = bench.fresh_way(setup, side)
    try:
        first = connected(way, 1)
        before = way.rss()
        socks = connected(way, many_count())
        rss = way.rss()
        cpu, since = way.cpu(), time.monotonic()
        time.sleep(15 * bench.seconds)	# raw: what an idle process does is what is measured
        cpu, took = way.cpu() - cpu, time.monotonic() - since
        check(way.fallbacks() == 0, "all connections are on SMC-R")
        for s in socks + first:
            s.close()
        return {"count": len(socks), "memory": (rss - before) / len(socks) / 1024, "cpu": cpu / took * 30 * 1000}
    finally:
        way.end()


def memory(bench, setup, side):
    """KiB of a connection, both processes together: fresh (it has carried a few bytes), and used (1 MB, then idle)."""
    way = bench.fresh_way(setup, side)
    try:
        first = connected(way, 1)
        before = way.rss()
        socks = connected(way, FRESH)
        fresh = way.rss()
        for s in socks:
            fetch_large(s)
        used = settled_rss(way)
        check(way.fallbacks() == 0, "all connections are on SMC-R")
        for s in socks + first:
            s.close()
        return {"fresh": (fresh - before) / FRESH / 1024, "used": (used - before) / FRESH / 1024}
    finally:
        way.end()
