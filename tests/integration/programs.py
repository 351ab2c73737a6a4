"""
Third-party servers, each started privately: own directory, own port on the test's address, ended with the
case. Used by the integration tests and the benchmark.
"""
import csv
import glob
import io
import json
import os
import pwd
import re
import shutil
import socket

from harness import UNIX, Failure, Skip, check, connect_to, need, recv_all, unix_connect, wait_until


def listens(host, port, pid="self"):
    """Is there a listener in the network of this process? Asks the kernel, so the program sees no connection."""
    family, table = (socket.AF_INET6, "tcp6") if ":" in host else (socket.AF_INET, "tcp")
    raw = socket.inet_pton(family, host)
    words = [raw[i:i + 4][::-1] for i in range(0, len(raw), 4)]
    want = {f"{b''.join(words).hex().upper()}:{port:04X}", f"{'0' * len(raw) * 2}:{port:04X}"}
    with open(f"/proc/{pid}/net/{table}") as f:
        return any(fields[1] in want and fields[3] == "0A" for fields in (line.split() for line in f))


def wait_listening(proc, at):
    """at: (host, port), or the path of a UNIX socket."""
    if isinstance(at, str):
        return wait_socket(proc, at)

    def up():
        if not proc.alive():
            raise Failure(f"{proc.name} ended at start with status {proc.popen.returncode}: {proc.log()[-600:]}")
        return listens(*at, proc.pid)
    wait_until(up, f"{proc.name} listens on {at}", 20)


def wait_port(proc, host, port):
    wait_listening(proc, (host, port))


def wait_socket(proc, path):
    """A program's UNIX socket exists, by the kernel's table: a connect would be a client."""
    def up():
        if not proc.alive():
            raise Failure(f"{proc.name} ended at start with status {proc.popen.returncode}: {proc.log()[-600:]}")
        # haproxy binds it by another name, which is what the kernel keeps, and renames the file.
        names = ([path], [f"{path}.{proc.pid}.tmp"])
        with open(f"/proc/{proc.pid}/net/unix") as f:
            listens = any(line.split()[7:] in names and line.split()[3] == "00010000" for line in f)
        return listens and os.path.exists(path)
    wait_until(up, f"{proc.name} listens on {path}", 20)


class Redis:
    def __init__(self, t, host=None, extra=(), unix=None):
        server = need("redis-server")
        unix = UNIX and not host if unix is None else unix
        self.host, self.port = host or t.addr, t.port()
        self.dir = t.path(f"redis{self.port}")
        self.unix = os.path.join(self.dir, "socket")
        os.mkdir(self.dir)
        where = ["--bind", self.host, "--port", str(self.port), "--unixsocket", self.unix]
        if unix:
            self.unix = t.socket_path("redis")
            where = ["--port", "0", "--unixsocket", self.unix, "--unixsocketperm", "777"]
            self.host, self.port = f"unix:{self.unix}", 0
        self.proc = t.spawn([server, *where, "--dir", self.dir, "--save", "", "--appendonly", "no", "--maxclients", "10000",
                             "--protected-mode", "no", *extra])
        if unix:
            wait_socket(self.proc, self.unix)
        else:
            wait_port(self.proc, self.host, self.port)

    def connect(self):
        """A client's socket without any daemon between."""
        if self.port == 0:
            return unix_connect(self.host.partition(":")[2])
        return connect_to((self.host, self.port))


class RedisClient:
    """The few words of Redis' protocol that the cases need."""

    def __init__(self, sock):
        self.sock = sock
        self.file = sock.makefile("rb", buffering=1 << 20)

    def send(self, *args):
        args = [a if isinstance(a, bytes) else str(a).encode() for a in args]
        self.sock.sendall(b"".join([b"*%d\r\n" % len(args)] + [b"$%d\r\n%s\r\n" % (len(a), a) for a in args]))

    def reply(self):
        line = self.file.readline()
        check(line.endswith(b"\r\n"), f"end of the connection inside a reply: {line!r}")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            n = int(rest)
            return None if n < 0 else self.file.read(n + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        check(kind in b"+:", f"reply {line!r}")
        return rest

    def call(self, *args):
        self.send(*args)
        return self.reply()


class Postgres:
    def __init__(self, t, host=None, unix=None, conf=None, hba=()):
        """unix: it listens in the directory `host` alone. conf: lines of its configuration, which then say where it listens, on port 5432;
        hba: lines in front of those of pg_hba.conf. `at` is what smcrd connects to."""
        bins = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not bins:
            raise Skip("postgresql is not installed")
        self.bin = bins[-1]
        unix = UNIX and not host if unix is None else unix
        self.host, self.port = host or t.addr, t.port()
        self.dir = t.path(f"pgdata.{t.count()}")
        os.mkdir(self.dir)
        where = ["-h", self.host, "-k", ""]
        if conf:
            self.port = 5432
            where = ["-h", ""] if unix else ["-k", ""]
        self.at = (self.host, self.port)
        if unix and not conf:
            self.host = t.path("pgrun")
            os.mkdir(self.host)
            os.chmod(self.host, 0o777)
            where = ["-h", "", "-k", self.host]
        if unix:
            self.at = (f"unix:{self.host}/.s.PGSQL.{self.port}", 0)
        self.kw = {}
        if os.getuid() == 0:		# PostgreSQL refuses to run as root
            try:
                user = pwd.getpwnam("postgres")
            except KeyError:
                raise Skip("no user postgres to run PostgreSQL as") from None
            os.chown(self.dir, user.pw_uid, user.pw_gid)
            self.kw = dict(user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        env = dict(os.environ, LC_ALL="C")
        t.run([f"{self.bin}/initdb", "-D", self.dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
              env=env, cwd="/", timeout=120, **self.kw)
        with open(f"{self.dir}/postgresql.conf", "a") as f:
            f.write("".join(f"{line}\n" for line in conf or ()))
        with open(f"{self.dir}/pg_hba.conf", "r+") as f:
            text = f.read()
            f.seek(0)
            f.write("\n".join([*hba, text]))
        self.proc = t.spawn([f"{self.bin}/postgres", "-D", self.dir, "-p", str(self.port), *where, "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_wal_size=4GB",
                             "-c", "shared_buffers=64MB", "-c", "max_connections=200"],
                            cwd="/", env=env, **self.kw)
        psql = need("psql")
        wait_until(lambda: self.proc.alive() and self.ready(t, psql), "PostgreSQL answers", 30)

    def ready(self, t, psql):
        try:
            t.run([psql, "-h", self.host, "-p", str(self.port), "-U", "postgres", "-Atc", "select 1"])
            return True
        except Failure:
            return False


class MariaDB:
    """On a UNIX socket `path`; as root its user is this uid, with a group of the same number."""

    uid = 65532

    def __init__(self, t, conf, path):
        """conf: lines of its configuration, which say where it listens."""
        server, install, self.client = need("mariadbd"), need("mariadb-install-db"), need("mysql")
        self.t, self.path, data, tmp, file = t, path, t.path("mariadb"), t.path("mariadb.tmp"), t.path("my.cnf")
        kw = dict(user=self.uid, group=self.uid, extra_groups=[]) if os.getuid() == 0 else {}
        for made in (data, tmp):	# tmp of its own: each server that starts removes the temporary tables of all others there
            os.mkdir(made)
            if kw:
                os.chown(made, self.uid, self.uid)
        with open(file, "w") as f:
            f.write("\n".join([*conf, f"datadir = {data}", f"tmpdir = {tmp}", "innodb-log-file-size = 4M", "innodb-flush-method = nosync", ""]))
        t.run([install, f"--defaults-file={file}", "--auth-root-authentication-method=normal", "--skip-test-db"], cwd="/", **kw)
        self.proc = t.spawn([server, f"--defaults-file={file}"], cwd="/", **kw)
        wait_socket(self.proc, path)

    def sql(self, text):
        return self.t.run([self.client, f"--socket={self.path}", "--user=root", "-Ne", text]).decode()


def wrk(run, url, clients, seconds, *extra):
    """Requests done; every one of them answered, none with an error. run(argv) has what a program says. Without a limit of ours wrk
    takes an answer after more than 2 s for an error; for a limit of minutes it wants gigabytes."""
    out = run([need("wrk"), "-t", "1", "-c", str(clients), "-d", str(seconds), "--timeout", "30", *extra, url])
    out = out if isinstance(out, str) else out.decode()
    check("Socket errors" not in out and "Non-2xx" not in out, f"wrk: {out}")
    return int(re.search(r"(\d+) requests in", out)[1])


class Nginx:
    """Serves self.root; put files there."""

    def __init__(self, t, host=None, extra_server="", listen_extra="", proxy_protocol=False, workers=1, reuseport=True):
        nginx = need("nginx")
        self.host, self.port = host or t.addr, t.port()
        self.dir = t.path(f"nginx{self.port}")
        self.root = os.path.join(self.dir, "root")
        os.makedirs(self.root)
        os.chmod(self.dir, 0o755)
        self.access_log = os.path.join(self.dir, "access.log")
        conf = os.path.join(self.dir, "nginx.conf")
        listen = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        user = "user root;" if os.getuid() == 0 else ""
        with open(conf, "w") as f:
            f.write(f"""
{user}
daemon off;
worker_processes {workers};
pid {self.dir}/pid;
error_log {self.dir}/error.log;
worker_rlimit_nofile 20000;
events {{ worker_connections 8000; }}
http {{
  log_format peers '$proxy_protocol_addr $remote_addr $request $status $body_bytes_sent';
  access_log {self.access_log if proxy_protocol else 'off'} {'peers' if proxy_protocol else ''};
  client_body_temp_path {self.dir}/body; proxy_temp_path {self.dir}/proxy; fastcgi_temp_path {self.dir}/fcgi;
  uwsgi_temp_path {self.dir}/uwsgi; scgi_temp_path {self.dir}/scgi;
  sendfile on; keepalive_requests 1000000; client_max_body_size 1g;
  server {{
    listen {listen} {'reuseport' if reuseport else ''} backlog=4096 {'proxy_protocol' if proxy_protocol else ''};
    {listen_extra}
    root {self.root};
    location = /small {{ return 200 "hello from nginx\\n"; }}
    location /put/ {{ root {self.root}; dav_methods PUT DELETE; create_full_put_path on; }}
    {extra_server}
  }}
}}
""")
        self.proc = t.spawn([nginx, "-p", self.dir, "-e", f"{self.dir}/error.log", "-c", conf])
        wait_port(self.proc, self.host, self.port)

    def file(self, name, data):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        return path


class Iperf3:
    """Takes one test at a time, as iperf3 does."""

    def __init__(self, t, host=None):
        self.host, self.port = host or t.addr, t.port()
        self.proc = t.spawn([need("iperf3"), "-s", "-B", self.host, "-p", str(self.port)])
        wait_port(self.proc, self.host, self.port)


def iperf3(t, host, port, seconds=2, streams=1, reverse=False, extra=(), timeout=30):
    """Runs a client: its JSON. The server may still be busy with what a port probe left; tried again for a while."""
    argv = [need("iperf3"), "-c", host, "-p", str(port), "-t", str(seconds), "-P", str(streams), "-J", *extra]
    if reverse:
        argv.append("-R")

    def once():
        out = json.loads(t.run(argv, timeout=seconds + timeout, status=None) or b"{}")
        if "busy" in out.get("error", ""):
            return None
        return out
    out = wait_until(once, "iperf3's server takes a test", 20)
    if "error" in out:
        raise Failure(f"iperf3: {out['error']}")
    return out


class HaproxyPair:
    """client -> haproxy -> haproxy -> server, what smcrd is measured against."""

    def __init__(self, t, targets, splice=False, threads=1, maxconn=6000, unix=False, ends=None, tls=None,
                 clientip=False):
        """targets: name -> (host, port) of the server, or the path of its socket. Gives at: name -> the same of the near
        haproxy, a path with `unix`. ends: (Case or what stands for it, address) of the near and of the far one. tls: settings as of
        smcrd's `tls`, both ways between the two. clientip: the far one connects by the client's address."""
        haproxy = need("haproxy")
        (near, near_host), (far, far_host) = ends or ((t, t.addr), (t, t.addr))
        where = t.path(f"haproxy{t.count()}")
        os.mkdir(where)
        self.at = {n: os.path.join(where, n) if unix else (near_host, t.port()) for n in targets}
        middle = {n: (far_host, t.port()) for n in targets}
        top = ["global", f"  nbthread {threads}", f"  maxconn {maxconn}", "defaults", "  mode tcp", f"  maxconn {maxconn}",
               "  timeout connect 10s", "  timeout client 1h", "  timeout server 1h",
               *(["  option splice-auto"] if splice else [])]
        self.confs, self.procs, self.stats = {}, [], os.path.join(where, "far.stats")
        between = ""
        if tls:
            both = os.path.join(where, "both.pem")
            with open(both, "w") as f:
                f.write(open(tls["cert"]).read() + open(tls["key"]).read())
            between = (f" ssl crt {both} ca-file {tls['ca']} verify required ssl-min-ver TLSv1.3"
                       " ciphersuites TLS_AES_128_GCM_SHA256")
        accepts, sends, source = "", "", []
        if clientip:
            accepts, sends, source = " accept-proxy", " send-proxy-v2", ["  source 0.0.0.0 usesrc clientip"]
        for side, case, listen, to in (("far", far, middle, targets), ("near", near, self.at, middle)):
            lines = [top[0], f"  stats socket {where}/{side}.stats", *top[1:]]
            for name in targets:
                lines += [f"listen {name}", *(source if side == "far" else []),
                          f"  bind {haproxy_address(listen[name])} backlog 4096{between + accepts if side == 'far' else ''}",
                          f"  server s {haproxy_address(to[name])}{between + sends if side == 'near' else ''}"]
            self.confs[side] = "\n".join(lines) + "\n"
            path = os.path.join(where, f"{side}.cfg")
            with open(path, "w") as f:
                f.write(self.confs[side])
            proc = case.spawn([haproxy, "-db", "-f", path], f"haproxy-{side}")
            self.procs.append(proc)
            for at in listen.values():
                wait_listening(proc, at)


    def handshakes(self):
        """Of TLS at the far one: all, and those that resumed a session."""
        with unix_connect(self.stats) as s:
            s.sendall(b"show stat\n")
            rows = list(csv.DictReader(io.StringIO(recv_all(s).decode().lstrip("# "))))
        full, resumed = (sum(int(r[key] or 0) for r in rows if r["svname"] == "FRONTEND") for key in ("ssl_sess", "ssl_reused_sess"))
        return full + resumed, resumed


def haproxy_address(at):
    """Of a (host, port) or a path."""
    return f"unix@{at}" if isinstance(at, str) else f"{at[0]}:{at[1]}"


def postgres_bin(name):
    """A client program of PostgreSQL."""
    found = shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))), None)
    if not found:
        raise Skip(f"{name} is not installed")
    return found
