#!/usr/bin/env python3
"""Start, drain, second SIGTERM, reload with live connections, bad configurations."""
import os
import re
import signal
import socket
import subprocess

from harness import Daemon, Pair, Server, case, check, echo, equal, hostport, logs, main, wait_until, works, SMCRCTL, SMCRD
from scrape import get


def echo_pair(t, **kw):
    server = Server(t, echo)
    return Pair(t, {"x": server.at}, **kw)


@case("SIGTERM drains: connections continue, new ones are refused, the daemon ends with the last one")
def _(t):
    for side in ("a", "b"):
        pair = echo_pair(t)
        old = pair.connect()
        works(old, 1)
        d = getattr(pair, side)
        d.expect_dead = True
        d.send_signal(signal.SIGTERM)
        wait_until(lambda: d.status()["draining"], f"daemon {side} drains")
        check(pair.turned_away(), "a new connection while draining")
        works(old, 2, 3000000)
        check(d.alive(), "the daemon waits for its connection")
        old.close()
        equal(d.wait(), 0, "exit status")


@case("a second SIGTERM ends at once: clients are reset")
def _(t):
    for side in ("a", "b"):
        pair = echo_pair(t)
        old = pair.connect()
        works(old)
        d = getattr(pair, side)
        d.expect_dead = True
        d.send_signal(signal.SIGTERM)
        wait_until(lambda: d.status()["draining"], f"daemon {side} drains")
        d.send_signal(signal.SIGTERM)
        equal(d.wait(5), 0, "exit status")
        try:
            equal(old.recv(1), None, "a reset")
        except ConnectionResetError:
            pass


@case("drain_timeout ends the remaining connections")
def _(t):
    pair = echo_pair(t, a={"drain_timeout": "500ms"})
    old = pair.connect()
    works(old)
    pair.a.expect_dead = True
    pair.a.send_signal(signal.SIGTERM)
    equal(pair.a.wait(5), 0, "exit status")
    try:
        equal(old.recv(1), None, "a reset")
    except ConnectionResetError:
        pass


@case("idle daemons end at once, start again on the same ports, and take over a dead one's control socket")
def _(t):
    pair = echo_pair(t)
    for _ in range(3):
        c = pair.connect()
        works(c)
        c.close()
        pair.quiet()
        for d in (pair.a, pair.b):
            equal(d.stop(timeout=5), 0, f"exit status of daemon {d.name}")
            check(not os.path.exists(d.control), f"daemon {d.name} removed its control socket")
        pair.b.start()
        pair.a.start()
    pair.b.kill()
    check(os.path.exists(pair.b.control), "a killed daemon leaves its socket")
    pair.b.start()
    c = pair.connect()
    works(c)


@case("SIGHUP adds and removes services; live connections continue")
def _(t):
    first, second = Server(t, echo), Server(t, echo)
    pair = Pair(t, {"one": first.at, "two": second.at})
    confs = {"a": pair.conf_a, "b": pair.conf_b}
    keys = {"a": "ingress", "b": "egress"}

    def reload(keep):
        for d in (pair.b, pair.a):
            conf = confs[d.name]
            key = keys[d.name]
            d.write_conf(dict(conf, **{key: [s for s in conf[key] if s["name"] in keep]}))
            d.send_signal(signal.SIGHUP)
            wait_until(lambda d=d: {s["name"] for s in d.services()} == set(keep),
                       f"daemon {d.name} has services {keep}")
    one, two = pair.connect("one"), pair.connect("two")
    works(one, 1)
    works(two, 2)
    reload(["one"])
    works(two, 3)
    check(pair.turned_away("two"), "a new connection to a removed service")
    works(pair.connect("one"), 4)
    reload(["one", "two"])
    works(pair.connect("two"), 5)
    works(two, 6)
    works(one, 7)
    pair.only_smcr(3)


@case("a broken configuration at a reload: an error with its place, and the old one stays")
def _(t):
    pair = echo_pair(t)
    c = pair.connect()
    works(c)
    with open(pair.a.conf_path) as f:
        good = f.read()
    with open(pair.a.conf_path, "w") as f:
        f.write(good + "nonsense = 5;\n")
    out = t.run([SMCRCTL, "--socket", pair.a.control, "reload"], status=None, stderr=subprocess.STDOUT).decode()
    line = good.count("\n") + 1
    check(re.search(rf"smcrd\.conf:{line}\b.*nonsense", out), f"smcrctl reload says: {out}")
    works(c, 1)
    works(pair.connect(), 2)
    pair.a.send_signal(signal.SIGHUP)
    wait_until(lambda: re.search(r"nonsense", pair.a.log()), "the log says why the reload failed")
    works(c, 3)
    pair.only_smcr(2)


@case("smcrd --reload fails when the daemon refuses it, with the reason, which is shown until one succeeds")
def _(t):
    at = (t.addr, t.port())
    pair = echo_pair(t, a={"metrics": {"listen": "%s:%d" % at}})
    d, good = pair.a, pair.a.conf

    def reload(status):
        return t.run([SMCRD, "-f", d.conf_path, "--reload"], status=status, stderr=subprocess.STDOUT).decode()
    taken = socket.socket()
    t.later(taken.close)
    taken.bind((t.addr, t.port()))
    taken.listen()
    occupied = dict(good, ingress=[*good["ingress"], dict(good["ingress"][0], name="y", listen="%s:%d" % taken.getsockname())])
    for conf, status, why in ((dict(good, workers=0), 78, "workers"), (occupied, 1, "Address already in use")):
        d.write_conf(conf)
        check(why in reload(status), "the reason")
    for words in (d.ctl_text("status"), d.ctl_text("doctor", status=2), get(at, "/")[2].decode()):
        check("reload failed, old configuration in force" in words and "Address already in use" in words, words)
    check("\nsmcrd_reload_failed 1\n" in get(at, "/metrics")[2].decode(), "its gauge")
    d.write_conf(good)
    reload(0)
    equal((d.status()["reload_failed"], d.status()["reload_error"]), (False, ""), "after one that succeeded")
    check("reload failed" not in d.ctl_text("status"), "nor in words")
    d.finish()
    check("cannot be asked" in reload(1), "without a daemon")


@case("a reload changes the allow list and the limits of a service that is in use")
def _(t):
    pair = echo_pair(t)
    c = pair.connect()
    works(c)
    conf = dict(pair.conf_a)
    conf["ingress"] = [dict(conf["ingress"][0], allow=["127.99.99.99"])]
    pair.a.write_conf(conf)
    pair.a.ctl_text("reload")
    check(pair.turned_away(), "a client that is no longer allowed")
    works(c, 1)
    conf["ingress"] = [dict(conf["ingress"][0], allow=["127.0.0.0/8"], max_connections=2)]
    pair.a.write_conf(conf)
    pair.a.ctl_text("reload")
    second = pair.connect()
    works(second, 2)
    check(pair.turned_away(), "a third connection where two are allowed")
    pair.only_smcr(2)


@case("smcrd -t reports each error with its line; the output of -T is a valid configuration")
def _(t):
    pair = echo_pair(t)
    path = t.path("bad.conf")
    with open(path, "w") as f:
        f.write('log_level = "loud";\n'
                'ingress = ( { name = "x"; listen = "nowhere"; to = "127.0.0.1:1"; colour = "red"; } );\n'
                'devices = ( { type = "verbs"; interface = "eth1"; }, { type = "siw"; interface = "eth1";\n'
                'mpa_ports = 7575; } );\n')
    out = t.run([SMCRD, "-t", "-f", path], status=None, stderr=subprocess.STDOUT).decode()
    for want in (r":1:.*log_level", r":2:.*listen", r":2:.*colour", r":4: devices.mpa_ports overlaps"):
        check(re.search(want, out), f"{want} in {out}")
    check(t.exit_status([SMCRD, "-t", "-f", path]) != 0, "exit status for a bad file")
    equal(t.exit_status([SMCRD, "-t", "-f", pair.a.conf_path]), 0, "exit status for a good file")
    checked = t.run([SMCRD, "-t", "-f", pair.a.conf_path], stderr=subprocess.STDOUT).decode()
    check("ok, 1 service" in checked and "warning" not in checked, f"ports of the running daemon are its own: {checked}")
    with open(pair.a.conf_path) as f, open(path, "w") as other:
        other.write(f.read().replace(pair.a.control, t.path("other")))
    check("Address already in use" in t.run([SMCRD, "-t", "-f", path], stderr=subprocess.STDOUT).decode(), "a port of another daemon")
    canonical = t.run([SMCRD, "-T", "-f", pair.a.conf_path])
    with open(t.path("canonical.conf"), "wb") as f:
        f.write(canonical)
    equal(t.run([SMCRD, "-T", "-f", t.path("canonical.conf")]), canonical, "canonical form of the canonical form")


@case("smcrctl service: settings, connections by mode, and the failure of the far end")
def _(t):
    pair = echo_pair(t)
    works(pair.connect())
    one = pair.b.ctl("service", "x")
    equal(one["modes"], {"smcr": 1, "tcp": 0, "setup": 0}, "connections by mode")
    equal(one["targets"], [{"target": one["to"], "name_error": ""}], "targets")
    equal(one["addresses"], [{"address": one["to"], "target": one["to"], "priority": 0, "weight": 0, "state": "ok", "text": "",
                              "connections": 1, "failures": 0, "passed_over": 0}], "addresses of the server")
    equal(one["outage"], {"text": "", "failed": 0, "age_ms": 0}, "no outage")
    settings = {s["name"]: s["value"] for s in one["settings"]}
    equal(settings["max_connections"], "4096", "a setting that the file does not name")
    equal(settings["listen"], f'"{one["listen"]}"', "one that it names")
    check("prewarm" not in settings, "a setting of ingress services at an egress")
    check("there is no such service" in t.run([SMCRCTL, "--socket", pair.b.control, "service", "y"], status=1,
                                              stderr=subprocess.STDOUT).decode(), "a service that is not there")

    down = Pair(t, {"x": (t.addr, t.port())})
    check(down.turned_away(), "a client whose server is down")
    outage = down.b.ctl("service", "x")["outage"]
    equal(outage["text"], "cannot be connected: Connection refused", "why the server cannot be reached")
    equal(outage["failed"], 1, "connections that failed")
    check("Outage       for " in down.b.ctl_text("service", "x"), "the outage in the text")


@case("included files: a reload of the confined daemon reads new ones, and a bad one changes nothing")
def _(t):
    directory = t.path("elsewhere")	# not the configuration's own
    os.mkdir(directory)
    port = [t.port(), t.port()]

    def write(name, text):
        with open(os.path.join(directory, name), "w") as f:
            f.write(text)

    def service(name, port):
        return f'egress = ( {{ name = "{name}"; listen = "{hostport(t.addr, port)}"; to = "{t.addr}:1"; }} );\n'

    def services(d):
        return sorted(s["name"] for s in d.status()["services"])

    write("10.conf", service("first", port[0]))
    d = Daemon(t, "d", {"include": os.path.join(directory, "*.conf"),
                        "devices": [{"type": "siw", "address": t.addr}]})
    equal(services(d), ["first"], "services at the start")
    write("20.conf", service("second", port[1]))
    d.ctl_text("reload")
    equal(services(d), ["first", "second"], "services with a second file")
    write("30.conf", "egress = (\n{ name = 7; }\n};\n")
    d.send_signal(signal.SIGHUP)
    wait_until(lambda: f"{directory}/30.conf:3: syntax error at or just before }};\n" in d.log(), "the bad file in the log")
    equal(services(d), ["first", "second"], "services after a bad file")
    os.unlink(os.path.join(directory, "30.conf"))
    os.unlink(os.path.join(directory, "10.conf"))
    d.ctl_text("reload")
    equal(services(d), ["second"], "services without the first file")


@case("an occupied port: the start fails and names it")
def _(t):
    taken = Server(t, echo)
    conf = {"devices": [{"type": "siw", "address": t.addr}],
            "egress": [{"name": "x", "listen": hostport(*taken.at), "to": hostport(t.addr, 9)}]}
    d = Daemon(t, "c", conf, start=False)
    d.start(ready=False)
    d.expect_dead = True
    check(d.wait() != 0, "exit status")
    logs(d, str(taken.port))


main()
