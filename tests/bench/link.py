"""
Setups of two network namespaces, a (clients, the near daemon) and b (the far one, servers), so that all ways see one path: joined
by delay_link.c, or by a wire over which the server sees its clients' addresses. They need root.
"""
from harness import Daemon, hostport, need
from netns import delayed_wire, namespace, wire
from programs import HaproxyPair, Iperf3, Nginx, Redis
from ways import Way, opening, started


class DelayedLink:
    def __init__(self, bench, delay_ms, buffer=None, service="iperf3"):
        """delay_ms: one way; buffer: bytes of smcrd's element and send ring, and of the direct connection's socket buffers.
        service: "redis" is for new connections, which open over the link but for side "middle"."""
        self.bench, self.t, self.buffer, self.service = bench, bench.t, buffer, service
        need("nsenter")
        self.a, _ = namespace(self.t)
        self.b, pid = namespace(self.t)
        self.at = delayed_wire(self.a, self.b, pid, delay_ms)
        server = {"iperf3": Iperf3, "redis": Redis}[service](self.b, host=self.at[1])
        self.targets = {service: (server.host, server.port)}

    def direct(self, _side):
        return Way(self.targets, [], self.a, ("-w", str(self.buffer)) if self.buffer else ())

    def haproxy(self, _side):
        pair = HaproxyPair(self.t, self.targets, ends=((self.a, self.at[0]), (self.b, self.at[1])))
        return Way(pair.at, pair.procs, self.a), pair.confs

    def smcrd(self, side):
        near, middle = self.t.port(), self.t.port()
        smcr = {**({"send_buffer": self.buffer} if self.buffer else {}), **(opening(side) if self.service == "redis" else {})}
        element = {"rmb_element": self.buffer} if self.buffer else {}
        daemons, (a, b) = {}, self.at
        for name, where, host, kind, service in (
                ("b", self.b, b, "egress", {"listen": hostport(b, middle), "to": hostport(*self.targets[self.service])}),
                ("a", self.a, a, "ingress", {"listen": hostport(a, near), "to": hostport(b, middle)})):
            conf = {"log_level": "notice", "devices": [{"type": "siw", "address": host}], "smcr": smcr,
                    kind: [{"name": self.service, **service, **element}]}
            daemons[name] = Daemon(self.t, name, conf, start=False, wrap=where.wrap())
        return started(self.bench.program(side), daemons["a"], daemons["b"], {self.service: (a, near)}, self.a)


class Transparent:
    """The ingress captures connections to the server's own address, and the egress connects by the client's, but with side "plain".
    The rules, and so connection tracking, are there for each side. haproxy has no capture."""

    def __init__(self, bench):
        self.bench, self.t = bench, bench.t
        need("nft", "nsenter")
        self.a, _ = namespace(self.t)
        self.b, pid = namespace(self.t)
        self.at = wire(self.a, self.b, pid)
        server = Nginx(self.b, host=self.at[1])
        self.server, self.captured = (server.host, server.port), self.t.port()
        rules = (f"table ip bench {{ chain out {{ type nat hook output priority -100; "
                 f"ip daddr {server.host} tcp dport {server.port} redirect to :{self.captured}\n }}\n}}\n")
        self.a.run(["nft", "-f", "-"], input=rules.encode())
        back = ["route add local 0.0.0.0/0 dev lo table 123",
                f"rule add from {server.host} iif lo ipproto tcp sport {server.port} lookup 123"]
        self.b.run([need("ip"), "-batch", "-"], input="".join(f"{x}\n" for x in back).encode())

    def haproxy(self, _side):
        pair = HaproxyPair(self.t, {"http": self.server}, ends=((self.a, self.at[0]), (self.b, self.at[1])), clientip=True)
        return Way(pair.at, pair.procs, self.a), pair.confs

    def smcrd(self, side):
        a, b = self.at
        near, middle = self.t.port() if side == "plain" else self.captured, self.t.port()
        ingress, egress = {"to": hostport(b, middle)}, {"to": hostport(*self.server)}
        if side != "plain":
            ingress = {"to": "original", "via": [{"nets": [f"{b}/32"], "peer": hostport(b, middle)}], "forward_client": "required"}
            egress = {"to": "requested", "to_allow": [hostport(*self.server)], "client_address": "connect", "clients": [a]}
        conf = {}
        for host, kind, port, service in ((a, "ingress", near, ingress), (b, "egress", middle, {**egress, "allow": [a]})):
            conf[kind] = {"log_level": "notice", "devices": [{"type": "siw", "address": host}],
                          kind: [{"name": "http", "listen": hostport(host if kind == "egress" else "0.0.0.0", port), **service}]}
        near_d = Daemon(self.t, "a", conf["ingress"], start=False, wrap=self.a.wrap())
        far_d = Daemon(self.t, "b", conf["egress"], start=False, wrap=self.b.wrap())
        return started(self.bench.program(side), near_d, far_d, {"http": (a, near) if side == "plain" else self.server}, self.a)
