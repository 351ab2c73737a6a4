#!/usr/bin/env python3
# takes: 55 s
# load: 60
"""Two machines, a kernel and a daemon in each, and a wire between them: data, and the loss of one of the two."""
import time

import rxe
from gates import MTU
from harness import case, check, equal, main, wait_until
from pair import Far, Machines, address6

SIZE = 6 << 20
TEST_S = 1, 2		# test_link_interval, test_link_timeout
WHY = "the peer does not answer"
SLOW = 2		# the machine, beside others
DESTROY_S = 3		# what destroying queue pairs of rxe may take whose packets wait for an ARP answer


def carries(t, version):
    gw = Machines(t, version)
    gids = {side: f"::ffff:{rxe.address(side, 1)}" if version == 4 else address6(side) for side in "ab"}
    held = [gw.clients(name, 1, 0) for name in ("there", "back")]	# so that the links stay
    for name in ("there", "back"):
        before = {d.name: d.net.received() for d in gw.both}
        start = time.monotonic()
        gw.exchange(name, SIZE)
        took = time.monotonic() - start
        for d in gw.both:
            after = d.net.received()
            more = {k: n - before[d.name][k] for k, n in after.items()}
            for what in (f"ipv{version}", "device"):
                check(more[what] > SIZE // MTU, f"{name}: {SIZE} bytes to {d.name}, packets received: {more}")
            t.note(f"{name}: {SIZE >> 20} MiB each way in {took:.1f} s; packets received in {d.name}: {more}")
        gw.check_verbs()
    gw.only_smcr(4)
    for d in gw.both:
        for x in d.ctl("links")["links"]:
            equal((x["gid"], x["peer_gid"]), (gids[d.name], gids[rxe.other(d.name)]), f"GIDs of a link of daemon {d.name}")
        equal(d.ctl("devices")["devices"][0]["gid_type"], "roce_v2", "type of the GID")
    for clients in held:
        clients.close()
    gw.finish()


@case("IPv4: 6 MiB each way at the same time, clients in either machine", timeout=40)
def _(t):
    carries(t, 4)


@case("IPv6, global addresses: 6 MiB each way at the same time, clients in either machine", timeout=40)
def _(t):
    carries(t, 6)


@case("one machine is lost: its connections are reset, the reason logged, kernel objects freed; it returns", timeout=60)
def _(t):
    gw = Machines(t, test_link_interval=f"{TEST_S[0]}s", test_link_timeout=f"{TEST_S[1]}s")
    # The group of clients there is silent, that of clients here is busy.
    gw.clients("back", 4, 0)
    here = gw.clients("there", 2, 2)
    wait_until(lambda: len(gw.a.connections()) == 8, "eight connections")
    gw.only_smcr(4)
    gw.check_verbs()
    equal(len(gw.queue_pairs(gw.a)), 2, "queue pairs, one for each group")
    mark, lost = len(gw.a.log()), gw.other.kill()
    wait_until(lambda: not gw.a.connections(), "no connection is left", 20)
    took = time.monotonic() - lost
    gw.all_free(gw.a)
    free = time.monotonic() - lost
    t.note(f"all connections gone after {took:.1f} s, what the kernel had for them after {free:.1f} s")
    check(free < SLOW * (sum(TEST_S) + DESTROY_S), f"freed after {free:.1f} s")

    wait_until(lambda: len(here.outcomes()) == here.count, "all clients know")
    equal(here.outcomes(), ["reset"] * here.count, "the clients' end")
    wait_until(lambda: len(gw.server.errors) == 4, "all connections of the server have ended")
    check(all("ConnectionResetError" in x for x in gw.server.errors), f"the server's connections: {gw.server.errors[:1]}")
    gw.server.errors.clear()
    log = gw.a.log()[mark:]
    equal(log.count(f'reason="link lost: {WHY}"'), 8, f"connections that say why they ended: {log}")
    equal(log.count("link group down:"), 2, f"groups that are down: {log}")
    equal(log.count(f'reason="{WHY}"'), 4, f"links and groups that say why: {log}")
    equal(gw.a.counters()["sessions_reset"], 8, "counter sessions_reset")

    gw.other.boot()
    gw.start_b()
    gw.both = (gw.a, gw.b)
    held = [gw.clients(name, 1, 0) for name in ("there", "back")]
    for name in ("there", "back"):
        gw.exchange(name, 1 << 20)
    gw.check_verbs()
    gw.only_smcr(4)
    for clients in held:
        clients.close()
    for d in gw.both:
        gw.all_free(d)
    Far("peer").check_daemon()
    gw.stop()


main()
