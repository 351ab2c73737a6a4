#!/usr/bin/env python3
"""An egress for many destinations (to = "requested"): a peer that wants what it may, and a hostile one beside a witness."""
import socket

from harness import SMCRD, Daemon, Failure, check, equal, hostport, listener, main, recv_exact, same_bytes, case, wait_until
from hostile import SOON, how_it_ends, iw, scene_case, smc, stranger

import subprocess


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
    conf = dict(s.b.conf)
    conf["egress"] = [dict(e, to_allow=["192.0.2.1"]) if e["name"] == "many" else e for e in conf["egress"]]
    s.b.write_conf(conf)
    s.b.ctl_text("reload")
    refused(wants(s, s.echo_at[0], int(s.echo_at[1]), 2))


@case("settings that would be an open relay are refused")
def _(t):
    for more, words in (({}, "needs egress.to_allow"), ({"to_allow": ["192.0.2.1"]}, "needs egress.allow or egress.peer_names"),
                        ({"to_allow": ["0.0.0.0/0"], "allow": ["192.0.2.1"]}, 'needs egress.secure = "required"')):
        d = Daemon(t, "b", {"egress": [{"name": "x", "listen": f"127.0.0.1:{t.port()}", "to": "requested", **more}]}, start=False)
        out = t.run([SMCRD, "-t", "-f", d.conf_path], status=78, stderr=subprocess.STDOUT).decode()
        check(words in out, out)


main()
