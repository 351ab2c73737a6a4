#!/usr/bin/env python3
"""Hostile peers on a link that is theirs: LLC and CDC messages that lie, repeat themselves, or never end."""
import os
import random
import struct
import time

from harness import Failure, check, main, wait_until, PATIENCE, SECONDS, SHRINK
from hostile import MIB, SOON, goes_on, scene_case, iw, smc

STRANGE = (iw.Error, smc.SmcError, OSError)	# results for such a peer


def seeded(t):
    seed = int.from_bytes(os.urandom(4), "big")
    t.note(f"seed {seed}")
    return random.Random(seed)


# -- a second link at first contact --


def another_path(peer):
    """MAC and GID of a device that is not there."""
    return b"\x02" + os.urandom(5), peer.gid[:15] + bytes((peer.gid[15] ^ 1,))


def up_to_add_link(s, peer=None):
    """A client at first contact that has got ADD LINK: (client, that message)."""
    c = s.client(peer)
    c.to_confirm()
    c.link.number = c.link.next_llc(smc.CONFIRM_LINK).number
    c.link.send(c.link.confirm_link_msg(True))
    return c, c.link.next_llc(smc.ADD_LINK)


def without_tokens(s, peer=None):
    """Takes the offer and confirms no RToken: the client, which then may do anything."""
    c, m = up_to_add_link(s, peer)
    mac, gid = another_path(c.peer)
    c.link.send(m.raw[:3] + bytes((m.flags | smc.RESPONSE,)) + mac + m.raw[10:12] + gid + m.raw[28:])
    c.link.next_llc(smc.ADD_LINK_CONT, SOON)
    c.link.send(smc.llc(smc.ADD_LINK_CONT, smc.RESPONSE, bytes((m.number, 0))))
    return c


@scene_case("ADD LINK CONTINUATION without RTokens, from a client")
def _(s):
    for _ in range(12):
        c = without_tokens(s)
        # While the record of his RMB is in question, groups of others come and go.
        for i in (2, 3):
            other = s.connected(s.peer(i))
            s.echoes(other, 100)
            other.link.close()
        try:
            d = c.link.next_llc(smc.DELETE_LINK, SOON)
            c.link.send(d.raw[:3] + bytes((d.flags | smc.RESPONSE,)) + d.raw[4:])
            s.echoes(c.finish(), 100)
        except (Failure, *STRANGE) as e:
            s.t.note(f"{type(e).__name__}: {e}")	# it may be closed; others may not notice
        check(not isinstance(c.link.ended, iw.Broken), f"the server wrote where it has no RToken for: {c.link.ended}")
        s.leave()


@scene_case("ADD LINK CONTINUATION without RTokens, from a server", hostile_server=True, smcr={"mpa_peers": ["127.0.0.0/8"]})
def _(s):
    second = s.peer(2)		# the server's other device
    mpa = second.listener()
    s.t.later(mpa.close)
    served = 0
    for _ in range(6):
        s.fresh_server()
        app, v = s.proposed()
        v.to_confirm()
        link = v.link
        link.number = 1
        link.send(link.confirm_link_msg(False))
        link.next_llc(smc.CONFIRM_LINK)
        # The MPA port stands behind the PSN.
        msg = bytearray(smc.llc_add_link(b"\x02" + os.urandom(5), second.gid, 0x4711, 2, v.peer.mtu_code, 7))
        msg[36:38] = struct.pack(">H", mpa.at[1])
        link.send(bytes(msg))
        try:
            came, request = mpa.accept(2 * PATIENCE)
            pd = smc.Pdata.decode(request.private)
            s.open.append(mpa.reply(came, request, private=smc.Pdata(qpn=pd.from_qpn, from_qpn=0x4711).encode()))
            link.next_llc(smc.ADD_LINK, SOON)
            link.send(smc.llc(smc.ADD_LINK_CONT, 0, bytes((2, 0))))
            link.next_llc(smc.ADD_LINK_CONT, SOON)
            s.echo_from(v.finish(), app)
            served += 1
        except (Failure, *STRANGE) as e:
            s.t.note(f"{type(e).__name__}: {e}")
        check(not isinstance(link.ended, iw.Broken), f"the client wrote where it has no RToken for: {link.ended}")
        s.leave()
    check(served > 3, f"{served} of 6 links that go on")


# -- floods --


@scene_case("offers of a device without a possible link, at the rate of the link")
def _(s):
    c = s.connected()

    def reject(link, m):
        """From the reading thread, so without a look at how much the peer can take."""
        link.ep.send(m.raw[:2] + b"\1" + bytes((m.flags | smc.RESPONSE | smc.REJECTED,)) + m.raw[4:], iw.SEND_SE)
    c.link.answers[smc.ADD_LINK] = reject
    msg = smc.llc_add_link(c.link.peer.mac, c.link.peer.gid, c.link.qpn, 0, 3, c.link.psn)

    def turned_away():
        """Those that came too often, and those that came while a link was being tried."""
        n = s.b.counters()
        return n["llc_limited"] + n["llc_collisions"]
    before, start, sent = s.b.cpu(), time.monotonic(), 0
    made = s.b.counters()["add_link_rejected"]
    while time.monotonic() < start + 1.5:
        with c.link.cond:
            c.link.ep.send(msg, iw.SEND_SE)
        sent += 1
    took = time.monotonic() - start
    used = (s.b.cpu() - before) / took
    made = s.b.counters()["add_link_rejected"] - made
    s.t.note(f"{sent / took:.0f} offers/s, {made} queue pairs made for them, {used:.0%} CPU")
    check(made <= 4 + took, f"{made} links tried for {sent} offers in {took:.1f} s")
    wait_until(lambda: turned_away() >= sent - made - 10, "those that were too many are counted")
    s.echoes(c)
    s.bound(s.b, rss=4 * MIB, qps=2)


@scene_case("offers of a second link, at the rate of the link", hostile_server=True, smcr={"mpa_peers": ["127.0.0.0/8"]})
def _(s):
    second = s.peer(2)
    mpa = second.listener()
    s.t.later(mpa.close)
    link, sent, links = None, 0, 0
    start = time.monotonic()
    while goes_on(start + 1.5, sent, 100):
        if link is None or link.ended:
            s.leave()
            s.fresh_server()
            link = s.served()[1].link
            links += 1
        msg = bytearray(smc.llc_add_link(b"\x02" + os.urandom(5), second.gid, 0x4711, 2 + sent % 250, 3, 7))
        msg[36:38] = struct.pack(">H", mpa.at[1])
        try:
            with link.cond:
                link.ep.send(bytes(msg), iw.SEND_SE)
            sent += 1
        except STRANGE as e:
            link.ended = link.ended or e	# a reader too slow for the answers is closed
    limited = s.a.counters()["llc_limited"]
    s.t.note(f"{sent / (time.monotonic() - start):.0f} offers/s over {links} links, {limited} too many")
    check(limited > 0, "none of the offers was too many")
    s.leave()
    s.fresh_server()
    app, c = s.served()
    s.echo_from(c, app)
    s.bound(s.a, rss=4 * MIB, qps=6, fds=20)


@scene_case("requests with unread answers")
def _(s):
    c = s.connected()
    c.link.closing = True	# no reader
    c.link.thread.join()
    c.link.ep.settimeout(0.5)	# raw: until nothing goes
    end, sent = time.monotonic() + 1.5 * PATIENCE, 0
    try:
        while time.monotonic() < end:
            c.link.ep.send(smc.llc_test_link(bytes(16)), iw.SEND_SE)
            sent += 1
    except STRANGE as e:
        s.t.note(f"after {sent}: {e}")
    s.t.note(f"{sent} requests")
    check(sent > 100, f"{sent} requests")
    s.bound(s.b, rss=4 * MIB)


@scene_case("RMBs confirmed and deleted")
def _(s):
    c = s.connected()
    for i in range(600 // SHRINK):
        try:
            c.link.send(smc.llc_confirm_rkey(0x1000 + i, 1 << 30, [(1, 5, 6)] * (i % 3)))
            if i % 2:
                c.link.send(smc.llc_delete_rkey([0x1000 + j for j in range(i - 7, i + 1)]))
        except STRANGE:
            pass	# a request too early ends the link, maybe in the middle of this
        if c.link.ended:
            c = s.connected()
    try:
        s.echoes(c)
    except STRANGE as e:
        s.t.note(f"the link: {e}")
    s.bound(s.b, rss=4 * MIB)


@scene_case("repeated violations: log lines are limited")
def _(s):
    first = len(s.b.log().splitlines())
    start, done = time.monotonic(), 0
    c = s.connected()
    while time.monotonic() < start + 1.5:
        c.link.send(smc.llc_delete_link(1, response=True) + b"")
        c.link.send(smc.Cdc(1, 0x31337 + done).encode())
        c.link.send(c.cdc()[:43])
        done += 3
    took = time.monotonic() - start
    lines = len(s.b.log().splitlines()) - first
    s.t.note(f"{done / took:.0f} violations/s, {lines} lines")
    check(lines < 40 * took + 40, f"{lines} lines in {took:.1f} s")
    s.echoes(c)


# -- anything --


LLC_TYPES = (smc.CONFIRM_LINK, smc.ADD_LINK, smc.ADD_LINK_CONT, smc.DELETE_LINK, smc.CONFIRM_RKEY, smc.TEST_LINK,
             smc.CONFIRM_RKEY_CONT, smc.DELETE_RKEY)


def random_llc(rnd, link):
    """A message of a known type whose fields are now and then right."""
    seen = [m.raw for m in link.llc_log if m.type != smc.TEST_LINK]
    if seen and rnd.random() < 0.4:
        msg = bytearray(rnd.choice(seen))
        msg[3] ^= rnd.choice((0, smc.RESPONSE, smc.REJECTED, smc.NEGATIVE))
        for _ in range(rnd.randrange(3)):
            msg[rnd.randrange(3, 44)] = rnd.choice((0, 1, 2, 255, rnd.randrange(256)))
        return bytes(msg)
    body = bytearray(rnd.randbytes(40) if rnd.random() < 0.5 else bytes(40))
    body[0] = rnd.choice((0, 1, 2, 3, 8, 255))
    return smc.llc(rnd.choice(LLC_TYPES), rnd.choice((0, smc.RESPONSE, smc.REJECTED, smc.RESPONSE | smc.REJECTED,
                                                      smc.NEGATIVE, 0x60)), bytes(body), rnd.randrange(16))


def random_cdc(rnd, conn):
    """One whose cursors may be right."""
    def cursor(near, space):
        return rnd.choice((space.cursor(near), space.cursor(near + rnd.randrange(100)), (0, 0), (1, 5), (0xffff, 0xffffffff),
                           (rnd.randrange(3), rnd.randrange(1 << 15))))
    return conn.cdc(flags=rnd.choice((0, smc.WRITE_BLOCKED, smc.URGENT_PRESENT | smc.URGENT_PENDING, smc.FAILOVER,
                                      smc.UPDATE_REQUESTED, rnd.randrange(256))),
                    state=rnd.choice((0, 0, 0, 0, smc.DONE, smc.CLOSED, smc.ABORT)),
                    prod=cursor(conn.sent, conn.tx), cons=cursor(conn.tail, conn.rx),
                    **({"seq": rnd.randrange(65536)} if rnd.random() < 0.1 else {}),
                    **({"token": rnd.randrange(1 << 32)} if rnd.random() < 0.1 else {}))


@scene_case("random LLC messages, established and at first contact, from a client")
def _(s):
    rnd = seeded(s.t)
    sent = links = 0
    end = time.monotonic() + SECONDS
    while goes_on(end, links, 6):
        try:
            if links % 2:
                c = s.connected()
                link = c.link
                s.connected(link.peer, link)
            else:
                c, _ = up_to_add_link(s)
                link = c.link
            links += 1
            for _ in range(rnd.randrange(1, 40)):
                link.send(random_llc(rnd, link))
                sent += 1
                if link.ended:
                    break
            if link.thread and not link.ended:
                time.sleep(0.02)	# raw: the random peer's pace
        except STRANGE:
            pass
        s.leave()
    s.t.note(f"{sent} messages over {links} links")
    check(links > 5, f"{links} links")
    s.bound(s.b, rss=16 * MIB)


@scene_case("random LLC messages, from a server", hostile_server=True)
def _(s):
    rnd = seeded(s.t)
    sent = links = 0
    end = time.monotonic() + SECONDS
    while goes_on(end, links, 4):
        s.fresh_server()
        try:
            if links % 2:
                _, v = s.serving()
                link = v.run().link
            else:
                _, v = s.proposed()
                v.to_confirm()
                link = v.link
                link.number = 1
                if links % 4:
                    link.send(link.confirm_link_msg(False))
            links += 1
            for _ in range(rnd.randrange(1, 40)):
                link.send(random_llc(rnd, link))
                sent += 1
                if link.ended:
                    break
        except STRANGE:
            pass
        s.leave()
        s.server.forget()
    s.t.note(f"{sent} messages over {links} links")
    check(links > 3, f"{links} links")
    s.bound(s.a, rss=16 * MIB)


@scene_case("random CDC messages, with data, and with tokens of others")
def _(s):
    rnd = seeded(s.t)
    sent = links = 0
    end = time.monotonic() + SECONDS
    unknown = s.b.counters()["cdc_unknown"]
    while goes_on(end, links, 4):
        try:
            first = s.connected()
            conns = [first, *(s.connected(first.link.peer, first.link) for _ in range(3))]
            links += 1
            # The witness' token is among these; it is of another group.
            for token in range(1, 80):
                if token not in [c.remote.token for c in conns]:
                    first.link.send(smc.Cdc(1, token, state=smc.ABORT).encode())
            for _ in range(rnd.randrange(10, 80)):
                c = rnd.choice(conns)
                with c.link.cond:
                    if rnd.random() < 0.5:
                        c.write_at(rnd.randrange(c.remote.elem_size - 8), rnd.randbytes(rnd.randrange(1, 8)))
                    c.link.send(random_cdc(rnd, c))
                sent += 1
                if c.link.ended:
                    break
        except STRANGE:
            pass
        s.leave()
    s.t.note(f"{sent} messages over {links} links")
    check(links > 3 and s.b.counters()["cdc_unknown"] > unknown, f"{links} links")
    s.bound(s.b, rss=16 * MIB)


@scene_case("two links, random messages over both, and the loss of one", hostile_server=True)
def _(s):
    rnd = seeded(s.t)
    sent = rounds = moved = 0
    end = time.monotonic() + SECONDS
    failovers = s.a.counters()["failovers"]
    while goes_on(end, rounds, 4):
        try:
            _, first, second = s.served_over_two()
            conns = [first, *(s.served()[1] for _ in range(rnd.randrange(3)))]
            links = [first.link, second]
            rounds += 1
            for left in reversed(range(rnd.randrange(10, 60))):
                c = rnd.choice(conns)
                with c.link.cond:
                    if c.link is not second and rnd.random() < 0.2:
                        c.move(second)
                        moved += 1
                    if rnd.random() < 0.5:
                        c.write_at(rnd.randrange(c.remote.elem_size - 8), rnd.randbytes(rnd.randrange(1, 8)))
                    over = rnd.choice(links)
                    over.send(random_llc(rnd, over) if rnd.random() < 0.1 else random_cdc(rnd, c))
                sent += 1
                if left == 8 and len(links) > 1:
                    links.pop(rnd.randrange(2)).close(reset=True)
                if any(link.ended for link in links):
                    break
        except STRANGE:
            pass
        s.leave()
        s.server.forget()
    failovers = s.a.counters()["failovers"] - failovers
    s.t.note(f"{sent} messages in {rounds} rounds, {moved} connections moved by us, {failovers} failovers")
    check(rounds > 3 and failovers > 0, f"{rounds} rounds, {failovers} failovers")
    s.bound(s.a, rss=16 * MIB)


@scene_case("Confirms with the largest element, the last index, odd keys and addresses: only their own writes are misplaced")
def _(s):
    for over in ({"size_code": 15, "idx": 255}, {"size_code": 15, "idx": 255, "vaddr": (1 << 64) - 1}, {"rkey": 0},
                 {"rkey": 0xffffffff, "vaddr": 0xfffffffffffff001}, {"vaddr": 1, "idx": 255}):
        c = s.client()
        c.to_mpa()
        try:
            c.confirm(**over)
            c.link.client_llc()
            conn = c.finish()
            conn.send(b"hello" * 20, SOON)
            c.link.wait("its end, or a moment", lambda: c.link.ended, 0.3)
        except STRANGE:
            pass
        s.leave()


main()
