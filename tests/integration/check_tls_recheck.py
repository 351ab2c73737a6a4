#!/usr/bin/env python3
"""Files of `tls` that change are read again without a reload: under load without a failed connection, and all or none."""
import json
import os
import secrets
import shutil
import threading
import time

from harness import case, check, echo, equal, logs, main, need, outcome, wait_until, works
from scrape import scrape
from tls_files import Authority, psk_file, secure_pair

A, B = (f"spiffe://example.org/gw/{x}" for x in "ab")
FAST = {"recheck": "1s"}


def copy(what, to):
    """As a program that rotates: a new file in the place of the old one."""
    shutil.copy(what, to + ".new")
    os.replace(to + ".new", to)


def joined(path, *parts):
    with open(path, "w") as f:
        f.write("".join(open(p).read() for p in parts))
    return path


class Load:
    """New connections one after the other in a thread, each with data both ways; `failed`: what went wrong."""

    def __init__(self, pair):
        self.pair, self.done, self.failed, self.stop = pair, 0, [], False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stop:
            try:
                with self.pair.connect() as s:
                    works(s)
                self.done += 1
            except Exception as e:
                self.failed.append(repr(e))

    def more(self):
        done = self.done
        wait_until(lambda: self.done > done + 3 or self.failed, "more connections")
        equal(self.failed, [], "failed connections")

    def end(self):
        self.stop = True
        self.thread.join()
        equal(self.failed, [], "failed connections")


def in_force(load, *daemons):
    """Each of these has read its changed files; connections go on."""
    before = [d.counters()["tls_reread"] for d in daemons]

    def wait():
        wait_until(lambda: all(d.counters()["tls_reread"] > n for d, n in zip(daemons, before)), "the changed files are in force")
        for d in daemons:
            equal(d.counters()["tls_refused"], 0, f"refused by {d.name}")
        load.more()
    return wait


@case("rotation of certificate and key, CA and CRL under load: no connection fails")
def _(t):
    old, new = Authority(t), Authority(t, "new")
    crl = joined(old.at("all-crl.pem"), old.revoke(), new.revoke())
    ca = joined(old.at("all-ca.pem"), old.cert)
    tls = {x: {**old.issue(x), "ca": ca, "crl": crl, **FAST} for x in "ab"}
    pair = secure_pair(t, echo, tls["a"], tls["b"], [B], [A])
    load = Load(pair)
    with pair.connect() as live:
        works(live)
        wait = in_force(load, pair.a, pair.b)
        copy(joined(old.at("both"), old.cert, new.cert), ca)
        wait()
        for d, x in ((pair.a, "a"), (pair.b, "b")):
            wait, fresh = in_force(load, d), new.issue(x)
            copy(fresh["cert"], tls[x]["cert"])		# with the key of before, for a moment
            copy(fresh["key"], tls[x]["key"])
            wait()
        wait = in_force(load, pair.a, pair.b)
        copy(joined(old.at("crl2"), old.revoke(old.issue("other")["cert"]), new.revoke()), crl)
        wait()
        works(live)
        wait = in_force(load, pair.a, pair.b)
        copy(new.cert, ca)
        wait()
        works(live)		# its peer has proven the name by the new CA since
    equal([d.counters()["tls_ended"] for d in (pair.a, pair.b)], [0, 0], "connections that have ended")
    load.end()
    pair.only_smcr(load.done)
    logs(pair.a, "changed files of tls are in force")


@case("a PSK file that changes under load; the key of a peer that is taken away ends its connections")
def _(t):
    key = secrets.token_bytes(32)
    a, b = ({**psk_file(t, own, {peer: key}), **FAST} for own, peer in (("gw-a", "gw-b"), ("gw-b", "gw-a")))
    pair = secure_pair(t, echo, a, b, ["psk:gw-b"], ["*"])
    load = Load(pair)
    with pair.connect() as live:
        works(live)
        wait = in_force(load, pair.b)
        copy(psk_file(t, "gw-b", {"gw-c": secrets.token_bytes(32), "gw-a": key})["psk"], b["psk"])
        os.chmod(b["psk"], 0o600)
        wait()
        works(live)
        load.end()
        copy(psk_file(t, "gw-b", {"gw-c": key})["psk"], b["psk"])
        equal(outcome(live), ("reset", b""), "the live connection")
    equal(pair.b.counters()["tls_ended"], 1, "ended")


@case("a bad file keeps the old ones: logged once, counted, in status and doctor, until it is mended")
def _(t):
    ca = Authority(t)
    a, b = ({**ca.issue(x), **FAST} for x in "ab")
    pair = secure_pair(t, echo, a, b, [B], [A])
    good = t.path("good")
    shutil.copy(b["cert"], good)
    words = f"tls.cert {b['cert']} cannot be used"
    with open(b["cert"], "w") as f:
        f.write("no certificate\n")
    wait_until(lambda: pair.b.counters()["tls_refused"] == 1, "the change is refused")
    check(words in pair.b.status()["tls_error"], f"status: {pair.b.status()['tls_error']}")
    check(words in pair.b.ctl_text("status"), "the text of status")
    check(words in " ".join(pair.b.ctl_text("doctor", status=None).split()), "doctor")
    with pair.connect() as s:
        works(s)
    copy(good, b["cert"])
    wait_until(lambda: pair.b.status()["tls_error"] == "", "the file is mended")
    equal(pair.b.counters()["tls_refused"], 1, "how often it was refused")
    logs(pair.b, words, times=1)
    with pair.connect() as s:
        works(s)


@case("recheck = 0: at a reload alone")
def _(t):
    ca = Authority(t)
    a, b = ca.issue("a"), ca.issue("b")
    pair = secure_pair(t, echo, a, {**b, "crl": ca.revoke(), "recheck": 0}, [B], [A])
    with pair.connect() as s:
        works(s)
        ca.revoke(a["cert"])
        for _ in range(20):
            works(s)
        equal(pair.b.counters()["tls_reread"], 0, "files read again")
        pair.b.ctl("reload")
        equal(outcome(s), ("reset", b""), "the live connection")


@case("a certificate that expires: an event at 14, 3 and 1 days, once each, and once after a start; metric, status, doctor")
def _(t):
    ca = Authority(t)
    a, b = ca.issue("a"), {**ca.issue("b"), **FAST}
    pair = secure_pair(t, echo, a, b, [B], [A], b={"metrics": {"listen": f"{t.addr}:{(port := t.port())}"}})

    def reasons(d):
        return [e["reason"] for e in map(json.loads, d.ctl_text("--json", "events", "--kind", "certificate-expires", status=None).splitlines())]

    def renew(days):
        before, fresh = pair.b.counters()["tls_reread"], ca.issue(f"b{days}", f"URI:{B}", days=days)
        copy(fresh["cert"], b["cert"])
        copy(fresh["key"], b["key"])
        wait_until(lambda: pair.b.counters()["tls_reread"] > before, "they are in force")
    equal((reasons(pair.b), pair.b.status()["tls_expiry"]), ([], ""), "with 90 days")
    for days, so_far in ((20, 0), (13, 1), (10, 1), (3, 2), (2, 2), (1, 3), (30, 3), (14, 4)):
        renew(days)
        wait_until(lambda: len(reasons(pair.b)) >= so_far, f"{so_far} events")
        equal(len(reasons(pair.b)), so_far, f"events with {days} days: {reasons(pair.b)}")
        at, = pair.b.status()["certificates"]
        check(abs(at["not_after_ms"] / 1000 - time.time() - days * 86400) < 3600, f"its end: {at}")
    check([r.split()[-2:] for r in reasons(pair.b)] == [["12", "days"], ["2", "days"], ["23", "hours"], ["13", "days"]], reasons(pair.b))
    check(f"the certificate in {b['cert']} expires in 13 days" in pair.b.ctl_text("status"), "status")
    check("expires in 13 days" in " ".join(pair.b.ctl_text("doctor", status=None).split()), "doctor")
    value, = scrape((t.addr, port))["smcrd_tls_certificate_not_after_timestamp_seconds"].items()
    equal(value[0], (("file", b["cert"]),), "labels of the metric")
    check(abs(value[1] - time.time() - 14 * 86400) < 3600, f"the metric: {value}")
    again = pair.b.successor()
    wait_until(lambda: len(reasons(again)) == 1, "one event after a start")


if __name__ == "__main__":
    need("openssl")
    main()
