"""
In the guest: third-party servers and clients, started from this machine or from the other one, so arguments and
results are plain. preload: their TCP sockets are AF_SMC ones (preload_smc.c).
"""
import hashlib
import os

import programs
from harness import TOP_BUILD, Skip, need, pattern, same_bytes

PRELOAD = os.path.abspath(os.path.join(TOP_BUILD, "tests", "interop", "vm", "preload_smc.so"))
FILE = pattern(100000, 3)
VALUE = pattern(300000, 4)


class Preloaded:
    """A case whose programs have AF_SMC sockets."""

    def __init__(self, t):
        if not os.path.exists(PRELOAD):
            raise Skip(f"{PRELOAD} is not built (make check)")
        self._t = t
        self._env = dict(os.environ, LD_PRELOAD=PRELOAD)

    def __getattr__(self, name):
        return getattr(self._t, name)

    def spawn(self, argv, name=None, **kw):
        return self._t.spawn(argv, name, env=self._env, **kw)

    def run(self, argv, **kw):
        return self._t.run(argv, env=self._env, **kw)


class Real:
    def __init__(self, t):
        self.plain = t
        self.servers = []		# they live as long as the case

    def _case(self, preload):
        return Preloaded(self.plain) if preload else self.plain

    # -- servers: their port --

    def _serve(self, server):
        self.servers.append(server)
        return server.port

    def redis(self, host, preload):
        return self._serve(programs.Redis(self._case(preload), host))

    def nginx(self, host, preload):
        server = programs.Nginx(self._case(preload), host, reuseport=not preload)	# the kernel refuses it
        server.file("file", FILE)
        return self._serve(server)

    def uploaded(self):
        """What came into the file "copy" of the last nginx, as a checksum."""
        with open(os.path.join(self.servers[-1].root, "put", "copy"), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    def iperf3(self, host, preload):
        return self._serve(programs.Iperf3(self._case(preload), host))

    # -- clients --

    def redis_cli(self, host, port, preload):
        """A value of 300,000 bytes there and back; "OK"."""
        t = self._case(preload)
        argv = [need("redis-cli"), "-h", host, "-p", str(port)]
        said = t.run([*argv, "-x", "SET", "value"], input=VALUE).strip().decode()
        same_bytes(t.run([*argv, "--raw", "GET", "value"])[:-1], VALUE, "the value that came back")
        return said

    def redis_benchmark(self, host, port, preload, clients, requests):
        """Its rows: a test's name, requests per second."""
        out = self._case(preload).run([need("redis-benchmark"), "-h", host, "-p", str(port), "-t", "set,get,lpush,lrange_100",
                                       "-c", str(clients), "-n", str(requests), "-P", "4", "-d", "100", "--csv"]).decode()
        rows = [x.replace('"', "").split(",") for x in out.split("\n") if x.startswith('"') and not x.startswith('"test"')]
        return [[x[0], float(x[1])] for x in rows]

    def curl(self, url, preload, *extra):
        """The file, with its checksum found right; its size."""
        got = self._case(preload).run([need("curl"), "-sSf", *extra, f"{url}/file"])
        same_bytes(got, FILE, "download")
        return len(got)

    def upload(self, url, preload):
        """The file's checksum."""
        self._case(preload).run([need("curl"), "-sSf", "-T", "-", f"{url}/put/copy"], input=FILE)
        return hashlib.sha256(FILE).hexdigest()

    def wrk(self, url, preload, connections, seconds, *extra):
        """Requests done, none of them with an error."""
        return programs.wrk(self._case(preload).run, url, connections, seconds, *extra)

    def iperf3_client(self, host, port, preload, reverse, streams):
        """Bytes sent, bytes received, bits per second."""
        out = programs.iperf3(self._case(preload), host, port, seconds=2, streams=streams, reverse=reverse)
        received = out["end"]["sum_received"]
        return out["end"]["sum_sent"]["bytes"], received["bytes"], received["bits_per_second"]
