"""
The ways from a client to a server that the benchmark compares, all to the same servers.

A setup says what stands between client and server in general (TCP on loopback, UNIX sockets, a link with delay); a side is one of
those compared: "direct" (none), "haproxy" and "splice" (a pair of haproxy), "smcrd" (a pair of smcrd), "again" (one more pair of
the same smcrd, for the noise), "tcp" (one whose links are over TCP where smcrd's are not), "middle" (one with a CLC connection
for each where smcrd's open over the link), "clear" (one without TLS where smcrd has it), "plain" (one with targets where smcrd
captures), "old" (a pair of another build). Ways are made when a row first wants them and stand until the end. smcrd runs with its
defaults where a setup does not say otherwise, haproxy with one thread.
"""
import os
import subprocess

from harness import LOCAL_LIBRARY, TOP_BUILD, Daemon, Pair, Skip, hostport, need, soft_device
from programs import HaproxyPair, Iperf3, Nginx, Redis, wait_port
from tls_files import Authority

OF_SMCRD = ("smcrd", "again", "tcp", "middle", "clear", "plain", "old")
SERVERS = {"redis": "redis-server", "http": "nginx", "iperf3": "iperf3", "sockperf": "sockperf"}
VALUES = {"k3": 3, "k1M": 1 << 20}	# keys that Redis has, and the lengths of their values


class Way:
    """What a measurement sees: where to connect, and whose work counts."""

    pair = None		# of haproxy with TLS

    def __init__(self, at, procs, client, iperf3_options=()):
        """at: service -> (host, port) or the path of a UNIX socket; procs: those in between; client: a Case, or what stands for
        one, where programs run that connect."""
        self._at, self.procs, self.client, self.iperf3_options = at, procs, client, iperf3_options

    def at(self, service):
        if service not in self._at:
            raise Skip(f"{SERVERS[service]} is not installed")
        return self._at[service]

    def run(self, argv, timeout):
        """A client program's output."""
        return self.client.run(argv, timeout=timeout).decode()

    def cpu(self):
        return sum(p.cpu() for p in self.procs)

    def rss(self):
        return sum(p.rss() for p in self.procs)

    def forget_peak(self):
        for p in self.procs:
            p.forget_peak()

    def peak(self):
        """The most of each process's memory since forget_peak()."""
        return sum(p.peak() for p in self.procs)

    def fallbacks(self):
        """Connections that were to be on SMC-R and were not: their figures are not SMC-R's."""
        return sum(s["fallbacks"] for d in self.procs if isinstance(d, Daemon) and d.alive() for s in d.services())

    def handshakes(self):
        """Of TLS at the far end: all, and those by an earlier one."""
        if self.pair:
            return self.pair.handshakes()
        counters = self.procs[1].counters()
        return counters["tls_handshakes"], counters["tls_resumed"]

    def end(self):
        for p in self.procs:
            p.kill()


class Several(Way):
    """Ways side by side: those in between count as one."""

    def __init__(self, ways):
        super().__init__({}, [p for way in ways for p in way.procs], None)
        self.parts = ways


class Servers:
    """Those of SERVERS that are installed, each started when it is first asked for."""

    def __init__(self, t):
        self.t = t
        self._at = {}

    def at(self, names):
        return {n: self._get(n) for n in names if installed(SERVERS[n])}

    def _get(self, name):
        if name not in self._at:
            self._at[name] = getattr(self, "_start_" + name)()
        return self._at[name]

    def _start_redis(self):
        self.redis = Redis(self.t)
        for key, length in VALUES.items():
            self.t.run([need("redis-cli"), "-s", self.redis.unix, "-x", "set", key], input=b"x" * length)
        return self.redis.host, self.redis.port

    def unix(self):
        need(SERVERS["redis"])
        self._get("redis")
        return {"redis": self.redis.unix}

    def _start_http(self):
        nginx = Nginx(self.t)
        return nginx.host, nginx.port

    def _start_iperf3(self):
        server = Iperf3(self.t)
        return server.host, server.port

    def _start_sockperf(self):
        port = self.t.port()
        proc = self.t.spawn([need("sockperf"), "server", "--tcp", "-i", self.t.addr, "-p", str(port)])
        wait_port(proc, self.t.addr, port)
        return self.t.addr, port


def installed(program):
    try:
        return need(program)
    except Skip:
        return None


class Loopback:
    """TCP on loopback. There is no network to hide behind: what is measured is the work of the processes."""

    def __init__(self, bench, services=tuple(SERVERS), maxconn=6000, threads=1, of_stream=None, **settings):
        """maxconn: connections of a service; defaults are below the rows with idle ones. threads: of haproxy. of_stream: settings of
        the service of bulk. settings: smcrd's beside its defaults."""
        self.bench, self.t, self.services, self.threads = bench, bench.t, services, threads
        self.maxconn, self.of_stream, self.settings = maxconn, of_stream, {"log_level": "notice", **settings}

    def targets(self):
        return self.bench.servers.at(self.services)

    def direct(self, _side):
        return Way(self.targets(), [], self.t)

    def haproxy(self, side):
        pair = HaproxyPair(self.t, self.targets(), splice=side == "splice", maxconn=self.maxconn, threads=self.threads)
        return Way(pair.at, pair.procs, self.t), pair.confs

    def smcrd(self, side):
        limit = {"max_connections": self.maxconn}
        pair = Pair(self.t, self.targets(), ingress=limit, egress=limit, a=self.settings, b=self.settings, start=False)
        for d, conf, kind in ((pair.a, pair.conf_a, "ingress"), (pair.b, pair.conf_b, "egress")) if self.of_stream else ():
            d.write_conf({**conf, kind: [{**e, **(self.of_stream if e["name"] == "iperf3" else {})} for e in conf[kind]]})
        at = {n: (pair.host, port) for n, port in pair.port.items()}
        return started(self.bench.program(side), pair.a, pair.b, at, self.t)


class Sctp(Loopback):
    """Links are over SCTP in UDP, by libusrsctp, but those of side "tcp"."""

    def smcrd(self, side):
        self.settings.update(devices=[soft_device(self.t.addr, "tcp" if side == "tcp" else "sctp")], workers=1)
        return super().smcrd(side)


class Secure(Loopback):
    """Between the two in between there is TLS, with certificates both ways, but with side "clear"."""

    def __init__(self, bench, *args, **settings):
        super().__init__(bench, *args, **settings)
        self.tls = Authority(bench.t).issue("any")

    def haproxy(self, side):
        pair = HaproxyPair(self.t, self.targets(), maxconn=self.maxconn, tls=self.tls)
        way = Way(pair.at, pair.procs, self.t)
        way.pair = pair
        return way, pair.confs

    def smcrd(self, side):
        more = {} if side == "clear" else {"secure": "required", "peer_names": ["spiffe://example.org/gw/any"]}
        limit, conf = {"max_connections": self.maxconn, **more}, {**self.settings, **({"tls": self.tls} if more else {})}
        pair = Pair(self.t, self.targets(), ingress=limit, egress=limit, a=conf, b=conf, start=False)
        at = {n: (pair.host, port) for n, port in pair.port.items()}
        return started(self.bench.program(side), pair.a, pair.b, at, self.t)


def opening(side):
    """Of smcr, where new connections are measured."""
    return {"open_over_link": side != "middle"}


class Opening(Loopback):
    """Connections open over the link, but those of side "middle"."""

    def smcrd(self, side):
        self.settings.update(smcr=opening(side))
        return super().smcrd(side)


class Many:
    """Pairs enough for so many connections, of which a process has no more than it may have files; each has a server to itself."""

    def __init__(self, bench, count, most):
        """most: connections of a pair"""
        self.bench, self.count = bench, count
        self.pairs = -(-count // most)
        self.servers = [Redis(bench.t) for _ in range(self.pairs)]

    def _several(self, make):
        made = [make(OneOfMany(self.bench, server, self.count // self.pairs + 2)) for server in self.servers]
        return Several([way for way, _ in made]), made[0][1]

    def haproxy(self, side):
        return self._several(lambda one: one.haproxy(side))

    def smcrd(self, side):
        return self._several(lambda one: one.smcrd(side))


class OneOfMany(Loopback):
    def __init__(self, bench, server, maxconn):
        super().__init__(bench, maxconn=maxconn)
        self.server = server

    def targets(self):
        return {"redis": (self.server.host, self.server.port)}


class Unix:
    """Clients and the server are on UNIX sockets; between the two in between it is TCP."""

    def __init__(self, bench):
        self.bench, self.t = bench, bench.t

    def direct(self, _side):
        return Way(self.bench.servers.unix(), [], self.t)

    def haproxy(self, _side):
        pair = HaproxyPair(self.t, self.bench.servers.unix(), unix=True)
        return Way(pair.at, pair.procs, self.t), pair.confs

    def smcrd(self, side):
        near = self.t.path(f"near{self.t.count()}")
        return self.pair(side, near, near, self.t)

    def pair(self, side, near, at, client):
        """near: the path of the ingress's socket; at, client: of the way."""
        settings, far = {"log_level": "notice"}, self.bench.servers.unix()["redis"]
        pair = Pair(self.t, self.bench.servers.at(["redis"]), ingress={"listen": f"unix:{near}"}, egress={"to": f"unix:{far}"},
                    a=settings, b=settings, start=False)
        return started(self.bench.program(side), pair.a, pair.b, {"redis": at}, client)


class Local(Unix):
    """As Unix, for client programs that know TCP alone: smcrd's by the preload. Others are on TCP."""

    def __init__(self, bench):
        super().__init__(bench)
        tcp = Loopback(bench, ["redis"])
        self.direct, self.haproxy = tcp.direct, tcp.haproxy

    def smcrd(self, side):
        directory, at = self.t.path(f"local{self.t.count()}"), (self.t.addr, self.t.port())
        os.mkdir(directory)
        return self.pair(side, os.path.join(directory, hostport(*at)), at, ByPreload(self.t, directory))


class ByPreload:
    """Stands for the Case `t` where clients find UNIX sockets of this directory behind the addresses that they connect to. No ingress
    is on TCP there: a client that goes past the preload is refused."""

    def __init__(self, t, directory):
        self.t = t
        self.env = {**os.environ, "SMCRD_LOCAL": directory, "SMCRD_LOCAL_LIBRARY": LOCAL_LIBRARY}

    def run(self, argv, **kw):
        return self.t.run([os.path.join(TOP_BUILD, "local", "smcrd-run"), "--local", *argv], env=self.env, **kw)


def started(program, near, far, at, client):
    """Starts a pair of daemons: way and configurations. What this smcrd has no setting for is skipped."""
    for d in (far, near):
        said = subprocess.run([program, "-t", "-f", d.conf_path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=30)  # raw: no test
        if said.returncode != 0:
            raise Skip(f"this smcrd does not take the configuration: {said.stdout.decode(errors='replace').strip()}")
    for d in (far, near):
        d.program = program
        d.start()
    return Way(at, [near, far], client), {"near": read(near.conf_path), "far": read(far.conf_path)}


def read(path):
    with open(path) as f:
        return f.read()


class Bench:
    """Servers and ways, and how long to measure."""

    def __init__(self, t, setups, seconds, old=None):
        """setups: name -> what makes one (setups.py)"""
        self.t, self.seconds, self.old = t, seconds, old
        self.base = "old" if old else "haproxy"	# beside whom smcrd is
        self.half_rate = None	# of its requests, once measured
        self.servers = Servers(t)
        self.configurations = {}	# of each side: "setup side end" -> text
        self._makers, self._setups, self._ways = setups, {}, {}

    def program(self, side):
        return os.path.join(self.old, "smcrd") if side == "old" else Daemon.program

    def setup(self, name):
        if name not in self._setups:
            self._setups[name] = self._makers[name](self)
        return self._setups[name]

    def way(self, setup, side):
        """The one that stands for the whole run."""
        key = (setup, side)
        if key not in self._ways:
            self._ways[key] = self.fresh_way(setup, side)
        return self._ways[key]

    def fresh_way(self, setup, side):
        """One with processes of its own, so that no earlier measurement's memory counts; the caller ends it."""
        make = self.setup(setup)
        if side == "direct":
            return make.direct(side)
        way, confs = make.smcrd(side) if side in OF_SMCRD else make.haproxy(side)
        for end, text in confs.items():
            self.configurations.setdefault(f"{setup} {side} {end}", text.replace(self.t.dir, "DIR"))
        return way

    def ways(self):
        return self._ways.items()
