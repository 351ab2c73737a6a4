#!/usr/bin/env python3
# kernel: linux-image-6.12-amd64
# cards: 2
# icount: 4
# takes: 75 s
"""Speed of smcrd in place of one of two kernels with SMC of their own."""
import statistics

from afsmc import Scene
from harness import case, check, main
from pair import Far

MIB = 1 << 20
WAYS = ("in", "out")
TRIES = 2
BULK = 0.9		# of what two kernels do, on average
BULK_LATE = 0.8		# when the host did not keep up with the machines: what it does not get done counts against the one with more to do
LATE = 0.03


class Late:
    """How far the machines have fallen behind the host's clock since, the one that is further behind: a share of the time."""

    def __init__(self, scene):
        self.programs = scene.programs.values()
        self.start = self._now()

    def _now(self):
        return [x.clocks() for x in self.programs]

    def share(self):
        return max(1 - (now[0] - then[0]) / (now[1] - then[1]) for now, then in zip(self._now(), self.start))


def seconds(flow, count):
    """Of each of so many transfers, by the clock of side b, which is the same kernel whatever side a is. A machine falls behind the
    clock of the host when it has much to do, and catches up when it has not: what side a says of itself flatters it."""
    took = [flow.wait(flow.client(), patience=20) for _ in range(count)]
    return took if flow.sides["client"] == "b" else flow.served(count)


def rates(t, peer):
    """What was measured -> its figure, with this peer in side a: medians of transfers behind a first one. And how late the machines were."""
    got, late = {}, 0
    for kib in (64, 512):
        own = {"send_buffer": f"{kib}K"} if peer == "smcrd" else {}
        scene = Scene(t, peer, **own)
        clock = Late(scene)
        for way in WAYS:
            flow = scene.start(way, "sink", size=2 * MIB, buffer=kib << 10, service={"rmb_element": f"{kib}K"})
            _, *took = seconds(flow, 4)
            flow.only_smcr()
            got[f"{way}, buffers of {kib} KiB, MB/s"] = 2 * MIB / 1e6 / statistics.median(took)
            if kib == 64:
                flow = scene.start(way, "echo")
                flow.wait(flow.client("ping", count=20))
                start = scene.programs["b"].clock()
                flow.wait(flow.client("ping", count=100), patience=20)
                got[f"{way}, one byte, rounds/s"] = 100 / (scene.programs["b"].clock() - start)
        late = max(late, clock.share())
        for d in scene.daemons:
            d.finish()
        Far("peer").reset()
    return got, late


def measure(t):
    """Prints the table; bulk on average, and its bound."""
    kernel, late = rates(t, "kernel")
    smcrd, later = rates(t, "smcrd")
    ratios = {what: smcrd[what] / kernel[what] for what in kernel}
    for what, ratio in ratios.items():
        t.note(f"{what:32} kernel {kernel[what]:8.1f}   smcrd {smcrd[what]:8.1f}   {ratio:.2f}")
    bulk = statistics.geometric_mean(ratio for what, ratio in ratios.items() if "MB/s" in what)
    t.note(f"bulk on average: {bulk:.2f}; the machines were late by {late:.3f} and {later:.3f} of the time")
    return bulk, BULK if max(late, later) < LATE else BULK_LATE


@case("smcrd in place of one of two kernels", timeout=200)
def _(t):
    for _ in range(TRIES):
        bulk, bound = measure(t)
        if bulk >= bound:
            return
    check(False, f"bulk on average {bulk:.2f} of the kernel's, not {bound}")


main()
