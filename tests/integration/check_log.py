#!/usr/bin/env python3
"""The log as JSON: each line an object under load and with hostile bytes, a line for each connection, and a reload of both settings."""
import datetime
import json
import random

from harness import (PATIENCE, Server, case, check, connect_to, echo, equal, exchange, in_thread, main, pair_to, pattern,
                     unlinkable_pair, wait_until, works)

JSON = {"log": {"format": "json", "connections": True}, "log_level": "notice"}
OWN = {"time", "level", "message"}
CLOSED = {"id": int, "service": str, "peer": str, "mode": str, "start": str, "duration_ms": int, "reason": str}


def distinct(pairs):
    keys = [k for k, _ in pairs]
    equal(len(keys), len(set(keys)), f"members of one name: {keys}")
    return dict(pairs)


def entries(d):
    """All lines of a daemon, each one an object."""
    out = [json.loads(line, object_pairs_hook=distinct) for line in d.log().splitlines()]
    for e in out:
        check(list(e)[:3] == ["time", "level", "message"] and e["level"] in ("error", "warning", "notice", "info", "debug"), f"{e}")
        moment(e["time"])
        check(all(isinstance(e[k], (str, int)) for k in e), f"{e}")
    return out


def moment(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z")


def closed(d, cnt):
    """Its lines of connections, when there are so many."""
    def those():
        return [e for e in entries(d) if e["message"] == "connection closed"]
    wait_until(lambda: len(those()) >= cnt, f"{cnt} lines of daemon {d.name}")
    out = those()
    equal(len(out), cnt, "a line for each")
    for e in out:
        check(all(isinstance(e.get(k), v) for k, v in CLOSED.items()), f"types: {e}")
        took = moment(e["time"]) - moment(e["start"])
        check(abs(took.total_seconds() * 1000 - e["duration_ms"]) < 2000 * PATIENCE, f"from start to end: {e}")
    return out


@case("under load every line is JSON, with a line for each connection at its end", timeout=90)
def _(t):
    pair = pair_to(t, echo, a=JSON, b=JSON)
    works(pair.connect())

    def several(seed):
        for i in range(25):
            with pair.connect() as s:
                exchange(s, pattern(5000, seed + i))
    threads = [in_thread(several, 1000 * i) for i in range(4)]
    for thread in threads:
        thread.join()
    for d, word in ((pair.a, "client"), (pair.b, "server")):
        lines = closed(d, 100)
        equal({(e["service"], e["mode"], e["reason"]) for e in lines}, {("x", "SMC-R", "normal end")}, "all alike")
        equal({(e[f"from_{word}"], e[f"to_{word}"]) for e in lines}, {(5000, 5000)}, "bytes each way")
        equal(len({e["id"] for e in lines}), 100, "ids")
        check(all(":" in e[word] and ":" in e["peer"] for e in lines), f"addresses: {lines[0]}")
        check(any(e.get("over_link") == "yes" for e in lines), "connections that opened over a link")
        check(any(e["message"] == "ready" for e in entries(d)), "the start")
        up = [e for e in entries(d) if e.get("event") == "group-up"]
        check(up and isinstance(up[0]["group"], int) and up[0]["role"] in ("client", "server"), f"an event: {up}")


@case("connections on TCP have their lines and reasons; one without a byte, too")
def _(t):
    pair = unlinkable_pair(t, {"x": Server(t, echo).at}, a=JSON, b=JSON)
    kept = pair.connect()
    works(kept)
    for s in [pair.connect() for _ in range(30)]:	# more than the limit of such lines
        s.close()
    closed(pair.a, 30)
    pair.a.ctl_text("close", "--service", "x")
    lines = closed(pair.a, 31)
    equal({e["mode"] for e in lines if e["from_client"] > 0}, {"TCP"}, "on TCP")
    first = [e for e in lines if e["from_client"] > 0][0]
    check("operator" in first["reason"], f"why it ended: {first}")
    check("peer_reason" in first or "local_reason" in first, f"why it is on TCP: {first}")


@case("hostile bytes at the ports leave every line JSON", timeout=90)
def _(t):
    rnd = random.Random(1)
    pair = pair_to(t, echo, a=JSON, b=dict(JSON, log_level="debug"))
    quote = b'HTTP/1.1 200 "OK" x="\x1b[31m\xff\xc2\x02\x03\x01", uid="0"\r\n'
    for data in (quote, quote * 20, *(rnd.randbytes(rnd.randrange(1, 200)) for _ in range(40))):
        with connect_to((pair.host, pair.middle["x"])) as s:
            s.sendall(data)
    works(pair.connect())
    lines = entries(pair.b)
    check(any(e.get("event") == "stranger" for e in lines), "a line about them")
    check(not any("uid" in e or "x" in e for e in lines), "no field of theirs")


@case("a reload changes the format and the lines of connections")
def _(t):
    pair = pair_to(t, echo, a={"log_level": "notice"})
    works(pair.connect())
    conf = pair.a.conf

    def reload(log):
        before = len(pair.a.log())
        pair.a.write_conf(dict(conf, log=log))
        out = pair.a.ctl_text("reload")
        pair.connect().close()
        with pair.connect() as s:
            works(s)
        wait_until(lambda: sum(pair.a.status()["connections"].values()) == 1, "both have ended")
        wait_until(lambda: pair.a.log()[before:].count("connection closed") >= 2 or "connections" not in log, "their lines")
        return out, pair.a.log()[before:]

    out, text = reload({"format": "json", "connections": True})
    check("setting log.format changed" in out and "setting log.connections changed" in out, out)
    check('"message":"connection closed","id":' in text, text)
    out, text = reload({"connections": True})
    check(" notice: connection closed: id=" in text and " start=20" in text, text)
    out, text = reload({})
    check("connection closed" not in text, text)


main()
