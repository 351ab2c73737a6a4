#!/usr/bin/env python3
# takes: 40 s
# load: 60
"""Two daemons whose devices differ: they use what both have, or fall back to TCP and say why, on both sides."""
import rxe
from gates import Gates, siw, verbs
from harness import Server, case, check, echo, equal, in_thread, main, pattern, recv_exact, same_bytes, wait_until


def exchange(gw, n=300000):
    """A connection that has carried n bytes there and back; it stays open."""
    s = gw.connect()
    data = pattern(n, 7)
    writer = in_thread(s.sendall, data)
    same_bytes(recv_exact(s, n), data, "echo")
    writer.result()
    return s


def agree(t, a, b, transport):
    """Devices of the two; all data goes by SMC-R over this transport."""
    net = rxe.Wires(t, 1)
    server = Server(t, echo)
    gw = Gates(t, net, {"echo": server.at}, a=a(net), b=b(net))
    before = gw.packets()
    socks = [exchange(gw) for _ in range(3)]
    gw.only_smcr(3)
    for d in gw.both:
        used = {x["name"]: x["transport"] for x in d.ctl("devices")["devices"]}
        equal({used[x["device"]] for x in d.ctl("links")["links"]}, {transport}, f"transport of daemon {d.name}'s links")
        equal(bool(gw.queue_pairs(d)), transport == "roce", f"daemon {d.name} has queue pairs in the kernel")
    packets = {side: n - before[side] for side, n in gw.packets().items()}
    check((min(packets.values()) > 600) if transport == "roce" else (packets == {"a": 0, "b": 0}), f"RoCE packets: {packets}")
    for s in socks:
        s.close()
    server.ok()
    gw.no_resets()
    gw.stop()


def fall_back(t, a, b):
    """No device in common: TCP carries the data, and each side has a reason, its own or the peer's."""
    net = rxe.Wires(t, 1)
    server = Server(t, echo)
    gw = Gates(t, net, {"echo": server.at}, a=a(net), b=b(net))
    s = exchange(gw)
    for d in gw.both:
        wait_until(lambda d=d: len(d.connections()) == 1, f"daemon {d.name} has one connection")
        c = d.connections()[0]
        equal(c["mode"], "tcp", f"mode of daemon {d.name}'s connection")
        why = c["reason"]
        check(why["local_text"] or why["peer_text"], f"daemon {d.name} says why: {why}")
        t.note(f"daemon {d.name}: {why['local_code']} {why['local_text']!r}, peer {why['peer_code']} {why['peer_text']!r}")
        codes = {why["local_code"], why["peer_code"]} - {"0x00000000"}
        check(codes & {"0x03030000", "0x03040000"}, f"daemon {d.name}: no device, or no transport in common: {codes}")
        equal(d.groups(), [], f"link groups of daemon {d.name}")
        wait_until(lambda d=d: "mode=TCP" in d.log() or "TCP" in d.ctl_text("connections"), f"daemon {d.name} says TCP")
    text = gw.a.ctl_text("check", f"{rxe.address('b', 1)}:{gw.middle['echo']}", status=None)
    t.note(text)
    check("declined" in text and "RDMA" in text, f"smcrctl check: {text}")
    equal(gw.packets(), {"a": 0, "b": 0}, "RoCE packets")
    s.close()
    server.ok()
    gw.stop()


@case("verbs only here, soft iWARP only there: TCP, with the reason on both sides", timeout=40)
def _(t):
    fall_back(t, lambda net: verbs(net, "a"), lambda net: siw(net, "b"))


@case("soft iWARP only here, verbs only there: TCP, with the reason on both sides", timeout=40)
def _(t):
    fall_back(t, lambda net: siw(net, "a"), lambda net: verbs(net, "b"))


@case("both have both: RoCE", timeout=40)
def _(t):
    agree(t, lambda net: verbs(net, "a") + siw(net, "a"), lambda net: siw(net, "b") + verbs(net, "b"), "roce")


@case("both here, soft iWARP only there: iWARP", timeout=40)
def _(t):
    agree(t, lambda net: verbs(net, "a") + siw(net, "a"), lambda net: siw(net, "b"), "iwarp")


@case("both there, verbs only here: RoCE", timeout=40)
def _(t):
    agree(t, lambda net: verbs(net, "a"), lambda net: siw(net, "b") + verbs(net, "b"), "roce")


@case("the preferred card is missing: iWARP, and RoCE for groups made after it appeared", timeout=60)
def _(t):
    net = rxe.Wires(t, 1)
    net.unplug("b", 1)
    server = Server(t, echo)
    gw = Gates(t, net, {"echo": server.at}, a=verbs(net, "a") + siw(net, "a"), b=verbs(net, "b") + siw(net, "b"))
    s = exchange(gw)
    equal([x["device"] for x in gw.b.ctl("links")["links"]], ["siw0"] if "siw0" in gw.links(gw.b) else ["siw1"], "b's link")
    check(not gw.queue_pairs(gw.b), "no queue pairs")
    s.close()
    wait_until(lambda: not gw.a.groups() and not gw.b.groups(), "the group ends", 20)
    net.plug("b", 1)
    wait_until(lambda: gw.b.status()["devices_up"] == 2, "b has found the card", 20)
    s = exchange(gw)
    gw.only_smcr(2)
    check("rxb1" in gw.links(gw.b), f"b's links: {gw.links(gw.b)}")
    s.close()
    gw.stop()


main()
