#!/usr/bin/env python3
"""
client_address = "connect": the egress connects to the server by its client's address (doc/transparent.md). The client and the ingress
are in one network namespace (a), the egress and its server in another (b).
"""
from netns import ADDR_A, ADDR_B, Net, enter, namespace

enter()

import os								# noqa: E402
import socket								# noqa: E402
import subprocess							# noqa: E402
import sys								# noqa: E402

import who								# noqa: E402
from clc import read_message						# noqa: E402
from harness import (PATIENCE, SMCRCTL, Daemon, Failure, case, check, connect_to, equal, hostport, logs, main, need, pattern, recv_all,	# noqa: E402
                     same_bytes, turned_away, wait_until)
from programs import Postgres						# noqa: E402

PORT, MIDDLE, SERVER, FAKE = 12000, 13000, 14000, 15000
CLIENT, CLIENT_V6, OTHER = "10.78.5.5", "fd78::5", "10.78.5.6"
OURS = "10.78.9.9"	# of both hosts
CLIENTS = ["10.78.0.0/16", "fd78::/16"]
RULE = ["route add local 0.0.0.0/0 dev lo table 123", "rule add from 127.0.0.0/8 iif lo lookup 123"]
RULE_V6 = ["route add local ::/0 dev lo table 123", "rule add from ::1 iif lo lookup 123"]
NET_RAW = 1 << 13


class Gateways:
    """server: its address in b; rules: lines of ip there."""

    def __init__(self, t, server="127.0.0.1", rules=(), ingress=None, egress=None, v6=False, to=None, linkable=True):
        self.t = t
        self.net = Net(t, 1)
        devices = self.net.add_v6() if v6 else {side: self.net.devices(side) for side in "ab"}
        host_a, host_b = ("fd77:1::1", "fd77:1::2") if v6 else (ADDR_A, ADDR_B)
        self.net.ip("a", f"addr replace {CLIENT}/32 dev lo", f"addr replace {OURS}/32 dev lo", f"addr replace {CLIENT_V6}/128 dev lo nodad")
        self.net.ip("b", f"addr add {OURS}/32 dev lo")
        self.net.b.run([need("ip"), "-6" if v6 else "-4", "-batch", "-"], input="".join(f"{x}\n" for x in rules).encode())
        self.at = (host_a, PORT)
        self.server = who.start(self.net.b, server, SERVER) if server else None
        common = {"log_level": "info", "smcr": {"hold_off": "100ms" if linkable else "1m", "hold_off_max": "1s" if linkable else "1m"}}
        if not linkable:	# no kind of RTR message in common
            devices = {side: [{**x, "rtr": [rtr]} for x in devices[side]] for side, rtr in (("a", "send"), ("b", "read"))}
        self.b = Daemon(t, "b", {
            **common, "devices": devices["b"],
            "egress": [{"name": "x", "listen": hostport(host_b, MIDDLE), "to": hostport(*(to or (server, SERVER))), "client_address": "connect",
                        "clients": CLIENTS, "connect_timeout": "2s", **(egress or {})}]}, wrap=self.net.b.wrap())
        self.a = Daemon(t, "a", {
            **common, "devices": devices["a"],
            "ingress": [{"name": "x", "listen": hostport(host_a, PORT), "to": hostport(host_b, MIDDLE), "forward_client": "required",
                         **(ingress or {})}]})

    def connect(self, source=CLIENT, to=None):
        """A client that has this address."""
        s = connect_to(to or self.at, 20, source=source)
        self.t.later(s.close)
        return s

    def works(self, source=CLIENT, seen=None, to=None):
        """The server sees this address, and the bytes come back."""
        data = pattern(100000)
        s = self.connect(source, to)
        equal(who.ask(s)[0][0], seen or source, "the client that the server sees")
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        same_bytes(recv_all(s), data, "echo")
        s.close()

    def refused(self, source=CLIENT, to=None):
        check(turned_away(self.connect, source, to), "a client that is refused")

    def reload(self, **change):
        self.b.write_conf(dict(self.b.conf, egress=[dict(e, **change) for e in self.b.conf["egress"]]))
        self.b.ctl_text("reload")


def rights(d):
    """Of each thread: permitted and effective."""
    return {int(line.split()[1], 16) for status in d.threads("status").values() for line in status.split("\n")
            if line.startswith(("CapPrm", "CapEff"))}


def serves(t, v6):
    g = Gateways(t, "::1" if v6 else "127.0.0.1", RULE_V6 if v6 else RULE, v6=v6)
    for _ in range(4):
        g.works(CLIENT_V6 if v6 else CLIENT)
    equal([s["fallbacks"] for d in (g.a, g.b) for s in d.services()], [0, 0], "fallbacks")
    check(v6 or t.workers is not None or g.a.counters()["opened_client"] > 0, "later ones open over the link")


case("a server on loopback sees its clients, on SMC-R and over open links")(lambda t: serves(t, False))
case("the same on IPv6")(lambda t: serves(t, True))


@case("on TCP as well: after a first contact that failed, and while the peer is held off", one_worker="each holds it off by itself")
def _(t):
    g = Gateways(t, rules=RULE, linkable=False)
    for _ in range(4):
        g.works()
    equal(sum(s["fallbacks"] for s in g.b.services()), 4, "fallbacks")
    counters = g.a.counters()
    check(counters["first_contacts_failed"] > 0 and counters["fallback_held_off"] > 0, f"in both ways: {counters}")


@case("who may not be named: addresses outside of clients, special ones, this host's, unless they are listed")
def _(t):
    g = Gateways(t, rules=RULE, ingress={"listen": hostport("0.0.0.0", PORT)}, egress={"clients": ["0.0.0.0/0"]})
    on_loopback = {"source": "127.0.0.1", "to": ("127.0.0.1", PORT)}
    g.refused(OURS)
    g.refused(**on_loopback)
    equal(g.b.services()[0]["refused_allow"], 2, "refusals are counted")
    logs(g.b, "clients does not list")
    g.reload(clients=["0.0.0.0/0", OURS, "127.0.0.1"])
    g.works(OURS)
    g.works(**on_loopback)
    g.reload(clients=["10.99.0.0/16"])
    g.refused()
    logs(g.b, "not in clients", f"client={CLIENT}:")


class Claims:
    """A hostile peer, which sends the Proposal that a real ingress has made, with another client in it."""

    def __init__(self, g, client):
        self.g = g
        with socket.create_server((ADDR_A, FAKE)) as listener:
            listener.settimeout(20 * PATIENCE)
            s = connect_to((client, PORT))
            with listener.accept()[0] as peer, s:
                self.proposal = read_message(peer)[1]
        self.at = self.proposal.index(b"smrt") + 6	# type, length, kind
        equal(self.proposal[self.at], 0x81, "the client's type")

    def sends(self, port, address):
        """What a peer gets that claims this client."""
        packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
        body = bytearray(self.proposal)
        equal(body[self.at + 1], 3 + len(packed), "length of the client")
        body[self.at + 3:self.at + 5 + len(packed)] = port.to_bytes(2, "big") + packed
        s = connect_to((ADDR_B, MIDDLE))
        self.g.t.later(s.close)
        s.sendall(bytes(body))
        return s


@case("a hostile peer claims what no client may be: reset, and the server sees nothing of it", timeout=120)
def _(t):
    g = Gateways(t, rules=RULE, ingress={"listen": f"[::]:{PORT}", "to": hostport(ADDR_A, FAKE)}, egress={"clients": ["0.0.0.0/0", "::/0"]})
    g.net.ip("b", "addr add fd78::9/128 dev lo nodad")
    forbidden = {CLIENT: ["127.0.0.1", "127.99.0.1", OURS, ADDR_B, "10.77.1.2", "0.0.0.0", "0.1.2.3", "224.0.0.1", "240.0.0.1",
                          "255.255.255.255", "169.254.169.254"],
                 CLIENT_V6: ["::", "::1", "::ffff:127.0.0.1", f"::ffff:{CLIENT}", "fd78::9", "fe80::1", "ff02::1"]}
    for client, addresses in forbidden.items():
        peer = Claims(g, client)
        for address in addresses:
            check(turned_away(peer.sends, 999, address), f"a peer that claims {address}")
        check(turned_away(peer.sends, 0, client), "a peer that claims port 0")
    equal(g.server.log().count("came from"), 0, "connections at the server")
    peer = Claims(g, CLIENT)
    peer.sends(999, "10.78.7.7")
    wait_until(lambda: "came from 10.78.7.7 " in g.server.log(), "one that may be named comes to the server")


@case("clients that the server cannot see: of another family, on UNIX sockets; refused in words, or by our own address")
def _(t):
    path = t.path("s")
    g = Gateways(t, v6=True, server="127.0.0.1", rules=(), ingress={"listen": f"unix:{path}"})
    own = "127.0.0.1"

    g.connect = lambda source, to: connect_to(path)
    g.refused()
    logs(g.b, "is on a UNIX socket")
    g.reload(client_fallback=True)
    g.works(seen=own)
    del g.connect
    g.a.write_conf(dict(g.a.conf, ingress=[dict(g.a.conf["ingress"][0], listen=hostport(*g.at))]))
    g.a.ctl_text("reload")
    g.works(CLIENT_V6, seen=own)
    g.reload(client_fallback=False)
    g.refused(CLIENT_V6)
    logs(g.b, "another family")


@case("without the rule: no answer comes back, an outage of its own kind, which a client that is answered ends")
def _(t):
    g = Gateways(t, egress={"connect_timeout": "500ms"})
    for _ in range(2):
        g.refused()
    words = f"the server's answers to {CLIENT} do not come back here: see smcrctl routes x"
    logs(g.b, words, times=1)
    check(words in str(g.b.ctl("service", "x")), "smcrctl has it")
    check(words in g.b.ctl_text("events"), "the event has it")
    out = t.run([SMCRCTL, "--socket", g.b.control, "doctor"], status=None).decode()
    check(words in out, f"doctor has it: {out}")
    g.a.ctl("check", hostport(ADDR_B, MIDDLE))	# connects by b's own address, which is answered
    check(words in str(g.b.ctl("service", "x")), "that is not what has ended it")
    g.net.ip("b", *RULE)
    g.works()
    logs(g.b, "server available again")


@case("no port is free for the client's address: reset and counted, and the server is not down for that")
def _(t):
    g = Gateways(t, rules=RULE, egress={"clients": ["10.0.0.0/8"]})
    g.net.b.run(["sh", "-c", "echo 30000 30001 > /proc/sys/net/ipv4/ip_local_port_range"])
    busy = [g.connect(), g.connect()]
    for s in busy:
        who.ask(s)
    g.refused()
    g.works(ADDR_A)	# another client has its own ports
    equal(g.b.services()[0]["client_bind_failed"], 1, "counted")
    check("unreachable" not in g.b.log(), "no outage of the server")


@case("CAP_NET_RAW is kept exactly when it is needed; a reload that first needs it is refused, and a take-over brings it")
def _(t):
    g = Gateways(t, rules=RULE)
    equal(rights(g.b), {NET_RAW}, "rights of each thread")
    check("CAP_NET_RAW" in g.b.status()["confinement"]["capabilities"]["text"], "status names it")
    equal(rights(g.a), {0}, "rights of the ingress")
    off, on = dict(client_address="off"), dict(client_address="connect")
    without = g.b.successor(dict(g.b.conf, egress=[dict(g.b.conf["egress"][0], **off)]))
    equal(rights(without), {0}, "rights without such a service")
    g.b = without
    try:
        g.reload(**on)
    except Failure as e:
        check('service x: client_address = "connect" needs CAP_NET_RAW' in str(e) and "take-over" in str(e), e)
    else:
        raise Failure("a reload without the right")
    g.b = without.successor(without.conf)
    equal(rights(g.b), {NET_RAW}, "rights after the take-over")
    g.works()


@case("servers that peers choose: one of another host that is silent is no outage, one of this host is")
def _(t):
    silent, here = "10.99.0.1", "10.77.1.2"
    nets = [f"{silent}:{SERVER}", f"{here}:{SERVER}"]
    g = Gateways(t, here, ingress={"listen": hostport("0.0.0.0", PORT), "to": "original", "via": [{"nets": nets, "peer": f"{ADDR_B}:{MIDDLE}"}]},
                 egress={"to": "requested", "to_allow": nets, "allow": ["10.77.0.0/16"], "connect_timeout": "500ms"})
    g.net.ip("a", f"route add {silent} via 10.77.1.2")
    g.net.ip("b", f"route add {silent} dev b1")
    t.run([need("nft"), "-f", "-"], input=f"""table inet smcrd_all {{ chain out {{ type nat hook output priority -100;
ip daddr {{ {silent}, {here} }} tcp dport {SERVER} redirect to :{PORT}
}}
}}""".encode())
    t.later(lambda: t.run([need("nft"), "delete table inet smcrd_all"]))
    g.refused(to=(silent, SERVER))
    equal(g.b.ctl("service", "x")["outage"]["text"], "", "outage")
    g.refused(to=(here, SERVER))
    check("do not come back here" in g.b.ctl("service", "x")["outage"]["text"], "a server of this host")


class Rows(Gateways):
    """Rules as smcrctl routes prints them, loaded by a shell in b, three times each: their effects must not be chance."""

    def load(self):
        self.b.t = self.net.b	# the lines depend on where smcrctl runs
        lines = self.b.ctl_text("routes", "x")
        self.b.t = self.t
        self.net.b.run(["sh", "-ec", lines])
        return lines

    def unload(self):
        script = "for f in 4 6; do while ip -$f rule del lookup 123; do :; done; ip -$f route flush table 123; done 2>/dev/null; " \
            "nft delete table inet smcrd 2>/dev/null; for s in tcp_fwmark_accept fwmark_reflect; do echo 0 > /proc/sys/net/ipv4/$s; done; " \
            "echo 0 > /proc/sys/net/ipv6/fwmark_reflect"
        self.net.b.run(["sh", "-c", script])

    def rp_filter(self, value):
        """On all interfaces, as the larger one of an interface's and all's counts."""
        self.net.b.run(["sh", "-c", f"for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo {value} > $f; done"])

    def proves(self, source, row, also=lambda: None, down=lambda outage: "Connection refused" in outage):
        """The row three times from nothing, with each rp_filter; without it no answer comes. down: the outage when the server refuses."""
        for _ in range(3):
            self.refused(source)
            check(row in self.load(), f"the row with {row!r}")
            for value in (0, 1, 2):
                self.rp_filter(value)
                self.works(source)
                also()
            self.unload()
        self.load()
        self.server.kill()
        self.refused(source)
        check(down(self.b.ctl("service", "x")["outage"]["text"]), "a server that is down is seen as that")
        self.unload()


def on_loopback(t, v6):
    g = Rows(t, "::1" if v6 else "127.0.0.1", v6=v6, egress={"connect_timeout": "300ms"})
    g.proves(CLIENT_V6 if v6 else CLIENT, "a server on the loopback interface")


case("routes: a server on loopback", timeout=120)(lambda t: on_loopback(t, False))
case("routes: a server on loopback, IPv6", timeout=120)(lambda t: on_loopback(t, True))


def by_mark(t, v6):
    """Direct clients are answered as before."""
    server, source = ("fd77:1::2", CLIENT_V6) if v6 else ("10.77.1.2", CLIENT)
    g = Rows(t, server, v6=v6, egress={"connect_timeout": "300ms", "socket_mark": 0x5e})
    g.net.ip("a", "route add 10.77.1.2/32 dev a1", force=True)
    g.net.b.run([need("ip"), "-6" if v6 else "-4", "route", "add", source, *(["via", "fd77:1::1"] if v6 else ["via", "10.77.1.1"])])

    def reaches():
        s = connect_to((server, SERVER), 5, source=source)
        equal(who.ask(s)[0][0], source, "a direct client")
        s.close()
    g.proves(source, "by the mark of smcrd's connections", reaches)


case("routes: a server of this host that others use, too, by socket_mark", timeout=120)(lambda t: by_mark(t, False))
case("routes: the same on IPv6", timeout=120)(lambda t: by_mark(t, True))

@case("routes: a server of this host for smcrd's clients alone: the row swallows the answers to others", timeout=120)
def _(t):
    g = Rows(t, "10.77.1.2", egress={"connect_timeout": "300ms"})
    g.net.b.run([need("ip"), "route", "add", CLIENT, "via", "10.77.1.1"])

    def is_silent():
        with socket.socket() as s:
            s.bind((CLIENT, 0))	# raw: no answer is what it waits for
            s.settimeout(0.3)	# raw: for what must not come
            try:
                s.connect(("10.77.1.2", SERVER))	# raw: must fail
            except TimeoutError:
                return
        raise Failure("a direct client was answered")
    who.ask(connect_to(("10.77.1.2", SERVER), 5, source=CLIENT))
    g.proves(CLIENT, "whose clients all come by smcrd", is_silent)


def behind(t, v6, server, **conf):
    """Gateways, and a third namespace, c, whose only way leads over b: with them, the address of the server there."""
    need("nft")
    side, pid = namespace(t)
    here, there, bits, flag = ("fd79::1", "fd79::2", 64, "-6") if v6 else ("10.79.0.1", "10.79.0.2", 24, "-4")
    dad = " nodad" if v6 else ""
    g = Rows(t, server, v6=v6, to=(there, SERVER), **conf)
    g.net.ip("b", f"link add c1 type veth peer name b1 netns {pid}", f"addr add {here}/{bits} dev c1{dad}", "link set c1 up")
    side.run([need("ip"), "-batch", "-"], input=f"link set lo up\naddr add {there}/{bits} dev b1{dad}\nlink set b1 up\n".encode())
    side.run([need("ip"), flag, "route", "add", "default", "via", here])
    far = who.start(side, there, SERVER)
    g.server = g.server or far
    # Once by b's own address: neighbours are found.
    g.net.b.run([sys.executable, "-c", f"import socket; socket.create_connection(('{there}', {SERVER}), 10)"])
    return g, there


def elsewhere(t, v6):
    g, _ = behind(t, v6, None, egress={"connect_timeout": "300ms", "socket_mark": 0x5d})
    g.proves(CLIENT_V6 if v6 else CLIENT, "a server on another host")


case("routes: a server on another host, behind this one", timeout=120)(lambda t: elsewhere(t, False))
case("routes: a server on another host, IPv6", timeout=120)(lambda t: elsewhere(t, True))


def anywhere(t, v6):
    """Peers choose the server: of this host, and behind it. Connections to the latter have the same mark."""
    here, via, source, flag, host = ("fd77:1::2", "fd77:1::1", CLIENT_V6, "-6", "::") if v6 else ("10.77.1.2", "10.77.1.1", CLIENT, "-4", "0.0.0.0")
    far = "fd79::2" if v6 else "10.79.0.2"
    nets = [hostport(h, SERVER) for h in (here, far)]
    g, _ = behind(t, v6, here, egress={"to": "requested", "to_allow": nets, "allow": ["10.77.0.0/16", "fd77::/16"], "connect_timeout": "300ms",
                                       "socket_mark": 0x5d},
                  ingress={"listen": hostport(host, PORT), "to": "original",
                           "via": [{"nets": nets, "peer": hostport("fd77:1::2" if v6 else ADDR_B, MIDDLE)}]})
    t.run([need("ip"), flag, "route", "add", far, "via", here])
    g.net.b.run([need("ip"), flag, "route", "add", source, "via", via])
    t.run([need("nft"), "-f", "-"], input=f"""table inet smcrd_all {{ chain out {{ type nat hook output priority -100;
{"ip6" if v6 else "ip"} daddr {{ {here}, {far} }} tcp dport {SERVER} redirect to :{PORT}
}}
}}""".encode())
    t.later(lambda: t.run([need("nft"), "delete table inet smcrd_all"]))
    g.at = (here, SERVER)
    # Without the row the outage is that no answer comes.
    g.proves(source, "other addresses of this host", lambda: g.works(source, to=(far, SERVER)), lambda outage: outage == "")


case("routes: servers that peers choose, of this host and behind it", timeout=120)(lambda t: anywhere(t, False))
case("routes: the same on IPv6", timeout=120)(lambda t: anywhere(t, True))


def with_program(t):
    """The server will be a program on loopback. A client that connects to an address of its own host comes from it: CLIENT or OTHER."""
    g = Gateways(t, None, RULE, to=("127.0.0.1", SERVER), ingress={"listen": hostport("0.0.0.0", PORT)})
    g.net.ip("a", f"addr replace {OTHER}/32 dev lo")
    return g


@case("PostgreSQL: pg_hba.conf goes by the client's address", timeout=120)
def _(t):
    psql = need("psql")
    g = with_program(t)
    pg = Postgres(g.net.b, "127.0.0.1", unix=False, hba=[f"host all all {CLIENT}/32 trust", "host all all 10.0.0.0/8 reject"])
    g.b.write_conf(dict(g.b.conf, egress=[dict(g.b.conf["egress"][0], to=hostport("127.0.0.1", pg.port))]))
    g.b.ctl_text("reload")
    line = [psql, "-p", str(PORT), "-U", "postgres", "-Atc", "select inet_client_addr()"]
    equal(t.run([*line, "-h", CLIENT]).decode().strip(), CLIENT, "the client for PostgreSQL")
    out = subprocess.run([*line, "-h", OTHER], capture_output=True, text=True)
    check(out.returncode != 0 and f'rejects connection for host "{OTHER}"' in out.stderr, out.stderr)


@case("nginx: the access log has the client's address")
def _(t):
    nginx, curl = need("nginx", "curl")
    g = with_program(t)
    where = t.path("nginx")
    os.mkdir(where)
    with open(f"{where}/nginx.conf", "w") as f:
        f.write(f"daemon off; pid {where}/pid; error_log stderr; events {{ }}\n"
                f"http {{ access_log {where}/log; server {{ listen 127.0.0.1:{SERVER}; return 200 'hello\\n'; }} }}\n")
    p = g.net.b.spawn([nginx, "-p", where, "-e", f"{where}/error.log", "-c", f"{where}/nginx.conf"], "nginx")
    wait_until(lambda: p.alive() and os.path.exists(f"{where}/pid"), "nginx runs")
    equal(t.run([curl, "-sS", f"http://{CLIENT}:{PORT}/"]), b"hello\n", "page")

    def lines():
        with open(f"{where}/log") as f:
            return f.read().splitlines()
    wait_until(lines, "nginx logs it")
    check(all(line.startswith(f"{CLIENT} ") for line in lines()), lines())


@case("sshd: from= of a key goes by the client's address")
def _(t):
    sshd, ssh, keygen = need("sshd", "ssh", "ssh-keygen")
    g = with_program(t)
    where = t.path("ssh")
    os.mkdir(where)
    os.makedirs("/run/sshd", 0o755, exist_ok=True)	# of sshd's separation of privileges
    for name in ("host", "key"):
        t.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", f"{where}/{name}"])
    with open(f"{where}/key.pub") as key, open(f"{where}/authorized", "w") as f:
        f.write(f'from="{CLIENT}" {key.read()}')
    with open(f"{where}/config", "w") as f:
        f.write(f"ListenAddress 127.0.0.1:{SERVER}\nHostKey {where}/host\nAuthorizedKeysFile {where}/authorized\n"
                f"StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile {where}/pid\nPasswordAuthentication no\n")
    p = g.net.b.spawn([sshd, "-D", "-e", "-f", f"{where}/config"], "sshd")
    wait_until(lambda: "listening on" in p.log(), "sshd listens")
    line = [ssh, "-F", "none", "-i", f"{where}/key", "-p", str(PORT), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
            "-o", f"UserKnownHostsFile={where}/known", "-o", "LogLevel=ERROR"]
    equal(t.run([*line, f"root@{CLIENT}", "echo $SSH_CLIENT"]).decode().split()[0], CLIENT, "the client for sshd")
    out = subprocess.run([*line, f"root@{OTHER}", "true"], capture_output=True, text=True)
    check(out.returncode == 255 and "Permission denied" in out.stderr, out.stderr)


@case("a start without the right ends with the reason, and an unprivileged user with it alone is enough")
def _(t):
    setpriv = need("setpriv")
    conf = {"devices": [{"type": "siw", "address": "127.0.0.1"}],
            "egress": [{"name": "x", "listen": "127.0.0.1:13000", "to": "127.0.0.1:9", "client_address": "connect", "clients": CLIENTS}]}
    Net(t, 1)
    for caps, starts in (("-all", False), ("-all,+net_admin", False), ("-all,+net_raw", True)):
        ambient = [f"--ambient-caps={caps}"] if starts else []
        d = Daemon(t, "d", conf, start=False, wrap=[setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={caps}", *ambient])
        os.chmod(t.dir, 0o755)
        os.chown(d.dir, 65534, 65534)
        if starts:
            d.start()
            equal(rights(d), {NET_RAW}, "rights")
            d.finish()
            continue
        d.start(ready=False)
        d.expect_dead = True
        wait_until(lambda d=d: not d.alive(), "it ends")
        logs(d, 'client_address = "connect" needs CAP_NET_RAW; see smcrd(8)')
        equal(d.popen.returncode, 78, "its exit status, which systemd does not answer with another start")


main()
