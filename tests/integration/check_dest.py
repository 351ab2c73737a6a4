#!/usr/bin/env python3
"""An egress for many destinations (to = "requested"): a peer that wants what it may, and a hostile one beside a witness."""
import subprocess
from types import SimpleNamespace

from harness import (SMCRD, Daemon, Failure, Server, case, check, equal, hostport, listener, main, recv_exact, same_bytes,
                     wait_until)
from hostile import SOON, how_it_ends, iw, scene_case, smc, stranger


def many(s):
    """The echo server, a port at a stranger's address, and networks with addresses that no entry names."""
    t = s.t
    s.echo_at = s.pair.conf_b["egress"][0]["to"].rsplit(":", 1)
    s.metrics = t.port()
    s.pair.conf_b["metrics"] = {"listen": hostport(t.addr, s.metrics)}
    s.trap = listener(t, stranger(t, 62))
    s.trap.settimeout(None)
    s.port = s.trap.getsockname()[1]
    return {"to_allow": [f"{s.echo_at[0]}/32:1-65535", f"{stranger(t, 62)}:{s.port + 1}", "169.254.0.0/16", "224.0.0.0/3",
                         "10.99.0.0/16:80"]}


def wants(s, host, port, i=1, at=None, more=()):
    peer = s.peer(i)
    c = smc.Client(peer, at or s.many_at, tlvs=smc.tlv_list(smc.tlv_place(smc.DEST, host, port), *more))
    s.open.append(c)
    return c


def refused(c, answers=smc.DEST_REFUSED):
    """The answer, and no data behind it: the end is a FIN, or the reset of what we have sent meanwhile."""
    c.propose()
    try:
        c.read_accept()
    except smc.Declined as e:
        equal((e.diag, e.answers), (0x03000000, answers), "the Decline")
        equal(how_it_ends(c.sock), ("closed", b""), "the connection")
        return
    raise Failure("the destination was taken")


def echoes_at(s, i):
    c = wants(s, s.echo_at[0], int(s.echo_at[1]), i)
    conn = c.run()
    s.keep(conn.link)
    equal(c.accept.ext.uses, smc.USES_DEST, "the Accept")
    s.echoes(conn)
    return c


def lists(s):
    return {x["name"]: x for x in s.b.services()}["many"]


@scene_case("a destination that is allowed is connected, and shown", many=many)
def _(s):
    echoes_at(s, 1)
    equal([x["app"] for x in s.b.connections() if x["service"] == "many"], [":".join(s.echo_at)], "its server")
    equal(lists(s)["dest_refused"], 0, "refusals")


@scene_case("destinations that are not allowed: declined, nothing is connected, and the log has each", many=many)
def _(s):
    mpa = s.mpa_ports()[1]
    wanted = [(stranger(s.t, 62), s.port), (stranger(s.t, 61), 80), ("0.0.0.0", 80), ("224.0.0.1", 80), ("255.255.255.255", 80),
              ("169.254.169.254", 80), ("::1", 80), ("10.99.0.1", 81), ("0.0.0.1", 80),
              s.many_at, s.smc_at, (s.t.addr, s.metrics), (s.t.addr, mpa), (s.t.addr, mpa + 1)]
    for i, (host, port) in enumerate(wanted):
        refused(wants(s, host, port, 1 + i))
        s.leave()
    wait_until(lambda: lists(s)["dest_refused"] == len(wanted), "refusals are counted")
    equal(lists(s)["refused_connect"], 0, "attempts to connect")
    log = s.b.log()
    for words in ("not in to_allow", "link-local", "no server can have this address", "this daemon itself listens there"):
        check(words in log, f"the log has: {words}")
    check(f"destination={stranger(s.t, 62)}:{s.port}" in log, "the log names the destination")
    s.trap.settimeout(0)
    try:
        s.trap.accept()
        raise Failure("a forbidden server was connected")
    except BlockingIOError:
        pass
    echoes_at(s, 30)


@scene_case("IPv4 inside IPv6 and port 0 are malformed", many=many)
def _(s):
    for i, (host, port) in enumerate((("::ffff:127.0.0.1", 80), (s.t.addr, 0))):
        c = wants(s, host, port, 1 + i)
        c.propose()
        equal(how_it_ends(c.sock), ("reset", b""), f"{host}:{port}")


@scene_case("no destination where one is wanted, and one where the server is fixed", many=many)
def _(s):
    c = s.client(s.peer(1))
    c.close()
    c = smc.Client(s.peer(1), s.many_at)
    s.open.append(c)
    refused(c)
    refused(wants(s, s.echo_at[0], int(s.echo_at[1]), 2, s.smc_at), 0)
    log = s.b.log()
    check("names no destination" in log and "to is fixed here" in log, "the log has both")
    equal([x["dest_refused"] for x in s.b.services()], [1, 1], "refusals")


@scene_case("without RDMA the destination is judged as well", many=many)
def _(s):
    def tcp(host, port):
        """A Proposal without transports that both have."""
        c = wants(s, host, port, 3)
        ext = c.peer.ext(transports=smc.ROCE, features=c.peer.features | smc.HAS_TLVS)
        c.propose(growth=bytes(12) + ext.encode() + c.tlvs)
        return c
    c = tcp(s.echo_at[0], int(s.echo_at[1]))
    try:
        c.read_accept()
    except smc.Declined as e:
        equal((e.diag, e.answers), (smc.NO_DEVICE, smc.DEST_USED), "the Decline")
    c.sock.sendall(b"by TCP")
    c.sock.settimeout(SOON)
    same_bytes(recv_exact(c.sock, 6), b"by TCP", "echo")
    c = tcp(stranger(s.t, 62), s.port)
    try:
        c.read_accept()
    except smc.Declined as e:
        equal((e.diag, e.answers), (0x03000000, smc.DEST_REFUSED), "the Decline")
    equal(how_it_ends(c.sock), ("closed", b""), "the connection")


@scene_case("a reload of to_allow holds for the next connection", many=many)
def _(s):
    echoes_at(s, 1)
    change_many(s, to_allow=["192.0.2.1"])
    refused(wants(s, s.echo_at[0], int(s.echo_at[1]), 2))


def two_servers_at(s):
    return [f"{s.t.addr}:{x.at[1]}" for x in s.servers]


def two_servers(s):
    s.servers = [Server(s.t, lambda c, b=b: c.sendall(recv_exact(c, 1) and b)) for b in (b"1", b"2")]
    return {"to_allow": two_servers_at(s)}


def opened(s, first, elem, ticket):
    """A connection that opens over the link."""
    conn = first.link.new_conn(SimpleNamespace(close=lambda: None))
    conn.set_remote(elem)
    first.link.send(smc.llc_open(granted=elem.token, ticket=ticket, own=conn.elem()))
    return conn


def says(conn, nr):
    conn.send(b"x", SOON)
    same_bytes(conn.recv(1, SOON), b"%d" % nr, "the server of the ticket")


class Tickets:
    """A link with a ticket for each of two destinations, and what was granted on it."""

    def __init__(self, s):
        self.s, self.numbers, self.used, link = s, [], [], None
        peer = s.peer(1, features=smc.OPENS, elems=64)
        for x in s.servers:
            c = smc.Client(peer, s.many_at, link, tlvs=smc.tlv_list(smc.tlv_place(smc.DEST, *x.at)))
            s.open.append(c)
            self.first = c.run()
            link = self.first.link
            s.keep(link)
            self.numbers.append(c.accept.ext.ticket)
        check(self.numbers[0] and self.numbers[1] and self.numbers[0] != self.numbers[1], f"tickets {self.numbers}")

    def opens(self, ticket):
        """A connection by this ticket, over the next element that was granted and not used."""
        rest = wait_until(lambda: [e for m in list(self.first.link.llc_log) if m.type == smc.GRANT for e in m.elems
                                   if e not in self.used], "an element is granted")
        self.used.append(rest[0])
        return opened(self.s, self.first, rest[0], ticket)

    def opens_nothing(self, ticket):
        before = self.s.b.counters()["not_opened_server"]
        self.opens(ticket)
        wait_until(lambda: self.s.b.counters()["not_opened_server"] == before + 1, f"ticket {ticket:#x} opens nothing")


def change_many(s, **change):
    """Changes the service with many destinations; None removes a setting."""
    conf = dict(s.b.conf)
    conf["egress"] = [{k: v for k, v in {**e, **change}.items() if v is not None} if e["name"] == "many" else e
                      for e in conf["egress"]]
    s.b.write_conf(conf)
    s.b.ctl_text("reload")


@scene_case("over a link: each destination by its ticket", many=two_servers, smcr={"open_over_link": True},
            one_worker="groups and granted elements are each worker's")
def _(s):
    t = Tickets(s)
    for nr in (1, 2):
        says(t.opens(t.numbers[nr - 1]), nr)
    equal(lists(s)["dest_taken"], 2, "destinations of Proposals")
    # One that is no longer allowed, and a number that was never given.
    change_many(s, to_allow=two_servers_at(s)[:1])
    t.opens_nothing(t.numbers[1])
    t.opens_nothing(t.numbers[0] ^ 0x80000000)
    says(t.opens(t.numbers[0]), 1)


@scene_case("over a link: a ticket of a destination opens nothing once the service leads to a server of its own", many=two_servers,
            smcr={"open_over_link": True}, one_worker="groups and granted elements are each worker's")
def _(s):
    t = Tickets(s)
    change_many(s, to=two_servers_at(s)[1], to_allow=None)
    t.opens_nothing(t.numbers[0])


@case("settings that would be an open relay are refused")
def _(t):
    for more, words in (({}, "needs egress.to_allow"), ({"to_allow": ["192.0.2.1"]}, "needs egress.allow, or egress.peer_names"),
                        ({"to_allow": ["0.0.0.0/0"], "allow": ["192.0.2.1"]}, 'needs egress.secure = "required"')):
        d = Daemon(t, "b", {"egress": [{"name": "x", "listen": f"127.0.0.1:{t.port()}", "to": "requested", **more}]}, start=False)
        out = t.run([SMCRD, "-t", "-f", d.conf_path], status=78, stderr=subprocess.STDOUT).decode()
        check(words in out, out)


main()
