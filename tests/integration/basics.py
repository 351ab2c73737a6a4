"""What everything else of the tests builds on: what is tested, failures and skips, comparisons, waiting."""
import ctypes
import os
import re
import shutil
import struct
import time

TOP_SRC = os.environ.get("top_srcdir") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOP_BUILD = os.environ.get("top_builddir") or os.path.join(TOP_SRC, "build")
SMCRD = os.path.join(TOP_BUILD, "smcrd")
LOCAL_LIBRARY = os.path.join(TOP_BUILD, "local", "libsmcrd-local.so")
UNIX = os.environ.get("SMCRD_LEGS") == "unix"
TRANSPORT = os.environ.get("SMCRD_TRANSPORT", "tcp")	# of links
SECURE = os.environ.get("SMCRD_SECURE")	# of services that do not set it
SMCRCTL = os.path.join(TOP_BUILD, "smcrctl")
VALGRIND = ["valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite", "--error-exitcode=9"] if os.environ.get("SMCRD_VALGRIND") else []


def _built_with_sanitizers():
    try:
        with open(SMCRD, "rb") as f:
            program = f.read()
            return b"__asan_init" in program or b"__tsan_init" in program
    except OSError:
        return False


SANITIZERS = _built_with_sanitizers()
# Deadlines are multiplied by this; amounts of data are divided by SHRINK where a test is about shape, not size; a run that may be
# as long as one likes takes SECONDS.
PATIENCE = float(os.environ.get("SMCRD_PATIENCE", "10" if VALGRIND else "4" if SANITIZERS else "1.5"))
SHRINK = (4 if VALGRIND else 2 if SANITIZERS else 1) * (8 if TRANSPORT == "sctp" else 1)
SECONDS = 1 if TRANSPORT == "sctp" else 2
REPORT = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehaviorSanitizer|runtime error:|Assertion .* failed"
                    r"|^==\d+== +at 0x", re.M)
PDEATHSIG = 1
WORKERS = int(os.environ["SMCRD_WORKERS"]) if os.environ.get("SMCRD_WORKERS") else None
LIBC = ctypes.CDLL(None)


class Failure(Exception):
    """The program under test did not do what it owes."""


class Skip(Exception):
    """Something this case needs is missing here."""


def check(cond, what):
    if not cond:
        raise Failure(what)


def equal(got, want, what):
    if got != want:
        raise Failure(f"{what}: got {shorten(got)}, want {shorten(want)}")


def same_bytes(got, want, what):
    """Equal byte strings, or a failure that names the first difference."""
    if got == want:
        return
    n = min(len(got), len(want))
    at = next((i for i in range(n) if got[i] != want[i]), n)
    raise Failure(f"{what}: {len(got)} bytes for {len(want)}, first difference at {at}: "
                  f"{bytes(got[at:at + 16]).hex()} for {bytes(want[at:at + 16]).hex()}")


def shorten(value):
    text = repr(value)
    return text if len(text) < 400 else text[:200] + " ... " + text[-100:]


def wait_until(fn, what, timeout=10.0):
    """Asks fn again and again until it gives something true, which is returned."""
    end = time.monotonic() + timeout * PATIENCE
    pause = 0.002
    while True:
        got = fn()
        if got:
            return got
        if time.monotonic() > end:
            raise Failure(f"not within {timeout * PATIENCE:.0f} s: {what}")
        time.sleep(pause)	# raw: between two looks
        pause = min(pause * 1.5, 0.1)


def need(*programs):
    """Finds programs; one that is missing skips the case. Gives their paths."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin"
    found = [shutil.which(p, path=path) for p in programs]
    for name, where in zip(programs, found):
        if not where:
            raise Skip(f"{name} is not installed")
    return found[0] if len(found) == 1 else found


def need_built_with(library, function):
    """Skips the case when smcrd is a build without that library, of which it would use the function."""
    with open(SMCRD, "rb") as f:
        if function.encode() not in f.read():
            raise Skip(f"this smcrd was built without {library}")


def pattern(n, seed=0):
    """n bytes that repeat nowhere soon and differ by seed, so that lost, doubled and foreign bytes all show."""
    block = b"".join(struct.pack(">II", seed & 0xffffffff, i) for i in range(min(n, 65536 * 8) // 8 + 1))
    out = bytearray()
    turn = 0
    while len(out) < n:
        out += struct.pack(">II", seed & 0xffffffff, turn | 0x80000000) + block
        turn += 1
    return bytes(out[:n])
