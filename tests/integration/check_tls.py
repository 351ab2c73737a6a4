#!/usr/bin/env python3
"""TLS between two gateways: what is protected, what is refused with which words at both ends, and nothing ever in clear."""
import os
import re
import secrets
import shutil
import socket
import subprocess

from basics import PATIENCE, SMCRD, Failure
from harness import case, check, connect_to, echo, equal, hostport, main, need, outcome, pattern, recv_all, recv_exact, same_bytes, set_reset_on_close, soft_device, wait_until, works
from capture import Capture
from tls_files import Authority, Relay, psk_file, says, secure_pair

MARK = b"the marker of a program's data "
DAY_S = 86400
CLC_EYE = b"\xe2\xd4\xc3\xd9"
# Eye catcher, type and high byte of the length: four bytes alone are in the megabytes of a cipher once in some hundred runs.
CLC_HEADS = [CLC_EYE + bytes((kind, 0)) for kind in (1, 2, 3, 4)]
A, B = "spiffe://example.org/gw/a", "spiffe://example.org/gw/b"


def certificates(t):
    ca = Authority(t)
    return ca.issue("a"), ca.issue("b")


def psks(t, key=None, other=None):
    key = key or secrets.token_bytes(32)
    return psk_file(t, "gw-a", {"gw-b": key}), psk_file(t, "gw-b", {"gw-a": other or key})


def carries(pair, seed=1):
    """Large data and a half close, and a connection that stays idle."""
    data = MARK + pattern(1500000, seed) + MARK
    with pair.connect() as c:
        c.sendall(data)
        c.shutdown(socket.SHUT_WR)
        same_bytes(recv_all(c), data, "echo")
    with pair.connect() as c:
        works(c)
        return [(x["protection"], x["peer_name"]) for d in (pair.a, pair.b) for x in d.connections()]


def in_tls(pair, count):
    """So many handshakes succeeded at each end, and the relay has seen no byte in clear."""
    for d in (pair.a, pair.b):
        equal(d.counters()["tls_handshakes"], count, f"handshakes of {d.name}")
        equal(d.counters()["tls_failed"], 0, f"failures of {d.name}")
    check(len(pair.relay.seen["up"]) > 1000, "the relay has seen the middle")
    for text in (MARK, *CLC_HEADS):
        check(not pair.relay.has(text), f"{text!r} in clear between the gateways")


def on_tcp(pair):
    for d in (pair.a, pair.b):
        equal(sum(s["fallbacks"] for s in d.services()), 2, f"connections of {d.name} on TCP in TLS")


def links_in_tls(pair, count):
    for d in (pair.a, pair.b):
        equal([x["tls"] for x in d.ctl("links")["links"]], [True] * count, f"links of {d.name} that are in TLS")


@case("required, with certificates: links and their data are in TLS, and nothing on the wire is in clear", one_worker="it counts groups")
def _(t):
    a, b = certificates(t)
    capture = Capture(t)
    pair = secure_pair(t, echo, a, b, [B], [A], egress={"fallback": "refuse"}, ingress={"fallback": "refuse"})
    equal(set(carries(pair)), {("tls", A), ("tls", B)}, "how connections are protected")
    pair.only_smcr(2)
    in_tls(pair, 2)
    links_in_tls(pair, 1)
    equal([(x["protection"], x["peer_name"]) for d in (pair.a, pair.b) for x in d.groups()], [("required", B), ("required", A)], "the groups")
    with pair.connect() as c:
        works(c)
        equal([d.status()["secured"] for d in (pair.a, pair.b)], [1, 1], "connections with a proven peer")
        check("1 connection with a peer proven by TLS" in pair.a.ctl_text("status"), "status")
    t.note(pair.a.ctl_text("check", f"{pair.relay.at[0]}:{pair.relay.at[1]}", "--bulk=1M").strip().split("\n")[-1])
    pair.quiet()
    capture.finish()
    with open(capture.file, "rb") as f:
        seen = f.read()
    check(len(seen) > 3000000, f"the capture has the run: {len(seen)} bytes")
    for text in (*CLC_HEADS, b"MPA ID"):
        check(text not in seen, f"{text!r} in clear")
    check(MARK in seen, "the programs' own legs are captured as well, in clear")
    clear = capture.tshark("-Y", f"frame contains {MARK[:16].hex(':')} and not tcp.port in {{{pair.port['x']}, {pair.server.at[1]}}}")
    equal(clear, [], "packets between the gateways with the marker")


@case("required, by TCP: everything is in TLS, and the relay sees no marker")
def _(t):
    a, b = certificates(t)
    pair = secure_pair(t, echo, a, b, [B], [A], links=False)
    equal(set(carries(pair)), {("tls", A), ("tls", B)}, "how connections are protected")
    in_tls(pair, 2)
    on_tcp(pair)
    pair.quiet()


@case("required, with a PSK")
def _(t):
    a, b = psks(t)
    pair = secure_pair(t, echo, a, b, ["psk:gw-b"], ["psk:gw-a"])
    carries(pair)
    in_tls(pair, 2)
    pair.only_smcr(2)


@case("auth: CLC and links are in TLS; later connections join the group of the proven name", one_worker="it counts groups")
def _(t):
    a, b = certificates(t)
    pair = secure_pair(t, echo, a, b, [B], ["*"], "auth", ingress={"prewarm": True})
    wait_until(lambda: len(pair.a.groups()) == 1, "prewarmed")
    for i in range(3):
        shown = carries(pair, i)
    check(("tls", B) in shown and ("tls", A) in shown, f"how the connection is protected: {shown}")
    pair.only_smcr(6)
    in_tls(pair, 7)
    links_in_tls(pair, 1)
    equal(len(pair.b.groups()), 1, "groups")
    pair.quiet()


@case("required, prewarm: the group is in TLS before the first connection, which joins it; doctor has no finding", one_worker="it counts groups")
def _(t):
    a, b = psks(t)
    limit = {"max_connections": 100}
    pair = secure_pair(t, echo, a, b, ["psk:gw-b"], ["psk:gw-a"], ingress={"prewarm": True, "fallback": "refuse", **limit},
                       egress={"fallback": "refuse", **limit}, opens=True)
    for d in (pair.a, pair.b):
        wait_until(lambda d=d: [g["protection"] for g in d.groups()] == ["required"], f"prewarmed at {d.name}")
    links_in_tls(pair, 1)
    for over_link in (False, True):		# a ticket comes with the first client's rendezvous
        pair.quiet()
        with pair.connect() as c:
            works(c)
            equal([x["over_link"] for d in (pair.a, pair.b) for x in d.connections()], [over_link] * 2, "opened over the link")
    equal(len(pair.b.groups()), 1, "groups")
    for d in (pair.a, pair.b):
        equal(d.ctl_text("doctor", "--problems"), "no warning and no problem\n", f"doctor of {d.name}")
    strict = secure_pair(t, echo, a, b, ["psk:gw-b"], ["psk:gw-x"], ingress={"prewarm": True, **limit}, egress=limit)
    wait_until(lambda: strict.a.counters()["tls_failed"] + strict.b.counters()["tls_failed"] > 0, "the name is refused")
    equal([d.groups() for d in (strict.a, strict.b)], [[], []], "groups of one that is refused")
    check("TLS" in strict.a.ctl_text("doctor", "--problems", status=None), "doctor names TLS")


@case("a second link, by LLC, is in TLS as well", one_worker="its links")
def _(t):
    a, b = certificates(t)
    more = "127.80" + t.addr[6:]
    conf = {"devices": [soft_device(x, "tcp") for x in (t.addr, more)], "smcr": {"mpa_peers": ["127.0.0.0/8"], "mpa_clients": ["127.0.0.0/8"]}}
    pair = secure_pair(t, echo, a, b, [B], [A], a=dict(conf), b=dict(conf))
    with pair.connect() as c:
        works(c)
        for d in (pair.a, pair.b):
            wait_until(lambda: len([x for x in d.ctl("links")["links"] if x["state"] == "active"]) == 2, f"a second link of {d.name}")
        links_in_tls(pair, 2)
        works(c)


@case("a service in clear beside one with auth: their groups never mix", one_worker="it counts groups")
def _(t):
    a, b = certificates(t)
    pair = secure_pair(t, echo, a, b, [B], [A], "auth", start=False)
    clear, port = t.port(), t.port()
    pair.conf_a["ingress"].append({"name": "y", "listen": hostport(t.addr, port), "to": hostport(t.addr, clear)})
    pair.conf_b["egress"].append({"name": "y", "listen": hostport(t.addr, clear), "to": hostport(*pair.server.at)})
    for d, conf in ((pair.b, pair.conf_b), (pair.a, pair.conf_a)):
        d.write_conf(conf)
        d.start()
    for _ in range(2):
        with pair.connect() as c, connect_to((t.addr, port)) as other:
            works(c)
            works(other)
    equal(len(pair.b.groups()), 2, "groups")


@case("ends and resets: FIN in each order, a reset of either program, and a cut middle is a reset, not an end")
def _(t):
    a, b = certificates(t)

    def serve(s):
        what = recv_exact(s, 1)
        if what == b"r":
            s.sendall(b"x" * 100000)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()
        elif what == b"f":
            s.sendall(pattern(3000000))
            s.shutdown(socket.SHUT_WR)
            recv_all(s)
        else:
            s.sendall(b"begin")
            outcome(s)

    relay = Relay(t)
    pair = secure_pair(t, serve, a, b, [B], [A], relay=relay, links=False)
    with pair.connect() as c:
        c.sendall(b"f")
        same_bytes(recv_all(c), pattern(3000000), "data before the server's FIN")
    with pair.connect() as c:
        c.sendall(b"r")
        equal(recv_exact(c, 100000), b"x" * 100000, "data before the server's reset")
        equal(outcome(c)[0], "reset", "after the server's reset")
    with pair.connect() as c:
        c.sendall(b"-")
        equal(recv_exact(c, 5), b"begin", "first bytes")
        relay.change = lambda way, data: None
        c.sendall(b"this is cut by an attacker")
        equal(outcome(c)[0], "reset", "after a cut")
    says(pair.b, "ended without close_notify")
    relay.change = None


@case("a changed byte is a bad record and a reset; the program gets nothing of it")
def _(t):
    a, b = certificates(t)
    got = []

    def serve(s):
        try:
            got.append(recv_exact(s, 4))
            got.append(s.recv(100))
        except OSError as e:
            got.append(type(e).__name__)
    pair = secure_pair(t, serve, a, b, [B], [A], links=False)
    with pair.connect() as c:
        c.sendall(b"good")
        wait_until(lambda: got, "the first bytes have arrived")
        pair.relay.change = lambda way, data: data[:-1] + bytes([data[-1] ^ 1])
        c.sendall(b"evil")
        equal(outcome(c)[0], "reset", "at the client")
    wait_until(lambda: len(got) == 2, "the server's end")
    equal(got, [b"good", "ConnectionResetError"], "at the server")
    says(pair.b, "TLS: bad record")


def refused(t, a_tls, b_tls, a_says, b_says, a_names=(B,), b_names=("*",), **kw):
    """No connection, the words at both ends, no byte of the program's in clear."""
    pair = secure_pair(t, echo, a_tls, b_tls, a_names, b_names, **kw)
    for _ in range(2):
        c = pair.connect()
        try:
            c.sendall(MARK)
            how = outcome(c)
        except OSError:
            how = ("reset", b"")
        equal(how, ("reset", b""), "at the client")
    for d, words in ((pair.a, a_says), (pair.b, b_says)):
        if words:
            says(d, words)
    if a_says:
        service = pair.a.ctl_text("service", "x")
        check(a_says in " ".join(service.split()), f"smcrctl service at a: {service}")
    check(not pair.relay.has(MARK), "the marker in clear")
    equal(sum(s["fallbacks"] for d in (pair.a, pair.b) for s in d.services()), 0, "fallbacks")
    return pair


@case("the peer speaks no TLS, or the client does not: refused in words at both ends")
def _(t):
    a, b = certificates(t)
    refused(t, a, b, "peer closed at our ClientHello: is secure set there?", "it speaks TLS, and secure is 'off' here", b_secure="off")
    pair = refused(t, a, b, None, "not TLS, refused", secure="off", b_secure="required")
    equal(bytes(pair.relay.seen["down"]), b"", "bytes answered to a client in clear")


@case("a client that ends or resets before its first byte: its session is gone at once, and it is no failure of TLS")
def _(t):
    a, b = certificates(t)
    pair = secure_pair(t, echo, a, b, [B], [A], b={"smcr": {"clc_timeout": "60s"}})
    for ends in (lambda s: None, set_reset_on_close):
        s = connect_to((t.addr, pair.middle["x"]))
        wait_until(lambda: pair.b.connections(), "the session waits")
        ends(s)
        s.close()
        wait_until(lambda: not pair.b.connections(), "the session is gone")
    equal(pair.b.counters()["tls_failed"], 0, "failures")


@case("a peer that answers CLC to a ClientHello")
def _(t):
    a, b = certificates(t)

    def change(way, data):
        return CLC_EYE + bytes(40) if way == "down" else data
    refused(t, a, b, "peer does not speak TLS: it answered CLC", None, change=change)


@case("certificates: unknown CA, wrong names, revoked, CRL out of date")
def _(t):
    ca, strange = Authority(t), Authority(t, "strange")
    a, b = ca.issue("a"), ca.issue("b")
    refused(t, a, strange.issue("b"), "certificate of 'spiffe://example.org/gw/b': unable to get local issuer certificate", None)
    refused(t, {**strange.issue("a"), "ca": ca.cert}, b, "peer does not know the CA of our certificate",
            "certificate of 'spiffe://example.org/gw/a': unable to get local issuer certificate")
    refused(t, a, b, f"peer is '{B}', not one of peer_names", None, a_names=["spiffe://example.org/gw/x"])
    refused(t, a, b, f"peer is '{B}', not '{t.addr}', and there are no peer_names", None, a_names=None)
    refused(t, a, b, "peer refuses the name of our certificate", f"peer is '{A}', not one of peer_names", b_names=["dns:gw-a"])
    crl = ca.revoke(a["cert"])
    refused(t, a, {**b, "crl": crl}, "peer says that our certificate is revoked", f"certificate of '{A}': certificate revoked")
    pair = secure_pair(t, echo, ca.issue("a"), {**b, "crl": ca.revoke(valid_s=1)}, [B], [A])

    def fails():
        with pair.connect() as c:
            try:
                works(c)
            except (OSError, Failure):
                return True
        return False
    wait_until(fails, "the CRL is out of date")
    says(pair.b, f"certificate of '{A}': CRL expired 2")
    says(pair.b, ", UTC: is a clock wrong?)")


@case("names: a DNS name, an address, a SPIFFE prefix and the host of `to`")
def _(t):
    ca = Authority(t)
    a = ca.issue("a")
    for san, names in ((f"IP:{t.addr}", None), ("DNS:gw-b.example.org,DNS:other", ["dns:other"]), (f"URI:{B}", ["spiffe://example.org/gw/*"]),
                       (f"URI:{B}", ["uri:" + B]), (f"URI:{B}", ["*"])):
        pair = secure_pair(t, echo, a, ca.issue("b", san), names, [A])
        with pair.connect() as c:
            works(c)


@case("no transport in common that required allows: TCP in TLS, with what the client offers; refused with fallback = refuse", one_worker="the user's SCTP stack")
def _(t):
    a, b = certificates(t)
    for fallback in ("tcp", "refuse"):
        pair = secure_pair(t, echo, a, b, [B], [A], "required", start=False, egress={"fallback": fallback})
        pair.conf_b["devices"] = [soft_device(t.addr, "sctp")]
        pair.conf_b["egress"][0]["secure"] = "auth"
        for d, conf in ((pair.b, pair.conf_b), (pair.a, pair.conf_a)):
            conf["workers"] = 1
            d.write_conf(conf)
            d.start()
        with pair.connect() as c:
            if fallback == "tcp":
                works(c)
                shown = [d.connections()[0] for d in (pair.a, pair.b)]
                equal([(x["mode"], x["protection"], x["reason"]["offered"]) for x in shown], [("tcp", "tls", ["iwarp-tls"])] * 2, "both ends")
                equal(shown[0]["reason"]["peer_text"], "no RDMA device", "the ingress")
                equal(shown[1]["reason"]["detail"], "our devices have none of the transports that the peer offers", "the egress")
            else:
                equal(outcome(c)[0], "reset", "at the client")
                says(pair.b, 'detail="our devices have none of the transports that the peer offers" offered=iwarp-tls')
                says(pair.a, 'peer_reason="no RDMA device" offered=iwarp-tls')


@case("tls_name: the permitted name, and SNI, in the place of the host of `to`; a reload changes it")
def _(t):
    ca = Authority(t)
    b, hellos = ca.issue("b", "DNS:gw-b.example.org"), []

    def change(way, data):
        if way == "up" and data[:1] == b"\x16":
            hellos.append(data)
        return data
    pair = secure_pair(t, echo, ca.issue("a"), b, None, [A], change=change, ingress={"tls_name": "gw-b.example.org"})
    with pair.connect() as c:
        works(c)
        check(b"gw-b.example.org" in hellos[0], f"SNI in the ClientHello: {hellos[0]}")
        pair.conf_a["ingress"][0]["tls_name"] = "other.example.org"
        pair.a.write_conf(pair.conf_a)
        pair.a.ctl("reload")
        equal(outcome(c), ("reset", b""), "the connection, after the name was taken away")
    says(pair.a, "peer no longer permitted: service=x")
    says(pair.a, "peer is 'dns:gw-b.example.org'")
    refused(t, ca.issue("a"), b, "peer is 'dns:gw-b.example.org', not 'x.example.org', and there are no peer_names", None, a_names=None,
            ingress={"tls_name": "x.example.org"})


@case("suites: each in handshakes, links, later handshakes and reports; none in common is refused, and a reload changes them", one_worker="its groups")
def _(t):
    a, b = certificates(t)
    names = ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_256_GCM_SHA384"]
    for ours, theirs, used in (([], names, names[0]), ([names[1]], names, names[1]), (names, [names[2]], names[2]), ([names[2]], names, names[2])):
        for links in (True, False):
            suites = ({"suites": x} if x else {} for x in (ours, theirs))
            pair = secure_pair(t, echo, *({**x, **more} for x, more in zip((a, b), suites)), [B], [A], links=links)
            for resumed in (0, 1):
                pair.quiet()
                with pair.connect() as c:
                    works(c)
                    for d in (pair.a, pair.b):
                        equal([x["tls_suite"] for x in d.connections() + d.groups()], [used] * (1 + links), f"suites of {d.name}")
                        equal(d.counters()["tls_resumed"], resumed, f"later handshakes of {d.name}")
            if links:
                links_in_tls(pair, 1)
    with pair.connect() as c:
        works(c)
        check(used in pair.a.ctl_text("connections", "-d"), "smcrctl connections")
        pair.conf_a["tls"] = {**a, "suites": [names[1]]}
        pair.a.write_conf(pair.conf_a)
        pair.a.ctl("reload")
        works(c)
        with pair.connect() as new:
            works(new)
            equal({x["tls_suite"] for x in pair.a.connections()}, {names[2], names[1]}, "after a reload")
    refused(t, {**a, "suites": [names[0]]}, {**b, "suites": [names[2]]}, 
            *["no cipher suite in common: see tls.suites of both ends"] * 2)


@case("PSKs: unknown names, different keys")
def _(t):
    a, b = psks(t)
    refused(t, a, psk_file(t, "gw-b", {"gw-x": bytes(32)}), "peer does not know our PSK name 'gw-a'", "PSK name not known",
            ["psk:gw-b"], ["*"])
    refused(t, *psks(t, bytes(32), bytes(31) + b"\1"), "the two keys differ", "key differs: PSK name 'gw-a'", ["psk:gw-b"], ["*"])
    refused(t, a, b, None, "peer is 'psk:gw-a', not one of peer_names", ["psk:gw-b"], ["psk:gw-x"])


@case("accept: peers with TLS and in clear, each counted")
def _(t):
    a, b = certificates(t)
    pair = secure_pair(t, echo, a, b, [B], [A], "auth", "accept")
    with pair.connect() as c:
        works(c)
    pair = secure_pair(t, echo, a, b, [B], [A], "off", "accept")
    with pair.connect() as c:
        works(c)
    pair.only_smcr(1)
    equal(pair.b.counters()["tls_clear"], 1, "clear connections")


@case("reload: key and CA change under traffic without a failure; a bad file is refused, and the old one stays")
def _(t):
    ca, new = Authority(t), Authority(t, "new")
    a, b = ca.issue("a"), ca.issue("b")
    pair = secure_pair(t, echo, a, b, [B], [A])
    with pair.connect() as old:
        works(old)
        both = ca.at("both.pem")	# where the daemons may read: beside the files of their start
        with open(both, "w") as f:
            f.write(open(ca.cert).read() + open(new.cert).read())
        for d, conf in ((pair.a, pair.conf_a), (pair.b, pair.conf_b)):
            conf["tls"] = {**conf["tls"], "ca": both}
            d.write_conf(conf)
            d.ctl("reload")
        for d, conf, name in ((pair.a, pair.conf_a, "a"), (pair.b, pair.conf_b, "b")):
            fresh = new.issue(name)
            for what in ("cert", "key"):
                shutil.copy(fresh[what], ca.at(f"new-{name}.{what}"))
            conf["tls"] = {"cert": ca.at(f"new-{name}.cert"), "key": ca.at(f"new-{name}.key"), "ca": both}
            d.write_conf(conf)
            d.ctl("reload")
            with pair.connect() as c:
                works(c)
        works(old)
        conf = {**pair.conf_a, "tls": {**pair.conf_a["tls"], "key": b["key"]}}
        pair.a.write_conf(conf)
        text = pair.a.ctl_text("reload", status=1)
        wait_until(lambda: "tls.key" in text + pair.a.log(), f"words about the key: {text}")
        with pair.connect() as c:
            works(c)


def advice(t, text):
    path = t.path(f"conf.{t.count()}")
    with open(path, "w") as f:
        f.write(text)
    return t.run([SMCRD, "-t", "-f", path], status=None, stderr=subprocess.STDOUT).decode()


@case("smcrd -t: each error and warning in words")
def _(t):
    ca = Authority(t)
    good, short, old = ca.issue("a"), ca.issue("s", days=3), ca.issue("old", days=-1)
    client, server = ca.issue("c", usage="clientAuth"), ca.issue("d", usage="serverAuth")
    psk, gone = psk_file(t, "gw-a", {"gw-b": bytes(32)}), ca.issue("gone")
    rsa = ca.issue("rsa", key=("RSA", "rsa_keygen_bits:3072"))

    readable = shutil.copy(good["key"], t.path("readable.key"))
    os.chmod(readable, 0o644)

    def tls(**settings):
        return "tls = { " + " ".join(f'{k} = "{v}";' for k, v in settings.items()) + " };\n"

    def ingress(more='secure = "required";'):
        return f'ingress = ( {{ name = "i"; listen = "{t.addr}:1111"; to = "{t.addr}:1112"; {more} }} );\n'

    def egress(more='secure = "required"; peer_names = [ "*" ];'):
        return f'egress = ( {{ name = "e"; listen = "{t.addr}:1113"; to = "{t.addr}:1114"; {more} }} );\n'
    both = ingress() + egress()
    card = 'devices = ( { type = "verbs"; device = "mlx5_0"; protected = "%s"; } );\n'
    sctp = f'workers = 1;\ndevices = ( {{ type = "siw"; address = "{t.addr}"; transport = "sctp"; sctp_stack = "user"; }} );\n'
    for text, words in (
            (ingress(), "ingress.secure needs tls.cert, tls.key and tls.ca, or tls.name and tls.psk"),
            (tls(cert=good["cert"]) + ingress(), "tls.cert, tls.key and tls.ca belong together"),
            (tls(**good, **psk) + both, "tls.psk and tls.cert exclude each other"),
            (tls(psk=psk["psk"]) + both, "tls.psk and tls.name belong together"),
            (tls(**good) + egress('secure = "required";'), "egress.secure needs egress.peer_names"),
            (tls(**good) + egress('secure = "required"; peer_names = [ "gw-b" ];'), 'must be a URI, "dns:NAME" or "*"'),
            (tls(**good) + egress('secure = "required"; peer_names = [ "psk:gw-b" ];'), "tls.psk is not set"),
            (tls(**psk) + ingress('secure = "required"; peer_names = [ "*" ];'), 'needs "psk:NAME"'),
            ((tls(**psk) + egress()).replace("};", 'suites = [ "TLS_AES_256_GCM_SHA384" ]; };', 1), "tls.suites cannot have TLS_AES_256_GCM_SHA384 with tls.psk"),
            ((tls(**good) + egress()).replace("};", 'suites = [ "TLS_RSA" ]; };', 1), "tls.suites must be one of"),
            (tls(**good) + egress('secure = "required"; peer_names = [ "*" ]; fallback = "refuse";') + sctp, "egress.secure \"required\" has links"),
            (tls(**good) + egress('secure = "required"; peer_names = [ "*" ];') + sctp, "warning: egress.secure \"required\" has links"),
            (tls(**good) + egress('secure = "required"; peer_names = [ "*" ]; fallback = "refuse";') + card % "none", "egress.secure \"required\" has links"),
            (tls(**good) + egress('secure = "required"; peer_names = [ "*" ]; fallback = "refuse";') + card % "psp", ": ok, 1 service"),
            (tls(**good) + egress('secure = "auth"; peer_names = [ "*" ]; peer = "auto";'), 'egress.secure needs egress.peer = "smcrd"'),
            (tls(**good) + ingress('secure = "required"; peer = "linux";'), 'ingress.secure needs ingress.peer = "smcrd"'),
            (tls(**good) + ingress('secure = "accept";'), 'ingress.secure cannot be "accept"'),
            (tls(**good) + egress('secure = "accept"; peer_names = [ "*" ];'), 'warning: egress.secure is "accept"'),
            (tls(**good) + egress('peer_names = [ "*" ];'), "warning: egress.peer_names has no effect"),
            (ingress('tls_name = "x";'), "warning: ingress.tls_name has no effect"),
            (tls(**good) + egress('secure = "required"; peer_names = [ "*" ]; tls_name = "x";'), "tls_name"),
            (tls(**{**good, "key": short["key"]}) + both, "tls.key"),
            (tls(**{**good, "ca": "/nonexistent"}) + both, "tls.ca /nonexistent cannot be used: No such file"),
            (tls(**{**good, "crl": good["cert"]}) + both, "tls.crl"),
            (tls(**server) + ingress(), "is a certificate without clientAuth, which an ingress needs"),
            (tls(**client) + egress(), "is a certificate without serverAuth, which an egress needs"),
            (tls(**short) + both, 'warning: tls.cert has the certificate of "spiffe://example.org/gw/s", which expires in'),
            (tls(**old) + both, "which has expired"),
            (tls(**rsa) + both, "warning: tls.cert has an RSA key of 3072 bits"),
            (tls(**{**good, "ca": Authority(t, "other").cert}) + both, "warning: tls.cert is not verified by tls.ca (unable to get local issuer certificate), so"),
            (tls(**{**gone, "crl": ca.revoke(gone["cert"])}) + both, "warning: tls.cert is not verified by tls.ca (certificate revoked)"),
            (tls(**{**good, "key": ca.cert}) + both, "tls.key"),
            (tls(**{**good, "key": readable}) + both, f"tls.key {readable} is accessible by every user: set its mode to 0640 at most"),
            (tls(**psk_file(t, "gw-a", {"gw-b": bytes(32)}, 0o644)) + egress(), "is accessible by every user"),
            (tls(**psk_file(t, "gw-a", {"gw-b": bytes(31)})) + egress(), "a key that is not 32 to 64 bytes"),
            (tls(**psk_file(t, "gw-a", {"smcrd-x": bytes(32)})) + egress(), "does not begin with PEER-NAME"),
            (tls(**psk_file(t, "gw-a", {})) + egress(), "has no line PEER-NAME:HEX")):
        out = advice(t, text)
        check(words in out, f"{words!r} for\n{text}\ngot\n{out}")
    out = advice(t, tls(**good) + both)
    check("tls" not in out and "secure" not in out, f"a good configuration: {out}")


@case("peers by others: openssl s_client is refused without certificate, ALPN or TLS 1.3, and s_server is no smcrd")
def _(t):
    ca = Authority(t)
    a, b = ca.issue("a"), ca.issue("b")
    pair = secure_pair(t, echo, a, b, [B], [A])
    at = hostport(t.addr, pair.middle["x"])
    mine = ["-cert", a["cert"], "-key", a["key"]]

    def of(name, *valid):
        its = ca.issue(name, valid=valid)
        return ["-alpn", "smcrd/1", "-cert", its["cert"], "-key", its["key"]]

    def ends(name, words, hint):
        return rf"certificate of 'spiffe://example.org/gw/{name}': {words} \d+-\d+-\d+ \d+:\d+ \(this host's clock: \d+-\d+-\d+ \d+:\d+, UTC{hint}\)"
    dates = ((of("old", -9 * DAY_S, -DAY_S), ends("old", "expired", "")), (of("late", -9 * DAY_S, -1800), ends("late", "expired", ": is a clock wrong\\?")),
             (of("new", DAY_S, 9 * DAY_S), ends("new", "valid from", "")), (of("soon", 1800, DAY_S), ends("soon", "valid from", ": is a clock wrong\\?")))
    for args, words in ((["-alpn", "smcrd/1"], "peer has no certificate"), (mine, "its ALPN lacks smcrd/1"),
                        (["-alpn", "http/1.1", *mine], "its ALPN lacks smcrd/1"),
                        (["-alpn", "smcrd/1", "-tls1_2", *mine], "peer does not speak TLS 1.3"), *dates):
        subprocess.run([ca.openssl, "s_client", "-connect", at, "-CAfile", ca.cert, *args], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30 * PATIENCE, check=False)
        wait_until(lambda: re.search(words, pair.b.log()), f"{words!r} in the log: ...{pair.b.log()[-1000:]}")
    good = subprocess.run([ca.openssl, "s_client", "-connect", at, "-CAfile", ca.cert, "-alpn", "smcrd/1", "-brief", *mine],
                          input=b"no CLC message, but longer than its header", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=30 * PATIENCE, check=False).stdout
    check(b"TLSv1.3" in good, f"a good handshake: {good}")
    equal(pair.b.counters()["tls_handshakes"], 1, "handshakes")


if __name__ == "__main__":
    need("openssl")
    main()
