#!/usr/bin/env python3
"""
A gateway stands still, or the network drops everything, for longer than each short time limit: 12 s, or SMCRD_FROZEN_S. There is one
link, so nothing can take over; a TCP connection would go on afterwards, and so do these. Pairs of daemons stand still side by side.
"""
from netns import ADDR_A, ADDR_B, Net, enter

enter()

import os								# noqa: E402
import signal								# noqa: E402
import time								# noqa: E402

from harness import (PATIENCE, Daemon, Server, Skip, case, check, connect_to, equal, hostport, in_thread, logs, main,	# noqa: E402
                     need_built_with, recv_exact, soft_device, wait_until)

FROZEN_S = int(os.environ.get("SMCRD_FROZEN_S", "12"))
LIMIT_S = 60 + 3 * FROZEN_S	# TCP sends again after up to twice the time that it was held up
CHUNK = 4096
ONE_LINK = {"smcr": {"links_max": 1, "test_link_interval": "1s"}}


def serve(s):
    """An echo server without a time limit of its own."""
    s.settimeout(None)
    while data := s.recv(65536):
        s.sendall(data)


class Flow:
    """Numbered chunks by way of an echo server, so that data goes both ways; a new one each 10 ms, whatever comes back."""

    def __init__(self, s):
        self.s, self.sent, self.got, self.error, self.ends = s, 0, 0, None, False
        s.settimeout(LIMIT_S * PATIENCE)
        self.threads = [in_thread(fn) for fn in (self._write, self._read)]

    def _write(self):
        try:
            while not self.ends:
                self.s.sendall(self.sent.to_bytes(4, "big") * (CHUNK // 4))
                self.sent += 1
                time.sleep(0.01)	# raw: the pace of the flow
        except OSError as e:
            self.error = self.error or e

    def _read(self):
        try:
            while not (self.ends and self.got == self.sent):
                data = recv_exact(self.s, CHUNK)
                if data != self.got.to_bytes(4, "big") * (CHUNK // 4):
                    raise OSError(f"chunk {self.got} is not what was sent")
                self.got += 1
        except Exception as e:
            self.error = self.error or e

    def moves(self):
        """20 more chunks come back."""
        want = self.got + 20
        wait_until(lambda: self.error or self.got >= want, f"{want} chunks are back; there are {self.got}", LIMIT_S)
        check(self.error is None, f"the connection failed after {self.got} chunks: {self.error!r}")


class Gateways:
    """client -> a == one link == b -> echo server; `net`: in two namespaces. Which of them is to stand still, or "net"."""

    def __init__(self, t, name, which, server, transport="tcp", net=None):
        self.name, self.which, self.net = name, which, net
        at, to = (ADDR_A, ADDR_B) if net else (t.addr, t.addr)
        port, middle = t.port(), t.port()
        device = {x: net.devices(x) if net else [soft_device(t.addr, transport)] for x in "ab"}
        self.a = Daemon(t, f"{name}-a", {**ONE_LINK, "log_level": "info", "devices": device["a"], "ingress": [
            {"name": "x", "listen": hostport(at, port), "to": hostport(to, middle)}]})
        self.b = Daemon(t, f"{name}-b", {**ONE_LINK, "log_level": "info", "devices": device["b"], "egress": [
            {"name": "x", "listen": hostport(to, middle), "to": hostport(*server)}]}, wrap=net.b.wrap() if net else ())
        self.flows = []
        for _ in range(3):
            s = connect_to((at, port))
            t.later(s.close)
            self.flows.append(Flow(s))
        for f in self.flows:
            f.moves()

    def freeze(self):
        if self.net:
            self.net.silence(1)
        else:
            getattr(self, self.which).send_signal(signal.SIGSTOP)

    def thaw(self):
        if self.net:
            self.net.unsilence(1)
        else:
            getattr(self, self.which).send_signal(signal.SIGCONT)

    def goes_on(self):
        for f in self.flows:
            f.moves()
        for d in (self.a, self.b):
            equal(d.counters()["links_lost"], 0, f"daemon {d.name}: links lost")
            for c in d.connections():
                equal(c["mode"], "smcr", f"daemon {d.name}: mode of a connection")
        for d in (self.a, self.b) if self.net else ():
            logs(d, "link silent: ", "link answers again: ")
        if not self.net:
            logs(getattr(self, self.which), "thread stalled: for_ms=")
        for f in self.flows:
            f.ends = True


@case("stopped gateways and networks cut no connection", timeout=LIMIT_S + 40,
      one_worker="libusrsctp's devices have one worker")
def frozen(t):
    net = Net(t, 1)	# it sets the loopback interface up
    server = Server(t, serve, host=ADDR_A)
    gws = [Gateways(t, "ingress", "a", server.at), Gateways(t, "egress", "b", server.at)]
    try:
        need_built_with("libusrsctp", "usrsctp_init")
        gws.append(Gateways(t, "sctp", "a", server.at, transport="sctp"))
    except Skip:
        t.note("SCTP is not built in")
    gws.append(Gateways(t, "net", "net", server.at, net=net))
    for g in gws:
        g.freeze()
    time.sleep(FROZEN_S)	# raw: the stall itself
    for g in gws:
        g.thaw()
    for g in gws:
        g.goes_on()


if __name__ == "__main__":
    main()
