#!/usr/bin/env python3
"""smcrctl check and doctor: the failed step, and no effect on other connections."""
import json
import subprocess
import time

import netns
from harness import (PATIENCE, SMCRCTL, Daemon, Server, case, check, connect_to, echo, equal, hostport, listener,
                     logs, main, need, pair_to, recv_exact, same_bytes, soft_device, wait_until)
from netns import Net
from programs import Redis

netns.enter()
subprocess.run([need("ip"), "link", "set", "lo", "up"], check=True)
SMALL = {"max_connections": 100}
STEPS = ("tcp", "clc", "connect", "link", "round-trip", "server")


def ask(t, d, at, *options):
    """The answer to a check, which is the same in text."""
    out = t.run([SMCRCTL, "--socket", d.control, "--json", "check", *options, hostport(*at)], status=None)
    data = json.loads(out)["data"]
    equal(tuple(s["step"] for s in data["steps"]), STEPS, "the steps")
    t.note(f"{at}: {data['finding']}, {data['text']}, {[(s['result'], s['took_us']) for s in data['steps']]}")
    return data


def results(data):
    return [s["result"] for s in data["steps"]]


def works(sock):
    sock.sendall(b"hello")
    same_bytes(recv_exact(sock, 5), b"hello", "echo")
    sock.close()


@case("check: each step with its time, at first contact and with a link group; the peer's service counts no client",
      one_worker="each worker makes a link group of its own")
def _(t):
    pair = pair_to(t, echo)
    at = (t.addr, pair.middle["x"])
    data = ask(t, pair.a, at)
    equal((data["possible"], data["finding"], results(data)), (True, "possible", ["ok"] * 6), "first contact")
    check(all(s["took_us"] >= 0 for s in data["steps"]), f"times: {data['steps']}")
    check(data["took_us"] >= sum(s["took_us"] for s in data["steps"]) - 10, f"together: {data}")
    equal(data["held_off_ms"], 0, "hold-off")
    again = ask(t, pair.a, at)
    equal(results(again), ["ok", "ok", "skipped", "skipped", "ok", "ok"], "with a link group")
    check("link group already" in again["steps"][2]["text"], f"why: {again['steps']}")
    text = pair.a.ctl_text("check", hostport(*at))
    check(text.startswith("rendezvous with ") and "round trip" in text, text)
    wait_until(lambda: not pair.b.connections(), "no connection is left")
    served = pair.b.services()[0]
    equal((served["accepted"], served["resets"], served["fallbacks"]), (0, 0, 0), "a check is no client")
    logs(pair.b, "probe by the peer's daemon ended", times=3)
    check("connection closed" not in pair.b.log(), "nor a client there")
    works(pair.connect())
    wait_until(lambda: pair.b.services()[0]["accepted"] == 1, "a client is counted")


@case("check: servers without SMC-R: reported at once if they answer or close, and after the timeout if silent", timeout=90)
def _(t):
    a = Daemon(t, "a", {"devices": [{"type": "siw", "address": t.addr}], "smcr": {"clc_timeout": "1s"}})

    def talks(s):
        s.recv(1000)
        s.sendall(b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n")
        s.recv(1000)

    def closes(s):
        s.recv(1000)
    patient = Daemon(t, "p", {"devices": [{"type": "siw", "address": t.addr}], "smcr": {"clc_timeout": "60s"}})
    for fn, finding, words in ((talks, "plain-server", 'it answers "HTTP/1.1 400 Bad Request"'),
                               (closes, "closed", "the connection on our Proposal: a plain server")):
        begun = time.monotonic()
        data = ask(t, patient, Server(t, fn).at, "--timeout", "50")
        equal((data["finding"], results(data)[:3]), (finding, ["ok", "failed", "not-reached"]), finding)
        check(words in data["text"] and data["steps"][1]["text"] == data["text"], f"{finding}: {data}")
        check(time.monotonic() - begun < 10 * PATIENCE, "at once")
    redis = Redis(t, unix=False)
    never = listener(t)		# accepts no connection
    for what, at in (("redis", (redis.host, redis.port)), ("one that never accepts", never.getsockname()[:2])):
        data = ask(t, a, at)
        equal((data["finding"], results(data)[:2]), ("silent", ["ok", "failed"]), what)
        check("its TCP has acknowledged the Proposal" in data["text"], f"{what}: {data['text']}")
    data = ask(t, a, (t.addr, t.port()))
    equal((data["finding"], results(data)[:2]), ("unreachable", ["failed", "not-reached"]), "a closed port")
    check("Connection refused" in data["text"], data["text"])


def blocked(t):
    """Two hosts whose middle is on one wire and whose devices are on another, which lets nothing pass; the peer is held off."""
    net = Net(t)
    port, middle = t.port(), t.port()
    a = Daemon(t, "a", {"devices": [{"type": "siw", "interface": "a2", "connect_timeout": "300ms"}],
                        "smcr": {"hold_off": "60s"}, "ingress": [
        {"name": "x", "listen": hostport("10.77.1.1", port), "to": hostport("10.77.1.2", middle), **SMALL}]})
    back = Server(t, echo, host="10.77.1.1")
    b = Daemon(t, "b", {"devices": [{"type": "siw", "interface": "b2", "connect_timeout": "300ms"}], "egress": [
        {"name": "x", "listen": hostport("10.77.1.2", middle), "to": hostport(*back.at), "allow": ["10.77.0.0/16"]}]},
        wrap=net.b.wrap())
    net.silence(2)

    def client():
        s = connect_to(("10.77.1.1", port), 20)
        t.later(s.close)
        works(s)
    return net, a, b, ("10.77.1.2", middle), client


@case("check: names a blocked MPA port; tries a held-off peer, and success ends the hold-off",
      one_worker="each worker holds the peer off for itself")
def _(t):
    net, a, b, at, client = blocked(t)
    while not a.counters()["fallback_held_off"]:
        client()
    mpa = hostport("10.77.2.2", b.ctl("devices")["devices"][0]["mpa_port"])
    data = ask(t, a, at)
    equal((data["finding"], results(data)), ("link-failed", ["ok", "ok", "failed", "not-reached", "not-reached", "not-reached"]), "blocked")
    check(f"the peer's MPA port does not answer ({mpa}): firewall?" in data["text"], data["text"])
    check(data["held_off_ms"] > 0 and not data["reason"]["held_off"], f"held off: {data}")
    net.unsilence(2)
    held = a.counters()["fallback_held_off"]
    client()
    equal(a.counters()["fallback_held_off"], held + 1, "other connections are still held off")
    data = ask(t, a, at)
    equal((data["finding"], results(data)), ("possible", ["ok"] * 6), "the way is free")
    check(data["held_off_ms"] > 0, f"it was held off: {data}")
    equal(ask(t, a, at)["held_off_ms"], 0, "it is no more")
    client()
    equal(a.counters()["fallback_held_off"], held + 1, "nor are clients")
    check(a.established() > 2, "on SMC-R")


@case("check --bulk: both paths, each direction, between two smcrd; the server receives nothing")
def _(t):
    pair = pair_to(t, echo)
    at = (t.addr, pair.middle["x"])
    for size in (1, 4 << 20):
        data = ask(t, pair.a, at, f"--bulk={size}", "--timeout", "60")
        check(data["possible"] and data["bulk_text"] == "", f"measured: {data}")
        equal([(b["path"], b["direction"], b["bytes"]) for b in data["bulk"]],
              [(p, d, size) for p in ("smcr", "tcp") for d in ("out", "back")], "the rows")
        check(all(b["took_us"] >= 0 for b in data["bulk"]), f"times: {data['bulk']}")
    check(all(b["took_us"] > 0 for b in data["bulk"]), f"times: {data['bulk']}")
    c = pair.a.counters()
    check(c["bytes_sent"] >= 4 << 20 and c["bytes_received"] >= 4 << 20, f"it went over SMC-R: {c}")
    text = pair.a.ctl_text("check", "--bulk=64K", hostport(*at))
    check("SMC-R, to peer" in text and "TCP, from peer" in text, text)
    wait_until(lambda: not pair.b.connections(), "no connection is left")
    served = pair.b.services()[0]
    equal((served["accepted"], served["resets"], served["fallbacks"]), (0, 0, 0), "no client")
    works(pair.connect())


@case("a measurement on an idle daemon with late confirmations needs no other event")
def _(t):
    late = {"devices": [soft_device(t.addr, confirm_delay="1s")]}
    pair = pair_to(t, echo, a=late, b=late)
    took = []
    for _ in range(3):		# a busy machine may stand still in one of them
        rows = ask(t, pair.a, (t.addr, pair.middle["x"]), "--bulk=2000")["bulk"]
        took.append(next(b["took_us"] for b in rows if (b["path"], b["direction"]) == ("smcr", "out")))
    check(min(took) < 50000, f"2000 bytes to the peer took {took} us")


def doctor(t, d):
    """Its data, and {(level, area): [what]} of the findings."""
    got = subprocess.run([SMCRCTL, "--socket", d.control, "--json", "doctor"], stdout=subprocess.PIPE, timeout=60 * PATIENCE)
    data = json.loads(got.stdout)["data"]
    equal(got.returncode, ("ok", "warning", "problem").index(data["verdict"]), "exit status")
    found = {}
    for f in data["findings"]:
        t.note(f"{f['level']} {f['area']}: {f['what']} -> {f['advice']}")
        equal(bool(f["advice"]), f["level"] != "ok", f"something to do: {f}")
        found.setdefault((f["level"], f["area"]), []).append(f["what"])
    return data, found


@case("doctor: no finding at first; then refusals and fallbacks", one_worker="a hold-off is each worker's own")
def _(t):
    pair = pair_to(t, echo, ingress=SMALL, egress=SMALL)
    data, found = doctor(t, pair.a)
    equal((data["verdict"], {level for level, _ in found}), ("ok", {"ok"}), "a well gateway")
    check(f"SMC-R to {hostport(t.addr, pair.middle['x'])} works" in found["ok", "check"][0], found)
    equal([c["finding"] for c in data["checks"]], ["possible"], "the checks")
    equal(found["ok", "mtu"], ["not known of any device's interface"], "an address that no interface names")
    equal(len(pair.a.ctl_text("doctor").splitlines()), len(data["findings"]), "lines of text")
    data, found = doctor(t, pair.b)
    equal((data["verdict"], data["checks"]), ("ok", []), "its peer has nothing to check")
    strict = pair_to(t, echo, ingress=SMALL, egress={**SMALL, "allow": ["192.0.2.0/24"]})
    check(strict.turned_away(), "not on the allow list")
    data, found = doctor(t, strict.b)
    equal(data["verdict"], "ok", "refused, but not now")
    check(any("not on the allow list" in w for w in found["note", "services"]), found)
    equal(strict.b.ctl_text("doctor", "--problems"), "no warning and no problem\n", "notes are no problems")
    data, found = doctor(t, strict.a)
    equal(data["verdict"], "problem", "the other end")
    check("(allow, max_connections)" in found["problem", "check"][0] and ("problem", "services") in found, found)


@case("doctor: warnings of smcrd -t, a service without allow, and a disabled service")
def _(t):
    d = Daemon(t, "d", {"egress": [{"name": name, "listen": hostport(at, t.port()), "to": hostport(t.addr, t.port()), **SMALL, **more}
                                   for name, at, more in (("open", "0.0.0.0", {}), ("kept", "0.0.0.0", {"allow": ["192.0.2.0/24"]}),
                                                          ("local", t.addr, {}))]})
    warned = doctor(t, d)[1]["warning", "services"]
    equal([w.split(":")[:2] for w in warned], [["open", " it has no allow list"]], "the service without allow")
    d.ctl_text("disable", "local")
    warned = doctor(t, d)[1]["warning", "services"]
    equal([w.split(":")[:2] for w in warned], [["open", " it has no allow list"], ["local", " it is disabled"]], "and the disabled one")


@case("doctor: many ingresses at once, some without a peer; a firewall; no daemon", timeout=90,
      one_worker="each worker holds the peer off for itself")
def _(t):
    net, a, b, at, client = blocked(t)
    for _ in range(3):
        client()
    data, found = doctor(t, a)
    check("10.77.2.2" in found["problem", "check"][0] and "firewall?" in found["problem", "check"][0], found)
    check(any("held off" in w for w in found["warning", "services"]), found)
    check(("note", "reasons") in found and any("gone to TCP" in w for w in found["note", "services"]), found)
    net.unsilence(2)
    data, found = doctor(t, a)
    check("works" in found["ok", "check"][0], f"the way is free: {found}")
    check(not any("held off" in w for w in doctor(t, a)[1]["warning", "services"]), "the hold-off is over")
    never = listener(t)
    ports = [t.port() for _ in range(10)]
    many = Daemon(t, "m", {"smcr": {"clc_timeout": "500ms"}, "devices": [{"type": "siw", "interface": "a2"}], "ingress": [
        {"name": f"s{i}", "listen": hostport(t.addr, p), "to": hostport(*never.getsockname()[:2]) if i < 5 else
         hostport(t.addr, p + 20000), **SMALL} for i, p in enumerate(ports)]})
    begun = time.monotonic()
    data, found = doctor(t, many)
    equal([c["finding"] for c in data["checks"]], ["silent"] + ["unreachable"] * 5, "one for each address")
    check(time.monotonic() - begun < 20 * PATIENCE, "at once")
    many.stop()
    equal(t.exit_status([SMCRCTL, "--socket", many.control, "doctor"]), 2, "no daemon")


main()
