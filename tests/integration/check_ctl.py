#!/usr/bin/env python3
"""smcrctl against live daemons: check, trace, text and JSON, permissions."""
import json
import os

from harness import (Pair, pair_to, Server, case, check, echo, equal, hostport, main, pattern, recv_exact,
                     unlinkable_pair, wait_until, works, SMCRCTL)


@case("check: a good peer, one without links, one without SMC, and a closed port", timeout=90)
def _(t):
    server = Server(t, echo)
    good, bad = Pair(t, {"x": server.at}), unlinkable_pair(t, {"x": server.at})

    def ask(d, at):
        out = t.run([SMCRCTL, "--socket", d.control, "--json", "check", hostport(*at)], status=None)
        data = json.loads(out)["data"]
        t.note(f"{at}: {data['possible']}, {data['text']}")
        return data
    data = ask(good.a, (t.addr, good.middle["x"]))
    equal((data["possible"], data["version"], data["foreign"]), (True, 1, False), "a good peer")
    check(data["text"].endswith("done: smcrd, SMC-R version 1"), f"the text: {data['text']}")
    equal(ask(bad.a, (t.addr, bad.middle["x"]))["possible"], False, "a peer that cannot link")
    for what, at in (("a plain TCP server", server.at), ("a closed port", (t.addr, t.port()))):
        data = ask(good.a, at)
        equal(data["possible"], False, what)
        check(len(data["text"]) > 10, f"{what}: {data['text']}")
    for port, status in ((good.middle["x"], 0), (1, 1)):
        argv = [SMCRCTL, "--socket", good.a.control, "check", hostport(t.addr, port)]
        equal(t.exit_status(argv), status, f"exit status of check for port {port}")
    equal(good.b.connections(), [], "check leaves no connection")


@case("trace shows CLC, LLC and CDC of a connection, and no data")
def _(t):
    server = Server(t, echo)
    idle = {"smcr": {"group_idle": "200ms"}}
    pair = Pair(t, {"x": server.at}, a=idle, b=idle)
    trace = t.spawn([SMCRCTL, "--socket", pair.a.control, "trace"], "trace")

    def seen():
        """A connection with a group of its own: the first ones may be there before the trace is."""
        c = pair.connect()
        c.sendall(b"TOPSECRET" * 10)
        recv_exact(c, 90)
        c.close()
        wait_until(lambda: not pair.a.ctl("groups")["groups"], "the group ends")
        text = trace.log()
        return all(word in text for word in ("CLC Proposal", "CLC Accept", "LLC CONFIRM LINK", "CDC")) and text
    text = wait_until(seen, "messages in the trace")
    check("TOPSECRET" not in text, "no data in the trace")
    trace.stop()


@case("text and JSON report the same connections; the socket is for its group only",
      one_worker="each worker makes a link group of its own")
def _(t):
    pair = pair_to(t, echo)
    socks = [pair.connect() for _ in range(3)]
    for s in socks:
        s.sendall(pattern(100000))
        recv_exact(s, 100000)
    for d in (pair.a, pair.b):
        status = d.status()
        equal(status["connections"], {"smcr": 3, "tcp": 0, "setup": 0}, f"status of daemon {d.name}")
        equal(status["groups"], 1, "groups")
        equal(len(d.ctl("links")["links"]), 1, "links")
        rmbs = d.ctl("rmbs")["rmbs"]
        equal(sum(r["used"] for r in rmbs if r["side"] == "local"), 3, "elements in use")
        for c in d.connections():
            equal((c["mode"], c["bytes_from_app"], c["bytes_to_app"]), ("smcr", 100000, 100000), f"{c}")
        for command in ("status", "connections", "groups", "links", "rmbs", "devices", "stats"):
            text = d.ctl_text(command)
            check(len(text) > 20, f"{command}: {text}")
        equal(oct(os.stat(d.control).st_mode & 0o777), "0o660", "mode of the socket")
    peers = {c["app"] for c in pair.a.connections()}
    equal(peers, {hostport(*s.getsockname()) for s in socks}, "addresses of the clients")


@case("the last ten minutes: what came about is in the samples of both ends, added up over workers")
def _(t):
    pair = Pair(t, {"x": Server(t, echo).at, "quiet": (t.addr, t.port())}, a={"workers": 3}, b={"workers": 3})
    conns = [pair.connect("x") for _ in range(6)]
    for s in conns:
        works(s, 1, 50000)
    for d in (pair.a, pair.b):
        def whole(d=d):		# all may be in the steps of before, or partly in the one that goes on
            total = d.ctl("history")["total"]
            return sum(total["accepted"]) == 6 and sum(total["bytes_from_app"]) == sum(total["bytes_to_app"]) == 300000
        wait_until(whole, "the step is over")
        data = d.ctl("history")
        equal([s["name"] for s in data["services"]], ["x"], "services with samples")
        for one in (data["total"], data["services"][0]):
            equal({len(v) for k, v in one.items() if isinstance(v, list)}, {120}, "lengths")
            equal((one["smcr"][-1], sum(one["refused"])), (6, 0), "connections")
            equal([sum(one[f"bytes_{way}_app"]) for way in ("from", "to")], [300000, 300000], "bytes")
        equal(sum(d.ctl("history", "--service", "quiet")["services"][0]["accepted"]), 0, "of a service without any")
        text = d.ctl_text("top", "--history", "--service", "x")
        check(text.startswith("Service x, until ") and max(map(len, text.split("\n"))) <= 80, text)
    for s in conns:
        s.close()


main()
