#!/usr/bin/env python3
# kernel: linux-image-6.12-amd64
# cards: 2
# takes: 95 s
# load: 80
"""
Third-party programs, unchanged: on one side with plain sockets through smcrd, on the other with those of Linux's own
SMC, which a preload library gives them. Way "in": the client has AF_SMC, and smcrd's egress the plain server; "out": a plain
client at smcrd's ingress, and the server has AF_SMC.
"""
from afsmc import Scene, address
from harness import case, check, equal, main, wait_until
from pair import Far
from real import FILE

WAYS = ("in", "out")


class Through:
    """One kind of server, and the gateway that its clients go by."""

    def __init__(self, t, way, kind):
        self.t, self.way = t, way
        self.scene = Scene(t, "smcrd", group_idle="1m")		# the groups can be looked at when all is over
        self.preload = way == "in"
        server, client = ("a", "b") if way == "in" else ("b", "a")
        self.server, self.client = self.scene.real[server], self.scene.real[client]
        host = t.addr if way == "in" else address("b")
        self.at = self.scene.gateway(way, getattr(self.server, kind)(host, not self.preload))
        self.url = "http://%s:%d" % self.at

    def over(self, at_least, broken_off=0):
        """The kernel's word, and smcrd's: all was SMC-R of version 2, and they agree on how many connections it was, but for those
        that the client has broken off while they were made. The daemon ends."""
        d = self.scene.daemons[0]
        role = "client" if self.way == "in" else "server"
        wait_until(lambda: not d.connections(), "the daemon has no connections left")
        equal(self.scene.fallbacks("b"), {}, f"{self.way}: fallbacks in the kernel")
        kernel = {k: n for k, n in self.scene.over_smcr("b").items() if n}
        equal(set(kernel), {f"{role} 2"}, f"{self.way}: roles and versions of the kernel's connections on SMC-R")
        said = kernel[f"{role} 2"], d.established()
        check(min(said) >= at_least and max(said) - min(said) <= broken_off,
              f"{self.way}: connections on SMC-R, as the kernel and the daemon count them: {said}, expected {at_least}")
        c = d.counters()
        for name in ("fallback_local", "fallback_peer", "bad_clc", "bad_cdc", "bad_llc"):
            equal(c[name], 0, f"{self.way}: counter {name} of the daemon")
        ours = [(x["role"], x["version"], x["release"], x["foreign"]) for x in d.groups()]
        theirs = [(x["version"], x["release"]) for x in self.scene.hosts["b"].groups() if x["role"] == role]
        equal(set(ours), {("server" if role == "client" else "client", 2, 1, True)}, f"{self.way}: the daemon's groups")
        equal(set(theirs), {(2, 1)}, f"{self.way}: the kernel's groups: version, release")
        self.t.note(f"{self.way}: {said[0]} connections on SMC-R")
        d.finish()
        Far("peer").reset()


@case("Redis: redis-cli and redis-benchmark", timeout=60)
def _(t):
    for way in WAYS:
        x = Through(t, way, "redis")
        equal(x.client.redis_cli(*x.at, x.preload), "OK", f"{way}: SET")
        rows = x.client.redis_benchmark(*x.at, x.preload, 20, 2000)
        check(len(rows) >= 4 and all(n > 0 for _, n in rows), f"{way}: {rows}")
        t.note(f"{way}: requests/s: " + "; ".join(f"{what} {n:.0f}" for what, n in rows))
        x.over(20 * len(rows))


@case("nginx: curl down and up, wrk with kept connections and with a new one for each request", timeout=60)
def _(t):
    for way in WAYS:
        x = Through(t, way, "nginx")
        for _ in range(3):
            equal(x.client.curl(f"{x.url}", x.preload), len(FILE), f"{way}: size of the file")
        equal(x.client.upload(x.url, x.preload), x.server.uploaded(), f"{way}: checksum of the uploaded file")
        kept = x.client.wrk(f"{x.url}/file", x.preload, 10, 2)
        fresh = x.client.wrk(f"{x.url}/small", x.preload, 5, 2, "-H", "Connection: close")
        t.note(f"{way}: {kept} requests of {len(FILE)} bytes, {fresh} connections of one request")
        check(kept >= 20 and fresh >= 20, f"{way}: {kept} requests, {fresh} connections")
        x.over(fresh, broken_off=15)


@case("iperf3: both directions, several streams", timeout=60)
def _(t):
    for way in WAYS:
        x = Through(t, way, "iperf3")
        for reverse, streams in ((False, 1), (True, 1), (False, 4), (True, 4)):
            sent, received, rate = x.client.iperf3_client(*x.at, x.preload, reverse, streams)
            t.note(f"{way}, {'server to client' if reverse else 'client to server'}, {streams} streams: {rate / 8e6:.1f} MB/s")
            check(sent >= received > 1000000, f"{way}: {sent} bytes sent, {received} received")
        x.over(14)


@case("a client with TCP fast open: Linux uses TCP, and so does smcrd", timeout=30)
def _(t):
    x = Through(t, "in", "nginx")
    equal(x.client.curl(x.url, True, "--tcp-fastopen"), len(FILE), "size of the file")
    equal(x.scene.fallbacks("b"), {"03060000 client": 1}, "fallbacks in the kernel")
    equal(x.scene.daemons[0].established(), 0, "connections on SMC-R")


main()
