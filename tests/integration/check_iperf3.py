#!/usr/bin/env python3
"""iperf3 through a pair, both directions."""
from harness import PATIENCE, Pair, case, check, equal, main, SANITIZERS, SECONDS
from programs import Iperf3, iperf3


def run(t, **kw):
    server = Iperf3(t)
    pair = Pair(t, {"iperf3": (server.host, server.port)})
    out = iperf3(t, pair.host, pair.port["iperf3"], seconds=SECONDS, **kw)
    sent, received = out["end"]["sum_sent"]["bytes"], out["end"]["sum_received"]["bytes"]
    rate = out["end"]["sum_received"]["bits_per_second"] / 1e9
    t.note(f"{rate:.2f} Gbit/s, {received} bytes")
    check(received > 0 and sent >= received, f"sent {sent}, received {received}")
    check(SANITIZERS or rate > 0.005 / PATIENCE, f"{rate} Gbit/s")	# a stall; eight streams by SCTP beside a load of 30 have twice that
    pair.only_smcr(kw.get("streams", 1) + 1)
    pair.quiet()


@case("client to server")
def _(t):
    run(t)


@case("server to client")
def _(t):
    run(t, reverse=True)


@case("8 streams to the server")
def _(t):
    run(t, streams=8)


@case("8 streams to the client")
def _(t):
    run(t, streams=8, reverse=True)


@case("both directions at once",
      one_worker="iperf3 tells its two connections apart by the order in which they come")
def _(t):
    server = Iperf3(t)
    pair = Pair(t, {"iperf3": (server.host, server.port)})
    out = iperf3(t, pair.host, pair.port["iperf3"], seconds=SECONDS, extra=["--bidir"])
    for key in ("sum_received", "sum_received_bidir_reverse"):
        # How much in a given time is the machine's; a direction that stands still carries nothing.
        check(out["end"][key]["bytes"] > 100000, f"{key}: {out['end'][key]}")
    pair.only_smcr(3)


@case("a limited rate arrives at that rate")
def _(t):
    server = Iperf3(t)
    pair = Pair(t, {"iperf3": (server.host, server.port)})
    out = iperf3(t, pair.host, pair.port["iperf3"], seconds=SECONDS, extra=["-b", "20M"])
    rate = out["end"]["sum_received"]["bits_per_second"] / 1e6
    check(15 / PATIENCE < rate < 25, f"{rate} Mbit/s for 20")
    equal(out["end"]["sum_sent"]["bytes"] >= out["end"]["sum_received"]["bytes"], True, "sent at least what arrived")
    pair.only_smcr(2)


main()
