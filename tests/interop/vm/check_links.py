#!/usr/bin/env python3
# takes: 50 s
# load: 90
"""Two rxe devices a side: links are lost in each way that there is, nothing else is, and they come back."""
import time

import rxe
from gates import Gates, Stacks
from harness import PATIENCE, case, check, equal, main, need, wait_until
from load import Echo, Probe, Stream, all_go_on
from programs import Redis

# An emulated machine beside others may stand still for a second or two; what is to be noticed at once is reported by port
# events and completions, not by these.
SMCR = {"test_link_interval": "1s", "test_link_timeout": "6s", "llc_timeout": "8s", "add_link_retry": "500ms",
        "hold_off": "100ms", "hold_off_max": "1s"}


class Scene:
    """Probes in both directions of one connection each, and streams, over two links. As fast as they go these would take the
    emulated processor from what is to be seen."""

    def __init__(self, t, probes=4, streams=2):
        self.t = t
        self.net = rxe.Wires(t, 2)
        self.servers = {"redis": Redis(t), "echo": Echo(t)}
        self.gw = Gates(t, self.net, {n: (s.host, s.port) for n, s in self.servers.items()}, over="lo", smcr=SMCR)
        self.probes = [Probe(self.gw, f"count{i}", 0.1) for i in range(probes)]
        self.streams = [Stream(self.gw, i, 0.05) for i in range(streams)]
        self.gw.wait_links(self.net.pairs)
        all_go_on(self.probes, 5)
        self.gw.check_verbs()
        self.stacks = Stacks(self.gw.both)

    def spread(self):
        """Connections on both links, so that the loss of either one matters."""
        self.gw.a.ctl("rebalance")
        wait_until(lambda: min(self.gw.links(self.gw.a).values()) > 0, "both links carry connections")

    def flows(self, answers=5, more=1 << 20):
        marks = [(s, s.got + more) for s in self.streams]
        all_go_on(self.probes, answers)
        for s, mark in marks:
            wait_until(lambda s=s, mark=mark: s.has(mark), "data goes on", 30)

    def lose(self, what, i, break_it, mend_it, before_mend=None):
        """Breaks pair i, sees everything go on over the other one, mends it, and sees the link again."""
        self.spread()
        for p in self.probes:
            p.worst()
        start = time.monotonic()
        break_it()
        self.gw.wait_links([3 - i], 25)
        took = time.monotonic() - start
        self.flows()
        still = max(p.worst() for p in self.probes)
        if before_mend:
            before_mend()
        mend_it()
        self.gw.wait_links(self.net.pairs, 25)
        self.gw.check_verbs()
        self.flows(2, 1 << 16)
        self.t.note(f"{what}: one link {took:.1f} s later, the longest answer took {still:.1f} s")
        return still

    def end(self):
        for p in self.probes:
            p.stop()
            p.close()
        for s in self.streams:
            s.stop()
            s.sock.close()
        self.stacks.stop()
        # rxe waits there up to three seconds, while packets of the queue pair wait for an address: some 100 times. A call
        # that does not wait is seen by chance.
        self.t.note(f"seen in __rxe_cleanup: the event loops {self.stacks.loop} times, other threads {self.stacks.others}")
        check(self.stacks.loop < 10, f"an event loop waits for a queue pair to be destroyed: {self.stacks.where}")
        self.gw.no_resets()
        counters = [d.counters() for d in self.gw.both]
        self.t.note("; ".join(f"{c['conns_moved']} connections moved in {c['failovers']} failovers, "
                              f"{c['bytes_replayed'] >> 10} KiB again" for c in counters))
        self.gw.stop()


@case("an interface goes down, on either side", timeout=100)
def _(t):
    scene = Scene(t)
    net = scene.net
    for side, i in (("a", 1), ("b", 2)):
        scene.lose(f"ip link set {side}{i} down", i, lambda: net.down(side, i), lambda: net.up(side, i))
    scene.end()


@case("a wire that drops all packets", timeout=100)
def _(t):
    scene = Scene(t)
    net = scene.net
    still = scene.lose("silence", 1, lambda: net.silence(1), lambda: net.unsilence(1))
    # The device's retries, 7 x 134 ms, then what destroying may take, then the machine's own slowness.
    check(still < 3 * PATIENCE, f"traffic stood still for {still:.1f} s")
    scene.end()


@case("a device is deleted: the daemons release it, so the kernel can", timeout=100)
def _(t):
    scene = Scene(t, streams=1)
    net = scene.net
    for side, i in (("a", 1), ("b", 2)):
        rdma = []

        def gone():
            equal(rdma[0].wait(), 0, f"rdma link del {rxe.device(side, i)}")
            equal(rxe.verbs_devices(rxe.device(side, i)), [], "nodes of the device")
        scene.lose(f"rdma link del {rxe.device(side, i)}", i,
                   lambda: rdma.append(t.spawn([need("rdma"), "link", "del", rxe.device(side, i)])),
                   lambda: net.plug(side, i), gone)
    scene.end()


@case("packet loss of 2 % on both wires: slower, without errors", timeout=100)
def _(t):
    scene = Scene(t, probes=2, streams=1)
    for i in scene.net.pairs:
        scene.net.lossy(i, 2)
    scene.flows(20, 1 << 20)
    for i in scene.net.pairs:
        scene.net.unsilence(i)
    t.note({side: scene.net.statistics(side, 1)["retry_exceeded_err"] for side in "ab"
            if "retry_exceeded_err" in scene.net.statistics(side, 1)})
    scene.end()


main()
