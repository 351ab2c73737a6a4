#!/usr/bin/env python3
"""
One ingress for all destinations (to = "original"): programs connect to servers, rules of the host bring their connections
to smcrd, and the egress connects where they wanted to go.
"""
from netns import ADDR_A, ADDR_B, Net, enter

enter()

import os								# noqa: E402
import subprocess							# noqa: E402

from harness import (SMCRCTL, SMCRD, Daemon, Server, Skip, case, check, connect_to, echo, equal, hostport, main, need, recv_all,	# noqa: E402
                     turned_away, wait_until)

PORT, SERVED, MIDDLE = 7000, 5432, 15000
NEAR6, FAR6 = "fd77:1::1", "fd77:1::2"
OTHER = "10.77.1.2"	# of the far side as well
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
            {"name": f"any{i}", "listen": hostport(h, MIDDLE), "to": f"{OTHER}:9999", "allow": [ADDR_A, "10.77.0.0/16", "fd77::/16"],
             **(egress or {})}
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
        check(words in self.a.log(), f"the log says: {words}\n{self.a.log()}")

    def reload(self, **change):
        self.a.write_conf(dict(self.a.conf, ingress=[dict(e, **change) for e in self.a.conf["ingress"]]))
        return self.a.ctl_text("reload")


@case("no way: the destination is not in via; via is a live setting")
def _(t):
    g = Gateways(t, match=[f"ip daddr {ADDR_B} tcp dport {{ {SERVED}, {SERVED + 1} }}"])
    g.refused(ADDR_B, SERVED + 1, "no_via", f"no via for {ADDR_B}:{SERVED + 1}")
    g.reload(via=[{"nets": [f"{ADDR_B}:{SERVED + 1}"], "peer": f"*:{MIDDLE}"}])
    g.refused(ADDR_B, SERVED, "no_via", f"no via for {ADDR_B}:{SERVED}")
    # A loopback address is of each host alone.
    redirect(t, [f"ip daddr 127.0.0.1 tcp dport {SERVED}"])
    g.refused("127.0.0.1", SERVED, "dest_own", "its destination is a loopback address")


@case("a connection that nothing has captured is refused, with and without connection tracking")
def _(t):
    g = Gateways(t, match=None)
    g.refused("127.0.0.1", PORT, "not_captured", "it came to the port itself")
    redirect(t, SERVERS)
    g.refused("127.0.0.1", PORT, "not_captured", "it came to the port itself")
    g.refused("10.77.1.1", PORT, "not_captured", "it came to the port itself")
    g.refused("::1", PORT, "not_captured", "it came to the port itself")


@case("the daemon's own connections are captured: refused within one connection")
def _(t):
    g = Gateways(t, ingress={"via": [{"nets": ["10.77.0.0/16"], "peer": f"*:{MIDDLE}"}]}, match=[f"ip daddr 10.77.100.0/24 tcp dport 1-65535"])
    check(turned_away(connect_to, (ADDR_B, SERVED)), "a connection in a circle")
    wait_until(lambda: not g.a.connections(), "no connection is left")
    equal((g.counts()["accepted"], g.counts()["dest_own"]), (2, 1), "accepted, and refused as the daemon's own")
    check("a rule has captured a connection of this daemon itself" in g.a.log(), "the log says why")
    equal(g.seen, [], "connections at servers")


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
    for devices in ({}, {"devices": []}):
        g = Gateways(t, egress={"to": f"{OTHER}:9999"}, a=devices, b=devices, program=before or SMCRD)
        g.net.b.inside(lambda: Server(t, listen, OTHER, 9999))
        for _ in range(3):
            check(turned_away(send_secret), "a connection with a destination")
        wait_until(lambda: not g.b.connections(), "no connection is left")
        equal(b"".join(seen), b"", "bytes at the peer's own server")
        equal(g.counts()["dest_taken"], 0, "destinations taken")
        g.a.stop()
        g.b.stop()
        g.net.close()


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
