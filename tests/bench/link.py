"""
The setup "a link with delay": two network namespaces, a (clients, the near daemon) and b (the far one, servers), joined by
delay_link.c, so that the direct connection, haproxy's and smcrd's see one path. It needs root.
"""
from harness import Daemon, hostport, need
from netns import delayed_wire, namespace
from programs import HaproxyPair, Iperf3, Redis
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
