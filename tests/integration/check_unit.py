#!/usr/bin/env python3
"""
What the systemd unit runs: `smcrd --reload`, which takes over where a reload is not enough. Connections continue through all of it.
"""
import os
import shutil
import signal
import subprocess

from harness import PATIENCE, SMCRD, WORKERS, Pair, Server, case, check, echo, equal, main, wait_until, works


def echo_pair(t, **kw):
    return Pair(t, {"x": Server(t, echo).at}, **kw)


def reload(t, d, program=SMCRD, status=0):
    """Runs the program with --reload as ExecReload= does: what it said, and the process that serves then."""
    path = t.path(f"reload.{t.count()}")
    with open(path, "wb") as log:		# a new daemon keeps it open
        r = subprocess.run([program, "-f", d.conf_path, "--reload"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                           timeout=60 * PATIENCE, check=False)
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


main()
