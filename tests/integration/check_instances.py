#!/usr/bin/env python3
"""
Several daemons on one host, by name: each has its file, its directory and its control socket by default, and what happens to one
does not happen to another. In file systems of this script's own, as all is at the default paths.
"""
import json
import os
import re
import shutil
import subprocess

from harness import (SMCRCTL, SMCRD, Daemon, Server, case, check, conf_text, connect_to, echo, equal, hostport, main, need, soft_device,
                     wait_until, works)
from netns import enter

enter(mount=True)


def default(program, pattern):
    return re.search(pattern, subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout)[1]


ETC = default(SMCRD, r"\((\S+)/smcrd/smcrd\.conf\)")
RUN = default(SMCRCTL, r"\((\S+)/smcrd/control\)")


def own_file_systems():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for path in (ETC, RUN):
        there = path
        while not os.path.isdir(there):
            there = os.path.dirname(there)
        subprocess.run([need("mount"), "-t", "tmpfs", "none", there], check=True)
        os.makedirs(path, exist_ok=True)
    os.makedirs(f"{ETC}/smcrd")


own_file_systems()


class Instance(Daemon):
    """At the default paths of its name, None: of the daemon without one; the directory is made as its unit does."""

    def __init__(self, t, instance, conf):
        self.option = ["-i", instance] if instance else []
        self.run_dir = f"{RUN}/smcrd-{instance}" if instance else f"{RUN}/smcrd"
        self.usual_file = f"{ETC}/smcrd/{instance or 'smcrd'}.conf"
        os.mkdir(self.run_dir)
        t.later(lambda: shutil.rmtree(self.run_dir, ignore_errors=True))
        super().__init__(t, instance or "smcrd", conf)

    def write_conf(self, conf):
        path = conf.get("control", {}).get("path", f"{self.run_dir}/control")
        self.conf, self.conf_path, self.control = conf, self.usual_file, path
        with open(self.conf_path, "w") as f:
            f.write(conf_text(dict(conf, workers=self.t.workers or 1))[1:-1])

    def which(self):
        return self.option

    def daemon(self, *args, status=0):
        return self.t.run([SMCRD, *self.option, *args], status=status).decode()

    def asks(self, command, at=None):
        return self.t.run([SMCRCTL, "--socket", at or self.control, "--json", command]).decode()

    def ask(self, *args, status=0):
        return self.t.run([SMCRCTL, *self.option, *args], status=status).decode()


def service(t, kind, name, to, **more):
    port = t.port()
    return (t.addr, port), {"devices": [soft_device(t.addr)],
                            kind: [dict({"name": name, "listen": hostport(t.addr, port), "to": hostport(*to)}, **more)]}


def instances(t):
    """client -> one, an ingress == two, an egress -> server; beside them the daemon without a name."""
    middle, two = service(t, "egress", "far", Server(t, echo).at)
    front, one = service(t, "ingress", "near", middle)
    _, first = service(t, "ingress", "other", middle)
    return front, [Instance(t, name, conf) for name, conf in (("one", one), ("two", two), (None, first))]


@case("commands reach the instance that they name: smcrctl, doctor, reloads, also of a wrong file")
def _(t):
    _, all_of_them = instances(t)
    for d, name in zip(all_of_them, ("near", "far", "other")):
        equal([x["name"] for x in json.loads(d.ask("--json", "status"))["data"]["services"]], [name], f"services of {d.name}")
        check(f'path = "{d.control}"' in d.daemon("-T"), f"{d.name}: its control socket by default")
    one, two, first = all_of_them
    for d in all_of_them:
        equal('"near"' in d.ask("--json", "doctor", status=None), d is one, f"doctor of {d.name} has the ingress of one")
    two.write_conf(dict(two.conf, log_level="debug"))
    check("log_level" in two.daemon("--reload"), "what a reload changes")
    with open(two.conf_path, "w") as f:
        f.write("nonsense")
    two.daemon("--reload", status=78)
    for d in all_of_them:
        equal(bool(d.status()["reload_error"]), d is two, f"{d.name} has refused a file")
    t.run([SMCRD, "-i", "../two", "-t"], status=64)
    t.run([SMCRD, "-i", "three", "-t"], status=78)
    r = subprocess.run([SMCRCTL, "-i", "three", "status"], stderr=subprocess.PIPE, text=True)
    equal((r.returncode, "systemctl start smcrd@three" in r.stderr), (2, True), f"advice: {r.stderr}")


@case("one ends and is started again: the others go on, with their files, sockets and connections")
def _(t):
    front, (one, two, first) = instances(t)
    with connect_to(front) as s:
        works(s)
        first.stop()
        shutil.rmtree(first.run_dir)	# as systemd does
        works(s, 2)
        one.ask("status")
        two.ask("status")
        check(not os.path.exists(first.control), "the directory of the one that ended")
        first.ask("status", status=2)
        os.mkdir(first.run_dir)
        first.start()
        first.ask("status")
        successor = two.successor(args=("--take-over",))
        check(two.control == f"{successor.control}.{two.pid}", "a take-over within the instance")
        works(s, 3)
        for d in (one, successor, first):
            d.ask("status")
    with connect_to(front) as s:
        works(s)


def moved(d, path, *args, held=True):
    """The daemon after control.path was changed: it answers there, and the process that it was, if it holds a connection, beside its own path."""
    was, pid, d.expect_dead = d.control, json.loads(d.asks("status"))["data"]["pid"], True
    d.write_conf(dict(d.conf, control={"path": path}))
    d.control = path
    log = d.t.path(f"moved.{d.t.count()}")
    with open(log, "wb") as f:
        popen = subprocess.Popen([SMCRD, *d.option, *args], stdin=subprocess.DEVNULL, stdout=f, stderr=f)
    d.t.later(lambda: popen.poll() is None and popen.kill())
    wait_until(lambda: d.t.exit_status([SMCRCTL, "--socket", path, "status"]) == 0, f"a daemon at {path}")
    wait_until(lambda: json.loads(d.asks("status"))["data"]["pid"] != pid, "another process")
    wait_until(lambda: d.t.exit_status([SMCRCTL, "--socket", was, "status"]) == 2, f"nothing answers at {was}")
    status = json.loads(d.asks("status"))["data"]
    d.t.later(lambda: os.path.exists(f"/proc/{status['pid']}") and os.kill(status["pid"], 9))
    if not held:
        return status["pid"]
    check(pid in [p["pid"] for p in status["predecessors"]], f"{pid} of {status['predecessors']}")
    old = json.loads(d.asks("status", at=f"{was}.{pid}"))["data"]
    equal((old["pid"], old["ends"]), (pid, True), "the one before is reached")
    return status["pid"]


@case("control.path changes: a reload and a restart find the daemon at its old path, and take over", timeout=90)
def _(t):
    front, (one, _, _) = instances(t)
    elsewhere = t.path("sockets")
    os.mkdir(elsewhere)
    held = []

    def move(path, *args):
        held.append(connect_to(front))
        works(held[-1])
        pid = moved(one, path, *args)
        for i, s in enumerate(held):
            works(s, i)
        return pid
    first = json.loads(one.asks("status"))["data"]["pid"]
    move(f"{elsewhere}/a", "--reload")
    move(f"{elsewhere}/b", "--reload")
    check(first in [p["pid"] for p in json.loads(one.asks("status"))["data"]["predecessors"]], "the first one is known to the third")
    pid = move(f"{elsewhere}/c", "--take-over")
    one.daemon("--reload")
    equal(json.loads(one.asks("status"))["data"]["pid"], pid, "a reload without a reason to take over")
    move(f"{one.run_dir}/control", "--reload")
    for s in held:
        s.close()


@case("what a daemon that was killed has left leads its successor to no other daemon")
def _(t):
    _, (one, two, _) = instances(t)
    elsewhere = t.path("shared")
    os.kill(moved(one, elsewhere, "--reload", held=False), 9)
    os.remove(elsewhere)
    pid = moved(two, elsewhere, "--reload", held=False)
    one.write_conf(dict(one.conf, control={"path": f"{one.run_dir}/control"}))
    one.daemon("--reload", status=1)
    equal(json.loads(two.asks("status"))["data"]["pid"], pid, "the other one goes on")


main()
