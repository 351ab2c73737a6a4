"""
What every end-to-end test shares: cases reported as TAP, processes that are always ended, daemons with generated
configurations in a directory of their own, waiting for conditions with deadlines.

A test file registers functions by @case and ends in main(). A case gets a Case object `t`; whatever it starts through
`t` is ended after the case, and only that, by its pid. Each script has a loopback address of its own (from its pid),
so scripts that run at the same time never meet on a port. With a sanitizer build every deadline is longer, and a
daemon's log is searched for reports whatever the case itself found.

A daemon that makes a system call which daemon/confine/confine_table.c does not allow dies of SIGSYS (status -31), and its log
has the call's number; tests/tools/syscalls.py says more.

SMCRD_LEGS=unix puts the application's legs on UNIX sockets, of pairs and servers that do not ask for something else.
SMCRD_TRANSPORT=sctp has links of pairs over SCTP (it wants SMCRD_WORKERS=1), with less of everything, as it is slower.
SMCRD_SECURE=required has TLS for all services that do not set `secure`, by certificates.

SMCRD_VALGRIND=1 runs daemons under valgrind, which speaks of errors and leaks alone: whatever it says is a failure.

SMCRD_KEEP=1 keeps the directory of a failed case; SMCRD_CASE=TEXT|TEXT runs only cases whose name contains one of them; SMCRD_WORKERS=N
gives every daemon so many workers, but in cases that are about one.
"""
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback

from basics import *
from daemons import *
from procs import *
from sockets import *

_cases = []


def case(name, timeout=60, **opts):
    """Registers a case; timeout in seconds before PATIENCE. one_worker: why its daemons have one, whatever SMCRD_WORKERS says."""
    def register(fn):
        _cases.append((name, fn, timeout, opts))
        return fn
    return register


class _Timeout(Exception):
    pass


def _alarm(_signo, _frame):
    raise _Timeout()


def _terminated(signo, _frame):
    raise KeyboardInterrupt(signo)


def _say(text):
    for line in str(text).rstrip("\n").split("\n"):
        print("#", line)


def _kernel_says(pid):
    """What the kernel has logged of a process that it ended: where it was."""
    try:
        out = subprocess.run(["dmesg"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace", timeout=10 * PATIENCE)
    except (OSError, subprocess.SubprocessError) as e:
        return f"-- dmesg: {e}"
    return "-- dmesg\n" + "\n".join(line for line in out.stdout.split("\n") if f"[{pid}]" in line)[-2000:]


def _tail(path, lines=40):
    try:
        with open(path, errors="replace") as f:
            text = f.read().split("\n")
    except OSError:
        return ""
    report = next((i for i, line in enumerate(text) if REPORT.search(line)), None)
    part = text[report:report + 60] if report is not None else text[-lines:]
    return "\n".join(part)


def _run_one(name, fn, timeout, one_worker=None):
    """True (passed), False (failed) or the reason of a skip."""
    t = Case(name, None if one_worker else WORKERS)
    result = True
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(int(timeout * PATIENCE) + 1)
    try:
        try:
            fn(t)
            for d in getattr(t, "daemons", []):
                d.check_log()
            for d in getattr(t, "daemons", []):
                d.finish()
            for d in getattr(t, "daemons", []):
                d.check_log()
        finally:
            signal.alarm(0)
    except Skip as e:
        result = str(e)
    except _Timeout:
        t.note(f"the case took longer than {timeout * PATIENCE:.0f} s")
        t.note(traceback.format_exc())
        result = False
    except Failure as e:
        t.note(e)
        where = traceback.extract_tb(e.__traceback__)
        t.note("at " + " <- ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(where)
                                   if "harness" not in f.filename))
        result = False
    except KeyboardInterrupt:
        t.close()
        shutil.rmtree(t.dir, ignore_errors=True)
        raise
    except Exception:
        t.note(traceback.format_exc())
        result = False
    if result is False:
        for d in getattr(t, "daemons", []):
            for what in (["status"], ["connections"]):
                try:
                    if d.alive():
                        t.note(f"-- {d.name}: smcrctl {what[0]}\n"
                               + "\n".join(d.ctl_text(*what, status=None).split("\n")[:20]))
                except Exception as e:
                    t.note(f"-- {d.name}: smcrctl {what[0]}: {e}")
    t.close()
    for text in t.notes:
        _say(text)
    if result is False:
        shown = set()
        for p in t.procs:
            if p.log_path not in shown:
                shown.add(p.log_path)
                _say(f"-- log of {p.name} (pid {p.pid}, status {p.popen.returncode})\n{_tail(p.log_path)}")
                if p.popen.returncode == -signal.SIGSEGV:
                    _say(_kernel_says(p.pid))
    if result is False and os.environ.get("SMCRD_KEEP"):
        _say(f"kept: {t.dir}")
    else:
        shutil.rmtree(t.dir, ignore_errors=True)
    return result


def main(**opts):
    """Runs the registered cases; TAP on standard output. opts: of all of them."""
    signal.signal(signal.SIGTERM, _terminated)
    wanted = os.environ.get("SMCRD_CASE", "").split("|")
    cases = [c for c in _cases if any(w in c[0] for w in wanted)]
    print(f"1..{len(cases)}")
    failed = 0
    try:
        for i, (name, fn, timeout, own) in enumerate(cases, 1):
            start = time.monotonic()
            result = _run_one(name, fn, timeout, **{**own, **opts})
            if result is False:
                failed += 1
                print(f"not ok {i} - {name}")
            elif result is True:
                print(f"ok {i} - {name}")
            else:
                print(f"ok {i} - {name} # SKIP {result}")
            _say(f"{time.monotonic() - start:.1f} s")
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("Bail out! interrupted")
        sys.exit(130)
    sys.exit(1 if failed else 0)
