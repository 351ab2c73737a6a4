#!/usr/bin/env python3
"""A peer whose name, certificate, CA or PSK is taken away loses its connections and link groups; others keep theirs."""
import json
import secrets
import shutil

from daemons import Daemon, soft_device
from harness import case, check, echo, equal, hostport, logs, main, need, outcome, pattern, recv_all, same_bytes, wait_until, works, connect_to
from tls_files import Authority, psk_file, secure_pair

A, B, C = (f"spiffe://example.org/gw/{x}" for x in "abc")


class Three:
    """Two gateways with ingresses, a and c, at one egress, b. Each has two connections."""

    def __init__(self, t, a, b, c, a_names=(B,), b_names=(A, C), **kw):
        self.pair = secure_pair(t, echo, a, b, a_names, b_names, **kw)
        self.a, self.b, self.conf = self.pair.a, self.pair.b, self.pair.conf_b
        port, conf = t.port(), self.pair.conf_a
        ingress = {**conf["ingress"][0], "listen": hostport(t.addr, port), "peer_names": list(kw.get("c_names", a_names))}
        self.c = Daemon(t, "c", {**conf, "devices": [soft_device(t.addr, "tcp")] if kw.get("links", True) else conf["devices"],
                                 "tls": c, "ingress": [ingress]})
        self.at_c = (t.addr, port)
        self.of_a = [self.pair.connect(), self.pair.connect()]
        self.of_c = [connect_to(self.at_c), connect_to(self.at_c)]
        for s in self.of_a + self.of_c:
            t.later(s.close)
            works(s)

    def reload(self, d=None, **tls):
        d = d or self.b
        conf = {**d.conf, "tls": {**d.conf["tls"], **tls}}
        d.write_conf(conf)
        d.ctl("reload")

    def permit(self, *names):
        self.b.write_conf({**self.b.conf, "egress": [{**self.b.conf["egress"][0], "peer_names": list(names)}]})
        self.b.ctl("reload")

    def a_has_lost(self, words, smcr=True):
        """a's connections are reset at both programs, its link group has ended, and it cannot come again; c is not disturbed."""
        for s in self.of_a:
            equal(outcome(s), ("reset", b""), "a connection of a")
        wait_until(lambda: len(self.b.connections()) == 2, "b has two connections")
        equal({x["peer_name"] for x in self.b.connections()}, {C}, "whose connections b has")
        for s in self.of_c:
            works(s)
        events = list(map(json.loads, self.b.ctl_text("--json", "events", "--kind", "peer-ended").splitlines()))	# of each worker
        equal(({e["service"] for e in events}, sum(e["connections"] for e in events)), ({"x"}, 2), f"the events: {events}")
        for e in events:
            check(words in e["reason"], f"words of the event: {e}")
            logs(self.b, f'peer no longer permitted: service=x peer=127.0.0.1 reason="{e["reason"]}" connections={e["connections"]}')
        equal(self.b.counters()["tls_ended"], 2, "ended")
        if smcr:
            wait_until(lambda: len(self.b.groups()) == 1, "one link group is left")
        wait_until(lambda: len(self.pair.server.errors) == 2, "two resets at the server")
        check(all("ConnectionResetError" in e for e in self.pair.server.errors), "they are resets")
        with self.pair.connect() as s:
            equal(outcome(s), ("reset", b""), "a new connection of a")
        with connect_to(self.at_c) as s:
            works(s)


def three(t, **kw):
    ca = Authority(t)
    return ca, Three(t, *(ca.issue(x) for x in "abc"), **kw)


@case("a name that a reload takes away: connections on SMC-R and the link group end", one_worker="it counts groups")
def _(t):
    _, g = three(t)
    g.pair.only_smcr(2)
    g.permit(C)
    g.a_has_lost(f"peer is '{A}', not one of peer_names")


@case("a name that a reload takes away: connections on TCP end")
def _(t):
    _, g = three(t, links=False)
    g.pair.only_tcp(2)
    g.permit(C)
    g.a_has_lost(f"peer is '{A}', not one of peer_names", smcr=False)


@case("a revoked certificate, at the next reload", one_worker="it counts groups")
def _(t):
    ca, g = three(t)
    crl = ca.revoke()
    g.reload(crl=crl)
    for s in g.of_a + g.of_c:
        works(s)
    ca.revoke(g.a.conf["tls"]["cert"])
    g.b.ctl("reload")
    g.a_has_lost(f"certificate of '{A}': certificate revoked")


@case("a CA that is gone", one_worker="it counts groups")
def _(t):
    old, new = Authority(t), Authority(t, "new")
    both = old.at("both.pem")
    with open(both, "w") as f:
        f.write(open(old.cert).read() + open(new.cert).read())
    g = Three(t, {**old.issue("a"), "ca": both}, {**new.issue("b"), "ca": both}, {**new.issue("c"), "ca": both})
    shutil.copy(new.cert, both)
    g.b.ctl("reload")
    g.a_has_lost(f"certificate of '{A}': unable to get local issuer certificate")
    g.a.ctl("reload")	# which trusts the CA of b still
    equal(g.a.counters()["tls_ended"], 0, "ended at a")


@case("an ingress whose peer is no longer permitted")
def _(t):
    _, g = three(t)
    g.a.write_conf({**g.a.conf, "ingress": [{**g.a.conf["ingress"][0], "peer_names": ["spiffe://example.org/gw/other"]}]})
    g.a.ctl("reload")
    for s in g.of_a:
        equal(outcome(s), ("reset", b""), "a connection of a")
    equal(g.a.counters()["tls_ended"], 2, "ended")
    wait_until(lambda: not g.a.groups(), "no link group is left")
    for s in g.of_c:
        works(s)


@case("a PSK that changes, or is gone")
def _(t):
    key = secrets.token_bytes(32)
    for now, words in (({"gw-a": secrets.token_bytes(32)}, "the key of 'psk:gw-a' has changed"), ({"gw-c": key}, "'psk:gw-a' is no longer in the PSK file")):
        a, b = psk_file(t, "gw-a", {"gw-b": key}), psk_file(t, "gw-b", {"gw-a": key})
        pair = secure_pair(t, echo, a, b, ["psk:gw-b"], ["*"])
        with pair.connect() as s:
            works(s)
            pair.b.ctl("reload")
            works(s)
            shutil.copy(psk_file(t, "gw-b", now)["psk"], b["psk"])
            pair.b.ctl("reload")
            equal(outcome(s), ("reset", b""), "the connection")
        logs(pair.b, words)
        wait_until(lambda: not pair.b.groups(), "no link group is left")
        equal(pair.b.counters()["tls_ended"], 1, "ended")


@case("a reload that changes nothing for them, removes the service, or sets secure off ends no connection")
def _(t):
    ca, g = three(t)
    g.permit(A, C, "dns:more")
    conf = g.b.conf["egress"][0]
    g.b.write_conf({**g.b.conf, "egress": [{**conf, "secure": "off", "peer_names": None}]})
    g.b.ctl("reload")
    g.b.write_conf({**g.b.conf, "egress": [{**conf, "name": "other"}]})
    g.b.ctl("reload")
    data = pattern(100000)
    for s in g.of_a + g.of_c:
        s.sendall(data)
        s.shutdown(1)
        same_bytes(recv_all(s), data, "echo")
    equal(g.b.counters()["tls_ended"], 0, "ended")


if __name__ == "__main__":
    need("openssl")
    main()
