#!/usr/bin/env python3
"""A real smcrd's egress service and a client written in Python: first the correct client, then every wrong one."""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import pyiwarp as iw
import pysmc as smc
from smc_scene import MS, SOON, all_correct, decline_on, declined_back, how_it_ends, lie, scene_case, sends
from harness import Failure, check, equal, in_thread, main, same_bytes, set_reset_on_close, wait_until


# -- correct --


@scene_case("a correct client: data both ways, more connections on the group, half close, close, abort")
def _(s):
    all_correct(s, correct, mpa_kind)


def correct(s, kw):
    first = s.connected(s.peer(**kw))
    s.echoes(first, 100000)
    others = [s.connected(first.link.peer, first.link) for _ in range(2)]
    equal({c.link for c in others}, {first.link}, "one group")
    for c in (first, *others):
        s.echoes(c, 30000)
    half, closing = others
    half.send(b"last words")
    half.shutdown()
    same_bytes(half.recv(100), b"last words", "after D")
    half.wait_state(smc.DONE)
    half.close()
    closing.shutdown()
    closing.close()
    ends = list(s.echo.ends)
    c = s.connected(first.link.peer, first.link)
    c.abort()
    c.wait_state(smc.ABORT)
    wait_until(lambda: s.echo.ends[len(ends):] == ["reset"], "the server sees a reset")
    s.echoes(first, 10)
    first.shutdown()
    first.close()
    check(first.link.ended is None, f"the link ended: {first.link.ended}")


def mpa_kind(s, markers, crc, rtr):
    p = s.peer()
    p.mpa = iw.MpaFrame(markers=markers, crc=crc, enhanced=iw.Enhanced(rtr={rtr}))
    c = s.connected(p)
    s.echoes(c, 40000)
    equal(bool(c.link.ep.stream.markers_seen), markers, "markers")


# -- CLC --


def first_bytes(s, data, how="reset", why="no CLC message"):
    c = s.client()
    c.sock.sendall(data)
    equal(how_it_ends(c.sock), (how, b""), "the end")
    if why:
        s.wait_log(s.b, why)


def proposal(s, **over):
    p = s.peer()
    fields = {"peer_id": p.peer_id, "gid": p.gid, "mac": p.mac, "subnet": p.subnet, "ext": p.ext()}
    fields.update(over)
    return smc.clc_proposal(**fields)


def bad_proposal(s, change, why):
    first_bytes(s, change(proposal(s)), why=why)


def set_bytes(at, new):
    return lambda data: data[:at] + new + data[at + len(new):]


def set_end(new):
    return lambda data: data[:-len(new)] + new


def falls_back(s, diag, over):
    """A Proposal that is declined, then data by TCP."""
    c = s.client()
    c.propose(**over)
    declined(s, c, diag)


def declined(s, c, diag):
    decline_on(c.sock, diag)
    s.tcp_echoes(c.sock)
    s.wait_log(s.b, f"local_code={diag:#010x}")
    equal([x["mode"] for x in s.b.connections()].count("tcp"), 1, "mode of the connection")


@scene_case("first bytes that are no Proposal, and wrong Proposals")
def _(s):
    for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n", b"\0", smc.EYE[:3] + b"\xd8", smc.EYE + b"\x09",
                 iw.MpaFrame(enhanced=iw.Enhanced()).encode()):
        s.run(f"first bytes {data!r}", first_bytes, data.ljust(8, b"\0"))
    bad = "malformed CLC message"
    no_clc = "no CLC message"
    for name, change, why in (
            ("no eye catcher in front", set_bytes(0, b"SMCR"), no_clc),
            ("no eye catcher at the end", set_end(b"SMCR"), bad),
            ("type 0", set_bytes(4, b"\0"), no_clc),
            ("type 9", set_bytes(4, b"\x09"), no_clc),
            ("length 0", set_bytes(5, b"\0\0"), no_clc),
            ("length 7", set_bytes(5, b"\0\7"), no_clc),
            ("length 11", set_bytes(5, b"\0\x0b"), no_clc),
            ("length one short", lambda d: set_bytes(5, struct.pack(">H", len(d) - 1))(d), bad),
            ("length 65535", set_bytes(5, b"\xff\xff"), no_clc),
            ("offset beyond the end", set_bytes(38, b"\xff\xff"), bad),
            ("offset one more", set_bytes(38, b"\0\x29"), bad),
            ("offset 0", set_bytes(38, b"\0\0"), bad),
            ("9 prefixes", set_bytes(87, b"\x09"), bad),
            ("1 prefix that is not there", set_bytes(87, b"\x01"), bad)):
        s.run(f"Proposal: {name}", bad_proposal, change, why)
    for type in (smc.ACCEPT, smc.CONFIRM):
        s.run(f"type {type} for a Proposal", first_bytes, accept_like(s, type), "reset", "unexpected CLC message")


def accept_like(s, type):
    p = s.peer()
    return smc.clc_accept(type, p.peer_id, p.gid, p.mac, 5, 6, 1, 7, 0, 3, 1 << 20, 9)


@scene_case("Proposals that cannot lead to SMC-R fall back to TCP")
def _(s):
    s.run("without the smcrd extension", falls_back, smc.NO_DEVICE, {"ext": None})
    s.run("Linux' growth area without the extension", falls_back, smc.NO_DEVICE, {"growth": bytes(40), "low": 8,
                                                                               "version": 2})
    s.run("RoCE alone", falls_back, smc.NO_DEVICE, {"ext": smc.Ext(transports=smc.ROCE)})
    s.run("SMC-D alone", falls_back, smc.MODE_MISMATCH, {"version": 2, "low": 9})
    s.run("data right behind a Decline are not swallowed", decline_and_data)
    s.run("a Decline for a Proposal, byte by byte", decline_slowly)


def decline_and_data(s):
    c = s.client()
    c.sock.sendall(smc.clc_decline(bytes(8), smc.NO_DEVICE) + b"hello")
    equal(smc._read_exact(c.sock, 5, SOON), b"hello", "echo")
    s.tcp_echoes(c.sock)


def decline_slowly(s):
    c = s.client()
    for byte in smc.clc_decline(bytes(8), smc.NO_DEVICE):
        c.sock.sendall(bytes((byte,)))
        time.sleep(0.002)	# raw: the pace of a slow peer
    s.tcp_echoes(c.sock)


@scene_case("Proposals of another form that lead to SMC-R")
def _(s):
    v6 = [(bytes(15) + bytes((i,)), 64) for i in range(8)]
    for name, over in (("version 2 of Linux", {"version": 2, "low": 8}), ("8 IPv6 prefixes", {"v6": v6}),
                       ("another subnet", {"subnet": (bytes((10, 0, 0, 0)), 8)}),
                       ("a newer smcrd", {"ext": smc.Ext(version=9)}),
                       ("transports from the future", {"ext": smc.Ext(transports=0x7e)})):
        s.run(name, other_proposal, over)
    s.run("byte by byte", slow_proposal)


def other_proposal(s, over):
    c = s.client()
    c.propose(**over)
    c.read_accept()
    c.new_link()
    go_on(s, c)


def slow_proposal(s):
    c = s.client()
    for byte in smc.clc_proposal(c.peer.peer_id, c.peer.gid, c.peer.mac, c.peer.subnet, ext=c.peer.ext()):
        c.sock.sendall(bytes((byte,)))
    c.read_accept()
    c.new_link()
    go_on(s, c)


@scene_case("a client that stops, disconnects or declines at each step")
def _(s):
    for step in STEPS:
        for way in ("stop", "fin", "rst", "decline", "out of sync"):
            s.run(f"{step}: {way}", leave, step, way)


STEPS = ("nothing", "half a header", "half a proposal", "proposal", "accept", "mpa tcp", "mpa request", "mpa", "confirm",
         "confirm without mpa", "half a confirm", "confirm link", "add link")


def advance(s, c, step):
    """Goes on correctly up to and with `step`."""
    def reach(name):
        return STEPS.index(step) >= STEPS.index(name)
    if step == "nothing":
        return
    if step in ("half a header", "half a proposal"):
        c.sock.sendall(proposal(s)[:5 if step == "half a header" else 40])
        return
    c.propose()
    if not reach("accept"):
        return
    c.read_accept()
    c.new_link()
    if step == "mpa tcp":
        c.mpa_sock = iw.tcp_connect(c.mpa_at, source=c.peer.host)
        return
    if step == "mpa request":
        c.mpa_sock = iw.tcp_connect(c.mpa_at, source=c.peer.host)
        c.mpa_sock.sendall(c.mpa_request().encode()[:30])
        return
    if step == "confirm without mpa":
        c.confirm()
        return
    if reach("mpa"):
        c.connect_mpa()
    if step == "half a confirm":
        c.conn = c.link.new_conn(c.sock)
        c.sock.sendall(c.confirm_msg()[:30])
        return
    if reach("confirm"):
        c.confirm()
    if reach("confirm link"):
        m = c.link.next_llc(smc.CONFIRM_LINK)
        c.link.check_confirm_link(m)
        c.link.number = m.number
        c.link.send(c.link.confirm_link_msg(True))
    if reach("add link"):
        c.link.next_llc(smc.ADD_LINK)


def leave(s, step, way):
    c = s.client()
    c.mpa_sock = None
    advance(s, c, step)
    if way == "fin":
        c.sock.close()
    elif way == "rst":
        set_reset_on_close(c.sock)
        c.sock.close()
    elif way == "stop":
        stopped(s, c, step)
    elif step in ("half a header", "half a proposal", "half a confirm"):
        pass		# nothing can be said in the middle of a message
    else:
        c.decline(out_of_sync=way == "out of sync")
        after_decline(s, c, step)
    if c.mpa_sock:
        c.mpa_sock.close()


def stopped(s, c, step):
    if step == "add link":
        # Not answered: the group goes on with one link (RFC 7609 C.8).
        c.link.answers[smc.ADD_LINK] = None
        conn = c.finish()
        s.echoes(conn)
        return
    if step == "confirm without mpa":
        try:
            smc.clc_read(c.sock, SOON)
        except smc.Declined as e:
            check(e.diag in (0x02010000, 0x09990002), f"diagnosis {e.diag:#010x}")	# two timers, the same time
            s.tcp_echoes(c.sock)
            return
    how, data = how_it_ends(c.sock)
    equal(how, "reset", "the end")
    if step in ("nothing", "half a header", "half a proposal"):
        equal(data, b"", "bytes before the end")


def after_decline(s, c, step):
    if step == "proposal":
        # It chases the Proposal, which C.1 forbids; the Accept may be on its way.
        c.sock.settimeout(SOON)
        try:
            c.read_accept()
        except smc.Declined:
            raise Failure("declined back") from None
    elif step.startswith("confirm") or step == "add link":
        declined_back(c.sock)
    s.tcp_echoes(c.sock)
    s.wait_log(s.b, "peer_code=0x03030000")


# -- MPA --


@scene_case("the link's MPA connection: strangers, invalid tokens, a second one, errors before and after")
def _(s):
    for name, over in (("wrong token", {"token": 1}), ("wrong PSN", {"psn": 1}), ("version 0", {"version": 0})):
        s.run(f"{name}, then the right one", wrong_token, over)
    s.run("unknown QPN beside the right one", unknown_qpn)
    s.run("no private data", wrong_private, b"")
    s.run("private data of another link", wrong_private, b"hello".ljust(32))
    s.run("private data one byte short", wrong_private, None)
    s.run("a second connection with the token", second_mpa)
    s.run("IRD 0", ird_0)
    s.run("Terminate before the Confirm", terminate_early)
    s.run("MPA closed before the Confirm", mpa_gone_early)
    for step in ("confirm", "confirm link", "add link"):
        for decline in (False, True):
            s.run(f"link lost behind {step}, {'then a Decline' if decline else 'nothing else'}", lost_in_contact, step,
                  decline)
    s.run("MPA closed when established", mpa_gone, False)
    s.run("MPA reset when established", mpa_gone, True)
    s.run("Terminate when established", lambda s: broken_link(s, lambda c: c.link.ep.terminate(0, 0, 0), "RDMAP error"))


def rejected(c, request):
    try:
        iw.connect(c.mpa_at, request, timeout=SOON, source=c.peer.host).close()
    except (iw.Rejected, iw.Closed):
        return
    raise Failure(f"{request} was accepted")


def reached(s, step):
    c = s.client()
    c.mpa_sock = None
    advance(s, c, step)
    return c


def go_on(s, c):
    """From "accept" to data."""
    c.connect_mpa()
    c.confirm()
    c.link.client_llc()
    conn = c.finish()
    s.echoes(conn)
    return conn


def wrong_token(s, over):
    c = reached(s, "accept")
    rejected(c, c.mpa_request(**over))
    go_on(s, c)


def unknown_qpn(s):
    """It may be early: it waits a while to be claimed, and delays no other."""
    c = reached(s, "accept")
    other = in_thread(lambda: rejected(c, c.mpa_request(qpn=0x777777)))
    go_on(s, c)
    other.result()


def wrong_private(s, private):
    c = reached(s, "accept")
    request = c.mpa_request()
    request.private = request.private[:31] if private is None else private
    rejected(c, request)
    go_on(s, c)


def second_mpa(s):
    c = reached(s, "mpa")
    rejected(c, c.mpa_request())
    c.confirm()
    c.link.client_llc()
    s.echoes(c.finish())
    rejected(c, c.mpa_request())
    s.echoes(c.conn)


def ird_0(s):
    c = reached(s, "accept")
    request = c.mpa_request()
    request.enhanced = iw.Enhanced(ird=0)
    rejected(c, request)
    c.decline()
    s.tcp_echoes(c.sock)


def terminate_early(s):
    c = reached(s, "mpa")
    c.link.ep.terminate(0, 0, 0)
    c.decline()
    s.tcp_echoes(c.sock)


def mpa_gone_early(s):
    c = reached(s, "mpa")
    c.link.ep.close()
    time.sleep(0.05)	# raw: either order is in order
    c.confirm()
    # The server cannot chase its Accept; it answers the Confirm.
    try:
        smc.clc_read(c.sock, SOON)
    except smc.Declined:
        s.tcp_echoes(c.sock)


def lost_in_contact(s, step, decline):
    """The client may still decline (C.2); else the server breaks the connection off (C.7). A server that misses the CONFIRM
    LINK response declines at once."""
    c = reached(s, step)
    c.link.close(reset=True)
    try:
        smc.clc_read(c.sock, 0.1 if decline else SOON)
    except smc.Declined:
        check(step != "add link", "a Decline behind ADD LINK (C.3)")
    except iw.Timeout:
        c.decline()
        declined_back(c.sock)
    except iw.Closed as e:
        check(e.reset and not decline, f"the middle: {e}")
        return
    s.tcp_echoes(c.sock)


def mpa_gone(s, reset):
    c = s.echoing()
    ends = len(s.echo.ends)
    if reset:
        c.link.close(reset=True)
    else:
        c.link.ep.sock.shutdown(socket.SHUT_WR)
    equal(how_it_ends(c.middle), ("reset", b""), "the middle")
    wait_until(lambda: s.echo.ends[ends:] == ["reset"], "the server sees a reset")
    s.wait_log(s.b, "the peer reset the connection" if reset else "the peer closed the connection")


# -- LLC on an established link --


def broken_link(s, act, why):
    """act(conn) ends the link, and with it the connections of the group."""
    c = s.echoing()
    other = s.echoing(c.link.peer, c.link)
    ends = len(s.echo.ends)
    act(c)
    c.link.wait_ended(SOON)
    for x in (c, other):
        equal(how_it_ends(x.middle), ("reset", b""), "the middle")
    wait_until(lambda: s.echo.ends[ends:] == ["reset", "reset"], "the server sees resets")
    if why:
        s.wait_log(s.b, why)


def harmless(s, act):
    """act(conn) disturbs nothing."""
    c = s.echoing()
    act(c)
    probe(c.link)
    s.echoes(c, 3000)
    s.joined(c)


def probe(link):
    """TEST LINK is answered with the same data. Asked again: answers that would pile up are left out."""
    for turn in range(20):
        data = os.urandom(16)
        link.send(smc.llc_test_link(data))
        try:
            link.wait("answer to TEST LINK", lambda: any(m.type == smc.TEST_LINK and m.response and m.data == data
                                                         for m in link.llc_log), SOON / 20)
            return
        except iw.Timeout:
            pass
    raise Failure("TEST LINK is not answered")


LINK = (bytes(6), bytes(16), 1, 1)	# MAC, GID, QPN, number: unused
UNKNOWN = "unknown LLC message type"
MALFORMED = "malformed LLC message"
WRONG_SIDE = "LLC message from the wrong side"


@scene_case("LLC: invalid messages end the link, optional and repeated ones do not")
def _(s):
    for type in (0, 5, 0x0a, 0x25, 0x3f, 0x40):
        s.run(f"type {type:#x}", broken_link, sends(smc.llc(type)), UNKNOWN)
    for type in (0x80, 0x8a, 0xbf):
        s.run(f"type {type:#x}, which asks to be ignored", harmless, sends(smc.llc(type), smc.llc(type, smc.RESPONSE)))
    for length in (0, 43, 45, 255):
        s.run(f"length {length}", broken_link, sends(smc.llc(smc.TEST_LINK, length=length)), MALFORMED)
    for size in (0, 1, 2, 43, 45, 64):
        s.run(f"{size} bytes", broken_link, sends(smc.llc(smc.TEST_LINK, size=size)), MALFORMED if size else "malformed")
    s.run("TEST LINK response to nothing", broken_link, sends(smc.llc_test_link(response=True)),
          "unexpected TEST LINK response")
    s.run("CONFIRM LINK request from the client", broken_link, sends(smc.llc_confirm_link(*LINK, 1)), WRONG_SIDE)
    s.run("CONFIRM LINK response again", broken_link,
          lambda c: c.link.send(c.link.confirm_link_msg(True)), "unexpected CONFIRM LINK response")
    s.run("ADD LINK CONTINUATION", broken_link, sends(smc.llc(smc.ADD_LINK_CONT)), WRONG_SIDE)
    s.run("CONFIRM RKEY response to nothing", broken_link, sends(smc.llc_confirm_rkey(1, 2, flags=smc.RESPONSE)),
          "unexpected RKEY response")
    s.run("DELETE RKEY response to nothing", broken_link, sends(smc.llc_delete_rkey([1], smc.RESPONSE)),
          "unexpected RKEY response")
    s.run("CONFIRM RKEY CONTINUATION to nothing", broken_link,
          sends(smc.llc(smc.CONFIRM_RKEY_CONT, body=b"\1" + bytes(13))), "out of sequence")
    for count in (0, 9, 255):
        s.run(f"DELETE RKEY of {count}", broken_link,
              sends(smc.llc(smc.DELETE_RKEY, body=bytes((count, 0, 0, 0)) + bytes(36))), MALFORMED)
    s.run("CONFIRM RKEY with 8 other links", broken_link, sends(smc.llc(smc.CONFIRM_RKEY, body=b"\x08" + bytes(39))),
          MALFORMED)
    s.run("ADD LINK request from the client", harmless, sends(smc.llc_add_link(*LINK, 3, 0)))
    s.run("ADD LINK response to nothing", harmless, sends(smc.llc_add_link(*LINK, 3, 0, smc.RESPONSE)))
    s.run("DELETE LINK response to nothing", harmless, sends(smc.llc_delete_link(1, response=True)))
    s.run("TEST LINK many times", harmless, lambda c: [c.link.send(smc.llc_test_link()) for _ in range(500)])


@scene_case("LLC: DELETE LINK, CONFIRM RKEY, DELETE RKEY from the client, answered or not")
def _(s):
    s.run("DELETE LINK all", delete_all, smc.llc_delete_link(all=True))
    s.run("DELETE LINK of the last link", delete_all, smc.llc_delete_link(1))
    s.run("DELETE LINK of an unknown link", harmless, delete_unknown)
    s.run("CONFIRM RKEY", harmless, confirm_rkey)
    s.run("more RMBs than a group can have", harmless, many_rkeys)
    s.run("DELETE RKEY of unknown and used RMBs", harmless, delete_rkeys)
    s.run("ADD LINK accepted, though there is one link", add_link_taken, True)
    s.run("ADD LINK accepted, DELETE LINK not answered", add_link_taken, False)
    s.run("ADD LINK accepted for another path, RTokens sent", other_path, True)
    s.run("ADD LINK accepted for another path, no RTokens", other_path, False)
    s.run("CONFIRM LINK response names another link", wrong_confirm_link, {"qpn": 0x123})
    s.run("CONFIRM LINK response with another number", wrong_confirm_link, {"number": 9})
    s.run("CONFIRM LINK response with another GID", wrong_confirm_link, {"gid": bytes(16)})
    s.run("DELETE LINK all for CONFIRM LINK", early_llc, smc.llc_delete_link(all=True))
    s.run("unknown message for CONFIRM LINK", early_llc, smc.llc(9, 0xff))
    s.run("a request of the server's kind for CONFIRM LINK", early_llc, smc.llc_confirm_link(*LINK, 1))


def delete_all(s, msg):
    c = s.echoing()
    c.link.answers[smc.DELETE_LINK] = None
    c.link.send(msg)
    m = c.link.wait_llc(smc.DELETE_LINK, False, timeout=SOON)
    check(m.all, f"{m}: not for all links")
    equal(how_it_ends(c.middle), ("reset", b""), "the middle")
    c.link.wait_ended(SOON)


def delete_unknown(c):
    c.link.send(smc.llc_delete_link(77))
    m = c.link.wait_llc(smc.DELETE_LINK, timeout=SOON)
    equal((m.response, m.number, m.reason), (True, 77, smc.UNKNOWN_LINK), "answer")


def confirm_rkey(c):
    msg = smc.llc_confirm_rkey(0x11223344, 1 << 30)
    c.link.send(msg)
    m = c.link.wait_llc(smc.CONFIRM_RKEY, True, timeout=SOON)
    same_bytes(m.raw, msg[:3] + b"\x80" + msg[4:], "answer")
    c.link.send(msg)		# the same RMB again is the same RMB
    check(not c.link.wait_llc(smc.CONFIRM_RKEY, True, 2, SOON).negative, "negative")
    c.link.send(smc.llc_delete_rkey([0x11223344]))
    check(not c.link.wait_llc(smc.DELETE_RKEY, True, timeout=SOON).negative, "negative")


def many_rkeys(c):
    for i in range(260):
        c.link.send(smc.llc_confirm_rkey(0x1000 + i, 1 << 30))
        c.link.wait_llc(smc.CONFIRM_RKEY, True, i + 1, SOON)
    got = [m.negative for m in c.link.llc_log if m.type == smc.CONFIRM_RKEY and m.response]
    equal((got[:200], got[-1]), ([False] * 200, True), "answers")
    equal(got.count(False), 254, "RMBs taken, besides the first")


def delete_rkeys(c):
    c.link.send(smc.llc_delete_rkey([5, c.link.rmb_key, 6]))
    m = c.link.wait_llc(smc.DELETE_RKEY, True, timeout=SOON)
    equal((m.negative, m.mask, m.rkeys), (True, 0xe0, (5, c.link.rmb_key, 6)), "answer")


def add_link_taken(s, answered):
    """RFC 7609 C.7.1: an answer that makes a parallel link; data only after the DELETE LINK is answered."""
    c = reached(s, "add link")
    m = c.link.llc_log[-1]
    ours = m.raw[:4] + c.peer.mac + m.raw[10:12] + c.peer.gid + m.raw[28:]
    c.link.send(smc.as_response(m, raw=ours))
    m = c.link.next_llc(smc.DELETE_LINK, SOON)
    equal((m.all, m.response), (False, False), "DELETE LINK")
    if answered:
        c.link.send(smc.as_response(m))
        s.echoes(c.finish())
    else:
        equal(how_it_ends(c.sock), ("reset", b""), "the middle")


def other_path(s, sent):
    """The first connection's RMB is in use from the Confirm on, whether or not the client names it for the new link, which
    is then not confirmed: the connection goes on over the first one."""
    c = reached(s, "add link")
    m = c.link.llc_log[-1]
    gid = c.peer.gid[:15] + bytes((c.peer.gid[15] ^ 1,))
    c.link.send(m.raw[:3] + bytes((m.flags | smc.RESPONSE,)) + b"\x02" + os.urandom(5) + m.raw[10:12] + gid + m.raw[28:])
    c.link.next_llc(smc.ADD_LINK_CONT, SOON)
    rtoken = struct.pack(">BBxxIIQ", m.number, 1, c.link.rmb_key, 0x1234, 0x5678000)
    c.link.send(smc.llc(smc.ADD_LINK_CONT, smc.RESPONSE, rtoken if sent else bytes((m.number, 0))))
    m = c.link.next_llc(smc.DELETE_LINK, SOON)
    equal((m.all, m.response), (False, False), "DELETE LINK")
    c.link.send(smc.as_response(m))
    conn = c.finish()
    s.echoes(conn)
    s.echoes(s.connected(c.peer, c.link))
    s.echoes(conn)


def wrong_confirm_link(s, over):
    c = reached(s, "confirm")
    c.link.number = c.link.next_llc(smc.CONFIRM_LINK).number
    c.link.send(c.link.confirm_link_msg(True, **over))
    equal(how_it_ends(c.sock)[0], "reset", "the middle")
    s.wait_log(s.b, "CONFIRM LINK response names another link")


def early_llc(s, msg):
    c = reached(s, "confirm")
    c.link.next_llc(smc.CONFIRM_LINK)
    c.link.send(msg)
    equal(how_it_ends(c.sock)[0], "reset", "the middle")


@scene_case("TEST LINK: answered, answered incorrectly, not answered", smcr={"test_link_interval": f"{MS}ms"})
def _(s):
    s.run("answered", tested)
    s.run("with other data", broken_test, lambda link, m: link.send(smc.llc_test_link(bytes(16), True)),
          "TEST LINK response with other data")
    s.run("not answered", broken_test, None, "TEST LINK without an answer")
    s.run("answered twice", broken_test, lambda link, m: [link.send(smc.llc_test_link(m.data, True))] * 2 and
          link.send(smc.llc_test_link(m.data, True)), "unexpected TEST LINK response")


def tested(s):
    c = s.connected()
    for n in (1, 2):
        c.link.wait_llc(smc.TEST_LINK, False, n, SOON)
    s.echoes(c)


def broken_test(s, answer, why):
    c = s.connected()
    c.link.answers[smc.TEST_LINK] = answer
    c.link.wait_llc(smc.TEST_LINK, False, timeout=SOON)
    equal(how_it_ends(c.middle), ("reset", b""), "the middle")
    s.wait_log(s.b, why)


# -- data path --


@scene_case("writes outside of a region: Terminate, and the link ends")
def _(s):
    for name, why, act in (
            ("unknown STag", (1, 1, 0), lambda c: c.write_at(0, b"x", rkey=c.remote.rkey ^ 0x5a5a)),
            ("behind the RMB", (1, 1, 1), lambda c: c.write_at(1 << 30, b"x")),
            ("before the RMB", (1, 1, 1), lambda c: c.write_at(-c.remote_at + c.remote.vaddr - 1, b"xx")),
            ("address wraps", (1, 1, 3), lambda c: c.link.ep.write(c.remote.rkey, (1 << 64) - 1, b"xx")),
            ("Read of the RMB", (0, 1, 2), lambda c: c.link.ep.read(1, 0, 4, c.remote.rkey, c.remote_at)),
            ("Send of 2000 bytes", (1, 2, 5), lambda c: c.link.ep.send(bytes(2000)))):
        s.run(name, bad_write, act, why)


def bad_write(s, act, why):
    def and_look(c):
        with c.link.cond:
            act(c)
        end = c.link.wait_ended(SOON)
        check(isinstance(end, iw.Term) and end.why == why, f"Terminate {why}, not {end}")
    broken_link(s, and_look, None)


def aborted(s, act, why, eye_catcher=False):
    """act(conn) ends that connection alone: another one on the same link goes on."""
    c = s.echoing(s.peer(eye_catcher=eye_catcher))
    other = s.echoing(c.link.peer, c.link)
    ends = len(s.echo.ends)
    with c.link.cond:
        act(c)
    # Behind D the server has seen the end of the data, and may have been through with it all: then C came, not A.
    done = c.state & smc.DONE
    c.link.wait("A", lambda: c.peer_state & (smc.ABORT | (smc.CLOSED if done else 0)), SOON)
    c.abort()
    check(how_it_ends(c.middle)[0] == "reset" or done, "the middle is not reset")
    wait_until(lambda: s.echo.ends[ends:] in (["reset"], ["closed"] if done else 0), "the server sees a reset")
    s.wait_log(s.b, why)
    c.link.forget(c)
    s.echoes(other, 3000)
    s.joined(c)


PRODUCER = "producer cursor outside the window"
CONSUMER = "consumer cursor beyond what was sent"


@scene_case("CDC messages with false values end their connection only")
def _(s):
    for name, over, why in (
            ("producer beyond the window", {"prod": lambda c: c.tx.cursor(c.sent + c.tx.usable + 1)}, PRODUCER),
            ("producer a wrap ahead", {"prod": (2, 0)}, PRODUCER),
            ("producer at the size", {"prod": lambda c: (0, c.remote.elem_size)}, PRODUCER),
            ("producer offset of all ones", {"prod": (0, 0xffffffff)}, PRODUCER),
            ("consumer beyond what was sent", {"cons": lambda c: c.rx.cursor(c.tail + 1)}, CONSUMER),
            ("consumer a wrap ahead", {"cons": lambda c: (1, c.tail)}, CONSUMER),
            ("consumer at the size", {"cons": lambda c: (0, c.link.peer.elem_size)}, CONSUMER),
            ("consumer offset of all ones", {"cons": (0, 0xffffffff)}, CONSUMER)):
        s.run(name, aborted, lie(**over), why)
    s.run("data after D", aborted, lambda c: (c.send_cdc(state=smc.DONE), lie(prod=(0, c.sent + 1))(c)),
          "data after the end of data")
    s.run("failover message for what never came", aborted,
          lambda c: c.send_cdc(flags=smc.FAILOVER, seq=c.seq + 5, prod=(0, 0), cons=(0, 0)), "data lost in a failover")
    s.run("producer within the eye catcher", aborted, lie(prod=(1, 3)), PRODUCER, True)
    s.run("producer before the eye catcher ends", aborted, lie(prod=(0, 0)), PRODUCER, True)
    s.run("eye catcher overwritten", aborted, overwrite_eye, "eye catcher of the RMB element overwritten", True)


def overwrite_eye(c):
    c.write_at(0, b"oops")
    c.sent += 1
    c.send_cdc()


@scene_case("unknown CDC messages have no effect")
def _(s):
    s.run("unknown token", harmless, lambda c: c.link.send(smc.Cdc(1, 0x31337).encode()))
    s.run("the witness' token", harmless, lambda c: [c.link.send(smc.Cdc(1, n, state=smc.ABORT).encode())
                                                    for n in range(1, 40) if n != c.remote.token])
    s.run("an older sequence", harmless, lambda c: c.link.send(
        smc.Cdc(c.seq - 1, c.remote.token, (7, 7), (9, 9), state=smc.ABORT).encode()))
    s.run("43 bytes", harmless, lambda c: c.link.send(c.cdc()[:43]))
    s.run("the same again", harmless, lambda c: [c.link.send(m) for m in [c.cdc()] * 3])
    s.run("reserved bits", harmless, lambda c: c.link.send(c.cdc(flags=7)[:25] + b"\x1f" + b"\xff" * 18))
    s.run("cursors that move back", harmless, lambda c: c.send_cdc(prod=(0, 0), cons=(0, 0)))
    s.run("cursors of 40000 wraps ago", harmless, lambda c: c.send_cdc(prod=(40000, 10), cons=(40000, 10)))


@scene_case("ends that the peer does not complete, and messages after the end")
def _(s):
    s.run("abort that is not answered", abort_unanswered)
    s.run("CDC after A", after_end, smc.ABORT)
    s.run("CDC after C", after_end, smc.CLOSED)
    s.run("D, and never C", never_closed)
    s.run("C at once, with data on its way", closed_early)
    s.run("FIN on the middle, nothing else", middle_ends, False)
    s.run("RST on the middle, and no answer to TEST LINK", middle_ends, True)
    s.run("RST on the middle, and the link answers", middle_forgotten)
    s.run("bytes on the middle when established", middle_bytes)
    s.run("peer that never reads", never_reads)


def abort_unanswered(s):
    c = s.echoing()
    c.send_cdc(prod=(0, 0xffffffff))
    c.wait_state(smc.ABORT, SOON)
    wait_until(lambda: len(s.b.connections()) == 1, "the connection is given up", SOON)
    # The element is in quarantine; the group lives.
    s.joined(c)


def after_end(s, bit):
    c = s.echoing()
    c.send_cdc(state=bit)
    for _ in range(20):
        c.send_cdc(prod=(0, 999), cons=(0, 77))
    c.wait_state(smc.ABORT if bit == smc.ABORT else smc.CLOSED, SOON) if bit == smc.ABORT else how_it_ends(c.middle)
    s.joined(c)


def never_closed(s):
    c = s.echoing()
    c.shutdown()
    c.wait_state(smc.DONE, SOON)
    how, _ = how_it_ends(c.middle)
    s.joined(c)


def closed_early(s):
    c = s.connected()
    c.send(bytes(5000))
    c.send_cdc(state=smc.CLOSED)
    how_it_ends(c.middle)
    s.joined(c)


def middle_ends(s, reset):
    c = s.echoing()
    ends = len(s.echo.ends)
    if reset:
        set_reset_on_close(c.middle)
        c.link.answers[smc.TEST_LINK] = None
    c.middle.close()
    c.wait_state(smc.ABORT, SOON)
    c.abort()
    wait_until(lambda: s.echo.ends[ends:] == ["reset"], "the server sees a reset")
    c.link.forget(c)
    if not reset:
        s.joined(c)


def middle_forgotten(s):
    """As a firewall does that knows the connection no longer."""
    c = s.echoing()
    set_reset_on_close(c.middle)
    c.middle.close()
    c.link.wait_llc(smc.TEST_LINK, False, timeout=SOON)
    time.sleep(0.3)	# raw: longer than fin_grace
    s.echoes(c)


def middle_bytes(s):
    """Only FIN may come there now; what counts is that no byte of it reaches the server."""
    c = s.echoing()
    c.middle.sendall(b"not by RDMA")
    try:
        s.echoes(c, 100)
        s.echoes(c, 100)
    except smc.SmcError:
        check(c.peer_state & smc.ABORT, f"ended otherwise than by abort: {c.peer_state:#x}")
        c.abort()


def never_reads(s):
    c = s.connected()
    fill = in_thread(lambda: c.send(bytes(1 << 20), 1))
    try:
        fill.result()
    except (iw.Timeout, smc.SmcError):
        pass
    c.link.wait(f"{c.rx.usable} bytes, all that there is room for", lambda: c.head == c.rx.usable)
    s.joined(c)
    c.abort()
    c.wait_state(smc.ABORT, SOON)


# -- further connections on a group --


@scene_case("wrong Confirms: first contact and on an existing group")
def _(s):
    names_link = "Confirm names a link that is not in the group"
    names_rmb = "Confirm names an RMB that was never confirmed"
    for name, over, why in (
            ("QPN of no link", {"qpn": 0x777}, names_link), ("another GID", {"gid": bytes(16)}, names_link),
            ("another MAC", {"mac": b"\2" + bytes(5)}, names_link), ("an unknown rkey", {"rkey": 0x777}, names_rmb),
            ("an element of another size", {"size_code": 1}, names_rmb),
            ("element 0", {"idx": 0}, "malformed CLC message"),
            ("another peer id", {"peer_id": bytes(8)}, "unexpected CLC message"),
            ("length one more", {"length": 97}, None), ("no eye catcher at the end", {"tail": b"abcd"}, "malformed"),
            ("type Accept", {"type": smc.ACCEPT}, "unexpected CLC message"),
            ("type 9", {"type": 9}, "no CLC message")):
        s.run(f"existing group: {name}", wrong_confirm, over, why)
    for name, over in (("MTU code 0", {"mtu_code": 0}), ("MTU code 9", {"mtu_code": 9})):
        s.run(f"first contact: {name}", confirm_declined, over)
    for name, over in (("element 0", {"idx": 0}), ("another peer id", {"peer_id": bytes(8)}),
                       ("no eye catcher in front", {"eye": b"abcd"}), ("length 67", {"length": 67})):
        s.run(f"first contact: {name}", confirm_reset, over)
    s.run("an element that is in use (4.4.2)", conflict)
    s.run("as many connections as elements, again and again", churn)
    s.run("Decline for an Accept on an existing group", subsequent_decline, False)
    s.run("Decline, out of sync, for an Accept on an existing group", subsequent_decline, True)
    s.run("Decline, out of sync, and the group's link does not answer", subsequent_decline, True, False)


@scene_case("elements that the client does not release are bounded", smcr={"quarantine_max": 8})
def _(s):
    s.run("silence for the Confirm", kept_back, b"")
    s.run("garbage for the Confirm", kept_back, b"garbage for a Confirm")


def kept_back(s, last_words):
    """The server cannot know whether such a client will still write into its element, so it keeps that back; with so many the
    group takes no more, and the next connection begins another one. What was there goes on."""
    first = s.echoing()
    for _ in range(8):
        c = s.client(first.link.peer, first.link)
        c.propose()
        check(not c.read_accept().first, "the group has room, but takes no connection")
        c.sock.sendall(last_words)
    for c in s.open[-8:]:
        equal(how_it_ends(c.sock)[0], "reset", "the middle")
    kept = [x["quarantined"] for x in s.b.ctl("rmbs")["rmbs"] if x["side"] == "local"]
    equal(sum(kept), 8, "elements kept back")
    refused = s.b.counters()["refused_quarantine"]
    c = s.client(first.link.peer)
    c.propose()
    check(c.read_accept().first, "one more element of the group is given away")
    check(s.b.counters()["refused_quarantine"] > refused, "it was not counted")
    c.new_link()
    go_on(s, c)
    s.echoes(first)


@scene_case("a peer's id gives no access to its group")
def _(s):
    for way in ("decline", "out of sync", "garbage", "silence"):
        for same_gid in (False, True):
            s.run(f"{way}, {'also its GID' if same_gid else 'nothing else'}", foreign_id, way, same_gid)


def foreign_id(s, way, same_gid):
    """A stranger at another address, with all that the victim sends in clear."""
    victim = s.echoing()
    thief = s.peer()
    thief.host = "127.0.0.1"
    thief.peer_id = victim.link.peer.peer_id
    if same_gid:
        thief.gid, thief.mac = victim.link.peer.gid, victim.link.peer.mac
    c = s.client(thief)
    c.propose()
    a = c.read_accept()
    check(a.first, "the stranger was offered the victim's group")
    check((a.qpn, a.rkey) != (victim.remote.qpn, victim.remote.rkey), "the stranger got the victim's link and RMB")
    if way in ("decline", "out of sync"):
        c.decline(out_of_sync=way == "out of sync")
        s.tcp_echoes(c.sock)
    else:
        if way == "garbage":
            c.sock.sendall(b"garbage for a Confirm")
        equal(how_it_ends(c.sock)[0], "reset", "the stranger's middle")
    s.echoes(victim)
    s.echoes(s.connected(victim.link.peer, victim.link))
    s.echoes(victim)


def wrong_confirm(s, over, why):
    first = s.connected()
    c = s.client(first.link.peer, first.link)
    c.propose()
    check(not c.read_accept().first, "first contact though there is a group")
    c.confirm(**over)
    equal(how_it_ends(c.sock)[0], "reset", "the middle")
    if why:
        s.wait_log(s.b, why)
    s.echoes(first)


def confirm_declined(s, over):
    c = reached(s, "mpa")
    c.confirm(**over)
    decline_on(c.sock)
    s.tcp_echoes(c.sock)


def confirm_reset(s, over):
    c = reached(s, "mpa")
    c.confirm(**over)
    equal(how_it_ends(c.sock)[0], "reset", "the middle")


def conflict(s):
    """A Confirm gives an element away that an older connection has: that one is reset, the new one works."""
    old = s.echoing()
    ends = len(s.echo.ends)
    c = s.client(old.link.peer, old.link)
    c.propose()
    c.read_accept()
    c.conn = old.link.new_conn(c.sock)
    c.conn.idx, c.conn.elem_at = old.idx, old.elem_at
    c.confirm()
    c.finish()
    equal(how_it_ends(old.middle), ("reset", b""), "the old middle")
    wait_until(lambda: s.echo.ends[ends:] == ["reset"], "the server sees a reset")
    s.wait_log(s.b, "gave the element to another connection")
    s.echoes(c.conn)
    check(not old.peer_state, "a message for the old connection")


def churn(s):
    first = s.connected()
    for turn in range(3):
        conns = [s.connected(first.link.peer, first.link) for _ in range(first.link.peer.elems - 1)]
        for c in conns:
            s.echoes(c, 300)
        for c in conns:
            c.shutdown()
            c.close()


def subsequent_decline(s, out_of_sync, alive=True):
    """Out of sync is asked of the group's links: one that answers shows that the Decline meant nothing."""
    first = s.connected()
    if not alive:
        first.link.answers[smc.TEST_LINK] = None
    s.echoes(first, 10)
    c = s.client(first.link.peer, first.link)
    c.propose()
    c.read_accept()
    c.decline(out_of_sync=out_of_sync)
    s.tcp_echoes(c.sock)
    if out_of_sync:
        first.link.wait_llc(smc.TEST_LINK, False, timeout=SOON)
    if not alive:
        equal(how_it_ends(first.middle), ("reset", b""), "connections of the group")
        first.link.wait_ended(SOON)
    else:
        s.echoes(first)


if __name__ == "__main__":
    main(one_worker="its peer has one link group")
