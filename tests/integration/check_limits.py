#!/usr/bin/env python3
"""Settings that bound or shape: allow list, connection limits, idle time, prewarm, IPv6, several RMBs and groups,
element sizes, the RFC's cursors, and the variants of MPA."""
import contextlib
import os
import select
import socket
import time

from harness import (PATIENCE, Pair, Server, case, check, connect_to, echo, equal, exchange, in_thread, main, pattern, recv_all,
                     recv_exact, same_bytes, wait_until, SHRINK)


def works(s, seed=0, n=300000):
    exchange(s, pattern(n, seed))


def outcome(s):
    try:
        return recv_all(s)
    except ConnectionResetError:
        return "reset"


def turned_away(at, source):
    return outcome(connect_to(at, 20, source=source)) in ("reset", b"")


def echo_pair(t, **kw):
    return Pair(t, {"x": Server(t, echo, kw.get("host")).at}, **kw)


@case("allow list of an ingress: other clients are refused and counted")
def _(t):
    pair = echo_pair(t, ingress={"allow": ["127.0.0.7", "127.3.0.0/16"]})
    at = (pair.host, pair.port["x"])
    for source, allowed in (("127.0.0.7", True), ("127.0.0.8", False), ("127.3.200.1", True), ("127.4.0.0", False)):
        try:
            s = connect_to(at, 20, source=source)
            s.sendall(b"hello")
            got = outcome(s) if not allowed else recv_exact(s, 5)
        except ConnectionError:
            got = "reset"
        check(got == b"hello" if allowed else got in ("reset", b""), f"from {source}: {got}")
    equal(pair.a.services()[0]["refused_allow"], 2, "refused by the allow list")
    pair.only_smcr(2)


@case("allow list of an egress: other peers are refused")
def _(t):
    pair = echo_pair(t, egress={"allow": ["127.99.0.0/16"]})
    check(pair.turned_away(), "at the client")
    check(pair.b.services()[0]["refused_allow"] >= 1, "counted")


@case("max_connections: one too many is refused; the next is accepted when one ends")
def _(t):
    pair = echo_pair(t, ingress={"max_connections": 5})
    socks = [pair.connect() for _ in range(5)]
    for i, s in enumerate(socks):
        works(s, i)
    for _ in range(3):
        check(pair.turned_away(), "a sixth connection")
    equal(pair.a.services()[0]["refused_max"], 3, "refused by the limit")
    socks[0].close()
    wait_until(lambda: len(pair.a.connections()) == 4, "one has ended")
    works(pair.connect(), 9)
    for i, s in enumerate(socks[1:]):
        works(s, i)
    pair.only_smcr(6)


@case("max_connections_per_peer: a client, or at the egress a peer, does not take the places of others")
def _(t):
    pair = echo_pair(t, ingress={"max_connections_per_peer": 3})
    at = (pair.host, pair.port["x"])
    socks = [connect_to(at, 20, source="127.0.0.7") for _ in range(3)]
    for i, s in enumerate(socks):
        works(s, i)
    check(turned_away(at, "127.0.0.7"), "a fourth of this client")
    others = [connect_to(at, 20, source=f"127.0.0.{8 + i}") for i in range(5)]
    for i, s in enumerate(others):
        works(s, 10 + i)
    equal(pair.a.services()[0]["refused_per_peer"], 1, "refused by the limit")
    socks[0].close()
    wait_until(lambda: len(pair.a.connections()) == 7, "one has ended")
    s = connect_to(at, 20, source="127.0.0.7")
    works(s, 20)
    pair.only_smcr(9)
    peers = echo_pair(t, egress={"max_connections_per_peer": 2})
    socks = [peers.connect() for _ in range(2)]
    for i, s in enumerate(socks):
        works(s, i)
    check(peers.turned_away(), "a third of the peer's")
    check(peers.b.services()[0]["refused_per_peer"] >= 1, "counted")


@case("max_connections of the whole daemon",
      one_worker="each worker has its part of the limit")
def _(t):
    pair = echo_pair(t, b={"smcr": {"max_connections": 4}}, ingress={"fallback": "refuse"})
    socks = [pair.connect() for _ in range(4)]
    for i, s in enumerate(socks):
        works(s, i)
    check(pair.turned_away(), "a fifth connection")
    for i, s in enumerate(socks):
        works(s, i + 10)


@case("idle_timeout: a silent connection ends, one with data continues")
def _(t):
    pair = echo_pair(t, ingress={"idle_timeout": f"{1000 * PATIENCE:.0f}ms"})
    silent, busy = pair.connect(), pair.connect()
    works(silent)
    end = time.monotonic() + 10 * PATIENCE
    while time.monotonic() < end and not select.select([silent], [], [], 0.2)[0]:	# to be idle, but never for long
        works(busy, 0, 100)
    check(outcome(silent) in ("reset", b""), "the silent connection has ended")
    works(busy)
    wait_until(lambda: len(pair.a.connections()) == 1, "one connection is left")
    pair.only_smcr(2)


@case("prewarm: the link group exists before the first client",
      one_worker="one link group is looked at")
def _(t):
    pair = echo_pair(t, ingress={"prewarm": True})
    wait_until(lambda: len(pair.a.groups()) == 1, "a group without connections")
    equal(len(pair.a.connections()), 0, "connections")
    works(pair.connect())
    equal(len(pair.a.groups()), 1, "groups: the first client took the one that was there")
    pair.only_smcr()


@case("no devices in the file: one for each address in use",
      one_worker="each worker has devices of its own")
def _(t):
    for host in (None, "::1"):
        pair = echo_pair(t, host=host, a={"devices": None}, b={"devices": None})
        works(pair.connect())
        pair.only_smcr()
        for d in (pair.a, pair.b):
            equal([x["port"] for x in d.ctl("devices")["devices"]], ["up"], f"devices of daemon {d.name}")


@case("IPv6 throughout")
def _(t):
    pair = echo_pair(t, host="::1")
    socks = [pair.connect() for _ in range(5)]
    for i, s in enumerate(socks):
        works(s, i, 2000000)
    pair.only_smcr(5)
    check("::1" in str(pair.a.connections()), "smcrctl shows the address")


@case("several RMBs in a group, several groups",
      one_worker="one link group is looked at")
def _(t):
    pair = echo_pair(t, a={"smcr": {"rmb_elements": 4, "connections_per_group": 10}},
                     b={"smcr": {"rmb_elements": 4, "connections_per_group": 10}})
    socks = [pair.connect() for _ in range(35)]
    tasks = [in_thread(works, s, i, 1000000 // SHRINK) for i, s in enumerate(socks)]
    for task in tasks:
        task.result()
    for d in (pair.a, pair.b):
        groups = d.groups()
        check(len(groups) >= 4, f"daemon {d.name}: {len(groups)} groups")
        check(max(g["rmbs"] for g in groups) >= 3, f"daemon {d.name}: RMBs of the groups: {groups}")
    for s in socks:
        s.close()
    pair.quiet()
    works(pair.connect())
    pair.only_smcr(36)


def bulk(t, pair, count=4):
    socks = [pair.connect() for _ in range(count)]
    tasks = [in_thread(works, s, i, (6 << 20) // SHRINK) for i, s in enumerate(socks)]
    for task in tasks:
        task.result()
    for s in socks:
        s.shutdown(socket.SHUT_WR)
        same_bytes(recv_all(s), b"", "after half close")
    pair.ended_well(count)


@case("elements of 16 KiB at one end and 512 KiB at the other")
def _(t):
    bulk(t, echo_pair(t, ingress={"rmb_element": "16K"}, egress={"rmb_element": "512K"}))
    bulk(t, echo_pair(t, ingress={"rmb_element": "512K"}, egress={"rmb_element": "16K"}))


@case("rfc_cursors at both ends, at one end")
def _(t):
    rfc = {"smcr": {"rfc_cursors": True}}
    for a, b in ((rfc, rfc), (rfc, {}), ({}, rfc)):
        pair = echo_pair(t, a=a, b=b)
        bulk(t, pair)
        c = pair.connect()
        works(c)
        shown = [g["rfc_cursors"] for d in (pair.a, pair.b) for g in d.groups()]
        check(shown and all(shown), f"groups use the RFC's cursors when either end wants them: {shown}")


@case("a small send buffer, small queues")
def _(t):
    small = {"smcr": {"send_buffer": "16K", "send_queue": 16, "receive_queue": 16}}
    bulk(t, echo_pair(t, a=small, b=small), 12)
    bulk(t, echo_pair(t, a=small), 12)


@case("send_memory_max: send buffers are bounded, waiting connections lose nothing",
      one_worker="the bound is a worker's")
def _(t):
    pair = echo_pair(t, a={"smcr": {"send_memory_max": "1M", "send_buffer": "512K"}})
    bulk(t, pair, 24)
    check(pair.a.counters()["refused_send_memory"] > 0, "send buffers that were refused are counted")


@case("group_memory_max: connections beyond it are on TCP",
      one_worker="one link group is looked at")
def _(t):
    pair = echo_pair(t, a={"smcr": {"group_memory_max": "1M", "rmb_elements": 1}}, ingress={"rmb_element": "512K"})
    socks = [pair.connect() for _ in range(24)]
    for i, s in enumerate(socks):
        works(s, i)
    modes = [c["mode"] for c in pair.a.connections()]
    check({"smcr", "tcp"} == set(modes), f"modes: {modes}")
    check(pair.a.counters()["refused_rmb_memory"] > 0, "RMBs that were refused are counted")


@case("groups_per_address: connections that need another group are on TCP", one_worker="the groups are a worker's")
def _(t):
    pair = echo_pair(t, a={"workers": 3}, b={"smcr": {"groups_per_address": 1}})		# a group for each worker of a
    socks = [pair.connect() for _ in range(12)]
    for i, s in enumerate(socks):
        works(s, i)
    equal({c["mode"] for c in pair.b.connections()}, {"smcr", "tcp"}, "modes")
    equal(len(pair.b.groups()), 1, "groups")
    check(pair.b.counters()["refused_groups_addr"] > 0, "groups that were refused are counted")


@contextlib.contextmanager
def before_others():
    """What begins here has the processor first, if that is allowed: where many wait for it, no wait of a loop is short."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, usual - 15)
    except PermissionError:
        pass
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)


@case("spin: a loop that polls before it sleeps carries the same bytes")
def _(t):
    with before_others():
        pair = echo_pair(t, a={"spin": "200us"}, b={"spin": "200us"})
        bulk(t, pair)
        c = pair.connect()

        def polled():
            works(c)
            return pair.a.counters()["spins"] > 0
        wait_until(polled, "the loop polls")


@case("freebind: a service listens on an address that no interface has yet")
def _(t):
    pair = echo_pair(t)
    elsewhere = dict(pair.a.conf["ingress"][0], name="elsewhere", listen=f"203.0.113.7:{t.port()}")
    for settings, rc in (({}, 1), ({"freebind": True}, 0)):
        pair.a.write_conf(dict(pair.a.conf, ingress=[pair.a.conf["ingress"][0], dict(elsewhere, **settings)]))
        pair.a.ctl_text("reload", status=rc)
    check("elsewhere" in [s["name"] for s in pair.a.services()], "the service is there")
    works(pair.connect())


def device(t, **kw):
    return {"devices": [dict({"type": "siw", "address": t.addr}, **kw)]}


@case("MPA variants: CRC off, markers, each RTR message, small FPDUs", timeout=120)
def _(t):
    for a, b in ((dict(crc=False), dict(crc=False)), (dict(crc=False), {}), (dict(markers=True), dict(markers=True)),
                 (dict(markers=True), {}), ({}, dict(markers=True)), (dict(rtr=["send"]), dict(rtr=["send"])),
                 (dict(rtr=["write"]), {}), ({}, dict(rtr=["read"])), (dict(fpdu_max=512), dict(fpdu_max=1000))):
        try:
            pair = echo_pair(t, a=device(t, **a), b=device(t, **b))
            bulk(t, pair, 2)
            pair.a.finish()
            pair.b.finish()
        except Exception:
            t.note(f"with a {a}, b {b}")
            raise


main()
