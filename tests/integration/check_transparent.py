#!/usr/bin/env python3
"""
The set-ups of doc/transparent.md, with its lines: host A is the test's network namespace, host B another one. Of Kubernetes what
does without a cluster.
"""
import os
import re
import subprocess
import sys

from netns import Net, enter

enter(mount=True)

import who								# noqa: E402
from harness import SMCRCTL, TOP_BUILD, TOP_SRC, Daemon, case, check, connect_to, equal, main, need, recv_all, same_bytes, wait_until	# noqa: E402

GROUPS, MINE = "/sys/fs/cgroup", f"smcrd-test-{os.getpid()}"
PROGRAM = 65534
CLIENT = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.sendall(b"x")
line = b""
while not line.endswith(b"\\nx"):
    part = s.recv(999)
    if not part:
        break
    line += part
print(line.decode().split("\\n")[0], *s.getpeername())
"""


def text_of(*path):
    with open(os.path.join(TOP_SRC, *path), encoding="utf-8") as f:
        return f.read()


def section(title):
    return text_of("doc", "transparent.md").split(f"\n## {title}\n")[1].split("\n## ")[0]


def service(title, kind):
    """The configuration of the page: one statement."""
    return re.search(rf"^    {kind} = \((?:.|\n)*? \);\n", section(title), re.M)[0]


class Written(Daemon):
    """A daemon with this text as its configuration."""

    def write_conf(self, conf):
        self.conf = conf
        with open(self.conf_path, "w") as f:
            f.write(f'{conf}\nlog_level = "info"; control = {{ path = "{self.control}"; }};\n')
            if self.t.workers is not None:
                f.write(f"workers = {self.t.workers};\n")


def hosts(t):
    net = Net(t, 1)
    net.ip("a", "addr add 192.0.2.1/24 dev a1")
    net.ip("b", "addr add 192.0.2.2/24 dev b1", "addr add 198.51.100.9/32 dev lo")
    net.ip("a", "route add 198.51.100.0/24 via 192.0.2.2")
    t.later(lambda: t.run([need("nft"), "flush", "ruleset"]))
    return net


def group(t, path):
    if not os.path.exists(f"{GROUPS}/cgroup.procs"):
        t.run([need("mount"), "-t", "cgroup2", "none", GROUPS])
    at = GROUPS
    for part in path.split("/"):
        at += "/" + part
        if not os.path.isdir(at):
            os.mkdir(at)
            t.later(lambda at=at: wait_until(lambda: not os.system(f"rmdir {at} 2>/dev/null"), f"{at} is removed"))
    return at


def inside(t, at, *argv):
    """A program in a control group, of a user other than the daemon's; what it prints."""
    drop = [need("setpriv"), f"--reuid={PROGRAM}", f"--regid={PROGRAM}", "--clear-groups"]
    return t.run(["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', at, *drop, *argv]).decode().strip()


def wanted(t, at, host, port):
    """A program in that group reaches this server under its own address, and getpeername() has that, too. Gives the client's
    address that the server sees."""
    said = inside(t, at, sys.executable, "-c", CLIENT, host, str(port))
    check(said.endswith(f'"here": ["{host}", {port}]}} {host} {port}'), f"the server's and the program's words: {said}")
    return re.search(r'"peer": \["([^"]*)"', said)[1]


@case("a server on this host")
def _(t):
    title, net = "A server on this host", hosts(t)
    net.ip("a", "addr add 10.1.0.1/32 dev lo", "addr add 10.1.0.9/32 dev lo")
    who.start(net.b, "127.0.0.1", 5432)
    b = Written(t, "b", service(title, "egress"), wrap=net.b.wrap())
    Written(t, "a", service(title, "ingress"))
    line = re.search(r"^    smcrctl (routes pg) \| sh$", section(title), re.M)[1]
    net.b.run(["sh", "-c", f"{SMCRCTL} -s {b.control} {line} | sh"])
    for _ in range(3):
        s = connect_to(("10.1.0.1", 5432), source="10.1.0.9")
        equal(who.ask(s)[0][0], "10.1.0.9", "the client that the server sees")
        s.sendall(b"x")
        s.shutdown(1)
        same_bytes(recv_all(s), b"x", "echo")
    equal((b.services()[0]["accepted"], b.services()[0]["fallbacks"]), (3, 0), "connections, and those of them on TCP")


def captures(t, a, at, *args):
    """Loads what smcrctl prints, for the control group `at` instead of its default."""
    text = t.run([SMCRCTL, "-s", a.control, "capture", "all", *args]).decode()
    t.run([need("nft"), "-f", "-"], input=text.replace("smcrd.slice/smcrd-programs.slice", at).encode())


@case("servers behind this host, and the program's address as well")
def _(t):
    title, net = "Servers behind this host", hosts(t)
    at = f"{MINE}/programs"
    there = group(t, at)
    who.start(net.b, "198.51.100.9", 5432)
    b = Written(t, "b", service(title, "egress"), wrap=net.b.wrap())
    a = Written(t, "a", service(title, "ingress"))
    equal(re.search(r"^    smcrctl (.*) > /etc/smcrd/capture.nft$", section(title), re.M)[1], "capture all", "the page's line")
    captures(t, a, at)
    for _ in range(3):
        check(wanted(t, there, "198.51.100.9", 5432) in ("192.0.2.2", "198.51.100.9"), "the gateway's address at the server")
    equal(a.services()[0]["dest_taken"], 3, "destinations taken")
    env = f"SMCRD_CAPTURED={TOP_BUILD}/local/smcrd-captured"
    out = t.run(["env", env, f"{TOP_BUILD}/local/smcrd-run", "--cgroup", at, "true"], status=1, stderr=subprocess.STDOUT).decode()
    check("not captured" in out, "smcrd-run as the daemon's own user, which the rules leave out")
    # Both parts together.
    net.ip("b", "route add local 0.0.0.0/0 dev lo table 123", "rule add from 198.51.100.9 iif lo ipproto tcp sport 5432 lookup 123")
    b.stop()
    Written(t, "b", b.conf.replace("to_allow", 'client_address = "connect"; clients = [ "192.0.2.1" ]; to_allow'), wrap=net.b.wrap())
    a.write_conf(a.conf.replace('name = "all"', 'name = "all"; forward_client = "required"'))
    a.ctl_text("reload")
    for _ in range(3):
        equal(wanted(t, there, "198.51.100.9", 5432), "192.0.2.1", "the program's address at the server")


@case("a Kubernetes node")
def _(t):
    net = hosts(t)
    manifest = text_of("packaging", "kubernetes", "capture.yaml")
    conf = re.search(r"smcrd\.conf: \|\n((?:    .*\n)+)", manifest)[1]
    args = re.search(r"smcrctl capture all (--cgroup) (kubepods\.slice) ", manifest).groups()
    there = group(t, f"{MINE}-{args[1]}")	# at the same level
    who.start(net.b, "198.51.100.9", 5432)
    Written(t, "b", service("Servers behind this host", "egress"), wrap=net.b.wrap())
    a = Written(t, "a", conf)
    captures(t, a, "", args[0], f"{MINE}-{args[1]}")
    pod = group(t, f"{MINE}-{args[1]}/pod7/container")
    for at in (pod, there):
        check(wanted(t, at, "198.51.100.9", 5432), "a program of a pod")
    equal(a.services()[0]["dest_taken"], 2, "destinations taken")


main()
