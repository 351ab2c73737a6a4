#!/usr/bin/env python3
"""
doc/unix.md: each of its lines is tried, with programs at both ends. As root, daemons and clients have the users and groups that the page
gives them, so that file modes count; otherwise all is of one user, and `usermod` and groups are left out.
"""
import grp
import os
import pwd
import re
import shlex

from harness import Skip, case, check, equal, main, need, unix_connect
from pages import Page, PlainDaemon, Section
from programs import MariaDB, Postgres, wait_socket

ROOT = os.geteuid() == 0
SMCRD, STRANGER = 65534, 65533		# users; the first one stands for smcrd, with a group of the same number


PAGE = Page("unix.md")


def gid(name):
    """Of a group of the page."""
    try:
        return {"smcrd": SMCRD, "app": 60}.get(name) or grp.getgrnam(name).gr_gid
    except KeyError:
        raise Skip(f"there is no group {name}") from None


class Tried(Section):
    """With its addresses those of the case, and its daemons."""

    def __init__(self, t, name):
        super().__init__(t, PAGE, name, ("run", "srv"))
        self.ports = {}
        self.own("run/smcrd", SMCRD, SMCRD)

    def here(self, line):
        line = re.sub(r"192\.0\.2\.2:(\d+)", lambda m: f"{self.t.addr}:{self.ports.setdefault(m[1], self.t.port())}", super().here(line))
        return line.replace("192.0.2.1", "127.0.0.0/8")	# here links have another address than connections

    def groups(self, host, user):
        """Of this user, by usermod."""
        found = []
        for parts in (self.parts, self.common):
            for words in map(str.split, parts.get((host, "shell"), ())):
                equal((words[:2], len(words)), (["usermod", "-aG"], 4), "words of usermod")
                if words[3] == user:
                    found.append(gid(words[2]))
        self.used.add((host, "shell"))
        return found

    def as_user(self, user, *groups, primary=None):
        """Words in front of a command."""
        if not ROOT:
            return []
        more = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
        return [need("setpriv"), f"--reuid={user}", f"--regid={primary or user}", more]

    def daemon(self, host):
        kind = {"A": "ingress", "B": "egress"}[host]
        common = "\n".join(self.here(line) for line in self.common[host, "smcrd.conf"])
        common = common.replace('"app"', f'"{grp.getgrgid(gid("app") if ROOT else os.getegid()).gr_name}"')
        text = (f'{common}\n{kind} = (\n{"".join(self.lines(host, "smcrd.conf"))}\n);\n'
                f'log_level = "info";\ndevices = ( {{ type = "siw"; address = "{self.t.addr}"; }} );\n')
        d = PlainDaemon(self.t, host, text, self.as_user(SMCRD, *self.groups(host, "smcrd")))
        if ROOT:
            os.chown(d.dir, SMCRD, SMCRD)
        d.start()
        return d

    def daemons(self):
        self.b, self.a = self.daemon("B"), self.daemon("A")

    def client(self, *argv, user=STRANGER, **kw):
        """In the group of the clients."""
        return self.t.run([*self.as_user(user, gid("app")), *argv], cwd="/", **kw).decode()

    def nginx(self, *directives, user):
        """A private one with a server that has these; `user` as nginx.conf has it."""
        t, where = self.t, self.own(f"nginx{self.t.count()}", 0, 0)
        with open(os.path.join(where, "nginx.conf"), "w") as f:
            f.write(f"{f'user {user};' if ROOT else ''} daemon off; worker_processes 1; pid {where}/pid; events {{ }} http {{ access_log off;\n"
                    + "".join(f"{k}_temp_path {where}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
                    + "\n" + "\n".join(directives) + "\n}\n")
        return t.spawn([need("nginx"), "-p", where, "-e", f"{where}/error.log", "-c", f"{where}/nginx.conf"])

    def web_client(self, *directives):
        """An nginx on A with this location: the answers to GETs of it."""
        listen = self.t.path("run/front.sock")
        text = " ".join(self.lines("A", "nginx, location"))
        text = text.replace("fastcgi_params", "/etc/nginx/fastcgi_params")
        group = grp.getgrgid(self.groups("A", "www-data")[0]).gr_name
        proc = self.nginx(f"server {{ listen unix:{listen}; location / {{ {text} }} }}", user=f"www-data {group}")
        wait_socket(proc, listen)
        return lambda path: self.t.run([need("curl"), "-sS", "--unix-socket", listen, f"http://x{path}"]).decode()

    def done(self, at_least=1):
        """All of the section was used, by connections over SMC-R, and others may not connect."""
        self.all_used()
        service = self.a.services()[0]
        check(service["accepted"] >= at_least and service["fallbacks"] == 0, f"connections: {service}")
        equal(self.a.established() >= at_least, True, "on SMC-R")
        path = service["listen"].partition(":")[2]
        equal(oct(os.stat(path).st_mode & 0o777), "0o660", "the mode")
        if ROOT:
            equal(self.t.fork(denied, path).result(), True, "another user may not connect")


def denied(path):
    os.setgroups([])
    os.setgid(STRANGER)
    os.setuid(STRANGER)
    try:
        unix_connect(path).close()
    except PermissionError:
        return True
    return False


def server_of(user):
    """(uid, gid) of a server's user."""
    try:
        p = pwd.getpwnam(user)
    except KeyError:
        raise Skip(f"there is no user {user}") from None
    return p.pw_uid, p.pw_gid


@case("Redis")
def _(t):
    server = need("redis-server")
    page, (uid, group) = Tried(t, "Redis"), server_of("redis")
    where = page.own("run/redis", uid, group, 0o2755)
    conf = os.path.join(where, "conf")
    with open(conf, "w") as f:
        f.write("\n".join([*page.lines("B", "redis.conf"), "port 0", 'save ""', f"dir {where}"]))
    os.chmod(conf, 0o644)
    wait_socket(t.spawn([*page.as_user(uid, primary=group), server, conf]), os.path.join(where, "redis-server.sock"))
    page.daemons()
    equal(page.client(*shlex.split(page.lines("A", "client")[0])), "PONG\n", "answer")
    page.done()


@case("PostgreSQL", timeout=90)
def _(t):
    page = Tried(t, "PostgreSQL")
    where = page.own("run/postgresql", *server_of("postgres"), 0o2775)
    Postgres(t, host=where, unix=True, conf=page.lines("B", "postgresql.conf"), hba=page.lines("B", 'pg_hba.conf, before other lines for "local"'))
    t.run([need("psql"), "-h", where, "-U", "postgres", "-c", "create role app login password 'secret'"])
    page.daemons()
    argv = shlex.split(page.lines("A", "client")[0])
    equal(page.client(*argv, "-Atc", "select current_user", env=dict(os.environ, PGPASSWORD="secret")), "app\n", "user")
    page.done()


@case("MySQL and MariaDB", timeout=90)
def _(t):
    page = Tried(t, "MySQL and MariaDB")
    where = page.own("run/mysqld", MariaDB.uid, MariaDB.uid)
    server = MariaDB(t, [*page.lines("B", "my.cnf"), "skip-networking"], os.path.join(where, "mysqld.sock"))
    server.sql(page.lines("B", "SQL")[0])
    page.daemons()
    argv = shlex.split(page.lines("A", "client")[0])
    equal(page.client(*argv, "-Ne", "SELECT CURRENT_USER()"), "app@localhost\n", "user")
    page.done()


@case("nginx")
def _(t):
    page = Tried(t, "nginx")
    listen = page.lines("B", "nginx, server")[0]
    wait_socket(page.nginx(f'server {{ {listen} location / {{ return 200 "on B$uri"; }} }}', user="www-data"), t.path("run/nginx.sock"))
    page.daemons()
    equal(page.web_client()("/x"), "on B/x", "answer")
    page.done()


@case("php-fpm")
def _(t):
    page = Tried(t, "php-fpm")
    found = sorted(f for d in ("/usr/sbin", "/usr/bin") for f in os.listdir(d) if re.fullmatch(r"php-fpm[\d.]*", f))
    server = need(found[-1] if found else "php-fpm")
    page.own("run/php", *server_of("www-data"))
    page.own("srv/www", 0, 0)
    with open(t.path("srv/www/hello.php"), "w") as f:
        f.write('<?php echo "PHP on B: ", 6 * 7;')
    lines = [line.replace("smcrd", grp.getgrgid(SMCRD).gr_name) if "group" in line else line for line in page.lines("B", "php-fpm, pool")
             if ROOT or not re.match(r"listen\.(owner|group)", line)]
    who = ["user = www-data", "group = www-data"] if ROOT else []
    with open(t.path("fpm.conf"), "w") as f:
        f.write("\n".join(["[global]", f"error_log = {t.path('fpm.log')}", "[www]", *who, *lines, "pm = static", "pm.max_children = 1"]))
    wait_socket(t.spawn([server, "-n", "-F", "-y", t.path("fpm.conf")]), t.path("run/php/php-fpm.sock"))
    page.daemons()
    equal(page.web_client()("/hello.php"), "PHP on B: 42", "answer")
    page.done()


@case("memcached")
def _(t):
    server = need("memcached")
    page, (uid, group) = Tried(t, "memcached"), server_of("memcache")
    where = page.own("run/memcached", uid, group)
    argv = [w for line in page.lines("B", "memcached.conf") for w in line.split()]
    path = os.path.join(where, "memcached.sock")
    wait_socket(t.spawn([*page.as_user(uid, primary=group), server, *argv]), path)
    with unix_connect(path) as s:
        s.sendall(b"set /key 0 0 5\r\nvalue\r\n")
        equal(s.recv(100), b"STORED\r\n", "stored")
    page.daemons()
    equal(page.web_client()("/key"), "value", "answer")
    page.done()


@case("each section has a case")
def _(t):
    equal(PAGE.names(), ["Redis", "PostgreSQL", "MySQL and MariaDB", "nginx", "php-fpm", "memcached"], "sections")
    shell = [line for parts in PAGE.sections.values() for _, place, lines in parts if place == "shell" for line in lines]
    check(all(line.startswith("usermod -aG ") for line in shell), f"lines for a shell: {shell}")


main()
