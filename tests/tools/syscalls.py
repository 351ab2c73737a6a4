#!/usr/bin/env python3
"""
What system calls the daemon makes once it has confined itself, against the table in daemon/confine/confine_table.c.

Usage: syscalls.py [--build DIR] TEST...
       syscalls.py --build build tests/integration/check_lifecycle.py tests/integration/check_redis.py

Runs the tests (slowly) with every smcrd under strace, in a mode in which nothing is refused, and prints the calls with
their numbers and the programs' groups: used and allowed, used and NOT allowed, allowed and not used by these tests; and
files that Landlock refused. Exit status 1 when something was used that is not allowed. Needs strace.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CALL = re.compile(r"^(?:\d+ +)?(?:<\.\.\. )?([a-z_0-9]+)(?:\(| resumed>)(.*)")
ROW = re.compile(r'^\t(?:\{ (?:\.names = )?| +)"([a-z_0-9 ]+)"')
ABSENT = {"clone3", "openat2"}
GROUP = re.compile(r"^\t/\* ([A-Z][^:;.,]*)")


def table():
    """Calls of the table: name -> first word of the comment of its group."""
    calls, group = {}, ""
    with open(os.path.join(TOP, "daemon/confine/confine_table.c"), encoding="ascii") as f:
        for line in f:
            if "SMCRD_SANITIZERS" in line:
                break
            group = GROUP.match(line).group(1) if GROUP.match(line) else group
            row = ROW.match(line)
            for name in row.group(1).split() if row else ():
                calls.setdefault(name, group)
    return calls


def read_trace(path, used, refused):
    """Adds up what stands behind the filter's installation."""
    confined = False
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            m = CALL.match(line)
            if not m:
                continue
            name, rest = m.groups()
            if not confined:
                confined = name == "seccomp" and "SECCOMP_SET_MODE_FILTER" in rest and "= 0" in rest
                continue
            if "resumed>" not in line:
                used[name] += 1
            if "EACCES" in rest and name.startswith(("open", "access", "unlink", "readlink")):
                refused[line.split(" ", 1)[1].strip()[:150]] += 1


def run(tests, build, where):
    env = dict(os.environ, top_builddir=os.path.abspath(build), top_srcdir=TOP, SMCRD_CONFINE_TEST="log",
               SMCRD_STRACE=where)
    env.setdefault("SMCRD_PATIENCE", "10")
    for test in tests:
        r = subprocess.run([os.path.join(TOP, test)], env=env, stdout=subprocess.PIPE, text=True, check=False)
        bad = [line for line in r.stdout.split("\n") if line.startswith("not ok")]
        print(f"{test}: {'; '.join(bad) if bad else 'ok'}", file=sys.stderr)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--build", default="build")
    p.add_argument("tests", nargs="+")
    args = p.parse_args()
    used, refused = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="smcrd-syscalls-") as where:
        os.chmod(where, 0o777)
        run(args.tests, args.build, where)
        traces = os.listdir(where)
        for name in traces:
            read_trace(os.path.join(where, name), used, refused)
    calls = table()
    calls.update((name, "(refused, so that another call is taken)") for name in ABSENT)
    print(f"{len(traces)} daemons")
    for name in sorted(used, key=lambda n: (calls.get(n, ""), -used[n])):
        print(f"{used[name]:>10}  {name:<24} {calls.get(name, 'NOT ALLOWED')}")
    print("\nallowed, and not used by these tests:\n  " + " ".join(sorted(set(calls) - set(used) - ABSENT)))
    if refused:
        print("\nfiles refused:")
        for line, n in refused.most_common():
            print(f"{n:>10}  {line}")
    missing = sorted(set(used) - set(calls))
    if missing:
        print("\nNOT ALLOWED: " + " ".join(missing))
    sys.exit(1 if missing or not used else 0)


main()
