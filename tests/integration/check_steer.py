#!/usr/bin/env python3
"""Steering running daemons by smcrctl: close, disable and enable, undrain, link add, retry, log-level, top, the read-only socket."""
import json
import os
import re
import signal
import subprocess
import threading
import time

from harness import (PATIENCE, Pair, Server, Skip, case, check, echo, equal, hostport, logs, main, need, outcome, pair_to,
                     pattern, recv_exact, soft_device, unlinkable_pair, wait_until, works, SMCRCTL)
from hostile import stranger
from load import Probe
from programs import Redis


def status_of(d, *args):
    return d.t.exit_status([SMCRCTL, "--socket", d.control, *args])


def service(d, name="redis"):
    return next(s for s in d.services() if s["name"] == name)


def refused(pair):
    """A new connection is refused by the kernel, not accepted and reset."""
    try:
        pair.connect().close()
    except ConnectionRefusedError:
        return True
    return False


class Bulk:
    """A client that writes and a server that drains, until the connection is ended."""

    def __init__(self, pair):
        self.sock = pair.connect()
        self.port = self.sock.getsockname()[1]
        self.how = None
        self.sent = 0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        block = pattern(1 << 16)
        try:
            while True:
                self.sock.sendall(block)
                self.sent += len(block)
        except OSError as e:
            self.how = type(e).__name__

    def wait(self, d):
        """Until it runs: the kernel takes megabytes of a client before d has accepted the connection."""
        wait_until(lambda: any(c["app"].endswith(f":{self.port}") and c["bytes_from_app"] > 1 << 20 for c in d.connections()),
                   "bulk runs")

    def id(self, d):
        return next(c["id"] for c in d.connections() if c["app"].endswith(f":{self.port}"))


def sink(s):
    while s.recv(1 << 18):
        pass


@case("close ID, --peer and --service during bulk data: reset, both ends log the reason, another connection continues")
def _(t):
    def either(s):
        (sink if s.recv(1) == pattern(1) else echo)(s)
    pair = Pair(t, {"x": Server(t, sink).at, "y": Server(t, echo).at})
    bystander = pair.connect("y")
    works(bystander)
    first, second = Bulk(pair), Bulk(pair)
    for bulk in (first, second):
        bulk.wait(pair.a)
    out = pair.a.ctl_text("close", str(first.id(pair.a)))
    equal(out.strip(), "connections closed: 1", "close ID")
    wait_until(lambda: first.how, "the client hears of it")
    check(first.how in ("ConnectionResetError", "BrokenPipeError"), first.how)
    before = second.sent
    wait_until(lambda: second.sent > before + (1 << 20), "the other one goes on")
    wait_until(lambda: pair.b.counters()["closed_peer_operator"] == 1, "the far daemon counts it")
    equal(pair.a.counters()["sessions_closed_operator"], 1, "counted here")
    wait_until(lambda: 'closed by the operator"' in pair.a.log(), "the reason in the log here")
    wait_until(lambda: "closed by the operator there" in pair.b.log(), "and there")
    wait_until(lambda: re.search(rf"close asked for on the control socket: uid={os.geteuid()} pid=\d+ id=\d+\n", pair.a.log()),
               "the client is in the log")
    # From the other end: of what comes from that daemon, which is of both services.
    peer = pair.b.connections()[0]["peer"].rpartition(":")[0]
    equal(pair.b.ctl_text("close", "--peer", peer, "--service", "x").strip(), "connections closed: 1", "close --peer")
    wait_until(lambda: second.how, "the client hears of it")
    works(bystander, 1)
    equal(pair.a.ctl_text("close", "--service", "y").strip(), "connections closed: 1", "close --service")
    equal(outcome(bystander)[0], "reset", "the bystander's turn")
    pair.quiet()
    for args in (("close", "4711"), ("close", "--service", "nope"), ("close", "--peer", "203.0.113.1")):
        equal(status_of(pair.a, *args), 1, f"nothing matches: {args}")
    equal(status_of(pair.a, "close"), 2, "close of nothing")


@case("close resets connections of a removed service, and those on TCP")
def _(t):
    pair = pair_to(t, echo)
    old = pair.connect()
    works(old)
    conf = dict(pair.conf_a, ingress=[])
    pair.a.write_conf(conf)
    pair.a.ctl_text("reload")
    works(old, 1)
    equal(pair.a.services(), [], "services")
    equal(pair.a.ctl_text("close", "--service", "x").strip(), "connections closed: 1", "close")
    equal(outcome(old)[0], "reset", "the client")
    bad = unlinkable_pair(t, {"x": pair.server.at})
    fallen = bad.connect()
    works(fallen)
    equal(bad.modes()[0], 0, "on SMC-R")
    equal(bad.b.ctl_text("close", "--service", "x").strip(), "connections closed: 1", "close on TCP")
    equal(outcome(fallen)[0], "reset", "the client on TCP")


@case("disable and enable under load: connects are refused, connections continue, a reload changes nothing")
def _(t):
    redis = Redis(t)
    pair = Pair(t, {"redis": (redis.host, redis.port)})
    probe = Probe(pair, "steer")
    probe.goes_on()
    for name in ("a", "b", "a"):
        d = getattr(pair, name)
        d.ctl_text("disable", "redis")
        equal(service(d)["disabled"], True, "status")
        check(" disabled " in d.ctl_text("status"), "status in words")
        if name == "a":
            check(refused(pair), "a new connect")
            d.ctl_text("reload")
            check(refused(pair), "a new connect after a reload")
        else:
            check(pair.turned_away(), "a new connect, whose egress is disabled")
        probe.goes_on()
        d.ctl_text("enable", "redis")
        equal(service(d)["disabled"], False, "status")
        new = redis_ping(pair)
        equal(new, b"+PONG\r\n", "a new connection")
    probe.stop()
    equal(status_of(pair.a, "disable", "nope"), 1, "a service that is not there")
    logs(pair.a, "service disabled: service=redis")


def redis_ping(pair):
    with pair.connect() as s:
        s.sendall(b"PING\r\n")
        return s.recv(100)


@case("undrain: connections continue, and the same sockets accept new ones")
def _(t):
    pair = pair_to(t, echo)
    old = pair.connect()
    works(old)
    for d in (pair.a, pair.b):
        equal(status_of(d, "undrain"), 1, "nothing to be taken back")
        d.ctl_text("drain")
        equal(d.status()["draining"], True, "draining")
        check(pair.turned_away(), "a new connection while draining")
        works(old, 1)
        check("drains no longer" in d.ctl_text("undrain"), "undrain")
        equal(d.status()["draining"], False, "draining no longer")
        new = pair.connect()
        works(new, 2)
        new.close()
        works(old, 3)
    # A watched drain is requested once.
    watch = t.spawn([SMCRCTL, "--socket", pair.a.control, "drain", "--watch=0.2"], "watch")
    wait_until(lambda: watch.log().count("connections left 1") >= 2, "the drain is watched")
    pair.a.ctl_text("undrain")
    equal(watch.wait(), 1, "exit status of the watch")
    logs(watch, "the drain was taken back")
    equal(pair.a.status()["draining"], False, "draining no longer")
    old.close()
    pair.quiet()
    # Without a connection it does not end, and a watch does; a signal's drain cannot be undone.
    check("drained: no connection is left" in pair.a.ctl_text("drain", "--watch=0.2"), "the watch ends")
    equal(pair.a.status()["ends"], False, "the daemon stays")
    pair.a.ctl_text("undrain")
    works(pair.connect(), 4)
    pair.a.expect_dead = True
    pair.a.send_signal(signal.SIGTERM)
    wait_until(lambda: pair.a.status()["draining"], "a signal drains")
    equal(status_of(pair.a, "undrain"), 1, "undrain after a signal")


@case("link delete and link add, from either end", one_worker="links of one group")
def _(t):
    other = stranger(t)
    two = {"devices": [soft_device(t.addr), soft_device(other)], "smcr": {"mpa_peers": [t.addr, other]}}
    server = Server(t, echo)
    pair = Pair(t, {"x": server.at}, a=two, b=two)
    s = pair.connect()
    works(s)
    links = lambda: [l for l in pair.a.ctl("links")["links"] if l["state"] == "active"]
    wait_until(lambda: len(links()) == 2, "two links")
    for d in (pair.a, pair.b):
        group = d.groups()[0]["id"]
        equal(status_of(d, "link", "add", str(group)), 1, "there are two")
        number = links()[0]["number"]
        d.ctl_text("link", "delete", str(group), str(number))
        wait_until(lambda: len(links()) == 1, "one link")
        works(s, 1)
        for at in (pair.a, pair.b):
            told = rf'link ended: .*group=\d+ link={number} .*reason="{"DELETE LINK" if at is d else "peer"}: operator"'
            wait_until(lambda: re.search(told, at.log()), f"{told} in the log of {at.name}, as {d.name}'s operator did it")
        d.ctl_text("link", "add", str(group))
        wait_until(lambda: len(links()) == 2, "the link is back")
        works(s, 2)
    equal(status_of(pair.a, "link", "add", "4711"), 1, "no such group")


@case("retry ends a hold-off", one_worker="each worker holds off for itself")
def _(t):
    server = Server(t, echo)
    hold = {"smcr": {"hold_off": "1m", "hold_off_max": "1m"}}
    pair = unlinkable_pair(t, {"x": server.at}, a=hold, b=hold)

    def reason():
        with pair.connect() as s:
            works(s)
            return pair.a.connections()[0]["reason"]
    wait_until(lambda: reason()["held_off"], "the peer is held off")
    equal(status_of(pair.a, "retry", "203.0.113.1"), 1, "another peer")
    check(reason()["held_off"], "held off as before")
    out = pair.a.ctl("retry", t.addr)
    equal(out, {"peers": 1, "links": 0, "prewarms": 0, "targets": 0, "devices": 0, "names": 0}, "retry")
    pair.b.ctl("retry")
    equal([status_of(pair.a, "retry", t.addr), status_of(pair.a, "retry")], [1, 1], "nothing waits")
    check(not reason()["held_off"], "tried at once")


@case("log-level for all workers, and over a reload")
def _(t):
    pair = pair_to(t, echo, a={"workers": 3})
    equal(pair.a.ctl_text("log-level").strip(), "info", "as configured")
    check("session state" not in pair.a.log(), "no debug lines")
    pair.a.ctl_text("log-level", "debug")
    check("stays as it was set" in pair.a.ctl_text("reload"), "reload says so")
    works(pair.connect())
    wait_until(lambda: "session state" in pair.a.log(), "debug lines")
    equal(pair.a.ctl("log-level"), {"level": "debug", "configured": "info", "set": True}, "the answer")
    equal(pair.a.ctl_text("log-level", "default").strip(), "info", "taken back")
    equal(status_of(pair.a, "log-level", "loud"), 2, "no such level")


@case("the read-only socket answers queries of every user, and refuses orders")
def _(t):
    pair = pair_to(t, echo, a={"control": {"readonly": True}})
    path = pair.a.readonly
    s = pair.connect()
    works(s)
    ask = [SMCRCTL, "--socket", path]
    data = json.loads(t.run([*ask, "--json", "status"]))["data"]
    equal(sum(data["connections"].values()), 1, "status there")
    for command in ("connections", "groups", "links", "rmbs", "devices", "stats", "log-level"):
        t.run([*ask, command])
    for order in (["close", "--service", "x"], ["disable", "x"], ["enable", "x"], ["drain"], ["undrain"], ["reload"],
                  ["rebalance"], ["link", "add", "1"], ["link", "delete", "1", "1"], ["retry"], ["log-level", "debug"],
                  ["check", hostport(t.addr, pair.middle["x"])], ["trace"]):
        equal(t.exit_status([*ask, *order]), 2, f"{order}")
    works(s, 1)
    equal(pair.a.status()["draining"], False, "no drain")
    check("asked for on the control socket" not in pair.a.log(), "nothing was ordered")
    equal(os.stat(path).st_mode & 0o777, 0o666, "its mode")
    pair.a.expect_dead = True
    s.close()
    pair.a.stop()
    check(not os.path.exists(path), "the file is gone with the daemon")


@case("orders need the admin group, which a reload changes; the mode alone lets clients look")
def _(t):
    setpriv = need("setpriv")
    if os.geteuid() != 0:
        raise Skip("not root: there is no other user to be")
    pair = pair_to(t, echo, a={"control": {"mode": "0666", "admin_group": 40001}})
    path = pair.a.control
    while (path := os.path.dirname(path)) not in ("/", "/tmp"):
        os.chmod(path, os.stat(path).st_mode | 0o011)

    def as_member(groups, *command):
        argv = [setpriv, "--reuid=65534", "--regid=65534", f"--groups={groups}", SMCRCTL, "--socket", pair.a.control]
        return subprocess.run([*argv, *command], capture_output=True, text=True, timeout=20 * PATIENCE)

    for command in (["status"], ["connections"], ["log-level"]):
        equal(as_member("40002", *command).returncode, 0, f"{command} of a stranger")
    for order in (["drain"], ["disable", "x"], ["reload"], ["trace"], ["log-level", "debug"],
                  ["check", "--bulk=1", hostport(t.addr, pair.middle["x"])]):
        done = as_member("40002", *order)
        equal(done.returncode, 2, f"{order} of a stranger")
        check('group 40001: as root "usermod -aG 40001 USER"' in done.stderr, done.stderr)
    equal(pair.a.status()["draining"], False, "no drain")
    logs(pair.a, "drain refused on the control socket, no right to give orders: uid=65534 pid=")
    equal(as_member("40002,40001", "disable", "x").returncode, 0, "of a member")
    equal(as_member("40001", "enable", "x").returncode, 0, "of a member")
    pair.a.write_conf(dict(pair.a.conf, control={"mode": "0666", "admin_group": 40002}))
    check("setting control.admin_group changed" in pair.a.ctl_text("reload"), "a reload changes it")
    equal(as_member("40001", "retry").returncode, 2, "of a member no more")
    check(as_member("40002", "retry").returncode in (0, 1), "of a member now")
    works(pair.connect())


@case("stats --delta and top show rates", timeout=90)
def _(t):
    pair = Pair(t, {"x": Server(t, sink).at})
    Bulk(pair).wait(pair.a)
    out = t.run([SMCRCTL, "--socket", pair.a.control, "--json", "stats", "--delta"])
    data = json.loads(out)["data"]
    check(data["counters"]["bytes_sent"] > 1 << 20, f"bytes in the interval: {data['counters']['bytes_sent']}")
    check(data["interval_ms"] >= 1900, f"interval: {data['interval_ms']}")
    equal(data["counters"]["sessions_opened"], 0, "opened in the interval")
    top = t.spawn([SMCRCTL, "--socket", pair.a.control, "top", "--watch=0.3"], "top")
    # Text without escapes, once an interval; after the first look there are rates.
    wait_until(lambda: top.log().count("smcrd ") >= 3, "top goes on")
    text = top.log()
    check("\033" not in text, "no escapes in a pipe")
    line = re.findall(rf"^ *\d+ +x +SMC-R +(\S+)/s", text, re.M)
    check(len(line) >= 2 and line[-1] not in ("0", "-"), f"rate of the connection: {line}")
    top.stop()
    pair.a.ctl_text("close", "--service", "x")


class Short:
    """Connections one behind the other, each with a few bytes there and one byte back."""
    SIZE = 20000

    def __init__(self, pair):
        self.pair = pair
        self.cnt = 0
        self.over = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        block = pattern(self.SIZE)
        while not self.over:
            with self.pair.connect() as s:
                s.sendall(block)
                if s.recv(1) != b".":
                    return
            self.cnt += 1

    def stop(self):
        self.over = True
        self.thread.join()


def answers(s):
    """One byte for each client's; the connection is the client's to end."""
    recv_exact(s, Short.SIZE)
    s.sendall(b".")
    s.recv(1)


def human(text):
    """Bytes, of what is shown; cut off behind its last digit."""
    unit = "KMG".find(text[-1]) + 1
    return float(text.rstrip("KMG")) * 1024 ** unit


@case("top has the rate of a service with connections shorter than the interval", timeout=90)
def _(t):
    pair = Pair(t, {"x": Server(t, answers).at})
    short = Short(pair)
    wait_until(lambda: short.cnt > 5, "connections come and go")
    top = t.spawn([SMCRCTL, "--socket", pair.a.control, "top", "--watch=0.5", "--service", "x"], "top")
    rates = lambda: re.findall(r"^x +open +\d+ +(\S+) +(\S+)/s +(\S+)/s$", top.log(), re.M)
    wait_until(lambda: rates(), "the first rates")
    first, cnt, began = len(rates()), short.cnt, time.monotonic()
    wait_until(lambda: len(rates()) >= first + 6, "looks")
    truth = (short.cnt - cnt) / (time.monotonic() - began)
    short.stop()
    top.stop()
    seen = rates()[first:first + 6]
    new, out, back = (sum(human(r[i]) for r in seen) / len(seen) for i in range(3))
    near = lambda rate, want: want / 2 < rate < want * 2
    check(short.cnt - cnt > 20, f"connections: {short.cnt - cnt}")
    check(near(new, truth), f"connections a second: {new}, in truth {truth}")
    check(near(out, truth * Short.SIZE), f"bytes a second from the clients: {out}, in truth {truth * Short.SIZE}")
    check(near(back, truth), f"bytes a second to the clients: {back}, in truth {truth}")
    # Each of both ends has counted all of it.
    pair.quiet()
    for d, there, here in ((pair.a, "bytes_from_app", "bytes_to_app"), (pair.b, "bytes_to_app", "bytes_from_app")):
        s = service(d, "x")
        equal((s[there], s[here]), (short.cnt * Short.SIZE, short.cnt), f"what daemon {d.name} has counted")


@case("top and trace of a missing object report that and end; top continues with a removed service's connections")
def _(t):
    pair = pair_to(t, echo)
    s = pair.connect()
    works(s)
    group = pair.a.groups()[0]["id"]
    for args in (("top", "--service", "nope"), ("trace", "--group", "4711"), ("trace", "--token", "0x4711"),
                 ("trace", "--group", str(group), "--token", "0x4711")):
        equal(status_of(pair.a, *args), 1, f"nothing matches: {args}")
    pair.a.write_conf(dict(pair.conf_a, ingress=[]))
    pair.a.ctl_text("reload")
    equal(pair.a.services(), [], "services")
    top = t.spawn([SMCRCTL, "--socket", pair.a.control, "top", "--watch=0.2", "--service", "x"], "top")
    token = pair.a.connections()[0]["token"]
    trace = t.spawn([SMCRCTL, "--socket", pair.a.control, "trace", "--group", str(group), "--token", token], "trace")
    wait_until(lambda: len(re.findall(r"^ *\d+ +x +SMC-R ", top.log(), re.M)) >= 3, "top goes on")
    wait_until(lambda: works(s, 1) or f"{token} CDC" in trace.log(), "messages of the connection")
    top.stop()
    trace.stop()


main()
