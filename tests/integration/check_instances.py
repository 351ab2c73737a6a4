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

from harness import (SMCRCTL, SMCRD, Daemon, Server, case, check, conf_text, connect_to, echo, equal, hostport, main, need, soft_device, works)
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
        self.conf, self.conf_path, self.control = conf, self.usual_file, f"{self.run_dir}/control"
        with open(self.conf_path, "w") as f:
            f.write(conf_text(dict(conf, workers=self.t.workers or 1))[1:-1])

    def which(self):
        return self.option

    def daemon(self, *args, status=0):
        return self.t.run([SMCRD, *self.option, *args], status=status).decode()

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


main()
