#!/usr/bin/env python3
# needs: system
# takes: 110 s
# load: 80
"""
The package on a Debian that has booted: systemd is the first process, apt installs what tests/package/build made. The cases are
one story, from the installation to the purge, and each finds what the one before it left.
"""
import glob
import json
import os
import signal
import subprocess
import time

from harness import (PATIENCE, TOP_BUILD, Failure, Server, case, check, connect_to, equal, echo, main, pattern, recv_exact,
                     wait_until)

CONF = "/etc/smcrd/smcrd.conf"
DROP_IN = "/run/systemd/system/smcrd.service.d/lab.conf"
INGRESS, EGRESS, SERVER, ADDED = 8000, 8001, 8080, 8002
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


def restart_in_use(t):
    """Restarts the daemon while it serves a connection, for which it waits; the next process serves connects made meanwhile."""
    (before,) = show("MainPID")
    with connect() as running:
        talk(running)
        systemctl(t, "restart", "--no-block", "smcrd")
        wait_until(lambda: show("StatusText")[0].startswith("Draining"), "it serves no new connection", 30)
        late = connect()
        talk(running)
    with late:
        talk(late)

    def another():
        pid, state = show("MainPID", "ActiveState")
        return state == "active" and pid not in (0, before)
    wait_until(another, "another process runs", 60)


def apt(t, *args):
    t.run(["apt-get", "-q", "-y", *args], timeout=60, env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"))


def package():
    return glob.glob(os.path.join(TOP_BUILD, "tests/package/deb/smcrd_*.deb"))[0]


@case("apt install: a user, and an enabled unit that waits for a configuration")
def _(t):
    apt(t, "install", package())
    t.run(["getent", "passwd", "smcrd"])
    equal(show("UnitFileState", "ActiveState", "ConditionResult"), ["enabled", "inactive", "no"], "the unit")
    check(not os.path.exists(CONF), "no configuration is installed")


@case("start: complete when the ports are open; status, limits, the sandbox, and traffic in it")
def _(t):
    server(t)
    write(CONF, SERVICES % "")
    systemctl(t, "start", "smcrd")
    with connect() as s:
        talk(s, 1000000)
        pid, state = show("MainPID", "ActiveState")
        equal(state, "active", "the state")
        wait_until(lambda: show("StatusText") == ["2 connections, 2 link groups"], "the status has both ends of it", 20)
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        for name, value in (("NoNewPrivs", "1"), ("Seccomp", "2"), ("CapEff", "0" * 16), ("CapBnd", f"{1 << 10:016x}")):
            equal(status[name], value, name)
        with open(f"/proc/{pid}/limits") as f:
            limits = f.read()
        for line in (r"Max open files 262144", "Max locked memory unlimited", "Max core file size 0"):
            check(line in " ".join(limits.split()), f"{line}, of {limits}")


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


@case("a hung daemon is ended by the watchdog, a crashed one restarted, one with a bad configuration stays down")
def _(t):
    write(DROP_IN, "[Service]\nWatchdogSec=5\nTimeoutAbortSec=1\nRestartSec=1\n")
    systemctl(t, "daemon-reload")
    systemctl(t, "restart", "smcrd")
    (before,) = show("MainPID")
    for signo, times in ((signal.SIGSTOP, 1), (signal.SIGKILL, 2)):
        os.kill(before, signo)

        def again():
            pid, state, restarts = show("MainPID", "ActiveState", "NRestarts")
            return state == "active" and restarts == times and pid not in (0, before)
        wait_until(again, f"a new daemon after {signo.name}", 60)
        (before,) = show("MainPID")
    out = t.run(["journalctl", "-u", "smcrd", "--no-pager", "-o", "cat"]).decode()
    check("Watchdog timeout" in out, "the watchdog is what ended it")
    write(CONF, "ingress = nonsense")
    systemctl(t, "restart", "smcrd", status=1)
    equal(show("ActiveState", "NRestarts", "ExecMainStatus"), ["failed", 0, 78], "with a wrong configuration")
    write(CONF, SERVICES % "")
    os.unlink(DROP_IN)
    systemctl(t, "daemon-reload")
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


@case("a socket unit: connects wait during a restart")
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
    for _ in range(2):
        restart_in_use(t)
    systemctl(t, "stop", "smcrd.socket", "smcrd")
    os.unlink("/run/systemd/system/smcrd.socket")
    systemctl(t, "daemon-reload")
    systemctl(t, "start", "smcrd")


@case("a restart without a socket unit: systemd keeps the sockets, and connects wait")
def _(t):
    server(t)
    for _ in range(2):
        restart_in_use(t)
        check(show("NFileDescriptorStore")[0] > 0, "what systemd keeps")
    kept = show("NFileDescriptorStore")[0]
    t.run(["smcrctl", "disable", "web"])
    check(refused(), "a disabled service")
    wait_until(lambda: show("NFileDescriptorStore")[0] < kept, "what is shut is not kept", 30)
    t.run(["smcrctl", "enable", "web"])
    wait_until(lambda: show("NFileDescriptorStore")[0] == kept, "and is kept when it listens again", 30)
    t.run(["smcrctl", "disable", "web"])
    systemctl(t, "restart", "smcrd")
    with connect() as s:
        talk(s)


@case("an upgrade by the drop-in: reload starts the new process in the unit; connections continue, the watchdog follows the new one")
def _(t):
    server(t)
    drop_in = "/run/systemd/system/smcrd.service.d/upgrade.conf"
    with open("/usr/share/doc/smcrd/examples/upgrade.conf") as f:
        write(drop_in, f.read() + "WatchdogSec=5\n")
    systemctl(t, "daemon-reload")
    systemctl(t, "restart", "smcrd")
    with connect() as running:
        talk(running)
        pids = show("MainPID")
        for _ in range(2):
            systemctl(t, "reload", "smcrd")
            pids += show("MainPID")
            equal(show("ActiveState")[0], "active", "the unit")
            talk(running)
            with connect() as s:
                talk(s)
        check(len(set(pids)) == 3, f"three processes, one after the other: {pids}")
        write(CONF, "ingress = nonsense")
        systemctl(t, "reload", "smcrd", status=1)
        write(CONF, SERVICES % "")
        equal(show("MainPID", "ActiveState"), [pids[-1], "active"], "after one that failed")
        time.sleep(8)	# raw: longer than the watchdog's time
        talk(running)
    wait_until(lambda: not os.path.exists(f"/proc/{pids[0]}"), "the first one ends with its connection", 60)
    equal(show("MainPID", "ActiveState", "NRestarts"), [pids[-1], "active", 0], "the unit goes on with the last one")
    os.unlink(drop_in)
    systemctl(t, "daemon-reload")


@case("an upgrade of the package: connections end normally, the new daemon takes over")
def _(t):
    server(t)
    new = t.path("new")
    t.run(["dpkg-deb", "-R", package(), new])
    control = os.path.join(new, "DEBIAN/control")
    with open(control) as f:
        text = f.read()
    old_version = next(x for x in text.split("\n") if x.startswith("Version: "))
    write(control, text.replace(old_version, old_version + "+lab1"))
    t.run(["dpkg-deb", "-Znone", "--root-owner-group", "-b", new, t.path("new.deb")])
    (before,) = show("MainPID")
    s = connect()
    talk(s)
    end = time.monotonic() + 60
    upgrade = t.spawn(["apt-get", "-q", "-y", "install", t.path("new.deb")])
    while show("ActiveState")[0] == "active" and time.monotonic() < end:
        talk(s)
    talk(s, 500000)			# it drains
    s.close()
    equal(upgrade.wait(60), 0, f"apt: {upgrade.log()}")
    pid, state = show("MainPID", "ActiveState")
    check(pid not in (0, before) and state == "active", f"a new daemon: {before}, {pid}, {state}")
    check("+lab1" in t.run(["dpkg-query", "-W", "smcrd"]).decode(), "the new version is installed")
    with connect() as s:
        talk(s)


@case("remove stops the daemon and keeps the configuration; purge leaves nothing")
def _(t):
    (pid,) = show("MainPID")
    apt(t, "remove", "smcrd")
    check(not os.path.exists(f"/proc/{pid}"), "the daemon has ended")
    check(os.path.exists(CONF) and not os.path.exists("/usr/sbin/smcrd"), "the configuration is there, the program is not")
    apt(t, "purge", "smcrd")
    left = [p for p in ("/etc/smcrd", "/run/smcrd/control", "/etc/systemd/system/multi-user.target.wants/smcrd.service")
            if os.path.lexists(p)]
    equal(left, [], "what purge leaves")


main()
