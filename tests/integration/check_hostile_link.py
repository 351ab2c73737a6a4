#!/usr/bin/env python3
"""Hostile peers on a link that is theirs: tokens that are not theirs, writes where nothing is to be written, segments of any
kind."""
import os
import random
import struct
import time

from harness import Failure, case, check, main, same_bytes, wait_until, SECONDS, SHRINK
from hostile import MIB, SOON, Scene, goes_on, iw, scene_case, smc, logged


@scene_case("the link's token: guesses, the valid one, its reuse")
def _(s):
    c = s.client()
    c.to_accept()

    def rejected(request, what):
        try:
            c.peer.llp.connect(c.mpa_at, request, timeout=SOON, source=c.peer.host).close()
        except (iw.Rejected, iw.Closed):
            return
        raise Failure(f"{what} was taken")
    guesses = 100 // SHRINK
    for i in range(guesses):
        token = c.accept.ext.token ^ 1 << (i & 63)
        rejected(c.mpa_request(token=token), f"token {i}")
    c.connect_mpa()
    rejected(c.mpa_request(), "a token for the second time")
    c.confirm()
    c.link.client_llc()
    s.echoes(c.finish())
    rejected(c.mpa_request(), "a token of an established link")
    s.echoes(c.conn)
    wait_until(lambda: logged(s.b, "iWARP connections refused: not from a peer, or no link waits for one")[1] == guesses + 2,
               "all of them are logged")


@case("a server that names a third party's address in its Accept and in ADD LINK")
def _(t):
    s = Scene(t, hostile_server=True, smcr={"mpa_peers": [t.addr]})
    third = s.peer(2)
    lst = third.listener()
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
    try:
        raise Failure(f"{lst.accept(0.2)} at the third party")
    except iw.Timeout:
        pass
    check(s.a.counters()["refused_mpa_peers"] >= 2, "both are counted")
    s.finish()


def terminated(c, act, want=None):
    """act() on c's link is answered with a Terminate, `want` or any."""
    with c.link.cond:
        try:
            act()
        except iw.Closed:
            pass	# before all of it was sent
    end = c.link.wait_ended(SOON)
    check(isinstance(end, iw.Term) and want in (None, end.why), f"Terminate {want}, not {end}")


@scene_case("another peer's key, guessed keys, and bytes outside of the region: Terminate, and nothing is written")
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


def random_damage(rnd, c):
    """What is wrong with a message beside its segment, and the CRC right."""
    if c.link.peer.llp is iw:
        return {"length": rnd.randrange(65536)}
    return rnd.choice(({"ssn": rnd.randrange(65536)}, {"sid": 1}, {"flags": rnd.randrange(8)}))


@scene_case("random DDP segments and invalid messages, before and after CONFIRM LINK")
def _(s):
    seed = int.from_bytes(os.urandom(4), "big")
    s.t.note(f"seed {seed}")
    rnd = random.Random(seed)
    sent = links = 0
    end = time.monotonic() + SECONDS
    while goes_on(end, links, 6):
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
                damage = random_damage(rnd, c) if rnd.random() < 0.03 else {}
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
