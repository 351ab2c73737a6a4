#!/usr/bin/env python3
# takes: 20 s
# load: 75
"""The laboratory itself: third-party programs use its devices, and see faults."""
import signal
import time

import rxe
from harness import (Pair, Server, case, check, echo, equal, in_thread, main, need, pattern, recv_exact, same_bytes,
                     wait_until)
from programs import listens


def pingpong(t, net, client, server, i, count=200, meanwhile=lambda: None):
    """RC traffic between the devices of a pair, the connection set up by TCP: the line with the figures."""
    program = need("ibv_rc_pingpong")
    port = t.port()
    args = ["-e", "-g", "1", "-n", str(count), "-s", "4096", "-p", str(port)]		# GID 1: the IPv4 address
    there = t.spawn([program, "-d", rxe.device(server, i), *args])
    wait_until(lambda: listens(rxe.address(server, i), port) or not there.alive(), "ibv_rc_pingpong listens")
    here = t.spawn([program, "-d", rxe.device(client, i), *args, rxe.address(server, i)])
    meanwhile()
    for end, p in (("client", here), ("server", there)):
        equal(p.wait(), 0, f"exit status of the {end}: {p.log()}")
    return here.log().strip().split("\n")[-1]


@case("ibv_rc_pingpong over each of two wires; the packets are counted at both ends")
def _(t):
    net = rxe.Wires(t, 2)
    for i in net.pairs:
        t.note(f"pair {i}: {pingpong(t, net, 'a', 'b', i)}")
    for side in "ab":
        sent = net.statistics(side, 2)
        check(sent["sent_pkts"] >= 400 and sent["rcvd_pkts"] >= 400, f"statistics of {side}2: {sent}")
    net.let_go("qp", "mr", "cq", "pd")


@case("rping: connections by rdma_cm")
def _(t):
    net = rxe.Wires(t, 1)
    program = need("rping")
    there = t.spawn([program, "-s", "-a", rxe.address("b", 1), "-p", "7174", "-C", "20"])

    def done():
        r = t.exit_status([program, "-c", "-a", rxe.address("b", 1), "-I", rxe.address("a", 1), "-p", "7174", "-C", "20"])
        return r == 0
    wait_until(done, f"rping's client: {there.log()}", 20)
    equal(there.wait(), 0, "rping's server")


@case("a program sees port down, port up, and the deletion of a device")
def _(t):
    net = rxe.Wires(t, 1)
    watch = t.spawn([need("stdbuf"), "-oL", need("ibv_asyncwatch"), "-d", rxe.device("a", 1)])
    wait_until(lambda: "async event FD" in watch.log() or not watch.alive(), "ibv_asyncwatch watches")
    net.down("b", 1)
    wait_until(lambda: "PORT_ERR" in watch.log(), "the port's error")
    net.up("b", 1)
    wait_until(lambda: "PORT_ACTIVE" in watch.log(), "the port's return")
    # rxe lets a device go only when its last user has closed it, and tells that user nothing.
    unplug = t.spawn([need("rdma"), "link", "del", rxe.device("a", 1)])
    wait_until(lambda: not rxe.verbs_devices(rxe.device("a", 1)), "its verbs device is gone from /sys")
    check(unplug.alive(), "rdma waits for the program")
    check("FATAL" not in watch.log(), f"no event: {watch.log()}")
    watch.stop(signal.SIGTERM)
    equal(unplug.wait(), 0, "rdma link del")


@case("packets lost on a silent wire are repeated when it works", timeout=90)
def _(t):
    net = rxe.Wires(t, 1)
    net.lossy(1, 5)

    def for_a_second():		# the last acknowledgement must not be lost: its receiver is gone, and the sender would wait without end
        time.sleep(1)	# raw: so long it loses packets
        net.lossy(1, 0)
    t.note(pingpong(t, net, "a", "b", 1, 3000, for_a_second))


@case("smcrd over soft iWARP", timeout=90)
def _(t):
    server = Server(t, echo)
    pair = Pair(t, {"echo": server.at})
    socks = [pair.connect() for _ in range(4)]
    for i, s in enumerate(socks):
        data = pattern(200000, i)
        writer = in_thread(s.sendall, data)
        same_bytes(recv_exact(s, len(data)), data, "echo")
        writer.result()
        s.close()
    pair.quiet()
    pair.only_smcr(4)
    server.ok()


main()
