#!/usr/bin/env python3
"""Names of targets, looked up again by their TTL, SRV records; several targets, of which some fail. With a name server of our own,
at the address that a resolv.conf of our own names."""
import os
import signal
import socket
import subprocess
import tempfile
import threading

import netns
from dns import REFUSED, SERVFAIL, Name, NameServer
from harness import (SMCRD, Daemon, Pair, Server, case, check, connect_to, echo, equal, hostport, in_thread, logged, main,
                     need, need_built_with, recv_exact, same_bytes, soft_device, wait_until)

CONF = "/etc/resolv.conf"
PATIENT = 30


def write_resolv_conf(server):
    with open(CONF, "w") as f:
        f.write(f"nameserver {server}\n")


def own_file(path, text):
    """Over the host's, in this mount namespace alone."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
        f.write(text)
        f.flush()
        os.chmod(f.name, 0o644)
        subprocess.run([need("mount"), "--bind", f.name, path], check=True)


def own_host():
    subprocess.run([need("ip"), "link", "set", "lo", "up"], check=True)
    for host in HOSTS:
        subprocess.run([need("ip"), "addr", "add", host + "/32", "dev", "lo"], check=True)
    subprocess.run([need("mount"), "--make-rprivate", "/"], check=True)
    own_file(CONF, "nameserver 127.0.0.1\n")
    own_file("/etc/hosts", "127.0.0.1 localhost\n127.0.0.1 here.test\n")


def says(text):
    """A server that sends its name to clients."""
    def fn(s):
        s.sendall(text)
        echo(s)
    return fn


def name_server(t, **kw):
    """What it says is looked up by c-ares alone."""
    need_built_with("c-ares", "ares_init_options")
    return NameServer(t, **kw)


class Names:
    """A daemon with a plain egress for each of `to`, and ingresses in front: client -> a -> b -> server."""

    def __init__(self, t, to, egress=None):
        self.t = t
        self.ports = {name: t.port() for name in to}
        self.middle = {name: t.port() for name in to}
        device = soft_device(t.addr)
        self.b = Daemon(t, "b", {
            "log_level": "info", "devices": [device],
            "egress": [{"name": name, "listen": hostport(t.addr, self.middle[name]), "to": target, **(egress or {})}
                       for name, target in to.items()]})
        self.a = Daemon(t, "a", {
            "log_level": "info", "devices": [device],
            "ingress": [{"name": name, "listen": hostport(t.addr, self.ports[name]), "to": hostport(t.addr, self.middle[name])}
                        for name in to]})

    def who(self, name):
        """What the server says that a client of this service gets; b"" when it is turned away."""
        try:
            with connect_to((self.t.addr, self.ports[name]), PATIENT) as s:
                return s.recv(16)
        except ConnectionError:
            return b""

    def service(self, name):
        return self.b.ctl("service", name)

    def name_error(self, name):
        return self.service(name)["targets"][0]["name_error"]

    def addresses(self, name):
        return {a["address"]: a for a in self.service(name)["addresses"]}

    def again(self):
        """All names are resolved again."""
        self.b.ctl_text("reload")


def lines(daemon, *texts):
    return [x for x in daemon.log().splitlines() if all(text in x for text in texts)]


def server(t, text, host, port):
    return Server(t, says(text), host=host, port=port)


HOST_A, HOST_B, HOST_C = HOSTS = "192.0.2.11", "192.0.2.12", "192.0.2.13"		# of this host, and no loopback addresses


@case("a missing name delays its own service only, and is found later; then its address changes",
      timeout=90)
def _(t):
    dns, port = name_server(t), t.port()
    server(t, b"a", HOST_A, port), server(t, b"b", HOST_B, port)
    n = Names(t, {"x": hostport(HOST_A, port), "y": f"db.test:{port}"})
    wait_until(lambda: "NXDOMAIN" in n.name_error("y"), "the name is known not to be there")
    equal(n.who("x"), b"a", "the other service works")
    equal(n.who("y"), b"", "this one does not")
    waits = {s["name"]: s["waiting"] for s in n.b.services()}
    equal(waits["x"], "", "nothing to wait for")
    check(waits["y"].startswith("waiting for the name db.test: NXDOMAIN"), waits["y"])
    check("y is waiting for the name db.test: NXDOMAIN" in n.b.ctl_text("status"), "in words")
    check("NXDOMAIN" in n.b.ctl_text("service", "y"), "in words, of the service")
    dns.names["db.test"] = Name(a=[HOST_A])
    wait_until(lambda: n.service("y")["waiting"] == "", "it is looked up again by itself", PATIENT)
    equal(n.who("y"), b"a", "works")
    logged(n.b, "name not found", "db.test", times=1)
    logged(n.b, "name found again", "db.test", times=1)
    with connect_to((t.addr, n.ports["y"]), PATIENT) as s:
        equal(s.recv(1), b"a", "a connection from before the change")
        dns.names["db.test"] = Name(a=[HOST_B])
        wait_until(lambda: n.who("y") == b"b", "new connections go to the new address", PATIENT)
        s.sendall(b"still there")
        same_bytes(recv_exact(s, 11), b"still there", "the old one goes on")
    equal(list(n.addresses("y")), [hostport(HOST_B, port)], "addresses")
    asked = dns.count("db.test")
    check(asked < 30, f"{asked} questions")


@case("probes follow a name from an address without a route, whose connects fail at once, to its new one", timeout=90, one_worker="its prober")
def _(t):
    dns, port = name_server(t), t.port()
    server(t, b"a", HOST_A, port)
    dns.names["db.test"] = Name(a=["198.51.100.7"])
    n = Names(t, {"x": f"db.test:{port}"}, egress={"probe": {"kind": "connect", "interval": "200ms", "rise": 1, "fall": 1}})
    wait_until(lambda: n.service("x")["health"] == "down", "no route leads there")
    dns.names["db.test"] = Name(a=[HOST_A])
    wait_until(lambda: n.service("x")["health"] == "up", "the new address is probed", PATIENT)
    equal([p["address"] for p in n.service("x")["probed"]], [hostport(HOST_A, port)], "what is probed")


@case("names whose lookup fails keep their addresses", timeout=90)
def _(t):
    dns, port = name_server(t), t.port()
    server(t, b"a", HOST_A, port)
    broken = {"servfail": (Name(rcode=SERVFAIL), "SERVFAIL"), "refused": (Name(rcode=REFUSED), "REFUSED"),
              "gone": (None, "NXDOMAIN"), "empty": (Name(), "NODATA"), "silent": (Name(mode="silent"), "timeout"),
              "garbage": (Name(a=[HOST_B], mode="garbage"), ""), "short": (Name(a=[HOST_B], mode="short"), ""),
              "other": (Name(a=[HOST_B], mode="other"), ""), "any": (Name(a=["0.0.0.0"]), "DNS may not choose")}
    dns.names = {f"{x}.test": Name(a=[HOST_A], ttl=3600) for x in broken}
    n = Names(t, {x: f"{x}.test:{port}" for x in broken})
    for x in broken:
        equal(n.who(x), b"a", f"{x} at first")
    dns.names = {f"{x}.test": entry for x, (entry, _) in broken.items() if entry}
    n.again()
    for x, (_, words) in broken.items():
        wait_until(lambda: n.name_error(x) != "", f"it is seen that {x} has no good answer", PATIENT)
        check(words in n.name_error(x), f"{x}: {n.name_error(x)}")
        equal(n.who(x), b"a", f"{x} all the same")
        equal(list(n.addresses(x)), [hostport(HOST_A, port)], f"addresses of {x}")
    dns.names = {f"{x}.test": Name(a=[HOST_A, HOST_B], mode="truncated") for x in broken}
    n.again()
    wait_until(lambda: all(len(n.addresses(x)) == 2 for x in broken), "the whole answers come over TCP", PATIENT)
    check(("gone.test", 1, "tcp") in dns.asked, "asked over TCP")


@case("SRV records: priorities and weights count, and a host without an address is ignored", timeout=90)
def _(t):
    dns, (p1, p2, p3) = name_server(t), (t.port(), t.port(), t.port())
    servers = {b"a": server(t, b"a", HOST_A, p1), b"b": server(t, b"b", HOST_B, p2), b"c": server(t, b"c", HOST_C, p3)}
    dns.names.update({
        "_db._tcp.test": Name(srv=[(20, 1, p3, "c.test"), (10, 3, p1, "a.test"), (10, 1, p2, "b.test"), (5, 1, 1, "no.test")],
                              ttl=3600),
        "a.test": Name(a=[HOST_A]), "b.test": Name(a=[HOST_B]), "c.test": Name(a=[HOST_C])})
    n = Names(t, {"x": "srv:_db._tcp.test"}, {"target_retry": "1s"})
    check(n.who("x") in (b"a", b"b"), "the first client waits for the answer")
    equal(len(n.addresses("x")), 3, "its hosts")
    equal([(a["address"], a["priority"], a["weight"]) for a in n.service("x")["addresses"]],
          [(hostport(HOST_A, p1), 10, 3), (hostport(HOST_B, p2), 10, 1), (hostport(HOST_C, p3), 20, 1)], "in their order")
    got = [n.who("x") for _ in range(60)]
    check(got.count(b"a") > got.count(b"b") > 0 and got.count(b"a") + got.count(b"b") == 60, f"by weight: {got}")
    servers[b"a"]._close(), servers[b"b"]._close()
    equal([n.who("x") for _ in range(5)], [b"c"] * 5, "the next priority")
    dns.names["_db._tcp.test"] = Name(srv=[(0, 0, 0, "")])
    n.again()
    wait_until(lambda: "name no host" in n.name_error("x"), "a service that is decidedly not there", PATIENT)


@case("SRV records and their hosts are resolved again by their TTLs, without a reload", timeout=90)
def _(t):
    dns, (p1, p2) = name_server(t), (t.port(), t.port())
    server(t, b"a", HOST_A, p1), server(t, b"b", HOST_B, p2), server(t, b"c", HOST_C, p2)
    dns.names.update({"_db._tcp.test": Name(srv=[(1, 1, p1, "a.test")], ttl=1),
                      "a.test": Name(a=[HOST_A], ttl=3600), "b.test": Name(a=[HOST_B], ttl=3600)})
    n = Names(t, {"x": "srv:_db._tcp.test"})
    equal(n.who("x"), b"a", "at first")
    with connect_to((t.addr, n.ports["x"]), PATIENT) as s:
        equal(s.recv(1), b"a", "a connection from before the change")
        dns.names["_db._tcp.test"] = Name(srv=[(1, 1, p2, "b.test")], ttl=3600)
        dns.names["b.test"] = Name(a=[HOST_B], ttl=1)
        wait_until(lambda: n.who("x") == b"b", "new connections go to the new record's host and port", PATIENT)
        s.sendall(b"still there")
        same_bytes(recv_exact(s, 11), b"still there", "the old one goes on")
    equal(list(n.addresses("x")), [hostport(HOST_B, p2)], "addresses")
    dns.names["b.test"] = Name(a=[HOST_C], ttl=1)
    wait_until(lambda: n.who("x") == b"c", "new connections go to the host's new address", PATIENT)
    equal(list(n.addresses("x")), [hostport(HOST_C, p2)], "addresses")
    check(dns.count("_db._tcp.test") < 20, f"{dns.count('_db._tcp.test')} questions")
    equal(lines(n.b, "reload"), [], "no reload")


@case("resolv.conf is read again after a change")
def _(t):
    dns, port = name_server(t), t.port()
    server(t, b"a", HOST_A, port)
    dns.names["db.test"] = Name(a=[HOST_A])
    t.later(lambda: write_resolv_conf("127.0.0.1"))
    write_resolv_conf("127.0.0.2")		# no answer there
    n = Names(t, {"x": f"db.test:{port}"})
    wait_until(lambda: "no name server can be reached" in n.name_error("x"), "the name server is not there", PATIENT)
    equal(n.who("x"), b"", "turned away")
    write_resolv_conf("127.0.0.1")
    wait_until(lambda: n.service("x")["waiting"] == "", "the other name server is asked", PATIENT)
    equal(n.who("x"), b"a", "works")


@case("smcrd -t resolves SRV records, and tries their servers")
def _(t):
    dns, port, middle = name_server(t), t.port(), t.port()
    there = server(t, b"a", HOST_A, port)
    path = os.path.join(t.dir, "srv.conf")
    with open(path, "w") as f:
        f.write(f'egress = ( {{ name = "x"; listen = "{hostport(t.addr, middle)}"; to = "srv:_db._tcp.test"; }} );\n')

    def advice():
        return [x for x in t.run([SMCRD, "-t", "-f", path], stderr=subprocess.STDOUT).decode().splitlines() if "warning" in x]

    def advises(text, what):		# within a second; the name server of this test may need longer
        wait_until(lambda: text in "".join(advice()) if text else advice() == [], what, PATIENT)

    advises("cannot resolve srv:_db._tcp.test now: NXDOMAIN", "a name that is not there")
    dns.names.update({"_db._tcp.test": Name(srv=[(1, 1, port, "a.test")]), "a.test": Name(a=[HOST_A])})
    advises("", "all is there")
    there._close()
    advises("its server srv:_db._tcp.test cannot be connected now: Connection refused", "no server")
    dns.names["_db._tcp.test"] = Name(mode="silent")
    advises("no name server has answered yet", "no answer in time")


@case("loopback and other special addresses are refused from a name server, accepted from /etc/hosts", timeout=90)
def _(t):
    dns, port = name_server(t), t.port()
    server(t, b"a", HOST_A, port), server(t, b"l", "127.0.0.1", port)
    bad = {"lo": Name(a=["127.0.0.1"]), "net": Name(a=["127.255.1.2"]), "link": Name(a=["169.254.1.1"]), "multi": Name(a=["224.0.0.1"]),
           "all": Name(a=["255.255.255.255"]), "any": Name(a=["0.0.0.0"]), "lo6": Name(aaaa=["::1"]), "any6": Name(aaaa=["::"]),
           "link6": Name(aaaa=["fe80::1"]), "multi6": Name(aaaa=["ff02::1"]), "mapped": Name(aaaa=["::ffff:127.0.0.1"])}
    dns.names = {f"{x}.test": name for x, name in bad.items()}
    dns.names.update({"both.test": Name(a=["127.0.0.1", HOST_A]), "_lo._tcp.test": Name(srv=[(1, 1, port, "lo.test")]),
                      "_localhost._tcp.test": Name(srv=[(1, 1, port, "localhost")]),
                      "_here._tcp.test": Name(srv=[(1, 1, port, "here.test")])})
    srv = {x: f"srv:_{x[3:]}._tcp.test" for x in ("srvlo", "srvlocalhost", "srvhere")}
    n = Names(t, {**{x: f"{x}.test:{port}" for x in bad}, **srv, "both": f"both.test:{port}", "here": f"here.test:{port}",
                  "localhost": f"localhost:{port}"})
    for x in [*bad, *srv]:
        wait_until(lambda: "DNS may not choose" in n.name_error(x), f"{x} has no address", PATIENT)
        equal(n.who(x), b"", f"{x} turns clients away")
    equal(list(n.addresses("both")), [hostport(HOST_A, port)], "what is left")
    equal(n.who("both"), b"a", "the other address")
    for x in ("here", "localhost"):
        equal(n.who(x), b"l", f"{x} is in /etc/hosts")
    n.again()
    wait_until(lambda: dns.count("both.test") >= 4, "it is looked up again", PATIENT)
    for x in ("lo.test", "both.test"):
        told = logged(n.b, "address of a name left out", f"name={x}:{port}", f"address=127.0.0.1:{port}")
        equal(len(told), 1, f"{x} is logged once: {told}")


@case("a name server cannot direct services to the daemon's own listeners, wildcards included", timeout=90)
def _(t):
    dns, port = name_server(t), t.port()
    n = Names(t, {"x": f"loop.test:{port}", "y": f"other.test:{port}"})
    dns.names = {"loop.test": Name(a=[HOST_A, HOST_B]), "other.test": Name(a=["192.0.2.77"])}
    for service, at in zip(n.b.conf["egress"], ("0.0.0.0", HOST_C)):
        service["listen"] = hostport(at, port) if at != HOST_C else hostport(at, port + 1)
    n.b.write_conf(n.b.conf)
    n.again()
    wait_until(lambda: "where this daemon itself listens" in n.name_error("x"), "x has no address", PATIENT)
    equal(list(n.addresses("y")), [hostport("192.0.2.77", port)], "the same port of another host")
    with connect_to((HOST_A, port), PATIENT) as s:
        try:
            equal(s.recv(1), b"", "turned away")
        except ConnectionError:
            pass
    check(sum(s["accepted"] for s in n.b.services()) <= 1, "one connection")
    logged(n.b, "address of a name left out", "this daemon itself listens there", times=1)
    dns.names["other.test"] = Name(a=[HOST_B])
    n.again()
    wait_until(lambda: "where this daemon itself listens" in n.name_error("y"), "y would lead to x", PATIENT)


@case("before the first answer clients wait for it")
def _(t):
    dns, port = name_server(t), t.port()
    server(t, b"a", HOST_A, port)
    dns.names.update({"_db._tcp.test": Name(mode="silent"), "a.test": Name(a=[HOST_A])})
    n = Names(t, {"x": "srv:_db._tcp.test"})
    client = in_thread(n.who, "x")
    wait_until(lambda: any(s["connections"] for s in n.b.services()), "the client's connection has come", PATIENT)
    equal(n.service("x")["waiting"], "waiting for the name _db._tcp.test (SRV): no answer yet", "in the report")
    dns.names["_db._tcp.test"] = Name(srv=[(1, 1, port, "a.test")])
    equal(client.result(), b"a", "the client got")


def two_targets(t, policy, retry="1s"):
    """An ingress with two daemons, each with a server of its own, behind it; b1, b2, a, port."""
    servers = [Server(t, says(b"1")), Server(t, says(b"2"))]
    middles = [t.port(), t.port()]
    device = soft_device(t.addr)
    bs = [Daemon(t, f"b{i + 1}", {"log_level": "info", "devices": [device],
                                  "egress": [{"name": "x", "listen": hostport(t.addr, middles[i]), "to": hostport(*servers[i].at)}]})
          for i in range(2)]
    port = t.port()
    a = Daemon(t, "a", {"log_level": "info", "devices": [device],
                        "ingress": [{"name": "x", "listen": hostport(t.addr, port), "policy": policy, "target_retry": retry,
                                     "to": [hostport(t.addr, m) for m in middles]}]})
    return a, bs, servers, middles, port


class Load:
    """Clients that connect, talk and end, over and over. `lost` are those that were turned away or broken."""

    def __init__(self, t, port, cnt=4):
        self.t, self.port, self.over = t, port, False
        self.done, self.lost = [], []
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(cnt)]
        t.later(self.stop)
        for x in self.threads:
            x.start()

    def _run(self):
        while not self.over:
            who = b""
            try:
                with connect_to((self.t.addr, self.port), PATIENT) as s:
                    who = s.recv(1)
                    s.sendall(b"ping")
                    ok = s.recv(4, socket.MSG_WAITALL) == b"ping"
            except OSError:
                ok = False
            (self.done if ok else self.lost).append(who)

    def stop(self):
        self.over = True
        for x in self.threads:
            x.join(PATIENT)

    def more(self, who, cnt=20):
        was = self.done.count(who)
        wait_until(lambda: self.done.count(who) > was + cnt, f"connections to {who}", PATIENT)


def dies_and_comes_back(t, policy):
    a, (b1, _), _, middles, port = two_targets(t, policy)
    load = Load(t, port)
    load.more(b"1")
    b1.expect_dead = True
    b1.kill()
    load.more(b"2", 60)
    lost = list(load.lost)
    check(all(x in (b"1", b"") for x in lost), f"lost: {lost}")
    check(len(lost) <= 4, f"lost: {len(lost)}, of 4 at a time")
    state = a.ctl("service", "x")["addresses"]
    equal([x["state"] for x in state], ["failed", "ok"], "states")
    check(state[0]["passed_over"] > 10, f"passed over: {state[0]}")
    b1.start()
    b1.expect_dead = False
    load.more(b"1")
    load.stop()
    equal(len(load.lost), len(lost), "lost while it came back")
    state = a.ctl("service", "x")["addresses"]
    equal([x["state"] for x in state], ["ok", "ok"], "states")
    logged(a, "target failed", hostport(t.addr, middles[0]))
    logged(a, "target works again", hostport(t.addr, middles[0]))
    equal(load.done.count(b"2") > 60, True, "the other one served meanwhile")
    return load


@case("two targets, policy first: the first ends under load and returns", timeout=90)
def _(t):
    dies_and_comes_back(t, "first")


@case("two targets, policy spread: one ends under load and returns", timeout=90)
def _(t):
    dies_and_comes_back(t, "spread")


@case("retry: a failed target is probed, and a name resolved, at once")
def _(t):
    dns, port = name_server(t, negative=300), t.port()
    server(t, b"a", HOST_A, port)
    n = Names(t, {"x": f"db.test:{port}"})
    wait_until(lambda: "NXDOMAIN" in n.name_error("x"), "the name is known not to be there")
    dns.names["db.test"] = Name(a=[HOST_A])
    check("names that are looked up now: 1" in n.b.ctl_text("retry"), "said")
    wait_until(lambda: n.service("x")["waiting"] == "", "found", 20)
    equal(n.who("x"), b"a", "works")

    a, (b1, _), _, middles, port = two_targets(t, "first", retry="1h")
    b1.expect_dead = True
    b1.kill()
    with connect_to((t.addr, port), PATIENT) as s:
        equal(s.recv(1), b"2", "the other one serves")
    b1.start()
    b1.expect_dead = False
    states = lambda: [x["state"] for x in a.ctl("service", "x")["addresses"]]
    equal(states(), ["failed", "ok"], "states")
    equal(a.ctl("retry", hostport(t.addr, middles[0]))["targets"], 1, "targets that are tried")
    wait_until(lambda: states() == ["ok", "ok"], "it is back", 20)


@case("retry after a reload that removes a service with a failed target: it is not probed, and a connection continues")
def _(t):
    a, (b1, _), _, _, port = two_targets(t, "first", retry="1h")
    b1.expect_dead = True
    b1.kill()
    with connect_to((t.addr, port), PATIENT) as s:
        equal(s.recv(1), b"2", "the other one serves")
        a.write_conf({**a.conf, "ingress": []})
        a.ctl_text("reload")
        equal(a.ctl("retry")["targets"], 0, "targets that are tried")
        s.sendall(b"still there")
        same_bytes(recv_exact(s, 11), b"still there", "it goes on")


@case("policy spread: connections are distributed evenly")
def _(t):
    a, _, _, _, port = two_targets(t, "spread")
    got = []
    for _ in range(20):
        with connect_to((t.addr, port), PATIENT) as s:
            got.append(s.recv(1))
    equal((got.count(b"1"), got.count(b"2")), (10, 10), "connections to each")
    equal([x["connections"] for x in a.ctl("service", "x")["addresses"]], [10, 10], "counted")


@case("a gateway whose server is down: the connection uses another one, which is remembered", timeout=90)
def _(t):
    a, _, servers, middles, port = two_targets(t, "first")
    load = Load(t, port, 1)
    load.more(b"1", 3)
    load.stop()
    host, at = servers[0].at
    servers[0]._close()
    load = Load(t, port)
    load.more(b"2", 40)
    equal(load.lost, [], "no client notices")
    logged(a, "target failed", hostport(t.addr, middles[0]), times=1)
    servers[0] = Server(t, says(b"1"), host=host, port=at)
    load.more(b"1", 3)
    load.stop()
    equal(load.lost, [], "nor that it is back")
    wait_until(lambda: [x["state"] for x in a.ctl("service", "x")["addresses"]] == ["ok", "ok"], "states")


@case("a reload with a missing name succeeds, and the name is queried at its time only")
def _(t):
    dns, port = name_server(t, negative=300), t.port()
    server(t, b"a", HOST_A, port)
    dns.names["db.test"] = Name(a=[HOST_A], ttl=3600)
    n = Names(t, {"x": f"db.test:{port}"})
    equal(n.who("x"), b"a", "at first")
    n.b.write_conf(dict(n.b.conf, egress=[*n.b.conf["egress"], {"name": "z", "listen": hostport(t.addr, t.port()),
                                                                "to": ["no.test:1", "no-more.test:1"]}]))
    n.b.send_signal(signal.SIGHUP)
    wait_until(lambda: any(s["waiting"].startswith("waiting for the name no.test and others: NXDOMAIN") for s in n.b.services()),
               "the new service waits")
    equal(n.who("x"), b"a", "the other one does not")
    asked, later = len(dns.asked), n.b.status()["uptime_ms"] + 6000	# past the shortest time
    wait_until(lambda: n.b.status()["uptime_ms"] > later, "a while is over", PATIENT)
    equal(len(dns.asked), asked, "questions meanwhile")


if __name__ == "__main__":
    netns.enter(mount=True)
    own_host()
    main()
