#!/usr/bin/env python3
"""Up or down: what the egress says of its server, and what both hosts show of a target, since when and why."""
import json
import socket
import threading

from clc import ACCEPT, PROPOSAL, read_message
from harness import SMCRCTL, Server, case, check, connect_to, echo, equal, hostport, main, pair_to, wait_until, works

FEATURES, ASKS, ANSWER = 59, 0x10, 64 + 20	# offsets in a Proposal and an Accept of smcrd; CLC_FEATURE_SERVER


def checked(pair, at=None, status=0):
    """smcrctl check from the host of the ingress."""
    out = pair.t.run([SMCRCTL, "--socket", pair.a.control, "--json", "check",
                      hostport(*(at or (pair.t.addr, pair.middle["x"])))], status=status)
    return json.loads(out)["data"]


def pump(a, b):
    try:
        while data := a.recv(4096):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def tampering(at, change):
    """A server that passes a CLC connection on, and changes the first two messages."""
    def fn(s):
        with connect_to(at) as far:
            for a, b in ((s, far), (far, s)):
                kind, msg = read_message(a)
                b.sendall(change(kind, bytearray(msg)))
            threading.Thread(target=pump, args=(far, s), daemon=True).start()
            pump(s, far)
    return fn


def forgets(kind, msg):
    """What a smcrd of a release before this question reads and writes."""
    if kind == PROPOSAL:
        msg[FEATURES] &= ~ASKS & 0xff
    return msg


def lies(kind, msg):
    if kind == ACCEPT:
        msg[ANSWER] = 200
    return msg


@case("check: the egress says that its server is down, and both hosts show it; so does the exit status")
def _(t):
    pair = pair_to(t, echo)
    data = checked(pair)
    equal((data["possible"], data["finding"], data["steps"][-1]["result"]), (True, "possible", "ok"), "while it works")
    wait_until(lambda: not pair.b.connections(), "no connection is left")
    served = pair.b.services()[0]
    equal((served["accepted"], served["refused_connect"], served["resets"]), (0, 0, 0), "no client")
    pair.server._close()
    data = checked(pair, status=1)
    equal((data["possible"], data["finding"], data["steps"][-1]["result"]), (False, "server-down", "failed"), "while it does not")
    equal([s["result"] for s in data["steps"]][:2], ["ok", "ok"], "SMC-R works")
    check("the server behind it is down" in data["text"], data["text"])
    check("server            " in pair.a.ctl_text("check", hostport(t.addr, pair.middle["x"]), status=1), "in the text")
    outage = pair.b.ctl("service", "x")["outage"]
    check(outage["text"] != "" and outage["failed"] >= 1, f"on the host of the server: {outage}")
    equal(pair.b.services()[0]["refused_connect"], 0, "no client was refused")
    server = Server(t, echo, *pair.server.at) if pair.server.port else Server(t, echo, unix=pair.server.host[5:])
    equal(checked(pair)["finding"], "possible", "when it works again")
    equal(pair.b.ctl("service", "x")["outage"]["text"], "", "it has ended")
    works(pair.connect())
    server.ok()


@case("check: a peer that does not know the question is no worse than before; any answer is one")
def _(t):
    pair = pair_to(t, echo)
    older = Server(t, tampering((t.addr, pair.middle["x"]), forgets), unix=False)
    data = checked(pair, older.at)
    equal((data["finding"], data["steps"][-1]["result"]), ("possible", "skipped"), "an older smcrd")
    check("older" in data["steps"][-1]["text"], f"why: {data['steps']}")
    liar = Server(t, tampering((t.addr, pair.middle["x"]), lies), unix=False)
    data = checked(pair, liar.at, status=1)
    equal(data["finding"], "server-down", "a number that nobody knows")
    check(data["text"].endswith("does not work"), data["text"])


main()
