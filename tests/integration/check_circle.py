#!/usr/bin/env python3
"""Services that lead to each other in a circle: a client is reset after a few connections, wherever the circle runs; a long
chain to a server is no circle."""
import json

from harness import (SANITIZERS, SMCRCTL, VALGRIND, Daemon, Server, Skip, case, check, connect_to, echo, equal, hostport, main, need,
                     recv_exact, same_bytes, soft_device, wait_until)

HOPS_MAX = 8
# connect() returns 20 ms late, as when its thread has no processor, so the far end is quicker. No system call, for the filter of the daemon.
LATE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <time.h>
int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	int (*real)(int, const struct sockaddr *, socklen_t) = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
	int rc = real(fd, to, len), err = errno;
	struct timespec from, now;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 20000000);
	errno = err;
	return rc;
}
"""


def events_of(daemon):
    out = daemon.t.run([SMCRCTL, "--socket", daemon.control, "--json", "events"], status=None)
    return [json.loads(line) for line in out.decode().splitlines()]


class Hosts:
    """Daemons by name, each service a (kind, daemon, listen, to); listen and to are ports of one address. b, env: settings and
    environment of daemon b."""

    def __init__(self, t, services, b=None, env=None, **conf):
        self.t = t
        self.daemons = {}
        for daemon in sorted({s[1] for s in services}):
            lists = {"ingress": [], "egress": []}
            for kind, d, listen, to in services:
                if d == daemon:
                    lists[kind].append({"name": f"{kind}{len(lists[kind])}", "listen": hostport(t.addr, listen), "to": hostport(t.addr, to)})
            self.daemons[daemon] = Daemon(t, daemon, {"log_level": "info", "devices": [soft_device(t.addr)], **lists, **conf,
                                                **((b if daemon == "b" else None) or {})}, env=env if daemon == "b" else None)

    def accepted(self):
        return sum(s["accepted"] for d in self.daemons.values() for s in d.services())

    def connections(self):
        return sum(s["connections"] for d in self.daemons.values() for s in d.services())

    def is_broken_at(self, port, clients=2, most=4 * HOPS_MAX):
        """More than once, as the second time there are link groups. most: connections of one."""
        for i in range(1, clients + 1):
            try:
                with connect_to((self.t.addr, port)) as s:
                    check(s.recv(1) == b"", "no byte comes out of a circle")
            except ConnectionError:
                pass
            wait_until(lambda: self.connections() == 0, "all of it has ended")
            # A hop may be tried twice, as when its first contact failed; without a limit there are thousands.
            check(self.accepted() <= i * most, f"{self.accepted()} connections of {i} clients")
        told = wait_until(lambda: [line for d in self.daemons.values() for line in d.log().splitlines()
                                   if "services lead in a circle" in line], "the circle is logged")
        check(f"a connection has passed through {HOPS_MAX} gateway services" in told[0], f"told: {told}")
        events = [e for d in self.daemons.values() for e in events_of(d) if e["kind"] == "circle"]
        check(events and events[0]["service"], f"events: {events}")
        reasons = [r["text"] for d in self.daemons.values() for s in d.ctl("stats")["services"] for r in s["reset_reasons"]]
        check("services lead in a circle" in reasons, f"counted by reason: {reasons}")


@case("within one daemon")
def _(t):
    front, middle = t.port(), t.port()
    Hosts(t, [("ingress", "a", front, middle), ("egress", "a", middle, front)]).is_broken_at(front)


@case("within one daemon, of ingresses alone, without an answer to the Proposal")
def _(t):
    one, two = t.port(), t.port()
    Hosts(t, [("ingress", "a", one, two), ("ingress", "a", two, one)]).is_broken_at(one)


@case("over two daemons, from one's egress to the other's ingress")
def _(t):
    front, middle = t.port(), t.port()
    Hosts(t, [("ingress", "a", front, middle), ("egress", "b", middle, front)]).is_broken_at(front)


@case("over two daemons, each with a pair of services")
def _(t):
    a, b, ab, ba = (t.port() for _ in range(4))
    Hosts(t, [("ingress", "a", a, ab), ("egress", "b", ab, b), ("ingress", "b", b, ba), ("egress", "a", ba, a)]).is_broken_at(a)


@case("over two daemons, on TCP")
def _(t):
    """Where b says that there is no SMC-R: the Proposal has been sent."""
    front, middle = t.port(), t.port()
    hosts = Hosts(t, [("ingress", "a", front, middle), ("egress", "b", middle, front)], b={"devices": [{"type": "siw", "interface": "none0"}]})
    hosts.is_broken_at(front)
    equal([d.established() for d in hosts.daemons.values()], [0, 0], "connections on SMC-R")


@case("with several workers")
def _(t):
    a, b, ab, ba = (t.port() for _ in range(4))
    Hosts(t, [("ingress", "a", a, ab), ("egress", "b", ab, b), ("ingress", "b", b, ba), ("egress", "a", ba, a)],
          workers=2).is_broken_at(a)


@case("over two daemons with several workers, whose connect() returns late")
def _(t):
    if SANITIZERS or VALGRIND:
        raise Skip("a library of its own is loaded first")
    source, library = t.path("late.c"), t.path("late.so")
    with open(source, "w") as f:
        f.write(LATE)
    t.run([need("cc"), "-shared", "-fPIC", "-w", "-o", library, source, "-ldl"])
    front, middle = t.port(), t.port()
    hosts = Hosts(t, [("ingress", "a", front, middle), ("egress", "b", middle, front)], env={"LD_PRELOAD": library}, workers=3)
    with open(f"/proc/{hosts.daemons['b'].pid}/maps") as f:
        check(library in f.read(), "the library is loaded")
    hosts.is_broken_at(front, clients=6, most=2 * HOPS_MAX)


@case("a chain of four pairs of services within two daemons reaches the server")
def _(t):
    server = Server(t, echo)
    ports = [t.port() for _ in range(HOPS_MAX)]
    services = [(("ingress", "egress")[i % 2], "aabb"[i % 4], ports[i], (ports + [server.port])[i + 1]) for i in range(HOPS_MAX)]
    Hosts(t, services)
    for _ in range(2):
        with connect_to((t.addr, ports[0])) as s:
            s.sendall(b"hello")
            same_bytes(recv_exact(s, 5), b"hello", "echo")


main()
