#!/usr/bin/env python3
"""Hostile peers on the TCP connection between the daemons: what they do to the rendezvous, and to groups of others."""
import collections
import os
import random
import socket
import struct
import time

from harness import Failure, check, equal, main, set_reset_on_close, wait_until, SHRINK
from hostile import MIB, SOON, scene_case, how_it_ends, iw, smc

# The header of a message that is long and no Decline, and half of what it promises.
HALF = smc.EYE + struct.pack(">BHB", smc.CONFIRM, 2048, 0x10) + bytes(1000)

MEASURE = 0x40	# CLC_FEATURE_MEASURE


# -- messages out of place --


def ends(sock, link):
    """With a link that was lost the daemon may have declined before it read anything: all that comes is data then."""
    if "lost" not in link:
        equal(how_it_ends(sock)[0], "reset", f"the connection, link {link}")
        return
    sock.settimeout(SOON)
    try:
        sock.recv(100)
    except ConnectionError:
        pass


@scene_case("half of a long CLC message during link set-up, from a client")
def _(s):
    for link in ("none", "made", "made and lost"):
        c = s.client()
        c.to_accept()
        if link != "none":
            c.connect_mpa()
        c.confirm()
        c.sock.sendall(HALF)
        if link == "made and lost":
            c.link.close(reset=True)
        ends(c.sock, link)
        s.leave()


@scene_case("half of a long CLC message during link set-up, from a server", hostile_server=True)
def _(s):
    for link in ("made", "made and lost", "lost first"):
        s.fresh_server()
        app, v = s.proposed()
        v.to_confirm()
        if link == "lost first":
            v.link.close(reset=True)
        v.sock.sendall(HALF)
        if link == "made and lost":
            v.link.close(reset=True)
        ends(app, link)
        s.leave()


def mutated(rnd, data, n):
    """n bytes behind the header changed, and now and then the length."""
    out = bytearray(data)
    for _ in range(n):
        at = rnd.randrange(7, len(out))
        out[at] = rnd.choice((0, 1, 255, out[at] ^ 1 << rnd.randrange(8), rnd.randrange(256)))
    if rnd.random() < 0.1:
        out[5:7] = struct.pack(">H", rnd.choice((0, 8, 11, 28, 44, 67, 68, 69, 96, 2048, 65535)))
    return bytes(out[:rnd.choice((len(out), len(out), len(out), rnd.randrange(len(out)))) or 1])


@scene_case("CLC messages with changed bytes, at every step")
def _(s):
    seed = int.from_bytes(os.urandom(4), "big")
    s.t.note(f"seed {seed}")
    rnd = random.Random(seed)
    done = collections.Counter()
    for i in range(200 // SHRINK):
        p = s.peer(1 + i % 60)  # a peer whose first contact has failed is declined for a while
        propose = smc.clc_proposal(p.peer_id, p.gid, p.mac, p.subnet, ext=p.ext())
        c = s.client(p)
        step = rnd.choice(("Proposal", "Confirm", "Decline"))
        try:
            c.sock.sendall(mutated(rnd, propose, rnd.randrange(1, 4)) if step == "Proposal" else propose)
            if step != "Proposal":
                c.read_accept()
                c.new_link()
                c.conn = c.link.new_conn(c.sock)
                msg = c.confirm_msg() if step == "Confirm" else smc.clc_decline(p.peer_id, smc.NO_DEVICE)
                c.sock.sendall(mutated(rnd, msg, rnd.randrange(1, 4)))
            done[step] += 1
        except (iw.Error, smc.SmcError, OSError):
            pass
        s.leave()
    s.t.note(f"messages: {dict(done)}")
    check(len(done) == 3 and min(done.values()) > 10, f"messages: {dict(done)}")
    s.bound(s.b, rss=16 * MIB)


# -- the list of TLVs behind the growth area (doc/transparent.md) --

CLIENT = smc.tlv_place(smc.CLIENT, "203.0.113.9", 5330)
DEST = smc.tlv_place(smc.DEST, "127.0.0.1", 5432)


def answer(c, list, features=smc.HAS_TLVS):
    """Of a Proposal whose growth area ends with these bytes: "reset", "accept", or the Decline's code and answers."""
    p = c.peer
    growth = bytes(12) + p.ext(features=p.features | features).encode() + list
    try:
        c.sock.sendall(smc.clc_proposal(p.peer_id, p.gid, p.mac, p.subnet, growth=growth))
        return "accept" if smc.clc_read(c.sock, SOON) else None
    except smc.Declined as e:
        equal(how_it_ends(c.sock), ("closed", b""), "the end behind a refusal")
        return e.diag, e.answers
    except iw.Closed as e:
        check(e.args and e.args[0], f"a reset, not {e!r}")
        return "reset"


def tlv_lists():
    """(what, the list, whether the feature says that it is there, what fixed and many destinations answer)"""
    both, refused = smc.tlv_list(CLIENT, DEST), (0x03000000, 0)
    wants = (0x03000000, smc.DEST_REFUSED)
    for name, tlvs, fixed, many in (("client", (CLIENT,), "accept", wants), ("destination", (DEST,), refused, wants)):
        whole = smc.tlv_list(*tlvs)
        for n in range(1, len(whole)):
            yield f"{name}, cut at byte {n}", whole[:n], smc.HAS_TLVS, *(("reset",) * 2 if n >= 6 else ("accept", wants))
        yield f"{name}, whole", whole, smc.HAS_TLVS, fixed, many
        yield f"{name}, twice", smc.tlv_list(*tlvs, *tlvs), smc.HAS_TLVS, "reset", "reset"
        yield f"{name}, without its feature", whole, 0, "accept", wants
        for n in (0, 6, 8, 255):
            bad = whole[:7] + bytes((n,)) + whole[8:]
            yield f"{name}, length {n}", bad, smc.HAS_TLVS, "reset", "reset"
    yield "129 bytes", smc.tlv_list(smc.tlv(1, bytes(127))), smc.HAS_TLVS, "reset", "reset"
    yield "128 bytes that are skipped", smc.tlv_list(smc.tlv(1, bytes(126))), smc.HAS_TLVS, "accept", wants
    yield "a list as long as a message", smc.tlv_list(smc.tlv(1, bytes(255)) * 7), smc.HAS_TLVS, "reset", "reset"
    yield "type 0x83", smc.tlv_list(smc.tlv(0x83, b"x")), smc.HAS_TLVS, "reset", "reset"
    yield "type 0x83 behind both", both[:4] + bytes((0, len(both) - 6 + 3)) + both[6:] + smc.tlv(0x83, b"x"), smc.HAS_TLVS, "reset", "reset"
    yield "the feature without a list", b"", smc.HAS_TLVS, "accept", wants
    yield "an empty list", smc.tlv_list(), smc.HAS_TLVS, "accept", wants


@scene_case("lists of TLVs: cut, twice, too long, unknown, without the feature and the feature without them",
            many={"to_allow": ["192.0.2.1"]})
def _(s):
    for i, (what, tlvs, features, *expected) in enumerate(tlv_lists()):
        for at, wanted in zip((s.smc_at, s.many_at), expected):
            c = smc.Client(s.peer(1 + i % 60), at)
            s.open.append(c)
            equal(answer(c, tlvs, features), wanted, f"answer of {'many destinations' if at == s.many_at else 'one server'} to: {what}")
        s.leave()
    s.bound(s.b, rss=16 * MIB)


# -- what stays behind --


def join(s, first, last_words):
    """A connection that is to join the group of `first` and says something else than Confirm."""
    c = s.client(first.link.peer, first.link)
    c.propose()
    try:
        c.read_accept()
        if last_words:
            c.sock.sendall(last_words)
    except (iw.Error, smc.SmcError, OSError):
        pass
    return c


@scene_case("joins that end in garbage: memory kept with the group is bounded",
            one_worker="the limit is each worker's")
def _(s):
    first = s.connected()
    s.echoes(first)
    joins = 600 // SHRINK
    start = time.monotonic()
    for _ in range(joins):
        join(s, first, b"garbage for a Confirm").sock.close()
    wait_until(lambda: s.b.status()["connections"]["setup"] == 0, "no rendezvous goes on")
    s.t.note(f"{joins / (time.monotonic() - start):.0f} joins/s")
    s.echoes(first)
    # A cap for each group (quarantine_max), and few groups for each address: without them each join takes an element.
    s.bound(s.b, rmb=12 * MIB, groups=16, rss=16 * MIB)


@scene_case("joins that stop: memory kept with the group is bounded",
            one_worker="the limit is each worker's")
def _(s):
    first = s.connected()
    s.echoes(first)
    for _ in range(3):
        conns = [join(s, first, None) for _ in range(100 // SHRINK)]
        wait_until(lambda: s.b.status()["connections"]["setup"] == 0, "they are given up")
        for c in conns:
            c.close()
    s.echoes(first)
    s.bound(s.b, rmb=12 * MIB, groups=16, rss=16 * MIB)


# -- groups of others --


def rmbs(d, **what):
    return [x for x in d.ctl("rmbs")["rmbs"] if all(x[k] == v for k, v in what.items())]


def in_use(d):
    """Elements of our RMBs that are used or kept back, by group."""
    out = {}
    for x in rmbs(d, side="local"):
        out[x["group"]] = out.get(x["group"], 0) + x["used"] + x["quarantined"]
    return out


@scene_case("a stranger with another peer's id cannot join or end that peer's group")
def _(s):
    victim = s.connected(s.peer(1))
    s.echoes(victim)
    before = in_use(s.b)
    for peer_id in (victim.link.peer.peer_id, bytes.fromhex(s.b.groups()[0]["peer_id"])):
        for last in ("out of sync", "garbage", "nothing", "reset"):
            for _ in range(5):
                thief = s.peer(2)
                thief.peer_id = peer_id
                thief.gid, thief.mac = victim.link.peer.gid, victim.link.peer.mac
                c = s.client(thief)
                c.propose()
                try:
                    a = c.read_accept()
                except smc.Declined:
                    continue
                check(a.first, "the stranger is offered another peer's group")
                if last == "out of sync":
                    c.decline(out_of_sync=True)
                elif last == "garbage":
                    c.sock.sendall(b"garbage for a Confirm")
                elif last == "reset":
                    set_reset_on_close(c.sock)
                    c.sock.close()
    wait_until(lambda: s.b.status()["connections"]["setup"] == 0, "no rendezvous goes on")
    # The victim goes on, also with new connections.
    s.echoes(victim)
    more = s.connected(victim.link.peer, victim.link)
    s.echoes(more)
    check(victim.link.ended is None, f"the victim's link: {victim.link.ended}")
    after = in_use(s.b)
    for group, n in before.items():
        check(after.get(group, 0) <= n + 1, f"elements of group {group} in use: {n} before, {after.get(group)} now")


@scene_case("a server that names another peer's group in its Accept", hostile_server=True)
def _(s):
    link = s.a.ctl("links")["links"][0]
    group = s.a.groups()[0]
    victim = {"peer_id": bytes.fromhex(group["peer_id"]), "qpn": link["peer_qpn"], "first": False,
              "gid": socket.inet_pton(socket.AF_INET6, link["peer_gid"]),
              "mac": bytes.fromhex(link["peer_mac"].replace(":", ""))}
    for over in ({}, {"idx": 1}):
        app, v = s.proposed()
        v.send_accept(**victim, **over)
        try:
            smc.clc_read(v.sock, SOON)
            raise Failure("the connection is to join another server's group")
        except smc.Declined:
            pass
        s.leave()
        s.witness.alive()


@scene_case("empty measurements, one with an invalid start, and more at once than allowed",
            one_worker="the limit is each worker's")
def _(s):
    def measuring():
        c = s.client(prewarm=True)
        c.peer.features |= MEASURE
        c.run()
        equal(c.accept.ext.features & MEASURE, MEASURE, "it is served")
        wait_until(lambda: any(x["state"] == "measuring" for x in s.b.connections()), "the daemon measures")
        return c

    def ended(sock):
        sock.settimeout(SOON)
        try:
            return sock.recv(1) == b""
        except ConnectionError:
            return True
    c = measuring()
    c.sock.sendall(b"GET / HTTP/1.0\r\n" * 3)
    check(ended(c.sock), "no request: reset")
    wait_until(lambda: "protocol error in the peer's measurement" in s.b.log(), "and logged")
    c = measuring()
    c.sock.sendall(struct.pack(">4sIQQ", b"smrM", 1, 1 << 60, 1))
    check(ended(c.sock), "more than may be: reset")
    many = [measuring() for _ in range(4)]
    c = s.client(prewarm=True)
    c.peer.features |= MEASURE
    c.run()
    check(ended(c.sock), "one too many: reset")
    for c in many:	# each end frees a place
        c.sock.close()
    wait_until(lambda: not any(x["state"] == "measuring" for x in s.b.connections()), "they are over")
    measuring().sock.close()
    s.witness.alive()


# -- what one address, what one stranger may have --


@scene_case("groups without connections, and all queue pairs", one_worker="the limit is each worker's", device={"max_qp": 40})
def _(s):
    made = declined = 0
    for _ in range(45):
        c = s.client(prewarm=True)
        try:
            c.run()
            s.keep(c.link)
            made += 1
        except (smc.Declined, iw.Error):
            declined += 1
        c.sock.close()
    s.t.note(f"{made} groups made, {declined} declined")
    # A peer at another address is served by SMC-R.
    s.echoes(s.connected(s.peer(2)))

    # Once its connections have closed, the address's groups are idle, and the longest idle one makes room for another.
    def another():
        c = s.client(prewarm=True)
        try:
            c.run()
            s.keep(c.link)
        except (smc.Declined, iw.Error):
            pass
        c.sock.close()
        return s.b.counters()["groups_ended_for_room"] > 0

    wait_until(another, "idle groups end early")
    s.bound(s.b, groups=18, qps=18)


@scene_case("half-open first contacts from one address", one_worker="the limit is each worker's")
def _(s):
    for turn in range(3):
        for _ in range(200 // SHRINK):
            c = s.client()
            c.propose()
        # Meanwhile others are served.
        s.echoes(s.connected(s.peer(2)))
        wait_until(lambda: s.b.status()["connections"]["setup"] == 0, "they are given up")
        s.leave()
    # Sixteen half-open ones of an address, and the group of one served peer in each turn.
    s.bound(s.b, rss=24 * MIB, groups=16 + 3, qps=16 + 3)


@scene_case("idle fallback connections leave places for others",
            egress={"max_connections": 40, "max_connections_per_peer": 8})
def _(s):
    for _ in range(60):
        try:
            s.client().decline()
        except (iw.Error, OSError):
            pass	# reset at once
    wait_until(lambda: s.b.status()["connections"]["tcp"] == 8, "eight have fallen back")
    s.echoes(s.connected(s.peer(2)))
    s.bound(s.b, connections=12)


@scene_case("groups made and broken in sequence, and resets under load",
            one_worker="the limit is each worker's")
def _(s):
    rss = []
    for turn in range(120 // SHRINK):
        c = s.connected()
        if turn % 3 == 0:
            c.link.close()
        elif turn % 3 == 1:
            c.send(bytes(10000))
            c.link.close(reset=True)
        else:
            set_reset_on_close(c.middle)
        s.leave()
        if turn % 10 == 9:
            # Those whose link ended in order stay for the grace after the FIN, and a quick machine would make many in that time.
            wait_until(lambda: s.back(s.b, 0), "the groups so far are gone", SOON)
            rss.append(s.b.rss())
    s.bound(s.b, rss=8 * MIB, groups=12, qps=12)
    s.t.note("memory: " + " ".join(f"{x / MIB:.1f}" for x in rss))


@scene_case("more strangers than descriptors", files=90)
def _(s):
    with_files = [s.tcp(s.smc_at) for _ in range(300)]

    def calm():
        before = s.b.cpu()
        time.sleep(1)	# raw: what it does in a second is what is measured
        return s.b.cpu() - before < 0.5
    wait_until(calm, "less than half a second of processor time in a second", 5)
    s.witness.alive()
    for x in with_files:
        x.close()


main()
