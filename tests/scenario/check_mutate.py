#!/usr/bin/env python3
"""How tests/scenario/mutate runs a test: nothing of it stays, whether it ends by itself, at its time limit, or with mutate."""
import importlib.machinery
import importlib.util
import os
import select
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from harness import PATIENCE, Failure, case, check, main	# noqa: E402

_loader = importlib.machinery.SourceFileLoader("mutate", os.path.join(HERE, "mutate"))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", _loader))
_loader.exec_module(mutate)

# Two processes, the second one in a process group of its own, as libcheck does it. Both hold the pipe of argv[1]; the ready one
# says so in it.
TEST = """
import os, signal, sys
pipe = int(sys.argv[1])
if os.fork() == 0:
    os.setpgid(0, 0)
    os.close(1), os.close(2)
    os.write(pipe, b"c")
    while True:
        signal.pause()
os.write(pipe, b"p")
while sys.argv[2] == "stays":
    signal.pause()
"""


class Held:
    """A pipe that reports the close of its other end."""

    def __init__(self):
        self.ours, self.theirs = os.pipe()

    def argv(self, what):
        return [sys.executable, "-c", TEST, str(self.theirs), what]

    def read(self):
        if not select.select([self.ours], [], [], 10 * PATIENCE)[0]:
            raise Failure("a process of the test is still there")
        return os.read(self.ours, 16).decode()

    def wait_gone(self):
        """What was said before that."""
        os.close(self.theirs)
        said, more = "", "?"
        while more:
            more = self.read()
            said += more
        return said


@case("a test at its time limit: none of its processes stays")
def time_limit(env):
    held = Held()
    try:
        mutate.run(held.argv("stays"), 2 * PATIENCE, pass_fds=[held.theirs])
    except subprocess.TimeoutExpired:
        said = held.wait_gone()
        check(sorted(said) == ["c", "p"], f"not both were there: {said}")
        return
    raise Failure("no time limit")


@case("a test that ends by itself: what it started does not stay")
def by_itself(env):
    held = Held()
    status, out = mutate.run(held.argv("ends"), 60, pass_fds=[held.theirs])
    check(status == 0 and out == "", f"{status}: {out}")
    held.wait_gone()


@case("mutate is terminated: the test goes with it")
def terminated(env):
    held = Held()
    code = ("import importlib.machinery, importlib.util, signal, sys; "
            f"l = importlib.machinery.SourceFileLoader('mutate', {os.path.join(HERE, 'mutate')!r}); "
            "m = importlib.util.module_from_spec(importlib.util.spec_from_loader('mutate', l)); l.exec_module(m); "
            "m.end_when_terminated(); "
            f"m.run({held.argv('stays')!r}, pass_fds=[{held.theirs}])")
    p = subprocess.Popen([sys.executable, "-B", "-c", code], pass_fds=[held.theirs], stderr=subprocess.DEVNULL)
    said = ""
    while len(said) < 2:
        said += held.read()
    p.send_signal(signal.SIGTERM)
    check(p.wait(10 * PATIENCE) == 1, "mutate did not end")
    held.wait_gone()


if __name__ == "__main__":
    main()
