"""
In a guest of two that a wire joins, with two cards each on that wire: Linux's own SMC (AF_SMC) in side b, and in side a either
the same (peer="kernel") or smcrd (peer="smcrd"), whose plain clients and servers it serves. Side a has the cases; side b
executes calls (check_NAME_peer.py calls serve()).

A way is the direction of connects: "in" from side b to side a, "out" from side a to side b. Programs there play a role each,
which exists for clients and for servers: see traffic.py.

SMC-Rv2 needs an enterprise id in common and IPv4; both cards in one subnet, for its second link. Soft RoCE has no SMC-Rv1.
"""
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time

import pair
import real
import rxe
import smcnl
import traffic
from harness import Case, Daemon, Failure, check, equal, hostport, need, wait_until
from pair import Far

UEID = "SMCRD.LAB.1"
PNET = "LAB"


# Where a message of first contact is to be found behind the IP header: CLC behind a TCP header with timestamps, LLC of version 2
# behind those of UDP and RoCE. A SYN has 20 bytes of options, and 8 more with SMC-R's. (offset, value, mask)
SYN = [(9, 6, 0xff), (32, 0xc0, 0xf0)]
CLC = [(9, 6, 0xff), (52, 0xe2d4c3d9, 0xffffffff)]
LLC = [(9, 17, 0xff), (22, 4791, 0xffff)]
MESSAGES = {"SYN": [*SYN, (33, 0x02, 0x12)], "SYN/ACK": [*SYN, (33, 0x12, 0x12)], "Proposal": [*CLC, (56, 1, 0xff)],
            "Accept": [*CLC, (56, 2, 0xff)], "Confirm": [*CLC, (56, 3, 0xff)], "Decline": [*CLC, (56, 4, 0xff)], "RoCE packet": LLC,
            **{f"{name}{reply}": [*LLC, (28, 4, 0xff), (40, kind, 0xff), (43, 0x80 if reply else 0, 0x80)]
               for name, kind in (("CONFIRM LINK", 0x21), ("ADD LINK", 0x22)) for reply in ("", " reply")},
            "LLC": [*LLC, (1, 0, 0xff), (28, 4, 0xff), (40, 0x20, 0xf0)]}	# of type of service 0: see liar.py


# For check_afsmc.py's peer, whose kernel says it of itself in version 2. A terminal would take it for orders, a log for a line.
HOSTILE_NAME = b"\x1b]2;x\x07\x1b[31m\r\nnotice: evil"


def address(side, i=1):
    return f"10.78.1.{rxe.ENDS[side] + 10 * (i - 1)}"


class Host(rxe.Devices):
    """The machine's cards <side>1 and <side>2, each with an rxe device, and its kernel's SMC. Made by the first case."""

    pairs = (1, 2)

    def __init__(self, t, side):
        super().__init__(t)
        self.side = side
        rxe.modprobe("smc", "smc_diag", "sch_netem")
        if os.path.exists(f"/sys/class/net/{side}1"):
            return
        rxe.modprobe("virtio_net")
        for i in self.pairs:
            wait_until(lambda i=i: os.path.exists(f"/sys/class/net/eth{i - 1}"), "the network card is there")
            self.ip(f"link set eth{i - 1} name {side}{i}")
        # Two cards in one subnet: each answers for its own address, and replies leave where they belong.
        for name, value in (("all/arp_ignore", 1), ("all/arp_announce", 2), ("all/rp_filter", 0), ("default/rp_filter", 0)):
            rxe.sysctl(f"net/ipv4/conf/{name}", value)
        for i in self.pairs:
            self.up(i)
            self.plug(side, i)
        # For the filters below. While a qdisc comes or goes, packets are dropped, and soft RoCE ends the queue pair of one it cannot send.
        self._tc("qdisc add dev {0} clsact")
        self.active(*[(side, i) for i in self.pairs])

    def up(self, i):
        here, table = address(self.side, i), 1000 + i
        self.ip(f"addr replace {here}/24 dev {self.side}{i}", f"link set {self.side}{i} up",
                f"route replace 10.78.1.0/24 dev {self.side}{i} src {here} table {table}")
        self.ip(f"rule del from {here} lookup {table}", force=True)
        self.ip(f"rule add from {here} lookup {table}")

    def smc(self, ueids=(UEID,), pnet=True, testlink_s=30):
        """The kernel's SMC as a case wants it."""
        rxe.modprobe("smc", "smc_diag")
        smcnl.flush_ueids()
        for x in ueids:
            smcnl.add_ueid(x)
        try:
            smcnl.flush_pnets()
        except OSError:
            pass		# there was none
        if pnet:
            for i in self.pairs:
                smcnl.add_pnet(PNET, netdev=f"{self.side}{i}")
                smcnl.add_pnet(PNET, device=rxe.device(self.side, i))
        rxe.sysctl("net/smc/smcr_testlink_time", testlink_s)

    def unload(self):
        self.t.run([need("rmmod"), "smc_diag"], status=None)
        # Sockets of programs that have ended hold it until they are through.
        wait_until(lambda: self.t.exit_status([need("rmmod"), "smc"]) == 0, "the module smc is unloaded", 20)

    def try_unload(self):
        """What the kernel says while sockets are open."""
        self.t.run([need("rmmod"), "smc_diag"])
        try:
            r = subprocess.run([need("rmmod"), "smc"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        finally:
            rxe.modprobe("smc", "smc_diag")
        check(r.returncode != 0, "the module smc is not unloaded")
        return r.stderr.decode().strip()

    def card(self, i, what):
        """A card that goes or comes: its rxe device, its interface, or its packets; of the first one those of RoCE alone."""
        name = f"{self.side}{i}"
        if what == "unplug":
            self.unplug(self.side, i)
        elif what == "plug":
            self.plug(self.side, i)
            self.active((self.side, i))
        elif what == "down":
            self.ip(f"link set {name} down")
        elif what == "up":
            self.up(i)
        elif i == 1:		# the machines talk to one another over this one
            drop = ["protocol", "ip", "prio", "1", "u32", *self._match("RoCE packet"), "action", "drop"]
            self.t.run([need("tc"), "filter", *{"silence": ["add", "dev", name, "egress", *drop],
                                               "unsilence": ["del", "dev", name, "egress"]}[what]])
        else:
            self.t.run([need("tc"), "qdisc", *{"silence": ["replace", "dev", name, "root", "netem", "loss", "100%"],
                                              "unsilence": ["del", "dev", name, "root"]}[what]])

    def lose(self, message):
        """Messages of this kind no longer arrive here; see lost(), lose_nothing()."""
        self._treat(message, "action", "drop")

    def strip(self, message):
        """SMC-R's option is removed when they arrive here: a SYN, a SYN/ACK."""
        nops = [word for at in (60, 64) for word in ("munge", "offset", str(at), "u32", "set", "0x01010101")]
        self._treat(message, "action", "pedit", *nops, "pipe", "action", "csum", "tcp")

    def divert(self, message, prefix):
        """Messages of this kind that arrive leave by the card's tap, whose name is the card's behind a prefix; what comes in by
        a tap arrives at its card, with IP's checksum made right."""
        tap = prefix + "{0}"
        self._tc(f"qdisc add dev {tap} clsact")
        self._tc(f"filter add dev {tap} ingress protocol ip prio 1 u32 match u8 0 0 at 0 action csum ip4h pipe "
                 "action mirred ingress redirect dev {0}")
        self._treat(message, "action", "mirred", "egress", "redirect", "dev", tap)

    def _tc(self, line, *option):
        """For each card, all in one go: a program takes its time to start here."""
        lines = "".join(line.format(f"{self.side}{i}") + "\n" for i in self.pairs)
        return self.t.run([need("tc"), *option, "-batch", "-"], input=lines.encode(),
                          status=None if "-force" in option else 0).decode()

    @staticmethod
    def _match(message):
        words = []
        for at, value, mask in MESSAGES[message]:
            size = "u8" if mask <= 0xff else "u16" if mask <= 0xffff else "u32"
            words += ["match", size, hex(value), hex(mask), "at", str(at)]
        return words

    def _treat(self, message, *how):
        self._tc(f"filter add dev {{0}} ingress protocol ip prio 1 u32 {' '.join([*self._match(message), *how])}")

    def lost(self):
        """How many packets were."""
        return sum(int(x) for x in re.findall(r"dropped (\d+)", self._tc("filter show dev {0} ingress", "-s")))

    def lose_nothing(self):
        self._tc("filter del dev {0} ingress", "-force")

    def reset(self, port):
        """Every TCP connection of this machine with that port, here or there, at both ends. One whose ACK was lost in front of the
        message that a case loses is there a second later."""
        wait_until(lambda: self.t.run([need("ss"), "-H", "-K", "-t", "-n", f"sport = :{port} or dport = :{port}"]),
                   f"there is a connection of port {port}")

    @staticmethod
    def retry_syns(count):
        """A SYN is sent again so many times: 6, which is Linux's own, take two minutes, 1 takes 3 s."""
        rxe.sysctl("net/ipv4/tcp_syn_retries", count)

    def groups(self):
        return smcnl.groups()

    def links(self):
        return smcnl.links()

    def counts(self):
        return smcnl.counts()

    def connections(self):
        return smcnl.connections()


def new_socket(kind):
    """plain: TCP; smc: AF_SMC, whose addresses are those of AF_INET."""
    if kind == "smc":
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0,
                             fileno=socket.socket(smcnl.AF_SMC, socket.SOCK_STREAM, 0).detach())
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM)


class Programs:
    """Clients and servers of one machine: `kind` is that of their sockets. Everything here is called from the other machine
    as well, so arguments and results are plain."""

    def __init__(self, t):
        self.t = t
        self.tasks = []
        self.listeners = []
        self.mortals = set()

    def _task(self, fn, *args):
        task = {}
        ended = threading.Event()

        def run():
            try:
                task["ok"] = fn(*args)
            except Exception as e:
                task["failure"] = f"{type(e).__name__}: {e}"
            ended.set()
        self.tasks.append((task, ended))
        threading.Thread(target=run, daemon=True).start()
        return len(self.tasks) - 1

    def done(self, number, patience=0):
        """None, or {"ok": result} or {"failure": text}; sleeps until there is one, for so many seconds."""
        task, ended = self.tasks[number]
        return dict(task) if ended.wait(patience) else None

    def serve(self, kind, host, role, settings, port=0):
        """Listens, and plays the role on each connection. The port, and the number for served()."""
        s = new_socket(kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        traffic.buffers(s, settings)
        s.bind((host, port))
        s.listen(1000)
        self.t.later(s.close)
        entry = {"results": [], "failures": [], "modes": {}, "count": 0}
        self.listeners.append(entry)
        threading.Thread(target=self._accept, args=(s, kind, role, settings, entry), daemon=True).start()
        return s.getsockname()[1], len(self.listeners) - 1

    def _accept(self, listener, kind, role, settings, entry):
        while True:
            try:
                if not select.select([listener], [], [], 0.2)[0]:		# a thread in accept() keeps a closed socket alive
                    continue
                s, _ = listener.accept()
            except (OSError, ValueError):
                return
            entry["count"] += 1
            ask = entry["count"] <= 10 or entry["count"] % 20 == 0		# it takes a while when there are many
            args = (s, kind, role, settings, entry, ask)
            if settings.get("one_by_one"):		# a thread for each is most of what a short one costs
                self._one(*args)
            else:
                threading.Thread(target=self._one, args=args, daemon=True).start()

    def _one(self, s, kind, role, settings, entry, ask):
        try:
            with s:
                traffic.prepare(s)
                entry["results"].append(traffic.SERVERS[role](s, settings, lambda: ask and self._mode(s, kind, entry["modes"])))
        except Exception as e:
            entry["failures"].append(f"{type(e).__name__}: {e}")

    @staticmethod
    def _mode(s, kind, modes):
        """What the kernel says of this connection."""
        word = "plain" if kind == "plain" else smcnl.word(s)
        modes[word] = modes.get(word, 0) + 1

    def served(self, number):
        return self.listeners[number]

    def client(self, kind, host, port, role, settings):
        """Plays the role as a client; the number for done(), whose result has "modes" beside the role's own."""
        def run():
            modes = {}

            def connect():
                s = new_socket(kind)
                traffic.prepare(s)
                traffic.buffers(s, settings)
                s.connect((host, port))
                return s
            result = traffic.CLIENTS[role](connect, settings, lambda s: self._mode(s, kind, modes))
            return {"result": result, "modes": modes}
        return self._task(run)

    @staticmethod
    def clock():
        """Seconds of this machine."""
        return time.monotonic()

    @staticmethod
    def clocks():
        """Seconds of this machine, and of the host, which dates what is written to its files."""
        path = os.path.join(rxe.SHARE, "clock")
        with open(path, "w"):
            pass
        return time.monotonic(), os.stat(path).st_mtime

    def mortal(self, kind, host, port, serve=False):
        """A process of its own that kill() ends, with one connection, which it says something on, or as a server what it hears."""
        s = new_socket(kind)
        if serve:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((host, port))
            s.listen()
            port = s.getsockname()[1]
        pid = os.fork()
        if not pid:
            try:
                os.closerange(3, s.fileno())
                os.closerange(s.fileno() + 1, 1000)
                if serve:
                    s = s.accept()[0]
                else:
                    s.connect((host, port))
                    s.sendall(b"?")
                while data := s.recv(1000):
                    s.sendall(data)
            finally:
                os._exit(0)
        s.close()
        self.t.later(lambda: self.kill(pid))
        self.mortals.add(pid)
        return pid, port

    def kill(self, pid):
        if pid in self.mortals:
            self.mortals.discard(pid)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    @staticmethod
    def rounds():
        """Of the busy client, by connection."""
        return [traffic.ROUNDS[i] for i in sorted(traffic.ROUNDS)]


class Served(pair.Served):
    """What side a may ask of side b."""

    def __init__(self):
        self.reset(first=True)

    def reset(self, first=False):
        if not first:
            self.t.close()
        self.t = Case("peer")
        self.objects = {"end": Host(self.t, "b"), "peer": self, "programs": Programs(self.t),
                        "real": real.Real(self.t)}


def serve():
    pair.serve(Served())


class Scene:
    """Both machines as a case wants them. peer: what side a is; ueids: of side b; devices, smcr: settings of the daemon."""

    def __init__(self, t, peer, links=1, ueids=(UEID,), testlink_s=30, devices=None, **smcr):
        self.t, self.peer = t, peer
        self.hosts = {"a": Host(t, "a"), "b": Far("end")}
        self.other = pair.Other(t)
        self.other.wait()
        self.programs = {"a": Programs(t), "b": Far("programs")}
        self.real = {"a": real.Real(t), "b": Far("real")}
        t.later(Far("peer").reset)
        kinds = "b" if peer == "smcrd" else "ab"
        for side in kinds:
            self.hosts[side].smc(list(ueids) if side == "b" else [UEID], links > 1, testlink_s)
        self.counts = {side: self.hosts[side].counts() for side in kinds}
        self.links = links
        self.smcr = smcr
        self.devices = devices or [{"type": "verbs", "device": rxe.device("a", i)} for i in range(1, links + 1)]
        self.services = {"ingress": [], "egress": []}
        self.daemons = []

    def gateway(self, way, to_port, **service):
        """Another service of the daemon in side a, which the first one starts: where a client connects."""
        port = self.t.port()
        at = (address("a") if way == "in" else self.t.addr, port)
        to = (self.t.addr if way == "in" else address("b"), to_port)
        name = f"{way}{port}"
        self.services["egress" if way == "in" else "ingress"].append(
            {"name": name, "listen": hostport(*at), "to": hostport(*to), "peer": "linux", **service})
        conf = {"log_level": "info", "smcr": {"links_max": self.links, "group_idle": "1s", "ueids": [UEID], **self.smcr},
                "devices": self.devices,
                **{kind: services for kind, services in self.services.items() if services}}
        if not self.daemons:
            self.daemons.append(Daemon(self.t, "a", conf))
        else:
            d = self.daemons[0]
            d.write_conf(conf)
            d.send_signal(signal.SIGHUP)
            wait_until(lambda: any(x["name"] == name for x in d.services()), f"the daemon has the service {name}")
        return at

    def start(self, way, role, **settings):
        """A server of this role; where its clients connect."""
        client, server = ("b", "a") if way == "in" else ("a", "b")
        gateway = self.peer == "smcrd"
        host = self.t.addr if gateway and way == "in" else address(server)
        kind = "plain" if gateway and server == "a" else settings.get("kind", "smc")
        port, number = self.programs[server].serve(kind, host, role, settings)
        at = self.gateway(way, port, **settings.get("service", {})) if gateway else (host, port)
        return Flow(self, way, role, settings, client, server, at, number, port)

    def run(self, way, role, timeout=60, **settings):
        """One client, to its end; everything by SMC-R, as both kernels say."""
        flow = self.start(way, role, **settings)
        result = flow.finish(flow.client(), timeout)
        flow.only_smcr()
        return result

    def until(self, name, there):
        """A file that both machines see comes, or goes."""
        for share in (rxe.SHARE, pair.PEER_SHARE):
            path = os.path.join(share, name)
            if there:
                with open(path, "w"):
                    pass
            elif os.path.exists(path):
                os.unlink(path)

    def cursors(self):
        """How far each connection is, as all ends say, to find one that stands still."""
        out = []
        for d in self.daemons:
            out += [f"{d.name}: " + " ".join(f"{k}={v}" for k, v in x.items() if not isinstance(v, dict))
                    for x in d.connections()]
        for side in self.counts:
            out += [f"kernel of {side}: " + " ".join(f"{k}={v}" for k, v in x.items())
                    for x in self.hosts[side].connections()]
        return "\n".join(out)

    def fallbacks(self, side):
        before, now = self.counts[side]["fallbacks"], self.hosts[side].counts()["fallbacks"]
        return {code: n - before.get(code, 0) for code, n in now.items() if n != before.get(code, 0)}

    def over_smcr(self, side):
        """Connections of this kernel since the scene began, by role and version."""
        now = self.hosts[side].counts()
        return {k: now[k] - self.counts[side][k] for k in ("client 1", "client 2", "server 1", "server 2")}


class Flow:
    """Clients of one role and their server, which has its own port; middle: that of the connection between the two machines."""

    def __init__(self, scene, way, role, settings, client, server, at, number, server_port):
        self.scene, self.way, self.role, self.settings = scene, way, role, settings
        self.sides = {"client": client, "server": server}
        self.at, self.number, self.server_port = at, number, server_port
        self.middle = server_port if way == "out" else at[1]
        self.kind = "plain" if scene.peer == "smcrd" and client == "a" else settings.get("kind", "smc")
        self.modes = {}

    def client(self, role=None, kind=None, **settings):
        """Starts one; its number."""
        return self.scene.programs[self.sides["client"]].client(kind or self.kind, *self.at, role or self.role,
                                                                {**self.settings, **settings})

    def wait(self, number, timeout=60, patience=0):
        """The client's result; a failure is one here. patience: seconds without a query, as that takes time of both machines."""
        programs = self.scene.programs[self.sides["client"]]
        got = wait_until(lambda: programs.done(number, patience), f"{self.way}: the client {self.role} is done", timeout)
        if "failure" in got:
            said = "\n".join(x for d in self.scene.daemons for x in d.log().split("\n") if "normal end" not in x)[-6000:]
            raise Failure(f"{self.way}: client {self.role}: {got['failure']}; server: {str(self.server())[-600:]}\n{said}")
        for k, n in got["ok"]["modes"].items():
            self.modes[k] = self.modes.get(k, 0) + n
        return got["ok"]["result"]

    def rounds(self):
        return self.scene.programs[self.sides["client"]].rounds()

    def server(self):
        return self.scene.programs[self.sides["server"]].served(self.number)

    def served(self, count=1, timeout=30):
        """Results of the server's connections, when so many have ended."""
        got = wait_until(lambda: (x := self.server()) and len(x["results"]) + len(x["failures"]) >= count and x,
                         f"{self.way}: {count} connections of the server {self.role} have ended", timeout)
        check(not got["failures"], f"{self.way}: server {self.role}: {got['failures'][:3]}")
        return got["results"]

    def finish(self, number, timeout=60):
        """Both ends' results: of the client, and of its server's connections."""
        result = self.wait(number, timeout)
        return result, self.served(1)

    def only_smcr(self):
        """The kernels' word on each connection, and smcrd's."""
        modes = {**self.modes}
        for k, n in self.server()["modes"].items():
            modes[k] = modes.get(k, 0) + n
        check(modes.get("smcr"), f"{self.way}: no connection of the kernel's was asked: {modes}")
        equal(set(modes) - {"smcr", "plain"}, set(), f"{self.way}: modes of the kernel's connections")
        for side in self.scene.counts:
            equal(self.scene.fallbacks(side), {}, f"{self.way}: fallbacks in the kernel of {side}")
        for d in self.scene.daemons:
            c = d.counters()
            equal((c["fallback_local"], c["fallback_peer"]), (0, 0), f"{self.way}: fallbacks of the daemon")
            equal((c["bad_cdc"], c["bad_llc"]), (0, 0), f"{self.way}: messages that the daemon found wrong")
            check(d.established() > 0, f"{self.way}: the daemon has had connections on SMC-R")
