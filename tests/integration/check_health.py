#!/usr/bin/env python3
"""Up or down: what the egress says of its server, and what both hosts show of a target, since when and why."""
import contextlib
import json
import socket
import threading

from clc import ACCEPT, PROPOSAL, read_message
from harness import (SMCRCTL, Daemon, Pair, Server, case, check, connect_to, echo, equal, hostport, logs, main, pair_to, soft_device, wait_until,
                     works)
from scrape import get, scrape

FEATURES, ASKS, ANSWER = 59, 0x10, 64 + 20	# offsets in a Proposal and an Accept of smcrd; CLC_FEATURE_SERVER


def checked(pair, at=None, status=0):
    """smcrctl check from the host of the ingress."""
    out = pair.t.run([SMCRCTL, "--socket", pair.a.control, "--json", "check",
                      hostport(*(at or (pair.t.addr, pair.middle["x"])))], status=status)
    return json.loads(out)["data"]


def pump(a, b):
    try:
        while data := a.recv(4096):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        for s in (a, b):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


def tampering(at, change):
    """A server that passes a CLC connection on, and changes the first two messages."""
    def fn(s):
        with connect_to(at) as far:
            for a, b in ((s, far), (far, s)):
                kind, msg = read_message(a)
                b.sendall(change(kind, bytearray(msg)))
            threading.Thread(target=pump, args=(far, s), daemon=True).start()
            pump(s, far)
    return fn


def forgets(kind, msg):
    """What a smcrd of a release before this question reads and writes."""
    if kind == PROPOSAL:
        msg[FEATURES] &= ~ASKS & 0xff
    return msg


def lies(kind, msg):
    if kind == ACCEPT:
        msg[ANSWER] = 200
    return msg


@case("check: the egress says that its server is down, and both hosts show it; so does the exit status")
def _(t):
    pair = pair_to(t, echo)
    data = checked(pair)
    equal((data["possible"], data["finding"], data["steps"][-1]["result"]), (True, "possible", "ok"), "while it works")
    wait_until(lambda: not pair.b.connections(), "no connection is left")
    served = pair.b.services()[0]
    equal((served["accepted"], served["refused_connect"], served["resets"]), (0, 0, 0), "no client")
    pair.server._close()
    data = checked(pair, status=1)
    equal((data["possible"], data["finding"], data["steps"][-1]["result"]), (False, "server-down", "failed"), "while it does not")
    equal([s["result"] for s in data["steps"]][:2], ["ok", "ok"], "SMC-R works")
    check("the server behind it is down" in data["text"], data["text"])
    check("server            " in pair.a.ctl_text("check", hostport(t.addr, pair.middle["x"]), status=1), "in the text")
    outage = pair.b.ctl("service", "x")["outage"]
    check(outage["text"] != "" and outage["failed"] >= 1, f"on the host of the server: {outage}")
    equal(pair.b.services()[0]["refused_connect"], 0, "no client was refused")
    server = Server(t, echo, *pair.server.at) if pair.server.port else Server(t, echo, unix=pair.server.host[5:])
    equal(checked(pair)["finding"], "possible", "when it works again")
    equal(pair.b.ctl("service", "x")["outage"]["text"], "", "it has ended")
    works(pair.connect())
    server.ok()


@case("check: a peer that does not know the question is no worse than before; any answer is one")
def _(t):
    pair = pair_to(t, echo)
    older = Server(t, tampering((t.addr, pair.middle["x"]), forgets), unix=False)
    data = checked(pair, older.at)
    equal((data["finding"], data["steps"][-1]["result"]), ("possible", "skipped"), "an older smcrd")
    check("older" in data["steps"][-1]["text"], f"why: {data['steps']}")
    liar = Server(t, tampering((t.addr, pair.middle["x"]), lies), unix=False)
    data = checked(pair, liar.at, status=1)
    equal(data["finding"], "server-down", "a number that nobody knows")
    check(data["text"].endswith("does not work"), data["text"])


QUICK = {"interval": "200ms", "timeout": "2s", "rise": 1, "fall": 1}


def health(daemon, name="x"):
    [s] = [s for s in daemon.services() if s["name"] == name]
    return s


def becomes(daemon, want, name="x"):
    wait_until(lambda: health(daemon, name)["health"] == want, f"daemon {daemon.name} shows {want}")
    return health(daemon, name)


def again(t, server):
    """Another one at the place of a server that has stopped."""
    return Server(t, server.fn, *server.at) if server.port else Server(t, server.fn, unix=server.host[5:])


def measured(at, name):
    """The values of a metric, by the address of the target."""
    return {dict(labels)["address"]: number for labels, number in scrape(at).get(name, {}).items()}


def healthz(at, query=""):
    status, _, body = get(at, "/healthz" + query)
    return status, body


@case("probes: both hosts show a server that is down, since when and why: status, service, events, /healthz, metrics")
def _(t):
    ports = t.port(), t.port()
    pair = pair_to(t, echo, ingress={"probe": QUICK}, egress={"probe": QUICK},
                   a={"metrics": {"listen": hostport(t.addr, ports[0])}}, b={"metrics": {"listen": hostport(t.addr, ports[1])}})
    both = list(zip((pair.a, pair.b), ports))
    for d, port in both:
        becomes(d, "up")
        equal(healthz((t.addr, port), "?service=x"), (200, b"up\n"), "while it works")
    equal([s["accepted"] for s in pair.b.services()], [0], "a probe is no client")
    pair.server._close()
    for d, port in both:
        s = becomes(d, "down")
        check(s["health_ms"] < 20000 and len(s["probed"]) == 1, f"since when: {s}")
        equal((s["probed"][0]["state"], s["probed"][0]["text"]), ("down", s["health_text"]), "its address")
        wait_until(lambda p=port: healthz((t.addr, p), "?service=x") == (503, b"down\n"), "/healthz")
        equal(healthz((t.addr, port))[0], 200, "the daemon itself works")
        equal(healthz((t.addr, port), "?service=y")[0], 404, "another service")
        check(b'class="bad" title="' in get((t.addr, port), "/")[2], "the page")
        text = d.ctl_text("status")
        check("x is down for " in text, text)
        check("Probe        " in d.ctl_text("service", "x"), "service x")
        at = s["probed"][0]["address"]
        equal([measured((t.addr, port), "smcrd_target_" + m)[at] for m in ("up", "down")], [0, 1], "metrics")
        check(0 <= measured((t.addr, port), "smcrd_target_probe_age_seconds")[at] < 20, "its last probe")
        logs(d, "target down: service=x")
    check("its server" in health(pair.a)["health_text"], f"at the ingress: {health(pair.a)}")
    server = again(t, pair.server)
    for d, port in both:
        becomes(d, "up")
        wait_until(lambda p=port: healthz((t.addr, p), "?service=x") == (200, b"up\n"), "it works again")
        logs(d, "target up: service=x", "after_ms=")
    works(pair.connect())
    server.ok()


@case("probes: a peer that does not know the question leaves the state unknown; a liar can say only that it is down")
def _(t):
    pair = pair_to(t, echo)
    at = (t.addr, pair.middle["x"])
    for change, want in ((forgets, "unknown"), (lies, "down")):
        relay = Server(t, tampering(at, change), unix=False)
        d = Daemon(t, "a", {"devices": [soft_device(t.addr)], "ingress": [
            {"name": "x", "listen": hostport(t.addr, t.port()), "to": hostport(*relay.at), "probe": QUICK}]})
        wait_until(lambda: health(d)["probed"] and health(d)["probed"][0]["probed_ms"] >= 0, "it was probed")
        s = becomes(d, want)
        check(s["health_text"] != "", f"why: {s}")
        relay._close()
        becomes(d, "down")


def says(text):
    def fn(s):
        s.sendall(text)
        s.recv(1)
    return fn


def served(pair):
    with pair.connect() as s:
        return s.recv(1)


@case("probes: a target that is down is passed over, without an attempt; a backup serves while no other does")
def _(t):
    servers = [Server(t, says(b"%d" % i), unix=False) for i in range(3)]
    to = [hostport(*s.at) for s in servers[:2]] + [hostport(*servers[2].at) + " backup"]
    pair = Pair(t, {"x": servers[0].at}, egress={"to": to, "policy": "spread", "probe": QUICK})

    def states():
        return [a["state"] for a in health(pair.b)["probed"]]
    wait_until(lambda: states() == ["up"] * 3, "all work")
    equal({served(pair) for _ in range(6)}, {b"0", b"1"}, "in turn, without the backup")
    servers[0]._close()
    wait_until(lambda: states() == ["down", "up", "up"], "one is down")
    equal({served(pair) for _ in range(4)}, {b"1"}, "the other one")
    servers[1]._close()
    wait_until(lambda: states() == ["down", "down", "up"], "only the backup works")
    equal(health(pair.b)["health"], "up", "the service works")
    equal({served(pair) for _ in range(3)}, {b"2"}, "the backup")
    servers[2]._close()
    becomes(pair.b, "down")
    servers[1] = again(t, servers[1])
    wait_until(lambda: states() == ["down", "up", "down"], "it is up again")
    equal({served(pair) for _ in range(3)}, {b"1"}, "without the backup")
    addresses = pair.b.ctl("service", "x")["addresses"]
    equal([a["failures"] for a in addresses], [0, 0, 0], "no connection met one that is down")


@case("probes: what a server has to answer; a listener without a working target is closed before a client comes")
def _(t):
    def pong(s):
        if s.recv(100) == b"PING\r\n":
            s.sendall(b"+PONG\r\n")
        s.recv(1)

    def mute(s):
        while s.recv(100):
            pass
    def asks(name):		# of the others none is waited for
        return {**QUICK, "timeout": "300ms" if name == "mute" else "1m", "send": "PING\r\n", "expect": "+PONG"}
    kinds = {"good": pong, "bad": says(b"-ERR"), "mute": mute, "short": lambda s: s.sendall(b"+PO")}
    servers = {name: Server(t, fn, unix=False) for name, fn in kinds.items()}
    d = Daemon(t, "b", {"devices": [soft_device(t.addr)], "egress": [
        {"name": name, "listen": hostport(t.addr, t.port()), "to": hostport(*s.at), "probe": asks(name), "when_down": "close_listener"}
        for name, s in servers.items()]})
    becomes(d, "up", "good")
    for name, why in (("bad", "not the expected"), ("mute", "no expected answer"), ("short", "ends the connection")):
        s = becomes(d, "down", name)
        check(why in s["health_text"], f"{name}: {s}")
        wait_until(lambda n=name: health(d, n)["closed"], f"{name} does not listen")
    equal(health(d, "good")["closed"], False, "the good one listens")


@case("probes: a process that takes over goes on with the states, and the old one ends its probes")
def _(t):
    servers = [Server(t, echo, unix=False) for _ in range(2)]
    gone = hostport(*servers[1].at)
    d = Daemon(t, "b", {"devices": [soft_device(t.addr)], "egress": [
        {"name": "x", "listen": hostport(t.addr, t.port()), "to": [hostport(*s.at) for s in servers], "probe": QUICK}]})
    wait_until(lambda: [a["state"] for a in health(d)["probed"]] == ["up", "up"], "both work")
    servers[1]._close()
    wait_until(lambda: [a["state"] for a in health(d)["probed"]] == ["up", "down"], "one does not")
    before = health(d)["probed"]
    new = d.successor()
    after = health(new)["probed"]
    equal([(a["address"], a["state"], a["text"]) for a in after], [(b["address"], b["state"], b["text"]) for b in before], "the states")
    check(all(a["since_ms"] >= b["since_ms"] for a, b in zip(after, before)), f"since when: {before}, {after}")
    check("target down" not in new.log(), "no news")
    servers[1] = again(t, servers[1])
    wait_until(lambda: [a["state"] for a in health(new)["probed"]] == ["up", "up"], "it works again")
    logs(new, f"target up: service=x server={gone}")
    check("target up" not in d.log(), "seen by the new process alone")


@case("probes: services that probe an address alike share one probe, over all workers")
def _(t):
    came = []
    server = Server(t, lambda s: came.append(s.recv(1)), unix=False)
    ways = [{**QUICK, "interval": "1m"}] * 3 + [{**QUICK, "interval": "2m"}]
    d = Daemon(t, "b", {"workers": 3, "devices": [soft_device(t.addr)], "egress": [
        {"name": f"x{i}", "listen": hostport(t.addr, t.port()), "to": hostport(*server.at), "probe": p} for i, p in enumerate(ways)]})
    for i in range(len(ways)):
        becomes(d, "up", f"x{i}")
    wait_until(lambda: len(came) >= 2, "both probes have ended")
    equal(came, [b"", b""], "two ways of probing, two probes, without a byte")


@case("probes: a reload keeps the state of an address that stays; without `probe` nothing is probed")
def _(t):
    server = Server(t, echo, unix=False)
    egress = {"name": "x", "listen": hostport(t.addr, t.port()), "to": hostport(*server.at), "probe": {**QUICK, "interval": "1m"}}
    conf = {"devices": [soft_device(t.addr)], "egress": [egress]}
    d = Daemon(t, "b", conf)
    becomes(d, "up")
    gone = hostport(t.addr, t.port())
    d.write_conf({**conf, "egress": [{**egress, "to": [hostport(*server.at), gone]}]})
    d.ctl("reload")
    equal({a["address"]: a["state"] for a in health(d)["probed"]}[hostport(*server.at)], "up", "known at once")
    d.write_conf({**conf, "egress": [{**egress, "to": [hostport(*server.at), gone], "probe": QUICK}]})
    d.ctl("reload")
    equal(health(d)["probed"][0]["state"], "up", "probed in another way")
    wait_until(lambda: health(d)["probed"][1]["state"] == "down", "the new one is down")
    d.write_conf({**conf, "egress": [{**egress, "probe": None}]})
    d.ctl("reload")
    equal((health(d)["health"], health(d)["probed"]), ("", []), "no state")


main()
