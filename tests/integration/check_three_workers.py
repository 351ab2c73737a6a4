#!/usr/bin/env python3
"""Other scripts of this folder once more, each daemon with three workers. Cases that need one (harness.py's one_worker) say so
and are skipped. Not among them: scripts whose hostile peer, capture or devices are about one link group."""
import os
import subprocess
import sys

SCRIPTS = ["check_redis", "check_halfclose", "check_urgent", "check_reset", "check_lifecycle", "check_limits", "check_proxy",
           "check_fallback", "check_hostile_control", "check_ctl", "check_unix"]


def main():
    """TAP: the cases of all scripts, numbered anew."""
    number = failed = 0
    env = dict(os.environ, SMCRD_WORKERS="3")
    for name in SCRIPTS:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
        with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, env=env, text=True) as script:
            planned = seen = 0
            for line in script.stdout:
                word, _, rest = line.partition(" - ")
                if line.startswith("1.."):
                    planned = int(line[3:])
                elif line.startswith(("ok ", "not ok ")):
                    number += 1
                    seen += 1
                    failed += line.startswith("not")
                    print(f"{word.rsplit(' ', 1)[0]} {number} - {name}: {rest}", end="", flush=True)
                else:
                    print(line, end="", flush=True)
        if seen != planned or planned == 0:
            number += 1
            failed += 1
            print(f"not ok {number} - {name} ended after {seen} of {planned} cases, status {script.returncode}")
    print(f"1..{number}")
    sys.exit(1 if failed else 0)


main()
