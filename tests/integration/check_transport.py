#!/usr/bin/env python3
"""What carries the links of two gateways: SCTP where both have it, MPA on TCP where one has not, TCP where nothing is left."""
from harness import case, check, echo, equal, logs, main, pair_to, pattern, recv_exact, soft_device


def send_some(s):
    data = pattern(300000, 1)
    for i in range(0, len(data), 10000):
        part = data[i:i + 10000]
        s.sendall(part)
        equal(recv_exact(s, len(part)), part, "what comes back")


def gateways(t, a, b):
    """With devices of these transports, or with more settings of each."""
    def daemon(devices):
        return {"workers": 1, "smcr": {"hold_off": "1m"},
                "devices": [soft_device(t.addr, **(x if isinstance(x, dict) else {"transport": x})) for x in devices]}
    return pair_to(t, echo, a=daemon(a), b=daemon(b))


def echoed(t, a, b):
    """Such gateways, between which a connection has carried something and is still there."""
    pair = gateways(t, a, b)
    send_some(pair.connect())
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


@case("both have SCTP, and use it")
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


def reasons(pair):
    """Of the last connection of each end."""
    return [d.connections()[-1]["reason"] for d in (pair.a, pair.b)]


def words(pair, n, *ours):
    """In gateway n's log and in its connections as text."""
    d = (pair.a, pair.b)[n]
    text = d.ctl_text("connections")
    for w in ours:
        check(w in text, f"daemon {d.name} says \"{w}\":\n{text}")


@case("no common transport: TCP, and the reason on both sides")
def _(t):
    for a, b, offer in ((["sctp"], ["tcp"], "iwarp-sctp-udp"), (["tcp"], ["sctp"], "iwarp")):
        pair = echoed(t, a, b)
        equal(carriers(pair), [set()] * 2, "transports")
        equal(pair.modes(), (0, 2), "connections on SMC-R, on TCP")
        ra, rb = reasons(pair)
        equal((ra["peer_text"], ra["offered"]), ("no RDMA device", [offer]), f"the client's reason: {ra}")
        equal((rb["local_text"], rb["offered"]), ("no RDMA device", [offer]), f"the server's reason: {rb}")
        equal(rb["detail"], "our devices have none of the transports that the peer offers", f"the server's reason: {rb}")
        for n, d in enumerate((pair.a, pair.b)):
            words(pair, n, f"(the client offers {offer})")
            logs(d, f"offered={offer}")


def contact_failed(pair):
    """A connection on TCP, as first contact over SCTP has failed: the reasons at both ends."""
    s = pair.connect()
    send_some(s)
    ra, rb = reasons(pair)
    why = ("the peer does another thing than DDP on SCTP", "the peer reset the association, or does not answer")
    equal(ra["local_text"], "queue pair could not be made ready", f"the client's reason: {ra}")
    check(ra["detail"] in why, f"the client's reason: {ra}")
    equal(rb["peer_text"], "queue pair could not be made ready", f"the server's reason: {rb}")
    equal([r["transport"] for r in (ra, rb)], ["iwarp-sctp-udp"] * 2, "what it was to go over")
    equal([r["sctp_held_off"] for r in (ra, rb)], [False, True], "the server chooses what is next")
    words(pair, 0, ra["detail"], "(over iwarp-sctp-udp)")
    words(pair, 1, "(over iwarp-sctp-udp; the peer's next go over another transport, where both have one)")
    logs(pair.b, "SCTP to the peer held off", "sctp_held_off=yes")
    logs(pair.a, "transport=iwarp-sctp-udp")


@case("SCTP fails: the next connection uses MPA on TCP, and both report the reason")
def _(t):
    draft = {"transport": "sctp", "sctp_profile": "draft-00"}
    pair = gateways(t, [draft, "tcp"], ["sctp", "tcp"])
    contact_failed(pair)
    send_some(pair.connect())
    equal(carriers(pair), [{"iwarp"}] * 2, "transports")
    for d in (pair.a, pair.b):
        logs(d, "transport=iwarp\n")
    equal(pair.b.counters()["sctp_shunned"], 1, "first contacts over something else")


@case("SCTP fails and there is no other transport: TCP, and both report the reason")
def _(t):
    pair = gateways(t, [{"transport": "sctp", "sctp_profile": "draft-00"}], ["sctp"])
    contact_failed(pair)
    contact_failed(pair)
    send_some(pair.connect())
    check(reasons(pair)[0]["held_off"], "the peer is held off")
    words(pair, 0, "(peer held off after failures)")
    equal(carriers(pair), [set()] * 2, "transports")


main()
