#!/usr/bin/env python3
"""Handshakes by an association (doc/secure.md): cheaper, with the same name; by what it ends; never in clear."""
import socket
import subprocess

from basics import PATIENCE, SANITIZERS
from harness import case, check, connect_to, echo, equal, hostport, logs, main, need, outcome, recv_all, recv_exact, wait_until, works
from tls_files import Authority, secure_pair

A, B = "spiffe://example.org/gw/a", "spiffe://example.org/gw/b"
MARK = b"the marker of a program's data "


def resuming(t, **kw):
    """A pair with a CA, each connection with a CLC connection and data on TCP: (pair, the CA)."""
    ca = Authority(t)
    return secure_pair(t, echo, ca.issue("a"), ca.issue("b"), [B], [A], links=False, **kw), ca


def more(pair, cnt=3):
    """Of so many further connections: (handshakes, by an association) at the ingress; the egress says the same."""
    def now(d):
        c = d.counters()
        return c["tls_handshakes"], c["tls_resumed"]
    before = now(pair.a), now(pair.b)
    for _ in range(cnt):
        with pair.connect() as s:
            s.sendall(MARK)
            s.shutdown(socket.SHUT_WR)
            equal(recv_all(s), MARK, "echo")
    a, b = (tuple(x - y for x, y in zip(now(d), old)) for d, old in zip((pair.a, pair.b), before))
    equal(a, b, "both ends count the same")
    check(not pair.relay.has(MARK), "the marker in clear")
    return a


def refused(pair, words):
    c = pair.connect()
    try:
        c.sendall(MARK)
        equal(outcome(c), ("reset", b""), "at the client")
    except OSError:
        pass
    wait_until(lambda: words in pair.b.log(), f"b says {words!r}: ...{pair.b.log()[-2000:]}")
    check(not pair.relay.has(MARK), "the marker in clear")


def reload_b(pair, **conf):
    pair.conf_b.update(conf)
    pair.b.write_conf(pair.conf_b)
    pair.b.ctl_text("reload")


@case("later handshakes are by the keys of the first one, of another service as well; the name is the same")
def _(t):
    pair, _ = resuming(t, start=False, a={"workers": 2}, b={"workers": 2})
    port, middle = t.port(), t.port()
    pair.conf_a["ingress"].append({**pair.conf_a["ingress"][0], "name": "y", "listen": hostport(t.addr, port), "to": hostport(*pair.relay.at)})
    pair.conf_b["egress"].append({**pair.conf_b["egress"][0], "name": "y", "listen": hostport(t.addr, middle)})
    for d, conf in ((pair.b, pair.conf_b), (pair.a, pair.conf_a)):
        d.write_conf(conf)
        d.start()
    equal(more(pair), (3, 2), "handshakes, by an association")
    with connect_to((t.addr, port)) as c, pair.connect() as d:
        works(c)
        works(d)
        for end, name in ((pair.a, B), (pair.b, A)):
            equal([(x["protection"], x["peer_name"]) for x in end.connections()], [("tls", name)] * 2, f"connections of {end.name}")
    equal(pair.a.counters()["tls_resumed"], 4, "by an association, with the other service")


@case("resume = 0 at either end: each handshake is by certificates")
def _(t):
    for end in ("a", "b"):
        pair, _ = resuming(t, start=False)
        conf = pair.conf_a if end == "a" else pair.conf_b
        conf["tls"] = {**conf["tls"], "resume": 0}
        for d, c in ((pair.b, pair.conf_b), (pair.a, pair.conf_a)):
            d.write_conf(c)
            d.start()
        equal(more(pair), (3, 0), "handshakes, by an association")


@case("a reload that takes the name away, or has it in a CRL: refused, as without an association")
def _(t):
    pair, _ = resuming(t)
    equal(more(pair), (3, 2), "handshakes, by an association")
    reload_b(pair, egress=[{**pair.conf_b["egress"][0], "peer_names": ["spiffe://example.org/gw/x"]}])
    refused(pair, f"peer is '{A}', not one of peer_names")
    reload_b(pair, egress=[{**pair.conf_b["egress"][0], "peer_names": [A]}])
    more(pair)
    pair, ca = resuming(t)
    equal(more(pair), (3, 2), "handshakes, by an association")
    reload_b(pair, tls={**pair.conf_b["tls"], "crl": ca.revoke(pair.conf_a["tls"]["cert"])})
    refused(pair, f"certificate of '{A}': certificate revoked")


@case("a take-over at either end: the new process has none, and the first handshake with it is by certificates")
def _(t):
    pair, _ = resuming(t)
    equal(more(pair), (3, 2), "handshakes, by an association")
    for end in ("b", "a"):
        old = getattr(pair, end)
        setattr(pair, end, old.successor())
        equal(old.wait(), 0, "the old process ends")
        equal(more(pair), (3, 2), "handshakes, by an association")


@case("openssl s_client with a PSK of such a name: as without, no certificate")
def _(t):
    pair, ca = resuming(t)
    more(pair)
    subprocess.run([ca.openssl, "s_client", "-connect", hostport(t.addr, pair.middle["x"]), "-alpn", "smcrd/1", "-psk", "00" * 32,
                    "-psk_identity", "smcrd-A1" + "x" * 16], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=30 * PATIENCE, check=False)
    wait_until(lambda: "peer has no certificate" in pair.b.log(), "refused")
    equal(more(pair), (3, 3), "handshakes, by an association")


@case("a limit of full handshakes of one source: others by an earlier one do not count", one_worker="a limit of each worker")
def _(t):
    ca = Authority(t)
    a, b = ca.issue("a"), {**ca.issue("b"), "handshakes": 1}
    pair = secure_pair(t, echo, a, b, [B], [A], links=False)
    equal(more(pair, 30), (30, 29), "handshakes, by an association")
    equal(pair.b.counters()["tls_limited"], 0, "over the limit")
    pair = secure_pair(t, echo, {**a, "resume": 0}, b, [B], [A], links=False)
    served = 0
    while served < 200:
        with pair.connect() as s:
            try:
                s.sendall(MARK)
                s.shutdown(socket.SHUT_WR)
                if recv_all(s) != MARK:
                    break
            except OSError:
                break
        served += 1
    check(20 <= served < 200, f"{served} were served")
    check(pair.b.counters()["tls_limited"] > 0, "the next one is over the limit")
    logs(pair.b, "too many TLS handshakes of this source")
    check(not pair.relay.has(MARK), "the marker in clear")


@case("what many handshakes at once took is given back within seconds")
def _(t):
    ca = Authority(t)
    pair = secure_pair(t, echo, ca.issue("a"), ca.issue("b"), [B], [A])
    sockets = []

    def add(count):
        sockets.extend(pair.connect() for _ in range(count))
        for s in sockets[-count:]:
            s.sendall(b".")
        for s in sockets[-count:]:
            equal(recv_exact(s, 1), b".", "echo")
    add(1)
    before = [d.rss() for d in (pair.b, pair.a)]
    for _ in range(3):	# what stays is of connections that live between them
        add(100)
    for d, was in zip((pair.b, pair.a), before):
        def each(d=d, was=was):
            return (d.rss() - was) / 300 / 1024
        most = each()
        if not SANITIZERS:
            wait_until(lambda each=each: each() < 7, f"memory of {d.name}")
        t.note(f"{most:.1f} KiB of a connection of {d.name}, then {each():.1f}")
    for s in sockets:
        s.close()


if __name__ == "__main__":
    need("openssl")
    main()
