#!/usr/bin/env python3
"""What carries the links of two gateways: SCTP where both have it, MPA on TCP where one has not, TCP where nothing is left."""
from harness import case, check, echo, equal, main, pair_to, pattern, recv_exact, soft_device


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
    """Transport of links, at both ends: as the devices that they are on say, too."""
    out = []
    for d in (pair.a, pair.b):
        kinds = {x["name"]: x["transport"] for x in d.ctl("devices")["devices"]}
        links = d.ctl("links")["links"]
        for x in links:
            equal(x["transport"], kinds[x["device"]], "transport of a link")
        out.append({x["transport"] for x in links})
    return out


def paths_are_told(pair, sctp):
    """Each end has one path, to the other one, and smcrctl shows it."""
    for d in (pair.a, pair.b):
        link, = d.ctl("links")["links"]
        path, = link["paths"]
        equal((path["address"], path["state"], path["primary"]), (pair.a.t.addr, "active", True), f"path: {path}")
        check(path["rto_us"] >= 200000 and path["mtu"] > 1280 and path["cwnd_bytes"] > 0, f"path: {path}")
        check(link["unacked"] >= 0, f"link: {link}")
        equal(link["retransmits"] < 0, sctp, f"are retransmissions not known? {link}")
        text = d.ctl_text("links", "--detail")
        check("Paths of links" in text and link["transport"] in text, f"links --detail:\n{text}")
        for x in d.ctl("devices")["devices"]:
            over = x["transport"].startswith("iwarp-sctp")
            equal((x["stack"], x["profile"]), ("user", "rfc5043") if over else ("", ""), f"device: {x}")
            equal(x["addresses"], [pair.a.t.addr], f"device: {x}")


@case("both have SCTP, and prefer it")
def _(t):
    pair = echoed(t, ["sctp", "tcp"], ["sctp", "tcp"])
    equal(carriers(pair), [{"iwarp-sctp-udp"}] * 2, "transports")
    pair.only_smcr(1)
    paths_are_told(pair, sctp=True)


@case("one has no SCTP: MPA on TCP")
def _(t):
    pair = echoed(t, ["sctp", "tcp"], ["tcp"])
    equal(carriers(pair), [{"iwarp"}] * 2, "transports")
    pair.only_smcr(1)
    paths_are_told(pair, sctp=False)


@case("nothing in common: TCP, and the reason")
def _(t):
    pair = echoed(t, ["sctp"], ["tcp"])
    equal(carriers(pair), [set()] * 2, "transports")
    equal(pair.modes(), (0, 2), "connections on SMC-R, on TCP")


main()
