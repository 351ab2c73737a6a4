"""
What the tests with strangers and hostile peers share: a pair of daemons that a witness uses all the time, from a process
of its own; a look at what each daemon holds while an attack goes on (Watch); and what has to be as before afterwards.

The strangers have addresses of their own, as they would have on a network: what a daemon bounds for each address is
bounded for theirs. The peers are those of tests/interop.
"""
import functools
import json
import mmap
import os
import re
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "interop"))

import pyiwarp as iw
import pysmc as smc
from harness import (Failure, Pair, check, connect_to, equal, hostport, listener, need, pattern, recv_exact,
                     same_bytes, soft_device, wait_until, PATIENCE, SANITIZERS, TRANSPORT)
from smc_scene import scene_case as smc_scene_case, SOON, Strangers, TIMERS, how_it_ends  # the checks take these from here

MIB = 1 << 20
IDLE = 0.4		# how long a daemon is watched doing nothing, in seconds
# What the allocator may keep of what was used at most; a sanitizer keeps everything for a while.
RSS_LEFT = 6 * MIB


def goes_on(end, done, least):
    """A further round is due: until the time `end`, and beside load until there were so many, for a while."""
    now = time.monotonic()
    return now < end or (done < least and now < end + 10 * PATIENCE)


def stranger(t, i=1):
    """The i-th address (up to 63) that no script has for itself."""
    part = t.addr.split(".")
    return f"127.{i}.{part[2]}.{part[3]}"


# -- what a daemon holds --


def ask(d, command):
    """What the daemon answers on its control socket, without a program in between; None when it is too busy."""
    with connect_to(d.control, 10) as s:
        s.sendall(json.dumps({"command": command}).encode() + b"\n")
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while part := s.recv(1 << 18):
            answer += part
    data = json.loads(answer)
    return data["data"]


def held(d):
    """Connections, groups, queue pairs, bytes of RMBs and registered memory."""
    status, devices = ask(d, "status"), ask(d, "devices")
    if status is None or devices is None:
        return None
    return {"connections": sum(status["connections"].values()), "setup": status["connections"]["setup"],
            "groups": status["groups"], "rmb": status["rmb_bytes"],
            "qps": sum(x["qps"] for x in devices["devices"]),
            "registered": sum(x["registered_bytes"] for x in devices["devices"])}


def fd_names(daemon):
    """What each descriptor of a daemon is; connections with both ends and the state (in hexadecimal, as the kernel has
    it), without those of its control clients, which come and go with every request."""
    tcp, names = {}, []
    with open(f"/proc/{daemon.pid}/net/tcp") as f:
        for line in f.readlines()[1:]:
            part = line.split()
            ends = [":".join([socket.inet_ntoa(struct.pack("=I", int(host, 16))), str(int(port, 16))])
                    for host, port in (end.split(":") for end in part[1:3])]
            tcp[f"socket:[{part[9]}]"] = f"{ends[0]}>{ends[1]}/{part[3]}"
    with open(f"/proc/{daemon.pid}/net/unix") as f:
        clients = {f"socket:[{part[6]}]" for part in map(str.split, f) if part[5] == "03"}
    for fd in os.listdir(f"/proc/{daemon.pid}/fd"):
        try:
            name = os.readlink(f"/proc/{daemon.pid}/fd/{fd}")
        except OSError:
            continue
        if name not in clients:
            names.append(tcp.get(name, name))
    return sorted(names)


def logged(d, words):
    """How often the log says that, and of how many connections."""
    counts = re.findall(re.escape(words) + r": device=\S+ count=(\d+)", d.log())
    return len(counts), sum(map(int, counts))


def refused_ones(d, words):
    """Whom such lines of the log name, the newest last."""
    return re.findall(re.escape(words) + r": device=\S+ count=\d+ total=\d+ from=(\S+)$", d.log(), re.M)


class Watch(threading.Thread):
    """Samples what a daemon holds; keeps the most of each."""

    def __init__(self, t, d):
        super().__init__(daemon=True)
        self.d = d
        self.over = threading.Event()
        self.asking = threading.Lock()		# its holder has the control socket's places alone
        self.start_values = self.look()
        self.cpu = d.cpu()
        self.peak = dict(self.start_values)
        self.began = time.monotonic()
        t.later(self.over.set)
        self.start()

    def look(self):
        return {**(held(self.d) or {}), "rss": self.d.rss(), "fds": self.d.fds()}

    def run(self):
        turn = 0
        while not self.over.wait(0.05):
            turn += 1
            try:
                with self.asking:
                    now = self.look() if turn % 4 == 0 else {"rss": self.d.rss(), "fds": self.d.fds()}
            except (OSError, ValueError):
                continue	# it has ended, or has no place for one more client: others look at that
            for what, n in now.items():
                self.peak[what] = max(self.peak[what], n)

    def grown(self, what):
        return self.peak[what] - self.start_values[what]

    def finish(self):
        self.over.set()
        self.join()
        self.cpu = self.d.cpu() - self.cpu

    def __str__(self):
        took = time.monotonic() - self.began
        return (f"{self.d.name} at the most: memory +{self.grown('rss') / MIB:.1f} MiB, RMBs +{self.grown('rmb') >> 10} KiB, "
                f"{self.grown('connections')} more connections, {self.grown('groups')} groups, {self.grown('qps')} queue "
                f"pairs, {self.grown('fds')} descriptors; {100 * self.cpu / took:.0f} % CPU")


# -- the bystander --


class Witness:
    """An echo connection through the pair that a process of its own uses all the time."""

    RUN, PAUSE, STOP = range(3)

    def __init__(self, t, at):
        self.shared = mmap.mmap(-1, 32)		# wanted, turns, longest in ns, is paused
        self.child = t.fork(self.work, at)
        self.child_done = False
        wait_until(lambda: self.turns > 0 or not self.child.alive(), "the witness echoes")

    def get(self, i):
        return struct.unpack_from("=Q", self.shared, 8 * i)[0]

    def put(self, i, value):
        struct.pack_into("=Q", self.shared, 8 * i, int(value))

    @property
    def turns(self):
        return self.get(1)

    @property
    def longest(self):
        return self.get(2) / 1e9

    def work(self, at):
        sock = connect_to(at, 20)
        while self.get(0) != self.STOP:
            self.put(3, self.get(0) == self.PAUSE)
            if self.get(0) == self.RUN:
                data = pattern(200, self.turns)
                start = time.monotonic_ns()
                sock.sendall(data)
                same_bytes(recv_exact(sock, len(data)), data, f"witness' echo {self.turns}")
                self.put(2, max(self.get(2), time.monotonic_ns() - start))
                self.put(1, self.turns + 1)
            time.sleep(0.02)	# raw: the witness' pace: an echo is work for four processes
        sock.close()

    def alive(self):
        """Its failure, when there is one; else it goes on echoing."""
        before = self.turns
        wait_until(lambda: self.turns > before or not self.child.alive(), "the witness goes on")
        if not self.child.alive():
            self.child.result()

    def pause(self):
        self.put(0, self.PAUSE)
        wait_until(lambda: self.get(3) or not self.child.alive(), "the witness stands still")

    def go_on(self):
        self.put(0, self.RUN)
        self.alive()

    def finish(self, t):
        wait_until(lambda: self.turns > 10 or not self.child.alive(), "more than ten echoes")
        self.put(0, self.STOP)
        self.child.result()
        t.note(f"witness: {self.turns} echoes, the longest took {self.longest * 1000:.0f} ms")
        check(self.longest < 2 * PATIENCE, f"witness: an echo took {self.longest:.1f} s")


def serve_echo(sock):
    """In a process of its own: sends back what comes, on any number of connections."""
    def one(s):
        with s:
            try:
                while data := s.recv(1 << 16):
                    s.sendall(data)
            except OSError:
                pass
    while True:
        s, _ = sock.accept()
        threading.Thread(target=one, args=(s,), daemon=True).start()


class Scene(Strangers):
    """witness -> a (ingress "good") == SMC-R == b (egress "good") -> echo server. A hostile client talks to b at smc_at; a
    hostile server is where a's ingress "evil" leads, with its clients at evil_at.

    smcr, device, service: settings of both daemons, of their device and of their services; egress: of b's service; b: of b;
    files: descriptors that b may have; many: settings of an egress of b for many destinations, at many_at."""

    def __init__(self, t, smcr=None, device=None, service=None, egress=None, hostile_server=False, files=None, b=None, many=None, **more):
        self.t = t
        echo = listener(t)
        echo.settimeout(None)
        t.fork(serve_echo, echo)
        common = {"smcr": {**TIMERS, **(smcr or {})}, **more, "devices": [
            soft_device(t.addr, **{"connect_timeout": f"{500 * PATIENCE:.0f}ms", "answer_timeout": "2s", **(device or {})})]}
        self.pair = Pair(t, {"good": echo.getsockname()[:2]}, a=common, b={**common, **(b or {})}, ingress=service,
                         egress={**(service or {}), **(egress or {})}, start=False)
        self.smc_at = (t.addr, self.pair.middle["good"])
        if hostile_server:
            self.server = smc.Server(self.peer())
            t.later(self.server.close)
            self.evil_at = (t.addr, t.port())
            self.pair.conf_a["ingress"].append({"name": "evil", "listen": hostport(*self.evil_at),
                                                "to": hostport(*self.server.at), **(service or {})})
            self.pair.a.write_conf(self.pair.conf_a)
        if many:
            self.many_at = (t.addr, t.port())
            self.pair.conf_b["egress"].append({"name": "many", "listen": hostport(*self.many_at), "to": "requested",
                                               "allow": ["127.0.0.0/8"], **(many(self) if callable(many) else many)})
            self.pair.b.write_conf(self.pair.conf_b)
        self.a, self.b = self.daemons = self.pair.a, self.pair.b
        if files:
            self.b.wrap = [need("prlimit"), f"--nofile={files}", "--"]
        for d in (self.b, self.a):
            d.start()
        self.witness = Witness(t, (t.addr, self.pair.port["good"]))
        # Not merely begun: its server leg and the link are descriptors, too.
        wait_until(lambda: self.pair.modes() == (2, 0), "the witness is there on both sides")
        self.fds = {d: fd_names(d) for d in self.daemons}
        self.watch = {d: Watch(t, d) for d in self.daemons}
        self.open = []		# sockets and links of the strangers
        self.began = time.monotonic()

    def mpa_ports(self):
        return [d.ctl("devices")["devices"][0]["mpa_port"] for d in self.daemons]

    # -- strangers --

    def peer(self, i=1, **kw):
        return smc.Peer(stranger(self.t, i), sctp=TRANSPORT == "sctp", **kw)

    def tcp(self, at, i=1):
        s = iw.tcp_connect(at, SOON, stranger(self.t, i))
        self.open.append(s)
        return s

    def keep(self, link):
        if link not in self.open:
            self.open.append(link)

    def app(self):
        return self.tcp(self.evil_at)

    def proposed(self):
        """As serving(), with the Proposal read: not one of those that fall back because earlier ones failed."""
        def once():
            app, v = self.serving()
            try:
                v.read_proposal()
                return app, v
            except smc.Declined:
                app.close()
                v.close()
                return None
        return wait_until(once, "a Proposal")

    def served_over_two(self):
        """From a new server."""
        self.fresh_server()
        return super().served_over_two()

    def leave(self):
        """All strangers are gone."""
        for x in self.open:
            x.close()
        for x in self.open:
            if isinstance(getattr(x, "link", None), smc.Link):
                x.link.close()
        self.open.clear()

    # -- looks --

    def first_contacts(self, n, first=0):
        """n of them, each from an address of its own that is not the first stranger's; how many led to SMC-R."""
        good = 0
        for i in range(first, first + n):
            try:
                c = self.connected(self.peer(2 + i % 60))
                self.echoes(c, 100)
                c.link.close()
                c.middle.close()
                good += 1
            except (iw.Error, smc.SmcError, OSError) as e:
                self.t.note(f"{type(e).__name__}: {e}")
        return good

    def echoes(self, conn, n=1000):
        data = pattern(n, conn.sent & 0xffff)
        conn.send(data, SOON)
        same_bytes(conn.recv(n, SOON), data, "echo by SMC-R")

    @staticmethod
    def echo_from(conn, app, n=1000):
        """The hostile server's data come to the client, and the client's to the server."""
        data = pattern(n, 7)
        conn.send(data, SOON)
        app.settimeout(SOON)
        same_bytes(recv_exact(app, n), data, "from the server")
        app.sendall(data)
        same_bytes(conn.recv(n, SOON), data, "from the client")

    def served_well(self, text=b"still here"):
        """A new client through the pair is served by SMC-R."""
        with self.pair.connect("good") as c:
            c.sendall(text)
            same_bytes(recv_exact(c, len(text)), text, "a new connection")
            for x in self.a.connections() + self.b.connections():
                if x["service"] == "good" and x["mode"] != "setup" and self.own(x):
                    equal(x["mode"], "smcr", "mode")

    def own(self, x):
        """Is that connection one of the pair's own?"""
        return x["kind"] == "ingress" or x["peer"].rsplit(":", 1)[0].split(".")[1] not in map(str, range(1, 64))

    def bound(self, d, **most):
        """What d held at the most while this went on, beyond what the witness takes."""
        for what, n in most.items():
            if what == "rss" and SANITIZERS:
                continue
            got = self.watch[d].grown(what)
            check(got <= n, f"daemon {d.name}: {what} grew by {got}, bound is {n}")

    def finish(self, rss_left=RSS_LEFT, groups=0):
        """Everything is as before, but for so many groups of b with honest daemons."""
        self.leave()
        try:
            start = time.monotonic()
            wait_until(lambda: all(self.back(d, groups if d is self.b else 0) for d in self.daemons),
                       "both daemons are back to one connection, their groups and descriptors", 30)
            self.t.note(f"back after {time.monotonic() - start:.1f} s")
        except Failure:
            for d in self.daemons:
                self.t.note(f"{d.name} had {' '.join(self.fds[d])} and has {' '.join(fd_names(d))}; {held(d)}")
            raise
        self.witness.alive()
        for w in self.watch.values():
            w.finish()
            self.t.note(w)
        self.quiet(rss_left)
        self.witness.finish(self.t)
        self.served_well()

    def back(self, d, more):
        now, then = held(d), self.watch[d].start_values
        return (now["connections"] == 1 and now["groups"] <= then["groups"] + more and now["qps"] <= then["qps"] + more
                and len(fd_names(d)) <= len(self.fds[d]) + more)

    def quiet(self, rss_left):
        """All clients and daemons are idle, and memory is returned."""
        self.witness.pause()
        before = {d: d.cpu() for d in self.daemons}
        time.sleep(IDLE)	# raw: what happens meanwhile is the question
        for d in self.daemons:
            used = (d.cpu() - before[d]) / IDLE
            check(used < 0.1, f"daemon {d.name} uses {used:.0%} of a processor and has nothing to do")
            grown = d.rss() - self.watch[d].start_values["rss"]
            check(SANITIZERS or grown < rss_left, f"daemon {d.name}: {grown / MIB:.1f} MiB more memory than before")
        self.witness.go_on()


scene_case = functools.partial(smc_scene_case, scene=Scene)
