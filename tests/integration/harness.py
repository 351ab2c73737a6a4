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

SMCRD_VALGRIND=1 runs daemons under valgrind, which speaks of errors and leaks alone: whatever it says is a failure.

SMCRD_KEEP=1 keeps the directory of a failed case; SMCRD_CASE=TEXT runs only cases whose name contains TEXT; SMCRD_WORKERS=N
gives every daemon so many workers, but in cases that are about one.
"""
import copy
import ctypes
import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

TOP_SRC = os.environ.get("top_srcdir") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOP_BUILD = os.environ.get("top_builddir") or os.path.join(TOP_SRC, "build")
SMCRD = os.path.join(TOP_BUILD, "smcrd")
UNIX = os.environ.get("SMCRD_LEGS") == "unix"
TRANSPORT = os.environ.get("SMCRD_TRANSPORT", "tcp")	# of links
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
        time.sleep(pause)
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


def _own_address():
    pid = os.getpid()
    return f"127.{64 + (pid >> 16 & 63)}.{pid >> 8 & 255}.{pid & 255}"


def _child_setup():
    """In a child after fork: end when the test script ends, however that happens."""
    LIBC.prctl(PDEATHSIG, signal.SIGKILL)


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

    def rss(self):
        """Resident memory in bytes."""
        with open(f"/proc/{self.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def cpu(self):
        """Time on a processor so far of the threads that there are, in seconds; a running one's is a tick old at most."""
        total = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
        return total / 1e9

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
        """A port of our address below the kernel's ephemeral range and the unit tests': nobody else takes it."""
        Case._port = Case._port + 1 if Case._port < 19999 else 10000
        return Case._port

    def port6(self):
        """A port that is free on ::1, which all scripts share."""
        for _ in range(200):
            port = 10000 + int.from_bytes(os.urandom(2), "big") % 22000
            with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as s:
                try:
                    s.bind(("::1", port))
                    return port
                except OSError:
                    continue
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
                p.popen.wait(5)
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


# -- daemons --


def conf_text(value, indent=0):
    """A Python value in libconfig's syntax: dict = group, list of dicts = list, other list = array."""
    pad = "  " * indent
    if isinstance(value, dict):
        inner = "".join(f"{pad}  {k} = {conf_text(v, indent + 1)};\n" for k, v in value.items() if v is not None)
        return "{\n" + inner + pad + "}"
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], dict):
            return "( " + ", ".join(conf_text(v, indent + 1) for v in value) + " )"
        return "[ " + ", ".join(conf_text(v) for v in value) + " ]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def hostport(host, port):
    """As smcrd.conf has it; a UNIX socket is ("unix:/path", 0) where others are a host and a port."""
    if host.startswith("unix:"):
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def soft_device(address, transport=TRANSPORT, **settings):
    """An entry of `devices`. SCTP is libusrsctp's, also where the kernel has its own."""
    over = {"tcp": {}, "sctp": {"transport": "sctp", "sctp_stack": "user"}}[transport]
    return {"type": "siw", "address": address, **over, **settings}


class Daemon(Proc):
    """One smcrd with its own configuration and control socket."""

    program = SMCRD

    def __init__(self, t, name, conf, start=True, env=None, wrap=()):
        """wrap: words in front of the command line, of a program that turns into smcrd."""
        self.t = t
        self.wrap = list(wrap)
        self.dir = t.path(f"{name}.{t.count()}")
        os.mkdir(self.dir)
        self.conf_path = os.path.join(self.dir, "smcrd.conf")
        self.control = os.path.join(self.dir, "control")
        self.readonly = os.path.join(self.dir, "readonly")
        self.name = name
        self.env = env
        self.allowed_log = []
        self.expect_dead = False
        self.popen = None
        self.log_path = os.path.join(self.dir, "log")
        self.conf = conf
        self.write_conf(conf)
        t.daemons = getattr(t, "daemons", []) + [self]
        if start:
            self.start()

    def write_conf(self, conf):
        self.conf = conf
        full = dict(conf)
        full.setdefault("control", {})
        if self.t.workers is not None:
            full.setdefault("workers", self.t.workers)
        if VALGRIND:		# whose own system calls are none of the daemon's
            full.setdefault("confine", {"mode": "off"})
        full["control"] = dict(full["control"], path=self.control)
        if full["control"].get("readonly") is True:	# each daemon its own
            full["control"]["readonly"] = self.readonly
        with open(self.conf_path, "w") as f:
            f.write("".join(f"{k} = {conf_text(v)};\n" for k, v in full.items() if v is not None))

    def alive(self):
        return self.popen is not None and super().alive()

    def start(self, ready=True, args=()):
        if not os.path.exists(self.program):
            raise Failure(f"{self.program} is not built")
        env = dict(os.environ, **(self.env or {}))
        env.setdefault("ASAN_OPTIONS", "abort_on_error=0:detect_leaks=1")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        env.setdefault("SMCRD_CONFINE_TEST", "kill")	# a system call that is not in the table fails the test
        argv = [*self.wrap, *VALGRIND, self.program, "-f", self.conf_path, *args]
        if os.environ.get("SMCRD_STRACE"):	# a directory: tests/tools/syscalls.py; -D keeps smcrd our child
            argv = ["strace", "-f", "-D", "-s0", "-o",
                    os.path.join(os.environ["SMCRD_STRACE"], f"{os.getpid()}.{self.t.count()}.{self.name}"), *argv]
        Proc.__init__(self, self.t, argv, self.name, log=self.log_path, env=env)
        if ready:
            wait_until(self._ready, f"daemon {self.name} answers on its control socket", 15)
        return self

    def successor(self, conf=None, ready=True, args=("--take-over",), env=None):
        """A second process that takes this one's place. When it is ready, this one answers at another control socket."""
        new = copy.copy(self)
        new.popen = None
        new.allowed_log = []
        new.log_path = os.path.join(self.dir, f"log.{self.t.count()}")
        new.env = dict(self.env or {}, **(env or {}))
        new.write_conf(conf or self.conf)
        self.t.daemons.append(new)
        new.start(ready=False, args=args)
        if ready:
            new.wait_ready()
            self.expect_dead = True
            self.control = f"{self.control}.{self.pid}"
        return new

    def wait_ready(self):
        def ready():
            if not self.alive():
                raise Failure(f"daemon {self.name} ended at start with status {self.popen.returncode}: {self.log()}")
            return re.search(r"\bready$", self.log(), re.M)
        wait_until(ready, f"daemon {self.name} is ready", 15)

    def _ready(self):
        if not self.alive():
            raise Failure(f"daemon {self.name} ended at start with status {self.popen.returncode}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            try:
                s.connect(self.control)
                return True
            except OSError:
                return False

    def ctl(self, *args, timeout=20.0):
        """The data of smcrctl's JSON answer."""
        out = json.loads(self.t.run([SMCRCTL, "--socket", self.control, "--json", *args], timeout=timeout))
        check(out["error"] is None, f"smcrctl {' '.join(args)}: {out['error']}")
        return out["data"]

    def ctl_text(self, *args, status=0):
        return self.t.run([SMCRCTL, "--socket", self.control, *args], status=status).decode()

    def status(self):
        return self.ctl("status")

    def connections(self):
        return self.ctl("connections")["connections"]

    def groups(self):
        return self.ctl("groups")["groups"]

    def services(self):
        return self.status()["services"]

    def counters(self):
        return self.ctl("stats")["counters"]

    def established(self):
        """Connections that reached SMC-R since the start."""
        counters = self.counters()
        return counters["established_client"] + counters["established_server"]

    def check_log(self):
        """No sanitizer report, and no death that nobody asked for."""
        if self.popen is None:
            return
        text = self.log() if os.path.exists(self.log_path) else ""
        if REPORT.search(text):
            raise Failure(f"daemon {self.name}: sanitizer report or failed assertion in its log")
        if not self.alive() and not self.expect_dead:
            raise Failure(f"daemon {self.name} died with status {self.popen.returncode}")

    def finish(self):
        """Ends in the orderly way, as systemd would; leaks show here."""
        if not self.alive():
            return

        def ended():
            self.send_signal(signal.SIGTERM)	# the first one drains, the next one ends; two at once may count as one
            return not self.alive()
        wait_until(ended, f"daemon {self.name} ends after SIGTERM", 30)
        status = self.wait()
        self.expect_dead = True
        if status not in (0, -signal.SIGTERM):
            raise Failure(f"daemon {self.name}: exit status {status} after SIGTERM")


class Pair:
    """Two daemons and what is behind them: client -> a (ingress) == SMC-R == b (egress) -> server.

    servers: name -> (host, port). Each gets an ingress on a and an egress on b of that name; port[name] is where a
    client connects; with unix it is path[name]. ingress, egress: settings for every service of a side; a, b: settings of a
    daemon.
    """

    path = {}	# of UNIX sockets, by name: without any, clients connect to ports

    def __init__(self, t, servers, ingress=None, egress=None, a=None, b=None, host=None, start=True, unix=None):
        self.t = t
        unix = UNIX and not host if unix is None else unix
        self.host = host = host or t.addr
        new_port = t.port6 if ":" in host else t.port
        self.port = {name: 0 if unix else new_port() for name in servers}
        if unix:
            self.path = {name: t.socket_path(name) for name in servers}
        self.middle = {name: new_port() for name in servers}
        device = soft_device(host)
        self.conf_a = {
            "log_level": "info",
            "devices": [device],
            "ingress": [dict({"name": name, "listen": self.listen(name),
                              "to": hostport(host, self.middle[name])}, **(ingress or {})) for name in servers],
            **(a or {}),
        }
        self.conf_b = {
            "log_level": "info",
            "devices": [device],
            "egress": [dict({"name": name, "listen": hostport(host, self.middle[name]),
                             "to": hostport(*servers[name])}, **(egress or {})) for name in servers],
            **(b or {}),
        }
        self.server = None	# of pair_to()
        self.b = Daemon(t, "b", self.conf_b, start)
        self.a = Daemon(t, "a", self.conf_a, start)

    def listen(self, name):
        """The address of an ingress as smcrd.conf has it."""
        return f"unix:{self.path[name]}" if self.path else hostport(self.host, self.port[name])

    def connect(self, name=None, timeout=20.0):
        """A client's socket to the ingress of that name (of the only one)."""
        name = name or next(iter(self.port))
        if self.path:
            s = unix_connect(self.path[name], timeout)
        else:
            s = socket.create_connection((self.host, self.port[name]), timeout * PATIENCE)
        self.t.later(s.close)
        return s

    def turned_away(self, name=None):
        """How a new client fares that is not to be served: True when it gets a reset or an end without a byte."""
        try:
            with self.connect(name) as s:
                return s.recv(100) == b""
        except ConnectionError:
            return True

    def modes(self):
        """(connections on SMC-R, others) of both daemons, now."""
        modes = [c["mode"] for d in (self.a, self.b) for c in d.connections()]
        return modes.count("smcr"), len(modes) - modes.count("smcr")

    def only_smcr(self, at_least=1):
        """Everything since the start of the pair went by SMC-R, and at_least connections a side there were."""
        for d in (self.a, self.b):
            for c in d.connections():
                check(c["mode"] in ("smcr", "setup"), f"daemon {d.name}: connection not on SMC-R: {c}")
            fallbacks = sum(s["fallbacks"] for s in d.services())
            equal(fallbacks, 0, f"daemon {d.name}: connections that fell back to TCP")
            done = d.established()
            check(done >= at_least, f"daemon {d.name}: {done} connections on SMC-R, expected {at_least} or more")

    def ended_well(self, at_least=1):
        """quiet(), the server had nothing to complain of, and only_smcr()."""
        self.quiet()
        if self.server:
            self.server.ok()
        self.only_smcr(at_least)

    def quiet(self, timeout=20):
        """Waits until neither daemon has a connection left."""
        for d in (self.a, self.b):
            wait_until(lambda d=d: not d.connections(), f"daemon {d.name} has no connections left", timeout)


def pair_to(t, fn, **kw):
    """A pair for Server(t, fn), which is its `server`."""
    server = Server(t, fn, unix=kw.get("unix"))
    pair = Pair(t, {"x": server.at}, **kw)
    pair.server = server
    return pair


def unlinkable_pair(t, servers, **kw):
    """Two daemons without a kind of RTR message in common (RFC 6581): every MPA connection fails, so every rendezvous
    ends in a Decline."""
    a = {"devices": [{"type": "siw", "address": t.addr, "rtr": ["send"]}], **kw.pop("a", {})}
    b = {"devices": [{"type": "siw", "address": t.addr, "rtr": ["read"]}], **kw.pop("b", {})}
    return Pair(t, servers, a=a, b=b, **kw)


# -- sockets --


def recv_exact(s, n):
    """n bytes, or what came before the end."""
    out = bytearray(n)
    view, at = memoryview(out), 0
    while at < n:
        got = s.recv_into(view[at:], min(n - at, 1 << 20))
        if got == 0:
            break
        at += got
    return bytes(out[:at])


def outcome(s):
    """How the stream ends: "reset" or "end", with the bytes that came before."""
    got = bytearray()
    try:
        while part := s.recv(1 << 16):
            got += part
        return "end", bytes(got)
    except ConnectionResetError:
        return "reset", bytes(got)


def recv_all(s):
    """Everything up to the end of the stream."""
    parts = []
    while True:
        part = s.recv(1 << 18)
        if not part:
            return b"".join(parts)
        parts.append(part)


def at_mark(s):
    """Is the next byte the urgent one? (SIOCATMARK)"""
    return struct.unpack("i", fcntl.ioctl(s, 0x8905, b"\0" * 4))[0] != 0


def read_marked(s, total):
    """Reads total bytes from a socket with SO_OOBINLINE; gives them, and the places where a byte was seen as urgent."""
    out, marks = bytearray(), []
    while len(out) < total:
        check(select.select([s], [], [], 20 * PATIENCE)[0], f"{len(out)} of {total} bytes came")
        if at_mark(s) and (not marks or marks[-1] != len(out)):
            marks.append(len(out))
            part = s.recv(1)
        else:
            part = s.recv(total - len(out))	# stops at the mark
        if not part:
            break
        out += part
    return bytes(out), marks


def set_reset_on_close(s):
    """close() then sends RST."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def unix_connect(path, timeout=20.0):
    """A client's socket to a UNIX socket."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        s.settimeout(timeout * PATIENCE)
        s.connect(path)
        return s
    except BaseException:
        s.close()
        raise


def unix_listener(t, path=None, backlog=4096):
    """A listening UNIX socket, for everybody."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    t.later(s.close)
    path = path or t.socket_path("server")
    s.bind(path)
    os.chmod(path, 0o777)
    s.listen(backlog)
    s.settimeout(20 * PATIENCE)
    return s


def listener(t, host=None, port=None, backlog=4096):
    """A listening socket on the test's address."""
    host = host or t.addr
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((host, port or (t.port6() if ":" in host else t.port())))
    s.listen(backlog)
    s.settimeout(20 * PATIENCE)
    t.later(s.close)
    return s


class Server:
    """Runs fn(socket) in a thread for each connection to a port, or UNIX socket, of its own; `errors` collects what went
    wrong."""

    def __init__(self, t, fn, host=None, port=None, unix=None):
        """unix: True, or a path."""
        if (UNIX and not host and not port) if unix is None else unix:
            self.sock = unix_listener(t, unix if isinstance(unix, str) else None)
            self.host, self.port = f"unix:{self.sock.getsockname()}", 0
        else:
            self.sock = listener(t, host, port)
            self.host, self.port = self.sock.getsockname()[:2]
        self.errors = []
        self.fn = fn
        self.sock.settimeout(None)
        self.closing = False
        t.later(self._close)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def at(self):
        return (self.host, self.port)

    def _close(self):
        """Nobody listens there any more; may be called by a test."""
        if self.closing:
            return
        self.closing = True
        # Wakes the thread: a call that is under way when the socket is closed may be begun anew by the kernel, with the number
        # of a descriptor that is the next case's server by then.
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            s.settimeout(30 * PATIENCE)
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        try:
            with s:
                self.fn(s)
        except Exception:
            if not self.closing:
                self.errors.append(traceback.format_exc())

    def ok(self):
        check(not self.errors, f"in the server: {self.errors and self.errors[0]}")


def echo(s):
    """Sends back what comes, until the client is done."""
    while True:
        data = s.recv(1 << 16)
        if not data:
            return
        s.sendall(data)


def in_thread(fn, *args):
    """Runs fn beside the test; join() gives its value or raises what it raised."""
    class Task(threading.Thread):
        value = error = None

        def run(self):
            try:
                self.value = fn(*args)
            except BaseException as e:
                self.error = e

        def result(self, timeout=60.0):
            self.join(timeout * PATIENCE)
            check(not self.is_alive(), f"{getattr(fn, '__name__', fn)} still runs after {timeout * PATIENCE:.0f} s")
            if self.error:
                raise self.error
            return self.value
    task = Task(daemon=True)
    task.start()
    return task


def exchange(s, data, what="echo"):
    """The data to an echo and back, both ways at the same time."""
    writer = in_thread(s.sendall, data)
    same_bytes(recv_exact(s, len(data)), data, what)
    writer.result()


def works(s, seed=0, n=30000):
    """A connection to an echo carries n bytes there and back."""
    exchange(s, pattern(n, seed))


# -- cases --

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
    if result is False and os.environ.get("SMCRD_KEEP"):
        _say(f"kept: {t.dir}")
    else:
        shutil.rmtree(t.dir, ignore_errors=True)
    return result


def main(**opts):
    """Runs the registered cases; TAP on standard output. opts: of all of them."""
    signal.signal(signal.SIGTERM, _terminated)
    wanted = os.environ.get("SMCRD_CASE", "")
    cases = [c for c in _cases if wanted in c[0]]
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
