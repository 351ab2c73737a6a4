#!/usr/bin/env python3
# takes: 20 s
# load: 60
"""What goes over the wires, captured on b's side of both: looked at on the host by check_wire_host.py."""
import os
import signal
import socket

import rxe
from gates import Gates
from harness import (Server, case, check, echo, equal, in_thread, main, need, pattern, recv_exact, same_bytes,
                     set_reset_on_close, wait_until)


class Capture:
    """tcpdump on one interface, whole packets, into the directory that the host sees."""

    def __init__(self, t, interface):
        self.t = t
        self.file = os.path.join(rxe.SHARE, f"{interface}.pcap")
        self.proc = t.spawn([need("tcpdump"), "-i", interface, "-w", self.file, "-s", "0", "-B", "32768", "-U", "-n", "-Z",
                             "root", "udp port 4791 or tcp or icmp"])
        wait_until(lambda: "listening on" in self.proc.log() or not self.proc.alive(), f"tcpdump on {interface} captures", 20)

    def finish(self):
        self.proc.stop(signal.SIGINT)
        log = self.proc.log()
        self.t.note("; ".join(x for x in log.split("\n") if "packets" in x))
        check("0 packets dropped by kernel" in log, f"the capture is whole: {log}")


@case("traffic of all kinds over two links, captured", timeout=90)
def _(t):
    net = rxe.Wires(t, 2)
    captures = [Capture(t, f"b{i}") for i in net.pairs]

    def serve(s):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        try:
            echo(s)
        except ConnectionResetError:	# one of them is
            pass
    server = Server(t, serve)
    gw = Gates(t, net, {"echo": server.at}, smcr={
        "test_link_interval": "300ms", "test_link_timeout": "6s", "llc_timeout": "8s", "group_idle": "3s", "open_over_link": False})	# Linux has no OPEN
    socks = [gw.connect() for _ in range(6)]
    for i, s in enumerate(socks):
        data = pattern(150000 + i * 1111, i)
        writer = in_thread(s.sendall, data)
        same_bytes(recv_exact(s, len(data)), data, "echo")
        writer.result()
        for n in (1, 2, 44, 1000):
            s.sendall(bytes(n))
            recv_exact(s, n)
    gw.wait_links(net.pairs)
    socks[0].send(b"!", socket.MSG_OOB)
    equal(len(recv_exact(socks[0], 1)), 1, "the urgent byte comes back")
    socks[1].shutdown(socket.SHUT_WR)
    equal(recv_exact(socks[1], 1), b"", "the end")
    set_reset_on_close(socks[2])
    socks[2].close()
    # One link goes with its interface, so that a DELETE LINK and a failover are in it.
    gw.a.ctl("rebalance")
    net.down("a", 2)
    gw.wait_links([1], 30)
    for s in socks[3:]:
        s.sendall(b"after")
        equal(recv_exact(s, 5), b"after", "echo")
    for s in socks:
        s.close()
    wait_until(lambda: not gw.a.groups() and not gw.b.groups(), "the group has ended", 30)
    gw.only_smcr(6)
    server.ok()
    equal([(d.counters()["bad_cdc"], d.counters()["bad_llc"]) for d in gw.both], [(0, 0), (0, 0)], "bad messages")
    gw.stop()
    for c in captures:
        c.finish()


main()
