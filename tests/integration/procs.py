"""Processes that are always ended, and the test case that owns them; see harness.py."""
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

from basics import LIBC, PATIENCE, PDEATHSIG, Failure, Skip, check, shorten, wait_until


def _own_address():
    pid = os.getpid()
    return f"127.{64 + (pid >> 16 & 63)}.{pid >> 8 & 255}.{pid & 255}"


def _child_setup():
    """In a child after fork: end when the test script ends, however that happens."""
    LIBC.prctl(PDEATHSIG, signal.SIGKILL)


def logs(proc, *words, times=None):
    """A line may come after what it reports was seen. times: so often, and not once more."""
    for one in words:
        wait_until(lambda one=one: proc.log().count(one) >= (times or 1), f"{one!r} in the log of {proc.name}")
        check(times in (None, proc.log().count(one)), f"more than {times} lines in the log of {proc.name}: {one!r}")


def logged(proc, *words, times=None):
    """The lines with all these words, as logs()."""
    def found():
        return [line for line in proc.log().splitlines() if all(w in line for w in words)]
    got = wait_until(lambda: len(x := found()) >= (times or 1) and x, f"{words} in the log of {proc.name}")
    check(times in (None, len(got)), f"more than {times} lines in the log of {proc.name}:\n" + "\n".join(got))
    return got


class Proc:
    """A child process with its output in a file."""

    def __init__(self, t, argv, name=None, log=None, **kw):
        self.name = name or os.path.basename(argv[0])
        self.log_path = log or os.path.join(t.dir, f"{self.name}.{t.count()}.log")
        self.expect_dead = False
        with open(self.log_path, "ab") as out:
            kw.setdefault("stdin", subprocess.DEVNULL)
            self.popen = subprocess.Popen(argv, stdout=kw.pop("stdout", out), stderr=out,
                                          preexec_fn=_child_setup, **kw)
        self.pid = self.popen.pid
        t.procs.append(self)

    def alive(self):
        return self.popen.poll() is None

    def log(self):
        with open(self.log_path, "rb") as f:
            return f.read().decode(errors="replace")

    def suspend(self):
        """Until SIGCONT. The signal is there before the threads have stopped."""
        self.send_signal(signal.SIGSTOP)
        wait_until(lambda: all(x.rpartition(")")[2].split()[0] == "T" for x in self.threads("stat").values()),
                   f"{self.name} stands still")

    def send_signal(self, sig):
        if self.alive():
            self.popen.send_signal(sig)

    def wait(self, timeout=20.0):
        """Exit status; a failure when it does not end in time."""
        try:
            return self.popen.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} (pid {self.pid}) still runs after {timeout * PATIENCE:.0f} s") from None

    def stop(self, sig=signal.SIGTERM, timeout=20.0):
        self.expect_dead = True
        self.send_signal(sig)
        return self.wait(timeout)

    def kill(self):
        self.expect_dead = True
        if self.alive():
            self.popen.kill()
        self.popen.wait()

    # -- what /proc says --

    def threads(self, name):
        """The file of this name of each thread, by thread; those that end meanwhile have none."""
        found = {}
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{self.pid}/task/{tid}/{name}") as f:
                found[int(tid)] = f.read()
        return found

    def rss(self):
        """Resident memory in bytes."""
        with open(f"/proc/{self.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def forget_peak(self):
        with open(f"/proc/{self.pid}/clear_refs", "w") as f:
            f.write("5")

    def peak(self):
        """The most of rss() since forget_peak()."""
        with open(f"/proc/{self.pid}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) * 1024

    def cpu(self):
        """Time on a processor so far of the threads that there are, in seconds; a running one's is a tick old at most."""
        return sum(int(x.split()[0]) for x in self.threads("schedstat").values()) / 1e9

    def fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


class Case:
    """What one test case may use; everything made through it is gone when the case is over."""

    addr = _own_address()
    _port = 10000

    def __init__(self, name, workers=None):
        """workers: of each daemon whose configuration does not say."""
        self.name = name
        self.workers = workers
        self.dir = tempfile.mkdtemp(prefix="smcrd-test-")
        os.chmod(self.dir, 0o755)	# postgres runs as another user
        self.procs = []
        self.cleanups = []
        self.notes = []
        self._count = 0

    def count(self):
        self._count += 1
        return self._count

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def port(self):
        """A port of our address below the kernel's ephemeral range and the unit tests': free for this test."""
        Case._port = Case._port + 1 if Case._port < 19999 else 10000
        return Case._port

    def port6(self):
        """A port on ::1, which all scripts share: one of ours has it from here on, by a name in the network namespace."""
        for _ in range(200):
            port = 10000 + int.from_bytes(os.urandom(2), "big") % 22000
            name, probe = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_INET6)
            try:
                with probe:
                    name.bind(f"\0smcrd-test-port6-{port}")
                    probe.bind(("::1", port))
                self.later(name.close)
                return port
            except OSError:
                name.close()
        raise Skip("no free port on ::1")

    def socket_path(self, what):
        """Where a UNIX socket may be; short, as the kernel wants it."""
        return self.path(f"{what}.{self.count()}.sock")

    def note(self, text):
        """Shown with the result, whatever it is."""
        self.notes.append(str(text))

    def later(self, fn):
        self.cleanups.append(fn)

    def spawn(self, argv, name=None, **kw):
        return Proc(self, argv, name, **kw)

    def run(self, argv, timeout=60.0, status=0, stderr=subprocess.PIPE, **kw):
        """Runs a program to its end and gives its output; any other exit status than `status` is a failure."""
        if "input" not in kw:
            kw.setdefault("stdin", subprocess.DEVNULL)
        try:
            r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=stderr, timeout=timeout * PATIENCE,
                               preexec_fn=_child_setup, **kw)
        except subprocess.TimeoutExpired as e:
            raise Failure(f"{argv[0]} still runs after {timeout * PATIENCE:.0f} s; output so far: "
                          f"{shorten(e.stdout)}") from None
        if status is not None and r.returncode != status:
            raise Failure(f"{' '.join(map(str, argv))}: exit status {r.returncode}\n{r.stdout.decode(errors='replace')}"
                          f"{(r.stderr or b'').decode(errors='replace')}")
        return r.stdout

    def exit_status(self, argv):
        """Exit status of a program whose output does not matter."""
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=30 * PATIENCE, preexec_fn=_child_setup).returncode

    def fork(self, fn, *args):
        """Runs fn(*args) in a child of its own, for servers and clients that need a core for themselves. The child
        ends with fn. Gives a Forked, whose result() is what fn gave."""
        return Forked(self, fn, args)

    def close(self):
        for fn in reversed(self.cleanups):
            try:
                fn()
            except Exception as e:
                self.note(f"cleanup: {e!r}")
        for p in reversed(self.procs):
            try:
                if p.alive():
                    p.popen.terminate()
            except OSError:
                pass
        for p in reversed(self.procs):
            try:
                p.popen.wait(5)	# raw: then it is killed
            except subprocess.TimeoutExpired:
                p.popen.kill()
                p.popen.wait()


class Forked:
    """A function in a child process; it reports by a pipe."""

    def __init__(self, t, fn, args):
        r, w = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(r)
                _child_setup()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                try:
                    out = {"ok": fn(*args)}
                    status = 0
                except BaseException as e:
                    out = {"error": f"{e}" if isinstance(e, Failure) else traceback.format_exc()}
                with os.fdopen(w, "w") as f:
                    json.dump(out, f)
            finally:
                os._exit(status)
        os.close(w)
        self.pipe = r
        self.done = False
        t.later(self._end)

    def result(self, timeout=60.0):
        end = time.monotonic() + timeout * PATIENCE
        data = b""
        while True:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.pipe], [], [], left)[0]:
                raise Failure(f"a helper process still runs after {timeout * PATIENCE:.0f} s")
            chunk = os.read(self.pipe, 65536)
            if not chunk:
                break
            data += chunk
        self._reap()
        out = json.loads(data or b'{"error": "died without a word"}')
        if "error" in out:
            raise Failure(out["error"])
        return out["ok"]

    def alive(self):
        return not self.done and not select.select([self.pipe], [], [], 0)[0]

    def _reap(self):
        if not self.done:
            os.waitpid(self.pid, 0)
            os.close(self.pipe)
            self.done = True

    def _end(self):
        if not self.done:
            os.kill(self.pid, signal.SIGKILL)
            self._reap()
