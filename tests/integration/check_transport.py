#!/usr/bin/env python3
"""What carries the links of two gateways: SCTP where both have it, MPA on TCP where one has not, TCP where nothing is left."""
from harness import case, echo, equal, main, pair_to, pattern, recv_exact, soft_device


def echoed(t, a, b):
    """Gateways with devices of these transports, between which a connection has carried something and is still there."""
    def daemon(transports):
        return {"workers": 1, "devices": [soft_device(t.addr, x) for x in transports]}
    pair = pair_to(t, echo, a=daemon(a), b=daemon(b))
    s = pair.connect()
    data = pattern(300000, 1)
    for i in range(0, len(data), 10000):
        part = data[i:i + 10000]
        s.sendall(part)
        equal(recv_exact(s, len(part)), part, "what comes back")
    return pair


def carriers(pair):
    """Transport of the devices that links are on, at both ends."""
    out = []
    for d in (pair.a, pair.b):
        kinds = {x["name"]: x["transport"] for x in d.ctl("devices")["devices"]}
        out.append({kinds[x["device"]] for x in d.ctl("links")["links"]})
    return out


@case("both have SCTP, and prefer it")
def _(t):
    pair = echoed(t, ["sctp", "tcp"], ["sctp", "tcp"])
    equal(carriers(pair), [{"iwarp-sctp-udp"}] * 2, "transports")
    pair.only_smcr(1)


@case("one has no SCTP: MPA on TCP")
def _(t):
    pair = echoed(t, ["sctp", "tcp"], ["tcp"])
    equal(carriers(pair), [{"iwarp"}] * 2, "transports")
    pair.only_smcr(1)


@case("nothing in common: TCP, and the reason")
def _(t):
    pair = echoed(t, ["sctp"], ["tcp"])
    equal(carriers(pair), [set()] * 2, "transports")
    equal(pair.modes(), (0, 2), "connections on SMC-R, on TCP")


main()
