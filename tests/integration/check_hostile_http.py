#!/usr/bin/env python3
"""Hostile HTTP clients at the metrics endpoint: traffic does not notice, what they hold is bounded, others are answered."""
import random
import socket
import time

from harness import (Client, case, check, connect_to, equal, hostport, in_thread, main, soft_device, wait_until, Daemon, SANITIZERS,
                     SHRINK)
from hostile import MIB, Scene, goes_on
from scrape import get, scrape, value

FDS = 128	# of http.h: 32 clients, 64 more that are sent away and not gone yet, and what others need meanwhile
OTHER = "127.3.2.1"	# a source that no client has otherwise
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n"


def scene_with_metrics(t):
    at = (t.addr, t.port())
    scene = Scene(t, b={"metrics": {"listen": hostport(*at)}})
    equal(get(at, "/healthz")[0], 200, "before")
    return scene, at


def dial(at):
    return connect_to(at, 10)


def send_all(s, data):
    """As far as it goes."""
    try:
        s.sendall(data)
    except OSError:
        pass


def ends(s):
    """What comes until the end."""
    got = b""
    try:
        while part := s.recv(65536):
            got += part
    except socket.timeout:
        check(False, "neither an answer nor an end")
    except OSError:
        pass
    s.close()
    return got


def finish(t, scene, at):
    """As before, and another client is answered."""
    scene.witness.alive()
    equal(get(at, "/healthz")[0], 200, "afterwards")
    watch = scene.watch[scene.b]
    t.note(str(watch))
    check(watch.grown("fds") <= FDS, f"descriptors: {watch.grown('fds')}")
    check(SANITIZERS or watch.grown("rss") < 32 * MIB, f"memory: {watch.grown('rss') / MIB:.1f} MiB")
    scene.witness.finish(t)


@case("garbage, long lines, huge headers and bodies, pipelining, half-closes", timeout=90)
def _(t):
    rnd = random.Random(1)
    scene, at = scene_with_metrics(t)
    many = b"".join(b"X-%d: y\r\n" % i for i in range(20000))
    for data in (b"", b"\r\n" * 1000, b"\0" * 5000, b"GET", b"GET /", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00" * 100,
                 b"GET http://[::1 HTTP/1.1\r\n\r\n", b"GET //////%00%ff%zz HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                 GET + b"Content-Length: -1\r\n\r\n", GET + b"Content-Length: 99999999999999999999\r\n\r\n",
                 GET + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", GET + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello",
                 GET + b"Content-Length: 100000000\r\nExpect: 100-continue\r\n\r\n" + b"x" * 1000000,
                 GET + b" folded\r\n\tline\r\n\r\n", b"GET /" + b"x" * 1000000, GET + b"X: " + b"y" * 1000000, GET + many,
                 (GET + b"\r\n") * 5000, GET + b"\r\n" + rnd.randbytes(100000)):
        s = dial(at)
        send_all(s, data)
        try:
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        got = ends(s)
        check(got == b"" or got.startswith(b"HTTP/1."), f"{data[:60]}: {got[:60]}")
        check(got.count(b"HTTP/1.1 200") <= 1, f"one request a connection: {data[:60]}")
    for _ in range(200 // SHRINK):
        s = dial(at)
        send_all(s, rnd.randbytes(rnd.randrange(1, 3000)))
        s.close()
    equal(ends_with_half_close(at), True, "a client that shuts its side down is answered")
    finish(t, scene, at)


def ends_with_half_close(at):
    s = dial(at)
    s.sendall(GET + b"\r\n")
    s.shutdown(socket.SHUT_WR)
    return ends(s).startswith(b"HTTP/1.1 200 OK")


@case("slow and many clients: each request is answered, and traffic continues", timeout=90)
def _(t):
    scene, at = scene_with_metrics(t)
    slow = []
    for i in range(100):	# three times as many as there may be, none of which completes its request
        s = dial(at)
        s.setblocking(False)
        send_all(s, GET[:i % len(GET)])
        slow.append(s)
    for _ in range(10):
        for s in slow:
            send_all(s, b"x")
        equal(get(at, "/healthz")[0], 200, "another client")
    # Clients with large requests that read no answer.
    deaf = []
    for _ in range(20):
        s = Client()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.connect(at)
        send_all(s, GET + b"\r\n")
        deaf.append(s)
    equal(value(scrape(at), "smcrd_service_connections", service="good", mode="smcr"), 1, "the witness is seen")
    for s in slow + deaf:
        s.close()
    # Connections without end, as fast as they go.
    until = time.monotonic() + 2

    def storm():
        n = 0
        while time.monotonic() < until:
            s = Client()
            s.settimeout(0.2)
            try:
                s.connect(at)
                s.sendall(GET)
                n += 1
            except OSError:
                pass
            s.close()
        return n
    storms = [in_thread(storm) for _ in range(2)]
    t.note(f"{sum(s.result() for s in storms)} connections in 2 s")

    def answered():
        try:
            return get(at, "/healthz")[0] == 200
        except OSError:
            return False
    wait_until(answered, "it answers")
    finish(t, scene, at)


@case("more clients without reading than places, and 1,000 services: others are answered, memory is bounded", timeout=120)
def _(t):
    at = (t.addr, t.port())
    d = Daemon(t, "m", {"metrics": {"listen": hostport(*at)}, "workers": 1, "devices": [soft_device(t.addr)],
                        "egress": [{"name": "s", "listen": f"{t.addr}:20000-20999", "to": f"{t.addr}:21000-21999"}]})
    status, _, body = get(at)
    check(status == 200 and len(body) > MIB, f"status {status}, {len(body)} bytes: more than sockets of deaf clients take")
    before = d.rss()
    deaf = []
    for _ in range(200 // SHRINK):
        s = Client()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.connect(at)
        send_all(s, GET + b"\r\n")
        deaf.append(s)

    def answered():
        try:
            return get(at, "/healthz")[0] == 200
        except OSError:
            return False
    for _ in range(5):	# another source has its place
        s = connect_to(at, 10, source=OTHER)
        s.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        got = ends(s)
        check(b" 200 OK" in got[:20], f"another source is answered at once: {got[:100]}")
    wait_until(answered, "the same source, when answers stand still", 8)
    t.note(f"memory grew by {(d.rss() - before) / MIB:.1f} MiB")
    check(SANITIZERS or d.rss() - before < 64 * MIB, "memory")
    for s in deaf:
        s.close()


@case("continuous simultaneous requests: traffic continues")
def _(t):
    scene, at = scene_with_metrics(t)
    until = time.monotonic() + 2

    def ask():
        n = 0
        while goes_on(until, n, 1):
            try:
                n += get(at)[0] == 200
            except OSError:
                time.sleep(0.01)	# raw: turned away, asks again
        return n
    asking = [in_thread(ask) for _ in range(3)]
    n = sum(a.result() for a in asking)
    t.note(f"{n} scrapes")
    check(n >= 3, "scrapes")
    finish(t, scene, at)


main()
