#!/usr/bin/env python3
"""
One ingress for all destinations (to = "original"): programs connect to servers, rules of the host bring their connections
to smcrd, and the egress connects where they wanted to go.
"""
from netns import ADDR_A, ADDR_B, Net, enter, namespace

enter()

import errno								# noqa: E402
import os								# noqa: E402
import select								# noqa: E402
import socket								# noqa: E402
import subprocess							# noqa: E402

from harness import (PATIENCE, SMCRCTL, SMCRD, WORKERS, Client, Daemon, Server, Skip, case, check, connect_to, echo, equal, hostport, logs, main, need,	# noqa: E402
                     recv_all, turned_away, wait_until, works)

PORT, SERVED, MIDDLE = 7000, 5432, 15000
NEAR6, FAR6 = "fd77:1::1", "fd77:1::2"
OTHER = "10.77.1.2"	# of the far side as well
UNUSABLE = [{"type": "siw", "interface": "nothere0"}]
VIA = [{"nets": [f"{ADDR_B}:{SERVED}", f"{OTHER}:{SERVED}", f"[{FAR6}/128]:{SERVED}"], "peer": f"*:{MIDDLE}"}]


def nft(t, text, side=None):
    """Loads rules; skips the case where the kernel lacks something."""
    out = subprocess.run([*(side.wrap() if side else []), need("nft"), "-f", "-"], input=text.encode(),
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if out.returncode != 0:
        raise Skip(f"the kernel does not take these rules: {out.stdout.decode().strip()}")


def redirect(t, match):
    """Captures what the programs of this side send, of these matches; replaces earlier rules at once."""
    rules = "\n".join(f"    {m} redirect to :{PORT}" for m in match)
    nft(t, f"table inet smcrd_all\ndelete table inet smcrd_all\ntable inet smcrd_all {{\n  chain out {{\n"
           f"    type nat hook output priority -100; policy accept;\n{rules}\n  }}\n}}\n")


SERVERS = [f"ip daddr {{ {ADDR_B}, {OTHER} }} tcp dport {SERVED}", f"ip6 daddr {FAR6} tcp dport {SERVED}"]


class Gateways:
    """A program here, an ingress here; egress and servers on the other side."""

    def __init__(self, t, ingress=None, egress=None, a=None, b=None, match=SERVERS, hosts=(ADDR_B,), program=None):
        self.t = t
        self.net = Net(t, 1)
        self.net.add_v6()
        self.seen = []
        self.servers = [self.net.b.inside(lambda h=h: Server(t, self.serve, h, SERVED)) for h in (ADDR_B, OTHER, FAR6)]
        common = {"log_level": "info"}
        self.b = Daemon(t, "b", {**common, "egress": [
            {"name": f"any{i}", "listen": hostport(h, MIDDLE), "to": "requested", "allow": [ADDR_A, "10.77.0.0/16", "fd77::/16"],
             "to_allow": [f"{ADDR_B}:{SERVED}", f"{OTHER}:{SERVED}", f"[{FAR6}/128]:{SERVED}"], **(egress or {})}
            for i, h in enumerate(hosts)], **(b or {})}, wrap=self.net.b.wrap(), start=False)
        if program:
            self.b.program = program
        self.b.start()
        self.a = Daemon(t, "a", {**common, "ingress": [
            {"name": "all", "listen": f"[::]:{PORT}", "to": "original", "via": VIA, **(ingress or {})}], **(a or {})})
        if match:
            redirect(t, match)

    def serve(self, s):
        self.seen.append((s.getsockname()[:2], s.getpeername()[:2]))
        echo(s)

    def connect(self, host=ADDR_B, port=SERVED):
        s = connect_to((host, port))
        self.t.later(s.close)
        return s

    def counts(self):
        return self.a.services()[0]

    def refused(self, host, port, counter, words):
        before = self.counts()[counter]
        check(turned_away(connect_to, (host, port)), f"a connection to {host}, {port}: {words}")
        wait_until(lambda: self.counts()[counter] == before + 1, f"it is counted in {counter}")
        logs(self.a, words)

    def reload(self, **change):
        self.a.write_conf(dict(self.a.conf, ingress=[dict(e, **change) for e in self.a.conf["ingress"]]))
        return self.a.ctl_text("reload")


@case("IPv4 and IPv6: a program sees the server's address, as without gateways; connections are on SMC-R")
def _(t):
    g = Gateways(t, hosts=(ADDR_B, FAR6))
    for host, near in ((ADDR_B, ADDR_A), (FAR6, NEAR6)):
        for i in range(3):
            s = g.connect(host)
            equal(s.getpeername()[:2], (host, SERVED), "the server, at the client")
            equal(s.getsockname()[0], near, "the client, at the client")
            works(s, i)
            equal(g.seen[-1][0], (host, SERVED), "where the server was connected")
            mine = [(c["mode"], c["destination"]) for c in g.a.connections() if c["app"] == hostport(*s.getsockname()[:2])]
            equal(mine, [("smcr", hostport(host, SERVED))], "mode and destination of the connection")
            s.close()
    wait_until(lambda: g.counts()["dest_taken"] == 6, "destinations are counted")
    equal(g.counts()["fallbacks"], 0, "fallbacks")
    if WORKERS in (None, 1):	# another one has no ticket yet
        check(g.a.counters()["opened_client"] >= 4, "later connections to a destination open over the link")
    logs(g.a, f"destination={hostport(FAR6, SERVED)}")


@case("on TCP")
def _(t):
    g = Gateways(t, a={"devices": UNUSABLE})
    s = g.connect()
    works(s)
    equal(g.a.connections()[0]["mode"], "tcp", "mode")
    equal(g.counts()["dest_taken"], 1, "destinations taken")


@case("bind() before connect(), and connect() without blocking")
def _(t):
    g = Gateways(t)
    s = connect_to((ADDR_B, SERVED), source="10.77.1.1")
    t.later(s.close)
    equal(s.getsockname()[0], "10.77.1.1", "the client's address")
    works(s)
    s = Client(socket.AF_INET, socket.SOCK_STREAM)
    t.later(s.close)
    s.setblocking(False)
    equal(s.connect_ex((ADDR_B, SERVED)), errno.EINPROGRESS, "connect")	# raw: it is looked at
    equal(len(select.select([], [s], [], 20 * PATIENCE)[1]), 1, "writable")
    equal(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0, "result of the connect")
    s.settimeout(20 * PATIENCE)
    works(s)


@case("no way: the destination is not in via; via is a live setting")
def _(t):
    g = Gateways(t, match=[f"ip daddr {ADDR_B} tcp dport {{ {SERVED}, {SERVED + 1} }}"])
    g.refused(ADDR_B, SERVED + 1, "no_via", f"no via for {ADDR_B}:{SERVED + 1}")
    s = g.connect()
    works(s)
    g.reload(via=[{"nets": [f"{ADDR_B}:{SERVED + 1}"], "peer": f"*:{MIDDLE}"}])
    g.refused(ADDR_B, SERVED, "no_via", f"no via for {ADDR_B}:{SERVED}")
    works(s, 1)	# it continues
    # A loopback address is of each host alone.
    redirect(t, [f"ip daddr 127.0.0.1 tcp dport {SERVED}"])
    g.refused("127.0.0.1", SERVED, "dest_own", "its destination is a loopback address")
    check("no way to their destination" in g.a.ctl_text("doctor", status=None), "doctor names them")


@case("a connection that nothing has captured is refused, with and without connection tracking")
def _(t):
    g = Gateways(t, match=None)
    g.refused("127.0.0.1", PORT, "not_captured", "it came to the port itself")
    redirect(t, SERVERS)
    g.refused("127.0.0.1", PORT, "not_captured", "it came to the port itself")
    g.refused("10.77.1.1", PORT, "not_captured", "it came to the port itself")
    g.refused("::1", PORT, "not_captured", "it came to the port itself")
    works(g.connect())


@case("the daemon's own connections are captured: refused within one connection")
def _(t):
    g = Gateways(t, ingress={"via": [{"nets": ["10.77.0.0/16"], "peer": f"*:{MIDDLE}"}]}, match=[f"ip daddr 10.77.100.0/24 tcp dport 1-65535"])
    check(turned_away(connect_to, (ADDR_B, SERVED)), "a connection in a circle")
    wait_until(lambda: not g.a.connections(), "no connection is left")
    equal((g.counts()["accepted"], g.counts()["dest_own"]), (2, 1), "accepted, and refused as the daemon's own")
    logs(g.a, "a rule has captured a connection of this daemon itself")
    equal(g.seen, [], "connections at servers")


@case("a circle over two hosts ends within one connection")
def _(t):
    net_conf = {"ingress": [{"name": "back", "listen": f"0.0.0.0:{PORT}", "to": "original",
                             "via": [{"nets": [f"{ADDR_B}:{SERVED}"], "peer": f"*:{MIDDLE}"}]}]}
    g = Gateways(t, b=net_conf)
    nft(t, f"table ip back {{\n  chain out {{\n    type nat hook output priority -100; policy accept;\n"
           f"    ip daddr {ADDR_B} tcp dport {SERVED} redirect to :{PORT}\n  }}\n}}\n", g.net.b)
    check(turned_away(connect_to, (ADDR_B, SERVED)), "a connection in a circle")
    wait_until(lambda: not g.a.connections() and not g.b.connections(), "no connection is left")
    back = next(s for s in g.b.services() if s["name"] == "back")
    equal((back["accepted"], back["dest_own"]), (1, 1), "accepted by the captured ingress, and refused")
    equal(g.seen, [], "connections at servers")


@case("destinations on two peers: an outage of one is not the other's")
def _(t):
    g = Gateways(t, hosts=(ADDR_B,))
    works(g.connect())
    check(turned_away(connect_to, (OTHER, SERVED)), "a destination whose peer does not listen")
    works(g.connect(), 1)
    check(turned_away(connect_to, (OTHER, SERVED)), "a destination whose peer does not listen")
    logs(g.a, "peer not available", times=1)
    logs(g.a, f"peer={OTHER}:{MIDDLE}")
    check("peer available again" not in g.a.log(), "no outage ends")
    text = g.a.ctl_text("service", "all")
    check(f"{OTHER}:{MIDDLE}" in text, text)
    equal(g.seen and {at for at, _ in g.seen}, {(ADDR_B, SERVED)}, "servers that were reached")


@case("a peer that leads elsewhere takes no destination: no byte reaches its server")
def _(t):
    seen = []

    def listen(s):
        seen.append(recv_all(s))
    def send_secret():
        s = connect_to((ADDR_B, SERVED))
        s.sendall(b"secret")
        return s
    before = os.environ.get("SMCRD_BEFORE")
    if not before:
        t.note("no other version: SMCRD_BEFORE is not set")
    for devices in ({}, {"devices": UNUSABLE}):
        g = Gateways(t, egress={"to": f"{OTHER}:9999", "to_allow": None}, a=devices, program=before or SMCRD)
        g.net.b.inside(lambda: Server(t, listen, OTHER, 9999))
        for _ in range(3):
            check(turned_away(send_secret), "a connection with a destination")
        wait_until(lambda: not g.b.connections(), "no connection is left")
        equal(b"".join(seen), b"", "bytes at the peer's own server")
        equal(g.counts()["dest_taken"], 0, "destinations taken")
        c = g.counts()
        equal(c["dest_refused"] + c["refused_connect"], 3, "counted, and as one that cannot be reached by an older one")
        g.a.stop()
        g.b.stop()
        g.net.close()


@case("a destination that the peer does not allow")
def _(t):
    g = Gateways(t, egress={"to_allow": [f"{OTHER}:{SERVED}"]})
    g.refused(ADDR_B, SERVED, "dest_refused", "peer refuses the destination")
    logs(g.a, f"destination={ADDR_B}:{SERVED}")
    equal(g.seen, [], "connections at servers")


@case("rules that are reloaded, and connection tracking that is flushed, leave connections alone")
def _(t):
    g = Gateways(t)
    s = g.connect()
    works(s)
    redirect(t, SERVERS)
    works(s, 1)
    works(g.connect(), 2)
    t.run([need("conntrack"), "-F"], stderr=subprocess.DEVNULL)
    works(s, 3)
    equal(g.counts()["dest_taken"], 2, "destinations taken")


class Routed(Gateways):
    """Programs in a third namespace, which sends through this one; rules hand their connections to the ingress (tproxy)."""

    def __init__(self, t, ingress=None, **more):
        super().__init__(t, ingress={"capture": "tproxy", "listen": f"[::]:{PORT}", **(ingress or {})}, match=None, **more)
        self.c, pid = namespace(t)
        self.net.ip("a", f"link add ac type veth peer name ca netns {pid}", "addr add 10.79.0.1/24 dev ac",
                    "addr add fd79::1/64 dev ac nodad", "link set ac up")
        t.later(lambda: self.net.ip("a", "link del ac", force=True))
        lines = ("link set lo up", "addr add 10.79.0.2/24 dev ca", "addr add fd79::2/64 dev ca nodad", "link set ca up",
                 "route add default via 10.79.0.1", "route add default via fd79::1")
        self.c.run([need("ip"), "-batch", "-"], input="".join(f"{x}\n" for x in lines).encode())
        for family in ("-4", "-6"):
            t.run([need("ip"), family, "rule", "add", "fwmark", "0x5e", "lookup", "124"])
            t.later(lambda f=family: t.run([need("ip"), f, "rule", "del", "lookup", "124"], status=None))
            t.run([need("ip"), family, "route", "add", "local", "default", "dev", "lo", "table", "124"])
        nft(t, f"table inet smcrd_routed {{\n  chain pre {{\n    type filter hook prerouting priority mangle; policy accept;\n"
               f"    iifname ac ip daddr 10.77.0.0/16 tcp dport {SERVED} tproxy ip to :{PORT} meta mark set 0x5e accept\n"
               f"    iifname ac ip6 daddr fd77::/16 tcp dport {SERVED} tproxy ip6 to :{PORT} meta mark set 0x5e accept\n  }}\n}}\n")

    def connect(self, host=ADDR_B, port=SERVED):
        s = self.c.inside(lambda: connect_to((host, port)))
        self.t.later(s.close)
        return s


@case("tproxy: a subnet behind this host, IPv4 and IPv6; the listener's right is dropped, and a take-over keeps it")
def _(t):
    g = Routed(t, hosts=(ADDR_B, FAR6))
    for i, (host, near) in enumerate(((ADDR_B, "10.79.0.2"), (FAR6, "fd79::2"))):
        s = g.connect(host)
        equal((s.getpeername()[:2], s.getsockname()[0]), ((host, SERVED), near), "both ends, at the client")
        works(s, i)
        equal(g.seen[-1][0], (host, SERVED), "where the server was connected")
    check(any("10.79.0.2" in c["app"] for c in g.a.connections()), "the client's own address")
    caps = next(line for line in open(f"/proc/{g.a.pid}/status") if line.startswith("CapPrm"))
    equal(int(caps.split()[1], 16) & 1 << 13, 0, "CAP_NET_RAW")
    g.refused("127.0.0.1", PORT, "not_captured", "it came to the port itself")
    g.a = g.a.successor()
    works(g.connect(), 2)
    works(s, 3)


@case("tproxy: a reload that needs the right is refused, and names a take-over; a start without it, too")
def _(t):
    g = Gateways(t, match=None)
    g.a.write_conf(dict(g.a.conf, ingress=[dict(e, capture="tproxy") for e in g.a.conf["ingress"]]))
    out = t.run([SMCRCTL, "-s", g.a.control, "reload"], status=1, stderr=subprocess.STDOUT).decode()
    check('capture = "tproxy" needs CAP_NET_RAW' in out and "take-over" in out, out)
    g.a.stop()
    out = t.run([need("setpriv"), "--bounding-set", "-net_raw,-net_admin", "--inh-caps", "-net_raw,-net_admin", SMCRD, "-f", g.a.conf_path],
                status=1, stderr=subprocess.STDOUT).decode()
    check('capture = "tproxy" needs CAP_NET_RAW' in out, out)
    g.a.start()
    g.refused("127.0.0.1", PORT, "not_captured", "it came to the port itself")


main()
