#!/usr/bin/env python3
"""
What the systemd unit runs: `smcrd --reload`, which takes over where a reload is not enough. Connections continue through all of it.
"""
import os
import shutil
import signal
import subprocess

from harness import PATIENCE, SMCRCTL, SMCRD, WORKERS, Pair, Server, case, check, echo, equal, main, wait_until, works
from manager import Manager


def echo_pair(t, **kw):
    return Pair(t, {"x": Server(t, echo).at}, **kw)


def reload(t, d, program=SMCRD, status=0, args=()):
    """Runs the program with --reload as ExecReload= does: what it said, and the process that serves then."""
    path = t.path(f"reload.{t.count()}")
    with open(path, "wb") as log:		# a new daemon keeps it open
        r = subprocess.run([program, "-f", d.conf_path, "--reload", *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                           env=dict(os.environ, **(d.env or {})), timeout=60 * PATIENCE, check=False)
    with open(path, encoding="utf-8") as log:
        said = log.read()
    equal(r.returncode, status, f"exit status; {said}")
    pid = d.status()["pid"]
    if pid != d.pid:
        t.later(lambda: kill(pid))
    return said, pid


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@case("smcrd --reload takes over for what a reload cannot do: fixed settings, a lost privilege, another program", timeout=60)
def _(t):
    pair = echo_pair(t)
    d, pids = pair.a, [pair.a.pid]
    d.expect_dead = True
    running = pair.connect()

    def reloads(taken, status=0, **kw):
        said, pid = reload(t, d, status=status, **kw)
        check((pid != pids[-1]) == taken, f"{pid} after {pids}: {said}")
        pids.append(pid)
        works(running, len(pids))
        with pair.connect() as s:
            works(s)
        return said
    reloads(False)
    fixed = dict(d.conf, workers=(WORKERS or 1) + 1)
    d.write_conf(fixed)
    check('workers cannot be changed by a reload: "systemctl reload smcrd" or "smcrd --reload" does it' in d.ctl_text("reload"),
          "the command")
    equal(d.status()["waiting_settings"], 1, "settings that wait")
    check("1 setting of the file for a take-over" in d.ctl_text("status"), "in words")
    reloads(True)
    equal((d.status()["waiting_settings"], len(d.status()["workers"])), (0, fixed["workers"]), "workers")
    reloads(False)
    elsewhere = t.path("elsewhere/x")		# where a confined process may not make a file
    os.mkdir(os.path.dirname(elsewhere))
    d.write_conf(dict(fixed, ingress=[*fixed["ingress"], dict(fixed["ingress"][0], name="u", listen=f"unix:{elsewhere}")]))
    if d.status()["confinement"]["files"]["on"]:
        check("reload refused" in reloads(True), "the reason")
    copy = t.path("smcrd-of-another-version")
    shutil.copy(SMCRD, copy)
    reloads(True, program=copy)
    reloads(False, program=copy)
    equal(os.readlink(f"/proc/{pids[-1]}/exe"), copy, "the program that runs")
    d.write_conf(dict(fixed, workers=1, ingress=[dict(fixed["ingress"][0], listen="192.0.2.77:1")]))
    check("Cannot assign requested address" in reloads(False, program=copy, status=1), "why the new one failed")
    running.close()
    wait_until(lambda: not any(os.path.exists(f"/proc/{p}") for p in set(pids) - {pids[-1], d.pid}), "the old ones end")
    equal(d.wait(), 0, "the first one")


# -- with a keeper, in a process that stands for systemd --

def reached(pid):
    """The daemon's keeper, which systemd sees."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return int(f.read().rpartition(")")[2].split()[1])


@case("smcrd --unit: the keeper is the main process, a take-over makes the new one it; a start that fails leaves the old one", timeout=90)
def _(t):
    pair, manager = echo_pair(t, start=False), Manager(t)
    d = pair.a
    d.env = dict(manager.env, WATCHDOG_USEC="4000000", WATCHDOG_PID="1")
    pair.b.start()
    d.start(args=("--unit",))
    first = d.status()["pid"]
    t.later(lambda: kill(first))
    running = pair.connect()
    works(running)
    check(first != d.pid and reached(first) == d.pid, "the daemon is its keeper's child")
    wait_until(lambda: manager.has_said("READY", 1) and manager.has_said("WATCHDOG", 1), "READY and the watchdog")
    copy = t.path("smcrd-of-another-version")
    shutil.copy(SMCRD, copy)
    env, d.env = d.env, manager.env
    _, second = reload(t, d, copy, args=("--unit",))
    check(second != first, "it took over")
    wait_until(lambda: manager.has_said("MAINPID", reached(second)), "MAINPID")
    check(reached(second) != d.pid and reached(second) != second, "another keeper")
    works(running, 2)
    manager.said.clear()
    wait_until(lambda: manager.has_said("WATCHDOG", 1), "the watchdog, of which only the old one knew", 30)
    d.expect_dead = True
    check(t.exit_status([SMCRCTL, "--socket", d.control, "doctor", "--problems"]) != 2, "no problem")
    # As after a restart of which the start fails: the configuration is wrong, and the daemon goes on with another keeper.
    good = d.conf
    d.write_conf(dict(good, ingress=[dict(good["ingress"][0], listen="192.0.2.77:1")]))
    manager.said.clear()
    again = d.successor(conf=d.conf, args=("--unit",), env=env, ready=False)
    d.control = os.path.join(d.dir, "control")
    wait_until(lambda: manager.has_said("READY", 1), "the unit is up")
    check(again.alive() and d.status()["pid"] == second, "the daemon is that of before")
    check("failed at its start, exit status 1: this process goes on" in d.status()["reload_error"], d.status()["reload_error"])
    # The caller of the restart saw none of it: what smcrd(8) has for that.
    for _ in range(2):
        equal(t.exit_status([SMCRCTL, "--socket", d.control, "doctor", "--problems"]), 2, "doctor")
        reload(t, d, copy, status=1, args=("--unit",))	# as the unit's reload command, which its caller sees fail
    with pair.connect() as s:
        works(s)
    works(running, 3)
    running.close()
    equal(d.wait(), 0, "the first keeper ends like its daemon")
    again.send_signal(signal.SIGTERM)
    again.expect_dead = True
    equal(again.wait(), 0, "a stop")
    wait_until(lambda: not os.path.exists(f"/proc/{second}"), "ends the daemon")	# its own keeper reaps it


main()
