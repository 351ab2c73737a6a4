#!/usr/bin/env python3
"""Connections that open over a link of a proven peer (doc/open.md, doc/secure.md): who may, and what takes that away."""
from harness import case, check, connect_to, echo, equal, hostport, main, need, outcome, works
from tls_files import Authority, psk_file, secure_pair

A, B = "spiffe://example.org/gw/a", "spiffe://example.org/gw/b"


def opening(t, secure="required", b_secure=None, **kw):
    """A pair with a CA: (pair, the CA)."""
    ca = Authority(t)
    return secure_pair(t, echo, ca.issue("a"), ca.issue("b"), [B], [A], secure, b_secure, opens=True, **kw), ca


def more(pair, cnt=4):
    """Of so many further connections: (opened over a link, TLS handshakes)."""
    def now():
        a, b = pair.a.counters(), pair.b.counters()
        return a["opened_client"] - a["not_opened_client"], b["tls_handshakes"]
    before = now()
    for _ in range(cnt):
        with pair.connect() as s:
            works(s)
    after = now()
    return after[0] - before[0], after[1] - before[1]


def refused(pair):
    """A further connection is reset, and none has opened over a link."""
    before = pair.a.counters(), pair.b.counters()
    c = pair.connect()
    try:
        c.sendall(b"x")
        how = outcome(c)
    except OSError:
        how = ("reset", b"")
    equal(how, ("reset", b""), "at the client")
    after = pair.a.counters(), pair.b.counters()
    for i, (role, refusals) in enumerate((("opened_client", "not_opened_client"), ("opened_server", "not_opened_server"))):
        equal(after[i][role] - before[i][role], after[i][refusals] - before[i][refusals], f"{role}: all of them refused")
    check(any(after[i]["tls_failed"] > before[i]["tls_failed"] for i in (0, 1)), "a handshake was refused")


def reload(d, conf):
    d.write_conf(conf)
    d.ctl_text("reload")


def change(pair, which, **fields):
    """Reloads a daemon with other fields of its service."""
    d, kind = (pair.a, "ingress") if which == "a" else (pair.b, "egress")
    conf = pair.conf_a if which == "a" else pair.conf_b
    conf[kind] = [{**conf[kind][0], **fields}, *conf[kind][1:]]
    reload(d, conf)


@case("required: the second connection has no CLC connection and no handshake, and both ends show who the peer is", one_worker="its worker has the group")
def _(t):
    pair, _ = opening(t)
    with pair.connect() as first:
        works(first)
        equal(more(pair), (4, 0), "opened, handshakes")
        with pair.connect() as c:
            works(c)
            for d, name in ((pair.a, B), (pair.b, A)):
                shown = {(x["over_link"], x["protection"], x["peer_name"]) for x in d.connections()}
                equal(shown, {(False, "tls", name), (True, "tls", name)}, f"connections of {d.name}")
    pair.only_smcr(6)
    pair.quiet()


@case("auth, with a PSK, and accept with TLS: likewise; a client of accept in clear opens nothing", one_worker="counts")
def _(t):
    pair, _ = opening(t, "auth")
    more(pair)
    equal(more(pair), (4, 0), "opened, handshakes: auth")
    key = bytes(range(32))
    pair = secure_pair(t, echo, psk_file(t, "gw-a", {"gw-b": key}), psk_file(t, "gw-b", {"gw-a": key}), ["psk:gw-b"], ["psk:gw-a"], opens=True)
    more(pair)
    equal(more(pair), (4, 0), "opened, handshakes: PSK")
    pair, _ = opening(t, "auth", "accept")
    more(pair)
    equal(more(pair), (4, 0), "opened, handshakes: accept in TLS")
    pair, _ = opening(t, "off", "accept")
    more(pair)
    equal(more(pair), (0, 0), "opened, handshakes: accept in clear")
    equal(pair.b.counters()["tls_clear"], 8, "clients in clear")


@case("a reload that changes no rule, changes nothing: certificates are read again, and connections open over the link", one_worker="counts")
def _(t):
    pair, _ = opening(t)
    more(pair)
    change(pair, "b", max_connections=77)
    change(pair, "a", max_connections=77)
    equal(more(pair), (4, 0), "opened, handshakes")


@case("a reload that takes a name away: what would open over the link is refused", one_worker="counts")
def _(t):
    for which, now in (("b", ["spiffe://example.org/gw/x"]), ("a", ["spiffe://example.org/gw/x"])):
        pair, _ = opening(t)
        names = (pair.conf_a["ingress"] if which == "a" else pair.conf_b["egress"])[0]["peer_names"]
        more(pair)
        equal(more(pair), (4, 0), "opened, handshakes")
        change(pair, which, peer_names=now)
        refused(pair)
        change(pair, which, peer_names=[*now, *names])
        with pair.connect() as c:
            works(c)


@case("a reload with a CRL that has the peer: what would open over the link is refused", one_worker="counts")
def _(t):
    pair, ca = opening(t)
    more(pair)
    equal(more(pair), (4, 0), "opened, handshakes")
    pair.conf_b["tls"] = {**pair.conf_b["tls"], "crl": ca.revoke()}
    reload(pair.b, pair.conf_b)
    opened, handshakes = more(pair, 2)
    check(opened < 2 and handshakes > 0, f"proven again: {opened} opened, {handshakes} handshakes")
    pair.conf_b["tls"] = {**pair.conf_b["tls"], "crl": ca.revoke(pair.conf_a["tls"]["cert"])}
    reload(pair.b, pair.conf_b)
    refused(pair)


@case("another level: neither end uses the group of the one before", one_worker="counts")
def _(t):
    pair, _ = opening(t)
    more(pair)
    change(pair, "b", secure="auth")
    change(pair, "a", secure="auth")
    opened, handshakes = more(pair, 2)
    check(handshakes > 0 and opened < 2, f"proven again: {opened} opened, {handshakes} handshakes")
    equal(sorted({x["protection"] for x in pair.a.connections()} | {"tls"}), ["tls"], "protection")
    # One end alone changes: its peer's tickets are void.
    change(pair, "b", secure="required")
    check(more(pair, 2)[1] > 0, "proven again")


@case("a second service whose peer_names lack the peer: refused, whatever the group of the first one has", one_worker="counts")
def _(t):
    pair, _ = opening(t, start=False)
    port, middle = t.port(), t.port()
    pair.conf_a["ingress"].append({"name": "y", "listen": hostport(t.addr, port), "to": hostport(t.addr, middle), "secure": "required",
                                   "peer_names": [B]})
    pair.conf_b["egress"].append({"name": "y", "listen": hostport(t.addr, middle), "to": hostport(*pair.server.at), "secure": "required",
                                  "peer_names": ["spiffe://example.org/gw/x"]})
    for d, conf in ((pair.b, pair.conf_b), (pair.a, pair.conf_a)):
        d.write_conf(conf)
        d.start()
    more(pair)
    equal(more(pair), (4, 0), "opened, handshakes")
    for _ in range(2):
        c = connect_to((t.addr, port))
        try:
            c.sendall(b"x")
            equal(outcome(c), ("reset", b""), "the other service")
        except OSError:
            pass
    equal(more(pair), (4, 0), "opened, handshakes")


@case("workers: two at each end")
def _(t):
    pair, _ = opening(t, a={"workers": 2}, b={"workers": 2})
    first = [pair.connect() for _ in range(16)]
    for s in first:
        works(s)
    for s in first:
        s.close()
    opened, _ = more(pair, 100)
    check(opened > 80, f"most open over a link: {opened}")


@case("a take-over at either end: a handshake with the new process, then connections open over its link", one_worker="counts")
def _(t):
    pair, _ = opening(t)
    for end in ("b", "a"):
        more(pair)
        equal(more(pair), (4, 0), "opened, handshakes")
        old = getattr(pair, end)
        setattr(pair, end, old.successor())
        equal(old.wait(), 0, "the old process ends")
        with pair.connect() as c:
            works(c)
        before = getattr(pair, end).counters()["tls_handshakes"]
        check(before > 0, "a handshake with the new process")


if __name__ == "__main__":
    need("openssl")
    main()
