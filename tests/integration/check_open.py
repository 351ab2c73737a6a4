#!/usr/bin/env python3
"""Connections that open over a link (doc/open.md): the second one to a service needs no TCP connection between the gateways."""
import array
import json
import os
import signal
import socket

from harness import (Daemon, Server, case, check, connect_to, echo, equal, hostport, main, outcome, pair_to, recv_exact, same_bytes,
                     set_reset_on_close, soft_device, wait_until)

PATIENT = 20
ON = {"smcr": {"open_over_link": True}}


def both(t, fn, **kw):
    return pair_to(t, fn, a={**ON, **kw.pop("a", {})}, b={**ON, **kw.pop("b", {})}, **kw)


def opened(pair):
    """(opened, refused) of the ingress's daemon."""
    c = pair.a.counters()
    return c["opened_client"], c["not_opened_client"]


def exchange(s, data):
    s.sendall(data)
    same_bytes(recv_exact(s, len(data)), data, "echo")


@case("the second connection opens over the link; smcrctl shows it", one_worker="its worker has the group")
def _(t):
    pair = both(t, echo)
    first = pair.connect()
    exchange(first, b"first")
    wait_until(lambda: pair.b.counters()["llc_sent"] > 0, "grants")
    second = pair.connect()
    exchange(second, b"second" * 10000)
    equal(opened(pair), (1, 0), "opened over the link, refused")
    by = {c["over_link"] for d in (pair.a, pair.b) for c in d.connections()}
    equal(by, {False, True}, "both kinds are shown")
    first.close()
    second.close()
    pair.ended_well(2)


def full_backlog(t, port):
    s = socket.socket()
    t.later(s.close)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((t.addr, port))
    s.listen(0)
    waiting = []
    for _ in range(4):
        c = socket.socket()
        t.later(c.close)
        c.setblocking(False)
        c.connect_ex((t.addr, port))
        waiting.append(c)
    return [s, *waiting]


def two_targets(t, policy, servers):
    middles = [t.port(), t.port()]
    device = soft_device(t.addr)
    bs = [Daemon(t, f"b{i + 1}", {"log_level": "info", **ON, "devices": [device],
                                  "egress": [{"name": "x", "listen": hostport(t.addr, middles[i]), "to": hostport(*servers[i].at), "connect_timeout": "500ms"}]})
          for i in range(2)]
    port = t.port()
    a = Daemon(t, "a", {"log_level": "info", "devices": [device], **ON,
                        "ingress": [{"name": "x", "listen": hostport(t.addr, port), "policy": policy,
                                     "to": [hostport(t.addr, m) for m in middles]}]})
    return a, bs, port


@case("two targets: the bytes of a client whose first target refuses reach the second one", one_worker="some open over a link")
def _(t):
    servers = [Server(t, echo), Server(t, echo)]
    a, bs, port = two_targets(t, "spread", servers)
    for _ in range(4):
        with connect_to((t.addr, port), PATIENT) as s:
            exchange(s, b"warm")
    check(a.counters()["opened_client"] > 0, f"some open over a link: {a.counters()['opened_client']}")
    port0 = servers[0].at[1]
    servers[0]._close()
    full_backlog(t, port0)	# answers no SYN, as a host that has gone
    for _ in range(4):
        with connect_to((t.addr, port), PATIENT) as s:
            exchange(s, b"hello")
    check(a.counters()["not_opened_client"] > 0, "the first target has refused one that opened over its link")


@case("workers: one at the client, two at the server")
def _(t):
    pair = both(t, echo, a={"workers": 1}, b={"workers": 2})
    first = [pair.connect() for _ in range(8)]	# a burst before any ticket, as after a start
    for s in first:
        exchange(s, b"x")
    for s in first:
        s.close()
    for _ in range(40):
        s = pair.connect()
        exchange(s, b"x")
        s.close()
    c = pair.a.counters()
    check(c["opened_client"] > 20, "most open over a link")


@case("workers: two at each end")
def _(t):
    pair = both(t, echo, a={"workers": 2}, b={"workers": 2})
    first = [pair.connect() for _ in range(16)]
    for s in first:
        exchange(s, b"x")
    for s in first:
        s.close()
    for _ in range(100):
        s = pair.connect()
        exchange(s, b"x")
        s.close()
    c = pair.a.counters()
    check(c["opened_client"] > 80, "most open over a link")


@case("the far daemon was replaced, and an old connection lived on for a while", one_worker="it counts groups")
def _(t):
    pair = both(t, echo)
    old = pair.connect()
    exchange(old, b"old")
    for _ in range(3):
        with pair.connect() as s:
            exchange(s, b"x")
    before = pair.a.counters()["opened_client"]
    check(before > 0, "opens over a link")
    was = pair.b
    pair.b = was.successor()
    for _ in range(20):
        with pair.connect() as s:
            exchange(s, b"x")
    old.close()
    equal(was.wait(), 0, "the old process ends")
    wait_until(lambda: len(pair.a.groups()) == 1, "its group is gone")
    for _ in range(40):
        with pair.connect() as s:
            exchange(s, b"x")
    after = pair.a.counters()["opened_client"]
    check(after - before > 30, "opens over a link again")


@case("a connection lives on when the time for its answer is over", one_worker="its worker has the group")
def _(t):
    short = {"smcr": {"open_over_link": True, "clc_timeout": "1s"}}
    pair = pair_to(t, echo, a=short, b=short, ingress={"connect_timeout": "500ms"})
    with pair.connect() as s:
        exchange(s, b"warm")
    s = pair.connect()
    exchange(s, b"first")
    s.settimeout(2)	# raw: longer than both timeouts
    try:
        check(False, f"an idle connection ends: {s.recv(1)!r}")
    except TimeoutError:
        pass
    s.settimeout(PATIENT)
    exchange(s, b"later")
    check(opened(pair)[0] > 0, "it opened over a link")


@case("targets count connections that open over a link", one_worker="counts")
def _(t):
    pair = both(t, echo)
    for _ in range(5):
        with pair.connect() as s:
            exchange(s, b"x")
    check(opened(pair)[0] > 0, "some open over a link")
    equal([a["connections"] for a in pair.a.ctl("service", "x")["addresses"]], [5], "connections of the target")


def reload_egress(pair, **change):
    pair.b.write_conf(dict(pair.conf_b, egress=[dict(e, **change) for e in pair.conf_b["egress"]]))
    pair.b.ctl_text("reload")


def more(pair):
    """Of four further connections, those that open over a link."""
    before = opened(pair)
    for _ in range(4):
        with pair.connect() as s:
            exchange(s, b"x")
    now = opened(pair)
    return now[0] - now[1] - before[0] + before[1]


@case("an egress that gets elements of a fixed size by a reload: its connections have a rendezvous", one_worker="counts")
def _(t):
    pair = both(t, echo)
    more(pair)
    equal(more(pair), 4, "opened over a link")
    reload_egress(pair, max_connections=77)
    equal(more(pair), 4, "opened over a link behind another reload")
    reload_egress(pair, rmb_element="64K")
    equal(more(pair), 0, "opened over a link, with elements of a fixed size")


@case("an egress that moves to another address by a reload: nothing reaches it at the old one", one_worker="counts")
def _(t):
    pair = both(t, echo)
    more(pair)
    reload_egress(pair, listen=hostport(t.addr, t.port()))
    pair.turned_away()
    equal(opened(pair)[1], 1, "refused over the link")


@case("a file descriptor in the first bytes of a local client: a reset, and no byte behind it", one_worker="another one has no ticket yet")
def _(t):
    got = []

    def serve(s):
        while data := s.recv(1 << 16):
            got.append(data)
            if data == b"warm":
                s.sendall(data)
    pair = both(t, serve, unix=True)
    with pair.connect() as c:
        exchange(c, b"warm")
    pair.quiet()
    pair.a.suspend()	# so that both writes are there when it looks
    try:
        c = pair.connect()
        r, _ = os.pipe()
        c.sendmsg([b"AAAA"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [r]))])
        c.sendall(b"BBBB")
    finally:
        pair.a.send_signal(signal.SIGCONT)
    check(outcome(c)[0] in ("reset", "end"), "the client's connection ends")
    pair.quiet()
    equal(got, [b"warm"], "what the server got")
    equal(opened(pair)[0], 1, "opened over the link")


# Whatever an egress or ingress does with a connection, it does with one that opens over a link: what clients see, what the server
# sees, counters and events are those of a pair without the feature.

def served(pair, got):
    for n in (1, 100, 70000):
        with pair.connect() as s:
            exchange(s, b"x" * n)


def reset_by_client(pair, got):
    with pair.connect() as s:
        exchange(s, b"x")
        set_reset_on_close(s)


def ended_by_client_first(pair, got):
    with pair.connect() as s:
        s.sendall(b"request")
        s.shutdown(socket.SHUT_WR)
        got.append(recv_exact(s, 7))
        got.append(outcome(s))


def disabled(pair, got):
    pair.b.ctl_text("disable", "x")
    got.append(pair.turned_away())
    pair.b.ctl_text("enable", "x")
    served(pair, got)


def disabled_at_the_ingress(pair, got):
    pair.a.ctl_text("disable", "x")
    got.append(pair.turned_away())


def not_allowed(pair, got):
    reload_egress(pair, allow=["192.0.2.1"])
    got.append(pair.turned_away())
    reload_egress(pair)
    served(pair, got)


def too_many(pair, got):
    reload_egress(pair, max_connections=1)
    with pair.connect() as s:
        exchange(s, b"x")
        got.append(pair.turned_away())
    wait_until(lambda: pair.b.services()[0]["connections"] == 0, "the only one has ended")
    with pair.connect() as s:
        exchange(s, b"x")


def too_many_of_a_peer(pair, got):
    reload_egress(pair, max_connections_per_peer=1)
    with pair.connect() as s:
        exchange(s, b"x")
        got.append(pair.turned_away())


def server_is_down(pair, got):
    pair.server._close()
    got.append(pair.turned_away())
    got.append(pair.turned_away())


def drained(pair, got):
    with pair.connect() as s:
        exchange(s, b"x")
        pair.b.ctl_text("drain", "--then-exit")
        got.append(pair.turned_away())
        exchange(s, b"y")
    pair.b.expect_dead = True
    equal(pair.b.wait(), 0, "the drained daemon ends")


STEPS = [served, reset_by_client, ended_by_client_first, disabled, disabled_at_the_ingress, not_allowed, too_many, too_many_of_a_peer,
         server_is_down, drained]


def counters(daemons):
    """Of their services: what counts connections, bytes and refusals."""
    return {(d.name, k): v for d in daemons for s in d.services() for k, v in s.items() if isinstance(v, int)}


def tell(t, step, on):
    """What the step shows: to clients and the server, in counters and events."""
    seen = []

    def serve(s):
        n = 0
        while data := s.recv(1 << 16):
            n += len(data)
            s.sendall(data)
        seen.append(n)
    smcr = {"smcr": {"open_over_link": on}}
    pair = pair_to(t, serve, a=smcr, b=smcr)
    for _ in range(2):
        with pair.connect() as s:
            exchange(s, b"warm")
    pair.quiet()
    before = pair.a.counters()["opened_client"]
    got = []
    step(pair, got)
    daemons = [d for d in (pair.a, pair.b) if not d.expect_dead]
    wait_until(lambda: all(s["connections"] == 0 for d in daemons for s in d.services()), "connections have ended")
    opened_one = pair.a.counters()["opened_client"] - before
    if step is not disabled_at_the_ingress:
        check((opened_one > 0) == on, f"{opened_one} attempts over a link")
    events = [[(e["kind"], e.get("service")) for e in map(json.loads, d.ctl_text("--json", "events", status=None).splitlines())]
              for d in daemons]
    return {"clients": got, "server": sorted(seen), "events": events, **counters(daemons)}


for step in STEPS:
    @case(f"as without the feature: {step.__name__.replace('_', ' ')}", one_worker="counts")
    def _(t, step=step):
        with_it, without = tell(t, step, True), tell(t, step, False)
        equal({k: v for k, v in with_it.items() if v != without[k]}, {k: v for k, v in without.items() if v != with_it[k]}, "what differs")


if __name__ == "__main__":
    main()
