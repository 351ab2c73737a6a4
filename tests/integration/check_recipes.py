#!/usr/bin/env python3
"""doc/recipes.md: each of its lines is tried as it stands, with the page's hosts in network namespaces and programs at both ends."""
import os
import re
import shlex

from netns import Side, enter, namespace

enter()

from harness import Failure, case, check, equal, main, need, wait_until		# noqa: E402
from pages import Page, PlainDaemon, Section						# noqa: E402
from programs import MariaDB, Postgres, wait_port					# noqa: E402

PAGE = Page("recipes.md")
NOBODY = 65534


class Host(Side):
    """A namespace with the page's address of the host, so that ports are those of the page."""

    def __init__(self, t, name):
        side, pid = namespace(t)
        super().__init__(t, pid)
        lines = [f"link add {name} type veth peer name eth0 netns {pid}", f"link set {name} master switch up"]
        t.run([need("ip"), "-batch", "-"], input="".join(f"{x}\n" for x in lines).encode())
        t.later(lambda: t.run(["ip", "link", "del", name]))
        lines = ["link set lo up", f"addr add 192.0.2.{' ABC'.index(name)}/24 dev eth0", "link set eth0 up"]
        self.run(["ip", "-batch", "-"], input="".join(f"{x}\n" for x in lines).encode())


class Recipe(Section):
    """A section with its hosts, and a smcrd on each that the section has lines for."""

    def __init__(self, t, name):
        super().__init__(t, PAGE, name, ("etc", "run", "srv"))
        t.run([need("ip"), "link", "add", "switch", "type", "bridge"])
        t.later(lambda: t.run(["ip", "link", "del", "switch"]))
        t.run(["ip", "link", "set", "switch", "up"])
        self.hosts = {name: Host(t, name) for name in sorted({host for host, _ in self.parts})}
        self.daemons = {}

    def start(self):
        """The daemons, when the servers are there."""
        for name, host in self.hosts.items():
            text = "\n".join(self.common.get((name, "smcrd.conf"), ()))
            kinds = [kind for kind in ("ingress", "egress") if (name, f"smcrd.conf, {kind}") in self.parts]
            for kind in kinds:
                entries = "\n".join(self.lines(name, f"smcrd.conf, {kind}"))
                text += f"\n{kind} = (\n{entries}\n);"
            if kinds:
                self.daemons[name] = PlainDaemon(self.t, name, text, host.wrap())
                self.daemons[name].start()

    def file(self, host, place, *more):
        """These lines as a configuration of a program, which may write to it and to its directory."""
        where = self.t.path(f"conf{self.t.count()}")
        path = os.path.join(where, place)
        os.mkdir(where)
        with open(path, "w") as f:
            f.write("\n".join([*self.lines(host, place), *more, ""]))
        for p in (where, path):
            os.chown(p, NOBODY, NOBODY)
        return path

    def server(self, host, argv, address, port):
        """On this host; without root's rights, as servers are."""
        proc = self.hosts[host].spawn([need(argv[0]), *argv[1:]], user=NOBODY, group=NOBODY, cwd="/")
        wait_port(proc, address, port)
        return proc

    def client(self, host, *more, line=0, **kw):
        return self.hosts[host].run([*shlex.split(self.lines(host, "client")[line]), *more], **kw).decode()

    def done(self, daemon="A", at_least=1):
        """All of the section was used, by connections over SMC-R."""
        self.all_used()
        for d in self.daemons.values():
            equal(sum(s["fallbacks"] for s in d.services()), 0, f"connections of {d.name} on TCP")
        check(self.daemons[daemon].established() >= at_least, f"connections on SMC-R: {self.daemons[daemon].services()}")


@case("Redis with Sentinel", timeout=90)
def _(t):
    page = Recipe(t, "Redis with Sentinel")
    ports = {"B": 6401, "C": 6402}
    redis = {h: page.server(h, ["redis-server", page.file(h, "redis.conf", 'save ""', f"dir {page.own(h, NOBODY, NOBODY)}", "repl-diskless-sync-delay 0")],
                           "127.0.0.1", p)
             for h, p in ports.items()}
    page.start()
    for host in page.hosts:
        conf = page.file(host, "sentinel.conf", "sentinel down-after-milliseconds main 1000")
        page.server(host, ["redis-server", conf, "--sentinel"], f"192.0.2.{' ABC'.index(host)}", 26379)

    def ask(host, port, *words):
        return page.hosts[host].run(["redis-cli", "-p", str(port), *words]).decode().split("\n")
    equal(page.client("A"), "127.0.0.1\n6401\n", "the master")
    equal(page.client("A", line=1), "OK\n", "a write")
    wait_until(lambda: ask("C", 6402, "get", "key")[0] == "value", "the replica has it", 30)
    for host in page.hosts:
        wait_until(lambda h=host: "num-other-sentinels" in (s := ask(h, 26379, "sentinel", "master", "main"))
                   and (s[s.index("num-other-sentinels") + 1], s[s.index("num-slaves") + 1]) == ("2", "1"), f"{host} knows all", 30)
    page.done(at_least=3)
    redis["B"].kill()
    wait_until(lambda: page.client("A") == "127.0.0.1\n6402\n", "there is another master", 60)
    wait_until(lambda: ask("A", 6402, "set", "key", "new")[0] == "OK", "it takes writes", 30)


@case("nginx with the clients' addresses")
def _(t):
    page = Recipe(t, "nginx with the clients' addresses")
    directives = " ".join(page.lines("B", "nginx, server"))
    where = page.own("nginx", NOBODY, NOBODY)
    with open(os.path.join(where, "nginx.conf"), "w") as f:
        f.write(f"daemon off; pid {where}/pid; events {{ }} http {{ access_log {where}/log;\n"
                + "".join(f"{k}_temp_path {where}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
                + f'server {{ {directives} location / {{ return 200 "$remote_addr"; }} }} }}\n')
    page.server("B", ["nginx", "-p", where, "-e", f"{where}/error.log", "-c", f"{where}/nginx.conf"], "127.0.0.1", 8080)
    page.start()
    equal(page.client("C", "-sS"), "192.0.2.3", "the client that nginx sees")
    page.done()


@case("MariaDB and MySQL", timeout=90)
def _(t):
    page = Recipe(t, "MariaDB and MySQL")
    path = os.path.join(page.own("run/mysqld", MariaDB.uid, MariaDB.uid), "mysqld.sock")
    server = MariaDB(page.hosts["B"], [*page.lines("B", "my.cnf"), f"socket = {path}"], path)
    server.sql(page.lines("B", "SQL")[0])
    page.start()
    equal(page.client("C", "-Ne", "SELECT CURRENT_USER()"), "app@192.0.2.3\n", "the account")
    page.done()


@case("PgBouncer", timeout=90)
def _(t):
    page = Recipe(t, "PgBouncer")
    Postgres(page.hosts["B"], host="127.0.0.1", conf=page.lines("B", "postgresql.conf"),
             hba=page.lines("B", 'pg_hba.conf, before other lines for "host"'))
    page.hosts["B"].run([need("psql"), "-h", "127.0.0.1", "-U", "postgres", "-c", "create role app login password 'secret'"])
    page.start()
    users = "/etc/pgbouncer/userlist.txt"
    page.own("etc/pgbouncer", NOBODY, NOBODY)
    with open(page.here(users), "w") as f:
        f.write("\n".join([*page.lines("A", users), ""]))
    page.server("A", ["pgbouncer", page.file("A", "pgbouncer.ini", "unix_socket_dir =")], "127.0.0.1", 6432)
    out = page.client("A", "-Atc", "select current_user", env=dict(os.environ, PGPASSWORD="secret"))
    equal(out, "app\n", "user")
    page.done()


@case("MQTT with Mosquitto")
def _(t):
    page = Recipe(t, "MQTT with Mosquitto")
    page.own("etc/mosquitto", NOBODY, NOBODY)
    for line in page.lines("B", "shell"):
        t.run(shlex.split(line), user=NOBODY, group=NOBODY, extra_groups=[])
    page.server("B", ["mosquitto", "-c", page.file("B", "mosquitto.conf")], "127.0.0.1", 1883)
    page.start()
    page.client("C")
    equal(page.client("C", "-C", "1", line=1), "hello\n", "the message")
    page.done(at_least=2)


@case("NFS version 4")
def _(t):
    page = Recipe(t, "NFS version 4")
    page.own("srv/nfs", NOBODY, NOBODY, 0o777)
    with open(t.path("srv/nfs/file"), "w") as f:
        f.write("hello")
    conf = page.file("B", "ganesha.conf", "NFSV4 { Graceless = true; RecoveryRoot = %s; }" % page.own("run/ganesha", 0, 0))
    server = page.hosts["B"].spawn([need("ganesha.nfsd"), "-F", "-f", conf, "-L", t.path("ganesha.log"), "-p", t.path("ganesha.pid")])
    wait_port(server, "::ffff:127.0.0.1", 2049)
    page.start()

    def listed():
        try:
            return page.client("A")
        except Failure as e:
            t.note(e)
            return ""
    wait_until(lambda: re.search(r"\bfile$", listed(), re.M), "the file is listed", 30)
    page.done()


@case("each section has a case")
def _(t):
    equal(PAGE.names(), ["Redis with Sentinel", "nginx with the clients' addresses", "MariaDB and MySQL", "PgBouncer", "MQTT with Mosquitto",
                         "NFS version 4"], "sections")


main()
