#!/usr/bin/env python3
# kernel: user-mode-linux
# needs: system
# takes: 130 s
# load: 70
"""
The package on a Debian that has booted: systemd is the first process, apt installs what tests/package/build made. The cases are
one story, from the installation to the purge, and each finds what the one before it left.
"""
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import time

from harness import (PATIENCE, TOP_BUILD, Failure, Server, case, check, connect_to, equal, echo, main, pattern, recv_exact,
                     in_thread, wait_until)
from scrape import get

CONF = "/etc/smcrd/smcrd.conf"
DROP_IN = "/run/systemd/system/smcrd.service.d/lab.conf"
INGRESS, EGRESS, SERVER, ADDED = 8000, 8001, 8080, 8002
PAUSE_S = 0.3		# of clients beside a take-over: without it they take half of an emulated processor from it
SERVICES = """
drain_timeout = "60s";
ingress = (
  { name = "web"; listen = "127.0.0.1:8000"; to = "127.0.0.1:8001"; fallback = "refuse"; }%s
);
egress = ( { name = "server"; listen = "127.0.0.1:8001"; to = "127.0.0.1:8080"; } );
"""
MORE = """,
  { name = "more"; listen = "127.0.0.1:8002"; to = "127.0.0.1:8001"; }"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def systemctl(t, *args, status=0):
    try:
        return t.run(["systemctl", *args], status=status, timeout=30).decode()
    except Failure as e:
        said = t.run(["journalctl", "-u", "smcrd", "-n", "15", "-o", "short-monotonic", "--no-pager"]).decode()
        raise Failure(f"{e}\n{said}") from None


def show(*names):
    """Properties of the unit; numbers as such."""
    r = subprocess.run(["systemctl", "show", "smcrd", "-p", ",".join(names)], stdout=subprocess.PIPE, timeout=60 * PATIENCE)
    got = dict(line.split("=", 1) for line in r.stdout.decode().strip().split("\n"))
    return [int(got[n]) if got[n].isdigit() else got[n] for n in names]


def connect(port=INGRESS):
    return connect_to(("127.0.0.1", port), 60)


def talk(s, n=10000):
    data = pattern(n, n)
    s.sendall(data)
    check(recv_exact(s, n) == data, f"{n} bytes come back as they were sent")


def refused(port=INGRESS):
    try:
        connect(port).close()
        return False
    except ConnectionError:
        return True


def ends(s):
    """The end of a connection without a byte."""
    try:
        return s.recv(1) == b""
    except ConnectionError:
        return True


def server(t):
    return Server(t, echo, "127.0.0.1", SERVER)


def daemon(t):
    """The process that accepts; the unit's main process is its keeper."""
    return json.loads(t.run(["smcrctl", "--json", "status"]))["data"]["pid"]


def processes():
    with open("/sys/fs/cgroup/system.slice/smcrd.service/cgroup.procs", encoding="ascii") as f:
        return {int(x) for x in f}


class Load:
    """Clients of the ingress, whose connections continue whatever happens: one that connects again and again, one that sends all the
    time, and one that waits."""

    def __init__(self):
        self.longest, self.connects, self.ending = 0.0, 0, False
        self.idle = connect()
        talk(self.idle, 100)
        self.tasks = [in_thread(self._connect), in_thread(self._send)]

    def _connect(self):
        while not self.ending:
            start = time.monotonic()
            with connect() as s:
                talk(s, 100)
            self.longest = max(self.longest, time.monotonic() - start)
            self.connects += 1
            time.sleep(PAUSE_S)	# raw: leaves the processor to the others

    def _send(self):
        with connect() as s:
            while not self.ending:
                talk(s, 20000)
                time.sleep(PAUSE_S)	# raw: as above

    def end(self, t):
        self.ending = True
        for task in self.tasks:
            task.result()
        talk(self.idle, 100)
        self.idle.close()
        t.note(f"{self.connects} connects, the longest with its answer {1000 * self.longest:.0f} ms")
        check(self.longest < 5 * PATIENCE, "none has to wait")


def is_taken_over(t, load, act, failed=False):
    """act() replaces the daemon, without a loss for the load, and systemd knows it. failed: it could not."""
    pid, (main, stored) = daemon(t), show("MainPID", "NFileDescriptorStore")
    act()
    state = show("ActiveState", "NFileDescriptorStore", "NRestarts")
    equal(confined(), {}, "processes that the profile does not confine")
    equal(state, ["active", stored, 0], f"the unit; {show('StatusText')}")
    check((daemon(t) == pid) == failed, "another daemon, unless it fails")
    check(failed or show("MainPID")[0] != main, "another main process")
    check({daemon(t), *show("MainPID")} <= processes(), "both are in the unit")
    talk(load.idle, 100)
    before = load.connects
    wait_until(lambda: load.connects > before + 2, "more connects", 30)


def confined():
    """Of the unit's processes those that the profile does not confine, as each is confined."""
    found = {}
    for pid in processes():		# of which one may end meanwhile
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/attr/current", encoding="ascii") as f:
            found[pid] = f.read().strip()
    return {pid: word for pid, word in found.items() if word != "smcrd (enforce)"}


def denied(t):
    """What the profile has denied so far."""
    out = t.run(["journalctl", "--no-pager", "-o", "cat", "--grep", 'apparmor="DENIED"'], status=None, timeout=60).decode()
    return {line for line in out.split("\n") if "DENIED" in line and "smcrd" in line}


def apt(t, *args):
    t.run(["apt-get", "-q", "-y", *args], timeout=60, env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"))


def package():
    return glob.glob(os.path.join(TOP_BUILD, "tests/package/deb/smcrd_*.deb"))[0]


@case("apt install: a user, and an enabled unit that waits for a configuration")
def _(t):
    apt(t, "install", package())
    t.run(["getent", "passwd", "smcrd"])
    t.run(["getent", "group", "smcrd-admin"])
    equal(show("UnitFileState", "ActiveState", "ConditionResult"), ["enabled", "inactive", "no"], "the unit")
    check(not os.path.exists(CONF), "no configuration is installed")


@case("start: complete when the ports are open; status, limits, the sandbox, and traffic in it")
def _(t):
    server(t)
    write(CONF, SERVICES % "")
    systemctl(t, "start", "smcrd")
    with connect() as s:
        talk(s, 1000000)
        pid = daemon(t)
        equal(show("ActiveState"), ["active"], "the state")
        wait_until(lambda: show("StatusText") == ["2 connections, 2 link groups"], "the status has both ends of it", 20)
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        for name, value in (("NoNewPrivs", "1"), ("Seccomp", "2"), ("CapEff", "0" * 16), ("CapBnd", f"{1 << 10:016x}")):
            equal(status[name], value, name)
        with open(f"/proc/{pid}/limits") as f:
            limits = f.read()
        for line in (r"Max open files 262144", "Max locked memory unlimited", "Max core file size 0"):
            check(line in " ".join(limits.split()), f"{line}, of {limits}")


@case("the profile: it confines each process, and denies a file that everyone may read")
def _(t):
    server(t)
    wait_until(lambda: not confined(), f"the profile confines all: {confined()}", 20)
    secret = "/srv/secret.conf"
    write(secret, 'egress = ( { name = "secret"; listen = "127.0.0.1:8003"; to = "127.0.0.1:8080"; } );\n')
    write(CONF, SERVICES % "" + f'include = "{secret}";\n')
    before = denied(t)
    t.run(["runuser", "-u", "smcrd", "--", "smcrd", "-t"])		# by hand it is not confined
    pid = daemon(t)
    try:
        systemctl(t, "reload", "smcrd", status=1)
        equal(daemon(t), pid, "the daemon goes on")
        wait_until(lambda: denied(t) - before, "the kernel says so", 20)
        check(all(f'name="{secret}"' in line for line in denied(t) - before), f"that file alone: {denied(t) - before}")
    finally:
        write(CONF, SERVICES % "")
        os.unlink(secret)
        systemctl(t, "reload", "smcrd")


@case("the profile: an upgrade takes over from a daemon that is not in it")
def _(t):
    server(t)
    write(DROP_IN, "[Service]\nAppArmorProfile=\n")
    systemctl(t, "daemon-reload")
    systemctl(t, "restart", "smcrd")
    pid = daemon(t)
    wait_until(lambda: pid in confined() and len(confined()) == 2, "as from before the profile", 20)
    os.unlink(DROP_IN)
    systemctl(t, "daemon-reload")
    with connect() as s:
        talk(s)
        shutil.copy("/usr/sbin/smcrd", "/usr/sbin/smcrd.new")
        os.rename("/usr/sbin/smcrd.new", "/usr/sbin/smcrd")
        systemctl(t, "reload", "smcrd")
        check(daemon(t) != pid, "the new program has taken over")
        talk(s)
    wait_until(lambda: not confined(), "the profile confines all again", 60)


@case("an instance beside it: stopping it leaves the other one's directory, socket and connections, and the other way round")
def _(t):
    server(t)
    write("/etc/smcrd/two.conf", SERVICES.replace("8001", "8101").replace("8000", "8100") % "")
    t.run(["smcrd", "-i", "two", "-t"])
    systemctl(t, "start", "smcrd@two")
    with connect() as first, connect(8100) as second:
        talk(first)
        talk(second)
        check("8100" in t.run(["smcrctl", "-i", "two", "status"]).decode(), "the status of the instance")
        systemctl(t, "reload", "smcrd@two")
        second.close()
        systemctl(t, "stop", "smcrd@two")
        check(not os.path.exists("/run/smcrd-two") and os.path.exists("/run/smcrd/control"), "whose directory is gone")
        t.run(["smcrctl", "status"])
        talk(first)
    systemctl(t, "start", "smcrd@two")
    with connect(8100) as second:
        systemctl(t, "stop", "smcrd")
        check(not os.path.exists("/run/smcrd") and os.path.exists("/run/smcrd-two/control"), "whose directory is gone")
        talk(second)
    systemctl(t, "stop", "smcrd@two")
    systemctl(t, "start", "smcrd")


@case("the profile permits what a configuration may need: keys of TLS, UNIX sockets, names, probes, both kinds of metrics")
def _(t):
    os.makedirs("/run/lab", exist_ok=True)
    local = Server(t, echo, unix="/run/lab/server")
    with open("/etc/hosts", "a", encoding="ascii") as f:
        f.write("127.0.0.1 far.example\n")
    for name, text in (("a", "gw-b:" + "5a" * 32), ("b", "gw-a:" + "5a" * 32)):
        write(f"/etc/smcrd/tls/{name}.psk", text + "\n")
        t.run(["chown", "smcrd:smcrd", f"/etc/smcrd/tls/{name}.psk"])
        os.chmod(f"/etc/smcrd/tls/{name}.psk", 0o600)
    near, far = "/run/smcrd/near", "/run/smcrd-two/metrics"
    with open("/etc/smcrd/two.conf", encoding="ascii") as f:
        two = f.read()
    write(CONF, f"""
tls = {{ name = "gw-a"; psk = "/etc/smcrd/tls/a.psk"; }};
metrics = {{ listen = "127.0.0.1:8110"; }};
ingress = ( {{ name = "near"; listen = "unix:{near}"; to = "far.example:8111"; secure = "required"; peer_names = [ "psk:gw-b" ];
               probe = {{}}; }},
            {{ name = "nowhere"; listen = "127.0.0.1:8112"; to = "nowhere.example:8113"; }} );
""")
    write("/etc/smcrd/two.conf", f"""
tls = {{ name = "gw-b"; psk = "/etc/smcrd/tls/b.psk"; }};
metrics = {{ listen = "unix:{far}"; }};
egress = ( {{ name = "near"; listen = "127.0.0.1:8111"; to = "{local.host}"; secure = "required"; peer_names = [ "psk:gw-a" ]; }} );
""")
    before = denied(t)
    systemctl(t, "start", "smcrd@two")
    systemctl(t, "restart", "smcrd")
    with connect_to(near, 60) as s:
        talk(s)
        systemctl(t, "restart", "smcrd")
        talk(s)
    for at in (("127.0.0.1", 8110), far):
        equal(get(at, "/metrics")[0], 200, f"metrics at {at}")
    systemctl(t, "stop", "smcrd@two")
    write(CONF, SERVICES % "")
    write("/etc/smcrd/two.conf", two)
    systemctl(t, "restart", "smcrd")
    shutil.rmtree("/etc/smcrd/tls")
    equal(sorted(denied(t) - before), [], "what the profile has denied")


@case("reload adds a service and refuses a bad file; a connection continues through both")
def _(t):
    server(t)
    (before,) = show("MainPID")
    with connect() as s:
        talk(s)
        write(CONF, SERVICES % MORE)
        systemctl(t, "reload", "smcrd")

        wait_until(lambda: not refused(ADDED), "the new service listens", 30)
        for bad in ("ingress = nonsense", SERVICES % MORE.replace("8002", str(SERVER))):	# a port that is in use
            write(CONF, bad)
            systemctl(t, "reload", "smcrd", status=1)
            equal(show("MainPID", "ActiveState"), [before, "active"], "after a bad file the daemon")
            check("reload failed" in show("StatusText")[0], "the unit says so")
        talk(s)
        with connect(ADDED) as more:
            talk(more)
    write(CONF, SERVICES % "")


@case("the journal has the daemon's lines with their priorities")
def _(t):
    connect().close()			# no server: a warning
    lines = []

    def warned():
        out = t.run(["journalctl", "-u", "smcrd", "-o", "json", "--no-pager"], timeout=60)
        lines[:] = [json.loads(x) for x in out.decode().splitlines()]
        return any(x["PRIORITY"] == "4" and x["_COMM"] == "smcrd" for x in lines)
    wait_until(warned, "a line of priority 4", 60)
    ours = [x for x in lines if x.get("_COMM") == "smcrd"]
    check({x["_SYSTEMD_UNIT"] for x in ours} == {"smcrd.service"}, f"of the unit: {ours[:3]}")
    check(not any(x["MESSAGE"].startswith("<") for x in ours), "the priority is no part of the message")


@case("journal fields find an outage, and the catalog explains it")
def _(t):
    connect().close()			# no server
    found = []

    def told():
        out = t.run(["journalctl", "-u", "smcrd", "-o", "json", "--no-pager", "SMCRD_SERVICE=server",
                     "SMCRD_EVENT=server-unreachable"], timeout=60)
        found[:] = [json.loads(x) for x in out.decode().splitlines()]
        return found
    wait_until(told, "an entry of the egress", 60)
    entry = found[-1]
    for name, want in (("SMCRD_SERVER", f"127.0.0.1:{SERVER}"), ("PRIORITY", "4"),
                       ("MESSAGE_ID", "64b65102294d4b738a90d3ff6b2de798")):
        equal(entry.get(name), want, f"{name} of {entry}")
    text = t.run(["journalctl", "-x", "-u", "smcrd", "--no-pager", f"MESSAGE_ID={entry['MESSAGE_ID']}"], timeout=60).decode()
    for words in (f"the server 127.0.0.1:{SERVER} of service server cannot be reached", "Is the server running",
                  "smcrctl service server"):
        check(words in text, f"{words}: {text}")


@case("a hung daemon is ended by the watchdog, a crashed one restarted; a daemon without its keeper is taken over")
def _(t):
    server(t)
    write(DROP_IN, "[Service]\nWatchdogSec=5\nRestartSec=1\n")
    systemctl(t, "daemon-reload")
    systemctl(t, "restart", "smcrd")
    for signo, times in ((signal.SIGSTOP, 1), (signal.SIGKILL, 2)):
        before = daemon(t)
        os.kill(before, signo)

        def again():
            state, restarts = show("ActiveState", "NRestarts")
            return state == "active" and restarts == times
        wait_until(again, f"a new daemon after {signo.name}", 60)
        check(not os.path.exists(f"/proc/{before}"), "the one before is gone")
    out = t.run(["journalctl", "-u", "smcrd", "--no-pager", "-o", "cat"]).decode()
    check("Watchdog timeout" in out, "the watchdog is what ended it")
    with connect() as s:
        talk(s)
        os.kill(show("MainPID")[0], signal.SIGKILL)
        wait_until(lambda: show("ActiveState", "NRestarts") == ["active", 3], "a new keeper, and a new daemon", 60)
        talk(s)
    os.unlink(DROP_IN)
    systemctl(t, "daemon-reload")
    systemctl(t, "stop", "smcrd")
    write(CONF, "ingress = nonsense")
    systemctl(t, "start", "smcrd", status=1)
    equal(show("ActiveState", "NRestarts", "ExecMainStatus"), ["failed", 0, 78], "with a wrong configuration, and no other daemon")
    write(CONF, SERVICES % "")
    systemctl(t, "start", "smcrd")


@case("stop waits for connections, and serves no new ones; smcrctl drain refuses new connections at once")
def _(t):
    server(t)
    with connect() as s:
        talk(s)
        systemctl(t, "stop", "--no-block", "smcrd")
        wait_until(lambda: show("ActiveState")[0] == "deactivating", "it stops", 30)
        late = connect()	# waits: it might be a restart
        talk(s)
    wait_until(lambda: show("ActiveState", "Result") == ["inactive", "success"], "it has ended well", 60)
    check(ends(late), "a late client is reset at the end")
    check(refused(), "no listener")
    systemctl(t, "start", "smcrd")
    with connect() as s:
        talk(s)
        t.run(["smcrctl", "drain", "--then-exit"])
        wait_until(refused, "it accepts nothing more", 30)
        talk(s)
    wait_until(lambda: show("ActiveState", "Result") == ["inactive", "success"], "it has ended well", 60)


@case("boot order: it waits until the network is online")
def _(t):
    write("/run/systemd/system/slow-network.service",
          "[Unit]\nBefore=network-online.target\nDefaultDependencies=no\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
          "ExecStart=/bin/sh -c 'until [ -e /run/network-is-there ]; do sleep 0.2; done'\n")
    write("/run/systemd/system/network-online.target.d/lab.conf", "[Unit]\nRequires=slow-network.service\n")
    systemctl(t, "daemon-reload")
    systemctl(t, "stop", "network-online.target")
    systemctl(t, "start", "--no-block", "smcrd")
    wait_until(lambda: "activating" in t.run(["systemctl", "is-active", "slow-network"], status=None).decode(), "a slow network", 30)
    equal(show("ActiveState"), ["inactive"], "it waits")
    write("/run/network-is-there", "")
    wait_until(lambda: show("ActiveState")[0] == "active", "it runs when the network is there", 60)


@case("a socket unit: restarts are take-overs as well")
def _(t):
    server(t)
    with open("/usr/share/doc/smcrd/examples/smcrd.socket") as f:
        text = f.read()
    write("/run/systemd/system/smcrd.socket", text.replace("127.0.0.1:5432", f"127.0.0.1:{INGRESS}"))
    systemctl(t, "daemon-reload")
    systemctl(t, "stop", "smcrd")
    systemctl(t, "start", "smcrd.socket")
    with connect() as s:		# starts the daemon
        talk(s)
    load = Load()
    for _ in range(2):
        is_taken_over(t, load, lambda: systemctl(t, "restart", "smcrd"))
    load.end(t)
    systemctl(t, "stop", "smcrd.socket", "smcrd")
    os.unlink("/run/systemd/system/smcrd.socket")
    systemctl(t, "daemon-reload")
    systemctl(t, "start", "smcrd")


@case("systemctl restart is a take-over: connections of all generations continue, the watchdog follows the new one")
def _(t):
    server(t)
    write(DROP_IN, "[Service]\nWatchdogSec=5\n")
    systemctl(t, "daemon-reload")
    load = Load()
    for _ in range(3):
        is_taken_over(t, load, lambda: systemctl(t, "restart", "smcrd"))
    write(CONF, SERVICES.replace("ingress =", "workers = 2; ingress =") % "")
    is_taken_over(t, load, lambda: systemctl(t, "reload", "smcrd"))
    write(CONF, "ingress = nonsense")
    is_taken_over(t, load, lambda: systemctl(t, "restart", "smcrd"), failed=True)
    wait_until(lambda: "failed at its start, exit status 78: this process goes on" in show("StatusText")[0], "the unit says so", 30)
    pid = daemon(t)
    time.sleep(8)	# raw: longer than the watchdog's time
    equal(daemon(t), pid, "it feeds the watchdog")
    write(CONF, SERVICES % "")
    is_taken_over(t, load, lambda: systemctl(t, "restart", "smcrd"))
    load.end(t)
    wait_until(lambda: processes() == {daemon(t), *show("MainPID")}, "those before end with their connections", 60)
    os.unlink(DROP_IN)
    systemctl(t, "daemon-reload")


@case("what systemd stores: sockets of services that are enabled, for a start after a crash")
def _(t):
    server(t)
    kept = show("NFileDescriptorStore")[0]
    check(kept > 0, "what systemd keeps")
    t.run(["smcrctl", "disable", "web"])
    check(refused(), "a disabled service")
    wait_until(lambda: show("NFileDescriptorStore")[0] < kept, "what is shut is not kept", 30)
    systemctl(t, "restart", "smcrd")
    with connect() as s:
        talk(s)
    wait_until(lambda: show("NFileDescriptorStore")[0] == kept, "and is kept when it listens again", 30)


def other_package(t, version, program=None):
    """The package with another version number, and maybe another program."""
    new = t.path(f"package{version}")
    t.run(["dpkg-deb", "-R", package(), new])
    control = os.path.join(new, "DEBIAN/control")
    with open(control, encoding="utf-8") as f:
        text = f.read()
    old_version = next(x for x in text.split("\n") if x.startswith("Version: "))
    write(control, text.replace(old_version, old_version + version))
    if program:
        write(os.path.join(new, "usr/sbin/smcrd"), program)
    t.run(["dpkg-deb", "-Znone", "--root-owner-group", "-b", new, new + ".deb"])
    return new + ".deb"


class Links:
    """What the user smcrd leaves where it may write: links to a directory of root and to a file there. Root follows none."""

    def __init__(self, t, *directories):
        self.victim = "/srv/victim"
        write(f"{self.victim}/file", "root's\n")
        os.chmod(self.victim, 0o700)
        self.before = self._look()
        for directory in directories:
            for name, to in (("a-directory", self.victim), ("a-file", f"{self.victim}/file"), ("control.new", f"{self.victim}/file")):
                t.run(["runuser", "-u", "smcrd", "--", "ln", "-sfn", to, f"{directory}/{name}"])

    def _look(self):
        stats = [os.stat(p) for p in (self.victim, f"{self.victim}/file")]
        with open(f"{self.victim}/file", encoding="ascii") as f:
            return [(s.st_mode, s.st_uid, s.st_gid) for s in stats], os.listdir(self.victim), f.read()

    def check(self, when):
        equal(self._look(), self.before, f"root's files {when}")


@case("apt upgrades and downgrades by take-overs; of a version that does not start, the old one goes on; links lead root nowhere")
def _(t):
    server(t)
    load = Load()
    systemctl(t, "start", "smcrd@two")
    links = Links(t, "/run/smcrd", "/run/smcrd-two")
    with connect(8100) as second:
        talk(second)
        for version, program in (("+lab1", None), ("+lab2", "#!/bin/sh\nexit 1\n"), ("", None)):
            deb = other_package(t, version, program) if version else package()
            is_taken_over(t, load, lambda deb=deb: apt(t, "--allow-downgrades", "install", deb), failed=program is not None)
            check(version in t.run(["dpkg-query", "-W", "smcrd"]).decode(), "that version is installed")
            status = json.loads(t.run(["smcrctl", "-i", "two", "--json", "status"]))["data"]
            check(status["predecessors"], "the instance was taken over as well")
            talk(second)
            links.check("after an upgrade")
    systemctl(t, "stop", "smcrd@two")
    load.end(t)
    with connect() as s:
        talk(s)


@case("remove ends all processes, also one that hangs, and keeps the configuration; purge leaves nothing")
def _(t):
    server(t)
    write(CONF, SERVICES.replace("60s", "1s") % "")
    write(DROP_IN, "[Service]\nTimeoutStopSec=5\n")
    systemctl(t, "daemon-reload")
    systemctl(t, "reload", "smcrd")
    pids = processes()
    links = Links(t, "/run/smcrd")
    with connect() as s:
        talk(s)
        systemctl(t, "restart", "smcrd")
        talk(s)
        pids |= processes()
        os.kill(min(pids & processes()), signal.SIGSTOP)	# the daemon of before, which hangs
        apt(t, "remove", "smcrd")
    left = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
    equal(left, [], "processes that are left")
    check(os.path.exists(CONF) and not os.path.exists("/usr/sbin/smcrd"), "the configuration is there, the program is not")
    if os.path.exists("/etc/smcrd/two.conf"):	# of the instance: an administrator's file stays
        os.remove("/etc/smcrd/two.conf")
    links.check("when the package is removed")
    apt(t, "purge", "smcrd")
    links.check("when it is purged")
    left = [p for p in ("/etc/smcrd", "/run/smcrd/control", "/etc/apparmor.d/smcrd", "/etc/apparmor.d/local/smcrd", "/etc/systemd/system/multi-user.target.wants/smcrd.service")
            if os.path.lexists(p)]
    equal(left, [], "what purge leaves")
    lines = sorted(line for line in denied(t) if "/srv/secret.conf" not in line)
    check(not lines, "what the profile has denied: " + "\n".join(lines))


main()
