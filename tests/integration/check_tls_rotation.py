#!/usr/bin/env python3
"""Keys, CA, CRL and PSKs of two gateways with secure = "required" change under load, with take-overs in between: no connection fails."""
import os
import secrets
import shutil

from harness import case, echo, equal, in_thread, main, need, wait_until, works
from tls_files import Authority, psk_file, secure_pair

A, B = "spiffe://example.org/gw/a", "spiffe://example.org/gw/b"


class Load:
    """Connections one after the other from each of some threads, and one that stays."""

    def __init__(self, pair, threads=3):
        self.pair, self.done, self.ending = pair, 0, False
        self.old = pair.connect()
        self.tasks = [in_thread(self._run) for _ in range(threads)]

    def _run(self):
        while not self.ending:
            with self.pair.connect() as s:
                works(s, self.done, 2000)
            self.done += 1

    def goes_on(self, n=8):
        want = self.done + n
        wait_until(lambda: self.done >= want or not all(task.is_alive() for task in self.tasks), f"{n} more connections")
        for task in self.tasks:
            if not task.is_alive():
                task.result()
        works(self.old, self.done, 2000)

    def end(self):
        self.ending = True
        for task in self.tasks:
            task.result()


def rotate(t, pair, steps):
    """steps: (side, settings of tls, of its service)."""
    load = Load(pair)
    load.goes_on()
    for nr, (side, tls, service) in enumerate(steps):
        d = getattr(pair, side)
        kind = "ingress" if side == "a" else "egress"
        conf = {**d.conf, "tls": tls or d.conf["tls"], kind: [{**s, **service} for s in d.conf[kind]]}
        if nr % 3 == 2:
            setattr(pair, side, d.successor(conf))
        else:
            d.write_conf(conf)
            d.ctl("reload")
        load.goes_on()
    load.end()
    fresh = load.done
    for d in t.daemons:
        if d.alive():
            equal(d.counters()["tls_failed"], 0, f"failed handshakes of {d.name}")
    load.old.close()
    pair.quiet()
    t.note(f"{fresh} connections during {len(steps)} changes")


def moved(ca, tls):
    """The files in the directory of this CA: where the daemons may read, as those of their start are there."""
    return {what: shutil.copy(path, ca.at("new-" + os.path.basename(path))) for what, path in tls.items()}


@case("certificates: both CAs, new keys, CRLs, the new CA alone", timeout=90)
def _(t):
    old, new = Authority(t), Authority(t, "new")
    a, b, both = old.issue("a"), old.issue("b"), old.at("both.pem")
    with open(both, "w") as f:
        f.write(open(old.cert).read() + open(new.cert).read())
    a2, b2 = moved(old, new.issue("a2", f"URI:{A}")), moved(old, new.issue("b2", f"URI:{B}"))
    crl = old.at("crls.pem")	# of each issuer
    with open(crl, "w") as f:
        f.write(open(old.revoke()).read() + open(new.revoke(new.issue("gone")["cert"])).read())
    only = moved(old, {"ca": new.cert})["ca"]
    pair = secure_pair(t, echo, a, b, [B], [A])
    rotate(t, pair, [("a", {**a, "ca": both}, {}), ("b", {**b, "ca": both}, {}), ("a", {**a2, "ca": both}, {}), ("b", {**b2, "ca": both}, {}),
                     ("a", {**a2, "ca": both, "crl": crl}, {}), ("b", {**b2, "ca": both, "crl": crl}, {}),
                     ("a", {**a2, "ca": only, "crl": crl}, {}), ("b", {**b2, "ca": only, "crl": crl}, {})])


@case("PSKs: the client gets a new name with a new key", timeout=90)
def _(t):
    keys = [secrets.token_bytes(32) for _ in range(2)]
    one, two = (psk_file(t, name, {"gw-b": key}) for name, key in zip(("gw-a", "gw-a2"), keys))
    b = [psk_file(t, "gw-b", peers) for peers in ({"gw-a": keys[0]}, {"gw-a": keys[0], "gw-a2": keys[1]}, {"gw-a2": keys[1]})]
    pair = secure_pair(t, echo, one, b[0], ["psk:gw-b"], ["psk:gw-a"])
    rotate(t, pair, [("b", b[1], {"peer_names": ["psk:gw-a", "psk:gw-a2"]}), ("a", None, {}), ("a", two, {}), ("b", None, {}), ("b", None, {}),
                     ("b", b[1], {"peer_names": ["psk:gw-a", "psk:gw-a2"]})])


if __name__ == "__main__":
    need("openssl")
    main()
