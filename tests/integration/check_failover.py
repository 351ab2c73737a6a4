#!/usr/bin/env python3
"""
Links that are lost under load: two daemons in network namespaces joined by several pairs of interfaces, which are
taken down, cut without a word, and brought back. While one path remains no connection is reset and no byte is lost.
"""
from netns import ADDR_A, ADDR_B, Net, enter

enter()

import array								# noqa: E402
import fcntl								# noqa: E402
import json								# noqa: E402
import re								# noqa: E402
import signal								# noqa: E402
import sys								# noqa: E402
import termios								# noqa: E402
import time								# noqa: E402
import zlib								# noqa: E402

from harness import (PATIENCE, SANITIZERS, WORKERS, Daemon, Failure, case, check, equal, hostport, in_thread,	# noqa: E402
                     logs, main, need, pattern, set_reset_on_close, wait_until)
from load import Echo, Probe, Stream					# noqa: E402
from programs import Iperf3, Postgres, Redis, RedisClient, postgres_bin, wait_port	# noqa: E402

INTERVAL_MS, ANSWER_MS = 300, 300
ROUNDS = 30 if not SANITIZERS else 9


class Gateways:
    """client -> a (here) == SMC-R over every pair of the net == b (over there) -> servers over there."""

    def __init__(self, t, servers, pairs=2, links_max=2, v6=False, last_link="1m"):
        """last_link: between two losses one link is left, which a process that stands still for a second must not cost."""
        self.t = t
        self.net = Net(t, pairs)
        devices = self.net.add_v6() if v6 else {side: self.net.devices(side) for side in "ab"}
        self.servers = {name: make(self.net.b) for name, make in servers.items()}
        self.port = {name: 12000 + i for i, name in enumerate(servers)}
        middle = {name: 13000 + i for i, name in enumerate(servers)}
        smcr = {"links_max": links_max, "test_link_interval": f"{INTERVAL_MS}ms", "test_link_timeout": f"{ANSWER_MS}ms",
                "llc_timeout": "1s", "last_link_timeout": last_link, "add_link_retry": "200ms", "hold_off": "100ms", "hold_off_max": "1s"}
        common = {"log_level": "info", "smcr": smcr}
        device = {"answer_timeout": "500ms", "connect_timeout": f"{max(1000, 1000 * PATIENCE / 6):.0f}ms"}
        self.a = Daemon(t, "a", {
            **common, "devices": [dict(d, **device) for d in devices["a"]],
            "ingress": [{"name": n, "listen": f"{ADDR_A}:{self.port[n]}", "to": f"{ADDR_B}:{middle[n]}"}
                        for n in servers]})
        self.b = Daemon(t, "b", {
            **common, "devices": [dict(d, **device) for d in devices["b"]],
            "egress": [{"name": n, "listen": f"{ADDR_B}:{middle[n]}", "to": hostport(s.host, s.port)}
                       for n, s in self.servers.items()]}, wrap=self.net.b.wrap())
        self.both = (self.a, self.b)

    def connect(self, name):
        return self.net.connect(self.port[name])

    def links(self, d):
        """pair -> connections of the active links (of the only group)."""
        return {int(x["device"][1:]): x["connections"] for x in d.ctl("links")["links"] if x["state"] == "active"}

    def wait_links(self, pairs, timeout=10):
        """In each group: every worker has its own."""
        def have(d):
            groups = {}
            for x in d.ctl("links")["links"]:
                groups.setdefault(x["group"], set()).update([int(x["device"][1:])] if x["state"] == "active" else [])
            return groups and all(g == set(pairs) for g in groups.values())
        for d in self.both:
            wait_until(lambda d=d: have(d), f"daemon {d.name} has links over pairs {set(pairs)}", timeout)

    def need_links(self, n):
        """Until n links are there, with a connection open."""
        for d in self.both:
            wait_until(lambda d=d: len(self.links(d)) == n, f"daemon {d.name} has {n} links", 5)

    def no_resets(self):
        for d in self.both:
            c = d.counters()
            for name in ("closed_reset", "sessions_reset", "failover_lost", "bad_cdc", "bad_llc", "fallback_local", "fallback_peer"):
                equal(c[name], 0, f"daemon {d.name}: counter {name}")

    def all_free(self, d):
        """Nothing is left of a peer that is gone: no connection, no group, no queue pair, no registered memory."""
        wait_until(lambda: not d.connections(), f"daemon {d.name} has no connections left", 15)
        wait_until(lambda: not d.groups(), f"daemon {d.name} has no link groups left", 15)
        for dev in d.ctl("devices")["devices"]:
            equal((dev["qps"], dev["mrs"], dev["registered_bytes"]), (0, 0, 0), f"in use of device {dev['name']}")


def spread(ms):
    ms = sorted(ms)
    return f"{len(ms)} times, median {ms[len(ms) // 2]:.1f} ms, worst {ms[-1]:.1f} ms" if ms else "never"


def break_pair(net, i, how):
    if how == "silent":
        net.silence(i)
    elif how == "address":
        net.ip("a", f"addr del 10.77.{i}.1/24 dev a{i}")
    else:
        net.down(how[-1], i)


def mend_pair(net, i, how):
    if how == "silent":
        net.unsilence(i)
    elif how == "address":
        net.ip("a", f"addr add 10.77.{i}.1/24 dev a{i}")
        net.up("a", i)
    else:
        net.up(how[-1], i)


@case("one link: its loss resets its connections after last_link_timeout, all is freed, and the next connection works")
def _(t):
    gw = Gateways(t, {"redis": Redis}, pairs=1, links_max=1, last_link="1s")
    for how, within in (("down a", 2), ("down b", 2), ("silent", (INTERVAL_MS + ANSWER_MS) / 1000 + 1.5)):
        c = RedisClient(gw.connect("redis"))
        equal(c.call("SET", "k", "v"), b"OK", "answer")
        equal(list(gw.links(gw.a)), [1], "links of a")
        start = time.monotonic()
        break_pair(gw.net, 1, how)
        try:
            end = c.sock.recv(1)
        except ConnectionResetError:
            end = "reset"
        took = time.monotonic() - start
        equal(end, "reset", f"{how}: what the client sees")
        check(took < within * PATIENCE, f"{how}: reset after {took:.3f} s")
        t.note(f"{how}: reset after {took * 1000:.1f} ms")
        for d in gw.both:
            gw.all_free(d)
            logs(d, "link down:")
        mend_pair(gw.net, 1, how)

        def works():
            try:
                return RedisClient(gw.connect("redis")).call("GET", "k") == b"v" and gw.a.groups()
            except (OSError, Failure):
                return False
        wait_until(works, f"SMC-R works again after {how}", 15)


@case("traffic continues through thirty losses of interfaces and paths", timeout=240)
def _(t):
    gw = Gateways(t, {"redis": Redis, "pg": Postgres, "iperf3": Iperf3})
    probes = [Probe(gw, f"count{i}", 0.001 if i == 0 else 0.01) for i in range(6)]
    gw.need_links(2)
    where = ["-h", ADDR_A, "-p", str(gw.port["pg"]), "-U", "postgres"]
    t.run([postgres_bin("pgbench"), *where, "-i", "-q", "-s", "1", "postgres"], timeout=60)
    seconds = 150 if not SANITIZERS else 100
    bench = t.spawn([postgres_bin("pgbench"), *where, "-n", "-c", "4", "-R", "100", "-T", str(seconds), "postgres"])
    out = t.path("iperf3.json")
    # With several workers connections may come in another order, by which iperf3 tells the two directions apart.
    both_ways = ["--bidir"] if WORKERS in (None, 1) else ["-P", "2"]
    with open(out, "wb") as f:
        stream = t.spawn([need("iperf3"), "-c", ADDR_A, "-p", str(gw.port["iperf3"]), "-t", str(seconds), "-b", "50M",
                          *both_ways, "-J"], stdout=f)
    gaps = {"down a": [], "down b": [], "silent": []}
    for n in range(ROUNDS):
        how, i = list(gaps)[n % 3], n // 3 % 2 + 1
        gw.a.ctl("rebalance")
        gw.wait_links(gw.net.pairs)
        for p in probes:
            p.goes_on(3)
            p.worst()
        break_pair(gw.net, i, how)
        gw.wait_links([3 - i], 5)
        for p in probes:
            p.goes_on(3)
        gaps[how].append(max(p.worst() for p in probes) * 1000)
        mend_pair(gw.net, i, how)
        gw.wait_links(gw.net.pairs, 15)
    for how, ms in gaps.items():
        t.note(f"{how}: traffic stood still {spread(ms)}")
    counters = [d.counters() for d in gw.both]
    t.note("moved " + ", ".join(f"{c['conns_moved']} connections in {c['failovers']} failovers" for c in counters))
    gw.no_resets()
    # All is well: what is limited in time is not waited for. This resets its connections.
    bench.send_signal(signal.SIGTERM)
    stream.send_signal(signal.SIGINT)
    for p in probes:
        p.stop()
    bench.expect_dead = stream.expect_dead = True
    bench.wait(20)
    stream.wait(20)
    check(bench.log().count("aborted") == 0, f"pgbench: {bench.log()}")
    sums = t.run([need("psql"), *where, "-qAtXc", "select (select sum(abalance) from pgbench_accounts),"
                  " (select sum(bbalance) from pgbench_branches), (select sum(tbalance) from pgbench_tellers),"
                  " (select sum(delta) from pgbench_history), (select count(*) from pgbench_history)"]).decode().strip().split("|")
    equal(len(set(sums[:4])), 1, f"different sums {sums}")
    check(int(sums[4]) > 100, f"{sums[4]} transactions")
    t.note(f"pgbench: {sums[4]} transactions, the books balance; probes: {sum(p.count for p in probes)} answers")
    with open(out) as f:
        streams = [i["sum"] for i in json.load(f)["intervals"]]
    whole = [s["bytes"] for s in streams if s["seconds"] > 0.5]	# the last one may have had no time
    check(whole and sum(whole[-2:]) > 0, f"iperf3 carries data to the end: {streams[-3:]}")
    worst = {how: max(ms) for how, ms in gaps.items()}
    for how in ("down a", "down b"):
        # The worst is the machine's, the usual is ours.
        median = sorted(gaps[how])[len(gaps[how]) // 2]
        check(SANITIZERS or median < 50 * PATIENCE, f"{how}: traffic usually stood still for {median:.0f} ms")
        check(worst[how] < 500 * PATIENCE, f"{how}: traffic stood still for {worst[how]:.0f} ms")
    limit = (INTERVAL_MS + ANSWER_MS + 300) * PATIENCE
    check(worst["silent"] < limit, f"silent: traffic stood still for {worst['silent']:.0f} ms, {limit:.0f} allowed")


@case("three pairs: another path replaces a lost one; the last one carries all", timeout=90,
      one_worker="the links of one group are looked at")
def _(t):
    gw = Gateways(t, {"redis": Redis}, pairs=3)
    probes = [Probe(gw, f"count{i}", 0.005) for i in range(6)]
    gw.need_links(2)
    first = set(gw.links(gw.a))
    gone = min(first)
    gw.net.down("a", gone)
    gw.wait_links({1, 2, 3} - {gone})
    for p in probes:
        p.goes_on()
    second = min({1, 2, 3} - {gone})
    gw.net.down("b", second)
    last = ({1, 2, 3} - {gone, second}).pop()
    gw.wait_links({last})
    for p in probes:
        p.goes_on()
    equal(gw.links(gw.a)[last], len(probes), f"connections on the link over pair {last}")
    group = gw.a.groups()[0]
    check(group["last_failover"]["age_ms"] >= 0 and group["last_failover"]["cause"], f"group {group}")
    t.note(f"last failover: {group['last_failover']}")
    gw.net.up("a", gone)
    gw.wait_links({gone, last})
    for p in probes:
        p.stop()
    gw.no_resets()


@case("three pairs: another path replaces a silent one whose ports stay up", timeout=60, one_worker="the links of one group are looked at")
def _(t):
    gw = Gateways(t, {"redis": Redis}, pairs=3)
    probes = [Probe(gw, f"count{i}", 0.005) for i in range(3)]
    gw.need_links(2)
    gone = min(gw.links(gw.a))
    gw.net.silence(gone)
    gw.wait_links({1, 2, 3} - {gone}, 15)
    for p in probes:
        p.goes_on()
        p.stop()
    gw.no_resets()


@case("one end with one device at first, then two", timeout=60,
      one_worker="the links of one group are looked at")
def _(t):
    for side in "ab":
        gw = Gateways(t, {"redis": Redis})
        end = 1 if side == "a" else 2
        gw.net.ip(side, f"addr del 10.77.2.{end}/24 dev {side}2")
        d, other = gw.both if side == "a" else reversed(gw.both)
        wait_until(lambda: d.status()["devices_up"] == 1, f"daemon {d.name} has one device")
        probes = [Probe(gw, f"count{i}", 0.005) for i in range(4)]
        wait_until(lambda: gw.links(gw.a) and gw.links(gw.b), "a link")
        for p in probes:
            p.goes_on()
        t.note(f"one device at {side}: {gw.a.groups()[0]['type']}, {gw.b.groups()[0]['type']}")
        gw.net.ip(side, f"addr add 10.77.2.{end}/24 dev {side}2")
        gw.wait_links({1, 2})
        for x in gw.both:
            equal(x.groups()[0]["type"], "symmetric", f"type of {x.name}'s group")
        for p in probes:
            p.stop()
        gw.no_resets()
        for x in gw.both:
            x.kill()
        gw.net.close()


@case("an operator moves connections and deletes a link", timeout=60,
      one_worker="the links of one group are looked at")
def _(t):
    gw = Gateways(t, {"redis": Redis})
    probes = [Probe(gw, f"count{i}", 0.005) for i in range(8)]
    gw.need_links(2)
    gw.net.down("a", 1)
    gw.wait_links({2})
    equal(gw.links(gw.a), {2: 8}, "connections of a's links")
    gw.net.up("a", 1)
    gw.wait_links({1, 2})
    gw.a.ctl("rebalance")
    wait_until(lambda: gw.links(gw.a) == {1: 4, 2: 4}, "a's connections are spread evenly")
    link = gw.a.ctl("links")["links"][0]
    text = gw.a.ctl_text("link", "delete", str(link["group"]), str(link["number"]))
    check("is being taken out" in text, text)
    wait_until(lambda: link["user_id"] not in [x["user_id"] for x in gw.a.ctl("links")["links"]], "the link is gone")
    for p in probes:
        p.goes_on()
        p.stop()
    gw.a.ctl_text("link", "delete", str(link["group"]), "77", status=1)
    gw.no_resets()


@case("bulk data at full speed in both directions returns byte for byte", timeout=120)
def _(t):
    gw = Gateways(t, {"echo": Echo}, pairs=3, links_max=3)
    streams = [Stream(gw, i) for i in range(4)]
    gw.need_links(3)
    for n in range(12 if not SANITIZERS else 4):
        how, i = ("down a", "silent", "down b", "address")[n % 4], n % 3 + 1
        gw.a.ctl("rebalance")
        gw.wait_links(gw.net.pairs, 15)
        marks = [s.got for s in streams]
        break_pair(gw.net, i, how)
        gw.wait_links(set(gw.net.pairs) - {i}, 15)
        for s, mark in zip(streams, marks):
            wait_until(lambda s=s, mark=mark: s.has(mark + (4 << 20)), "data goes on", 15)
        mend_pair(gw.net, i, how)
    gw.wait_links(gw.net.pairs, 15)
    for s in streams:
        s.stop()
    c = gw.a.counters()
    t.note(f"{sum(s.got for s in streams) >> 20} MiB, {c['conns_moved']} connections moved, {c['conns_replayed']} replayed "
           f"{c['bytes_replayed'] >> 10} KiB")
    check(c["bytes_replayed"] > 0, "something was sent again")
    gw.no_resets()


@case("devices with IPv6 addresses", timeout=60)
def _(t):
    gw = Gateways(t, {"redis": Redis}, v6=True)
    probes = [Probe(gw, f"count{i}", 0.005) for i in range(4)]
    gw.need_links(2)
    check("fd77:" in gw.a.ctl("links")["links"][0]["gid"], "the links' addresses")
    for how, i in (("down a", 1), ("down b", 2), ("down b", 1), ("down a", 2)):
        break_pair(gw.net, i, how)
        gw.wait_links({3 - i})
        for p in probes:
            p.goes_on()
        mend_pair(gw.net, i, how)
        gw.wait_links({1, 2})
    for p in probes:
        p.stop()
    gw.no_resets()


def works_again(gw, what):
    def works():
        try:
            c = RedisClient(gw.connect("redis"))
            c.call("SET", "again", what)
            return [x["mode"] for x in gw.a.connections() if x["mode"] == "smcr"] and c.call("GET", "again") == what.encode()
        except (OSError, Failure):
            return False
    wait_until(works, f"SMC-R works again: {what}", 20)


def how_it_ends(c):
    try:
        while c.recv(1 << 16):
            pass
        return "end"
    except ConnectionResetError:
        return "reset"


def new_client(gw):
    """How a connection fares that cannot be carried."""
    try:
        return how_it_ends(gw.connect("redis"))
    except ConnectionResetError:
        return "reset"


def load(gw, n=8):
    """Connections with data on the way in both directions all the time: their sockets."""
    clients = [RedisClient(gw.connect("redis")) for _ in range(n)]
    for i, c in enumerate(clients):
        equal(c.call("SET", f"big{i}", b"x" * 300000), b"OK", "answer")
        for _ in range(20):
            c.send("GET", f"big{i}")
    return [c.sock for c in clients]


@case("a daemon killed under load: the other one resets, logs the reason, frees all, and works with the next", timeout=120)
def _(t):
    gw = Gateways(t, {"redis": Redis})
    for victim, survivor in ((gw.b, gw.a), (gw.a, gw.b)):
        socks = load(gw)
        wait_until(lambda: len(survivor.connections()) >= len(socks), "all connections are there")
        mark = len(survivor.log())
        start = time.monotonic()
        victim.kill()
        ends = [in_thread(how_it_ends, s) for s in socks]
        for e in ends:
            got = e.result(10)
            # A client of the killed daemon itself may see either.
            check(got == "reset" or victim is gw.a, f"a client sees {got}")
        gw.all_free(survivor)
        t.note(f"{victim.name} killed: {survivor.name} had freed everything after {(time.monotonic() - start) * 1000:.0f} ms")
        for words in ("link down:", "link group down:"):
            wait_until(lambda words=words: words in survivor.log()[mark:], f"{words} in the log of {survivor.name}")
        if victim is gw.b:
            equal(new_client(gw), "reset", "a client while the peer is away")
        victim.start()
        works_again(gw, f"{victim.name} is back")


@case("started in any order", timeout=60)
def _(t):
    gw = Gateways(t, {"redis": Redis})
    works_again(gw, "b before a")
    for d in gw.both:
        d.kill()
    gw.a.start()
    equal(new_client(gw), "reset", "a client while the peer is away")
    gw.b.start()
    works_again(gw, "a before b")


@case("a stopped daemon: the other one gives up in time, and works with it afterwards", timeout=120)
def _(t):
    gw = Gateways(t, {"redis": Redis}, last_link="1s")
    for victim, survivor in ((gw.b, gw.a), (gw.a, gw.b)):
        socks = load(gw)
        wait_until(lambda: len(survivor.connections()) >= len(socks), "all connections are there")
        victim.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        try:
            gw.all_free(survivor)
            took = time.monotonic() - start
        finally:
            victim.send_signal(signal.SIGCONT)
        # One link after the other, each after its interval and its answer's time, or its device's.
        check(took < 5 * PATIENCE, f"daemon {survivor.name} gave up after {took:.1f} s")
        t.note(f"{victim.name} stopped: {survivor.name} had given up after {took * 1000:.0f} ms")
        for s in socks:
            s.close()
        works_again(gw, f"{victim.name} goes on")


READER = """
import socket, sys, time, zlib
s, _ = socket.create_server((sys.argv[1], int(sys.argv[2]))).accept()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 131072)
time.sleep(1)
n = crc = 0
try:
    while part := s.recv(16384):
        n, crc = n + len(part), zlib.crc32(part, crc)
    print("read", n, crc, "end", flush=True)
except OSError as e:
    print("read", n, crc, type(e).__name__, flush=True)
time.sleep(1000)
"""


class Reader:
    """Reads late, and says how much came, and how it ended."""

    def __init__(self, t):
        self.host, self.port = t.addr, t.port()
        self.proc = t.spawn([sys.executable, "-c", READER, self.host, str(self.port)], "reader")
        wait_port(self.proc, self.host, self.port)


@case("a reset whose data is in flight when its link is lost: all data arrives before the reset")
def _(t):
    data = pattern(1500000)
    for how in ("silent", "down a", "down b"):
        gw = Gateways(t, {"reader": Reader, "redis": Redis})
        reader = gw.servers["reader"].proc
        keeps = RedisClient(gw.connect("redis"))
        gw.need_links(2)
        c = gw.connect("reader")
        c.sendall(data)
        wait_until(lambda: array.array("i", fcntl.ioctl(c, termios.TIOCOUTQ, b"\0" * 4))[0] == 0, "the gateway has all bytes")
        conn = next(x for x in gw.a.connections() if x["service"] == "reader")
        pair = next(int(x["device"][1:]) for x in gw.a.ctl("links")["links"] if x["number"] == conn["link"])
        break_pair(gw.net, pair, how)
        set_reset_on_close(c)
        c.close()
        line = wait_until(lambda: re.search("^read .*\n", reader.log(), re.M), f"{how}: the reader's stream ends", 20)
        equal(line[0].split(), ["read", str(len(data)), str(zlib.crc32(data)), "ConnectionResetError"], how)
        equal(keeps.call("PING"), b"PONG", "the other connection")
        for d in (gw.a, gw.b):
            check(d.counters()["failovers"] > 0, f"{how}: the connections of daemon {d.name} have moved")
            d.finish()
        gw.net.close()


main()
