#!/usr/bin/env python3
"""Strangers on the MPA port, and hostile peers on a link that is theirs: writes where nothing is to be written."""
import os
import random
import re
import select
import socket
import struct
import time

from harness import Failure, case, check, equal, main, same_bytes, set_reset_on_close, wait_until
from hostile import MIB, SOON, Scene, scene_case, iw, smc, stranger

REQUEST = iw.MpaFrame(enhanced=iw.Enhanced(), private=smc.Pdata(qpn=5, psn=6, token=7, from_qpn=8).encode()).encode()


@scene_case("silent connections to the MPA port: links are made meanwhile")
def _(s):
    port = s.mpa_ports()[1]
    for _ in range(300):
        s.tcp((s.t.addr, port))
    equal(s.first_contacts(5), 5, "first contacts that worked")
    s.bound(s.b, rss=4 * MIB)


def told(d, words):
    """How often the log says that, and of how many connections."""
    counts = re.findall(re.escape(words) + r": device=\S+ count=(\d+)", d.log())
    return len(counts), sum(map(int, counts))


def storm(at, source, seconds):
    """Connects, asks, goes away, as often as it can; how often."""
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        try:
            with socket.create_connection(at, 5, (source, 0)) as sock:
                set_reset_on_close(sock)
                sock.sendall(REQUEST)
            n += 1
        except OSError:
            pass
    return n


@scene_case("requests to the MPA port, as many as one core can make: links are made meanwhile")
def _(s):
    flood = s.t.fork(storm, (s.t.addr, s.mpa_ports()[1]), stranger(s.t), 2)
    tried = good = 0
    while flood.alive():
        good += s.first_contacts(1, tried)
        tried += 1
    s.t.note(f"{flood.result() / 2:.0f} requests/s, {good} of {tried} first contacts")
    # The port makes room by turning away the oldest request that it has not read: one in ten or so is of a peer, who goes by TCP.
    check(good > 5 and good >= tried * 3 // 4, f"{good} of {tried} first contacts")
    s.bound(s.b, rss=4 * MIB)


BUSY, NOT_EXPECTED = 5, 4		# verdicts in the Reply's private data


@scene_case("requests for no link: one address takes half of the places, and another one finds one")
def _(s):
    at = (s.t.addr, s.mpa_ports()[1])
    held = [s.tcp(at) for _ in range(100)]
    for sock in held:
        sock.sendall(REQUEST)

    def verdict(sock):
        sock.settimeout(SOON)
        return smc.Pdata.decode(iw.read_mpa(sock, SOON).private).verdict
    # The first ones wait for a second, for somebody to claim them; the others are told at once.
    asked = s.tcp(at, 2)
    asked.sendall(REQUEST)
    equal(verdict(asked), NOT_EXPECTED, "what another address hears")
    got = [verdict(sock) for sock in held]
    equal(got.count(NOT_EXPECTED) + got.count(BUSY), len(got), "requests that waited, and that found no place")
    check(got.count(BUSY) > 36, f"{got.count(BUSY)} of {len(got)} found no place, though all 64 are not for one address")


@scene_case("requests to the MPA port from an address that may not connect: turned away before they are read",
            smcr={"mpa_clients": ["192.0.2.1"]})
def _(s):
    # The service is open to all. Those who make first contact are in no list, but peers of the moment; the stranger is neither.
    flood = s.t.fork(storm, (s.t.addr, s.mpa_ports()[1]), stranger(s.t), 1)
    tried = 0
    while flood.alive():
        equal(s.first_contacts(1, tried), 1, "first contacts that worked")
        tried += 1
    asked = flood.result()
    s.t.note(f"{asked} requests, {tried} first contacts")
    wait_until(lambda: told(s.b, "MPA connections from addresses that may not connect")[1] >= asked // 2, "most are told of")
    s.bound(s.b, rss=4 * MIB)


@scene_case("bytes that are no MPA request: counted, and told once a second at the most")
def _(s):
    at = (s.t.addr, s.mpa_ports()[1])
    start = time.monotonic()
    for _ in range(200):
        s.tcp(at).sendall(b"GET / HTTP/1.0\r\nHost: smcrd\r\n\r\n")
        s.leave()
    words = "MPA connections without a proper request"
    wait_until(lambda: told(s.b, words)[1] == 200, "all are told of")
    took = time.monotonic() - start
    lines = told(s.b, words)[0]
    check(lines <= took + 2, f"{lines} lines in {took:.1f} s")


@scene_case("the link's token: guesses, the right one, the right one again")
def _(s):
    c = s.client()
    c.to_accept()

    def rejected(request, what):
        try:
            iw.connect(c.mpa_at, request, timeout=SOON, source=c.peer.host).close()
        except (iw.Rejected, iw.Closed):
            return
        raise Failure(f"{what} was taken")
    for i in range(100):
        token = c.accept.ext.token ^ 1 << (i & 63)
        rejected(c.mpa_request(token=token), f"token {i}")
    c.connect_mpa()
    rejected(c.mpa_request(), "a token for the second time")
    c.confirm()
    c.link.client_llc()
    s.echoes(c.finish())
    rejected(c.mpa_request(), "a token of an established link")
    s.echoes(c.conn)
    wait_until(lambda: told(s.b, "MPA connections refused: not of a peer, or for no link that waits")[1] == 102,
               "all of them are told of")


@case("a server that sends us to a third party, in its Accept and in ADD LINK")
def _(t):
    s = Scene(t, hostile_server=True, smcr={"mpa_peers": [t.addr]})
    third = s.peer(2)
    lst = iw.Listener(third.host)
    t.later(lst.close)
    _, v = s.proposed()
    v.send_accept(gid=third.gid, ext=v.peer.ext(mpa_port=lst.at[1], token=int.from_bytes(b"GET / HT", "big")))
    try:
        raise Failure(f"{smc.clc_read(v.sock, SOON)} for a Decline")
    except smc.Declined as e:
        t.note(e)
    s.leave()
    s.fresh_server()
    app, c = s.served()
    msg = bytearray(smc.llc_add_link(b"\x02" + os.urandom(5), third.gid, 0x4711, 3, 3, 7))
    msg[36:38] = struct.pack(">H", lst.at[1])
    c.link.send(bytes(msg))
    m = c.link.wait_llc(smc.ADD_LINK, True, timeout=SOON)
    check(m.rejected, f"{m}: not rejected")
    s.echo_from(c, app)
    check(not select.select([lst.sock], [], [], 0.2)[0], "somebody connected to the third party")
    check(s.a.counters()["refused_mpa_peers"] >= 2, "both are counted")
    s.finish()


def terminated(c, act, want=None):
    """act() on c's link is answered with a Terminate, `want` or any."""
    with c.link.cond:
        act()
    end = c.link.wait_ended(SOON)
    check(isinstance(end, iw.Term) and want in (None, end.why), f"Terminate {want}, not {end}")


@scene_case("another peer's key, guessed keys, and bytes outside of what is ours: Terminate, and nothing is written")
def _(s):
    victim = s.connected(s.peer(2))
    victim.send(bytes(64), SOON)
    same_bytes(victim.recv(64, SOON), bytes(64), "echo")
    others_key, others_at = victim.remote.rkey, victim.remote_at
    rnd = random.Random(int.from_bytes(os.urandom(4), "big"))
    guess = [lambda c: c.link.ep.write(rnd.getrandbits(32), c.remote_at, b"\xff" * 8) for _ in range(12)]
    near = [lambda c, i=i: c.link.ep.write(c.remote.rkey ^ 1 << i, c.remote_at, b"\xff" * 8) for i in range(0, 32, 4)]
    bad = [
        lambda c: c.link.ep.write(others_key, others_at, b"\xff" * 64),
        lambda c: c.link.ep.read(1, 0, 64, others_key, others_at),
        lambda c: c.link.ep.write(c.remote.rkey, c.remote.vaddr - 1, b"\xff" * 8),
        lambda c: c.link.ep.write(c.remote.rkey, c.remote.vaddr + (1 << 32), b"\xff" * 8),
        lambda c: c.link.ep.write(c.remote.rkey, (1 << 64) - 4, b"\xff" * 8),
        lambda c: c.link.ep.read(1, 0, 64, c.remote.rkey, c.remote_at),
        lambda c: c.link.ep.send(bytes(16), iw.SEND_INV, others_key),
        lambda c: c.link.ep.send(bytes(16), iw.SEND_SE_INV, c.remote.rkey),
        lambda c: c.link.ep.send(bytes(70000)),
    ]
    for i, act in enumerate(bad + guess + near):
        c = s.connected()
        terminated(c, lambda: act(c))
        c.link.close()
        c.middle.close()
        check(victim.link.ended is None, f"attempt {i}: the victim's link ended: {victim.link.ended}")
    s.echoes(victim)
    s.bound(s.b, rss=4 * MIB)


def random_ulpdu(rnd, c):
    """A DDP segment of any kind; the fields are often right."""
    opcode = rnd.randrange(9)
    payload = rnd.randbytes(rnd.choice((0, 1, 4, 28, 44, 100, 1300)))
    odd = {"last": rnd.random() < 0.7, "dv": rnd.choice((1, 1, 1, 1, 0, 2, 3)), "rv": rnd.choice((1, 1, 1, 1, 0, 2))}
    if opcode in iw.TAGGED_OPS or rnd.random() < 0.05:
        stag = rnd.choice((c.remote.rkey, c.remote.rkey, c.remote.rkey ^ 1, 0, 1, rnd.getrandbits(32)))
        to = rnd.choice((c.remote_at, c.remote_at + rnd.randrange(1 << 16), 0, (1 << 64) - 1, rnd.getrandbits(64)))
        return iw.tagged(opcode, stag, to, payload, **odd)
    if opcode == iw.READ_REQ and rnd.random() < 0.7:
        payload = struct.pack(">IQIIQ", rnd.getrandbits(32), 0, rnd.choice((0, 0, 1, 1 << 31)), c.remote.rkey, c.remote_at)
    return iw.untagged(opcode, rnd.choice((0, 1, 2, 3, 1 << 31)), rnd.choice((1, 2, 3, c.link.ep.tx_msn[0], 0)),
                       rnd.choice((0, 0, 0, 1, 1 << 31)), payload, inv=rnd.choice((0, c.remote.rkey)), **odd)


@scene_case("DDP segments at random, with a right CRC and with wrong lengths, before and behind CONFIRM LINK")
def _(s):
    seed = int.from_bytes(os.urandom(4), "big")
    s.t.note(f"seed {seed}")
    rnd = random.Random(seed)
    sent = links = 0
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            if links % 3:
                c = s.connected()
            else:
                cl = s.client()
                cl.to_confirm()
                c = cl.conn
                c.set_remote(cl.accept)
            links += 1
            for _ in range(rnd.randrange(1, 12)):
                damage = {"length": rnd.randrange(65536)} if rnd.random() < 0.03 else {}
                with c.link.cond:
                    c.link.ep.send_ulpdu(random_ulpdu(rnd, c), **damage)
                sent += 1
        except (iw.Error, smc.SmcError, OSError):
            pass
        s.leave()
    s.t.note(f"{sent} segments over {links} links")
    check(links > 5, f"{links} links")
    s.bound(s.b, rss=16 * MIB)


main()
