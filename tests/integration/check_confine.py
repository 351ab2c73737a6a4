#!/usr/bin/env python3
"""
The daemon confines itself without systemd: what the kernel says of its threads, what smcrctl and -t say, and what that
means for reloads. Every other test runs confined, too (harness.py).
"""
import ctypes
import os
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import (SMCRD, Daemon, Failure, Pair, Server, Skip, case, check, connect_to, echo, equal,	# noqa: E402
                     hostport, logs, main, need, wait_until, works)

PARTS = ("no_new_privs", "capabilities", "files", "system_calls")
LANDLOCK_CREATE_RULESET = 444


def kernel_says(d):
    """Fields of /proc/PID/task/*/status that matter here: a set of values for each."""
    out = {}
    for status in d.threads("status").values():
        for line in status.split("\n"):
            key, _, value = line.partition(":")
            if key in ("NoNewPrivs", "Seccomp", "CapPrm", "CapEff", "CapInh", "CapAmb"):
                out.setdefault(key, set()).add(value.strip())
    return out


def has_landlock():
    return ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1) > 0


def low_port(t):
    """A free port below 1024 on our address."""
    if os.geteuid() != 0:
        raise Skip("only root has low ports")
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", encoding="ascii") as f:
        if int(f.read()) < 1000:
            raise Skip("low ports need no privilege here")
    for port in range(900, 1000):
        with socket.socket() as s:
            try:
                s.bind((t.addr, port))
                return port
            except OSError:
                continue
    raise Skip("no free port below 1024")


@case("the kernel, smcrctl status and smcrd -t report the same confinement")
def _(t):
    pair = Pair(t, {"x": Server(t, echo).at})
    works(pair.connect())
    for d in (pair.a, pair.b):
        status = d.status()
        c = status["confinement"]
        kernel = kernel_says(d)
        equal(tuple(k for k in c if k != "mode"), PARTS, "parts")
        equal(c["mode"], "auto", "mode")
        check(c["no_new_privs"]["on"] and kernel["NoNewPrivs"] == {"1"}, f"no_new_privs: {c}, {kernel}")
        check(c["capabilities"]["on"], f"capabilities: {c}")
        for key in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            equal({int(v, 16) for v in kernel[key]}, {0}, key)
        equal(c["files"]["on"], has_landlock(), "files")
        if "built without" in c["system_calls"]["text"]:
            t.note(c["system_calls"]["text"])
        else:
            check(c["system_calls"]["on"] and kernel["Seccomp"] == {"2"}, f"system calls: {c}, {kernel}")
        check(status["rss_bytes"] > 0, "smcrd can read its own memory's size")
        text = d.ctl_text("status")
        check("Confined     no new privileges, capabilities" in text, text)
        preview = subprocess.run([SMCRD, "-t", "-f", d.conf_path], stdout=subprocess.PIPE, check=True, text=True,
                                 env=dict(os.environ, SMCRD_CONFINE_TEST="kill")).stdout
        for part in PARTS:
            line = f"confinement, {part}: {'' if c[part]['on'] else 'no: '}{c[part]['text']}"
            check(line in preview.split("\n"), f"{line!r} in {preview}")


@case("a confined daemon reloads: names, a replaced file, new services")
def _(t):
    first, second = Server(t, echo), Server(t, echo)
    pair = Pair(t, {"one": first.at})
    port = t.port()
    conf = dict(pair.conf_a)
    conf["ingress"] = conf["ingress"] + [{"name": "two", "listen": hostport(t.addr, port),
                                          "to": f"localhost:{second.port}"}]
    works(pair.connect())
    # As editors and configuration management do it.
    old = pair.a.conf_path
    pair.a.conf_path = old + ".new"
    pair.a.write_conf(conf)
    os.rename(pair.a.conf_path, old)
    pair.a.conf_path = old
    pair.a.ctl("reload")
    equal({s["name"] for s in pair.a.services()}, {"one", "two"}, "services")
    connect_to((t.addr, port)).close()
    works(pair.connect())


@case("a port below 1024 at a reload: refused with the reason, unless low_ports is set")
def _(t):
    port = low_port(t)
    conf = {"log_level": "info", "devices": [{"type": "siw", "address": t.addr}],
            "egress": [{"name": "low", "listen": hostport(t.addr, port), "to": "127.0.0.1:9"}]}
    Daemon(t, "start", conf).finish()		# at start it is there
    before = dict(conf, egress=[dict(conf["egress"][0], listen=hostport(t.addr, t.port()))])
    d = Daemon(t, "gone", before)
    d.write_conf(conf)
    try:
        d.ctl("reload")
    except Failure as e:
        check("confine.low_ports" in str(e), e)
    else:
        raise Failure("a port below 1024 was opened without the right")
    d.finish()
    kept = Daemon(t, "kept", dict(before, confine={"low_ports": True}))
    kept.write_conf(dict(conf, confine={"low_ports": True}))
    kept.ctl("reload")
    equal({int(v, 16) for v in kernel_says(kept)["CapEff"]}, {1 << 10}, "CAP_NET_BIND_SERVICE alone")
    check("CAP_NET_BIND_SERVICE" in kept.status()["confinement"]["capabilities"]["text"], "status says what is kept")


@case("a UNIX socket outside the confinement: refused at a reload with the reason, created at a start")
def _(t):
    conf = {"log_level": "info", "devices": [{"type": "siw", "address": t.addr}],
            "ingress": [{"name": "local", "listen": hostport(t.addr, t.port()), "to": "127.0.0.1:9"}]}
    elsewhere = os.path.join(t.dir, "elsewhere")
    os.mkdir(elsewhere)
    d = Daemon(t, "d", conf)
    if not d.status()["confinement"]["files"]["on"]:
        raise Skip("no Landlock here")
    there = dict(conf, ingress=[dict(conf["ingress"][0], listen=f"unix:{elsewhere}/s")])
    d.write_conf(there)
    try:
        d.ctl("reload")
    except Failure as e:
        check("Permission denied" in str(e) and "see Confinement in smcrd(8)" in str(e), e)
    else:
        raise Failure("a socket was made where the confinement forbids it")
    d.finish()
    Daemon(t, "again", there).finish()


@case("an unprivileged user, confined; no files remain")
def _(t):
    if os.geteuid() != 0:
        raise Skip("only root can change the user")
    setpriv = need("setpriv")
    d = Daemon(t, "nobody", {"devices": [{"type": "siw", "address": t.addr}]}, start=False,
               wrap=[setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"])
    os.chmod(t.dir, 0o755)
    os.chown(d.dir, 65534, 65534)
    d.start()
    parts = d.status()["confinement"]
    for part in ("no_new_privs", "capabilities"):
        check(parts[part]["on"], f"{part}: {parts[part]}")
    equal(parts["files"]["on"], has_landlock(), "files")
    d.ctl("reload")
    d.finish()
    check(not os.path.exists(d.control), "the control socket is gone")


@case("confine.mode: off and require")
def _(t):
    conf = {"devices": [{"type": "siw", "address": t.addr}]}
    d = Daemon(t, "off", dict(conf, confine={"mode": "off"}))
    kernel = kernel_says(d)
    equal((kernel["NoNewPrivs"], kernel["Seccomp"]), ({"0"}, {"0"}), "nothing is in force")
    check("Not confined" in d.ctl_text("status"), "status says so")
    d.finish()
    d = Daemon(t, "require", dict(conf, confine={"mode": "require"}), start=False)
    d.start(ready=False)
    d.expect_dead = True
    wait_until(lambda: not d.alive() or "notice: ready" in d.log(), "it runs or has ended")
    if d.alive():
        check(all(d.status()["confinement"][p]["on"] for p in PARTS), "all of it is in force")
        d.finish()
    else:
        equal(d.popen.returncode, 78, "exit status")
        logs(d, 'confine.mode is "require"')


main()
