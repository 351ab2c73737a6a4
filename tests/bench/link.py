"""
The setup "a link with delay": two network namespaces, a (clients, the near daemon) and b (the far one, servers), joined by
delay_link.c, so that the direct connection, haproxy's and smcrd's see one path. It needs root.
"""
import os
import subprocess

from harness import TOP_BUILD, Daemon, Skip, hostport, need, wait_until
from netns import Side
from programs import HaproxyPair, Iperf3, Redis
from ways import Way, opening, started

A, B = "10.78.0.1", "10.78.0.2"


def namespace(t):
    """Lives as long as the benchmark; a Side, in which its programs are started."""
    holder = t.spawn([need("unshare"), "--net", "--", "cat"], "namespace", stdin=subprocess.PIPE)
    ours = os.readlink("/proc/self/ns/net")

    def there():
        if not holder.alive():
            raise Skip(f"no right to make network namespaces: {holder.log().strip()}")
        return os.readlink(f"/proc/{holder.pid}/ns/net") != ours
    wait_until(there, "a network namespace is there")
    return Side(t, holder.pid), holder.pid


class DelayedLink:
    def __init__(self, bench, delay_ms, buffer=None, service="iperf3"):
        """delay_ms: one way; buffer: bytes of smcrd's element and send ring, and of the direct connection's socket buffers.
        service: "redis" is for new connections, which open over the link but for side "middle"."""
        self.bench, self.t, self.buffer, self.service = bench, bench.t, buffer, service
        program = os.path.join(TOP_BUILD, "tests", "bench", "delay_link")
        if not os.path.exists(program):
            raise Skip("tests/bench/delay_link is not built (make bench does)")
        need("nsenter")
        self.a, _ = namespace(self.t)
        self.b, pid = namespace(self.t)
        relay = self.a.spawn([program, f"/proc/{pid}/ns/net", "far", str(int(delay_ms * 1000))])

        def ready():
            if not relay.alive():
                raise Skip(f"no link: {relay.log().strip()}")
            return "ready" in relay.log()
        wait_until(ready, "the link with delay is there")
        for side, here, peer in ((self.a, A, B), (self.b, B, A)):
            lines = ["link set lo up", f"addr add {here} peer {peer} dev far", "link set dev far txqueuelen 10000 up"]
            side.run([need("ip"), "-batch", "-"], input="".join(f"{x}\n" for x in lines).encode())
        server = {"iperf3": Iperf3, "redis": Redis}[service](self.b, host=B)
        self.targets = {service: (server.host, server.port)}

    def direct(self, _side):
        return Way(self.targets, [], self.a, ("-w", str(self.buffer)) if self.buffer else ())

    def haproxy(self, _side):
        pair = HaproxyPair(self.t, self.targets, ends=((self.a, A), (self.b, B)))
        return Way(pair.at, pair.procs, self.a), pair.confs

    def smcrd(self, side):
        near, middle = self.t.port(), self.t.port()
        smcr = {**({"send_buffer": self.buffer} if self.buffer else {}), **(opening(side) if self.service == "redis" else {})}
        element = {"rmb_element": self.buffer} if self.buffer else {}
        daemons = {}
        for name, where, host, kind, service in (
                ("b", self.b, B, "egress", {"listen": hostport(B, middle), "to": hostport(*self.targets[self.service])}),
                ("a", self.a, A, "ingress", {"listen": hostport(A, near), "to": hostport(B, middle)})):
            conf = {"log_level": "notice", "devices": [{"type": "siw", "address": host}], "smcr": smcr,
                    kind: [{"name": self.service, **service, **element}]}
            daemons[name] = Daemon(self.t, name, conf, start=False, wrap=where.wrap())
        return started(self.bench.program(side), daemons["a"], daemons["b"], {self.service: (A, near)}, self.a)
