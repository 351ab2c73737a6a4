#!/usr/bin/env python3
"""
Events: what both hosts tell of a change, once, in the log, to smcrctl events, and in the journal, which a datagram socket stands
for. Middles run over pair 1 of the network namespaces, links over pair 2.
"""
from netns import ADDR_A, ADDR_B, Net, enter

enter()

import json								# noqa: E402
import os								# noqa: E402
import re								# noqa: E402
import socket								# noqa: E402
import time								# noqa: E402

from harness import (SMCRCTL, Daemon, NoFiles, Server, case, check, connect_to, echo, equal, hostport, in_thread,	# noqa: E402
                     logs, main, need, recv_exact, same_bytes, turned_away, wait_until)
from scrape import get							# noqa: E402

PORT, MIDDLE, SERVER = 12000, 13000, 14000
DEFAULT = {"log_level": None}		# as if the file said nothing
HOLD = {"hold_off": "300ms", "hold_off_max": "1s"}


def events(daemon, *args):
    """Those that are kept, as smcrctl prints them."""
    out = daemon.t.run([SMCRCTL, "--socket", daemon.control, "--json", "events", *args], status=None)
    return [json.loads(line) for line in out.decode().splitlines()]


def kinds(daemon, *wanted):
    return [e["kind"] for e in events(daemon) if not wanted or e["kind"] in wanted]


def only(daemon, kind, **fields):
    """The one event of this kind, and what it says; the same is in the log, once."""
    got = wait_until(lambda: events(daemon, "--kind", kind), f"{kind} of {daemon.name}")
    equal(len(got), 1, f"{daemon.name}: events {kind}")
    for key, value in fields.items():
        if isinstance(value, re.Pattern):
            check(value.search(str(got[0][key])), f"{daemon.name}: {kind}: {key} is {got[0][key]!r}")
        else:
            equal(got[0][key], value, f"{daemon.name}: {kind}: {key}")
    logs(daemon, f"{got[0]['level']}: {got[0]['text']}\n", times=1)
    return got[0]


class Gateways:
    def __init__(self, t, to=None, egress=None, wrap_a=(), log=None, env_a=None, more_a=None, connect="300ms"):
        self.t = t
        self.net = Net(t)
        self.a = Daemon(t, "a", {
            **(log or DEFAULT), **(more_a or {}), "smcr": HOLD,
            "devices": [{"type": "siw", "interface": "a2", "connect_timeout": connect}],
            "ingress": [{"name": "x", "listen": f"127.0.0.1:{PORT}", "to": to or f"10.77.1.2:{MIDDLE}"}]},
            wrap=wrap_a, env=env_a)
        self.b = Daemon(t, "b", {
            **(log or DEFAULT), "smcr": HOLD, "devices": [{"type": "siw", "interface": "b2"}],
            "egress": [{"name": "x", "listen": f"10.77.1.2:{MIDDLE}", "to": f"10.77.1.1:{SERVER}"}]},
            wrap=self.net.b.wrap(), start=egress is not False)
        for d in (self.a, self.b):
            if d.alive():
                self.have_device(d)

    def have_device(self, d):
        want = ["up"] * len(d.status()["workers"])
        wait_until(lambda: [x["port"] for x in d.ctl("devices")["devices"]] == want, f"the devices of {d.name} are there")

    def serve(self):
        self.server = Server(self.t, echo, "10.77.1.1", SERVER)

    def talk(self):
        with connect_to(("127.0.0.1", PORT), 20) as c:
            c.sendall(b"hello")
            same_bytes(recv_exact(c, 5), b"hello", "echo")
            one = wait_until(lambda: (lambda x: x if len(x) == 1 else None)(self.a.connections()), "the ones before have gone")
            return one[0]["mode"]

    def refused(self):
        return turned_away(connect_to, ("127.0.0.1", PORT))


@case("a blocked MPA port: named on both hosts; begin and end of fallback and hold-off are logged once",
      one_worker="each worker has links and a hold-off of its own")
def _(t):
    gw = Gateways(t)
    gw.serve()
    mpa = hostport("10.77.2.2", gw.b.ctl("devices")["devices"][0]["mpa_port"])
    gw.net.silence(2, "a")
    for _ in range(4):
        equal(gw.talk(), "tcp", "while the port is blocked")
    peer = f"10.77.1.2:{MIDDLE}"
    only(gw.a, "mpa-blocked", service="x", peer=peer, mpa=mpa, level="warning", reason=re.compile("."))
    only(gw.b, "mpa-blocked", service="x", peer="10.77.1.1", mpa=mpa)
    only(gw.a, "fallback-begins", service="x", peer=peer, fallback="tcp", connections=1,
         reason=re.compile("^queue pair could not be made ready: "))
    only(gw.b, "fallback-begins", service="x", peer="10.77.1.1", reason=re.compile("^declined by the peer: queue pair could not be"))
    only(gw.a, "holdoff-begins", service="x", peer=peer, for_ms=300)
    only(gw.b, "holdoff-begins", peer="10.77.1.1", for_ms=300, peer_id=re.compile("^[0-9a-f]{16}$"))
    gw.net.unsilence(2)
    wait_until(lambda: gw.talk() == "smcr", "SMC-R works again")
    for d, who in ((gw.a, peer), (gw.b, "10.77.1.1")):
        only(d, "fallback-ends", service="x", peer=who)
        only(d, "mpa-open", service="x", peer=who, mpa=mpa)
        only(d, "holdoff-ends", peer=who)
        only(d, "fallback-begins")
        only(d, "holdoff-begins")
        up = only(d, "link-up", peer=who, link=1)
        check(f" group={up['group']} link=1 peer={who} " in up["text"], up["text"])
    check(events(gw.a, "--kind", "fallback-ends")[0]["connections"] >= 4, "all of them were counted")


@case("server and peer down: logged once on both hosts, by any worker")
def _(t):
    gw = Gateways(t, egress=False)
    for _ in range(7):
        check(gw.refused(), "while the peer is down")
    peer = f"10.77.1.2:{MIDDLE}"
    only(gw.a, "peer-unreachable", service="x", peer=peer, connections=1, reason="cannot be connected: Connection refused")
    gw.b.start()
    gw.have_device(gw.b)
    for _ in range(7):
        check(gw.refused(), "while the server is down")
    only(gw.b, "server-unreachable", service="x", server=f"10.77.1.1:{SERVER}", level="warning",
         reason="cannot be connected: Connection refused")
    got = events(gw.a, "--kind", "peer-unreachable")
    equal([e["reason"].split(";")[0] for e in got],
          ["cannot be connected: Connection refused", "closed the connection during set-up"], "why, as the other host sees it")
    gw.serve()
    for _ in range(7):
        gw.talk()
    only(gw.b, "server-reachable", service="x", server=f"10.77.1.1:{SERVER}", connections=7)
    only(gw.a, "peer-reachable", service="x", peer=peer, connections=14)
    equal(kinds(gw.a, "peer-unreachable", "peer-reachable"), ["peer-unreachable"] * 2 + ["peer-reachable"], "in order")


@case("peers have the name of the configuration besides their address", one_worker="one group, and its events")
def _(t):
    gw = Gateways(t, to=f"localhost:{MIDDLE}", egress=False)
    check(gw.refused(), "no server")
    e = only(gw.a, "peer-unreachable", service="x", host="localhost", peer=re.compile(r"^(127\.0\.0\.1|\[::1\]):13000$"))
    check(f"peer={e['peer']} host=localhost reason=" in e["text"], e["text"])


@case("exhausted descriptors: logged once for services, control and metrics, and once at the end; doctor reports it")
def _(t):
    metrics = ("127.0.0.1", PORT + 1)
    gw = Gateways(t, more_a={"metrics": {"listen": hostport(*metrics)}})
    gw.serve()
    with connect_to(("127.0.0.1", PORT), 20) as there:
        there.sendall(b"hello")
        same_bytes(recv_exact(there, 5), b"hello", "echo")
        before = gw.a.fds()
        equal(get(metrics, "/healthz")[0], 200, "the metrics' socket")
        wait_until(lambda: gw.a.fds() <= before, "that connection is gone, so nothing gets free later")
        limit = NoFiles(gw.a)
        waiting = [connect_to(("127.0.0.1", PORT), 20) for _ in range(7)]
        for s in waiting:
            t.later(s.close)
        wait_until(lambda: "warning: accepting paused: service=x " in gw.a.log(), "it is logged")
        asked = [in_thread(gw.a.status), in_thread(get, metrics, "/healthz")]
        time.sleep(1.5)		# raw: for what must not come
        logs(gw.a, "accepting ", times=1)	# however often it is tried
        there.sendall(b"world")
        same_bytes(recv_exact(there, 5), b"world", "echo of one that was there before")
        limit.over()
    for s in waiting:
        s.sendall(b"hello")
        same_bytes(recv_exact(s, 5), b"hello", "echo of one that has waited")
    check(asked[0].result()["pid"] == gw.a.pid, "smcrctl is answered")
    equal(asked[1].result()[0], 200, "the request for metrics is answered")
    over = only(gw.a, "accepting-goes-on", level="notice")
    only(gw.a, "accepting-paused", service="x", reason="Too many open files", failures=1, level="warning")
    check(over["failures"] >= 10, f"all attempts are counted: {over}")
    check(1500 <= over["after_ms"] < 60000, f"how long it was: {over}")
    check(gw.a.counters()["accept_pauses"] > 0, "the counter")
    found = gw.a.t.run([SMCRCTL, "--socket", gw.a.control, "--json", "doctor"], status=None)
    found = [f for f in json.loads(found)["data"]["findings"] if f["area"] == "limits"]
    check(any("accepting has paused" in f["what"] for f in found), f"doctor: {found}")


@case("a connection takes two descriptors: with one it waits for the other and is not reset, at either end",
      one_worker="the first connection of each takes descriptors of a link")
def _(t):
    gw = Gateways(t)
    gw.serve()
    equal(gw.talk(), "smcr", "the link is there")
    for daemon in gw.a, gw.b:
        for free in 1, 2, 3:
            before = daemon.fds()
            limit = NoFiles(daemon, free)
            clients = [connect_to(("127.0.0.1", PORT), 20) for _ in range(6)]
            for s in clients:
                s.sendall(b"hello")
            time.sleep(0.4)		# raw: for what must not come
            limit.over()
            for s in clients:
                same_bytes(recv_exact(s, 5), b"hello", f"echo, {free} free of {daemon.name}")
                s.close()
            wait_until(lambda: daemon.fds() <= before, "they are gone")
    for daemon in gw.a, gw.b:
        equal(daemon.services()[0]["refused_connect"], 0, "none was turned away")
        check(daemon.counters()["accept_pauses"] > 0, f"{daemon.name} has paused")
        check("unreachable" not in daemon.log() and "not available" not in daemon.log(), daemon.log())


@case("smcrctl events: text, filters, new events", one_worker="each worker reports its links")
def _(t):
    gw = Gateways(t, egress=False)
    out = gw.a.ctl_text("events")
    equal(out, "", "nothing has happened")
    equal(gw.a.ctl_text("events", "--kind", "link-up", status=1), "", "nothing matches")
    bad = gw.a.t.run([SMCRCTL, "--socket", gw.a.control, "events", "--kind", "weather"], status=2)
    equal(bad, b"", "no such kind")
    follow = t.spawn([SMCRCTL, "--socket", gw.a.control, "events", "-f", "--service", "x"], "events")
    every = t.spawn([SMCRCTL, "--socket", gw.a.control, "--json", "events", "--follow"], "events")
    wait_until(lambda: gw.a.counters()["control_clients"] >= 5, "both listen")
    check(gw.refused(), "no server")
    wait_until(lambda: "peer not available: service=x" in follow.log(), "it comes")
    gw.b.start()
    gw.have_device(gw.b)
    gw.serve()
    equal(gw.talk(), "smcr", "with the peer")
    wait_until(lambda: "peer available again: service=x" in follow.log(), "it comes")
    wait_until(lambda: '"kind":"group-up"' in every.log() and '"kind":"peer-reachable"' in every.log(), "and all others")
    check(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} warning: peer not available: ", follow.log()), follow.log())
    rows = [json.loads(x) for x in every.log().splitlines()]
    equal([r["number"] for r in rows], list(range(1, len(rows) + 1)), "each once, in order")
    equal({r["event"] for r in rows}, {"change"}, "changes alone")
    lines = gw.a.ctl_text("events").splitlines()
    check(len(lines) >= 4, "those that are kept")
    logs(follow, lines[0])
    equal(gw.a.ctl_text("events", "--service", "y", status=1), "", "of another service")
    check(all("group=1 " in x for x in gw.a.ctl_text("events", "--group", "1").splitlines()), "of the group")
    for p in (follow, every):
        p.stop()


class Journal:
    """A datagram socket at journald's place, in a mount namespace of the daemon's, whose standard error it seems to read."""

    def __init__(self, t):
        self.dir = t.path("journal")
        os.mkdir(self.dir)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        t.later(self.sock.close)
        self.sock.bind(os.path.join(self.dir, "socket"))
        self.sock.setblocking(False)
        self.entries = []
        self.wrap = [need("unshare"), "--mount", "--", "sh", "-c",
                     "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && "
                     f"mount --bind {self.dir} /run/systemd/journal && "
                     "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) && export JOURNAL_STREAM && "
                     'exec "$@"', "sh"]

    def read(self):
        while True:
            try:
                data = self.sock.recv(65536)
            except BlockingIOError:
                return self.entries
            self.entries.append(dict(line.split("=", 1) for line in data.decode().splitlines()))

    def close(self):
        self.sock.close()
        os.unlink(os.path.join(self.dir, "socket"))


@case("journal entries have fields, priority and MESSAGE_ID; without a journal there are lines",
      one_worker="each worker reports its links")
def _(t):
    journal = Journal(t)
    gw = Gateways(t, wrap_a=journal.wrap, egress=False, connect="3s")
    check(gw.refused(), "no server")
    e = wait_until(lambda: [e for e in journal.read() if e["SMCRD_EVENT"] == "peer-unreachable"], "an entry")[0]
    peer = f"10.77.1.2:{MIDDLE}"
    text = events(gw.a)[0]["text"]
    equal({k: e[k] for k in e if not k.startswith("CODE_")},
          {"MESSAGE": text, "MESSAGE_ID": "63386f12de80407d98a591a7cc5d295e", "PRIORITY": "4", "SMCRD_EVENT": "peer-unreachable",
           "SMCRD_SERVICE": "x", "SMCRD_PEER": peer, "SMCRD_CONNECTIONS": "1",
           "SMCRD_REASON": "cannot be connected: Connection refused", "SYSLOG_IDENTIFIER": "smcrd"}, "the entry")
    logs(gw.a, "<5>ready")
    check("peer not available" not in gw.a.log(), "and none of what is an entry")
    gw.b.start()
    gw.have_device(gw.b)
    gw.serve()
    equal(gw.talk(), "smcr", "with the peer")
    up = wait_until(lambda: [e for e in journal.read() if e["SMCRD_EVENT"] == "link-up"], "an entry")[0]
    equal([up[k] for k in ("SMCRD_GROUP", "SMCRD_LINK", "SMCRD_PEER", "SMCRD_SERVICE", "SMCRD_DEVICE", "PRIORITY")],
          ["1", "1", peer, "x", "a2", "5"], "the entry of the link")
    journal.close()
    gw.b.finish()
    wait_until(lambda: "<5>link group down: " in gw.a.log() or "<5>link ended: " in gw.a.log(), "lines, when the journal is gone")


main()
