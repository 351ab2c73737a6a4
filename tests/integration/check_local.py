#!/usr/bin/env python3
"""
libsmcrd-local.so: programs that know only TCP connect to a gateway's UNIX socket. What they ask of the socket is answered as
TCP would; where there is no such socket, they use TCP; programs of others.
"""
import json
import os
import re
import select
import socket
import subprocess
import sys

from harness import (LOCAL_LIBRARY, PATIENCE, TOP_BUILD, TOP_SRC, Pair, case, check, echo, equal, hostport, main, need, pair_to, recv_exact)
from programs import MariaDB, Postgres, Redis, wrk

RUN = os.path.join(TOP_BUILD, "local", "smcrd-run")
CLIENT = os.path.join(TOP_SRC, "tests", "integration", "local_client.py")
ENOPROTOOPT, EISCONN = 92, 106


class Local:
    """Beside each ingress of a pair, which is started, another one for the same target, on the UNIX socket of its address."""

    def __init__(self, t, pair):
        self.t, self.pair = t, pair
        self.dir = t.path(f"local.{t.count()}")
        os.mkdir(self.dir)
        pair.listen_local(self.dir, listen_mode="0666")
        pair.b.start()
        pair.a.start()

    def path(self, address):
        return os.path.join(self.dir, address)

    def env(self):
        return {**os.environ, "SMCRD_LOCAL": self.dir, "SMCRD_LOCAL_LIBRARY": LOCAL_LIBRARY}

    def run(self, *argv, **kw):
        """By smcrd-run; what the program prints."""
        return subprocess.run([RUN, "--local", *argv], env=self.env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60 * PATIENCE, check=True, **kw).stdout

    def client(self, what, host, port):
        return json.loads(self.run(sys.executable, CLIENT, what, host, str(port)))


def local_pair(t, server=echo, **kw):
    pair = pair_to(t, server, start=False, **kw)
    return pair, Local(t, pair), pair.host, pair.port[next(iter(pair.port))]


def as_tcp(found, host, port, family=socket.AF_INET):
    """What described() of the client finds of a TCP connection."""
    equal(found["peer"][:2], [host, port], "getpeername")
    equal(found["here"], [host], "getsockname")
    check(found["port_in_range"] and found["port_stays"], "the own port")
    equal((found["domain"], found["type"], found["protocol"]), (family, socket.SOCK_STREAM, socket.IPPROTO_TCP), "kind")
    equal((found["error"], found["state"], found["info_len"]), (0, 1, 104), "SO_ERROR and TCP_INFO")


@case("options and addresses are those of a TCP connection")
def _(t):
    _, local, host, port = local_pair(t)
    found = local.client("options", host, port)
    check(found["unix"], "it is on a UNIX socket")
    as_tcp(found, host, port)
    equal((found["nodelay"], found["keepidle"], found["keepalive"], found["linger"], found["timeout"]), (1, 77, 1, [1, 5], 33),
          "options of before")
    equal((found["nodelay_off"], found["keepidle_later"], found["ulp"]), (0, 88, ENOPROTOOPT), "options of later")
    equal((found["again"], found["nonblocking"], found["cloexec"]), (EISCONN, False, True), "a second connect, and flags")
    check(found["echo"], "data")
    equal(local.pair.accepted_local(), (1, 0), "connections on UNIX sockets and TCP")


@case("IPv6, and IPv4 mapped into it")
def _(t):
    _, local, _, port = local_pair(t, host="::1")
    found = local.client("options", "::1", port)
    check(found["unix"], "it is on a UNIX socket")
    as_tcp(found, "::1", port, socket.AF_INET6)
    _, local, host, port = local_pair(t)
    found = local.client("way", f"::ffff:{host}", port)
    check(found["unix"] and found["echo"], f"mapped: {found}")
    equal(found["peer"][:2], [f"::ffff:{host}", port], "getpeername")


@case("dup, fork and exec: the copy is the same connection")
def _(t):
    _, local, host, port = local_pair(t)
    found = local.client("copies", host, port)
    equal(found, {"unix": True, "dup": [host, port], "echo": True, "fork": [[host, port], True],
                  "exec": f"True ('{host}', {port})"}, "what the copies say")


@case("a non-blocking connect of a descriptor that is in epoll already")
def _(t):
    _, local, host, port = local_pair(t)
    found = local.client("waiting", host, port)
    for how in ("level", "edge"):
        f = found[how]
        as_tcp(f, host, port)
        check(f["unix"] and f["rc"] == 0 and f["out"] and f["in"] and f["nonblocking"], f"{how}: {f}")
    check(found["poll"], "poll")


@case("an urgent byte arrives")
def _(t):
    def server(s):
        s.settimeout(10 * PATIENCE)
        got = recv_exact(s, 3)
        check(select.select([], [], [s], 10 * PATIENCE)[2], "it is announced")
        s.sendall(got + b" " + s.recv(1, socket.MSG_OOB) + b" " + recv_exact(s, 3))
    _, local, host, port = local_pair(t, server)
    equal(local.client("urgent", host, port), {"unix": True, "got": "abc ! def"}, "bytes")


@case("no socket, nobody behind it, no right to it, a bound descriptor: TCP")
def _(t):
    pair, local, host, port = local_pair(t)
    file = local.path(hostport(host, port))
    equal(local.client("bound", host, port), {"unix": False, "stays": True, "echo": True}, "bound")
    if os.geteuid() == 0:
        os.chmod(file, 0o600)
        found = local.client("way_of_nobody", host, port)
        equal((found["unix"], found["echo"]), (False, True), "without the right")
    pair.conf_a["ingress"].pop()
    pair.a.write_conf(pair.conf_a)
    pair.a.ctl("reload")
    check(not os.path.exists(file), "the file is gone")
    found = local.client("way", host, port)
    equal((found["unix"], found["echo"]), (False, True), "without a file")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(file)
    found = local.client("way", host, port)
    equal((found["unix"], found["echo"]), (False, True), "nobody behind it")


@case("smcrd-run: what is wrong is said")
def _(t):
    env = {**os.environ, "SMCRD_LOCAL_LIBRARY": LOCAL_LIBRARY}

    def said(*argv, **more):
        r = subprocess.run([RUN, *argv], env={**env, **more}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20 * PATIENCE)
        return r.returncode, r.stdout
    usage = ("usage: smcrd-run [--service NAME] [--uid | --cgroup PATH] PROGRAM [ARGUMENT...]\n"
             "       smcrd-run --local PROGRAM [ARGUMENT...]\n")
    equal(said(), (2, usage), "no arguments")
    equal(said("--local"), (2, usage), "no program")
    equal(said("--help"), (0, usage), "--help")
    equal(said("--local", "no-such-program"), (127, "smcrd-run: no-such-program: not found\n"), "no such program")
    equal(said("--local", "true", SMCRD_LOCAL_LIBRARY="/none.so"), (1, "smcrd-run: /none.so cannot be read\n"), "no library")
    equal(said("--local", "sh", "-c", "echo $1; exit 3", "sh", "a b"), (3, "a b\n"), "arguments and status are the program's")


# -- programs --


@case("redis-cli and redis-benchmark", timeout=120)
def _(t):
    server = Redis(t)
    pair = Pair(t, {"redis": (server.host, server.port)}, start=False)
    local = Local(t, pair)
    at = ["-h", pair.host, "-p", str(pair.port["redis"])]
    equal(local.run(need("redis-cli"), *at, "ping"), "PONG\n", "redis-cli")
    out = local.run(need("redis-benchmark"), *at, "-t", "set,get", "-c", "20", "-n", "5000", "-q")
    check(len(re.findall(r"requests per second", out)) == 2, out)
    unix, tcp = local.pair.accepted_local()
    check(unix >= 41 and tcp == 0, f"{unix} connections on UNIX sockets, {tcp} on TCP")


@case("psql and pgbench", timeout=120)
def _(t):
    server = Postgres(t)
    pair = Pair(t, {"pg": (server.host, server.port)}, start=False)
    local = Local(t, pair)
    at = ["-h", pair.host, "-p", str(pair.port["pg"]), "-U", "postgres"]
    equal(local.run(need("psql"), *at, "-Atc", "select inet_server_port() is not null"), "t\n", "psql")
    local.run(f"{server.bin}/pgbench", *at, "-i", "-q", "postgres")
    out = local.run(f"{server.bin}/pgbench", *at, "-S", "-c", "8", "-t", "100", "postgres")
    check("number of transactions actually processed: 800/800" in out, out)
    unix, tcp = local.pair.accepted_local()
    check(unix >= 10 and tcp == 0, f"{unix} connections on UNIX sockets, {tcp} on TCP")


@case("mysql", timeout=120)
def _(t):
    port, path = t.port(), t.path("mysqld.sock")
    os.chmod(t.dir, 0o777)
    server = MariaDB(t, ["[mysqld]", f"socket = {path}", f"bind-address = {t.addr}", f"port = {port}"], path)
    server.sql("CREATE USER app IDENTIFIED BY 'secret'")
    pair = Pair(t, {"mysql": (t.addr, port)}, start=False)
    local = Local(t, pair)
    argv = [server.client, "-h", pair.host, "-P", str(pair.port["mysql"]), "--user=app", "--password=secret", "-Ne"]
    equal(local.run(*argv, "SELECT LENGTH(REPEAT('x', 1000000))"), "1000000\n", "answer")
    equal(local.pair.accepted_local(), (1, 0), "connections on UNIX sockets and TCP")


@case("curl, wrk and Python's http.client", timeout=120)
def _(t):
    def http(s):
        s.settimeout(10 * PATIENCE)
        head = b""
        while data := s.recv(4096):
            head += data
            while b"\r\n\r\n" in head:
                _, _, head = head.partition(b"\r\n\r\n")
                s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    pair, local, host, port = local_pair(t, http)
    url = f"http://{host}:{port}/"
    equal(local.run(need("curl"), "-sS", url, url), "hellohello", "curl")
    wrk(lambda argv: local.run(*argv), url, 8, 1)
    code = f"import http.client; c = http.client.HTTPConnection('{host}', {port}); c.request('GET', '/'); print(c.getresponse().read())"
    equal(local.run(sys.executable, "-c", code), "b'hello'\n", "http.client")
    unix, tcp = local.pair.accepted_local()
    check(unix >= 10 and tcp == 0, f"{unix} connections on UNIX sockets, {tcp} on TCP")


main()
