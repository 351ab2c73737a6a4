#!/usr/bin/env python3
"""
UNIX sockets as application legs: real programs on both sides, how connections end, who may connect, the files and what stands
in their place, reloads, socket activation. Scripts named check_*_unix.py run cases of others on such legs.
"""
import errno
import grp
import os
import pwd
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile

from harness import (PATIENCE, SMCRD, Daemon, Failure, Pair, Server, Skip, case, check, connect_to, echo, equal, fill, hostport,
                     in_thread, listener, logs, main, need, outcome, pair_to, pattern, recv_all, recv_exact, same_bytes,
                     set_reset_on_close, unix_connect, unix_listener, unlinkable_pair, wait_until, works)
from programs import Postgres, Redis, postgres_bin

NOBODY = 65534


def only_root(why):
    if os.geteuid() != 0:
        raise Skip(f"only root can {why}")


def as_nobody(path, times=1):
    """What another user finds at the socket, so many times: an errno of connect(), or how the connection ends."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    found = set()
    for _ in range(times):
        try:
            with unix_connect(path) as s:
                found.add(outcome(s)[0])
        except OSError as e:
            found.add(errno.errorcode[e.errno])
    return " ".join(sorted(found))


def refused_start(t, conf, name="refused"):
    """Log of a daemon that does not start."""
    d = Daemon(t, name, conf, start=False)
    d.start(ready=False)
    d.expect_dead = True
    check(d.wait() != 0, "exit status")
    return d.log()


def refused_reload(d):
    try:
        d.ctl("reload")
    except Failure as e:
        return str(e)
    raise Failure("the reload worked")


# -- programs --


@case("redis-benchmark -s against Redis on a UNIX socket; smcrctl and the log name the user", timeout=90)
def _(t):
    server = Redis(t, unix=True)
    pair = Pair(t, {"redis": (server.host, server.port)}, unix=True)
    t.run([need("redis-benchmark"), "-s", pair.path["redis"], "-t", "set,get", "-c", "20", "-n", "5000", "-q"])
    s = pair.connect()
    s.sendall(b"PING\r\n")
    equal(recv_exact(s, 7), b"+PONG\r\n", "answer")
    client, server_side = (d.connections()[0] for d in (pair.a, pair.b))
    me = f"unix:uid={os.geteuid()},pid={os.getpid()}"
    equal((client["app"], client["app_uid"], client["app_pid"]), (me, os.geteuid(), os.getpid()), "the client")
    equal((server_side["app"], server_side["app_uid"], server_side["app_pid"]),
          (server.host, os.geteuid(), server.proc.pid), "the server")
    check(me in pair.a.ctl_text("connections"), "smcrctl connections names the client")
    check("APP-USER" in pair.b.ctl_text("connections", "--detail"), "and in detail the server's user")
    equal(pair.a.services()[0]["listen"], f"unix:{pair.path['redis']}", "listen")
    equal(pair.b.services()[0]["to"], server.host, "to")
    s.close()
    pair.quiet()
    logs(pair.a, f"client={me} ")
    logs(pair.b, f"server={server.host} ")
    pair.only_smcr(20)


@case("PostgreSQL on its usual socket, both sides", timeout=90)
def _(t):
    server = Postgres(t, unix=True)
    pair = Pair(t, {"pg": server.at}, unix=True)
    os.mkdir(t.path("run"))
    conf = dict(pair.conf_a, ingress=[dict(pair.conf_a["ingress"][0], listen=f"unix:{t.path('run', '.s.PGSQL.5432')}")])
    pair.a.finish()
    pair.a.write_conf(conf)
    pair.a.start()
    where = ["-h", t.path("run"), "-p", "5432", "-U", "postgres"]
    t.run([postgres_bin("pgbench"), *where, "-i", "-q", "-s", "1", "postgres"])
    out = t.run([postgres_bin("pgbench"), *where, "-n", "-c", "4", "-t", "50", "-C", "postgres"]).decode()
    check("number of transactions actually processed: 200/200" in out, out)
    pair.only_smcr(200)


# -- ends --


@case("half close in both directions, also after a fallback")
def _(t):
    request, answer = pattern(5 << 20, 1), pattern(5 << 20, 2)

    def serve(s):
        same_bytes(recv_all(s), request, "request at the server")
        s.sendall(answer)

    def hang_up_first(s):
        s.sendall(answer)
        s.shutdown(socket.SHUT_WR)
        same_bytes(recv_all(s), request, "request at the server")
    for fn in (serve, hang_up_first):
        for pair in (pair_to(t, fn, unix=True), None):
            server = pair.server if pair else Server(t, fn, unix=True)
            pair = pair or unlinkable_pair(t, {"x": server.at}, unix=True)
            c = pair.connect()
            task = in_thread(recv_all, c)
            c.sendall(request)
            c.shutdown(socket.SHUT_WR)
            same_bytes(task.result(), answer, "answer")
            c.close()
            pair.as_made()
            pair.quiet()
            server.ok()


@case("an abort is a reset where the kernel has one, in both directions; another connection continues")
def _(t):
    lsn = listener(t)
    pair = Pair(t, {"x": lsn.getsockname()[:2], "echo": Server(t, echo, unix=True).at}, unix=True)
    bystander = pair.connect("echo")

    def ends():
        client = pair.connect("x")
        client.sendall(b"hello")
        server, _ = lsn.accept()
        t.later(server.close)
        server.settimeout(client.gettimeout())
        same_bytes(recv_exact(server, 5), b"hello", "first bytes")
        works(bystander)
        return client, server

    client, server = ends()
    server.sendall(b"bytes without a reader")
    wait_until(lambda: [c for c in pair.a.connections() if c["service"] == "x" and c["bytes_to_app"] > 0], "they are there")
    client.close()
    equal(outcome(server)[0], "reset", "at the server, whose client left bytes unread")

    client, server = ends()
    set_reset_on_close(server)
    server.close()
    equal(outcome(client), ("end", b""), "at a client that has said nothing since")

    client, server = ends()
    fill(client, server)
    set_reset_on_close(server)
    server.close()
    equal(outcome(client), ("reset", b""), "at a client whose words were not read")
    works(bystander)


@case("an urgent byte is written inline to a UNIX socket, and read from one as urgent")
def _(t):
    lsn = unix_listener(t)
    pair = Pair(t, {"x": (f"unix:{lsn.getsockname()}", 0)})		# TCP clients
    c = pair.connect()
    c.sendall(b"ab")
    c.send(b"!", socket.MSG_OOB)
    c.sendall(b"cd")
    s, _ = lsn.accept()
    s.settimeout(20 * PATIENCE)
    same_bytes(recv_exact(s, 5), b"ab!cd", "at the server")
    c.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    try:
        s.send(b"?", socket.MSG_OOB)
    except OSError as e:
        equal(e.errno, errno.EOPNOTSUPP, "a kernel without urgent bytes on UNIX sockets")
        s.sendall(b"?")
    s.sendall(b"ef")
    same_bytes(recv_exact(c, 3), b"?ef", "at the client")
    pair.only_smcr()


# -- permission to connect --


@case("allow_users: another user is refused, counted and logged; another connection continues",
      one_worker="lines of the log are limited in each worker by itself")
def _(t):
    only_root("change the user")
    pair = pair_to(t, echo, unix=True, ingress={"allow_users": ["root"], "listen_mode": "0666"})
    path = pair.path["x"]
    bystander = pair.connect()
    works(bystander)
    lines, tried = [], 0

    def limited():
        """So many in so little time, however busy the machine is, that lines are left out."""
        nonlocal tried
        equal(t.fork(as_nobody, path, 50).result(), "end", "at the other user")
        tried += 50
        lines[:] = [line for line in pair.a.log().split("\n") if "connection refused" in line]
        return len(lines) < tried
    wait_until(limited, "the log is limited")
    equal(pair.a.services()[0]["refused_allow"], tried, "counted")
    check(lines, "some are logged")
    check(re.search(r'notice: .*service=x from=unix:uid=65534,pid=\d+ why="not on the allow_users list"', lines[0]), lines[0])
    works(bystander, 1)
    conf = dict(pair.conf_a, ingress=[dict(pair.conf_a["ingress"][0], allow_users=["root", str(NOBODY)])])
    pair.a.write_conf(conf)
    pair.a.ctl("reload")
    s = t.fork(as_nobody, path)
    wait_until(lambda: any(c["app_uid"] == NOBODY for c in pair.a.connections()), "the other user is in")
    check(s.alive(), "and stays")
    works(bystander, 2)


@case("max_connections_per_peer counts users")
def _(t):
    pair = pair_to(t, echo, unix=True, ingress={"max_connections_per_peer": 2})
    held = [pair.connect() for _ in range(2)]
    for s in held:
        works(s)
    check(pair.turned_away(), "the third one")
    equal(pair.a.services()[0]["refused_per_peer"], 1, "counted")
    held.pop().close()
    wait_until(lambda: len(pair.a.connections()) == 1, "one has gone")
    works(pair.connect())


@case("the kernel enforces mode, owner and group of the file")
def _(t):
    only_root("give files away")
    group = grp.getgrgid(NOBODY).gr_name
    pair = pair_to(t, echo, unix=True, ingress={"listen_mode": "0620", "listen_owner": pwd.getpwuid(NOBODY).pw_name,
                                                "listen_group": group})
    path = pair.path["x"]
    st = os.lstat(path)
    equal((oct(st.st_mode & 0o7777), st.st_uid, st.st_gid), ("0o620", NOBODY, NOBODY), "mode, owner, group")
    works(pair.connect())
    os.chmod(path, 0o400)
    equal(t.fork(as_nobody, path).result(), "EACCES", "a user without the right to write")
    out = t.run([SMCRD, "-T", "-f", pair.a.conf_path]).decode()
    for want in ('listen_mode = "0620";', 'listen_owner = "nobody";', f'listen_group = "{group}";', "# allow_users: everybody"):
        check(want in out, f"{want} in {out}")
    check("allow:" not in out[out.index("ingress = ("):], "settings of TCP are not printed")


# -- files --


@case("a dead daemon's socket is replaced, but no live one and no other file")
def _(t):
    pair = pair_to(t, echo, unix=True)
    path = pair.path["x"]
    c = pair.connect()
    works(c)
    log = refused_start(t, pair.conf_a)
    check(f"service x: socket {path}: a running daemon listens there" in log, log)
    works(c)
    equal(len(pair.a.connections()), 1, "the look at the file was no client")
    pair.a.kill()
    check(os.path.exists(path), "a killed daemon leaves its file")
    pair.a.start()
    with pair.connect() as c:
        works(c)
    pair.quiet()
    pair.a.finish()
    check(not os.path.exists(path), "an orderly end does not")
    with open(path, "w", encoding="ascii") as f:
        f.write("precious")
    log = refused_start(t, pair.conf_a)
    check(f"service x: socket {path}: a file of this name exists that is not a socket" in log, log)
    with open(path, encoding="ascii") as f:
        equal(f.read(), "precious", "the file")
    os.unlink(path)
    log = refused_start(t, dict(pair.conf_a, ingress=[dict(pair.conf_a["ingress"][0], listen="unix:/no/such/dir/s")]))
    check("its directory does not exist" in log, log)


@case("another daemon's file is left alone at the end")
def _(t):
    pair = pair_to(t, echo, unix=True)
    path = pair.path["x"]
    os.unlink(path)
    other = Daemon(t, "other", pair.conf_a)
    pair.a.finish()
    works(pair.connect())
    other.finish()
    check(not os.path.exists(path), "the other one's end removes it")


@case("reload: services on UNIX sockets come, move and go; live connections continue")
def _(t):
    first, second = Server(t, echo, unix=True), Server(t, echo)
    pair = Pair(t, {"one": first.at, "two": second.at}, unix=True)
    one, two = pair.connect("one"), pair.connect("two")
    works(one)
    works(two)

    def reload(**listen):
        entries = {s["name"]: s for s in pair.conf_a["ingress"]}
        pair.a.write_conf(dict(pair.conf_a, ingress=[dict(entries[name], listen=where) for name, where in listen.items()]))
        return pair.a

    def at(path):
        with unix_connect(path) as s:
            works(s)
    a, b, c = pair.path["one"], pair.path["two"], t.socket_path("moved")
    reload(one=f"unix:{a}").ctl("reload")
    check(not os.path.exists(b), "a removed service's file is gone")
    works(two)
    reload(one=f"unix:{c}", two=f"unix:{a}").ctl("reload")	# one moves, two takes its place
    at(c)
    at(a)
    reload(one=f"unix:{a}", two=f"unix:{c}").ctl("reload")	# they swap
    at(c)
    at(a)
    port = t.port()
    reload(one=hostport(t.addr, port), two=f"unix:{b}").ctl("reload")
    with connect_to((t.addr, port)) as s:
        works(s)
    at(b)
    equal([os.path.exists(p) for p in (a, b, c)], [False, True, False], "files")
    works(one, 1)
    works(two, 2)
    pair.only_smcr(5)


@case("a confined daemon's reload reports what it cannot do, and changes nothing")
def _(t):
    pair = pair_to(t, echo, unix=True)
    c = pair.connect()
    works(c)
    entry = pair.conf_a["ingress"][0]
    elsewhere = tempfile.mkdtemp(prefix="smcrd-test-")
    t.later(lambda: os.rmdir(elsewhere))
    where = os.path.join(elsewhere, "s")

    def conf(**changes):
        pair.a.write_conf(dict(pair.conf_a, ingress=[dict(entry, **changes)]))
    if pair.a.status()["confinement"]["files"]["on"]:
        conf(listen=f"unix:{where}")
        text = refused_reload(pair.a)
        check(f"service x: socket {where}: Permission denied" in text, text)
    conf(listen=f"unix:{t.socket_path('new')}", listen_owner=NOBODY)
    text = refused_reload(pair.a)
    check("listen_owner and listen_group are set only at a start" in text, text)
    conf(listen_owner="nobody-of-this-name")
    text = refused_reload(pair.a)
    check(re.search(r'smcrd\.conf:\d+: there is no user \\"nobody-of-this-name\\"', text)
          or 'there is no user "nobody-of-this-name"' in text, text)
    conf(listen_mode="0666")
    check("warning" in pair.a.ctl_text("reload"), "a mode for a file that is there")
    works(c, 1)
    works(pair.connect(), 2)


# -- socket activation --

ACTIVATE = """
import os, socket, sys
path, argv = sys.argv[1], sys.argv[2:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.bind(path)
os.chmod(path, 0o604)
s.listen(16)
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(argv[0], argv)
"""


@case("systemd's socket with the same path is used, and its file stays")
def _(t):
    pair = pair_to(t, echo, unix=True, start=False)
    path = pair.path["x"]
    pair.b.start()
    pair.a.wrap = [sys.executable, "-c", ACTIVATE, path]
    pair.a.start()
    equal(oct(os.stat(path).st_mode & 0o777), "0o604", "the mode is the unit's")
    works(pair.connect())
    pair.a.finish()
    check(os.path.exists(path), "the file stays")
    os.unlink(path)
    pair.a.wrap[3] = t.socket_path("unknown")
    pair.a.start()
    logs(pair.a, "passed socket is not a listener of a service, closed: address=unix:" + pair.a.wrap[3])
    works(pair.connect())


# -- PROXY header, fallback, servers that are not there --


@case("the PROXY header of a client on a UNIX socket has no address")
def _(t):
    for version, want in (("v1", b"PROXY UNKNOWN\r\n"), ("v2", b"\r\n\r\n\0\r\nQUIT\n" + struct.pack(">BBH", 0x20, 0, 0))):
        got = []
        server = Server(t, lambda s, got=got: got.append(recv_all(s)))
        pair = Pair(t, {"x": server.at}, unix=True, ingress={"proxy_protocol": version})
        c = pair.connect()
        c.sendall(b"hello")
        c.close()
        wait_until(lambda got=got: got, "the server has all")
        same_bytes(got[0], want + b"hello", version)


@case("fallback to TCP, and its refusal")
def _(t):
    pair = unlinkable_pair(t, {"x": Server(t, echo, unix=True).at}, unix=True)
    s = pair.connect()
    works(s, 1, 3 << 20)
    equal([c["mode"] for d in (pair.a, pair.b) for c in d.connections()], ["tcp", "tcp"], "modes")
    pair = unlinkable_pair(t, {"x": Server(t, echo, unix=True).at}, unix=True, ingress={"fallback": "refuse"})
    check(pair.turned_away(), "refused")


@case("a server that is missing, without permission, and available: the log has the reason")
def _(t):
    path = t.socket_path("server")
    pair = Pair(t, {"x": (f"unix:{path}", 0)}, unix=True, egress={"connect_timeout": "300ms"})

    def told(why):
        check(pair.turned_away(), f"while it is so: {why}")
        line = f'server not available: service=x server=unix:{path} reason="cannot be connected: {why}"'
        wait_until(lambda: line in pair.b.log(), f"{line} in {pair.b.log()}")
    told("No such file or directory")
    lsn = unix_listener(t, path, backlog=0)
    lsn.close()
    told("Connection refused")
    os.unlink(path)
    lsn = unix_listener(t, path, backlog=0)
    if os.geteuid() == 0:		# without CAP_DAC_OVERRIDE
        os.chown(path, NOBODY, NOBODY)
        os.chmod(path, 0o600)
        told("Permission denied")
        os.chmod(path, 0o777)
    waiting = [unix_connect(path)]
    check(pair.turned_away(), "while the server is down")
    wait_until(lambda: "cannot be connected: its backlog is full" in pair.b.log(), pair.b.log())
    lsn.accept()
    c = pair.connect()
    c.sendall(b"now")
    s, _ = lsn.accept()
    same_bytes(recv_exact(s, 3), b"now", "at the server")
    wait_until(lambda: f"server available again: service=x server=unix:{path}" in pair.b.log(), "and the end is logged")
    waiting[0].close()


@case("smcrctl check is for gateways")
def _(t):
    pair = pair_to(t, echo, unix=True)
    out = subprocess.run([os.path.join(os.path.dirname(SMCRD), "smcrctl"), "--socket", pair.a.control, "check",
                          f"unix:{pair.path['x']}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    check(out.returncode != 0 and b"unix" in out.stdout, f"{out.returncode}: {out.stdout}")
    pair.a.send_signal(signal.SIGHUP)
    works(pair.connect())


main()
