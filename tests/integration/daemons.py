"""Daemons with generated configurations, and pairs of them; see harness.py."""
import contextlib
import copy
import json
import os
import re
import resource
import signal
import socket

from basics import REPORT, SECURE, SMCRCTL, SMCRD, TRANSPORT, UNIX, VALGRIND, Failure, check, equal, wait_until
from procs import Proc
from sockets import Server, connect_to, recv_all, turned_away


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


QUESTIONS = {(x,) for x in ("status", "connections", "groups", "links", "stats", "devices")}


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
        self.asked = set()	# QUESTIONS that smcrctl has asked
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
        full = in_tls(self.t, conf, SECURE) if SECURE else dict(conf)
        full.setdefault("control", {})
        if self.t.workers is not None:
            full.setdefault("workers", self.t.workers)
        if VALGRIND:		# whose own system calls are not the daemon's
            full.setdefault("confine", {"mode": "off"})
        full["control"] = dict(full["control"], path=self.control)
        if full["control"].get("readonly") is True:	# each daemon its own
            full["control"]["readonly"] = self.readonly
        with open(self.conf_path, "w") as f:
            f.write("".join(f"{k} = {conf_text(v)};\n" for k, v in full.items() if v is not None))

    def alive(self):
        return self.popen is not None and super().alive()

    def which(self):
        """Words of the command line that name its configuration."""
        return ["-f", self.conf_path]

    def start(self, ready=True, args=()):
        if not os.path.exists(self.program):
            raise Failure(f"{self.program} is not built")
        env = dict(os.environ, **(self.env or {}))
        env.setdefault("ASAN_OPTIONS", "abort_on_error=0:detect_leaks=1")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        env.setdefault("SMCRD_CONFINE_TEST", "kill")	# a system call that is not in the table fails the test
        argv = [*self.wrap, *VALGRIND, self.program, *self.which(), *args]
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
        try:
            connect_to(self.control).close()
            return True
        except OSError:
            return False

    def ctl(self, *args, timeout=20.0):
        """The data of smcrctl's JSON answer. What is asked again and again is its the first time, and the daemon's own after that:
        a program to start takes ten times as long, and more on a busy or an emulated machine."""
        if args in self.asked:
            out = self._ask(args[0], timeout)
        else:
            out = self.t.run([SMCRCTL, "--socket", self.control, "--json", *args], timeout=timeout)
            if args in QUESTIONS:
                self.asked.add(args)
        out = json.loads(out)
        check(out["error"] is None, f"smcrctl {' '.join(args)}: {out['error']}")
        return out["data"]

    def _ask(self, command, timeout):
        try:
            with connect_to(self.control, timeout) as s:
                s.sendall(json.dumps({"command": command}).encode() + b"\n")
                s.shutdown(socket.SHUT_WR)
                return recv_all(s)
        except OSError as e:
            raise Failure(f"daemon {self.name}: {command}: {e!r}") from None

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

    def log(self):
        """All that was logged by now: the daemon's thread that writes it has nothing left, or waits for a reader."""
        def written():
            with contextlib.suppress(OSError):		# it has ended
                for stat in self.threads("stat").values():
                    name, state = re.fullmatch(r"\d+ \((.*)\) (.) .*", stat, re.S).groups()
                    if name == "smcrd-log":
                        return state not in "RD"
            return True
        wait_until(written, f"daemon {self.name} has written its log")
        return super().log()

    def check_log(self):
        """No sanitizer report, and no unexpected end."""
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


def in_tls(t, conf, level):
    """The configuration with TLS for each service that does not say otherwise; all daemons of a case have one certificate."""
    from tls_files import Authority

    def secured(s):
        can = "secure" not in s and s.get("peer", "smcrd") == "smcrd"
        return {**s, "secure": level, "peer_names": ["spiffe://example.org/gw/*"]} if can else s
    if "tls" in conf or not any(conf.get(kind) for kind in ("ingress", "egress")):
        return dict(conf)
    t.tls = getattr(t, "tls", None) or Authority(t).issue("any")
    return {**conf, "tls": t.tls, **{kind: [secured(s) for s in conf[kind]] for kind in ("ingress", "egress") if conf.get(kind)}}


class NoFiles:
    """No further descriptor for a daemon than `free`; those that it has stay."""

    def __init__(self, daemon, free=0):
        self.pid = daemon.pid
        self.before = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        used = {int(fd) for fd in os.listdir(f"/proc/{self.pid}/fd")}
        unused = [fd for fd in range(len(used) + free + 1) if fd not in used]
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (unused[free], self.before[1]))

    def over(self):
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, self.before)


class Pair:
    """Two daemons and what is behind them: client -> a (ingress) == SMC-R == b (egress) -> server.

    servers: name -> (host, port). Each gets an ingress on a and an egress on b of that name; port[name] is where a
    client connects; with unix it is path[name]. ingress, egress: settings for every service of a side; a, b: settings of a
    daemon.
    """

    path = {}	# of UNIX sockets, by name: without any, clients connect to ports
    linkable = True

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

    def listen_local(self, directory, **settings):
        """Before the start: each ingress on TCP has another one beside it for the same target, on the UNIX socket of its address
        in this directory, for LOCAL_LIBRARY."""
        self.conf_a["ingress"] += [{**e, "name": e["name"] + "-local", "listen": f"unix:{directory}/{e['listen']}", **settings}
                                   for e in self.conf_a["ingress"]]
        self.a.write_conf(self.conf_a)

    def accepted_local(self):
        """Connections that those accepted, and that the others did."""
        by = [(s["name"].endswith("-local"), s["accepted"]) for s in self.a.services()]
        return sum(n for local, n in by if local), sum(n for local, n in by if not local)

    def listen(self, name):
        """The address of an ingress as smcrd.conf has it."""
        return f"unix:{self.path[name]}" if self.path else hostport(self.host, self.port[name])

    def connect(self, name=None, timeout=20.0):
        """A client's socket to the ingress of that name (of the only one)."""
        name = name or next(iter(self.port))
        s = connect_to(self.path[name] if self.path else (self.host, self.port[name]), timeout)
        self.t.later(s.close)
        return s

    def turned_away(self, name=None):
        """A new client is not served: it gets a reset or an end without a byte."""
        return turned_away(self.connect, name)

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

    def only_tcp(self, at_least=1):
        """Everything since the start of the pair fell back to TCP, and at_least connections a side there were."""
        for d in (self.a, self.b):
            equal(d.established(), 0, f"daemon {d.name}: connections on SMC-R")
            fallbacks = sum(s["fallbacks"] for s in d.services())
            check(fallbacks >= at_least, f"daemon {d.name}: {fallbacks} connections fell back, expected {at_least} or more")

    def as_made(self, at_least=1):
        """Everything went by what the pair is for."""
        (self.only_smcr if self.linkable else self.only_tcp)(at_least)

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
    pair = Pair(t, servers, a=a, b=b, **kw)
    pair.linkable = False
    return pair
