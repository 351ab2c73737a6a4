#!/usr/bin/env python3
"""
The TCP connection between two gateways, and what network and hosts do to it beside the links: middle connections run over pair 1 of
the network namespaces, links over pair 2, connections to servers over pair 3, so that each can be cut alone.
"""
from netns import ADDR_A, ADDR_B, Net, enter

enter()

import sys								# noqa: E402
import time								# noqa: E402

from harness import (PATIENCE, Daemon, Server, Skip, case, check, connect_to, echo, equal, in_thread, main,	# noqa: E402
                     need, pattern, recv_all, recv_exact, same_bytes, wait_until)

PORT, MIDDLE = 12000, 13000
ALIVE = {"idle": "1s", "interval": "1s", "probes": 2, "smcr_idle_min": "1s"}
NO_DEVICE = [{"type": "siw", "interface": "none0"}]
LOST = "CLC connection lost, its link stays up"


class Gateways:
    """client, a (here) == b (over there) -> server, here."""

    def __init__(self, t, serve=echo, smcr=None, device=None, fallback=False, **conf):
        self.net = Net(t, 3)
        self.server = Server(t, serve, host="10.77.3.1")
        common = {"log_level": "info", "keepalive": ALIVE, "smcr": dict({"links_max": 1, "open_over_link": False}, **(smcr or {})), **conf}
        devices = {side: NO_DEVICE if fallback else [dict(self.net.devices(side)[1], **(device or {}))] for side in "ab"}
        self.a = Daemon(t, "a", dict(common, devices=devices["a"], ingress=[
            {"name": "x", "listen": f"{ADDR_A}:{PORT}", "to": f"10.77.1.2:{MIDDLE}"}]))
        self.b = Daemon(t, "b", dict(common, devices=devices["b"], egress=[
            {"name": "x", "listen": f"10.77.1.2:{MIDDLE}", "to": f"10.77.3.1:{self.server.port}"}]), wrap=self.net.b.wrap())
        self.both = (self.a, self.b)

    def connect(self, mode="smcr", port=PORT):
        s = self.net.connect(port)
        talk(s, b"hello")
        for d in self.both:
            wait_until(lambda d=d: {x["mode"] for x in d.connections()} == {mode}, f"{d.name}: data on {mode}")
        # There is no keepalive while a CLC message is not acknowledged.
        wait_until(lambda: all(m.split()[1] == "0" for m in middles(self, "a")), "the middle has nothing under way")
        return s

    def ends_well(self, s):
        """The end of the connection is passed on at once, and neither gateway keeps anything of it."""
        start = time.monotonic()
        s.close()
        for d in self.both:
            wait_until(lambda d=d: not d.connections(), f"{d.name} is through with the connection")
            equal(d.counters()["closed_reset"], 0, f"{d.name}: resets")
        check(time.monotonic() - start < 1 * PATIENCE, "the end does not wait for the middle")


def talk(s, data):
    s.sendall(data)
    equal(recv_exact(s, len(data)), data, "echo")


def outcome(s):
    """How the connection ends."""
    try:
        return "end" if recv_all(s) is not None else ""
    except OSError as e:
        return "reset" if isinstance(e, ConnectionResetError) else repr(e)


def set_ports(ports):
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as f:
        f.write(ports)


def middles(gw, side, *args, state="established"):
    """The connections between the gateways that the kernel of a side has."""
    where = gw.net.t if side == "a" else gw.net.b
    out = where.run([need("ss"), *args, "-Htn", "state", state, f"( dport = :{MIDDLE} or sport = :{MIDDLE} )"])
    return out.decode().split("\n")[:-1]


def destroy_middle(gw, side):
    """The kernel resets the middle, and its own gateway has the error ECONNABORTED."""
    if not middles(gw, side, "-K"):
        raise Skip("the kernel does not end connections for ss -K")


@case("the CLC connection's network is silent or unreachable: SMC-R continues")
def _(t):
    gw = Gateways(t, smcr={"test_link_interval": "300ms", "test_link_timeout": "1s", "last_link_timeout": "1s"})
    s = gw.connect()
    gw.net.silence(1)
    for d in gw.both:
        wait_until(lambda d=d: LOST in d.log(), f"{d.name} logs it", 20)
    talk(s, b"still there")
    gw.ends_well(s)
    gw.net.unsilence(1)
    s = gw.connect()
    gw.net.ip("b", f"rule add to 10.77.1.1 ipproto tcp sport {MIDDLE} unreachable pref 10")
    wait_until(lambda: gw.b.log().count(LOST) == 2, "b logs it once for each connection", 20)
    talk(s, b"still there")
    # The link alone says now that the peer is gone.
    gw.net.silence(2)
    equal(outcome(s), "reset", "at the client")


@case("the CLC connection is reset while the link works: SMC-R continues")
def _(t):
    gw = Gateways(t, smcr={"fin_grace": "300ms"})
    for side in "ab":
        s = gw.connect()
        destroy_middle(gw, side)
        wait_until(lambda: LOST in (gw.a if side == "a" else gw.b).log(), "one gateway logs the loss")
        end = time.monotonic() + 1	# the other one was reset; longer than fin_grace
        while time.monotonic() < end:
            talk(s, b"still there")
        gw.ends_well(s)


@case("the CLC connection is reset and no link answers: the connection ends after fin_grace")
def _(t):
    long = {"answer_timeout": "60s"}
    gw = Gateways(t, smcr={"fin_grace": "300ms", "test_link_timeout": "60s", "test_link_interval": "0s"}, device=long)
    s = gw.connect()
    gw.net.silence(2)
    destroy_middle(gw, "b")
    start = time.monotonic()
    equal(outcome(s), "reset", "at the client")
    check(time.monotonic() - start < 5 * PATIENCE, "as soon as the time for an answer is over")



CLIENTS = """
import socket, sys
well = 0
for i in range(int(sys.argv[3])):
    try:
        with socket.create_connection((sys.argv[1], int(sys.argv[2])), 20) as s:
            s.sendall(b"hello")
            s.shutdown(socket.SHUT_WR)
            got = b""
            while data := s.recv(100):
                got += data
            well += got == b"hello"
    except ConnectionError:
        pass
print(well)
"""


@case("three times as many short connections as ports for CLC connections: all work, without TIME_WAIT", timeout=180)
def _(t):
    ports = "20000 20199"
    gw = Gateways(t)
    gw.connect().close()
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        before = f.read()
    t.later(lambda: set_ports(before))
    set_ports(ports)
    out = gw.net.b.run([sys.executable, "-c", CLIENTS, ADDR_A, str(PORT), "600"], timeout=120)
    equal(int(out), 600, "connections that went well")
    for side in "ab":
        equal(middles(gw, side, state="time-wait"), [], f"middles in TIME_WAIT, {side}")
    for d in gw.both:
        c = d.counters()
        equal((c["closed_reset"], c["sessions_reset"], c["established_client"] + c["established_server"]), (0, 0, 601),
              f"{d.name}: resets, and connections on SMC-R")


# -- unacknowledged data --

LIMIT_S = 3	# of ALIVE: idle + interval * probes
DATA = {"idle": b"", "a few bytes on the way": b"anybody there?", "bulk on the way": pattern(8 << 20)}


def soon(what, condition):
    """Within the limit for silence, and some more."""
    start = time.monotonic()
    wait_until(condition, what, 10 * LIMIT_S)
    check(time.monotonic() - start < LIMIT_S * 1.5 + 2 * PATIENCE, f"{what}: late, {time.monotonic() - start:.1f} s")


def sending(s, data):
    """How it ends; a reset is reported to the reader or the writer, not to both."""
    try:
        s.sendall(data)
    except ConnectionResetError:
        return "reset"
    except BrokenPipeError:
        pass
    return "sent"


def vanishes(t, mode, pair, cases=DATA, **conf):
    """What is beyond a pair vanishes: the client is reset, and the server's connection ends."""
    over = []

    def serve(s):
        try:
            echo(s)
        finally:
            over.append(True)
    gw = Gateways(t, serve, fallback=mode == "tcp", **conf)
    for what, data in cases.items():
        s = gw.connect(mode)
        s.settimeout(60 * PATIENCE)
        gw.net.silence(pair)
        end, writer = in_thread(outcome, s), in_thread(sending, s, data)
        soon(f"{mode}, {what}: the client is reset", lambda: not end.is_alive())
        check("reset" in (end.result(), writer.result()), f"{mode}, {what}: the client sees no reset")
        if pair == 1:
            soon(f"{mode}, {what}: the server is freed", lambda: over)
        gw.net.unsilence(pair)
        for d in gw.both:
            wait_until(lambda d=d: not d.connections(), f"{d.name} is through with it")
        over.clear()


@case("the server's host disappears: its client is reset, on SMC-R")
def _(t):
    vanishes(t, "smcr", 3)


@case("the server's host disappears: its client is reset, on TCP")
def _(t):
    vanishes(t, "tcp", 3)


@case("the far gateway's host disappears, on TCP: both programs are released")
def _(t):
    vanishes(t, "tcp", 1)


@case("ack_timeout ends a connection whose sent data is not acknowledged, long before keepalive would")
def _(t):
    cases = {what: data for what, data in DATA.items() if data}
    vanishes(t, "tcp", 3, cases, keepalive={"idle": "1h", "ack_timeout": f"{LIMIT_S}s"})


class Beyond:
    """Clients, here -> both gateways over there -> server, here: one on SMC-R, one on TCP (clients[fallback])."""

    def __init__(self, t, serve):
        self.net = Net(t, 3)
        self.clients = {}
        for fallback in (False, True):
            server = Server(t, lambda s, fallback=fallback: serve(fallback, s), host="10.77.3.1")
            port, middle = PORT + fallback, MIDDLE + fallback
            common = {"log_level": "info", "keepalive": ALIVE,
                      "devices": NO_DEVICE if fallback else [{"type": "siw", "address": "127.0.0.1"}]}
            Daemon(t, f"b{port}", dict(common, egress=[
                {"name": "x", "listen": f"127.0.0.1:{middle}", "to": f"10.77.3.1:{server.port}"}]), wrap=self.net.b.wrap())
            d = Daemon(t, f"a{port}", dict(common, ingress=[
                {"name": "x", "listen": f"10.77.1.2:{port}", "to": f"127.0.0.1:{middle}"}]), wrap=self.net.b.wrap())
            self.clients[fallback] = connect_to(("10.77.1.2", port), 60)
            t.later(self.clients[fallback].close)
            mode = "tcp" if fallback else "smcr"
            wait_until(lambda d=d, mode=mode: [c["mode"] for c in d.connections()] == [mode], f"the connection is on {mode}")


@case("the client's host disappears while the server sends occasionally: the server is released")
def _(t):
    over = {False: [], True: []}

    def serve(fallback, s):
        try:
            while True:
                s.sendall(b"tick")
                time.sleep(0.1)	# raw: the pace
        except OSError:
            over[fallback].append(True)
    gw = Beyond(t, serve)
    for c in gw.clients.values():
        same_bytes(recv_exact(c, 8), b"ticktick", "what the server says")
    gw.net.silence(1)
    for fallback in over:
        soon(f"the server is freed, fallback={fallback}", lambda fallback=fallback: over[fallback])


@case("a client that does not read for three times the timeout is not reset")
def _(t):
    data = pattern(32 << 20)
    gw = Beyond(t, lambda fallback, s: s.sendall(data))
    for c in gw.clients.values():
        same_bytes(recv_exact(c, 1000), data[:1000], "the first bytes")
    time.sleep(3 * LIMIT_S)	# raw: what happens meanwhile is the question
    for c in gw.clients.values():
        same_bytes(recv_all(c), data[1000:], "the others")


main()
