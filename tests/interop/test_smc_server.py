#!/usr/bin/env python3
"""A real smcrd's ingress service and a server written in Python: first the correct server, then every wrong one."""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import pyiwarp as iw
import pysmc as smc
from smc_scene import SOON, Scene, all_correct, decline_on, declined_back, how_it_ends, lie, scene_case, sends
from harness import (Failure, case, check, equal, hostport, in_thread, main, pattern, recv_exact, same_bytes, set_reset_on_close,
                     wait_until)


def talk(app, conn, n=3000):
    """n bytes each way between the application and the strange server."""
    data = pattern(n, n)
    app.settimeout(SOON)
    task = in_thread(lambda: app.sendall(data))
    same_bytes(conn.recv(n, SOON), data, "from the client")
    task.result()
    task = in_thread(lambda: conn.send(data, SOON))
    same_bytes(recv_exact(app, n), data, "from the server")
    task.result()
    check(conn.link.ended is None, f"the link ended: {conn.link.ended}")


def talking(s):
    """s.served(), and some bytes went each way."""
    app, conn = s.served()
    talk(app, conn, 10)
    return app, conn


def tcp_talk(app, sock):
    """By TCP, after a fallback: nothing lost, nothing added."""
    app.settimeout(SOON)
    app.sendall(b"hello")
    equal(smc._read_exact(sock, 5, SOON), b"hello", "from the client")
    sock.sendall(b"world")
    same_bytes(recv_exact(app, 5), b"world", "from the server")


# -- correct --


@scene_case("a correct server: data both ways, more connections on the group, half close, close, abort")
def _(s):
    all_correct(s, correct, mpa_kind)


def correct(s, kw):
    s.fresh_server(**kw)
    app, first = s.served()
    talk(app, first, 100000)
    pairs = [s.served() for _ in range(2)]
    equal({c.link for _, c in pairs}, {first.link}, "one group")
    for a, c in pairs:
        talk(a, c, 30000)
    (a1, half), (a2, closing) = pairs
    a1.sendall(b"last words")
    a1.shutdown(socket.SHUT_WR)
    half.wait_state(smc.DONE, SOON)
    same_bytes(half.recv(100), b"last words", "before D")
    half.send(b"answer")
    half.shutdown()
    same_bytes(recv_exact(a1, 100), b"answer", "after D")
    half.close()
    closing.shutdown()
    equal(a2.recv(1), b"", "end at the client")
    a2.close()
    closing.close()
    a3, c = s.served()
    c.abort()
    equal(how_it_ends(a3), ("reset", b""), "the client")
    c.wait_state(smc.ABORT, SOON)
    a4, c = s.served()
    talk(a4, c, 10)
    set_reset_on_close(a4)
    a4.close()
    c.wait_state(smc.ABORT, SOON)
    c.abort()
    talk(app, first, 10)


def mpa_kind(s, markers, crc, rtr):
    app, v = s.proposed()
    v.send_accept()
    v.accept_mpa(markers=markers, crc=crc, rtr={rtr})
    v.read_confirm()
    v.link.server_llc()
    talk(app, v.finish(), 40000)
    equal(bool(v.link.ep.stream.markers_seen), markers, "markers")


# -- servers that stop, go away or decline --

STEPS = ("nothing", "half an accept", "accept", "mpa tcp", "mpa", "confirm", "confirm link", "add link")


@scene_case("a server that stops, disconnects or declines at each step")
def _(s):
    for step in STEPS:
        for way in ("stop", "fin", "rst", "decline", "out of sync"):
            # C.1: no Decline may chase an Accept; and none comes in the middle of a message, or after C.3's point.
            if way in ("decline", "out of sync") and step in ("accept", "mpa tcp", "half an accept", "mpa", "add link"):
                continue
            s.run(f"{step}: {way}", leave, step, way)


@scene_case("out of sync, without fallback: the client retries once as first contact (C.4)",
            service={"fallback": "refuse"})
def _(s):
    s.run("once", afresh, 1)
    s.run("again and again", afresh, 2)
    s.run("another Decline", refused)


def afresh(s, times):
    app, v = s.serving()
    for turn in range(times):
        v.read_proposal()
        v.decline(out_of_sync=True)
        equal(how_it_ends(v.sock)[0], "closed" if turn == 0 else "reset", "the middle")
        if turn == 0:
            v = s.next_serving()
    if times == 1:
        talk(app, v.run())
    else:
        equal(how_it_ends(app), ("reset", b""), "the client")


def refused(s):
    app, v = s.proposed()
    v.decline()
    equal(how_it_ends(app), ("reset", b""), "the client")


def advance(s, v, step):
    def reach(name):
        return STEPS.index(step) >= STEPS.index(name)
    v.read_proposal()
    v.mpa_sock = None
    if step == "nothing":
        return
    if step == "half an accept":
        v.conn = v.link.new_conn(v.sock)
        v.sock.sendall(v.accept_msg()[:30])
        return
    v.send_accept()
    if step == "mpa tcp":
        v.mpa_sock = v.server.mpa.accept_tcp()
        return
    if reach("mpa"):
        v.accept_mpa()
    if reach("confirm"):
        v.read_confirm()
    if reach("confirm link"):
        v.link.number = 1
        v.link.send(v.link.confirm_link_msg(False))
        v.link.check_confirm_link(v.link.next_llc(smc.CONFIRM_LINK))
    if reach("add link"):
        v.link.send(smc.llc_add_link(v.peer.mac, v.peer.gid, v.link.qpn, 2, v.peer.mtu_code, v.link.psn))
        check(v.link.next_llc(smc.ADD_LINK).rejected, "second link not rejected")


def leave(s, step, way):
    app, v = reached(s, step)
    if way == "stop":
        stopped(s, app, v, step)
    elif way in ("fin", "rst"):
        if way == "rst":
            set_reset_on_close(v.sock)
        v.sock.close()
        how, data = how_it_ends(app)
        # While MPA is being connected the middle is not read.
        check(how == "reset" or (how == "closed" and step in ("accept", "mpa tcp")), f"the client: {how}")
        equal(data, b"", "bytes at the client")
    else:
        v.decline(out_of_sync=way == "out of sync")
        if step in ("confirm", "confirm link"):
            declined_back(v.sock)
        tcp_talk(app, v.sock)
        s.wait_log(s.a, "peer_code=0x03030000")
        if way == "out of sync":
            s.wait_log(s.a, "out_of_sync=yes")
    if v.mpa_sock:
        v.mpa_sock.close()


def stopped(s, app, v, step):
    if step in ("accept", "mpa tcp"):
        # The client's own connect times out: that is a clean Decline.
        declined_by_client(s, app, v, 0x09990002)
        return
    if step == "confirm link":
        # No ADD LINK: goes on with one link.
        talk(app, v.finish())
        return
    if step == "add link":
        talk(app, v.finish())
        return
    equal(how_it_ends(app), ("reset", b""), "the client")
    equal(how_it_ends(v.sock)[0], "reset", "the middle")


def declined_by_client(s, app, v, diag, answer=False):
    """answer: both sides may decline by then, so the server's Decline follows."""
    decline_on(v.sock, diag)
    if answer:
        v.decline(smc.PEER_DECLINED)
    tcp_talk(app, v.sock)
    s.wait_log(s.a, f"local_code={diag:#010x}")


# -- Accepts --


@scene_case("invalid Accepts")
def _(s):
    malformed = "malformed CLC message"
    # First: of the many lines of what follows the log tells only some.
    s.run("a closed MPA port is named", accept_declined, {"ext": smc.Ext(mpa_port=1)}, 0x09990002,
          "detail=\"the peer's MPA port refuses connections\" mpa_peer=" + hostport(s.t.addr, 1))
    for name, over, why in (
            ("no eye catcher in front", {"eye": b"SMCR"}, "no CLC message"), ("no eye catcher at the end", {"tail": b"SMCR"}, malformed),
            ("length 67", {"length": 67}, "no CLC message"), ("length 0", {"length": 0}, "no CLC message"),
            ("length 65535", {"length": 65535}, "no CLC message"), ("type Confirm", {"type": smc.CONFIRM}, "unexpected CLC message"),
            ("type Proposal", {"type": smc.PROPOSAL}, malformed), ("type 7", {"type": 7}, "no CLC message"),
            ("element 0", {"idx": 0}, malformed)):
        s.run(name, wrong_accept, over, why)
    s.run("application data", other_bytes, b"220 mail.example.com ESMTP\r\n")
    s.run("HTTP", other_bytes, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    s.run("an MPA reply", other_bytes, iw.MpaFrame(True).encode())
    for name, over, diag in (
            ("MTU code 0", {"mtu_code": 0}, 0x03000000), ("MTU code 6", {"mtu_code": 6}, 0x03000000),
            ("without the extension: RoCE", {"ext": None}, 0x03030000),
            ("RoCE in the extension", {"ext": smc.Ext(transports=smc.ROCE)}, 0x03030000),
            ("no MPA port", {"ext": smc.Ext(mpa_port=0)}, 0x09990002),
            ("a closed MPA port", {"ext": smc.Ext(mpa_port=1)}, 0x09990002),
            ("version 3", {"version": 3}, 0x030c0000), ("an existing group that is not there", {"first": False}, smc.SYNC)):
        s.run(name, accept_declined, over, diag)
    s.run("byte by byte", slow_accept)


def wrong_accept(s, over, why):
    app, v = s.proposed()
    v.send_accept(**over)
    equal(how_it_ends(app), ("reset", b""), "the client")
    equal(how_it_ends(v.sock), ("reset", b""), "the middle")
    if why:
        s.wait_log(s.a, why)


def other_bytes(s, data):
    app, v = s.proposed()
    v.sock.sendall(data)
    equal(how_it_ends(app), ("reset", b""), "the client sees nothing of it")
    s.wait_log(s.a, "no CLC message")


@case("a third party's address in an Accept: no connect to it, unless mpa_peers allows it")
def _(t):
    # A third party, in no network that a device of the daemon is in.
    third = socket.socket()
    t.later(third.close)
    third.bind(("127.99.99.99", 0))	# raw: held from here on
    third.listen(10)
    third.settimeout(0.3)	# raw: for what must not come
    s = Scene(t)
    port = third.getsockname()[1]
    gid = bytes(10) + b"\xff\xff" + socket.inet_aton("127.99.99.99")
    s.run("Accept", accept_declined, {"gid": gid, "ext": smc.Ext(mpa_port=port)}, 0x030e0000,
          f'detail="the RDMA address that the server names is not allowed (mpa_peers)" mpa_peer=127.99.99.99:{port}')
    s.finish()
    equal(s.a.counters()["refused_mpa_peers"] >= 1, True, "counted")
    try:
        third.accept()
        raise Failure("a connection to the third party")
    except TimeoutError:
        pass
    # With leave to go there it does.
    s = Scene(t, smcr={"mpa_peers": ["127.99.99.0/24"]})
    s.run("allowed", sent_to, third, gid, port)
    s.finish()


def sent_to(s, third, gid, port):
    app, v = s.proposed()
    v.send_accept(gid=gid, ext=smc.Ext(mpa_port=port))
    third.settimeout(SOON)
    third.accept()[0].close()
    declined_by_client(s, app, v, 0x09990002)


def accept_declined(s, over, diag, words=None):
    app, v = s.proposed()
    v.send_accept(**over)
    equal(decline_on(v.sock, diag).out_of_sync, diag == smc.SYNC, "out of sync")
    tcp_talk(app, v.sock)
    if words:
        s.wait_log(s.a, words)
        reason = next(c["reason"] for c in s.a.connections() if c["service"] == "evil")
        check(reason["detail"] in words and reason["mpa_peer"] in words, f"smcrctl connections: {reason}")


def slow_accept(s):
    app, v = s.proposed()
    v.conn = v.link.new_conn(v.sock)
    for byte in v.accept_msg():
        v.sock.sendall(bytes((byte,)))
    v.accept_mpa()
    v.read_confirm()
    v.link.server_llc()
    talk(app, v.finish())


# -- MPA --


@scene_case("invalid MPA replies: a Decline, data by TCP")
def _(s):
    reply = iw.MpaFrame(True, enhanced=iw.Enhanced(), private=smc.Pdata().encode())
    for name, data in (
            ("garbage", b"HTTP/1.1 400 Bad Request\r\n\r\n"), ("a Request", iw.MpaFrame(enhanced=iw.Enhanced()).encode()),
            ("revision 0", reply.encode()[:17] + b"\0" + reply.encode()[18:]),
            ("revision 3", reply.encode()[:17] + b"\3" + reply.encode()[18:]),
            ("unenhanced", iw.MpaFrame(True, private=reply.private).encode()),
            ("PD_Length 513", reply.encode(pd_length=513)), ("PD_Length 0, S set", reply.encode(pd_length=0)[:20]),
            ("rejected", iw.MpaFrame(True, reject=True, enhanced=iw.Enhanced(), private=smc.Pdata(verdict=2).encode()).encode()),
            ("rejected without a word", iw.MpaFrame(True, reject=True, enhanced=iw.Enhanced()).encode()),
            ("nothing", None), ("reset", False), ("half a reply", reply.encode()[:30]),
            ("no peer-to-peer mode", iw.MpaFrame(True, enhanced=iw.Enhanced(p2p=False, rtr=()), private=reply.private).encode()),
            ("IRD 0", iw.MpaFrame(True, enhanced=iw.Enhanced(ird=0), private=reply.private).encode()),
            ("no private data", iw.MpaFrame(True, enhanced=iw.Enhanced()).encode())):
        s.run(name, bad_mpa, data)


def bad_mpa(s, data):
    app, v = s.proposed()
    v.send_accept()
    sock, _ = v.server.mpa.accept(SOON)
    try:
        if data is False:
            set_reset_on_close(sock)
            sock.close()
        elif data is None:
            sock.close()
        else:
            sock.sendall(data)
        declined_by_client(s, app, v, 0x09990002)
    finally:
        sock.close()


# -- LLC --

LINK = (bytes(6), bytes(16), 1, 1)


@scene_case("LLC at first contact")
def _(s):
    for name, over in (("QPN", {"qpn": 0x777}), ("GID", {"gid": bytes(16)}), ("MAC", {"mac": bytes(6)}),
                       ("number 0", {"number": 0})):
        s.run(f"CONFIRM LINK names another link: {name}", wrong_confirm_link, over)
    s.run("unknown message for CONFIRM LINK", early, smc.llc(0x11))
    s.run("TEST LINK response for CONFIRM LINK", early, smc.llc_test_link(response=True))
    s.run("CONFIRM LINK response for the request", early, smc.llc_confirm_link(*LINK, 1, response=True))
    s.run("Terminate for CONFIRM LINK", early, None)
    s.run("link lost before CONFIRM LINK", early, False)
    s.run("link lost before CONFIRM LINK, and a Decline", crossing)
    s.run("link lost behind CONFIRM LINK", lost_in_contact, "confirm link")
    s.run("link lost behind ADD LINK", lost_in_contact, "add link")
    s.run("ADD LINK with an unknown MTU", bad_mtu)
    s.run("ADD LINK of a device that is not there", add_link_late)
    s.run("ADD LINK over another path, RTokens sent", other_path, True)
    s.run("ADD LINK over another path, no RTokens", other_path, False)


def reached(s, step):
    app, v = s.serving()
    advance(s, v, step)
    return app, v


def wrong_confirm_link(s, over):
    app, v = reached(s, "confirm")
    v.link.number = 1
    v.link.send(v.link.confirm_link_msg(False, **over))
    declined_by_client(s, app, v, 0x030b0000, answer=True)


def early(s, msg):
    """Before our own CONFIRM LINK is out, any failure of the link is a Decline (C.2)."""
    app, v = reached(s, "confirm")
    if msg is False:
        v.link.close(reset=True)
    elif msg is None:
        v.link.ep.terminate(0, 0, 0)
    else:
        v.link.send(msg)
    decline_on(v.sock)
    v.decline(smc.PEER_DECLINED)
    tcp_talk(app, v.sock)


def crossing(s):
    """Both sides see the link's end and may decline: a Decline that crosses ours is no data."""
    app, v = reached(s, "confirm")
    v.link.close(reset=True)
    v.decline()
    try:
        smc.clc_read(v.sock, 0.2)
    except (smc.Declined, iw.Timeout):
        pass
    tcp_talk(app, v.sock)


def lost_in_contact(s, step):
    """Behind its own CONFIRM LINK the client cannot fall back (C.2)."""
    app, v = reached(s, step)
    v.link.close(reset=True)
    equal(how_it_ends(app), ("reset", b""), "the client")
    equal(how_it_ends(v.sock), ("reset", b""), "the middle")


def bad_mtu(s):
    app, v = reached(s, "confirm link")
    v.link.send(smc.llc_add_link(v.peer.mac, v.peer.gid, v.link.qpn, 2, 0, v.link.psn))
    m = v.link.next_llc(smc.ADD_LINK)
    equal((m.rejected, m.low), (True, 2), "answer")
    talk(app, v.finish())


def add_link_late(s):
    app, conn = s.served()
    conn.link.send(smc.llc_add_link(conn.link.peer.mac, conn.link.peer.gid, 77, 3, 3, 99))
    m = conn.link.wait_llc(smc.ADD_LINK, True, 1, SOON)
    check(m.rejected, f"{m}: not rejected")
    talk(app, conn)


def other_path(s, sent):
    """The first connection's RMB is in use from the Accept on, whether or not the server names it for the new link, which
    it then does not confirm: the connection goes on over the first one."""
    app, v = reached(s, "confirm link")
    link, second = v.link, iw.Listener(s.t.addr)
    try:
        gid = bytes(10) + b"\xff\xff" + socket.inet_aton(s.t.addr)
        m = bytearray(smc.llc_add_link(b"\x02" + os.urandom(5), gid, 0x4711, 2, v.peer.mtu_code, 7))
        m[36:38] = struct.pack(">H", second.at[1])	# where MPA is accepted there
        link.send(bytes(m))
        sock, request = second.accept(SOON)
        pd = smc.Pdata.decode(request.private)
        sock.sendall(iw.Listener.answer(request, private=smc.Pdata(qpn=pd.from_qpn, from_qpn=0x4711).encode()).encode())
        check(not link.next_llc(smc.ADD_LINK, SOON).rejected, "the new link was rejected")
        rtoken = struct.pack(">BBxxIIQ", 2, 1, link.rmb_key, 0x1234, 0x5678000)
        link.send(smc.llc(smc.ADD_LINK_CONT, 0, rtoken if sent else bytes((2, 0))))
        link.next_llc(smc.ADD_LINK_CONT, SOON)
        sock.close()
    finally:
        second.close()
    conn = v.finish()
    talk(app, conn)
    talk(*s.served())
    talk(app, conn)


def broken_link(s, act, why):
    app, c = talking(s)
    app2, other = talking(s)
    act(c)
    c.link.wait_ended(SOON)
    for a in (app, app2):
        equal(how_it_ends(a), ("reset", b""), "the client")
    for x in (c, other):
        equal(how_it_ends(x.middle), ("reset", b""), "the middle")
    if why:
        s.wait_log(s.a, why)


def harmless(s, act):
    app, c = talking(s)
    act(c)
    c.link.send(smc.llc_test_link(b"0123456789abcdef"))
    equal(c.link.wait_llc(smc.TEST_LINK, True, timeout=SOON).data, b"0123456789abcdef", "answer to TEST LINK")
    talk(app, c)
    talk(*s.served())


@scene_case("LLC on an established link, from the server")
def _(s):
    s.run("unknown type", broken_link, sends(smc.llc(0x0a)), "unknown LLC message type")
    s.run("type that asks to be ignored", harmless, sends(smc.llc(0x8a), smc.llc(0xbf)))
    s.run("bad length", broken_link, sends(smc.llc(smc.TEST_LINK, length=40)), "malformed LLC message")
    s.run("43 bytes", broken_link, sends(smc.llc(smc.TEST_LINK, size=43)), "malformed LLC message")
    s.run("CONFIRM LINK again", broken_link, lambda c: c.link.send(c.link.confirm_link_msg(False)),
          "unexpected CONFIRM LINK")
    s.run("CONFIRM LINK response", broken_link, sends(smc.llc_confirm_link(*LINK, 1, response=True)), "wrong side")
    s.run("ADD LINK response", broken_link, sends(smc.llc_add_link(*LINK, 3, 0, smc.RESPONSE)), "wrong side")
    s.run("ADD LINK CONTINUATION", broken_link, sends(smc.llc(smc.ADD_LINK_CONT)), "unexpected ADD LINK CONTINUATION")
    s.run("TEST LINK response to nothing", broken_link, sends(smc.llc_test_link(response=True)), "unexpected TEST LINK response")
    s.run("DELETE LINK all", broken_link, sends(smc.llc_delete_link(all=True)), "DELETE LINK: operator")
    s.run("DELETE LINK of the last link", delete_last)
    s.run("DELETE LINK of an unknown link", harmless, delete_unknown)
    s.run("CONFIRM RKEY not answered, though the link lives", rkey_exchange, None)
    s.run("CONFIRM RKEY not answered, nor TEST LINK", rkey_exchange, None, False)
    s.run("CONFIRM RKEY answered no", rkey_exchange, lambda link, m: link.send(smc.as_response(m, smc.NEGATIVE)))
    s.run("CONFIRM RKEY answered for another RMB", rkey_exchange, lambda link, m: link.send(
        m.raw[:3] + bytes((smc.RESPONSE,)) + m.raw[4:8] + bytes((m.raw[8] ^ 1,)) + m.raw[9:]))


def delete_last(s):
    app, c = talking(s)
    c.link.send(smc.llc_delete_link(1))
    m = c.link.wait_llc(smc.DELETE_LINK, True, timeout=SOON)
    equal((m.number, m.reason), (1, smc.OPERATOR), "answer")
    equal(how_it_ends(app), ("reset", b""), "the client")


def delete_unknown(c):
    c.link.send(smc.llc_delete_link(77))
    m = c.link.wait_llc(smc.DELETE_LINK, True, timeout=SOON)
    equal((m.number, m.reason), (77, smc.UNKNOWN_LINK), "answer")


def rkey_exchange(s, answer, alive=True):
    """The client needs a second RMB: more connections than its first one has elements."""
    s.fresh_server(elems=40)
    app, first = talking(s)
    first.link.answers[smc.CONFIRM_RKEY] = answer
    if not alive:
        first.link.answers[smc.TEST_LINK] = None
    conns = [(app, first)]
    for _ in range(20):
        a, v = s.proposed()
        v.send_accept()
        try:
            v.read_confirm()
        except (smc.Declined, iw.Closed):
            break
        conns.append((a, v.finish()))
        check(len(first.link.free) > 0, "the client never asked for a second RMB")
    else:
        raise Failure("the client never asked for a second RMB")
    first.link.wait_llc(smc.CONFIRM_RKEY, False, timeout=SOON)
    if not answer and alive:
        # Linux drops a request that meets an exchange of its own: the link is tested. The connection that
        # waited for the RMB has fallen back: the RMB is confirmed again, or deleted.
        first.link.wait_llc(smc.TEST_LINK, False, timeout=SOON)
        first.link.wait("CONFIRM RKEY again, or DELETE RKEY", lambda: sum(
            m.type in (smc.CONFIRM_RKEY, smc.DELETE_RKEY) and not m.response for m in first.link.llc_log) > 1, SOON)
        talk(app, first)
        return
    if answer and first.link.ended is None:
        time.sleep(0.05)	# raw: for what must not come
        if first.link.ended is None:
            talk(app, first)	# a refusal is no broken link
            return
    equal(how_it_ends(app), ("reset", b""), "connections of the broken link")


# -- as Linux does it --


@scene_case("deviations of Linux, over two links")
def _(s):
    s.run("a Confirm names the link of the Accept", confirm_names)
    s.run("a half closed connection moves, and nothing asks", moves_half_closed, 0)
    s.run("the same, and a message was lost with the link", moves_half_closed, 1)
    s.run("RTokens that become fewer in ADD LINK CONTINUATION", two_links_with, {"lefts": (3, 0)}, {})
    s.run("a CONFIRM LINK that names no number of links", two_links_with, {}, {"max_links": 0})


@scene_case("slow exchanges of Linux: a replay of several steps, no drain of a lost path",
            smcr={"send_buffer": "256K", "llc_timeout": "4s"})
def _(s):
    s.server.peer.size_code = 3	# two steps
    s.run("a replay that passes the end of the element", replays_past_the_end)
    s.run("a lost path, said to be orderly", lost_path_in_order)


def two_links_with(s, second, confirm):
    app, conn, _ = s.served_over_two(**second, **confirm)
    talk(app, conn)


def linux_accept(s):
    """A further connection: its Accept has nothing of what only smcrd tells. It names the first link."""
    app, v = s.proposed()
    v.send_accept(ext=None)
    v.read_confirm()
    return app, v


def confirm_names(s):
    app, conn, second = s.served_over_two()
    # The client would have chosen the link with fewer connections.
    app2, v = linux_accept(s)
    equal(v.confirm.qpn, conn.link.remote.qpn, "QPN in the Confirm")
    other = v.finish()
    talk(app2, other)
    talk(app, conn)


def moves_half_closed(s, lost):
    app, bystander, second = s.served_over_two()
    talk(app, bystander, 10)
    app2, v = linux_accept(s)
    conn = v.finish()
    talk(app2, conn, 1000)
    app2.shutdown(socket.SHUT_WR)
    conn.wait_state(smc.DONE, SOON)
    first = conn.link
    conn.move(second)
    first.close(reset=True)
    conn.seq += lost
    data = pattern(5000, 1)
    conn.link.wait("the request about the lost link", lambda: any(m.type == smc.DELETE_LINK for m in second.llc_log), SOON)
    if lost:
        conn.send(data, SOON)
        equal(how_it_ends(app2), ("reset", b""), "the client")
        s.wait_log(s.a, "data lost in a failover")
    else:
        conn.send(data, SOON)
        conn.shutdown()
        same_bytes(recv_exact(app2, len(data)), data, "from the server")
        equal(app2.recv(1), b"", "end at the client")
    moves_open(bystander, second)
    talk(app, bystander, 1000)


def moves_open(conn, link):
    """A connection that is open asks first."""
    conn.move(link)
    conn.send_cdc(flags=smc.FAILOVER, seq=conn.seq)
    conn.seq -= 1


def replays_past_the_end(s):
    """Linux takes a cursor of wrap 0 after one of wrap 1 for a new one: only the last one may be said again."""
    app, _, second = s.served_over_two()
    app2, v = linux_accept(s)
    conn = v.finish()
    first = conn.link
    first.ep.answer_reads = False	# nothing is confirmed, so all of it comes again
    part = conn.rx.usable * 5 // 8
    data = pattern(2 * part, 3)
    app2.sendall(data[:part])
    same_bytes(conn.recv(part // 2, SOON), data[:part // 2], "what comes first")
    first.wait("the first part", lambda: conn.head == part, SOON)
    conn.send_cdc()
    app2.sendall(data[part:])
    first.wait("the second part", lambda: conn.head == 2 * part, SOON)
    first.close(reset=True)
    second.wait("the failover", lambda: any(m.flags & smc.FAILOVER and m.token == conn.token for m in second.cdc_log), SOON)
    moves_open(conn, second)
    same_bytes(conn.recv(2 * part - part // 2, SOON), data[part // 2:], "what came again")
    talk(app2, conn)


def lost_path_in_order(s):
    """Linux says that when its queue pair is gone already: there is nothing to drain."""
    app, conn, second = s.served_over_two()
    first = conn.link
    first.ep.answer_reads = False	# of what comes, nothing is confirmed
    data = pattern(1000)
    app.sendall(data)
    same_bytes(conn.recv(len(data), SOON), data, "from the client")
    moves_open(conn, second)
    second.send(smc.llc_delete_link(1, smc.LOST_PATH))
    # A link that is drained ends when our silence breaks it.
    equal(first.ended_how(SOON), "closed", "the end of the link")
    talk(app, conn)


# -- RMBs --


@scene_case("RMBs of the server: two in one region, another size at the same place")
def _(s):
    for size_code in (0, 1):
        s.run(f"two RMBs under one rkey, the second of size code {size_code}", two_in_a_region, size_code)
    for codes in ((0, 1), (2, 0)):
        s.run("the size codes {} and then {} at one place".format(*codes), comes_back, *codes)


def confirm_rkey(link, rmb):
    """The client knows the RMB from here on."""
    before = sum(m.type == smc.CONFIRM_RKEY and m.response for m in link.llc_log)
    link.send(smc.llc_confirm_rkey(rmb.rkey, rmb.vaddr))
    m = link.wait_llc(smc.CONFIRM_RKEY, True, before + 1, SOON)
    equal((m.rkey, m.vaddr, m.negative), (rmb.rkey, rmb.vaddr, False), "answer to CONFIRM RKEY")


def fill(app, conn):
    """The client writes as much as the element holds, and goes on when it has room again."""
    data = pattern(3 * conn.rx.usable + 1000, conn.token)
    app.settimeout(SOON)
    task = in_thread(lambda: app.sendall(data))
    end = conn.tail + conn.rx.usable
    conn.link.wait("a full element", lambda: conn.head == end, SOON)
    same_bytes(conn.recv(len(data), SOON), data, "from the client")
    task.result()


def two_in_a_region(s, size_code):
    """The memory is registered once; an RMB is known by rkey and address."""
    app, first = s.served()
    link = first.link
    talk(app, first, 20000)
    buf, half = link.rmb.buf, len(link.rmb.buf) // 2
    rmb = smc.Rmb(link.rmb, size_code, 2, half)
    used = ((first.elem_at, link.home.elem_size), *((rmb.at(i), rmb.elem_size) for i in (1, 2)))
    with link.cond:
        free = bytearray(b"\xa5" * len(buf))
        for at, size in used:
            free[at:at + size] = bytes(buf[at:at + size])
        buf[:] = free
    confirm_rkey(link, rmb)
    # One element number in both RMBs, and one that is free in the first.
    pairs = [(app, first), s.served(rmb), s.served(rmb)]
    equal([(c.link, c.idx) for _, c in pairs], [(link, 1), (link, 1), (link, 2)], "one group, elements")
    for i, (a, c) in enumerate(pairs * 2):
        talk(a, c, 1000 + i)
        fill(a, c)
    for at, size in used:
        free[at:at + size] = buf[at:at + size]
    same_bytes(bytes(buf), bytes(free), "elements that no Accept named")


def comes_back(s, before, after):
    """The client keeps an RMB when it refuses DELETE RKEY. Later the server has another one there."""
    app, first = s.served()
    link = first.link
    talk(app, first, 10)
    here = len(s.a.connections())
    with link.cond:
        region = link.ep.register(2 * max(16384 << before, 16384 << after))
    rmb = smc.Rmb(region, before, 2)
    confirm_rkey(link, rmb)
    a, conn = s.served(rmb)
    fill(a, conn)
    link.send(smc.llc_delete_rkey([rmb.rkey]))
    m = link.wait_llc(smc.DELETE_RKEY, True, timeout=SOON)
    equal((m.negative, m.mask), (True, 0x80), "answer to DELETE RKEY of an RMB in use")
    conn.shutdown()
    equal(a.recv(1), b"", "end at the client")
    a.close()
    conn.close(SOON)
    wait_until(lambda: len(s.a.connections()) == here, "the client has closed it", SOON)
    rmb = smc.Rmb(region, after, 2)
    confirm_rkey(link, rmb)
    pairs = [s.served(rmb) for _ in range(2)]	# in the second element a wrong size leads to another place
    for a, conn in pairs:
        fill(a, conn)
    for a, conn in pairs:
        talk(a, conn, 40000)
    talk(app, first)


# -- data path --


@scene_case("CDC messages with false values end their connection only")
def _(s):
    for name, over, why in (
            ("producer beyond the window", {"prod": lambda c: c.tx.cursor(c.sent + c.tx.usable + 1)}, "producer"),
            ("producer offset of all ones", {"prod": (0, 0xffffffff)}, "producer"),
            ("consumer beyond what was sent", {"cons": lambda c: c.rx.cursor(c.tail + 1)}, "consumer"),
            ("consumer offset of all ones", {"cons": (0, 0xffffffff)}, "consumer")):
        s.run(name, aborted, over, why)
    s.run("write outside", bad_write)
    s.run("unknown token", harmless, lambda c: c.link.send(smc.Cdc(1, 0x31337).encode()))
    s.run("an element that is in use (4.4.2)", conflict)
    s.run("wrong rkey on an existing group", wrong_subsequent, {"rkey": 0x777})
    s.run("wrong QPN on an existing group", wrong_subsequent, {"qpn": 0x777})
    s.run("FIN on the middle, nothing else", middle_ends, False)
    s.run("RST on the middle, and no answer to TEST LINK", middle_ends, True)
    s.run("RST on the middle, and the link answers", middle_forgotten)
    s.run("a link that is silent: neither the Read behind the writes nor TEST LINK is answered", silent_link)


def aborted(s, over, why):
    app, c = talking(s)
    app2, other = s.served()
    with c.link.cond:
        lie(**over)(c)
    c.wait_state(smc.ABORT, SOON)
    c.abort()
    equal(how_it_ends(app), ("reset", b""), "the client")
    s.wait_log(s.a, why)
    talk(app2, other)


def bad_write(s):
    def act(c):
        with c.link.cond:
            c.write_at(1 << 30, b"x")
        end = c.link.wait_ended(SOON)
        check(isinstance(end, iw.Term) and end.why == (1, 1, 1), f"{end}")
    broken_link(s, act, None)


def conflict(s):
    app, old = talking(s)
    a, v = s.proposed()
    v.conn = v.link.new_conn(v.sock)
    v.conn.idx, v.conn.elem_at = old.idx, old.elem_at
    v.send_accept()
    v.read_confirm()
    conn = v.finish()
    equal(how_it_ends(app), ("reset", b""), "the old client")
    s.wait_log(s.a, "gave the element to another connection")
    talk(a, conn)


def wrong_subsequent(s, over):
    app, first = s.served()
    a, v = s.proposed()
    v.send_accept(**over)
    e = decline_on(v.sock)
    if "qpn" in over:
        equal((e.diag, e.out_of_sync), (smc.SYNC, True), "diagnosis")
    tcp_talk(a, v.sock)
    talk(app, first)


@scene_case("starting over: a writer with all data consumed continues at the start of the element")
def _(s):
    s.run("both ends know it", over_and_over)
    s.run("the server does not, and sends the flag all the same", flag_without_meaning)
    s.run("before all is consumed by its cursor", starts_early)


def over_and_over(s):
    s.fresh_server(features=smc.START_OVER)
    app, conn = s.served()
    for i in range(50):
        talk(app, conn, 100 + i)
    check(conn.peer_overs > 40, f"the daemon started over {conn.peer_overs} times")
    equal(conn.tx.skipped > 0, True, "we did, too")
    element = conn.rmb.region.buf[conn.elem_at:conn.elem_at + conn.rmb.elem_size]
    equal(bytes(element[200:]), bytes(conn.rmb.elem_size - 200), "the element behind the longest message")
    talk(app, conn, 100000)
    talk(app, conn, 10)


def flag_without_meaning(s):
    s.fresh_server()
    app, conn = s.served()
    for i in range(5):
        talk(app, conn, 100)
        conn.send(b"more", SOON, smc.STARTED_OVER)
        same_bytes(recv_exact(app, 4), b"more", "from the server")
    equal(conn.peer_overs, 0, "the daemon did not start over")


def starts_early(s):
    s.fresh_server(features=smc.START_OVER)
    app2, other = s.served()
    app, conn = s.served()
    conn.send(b"x" * 100, SOON)
    same_bytes(recv_exact(app, 100), b"x" * 100, "from the server")
    with conn.link.cond:
        conn.send_cdc(smc.STARTED_OVER, prod=(1, 10))
    conn.wait_state(smc.ABORT, SOON)
    conn.abort()
    equal(how_it_ends(app), ("reset", b""), "the client")
    s.wait_log(s.a, "started over before it was notified")
    talk(app2, other, 3000)


@scene_case("a server that names another server's group")
def _(s):
    for over in ({}, {"idx": 1}, {"token": 1}, {"rkey": 1}):
        s.run(f"with {over}", foreign_group, over)


def foreign_group(s, over):
    """The group of a with b, which the witness is in: the Accept is refused, without effect on others."""
    x, = [x for x in s.a.ctl("links")["links"] if x["number"] == 1][:1]
    group = s.a.groups()[0]
    app, v = s.proposed()
    v.send_accept(peer_id=bytes.fromhex(group["peer_id"]), qpn=x["peer_qpn"], first=False,
                  gid=socket.inet_pton(socket.AF_INET6, x["peer_gid"]), mac=bytes.fromhex(x["peer_mac"].replace(":", "")),
                  **over)
    decline_on(v.sock)
    tcp_talk(app, v.sock)
    s.witness.check()


def middle_ends(s, reset):
    app, c = talking(s)
    if reset:
        set_reset_on_close(c.middle)
        c.link.answers[smc.TEST_LINK] = None
    c.middle.close()
    c.wait_state(smc.ABORT, SOON)
    c.abort()
    equal(how_it_ends(app), ("reset", b""), "the client")
    if not reset:
        talk(*s.served())


def middle_forgotten(s):
    """As a firewall does that knows the connection no longer."""
    app, c = talking(s)
    set_reset_on_close(c.middle)
    c.middle.close()
    c.link.wait_llc(smc.TEST_LINK, False, timeout=SOON)
    time.sleep(0.3)	# raw: longer than fin_grace
    talk(app, c)


def silent_link(s):
    app, c = talking(s)
    c.link.ep.answer_reads = False
    c.link.answers[smc.TEST_LINK] = None
    app.sendall(b"does it arrive?")
    equal(how_it_ends(app), ("reset", b""), "the client")
    equal(how_it_ends(c.middle), ("reset", b""), "the middle")


if __name__ == "__main__":
    main(one_worker="its peer has one link group")
