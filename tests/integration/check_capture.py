#!/usr/bin/env python3
"""
The rules that smcrctl capture prints load as they are, and lead to the ingress what they should, with the destination that
the program wanted; smcrd-run proves it. A socket of the test stands for the ingress, another one for the daemon's control socket.
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

from harness import PATIENCE, SMCRCTL, TOP_BUILD, TOP_SRC, Daemon, Skip, case, check, equal, main, need, wait_until
from netns import Net, enter

enter(mount=True)

RUN = os.path.join(TOP_BUILD, "local", "smcrd-run")
CGROUPS = "/sys/fs/cgroup"
MINE = f"smcrd-test-{os.getpid()}"
USER, OTHER = 65533, 65534	# the daemon's, a program's
SO_ORIGINAL_DST, IP_TRANSPARENT, IPV6_TRANSPARENT = 80, 19, 75
WANTED, WANTED6 = "198.51.100.9", "2001:db8:9::9"
NETS = [("198.51.100.0/24", 1, 65535), ("198.51.100.0/28", 5000, 6000), ("198.51.0.0/16", 22, 22)]
NETS6 = [("2001:db8:9::/48", 1, 65535)]

# A program: connects, says its names and what the other end sends.
CLIENT = """
import socket, sys
to, port, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_STREAM, 262 if how == "mptcp" else 0)
s.settimeout(20)
try:
    if how == "bind":
        s.bind(("", 0))
    if how == "fastopen":
        s.setblocking(True)
        s.sendto(b"x", 0x20000000, (to, port))
    elif how == "nonblocking":
        import errno, select
        s.setblocking(False)
        assert s.connect_ex((to, port)) == errno.EINPROGRESS
        select.select([], [s], [], 20)
        assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        s.setblocking(True)
        s.settimeout(20)
    else:
        s.connect((to, port))
    print(s.recv(99).decode(), s.getpeername()[0], s.getpeername()[1])
except OSError as e:
    print("no", type(e).__name__)
"""


def ip(t, *args, status=0):
    return t.run([need("ip"), *args], status=status)


SERVER = """
import select, socket
ls = []
for port in (22, 23, 5432):
    l = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    ls.append(l)
print("listens", flush=True)
while True:
    for l in select.select(ls, [], [])[0]:
        c, _ = l.accept()
        c.sendall(b"direct")
        c.close()
"""


def host(t):
    """A host that has all destinations and answers on three ports, and a cgroup2 tree where nft looks for it."""
    net = Net(t, pairs=1)
    net.add_v6()
    net.ip("b", "route add local 198.51.0.0/16 dev lo", "route add local 2001:db8:9::/48 dev lo")
    t.run(["ip", "route", "add", "default", "via", "10.77.1.2"])
    t.run(["ip", "-6", "route", "add", "default", "via", "fd77:1::2"])
    server = net.b.spawn([sys.executable, "-c", SERVER], "server")
    wait_until(lambda: "listens" in server.log(), "the far host listens")
    if not os.path.exists(f"{CGROUPS}/cgroup.procs"):
        t.run([need("mount"), "-t", "cgroup2", "none", CGROUPS])
    t.later(lambda: t.run([need("nft"), "flush", "ruleset"]))
    t.later(lambda: routes_gone(t))
    return net


def routes_gone(t):
    for family in ("-4", "-6"):
        t.run(["sh", "-c", f"ip {family} rule del fwmark 0x5e; ip {family} route flush table 124"], status=None)


def remove(at):
    """A process that has ended leaves its cgroup a little later."""
    def gone():
        try:
            os.rmdir(at)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True
    wait_until(gone, f"{at} is removed")


def cgroup(t, path):
    at = CGROUPS
    for part in path.split("/"):
        at += "/" + part
        if not os.path.isdir(at):
            os.mkdir(at)
            t.later(lambda at=at: remove(at))
    return at


def program(t, *args, user=None, inside=None, argv=None):
    argv = argv or [sys.executable, "-c", CLIENT, *map(str, args)]
    if user is not None:
        argv = [need("setpriv"), f"--reuid={user}", f"--regid={user}", "--clear-groups", *argv]
    if inside is not None:
        argv = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', inside, *argv]
    return t.run(argv).decode().strip()


class Ingress:
    """Sends each connection its destination."""

    def __init__(self, t, at, tproxy=False):
        v6 = ":" in at
        self.s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET)
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if tproxy:
            self.s.setsockopt(*((socket.IPPROTO_IPV6, IPV6_TRANSPARENT) if v6 else (socket.IPPROTO_IP, IP_TRANSPARENT)), 1)
        self.s.bind((at, 7000))
        self.s.listen()
        self.tproxy, self.v6, self.seen = tproxy, v6, 0
        t.later(self.close)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                c, _ = self.s.accept()
            except OSError:
                return
            self.seen += 1
            to = self.destination(c)
            c.sendall(b"smcrd all\n" if to in ("192.0.0.8 9", "100::8 9") else to.encode())
            c.shutdown(socket.SHUT_WR)
            try:
                c.recv(9)	# what came with the SYN
            except ConnectionError:
                pass
            c.close()

    def close(self):
        if self.s.fileno() >= 0:
            self.s.shutdown(socket.SHUT_RDWR)
            self.s.close()

    def destination(self, c):
        if self.tproxy:
            return "%s %d" % c.getsockname()[:2]
        raw = c.getsockopt(41 if self.v6 else 0, SO_ORIGINAL_DST, 28)
        at = raw[8:24] if self.v6 else raw[4:8]
        return "%s %d" % (socket.inet_ntop(self.s.family, at), int.from_bytes(raw[2:4], "big"))


def printed(t, *args, listen="127.0.0.1:7000", capture="redirect", nets=NETS, user=USER, to="original", name="all", status=0):
    """What smcrctl prints for such a service, or its errors."""
    data = {"name": name, "listen": listen, "to": to, "user": user, "settings": [{"name": "capture", "value": f'"{capture}"'}],
            "via": [{"net": n, "port_min": a, "port_max": b, "peer": "*:15000"} for n, a, b in nets]}
    answer = {"schema": 1, "command": "service", "time_ms": 1, "data": data, "error": None}
    path = t.path("control")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)	# raw: the daemon's
        s.listen()
        p = subprocess.Popen([SMCRCTL, "-s", path, "capture", name, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        s.settimeout(20 * PATIENCE)
        with s.accept()[0] as c:
            request = json.loads(c.recv(4096))
            equal((request["command"], request["service"]), ("service", name), "request")
            c.sendall(json.dumps(answer).encode() + b"\n")
        out, err = p.communicate()
    os.unlink(path)
    equal(p.returncode, status, f"exit status, {err}")
    return out if status == 0 else err


def load(t, *args, **kw):
    text = printed(t, *args, **kw).encode()
    t.run([need("nft"), "-c", "-f", "-"], input=text)
    # Twice: the second time replaces the first.
    for _ in range(2):
        t.run([need("nft"), "-f", "-"], input=text)
    return text.decode()


def reaches(t, *args, to=WANTED, port=5432, how="connect", **kw):
    return equal(program(t, to, port, how, **kw), f"{to} {port} {to} {port}", how) is None


def direct(t, to, port, what, **kw):
    equal(program(t, to, port, "connect", **kw), f"direct {to} {port}", what)


@case("a cgroup: programs in it are captured, others and the daemon's user are not")
def _(t):
    host(t)
    inside, outside = cgroup(t, f"{MINE}/a/b"), cgroup(t, f"{MINE}/c")
    ingress = Ingress(t, "127.0.0.1")
    text = load(t, "--cgroup", f"/{MINE}/a/")
    equal(text.split("chain out {")[1].split("\n")[2].strip(), f"meta skuid {USER} return", "the first rule")
    for how in ("connect", "bind", "nonblocking", "fastopen"):
        check(reaches(t, how=how, inside=inside), f"{how} is captured")
    check(reaches(t, to="198.51.100.1", port=5500, inside=inside), "a network within another one")
    check(reaches(t, to="198.51.7.7", port=22, inside=inside), "a port of the network around")
    equal(program(t, "192.0.0.8", 9, "connect", inside=inside), "smcrd all\n 192.0.0.8 9", "the probe's destination")
    before = ingress.seen
    direct(t, "198.51.7.7", 23, "another port", inside=inside)
    direct(t, WANTED, 5432, "another cgroup", inside=outside)
    direct(t, WANTED, 5432, "the daemon's user", user=USER, inside=inside)
    equal(ingress.seen, before, "connections at the ingress")
    # A socket belongs to the cgroup where it was made; a cgroup that was made anew is another one.
    remove(inside)
    remove(os.path.dirname(inside))
    inside = cgroup(t, f"{MINE}/a/b")
    direct(t, WANTED, 5432, "the cgroup made anew", inside=inside)
    text = load(t, "--cgroup", f"{MINE}/a")
    check(reaches(t, inside=inside), "after loading again")
    # Levels are counted from the cgroup namespace in which the rules are loaded.
    program(t, inside=inside, argv=["sh", "-c", 'echo "$0" | unshare --cgroup nft -f -', text])
    direct(t, WANTED, 5432, "rules that another cgroup namespace has loaded", inside=inside)


@case("a static program is captured, and MPTCP")
def _(t):
    host(t)
    inside = cgroup(t, f"{MINE}/a")
    Ingress(t, "127.0.0.1")
    load(t, "--cgroup", f"{MINE}/a")
    source = t.path("static.c")
    with open(source, "w") as f:
        f.write('#include <arpa/inet.h>\n#include <stdio.h>\n#include <unistd.h>\nint main(void) { char buf[99];\n'
                'struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(5432) };\n'
                f'inet_pton(AF_INET, "{WANTED}", &to.sin_addr);\nint s = socket(AF_INET, SOCK_STREAM, 0);\n'
                'if (connect(s, (struct sockaddr *)&to, sizeof(to)) != 0) return 1;\n'
                'ssize_t n = read(s, buf, sizeof(buf)); printf("%.*s", (int)n, buf); return 0; }\n')
    t.run([need("gcc"), "-static", "-o", t.path("static"), source])
    equal(program(t, inside=inside, argv=[t.path("static")]), f"{WANTED} 5432", "a static program")
    # Of MPTCP the first connection goes to the ingress, which answers as plain TCP.
    if os.path.exists("/proc/sys/net/mptcp/enabled"):
        check(reaches(t, how="mptcp", inside=inside), "MPTCP")


@case("a user, IPv4 and IPv6")
def _(t):
    host(t)
    Ingress(t, "127.0.0.1")
    load(t, "--uid", str(OTHER))
    check(reaches(t, user=OTHER), "the user is captured")
    direct(t, WANTED, 5432, "root is not")
    Ingress(t, "::1")
    load(t, "--uid", "nobody", listen="[::1]:7000", nets=NETS6)
    check(reaches(t, to=WANTED6, user=OTHER), "IPv6 is captured")
    direct(t, WANTED6, 5432, "root is not")


@case("--strict: what is not captured is refused, also when the other table is gone")
def _(t):
    host(t)
    inside = cgroup(t, f"{MINE}/a")
    Ingress(t, "127.0.0.1")
    load(t, "--cgroup", f"{MINE}/a", "--strict")
    check(reaches(t, inside=inside), "captured")
    equal(program(t, WANTED, 5432, "connect"), "no ConnectionRefusedError", "another program")
    direct(t, WANTED, 5432, "the daemon itself", user=USER)
    t.run([need("nft"), "delete", "table", "inet", "smcrd_all"])
    equal(program(t, WANTED, 5432, "connect", inside=inside), "no ConnectionRefusedError", "without the redirect")
    t.run([need("nft"), "flush", "ruleset"])
    load(t, "--uid", str(OTHER), "--strict")
    check(reaches(t, user=OTHER), "captured")
    t.run([need("nft"), "delete", "table", "inet", "smcrd_all"])
    equal(program(t, WANTED, 5432, "connect", user=OTHER), "no ConnectionRefusedError", "the user without the redirect")
    direct(t, WANTED, 5432, "other users are not concerned")


@case("tproxy of programs of this host, IPv4 and IPv6")
def _(t):
    host(t)
    for listen, at, nets, to in (("0.0.0.0:7000", "0.0.0.0", NETS, WANTED), ("[::]:7000", "::", NETS6, WANTED6)):
        ingress = Ingress(t, at, tproxy=True)
        text = load(t, "--uid", str(OTHER), "--strict", listen=listen, capture="tproxy", nets=nets)
        for line in text.split("\n"):
            if " ip " in line and line.startswith("#"):
                t.run(["sh", "-c", "ip " + line.split(" ip ")[1]])
        check(reaches(t, to=to, user=OTHER), f"{to} is captured")
        direct(t, to, 5432, "root is not")
        ingress.close()
        t.run([need("nft"), "flush", "ruleset"])
        routes_gone(t)


@case("an interface: connections of hosts behind it, by tproxy and by redirect; --strict")
def _(t):
    net = Net(t, pairs=1)
    t.run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
    t.later(lambda: t.run([need("nft"), "flush", "ruleset"]))
    net.ip("b", "route add default via 10.77.1.1")
    # Forwarded, it would not come back.
    net.ip("a", "route add 198.51.0.0/16 via 10.77.1.2")
    ingress = Ingress(t, "0.0.0.0", tproxy=True)
    load(t, "--interface", "a1", "--strict", listen="0.0.0.0:7000", capture="tproxy")
    net.ip("a", "rule add fwmark 0x5e lookup 124", "route add local default dev lo table 124")
    t.later(lambda: routes_gone(t))
    equal(program(net.b, WANTED, 5432, "connect"), f"{WANTED} 5432 {WANTED} 5432", "tproxy")
    t.run([need("nft"), "delete", "table", "inet", "smcrd_all"])
    equal(program(net.b, WANTED, 5432, "connect"), "no ConnectionRefusedError", "without tproxy")
    ingress.tproxy = False
    load(t, "--interface", "a1", listen="10.77.1.1:7000")
    t.run([need("nft"), "delete", "table", "inet", "smcrd_all_strict"])
    equal(program(net.b, WANTED, 5432, "connect"), f"{WANTED} 5432 {WANTED} 5432", "redirect")


def run(t, *args, status=0, path=None):
    """smcrd-run: what it prints, or the last line of its errors."""
    env = {**os.environ, "SMCRD_CAPTURED": os.path.join(TOP_BUILD, "local", "smcrd-captured")}
    if path is not None:
        env["PATH"] = f"{path}:{env['PATH']}"
    out = t.run([RUN, *args], env=env, status=status, stderr=subprocess.STDOUT).decode().strip()
    return out.split("\n")[-1]


def readable(t):
    """smcrd-run where other users, too, can read it: the words that run it."""
    there = tempfile.mkdtemp()
    t.later(lambda: shutil.rmtree(there))
    os.chmod(there, 0o755)
    for name in ("smcrd-run", "smcrd-captured"):
        shutil.copy(os.path.join(TOP_BUILD, "local", name), there)
    return ["env", f"SMCRD_CAPTURED={there}/smcrd-captured", f"{there}/smcrd-run"]


@case("smcrd-run proves that the program is captured before it executes it")
def _(t):
    net = host(t)
    net.ip("b", "route add local 192.0.0.8/32 dev lo", "route add local 100::8/128 dev lo")	# where it is refused
    mine = f"{MINE}/run"
    cgroup(t, mine)
    ingress = Ingress(t, "127.0.0.1")
    client = [sys.executable, "-c", CLIENT, WANTED, "5432", "connect"]
    touch = t.path("executed")
    for args in (["--cgroup", mine], ["--uid"]):
        equal(run(t, "--service", "all", *args, "touch", touch, status=1), "smcrd-run: not captured: load the rules (smcrctl capture all)",
              "without rules")
    check(not os.path.exists(touch), "nothing was executed")
    load(t, "--cgroup", mine)
    equal(run(t, "--cgroup", mine, *client), f"{WANTED} 5432 {WANTED} 5432", "in the control group")
    equal(run(t, "--cgroup", mine, "--service", "all", "--", *client), f"{WANTED} 5432 {WANTED} 5432", "of the service")
    equal(run(t, "--cgroup", mine, "--service", "other", *client, status=1), "smcrd-run: captured by all, not by other", "another service")
    equal(run(t, "--uid", *client, status=1), "smcrd-run: not captured: load the rules (smcrctl capture SERVICE)", "by user")
    equal(run(t, "--cgroup", mine, "sh", "-c", "exit 7", status=7), "", "the program's exit status")
    # The trap that the proof is for.
    remove(f"{CGROUPS}/{mine}")
    cgroup(t, mine)
    check("not captured" in run(t, "--cgroup", mine, *client, status=1), "a control group that was created again")
    t.run([need("nft"), "flush", "ruleset"])
    load(t, "--uid", "nobody")
    others = readable(t)
    out = program(t, user=OTHER, argv=[*others, "--uid", need("bash"), "-c", f"cat < /dev/tcp/{WANTED}/5432"])
    equal(out, f"{WANTED} 5432", "by user")
    ingress.close()
    Ingress(t, "::1")
    load(t, "--uid", "nobody", listen="[::1]:7000", nets=NETS6)
    out = program(t, user=OTHER, argv=[*others, "--uid", "echo", "v6"])
    equal(out, "v6", "by IPv6 alone")


@case("a daemon's own rules, and its answer to smcrd-run")
def _(t):
    host(t)
    mine = f"{MINE}/run"
    cgroup(t, mine)
    d = Daemon(t, "a", {"ingress": [{"name": "all", "listen": "[::]:7000", "to": "original",
                                     "via": [{"nets": [WANTED + ":5432", "[2001:db8:9::/48]:443-444"], "peer": "*:15000"}]}]})
    equal(d.ctl("service", "all")["via"], [
        {"net": WANTED + "/32", "port_min": 5432, "port_max": 5432, "peer": "*:15000"},
        {"net": "2001:db8:9::/48", "port_min": 443, "port_max": 444, "peer": "*:15000"}], "via")
    # As a user of its own; the tests' daemon is root, whose programs would be left out.
    text = t.run([SMCRCTL, "-s", d.control, "capture", "all", "--cgroup", mine]).decode()
    check(f"meta skuid {os.geteuid()} return" in text, "the daemon's user")
    t.run([need("nft"), "-f", "-"], input=text.replace(f"meta skuid {os.geteuid()} return", f"meta skuid {USER} return").encode())
    equal(run(t, "--cgroup", mine, "--service", "all", "echo", "well"), "well", "the daemon answers")
    for at in ("192.0.0.8", "100::8"):
        equal(program(t, at, 9, "connect", inside=f"{CGROUPS}/{mine}"), f"smcrd all\n {at} 9", "the answer")
    s = d.services()[0]
    equal((s["accepted"], s["refused_allow"], s["not_captured"], s["no_via"]), (3, 0, 0, 0), "counted as accepted alone")
    check(not d.connections(), "no connection")


@case("smcrd-run with systemd, which a script stands for")
def _(t):
    host(t)
    cgroup(t, f"{MINE}/slice")
    Ingress(t, "127.0.0.1")
    load(t, "--cgroup", f"{MINE}/slice")
    client = [sys.executable, "-c", CLIENT, WANTED, "5432", "connect"]
    t.run([need("mount"), "-t", "tmpfs", "none", "/run"])
    t.later(lambda: t.run([need("umount"), "/run"]))
    check("systemd does not run: use --uid or --cgroup" in run(t, *client, status=1), "without systemd")
    os.makedirs("/run/systemd/system")
    with open(t.path("systemd-run"), "w") as f:
        f.write(f"""#!/bin/sh
[ "$1 $2 $3 $4 $5" = "--scope --quiet --collect --slice=smcrd-programs.slice --" ] || exit 9
shift 5
echo $$ > {CGROUPS}/{MINE}/slice/cgroup.procs && exec "$@"
""")
    os.chmod(t.path("systemd-run"), 0o755)
    equal(run(t, *client, path=os.path.dirname(t.path("systemd-run"))), f"{WANTED} 5432 {WANTED} 5432", "in the slice")


@case("smcrd-run with a manager of systemd, and the unit that keeps its slice")
def _(t):
    host(t)
    manager = "/lib/systemd/systemd"
    need("systemd-run")
    if not os.path.exists(manager):
        raise Skip("no systemd")
    Ingress(t, "127.0.0.1")
    t.run([need("mount"), "-t", "tmpfs", "none", "/run"])
    t.later(lambda: t.run([need("umount"), "-l", "/run"]))
    os.makedirs("/run/systemd/system")
    os.makedirs("/run/own/.config/systemd/user")
    for unit in ("smcrd-programs.slice", "smcrd-programs.service"):
        shutil.copy(os.path.join(TOP_SRC, "systemd", unit), "/run/own/.config/systemd/user")
    login = cgroup(t, f"{MINE}/sd/login")
    slices = f"{CGROUPS}/{MINE}/sd/smcrd.slice/smcrd-programs.slice"
    t.run(["chown", "-R", str(OTHER), "/run/own", f"{CGROUPS}/{MINE}/sd"])
    env = ["env", "-i", f"PATH={os.environ['PATH']}", "HOME=/run/own", "XDG_RUNTIME_DIR=/run/own"]
    drop = [need("setpriv"), f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]
    enter_group = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"']
    t.later(lambda: [remove(os.path.join(CGROUPS, MINE, "sd", d)) for d in ("smcrd.slice/smcrd-programs.slice", "smcrd.slice", "app.slice", "init.scope")])
    p = t.spawn([*enter_group, os.path.dirname(login), *drop, *env, manager, "--user", "--unit=basic.target"], "systemd")
    t.later(lambda: p.alive() and p.stop())
    wait_until(lambda: os.path.exists("/run/own/systemd/private"), f"the manager runs\n{p.log()}")

    def user(*argv, status=0):
        return t.run([*enter_group, login, *drop, *env, *argv], status=status, stderr=subprocess.STDOUT).decode().strip().split("\n")[-1]
    run_it = [*readable(t), "--service", "all", "echo", "well"]
    check(not os.path.exists(slices), "no slice yet")
    user("systemctl", "--user", "start", "smcrd-programs.service")
    check(os.path.isdir(slices), "the unit has the slice, below smcrd.slice")
    check("not captured" in user(*run_it, status=1), "without rules")
    load(t, "--cgroup", slices[len(CGROUPS):])
    for _ in range(2):
        equal(user(*run_it), "well", "captured in the slice")
        wait_until(lambda: not any(e.name.startswith("run-") for e in os.scandir(slices)), "the scope goes, the slice stays")
    user("systemctl", "--user", "stop", "smcrd-programs.service", "smcrd-programs.slice")
    wait_until(lambda: not os.path.exists(slices), "the slice goes")
    check("not captured" in user(*run_it, status=1), "a slice that was made again")


@case("what smcrd-run refuses")
def _(t):
    for args, status, words in ((["--uid", "nosuchprogram"], 127, "nosuchprogram: not found"), ([], 2, "usage"), (["--bogus", "true"], 2, "usage"),
                                (["--service"], 2, "usage"), (["--uid"], 2, "usage")):
        out = t.run([RUN, *args], status=status, stderr=subprocess.STDOUT).decode()
        check(words in out, f"{args}: {out}")


@case("what is refused, in words")
def _(t):
    for args, kw, words in (
            ([], {"to": "192.0.2.2:1"}, "need no rules"), (["--uid", "nosuchuser"], {}, "no such user: nosuchuser"),
            (["--uid", str(USER)], {}, "smcrd itself runs as this user"), (["--cgroup", 'a"b'], {}, "--cgroup takes a path"),
            (["--cgroup", "/"], {}, "--cgroup takes a path"), (["--interface", "e" * 16], {}, "name of an interface"),
            (["--interface", "eth1"], {}, "cannot be redirected to a loopback address"),
            ([], {"nets": NETS6}, "of the other family than this destination: 2001:db8:9::/48"),
            ([], {"nets": [("x", 1, 2)]}, "cannot understand this destination"), ([], {"listen": "unix:/s"}, "no rules lead to")):
        check(words in printed(t, *args, status=1, **kw), words)
    for args in (["--strict", "status"], ["capture"], ["capture", "all", "--uid", "1", "--cgroup", "a"], ["--json", "capture", "all"]):
        t.run([SMCRCTL, *args], status=2)
    check("table inet smcrd_a-b.c_20d_22 {" in printed(t, name='a-b.c d"'), "a name that is none of nft")


main()
