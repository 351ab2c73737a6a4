#!/usr/bin/env python3
"""The laboratory itself, on the host: machines that do not boot, or are ended while they boot."""
import contextlib
import os
import shlex
import shutil
import sys
import time
import unittest.mock

import machine

sys.path[:0] = [os.path.join(machine.TOP_SRC, "tests", "integration")]

from harness import Failure, case, check, equal, in_thread, main, wait_until		# noqa: E402

SOON_S = 60		# for all tries; boot() waits for machine.BOOT_S in each


def kernels():
    """Directories of the kernel of this run, and of the one in user mode where it can be had."""
    with open(os.path.join(os.environ["SMCRD_VM_SHARE"], "env")) as f:
        usual = dict(word.split("=", 1) for word in shlex.split(f.read()))["KERNEL"]
    user_mode = os.path.join(os.path.dirname(usual), machine.USER_MODE)
    return [k for k in (usual, user_mode) if os.path.exists(os.path.join(k, "kernel"))]


@contextlib.contextmanager
def booting(kernel):
    """A machine that another thread boots, and that thread."""
    m = machine.Machine(kernel, "check_lab.py", 10)
    try:
        yield m, in_thread(m.boot)
    finally:
        m.end()
        shutil.rmtree(m.share)


def dies(task):
    """The words of Died, which boot() has to raise."""
    try:
        task.result()
    except machine.Died as e:
        return str(e)
    raise Failure("the machine boots")


@case("a machine with too little memory for its kernel is reported soon, with the kernel's panic if it comes so far", timeout=150)
def _(t):
    for kernel in kernels():
        start = time.monotonic()
        with unittest.mock.patch.dict(os.environ, SMCRD_VM_MEMORY="24M"), booting(kernel) as (_, task):
            said = dies(task)
        check(time.monotonic() < start + SOON_S, f"{kernel}: {time.monotonic() - start:.0f} s: {said}")
        check("panic" in said or os.path.basename(kernel) != machine.USER_MODE, f"{kernel}: {said}")


@case("a machine that is ended while it boots is not begun again")
def _(t):
    for kernel in kernels():
        with booting(kernel) as (m, task):
            begun = wait_until(lambda m=m: m.proc, "the machine begins")
            m.end()
            equal(dies(task), "ended from outside", kernel)
            check(m.proc is begun and begun.poll() is not None, f"{kernel}: {begun.poll()}")


main()
