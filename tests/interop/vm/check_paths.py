#!/usr/bin/env python3
# takes: 40 s
# load: 50
"""Two ways between two hosts, one of which dies under load: an association of SCTP with an address on each, by the
kernel's stack, which goes on; beside it two links over TCP, of which SMC-R moves its connections to the other one."""
import queue
import socket
import subprocess
import threading
import time

import rxe
from harness import (PATIENCE, Daemon, Server, case, check, equal, hostport, in_thread, main, pattern, same_bytes,
                     unix_connect, wait_until)

HOSTS = {"a": 1, "b": 2}
BLOCK, PAUSE = 1000, 0.005	# of each direction
ALIVE_S = 2			# a path's loss is over within this, before the machine's own slowness


def address(host, road):
    """Road 0 carries the TCP connections below SMC-R; what is tested happens to the others."""
    return f"10.80.{road}.{HOSTS[host]}"


class Roads:
    """Network namespaces a and b, the hosts, joined by three wires, with interfaces e0 to e2 on each."""

    def __init__(self):
        rxe.modprobe("veth", "sch_netem", "sctp")
        self.sh("".join(f"ip netns add {host}; ip -n {host} link set lo up; " for host in HOSTS))
        for i in range(3):
            self.sh(f"ip link add e{i} netns a type veth peer name e{i} netns b; " + "".join(
                f"ip -n {host} addr add {address(host, i)}/24 dev e{i}; ip -n {host} link set e{i} up; " for host in HOSTS))

    @staticmethod
    def sh(lines):
        subprocess.run(["sh", "-ec", lines], check=True)

    def silent(self, i):
        """Packets arrive nowhere, without a word to anybody."""
        self.sh("".join(f"tc -n {host} qdisc replace dev e{i} root netem loss 100%; " for host in HOSTS))

    def down(self, i):
        self.sh(f"ip -n a link set e{i} down")

    def mend(self, i):
        self.sh("".join(f"tc -n {host} qdisc replace dev e{i} root pfifo; ip -n {host} link set e{i} up; " for host in HOSTS))


class Flow(threading.Thread):
    """One direction of a connection: a little every few milliseconds, which the other end compares. longest_s: between two
    arrivals, since it was set to 0."""

    def __init__(self, source, sink, seed):
        super().__init__(daemon=True)
        self.source, self.sink = source, sink
        self.data = pattern(1 << 20, seed)
        self.sent = self.got = 0
        self.longest_s = 0.0
        self.ending = False
        self.reader = in_thread(self._read)
        self.start()

    def run(self):
        while not self.ending:
            at = self.sent % len(self.data)
            part = self.data[at:at + BLOCK]
            self.source.sendall(part)
            self.sent += len(part)
            time.sleep(PAUSE)	# raw: the load's pace
        self.source.shutdown(socket.SHUT_WR)

    def _read(self):
        last = time.monotonic()
        while part := self.sink.recv(1 << 16):
            now = time.monotonic()
            self.longest_s = max(self.longest_s, now - last)
            last = now
            while part:
                at = self.got % len(self.data)
                want = self.data[at:at + len(part)]
                same_bytes(part[:len(want)], want, f"from byte {self.got} on")
                self.got += len(want)
                part = part[len(want):]

    def goes_on(self, n=20000):
        mark = self.got + n

        def on():
            if self.reader.error:
                raise self.reader.error
            return self.got >= mark
        wait_until(on, "data goes on", 30)

    def finish(self):
        self.ending = True
        self.join(30 * PATIENCE)
        self.reader.result(30)
        equal(self.got, self.sent, "bytes that came")


class Scene:
    """A daemon on each host, a connection through both, and data both ways. devices: function of a host."""

    def __init__(self, t, roads, devices, links):
        self.t, self.roads = t, roads
        far, self.over = queue.Queue(), threading.Event()
        t.later(self.over.set)
        server = Server(t, lambda s: (far.put(s), self.over.wait()), unix=True)
        path, middle = t.socket_path("ingress"), hostport(address("b", 0), t.port())
        common = {"log_level": "info", "smcr": {"links_max": links}}
        self.b = self.daemon("b", dict(common, devices=devices("b"), egress=[
            {"name": "x", "listen": middle, "to": hostport(*server.at)}]))
        self.a = self.daemon("a", dict(common, devices=devices("a"), ingress=[
            {"name": "x", "listen": f"unix:{path}", "to": middle}]))
        near = unix_connect(path)
        t.later(near.close)
        near.sendall(b"!")
        self.far = far.get(timeout=20 * PATIENCE)
        equal(self.far.recv(1), b"!", "the first byte")
        self.flows = [Flow(near, self.far, 1), Flow(self.far, near, 2)]
        self.go_on()

    def daemon(self, host, conf):
        return Daemon(self.t, host, conf, wrap=["ip", "netns", "exec", host])

    def links(self):
        """Of both daemons: number -> (device, queue pair, connections)."""
        return [{x["number"]: (x["device"], x["qpn"], x["connections"]) for x in d.ctl("links")["links"] if x["state"] == "active"}
                for d in (self.a, self.b)]

    def go_on(self):
        for flow in self.flows:
            flow.goes_on()

    def standstill(self, break_it):
        """The longest that nothing came in a direction."""
        for flow in self.flows:
            flow.longest_s = 0.0
        break_it()
        time.sleep(0.1)		# raw: what is under way when it breaks still arrives
        self.go_on()
        return max(flow.longest_s for flow in self.flows)

    def finish(self):
        for flow in self.flows:
            flow.finish()
        self.over.set()
        for d in (self.a, self.b):
            wait_until(lambda d=d: not d.connections(), f"daemon {d.name} has no connections left", 20)
            c = d.counters()
            for name in ("closed_reset", "sessions_reset", "failover_lost", "fallback_local", "fallback_peer"):
                equal(c[name], 0, f"daemon {d.name}: counter {name}")


def on_tcp(host):
    return [{"type": "siw", "address": address(host, i)} for i in (1, 2)]


def on_sctp(host):
    return [{"type": "siw", "transport": "sctp", "sctp_stack": "kernel", "address": address(host, 1),
             "addresses": [address(host, 2)]}]


def peer_paths(host):
    """Of the kernel's associations on that host: the peer's address -> state (2: active, 3: not confirmed yet)."""
    lines = subprocess.run(["ip", "netns", "exec", host, "cat", "/proc/net/sctp/remaddr"], check=True,
                           stdout=subprocess.PIPE).stdout.decode().split("\n")[1:]
    return {x.split()[0]: int(x.split()[-1]) for x in lines if x.strip()}


def over_sctp(t, name, event):
    scene = Scene(t, ROADS, on_sctp, 1)
    for host, peer in ("ab", "ba"):
        wait_until(lambda: peer_paths(host) == {address(peer, i): 2 for i in (1, 2)}, f"{host}: both paths are active", 20)
    before = scene.links()
    still = scene.standstill(lambda: getattr(ROADS, event)(1))
    equal(scene.links(), before, "links")
    scene.finish()
    for d in (scene.a, scene.b):
        equal(d.counters()["failovers"], 0, f"daemon {d.name}: failovers")
    t.note(f"{name}, one association with two paths: nothing came for {still:.2f} s")
    check(still < ALIVE_S, f"nothing came for {still:.2f} s")


def over_tcp(t, name, event):
    scene = Scene(t, ROADS, on_tcp, 2)
    wait_until(lambda: [len(x) for x in scene.links()] == [2, 2], "two links", 20)
    (number, (device, _, _)), = [x for x in scene.links()[0].items() if x[1][2] == 1]
    road = 1 + [x["name"] for x in scene.a.ctl("devices")["devices"]].index(device)
    still = scene.standstill(lambda: getattr(ROADS, event)(road))
    check(number not in scene.links()[0], f"link {number} is gone")
    scene.finish()
    t.note(f"{name}, two links over TCP: nothing came for {still:.2f} s")


ROADS = Roads()
for what, event in (("a wire is silent", "silent"), ("an interface goes down", "down")):
    for how, fn in (("one association over SCTP", over_sctp), ("two links over TCP", over_tcp)):
        def run(t, fn=fn, what=what, event=event):
            t.later(lambda: [ROADS.mend(i) for i in (1, 2)])
            fn(t, what, event)
        case(f"{what}: {how}", timeout=90)(run)

main()
