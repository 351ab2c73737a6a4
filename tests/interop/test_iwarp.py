#!/usr/bin/env python3
"""The soft iWARP device (siw_host) and the initiator and responder written in Python: every way to connect, then data
and completions, then everything that a peer can do wrong."""
import ctypes
import os
import random
import socket
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration")]

import iwarp_cases
import pyiwarp as iw
from pysmc import Pdata
from iwarp_cases import stream_errors
from siw_scene import (MS, SOON, Bad, Host, Mpa, confirm_all, exchange, from_host, host_case, pd_reply, start_active,
                       to_host)
from harness import (PATIENCE, Failure, Skip, case, check, equal, main, need, pattern, same_bytes, set_reset_on_close,
                     wait_until)


# -- ways to connect --


@case("the device as responder: every RTR kind, markers in each direction, CRC on and off", timeout=60)
def _(t):
    for host_crc, host_markers in ((1, 0), (0, 1)):
        host = Host(t, crc=host_crc, markers=host_markers)
        for rtr in ("send", "write", "read"):
            for markers in (False, True):
                for crc in (True, False):
                    request = iw.MpaFrame(markers=markers, crc=crc, enhanced=iw.Enhanced(rtr={rtr}))
                    qp, ep = to_host(host, request, rtr=rtr, recvs=0)
                    reply = ep.peer_frame
                    equal((reply.rev, reply.markers, reply.crc or crc), (2, bool(host_markers), bool(host_crc or crc)),
                          "reply")
                    check(reply.enhanced.p2p and rtr in reply.enhanced.rtr, f"{reply}")
                    exchange(host, qp, ep)
                    equal(bool(ep.stream.markers_seen), markers, "markers in what the device sent")
                    ep.close()
                    qp.event("qp_error")
                    qp.destroy()
        host.check_end()


@case("the device as initiator: every RTR kind, markers in each direction, CRC on and off", timeout=60)
def _(t):
    for rtr in ("send", "write", "read"):
        for host_crc, host_markers in ((1, 0), (0, 1)):
            host = Host(t, crc=host_crc, markers=host_markers, rtr="swr")
            for markers in (False, True):
                for crc in (True, False):
                    qp, ep = from_host(host, recvs=0, markers=markers, crc=crc, rtr={rtr})
                    equal((ep.request.rev, ep.request.markers, ep.request.crc, ep.request.enhanced.p2p),
                          (2, bool(host_markers), bool(host_crc), True), "request")
                    equal(ep.rtr_seen.kind, {"send": iw.SEND, "write": iw.WRITE, "read": iw.READ_REQ}[rtr], "RTR")
                    if rtr == "send":
                        equal(ep.rtr_seen.data, b"", "RTR")
                    exchange(host, qp, ep)
                    equal(bool(ep.stream.markers_seen), markers, "markers in what the device sent")
                    ep.close()
                    qp.event("qp_error")
                    qp.destroy()
            host.check_end()


@case("revision 1, and revision 2 without the enhanced block")
def _(t):
    host = Host(t)
    for rev in (1, 2):
        # Without an RTR the initiator speaks first.
        qp = host.expecting(4)
        ep = iw.connect((host.addr, host.port), iw.MpaFrame(rev=rev, private=qp.pdata()), timeout=SOON)
        equal((ep.peer_frame.rev, ep.peer_frame.enhanced), (rev, None), "reply")
        check(Pdata.decode(ep.peer_frame.private).recv_depth > 0, "private data of the reply")
        qp.claim()
        ep.send(b"first")
        same_bytes(qp.received(0), b"first", "first Send")
        qp.event("connected")
        qp.first = 1
        exchange(host, qp, ep)
        ep.close()
    host.check_end()
    host = Host(t, rev=1)
    lst = iw.Listener(t.addr)
    qp = host.qp()
    qp.recv(4)
    start_active(host, qp, lst)
    sock, request = lst.accept(SOON)
    equal((request.rev, request.enhanced), (1, None), "request")
    reply = lst.answer(request, private=pd_reply(request))
    sock.sendall(reply.encode())
    ep = iw.full_operation(sock, reply, request)
    # The first FPDU is the initiator's, whatever it is.
    ep.next(SOON)
    qp.event("connected")
    qp.first = 0
    exchange(host, qp, ep)
    ep.close()
    lst.close()
    host.check_end()


@case("IRD and ORD by RFC 6581 9.1")
def _(t):
    none = iw.NOT_NEGOTIATED
    host = Host(t, ird=5, ord=3)
    for ird, ord in ((1, 1), (2, 5), (8, 8), (200, 200), (none, 1), (1, none), (none, none), (4, 0)):
        request = iw.MpaFrame(enhanced=iw.Enhanced(ird, ord, True, {"write"}))
        qp, ep = to_host(host, request, rtr="write")
        check_depths(request.enhanced, ep.peer_frame.enhanced, 5)
        ep.close()
    # Writes could never be confirmed.
    qp = host.expecting()
    request = iw.MpaFrame(enhanced=iw.Enhanced(0, 1), private=qp.pdata())
    refused(host, request, "IRD 0")
    host.check_end()
    host = Host(t, ird=2, ord=2)
    failed_active(host, "no Reads towards us", lambda r: lst_reply(r, ird=0, ord=1), (2, 0, 6))
    failed_active(host, "more Reads than we take", lambda r: lst_reply(r, ird=4, ord=0x3ffe), (2, 0, 6))
    failed_active(host, "no RTR in common", lambda r: lst_reply(r, rtr=()), (2, 0, 7))
    host.check_end()
    host = Host(t, rtr="w")
    failed_active(host, "no RTR in common", lambda r: lst_reply(r, rtr={"send"}), (2, 0, 7))
    qp, ep = from_host(host, rtr={"send", "write"})
    equal(ep.rtr_seen.kind, iw.WRITE, "RTR in common")
    exchange(host, qp, ep)
    ep.close()
    # As responder it names what it can when nothing is in common; the initiator then gives up.
    qp = host.expecting()
    try:
        iw.connect((host.addr, host.port), iw.MpaFrame(enhanced=iw.Enhanced(rtr={"send"}), private=qp.pdata()),
                   timeout=SOON)
    except iw.Rejected:
        pass
    except iw.Error as e:
        check("in common" in str(e), f"{e}")
    else:
        raise Failure("connected without an RTR in common")
    host.check_end()


def check_depths(asked, got, ird):
    """The Reply's depths, by RFC 6581 9.1; ird: the device's."""
    none = iw.NOT_NEGOTIATED
    what = f"{asked} answered by {got}"
    check(got.ord == none if asked.ird == none else got.ord <= asked.ird, what)
    # As many as were asked for, or as the device has: the initiator then asks for no more.
    check(got.ird == none if asked.ord == none else got.ird >= min(asked.ord, ird), what)


@case("an RTR Read that a card does not count is accepted beyond IRD")
def _(t):
    for depth in (1, 2):
        host = Host(t, ird=depth, answer_ms=60000)
        qp = host.expecting(2)
        request = iw.MpaFrame(enhanced=iw.Enhanced(depth, depth, True, {"read"}), private=qp.pdata())
        ep = iw.connect((host.addr, host.port), request, rtr="none", timeout=SOON)
        t.later(ep.close)
        equal(ep.peer_frame.enhanced.ird, depth, "IRD of the reply")
        qp.claim()
        mr = host.mr(1000, "r")
        mr.set(0, pattern(1000, depth))
        sink = ep.register(1000 * depth)
        # Its own, and as many as its user may have out: in one piece, none is served before the last is there.
        data = b""
        for i in range(depth + 1):
            want = [1, 0, 0, 1, 0] if i == 0 else [sink.stag, sink.base + 1000 * (i - 1), 1000, mr.rkey, mr.addr]
            ep.reads_out.append(want[:3])
            data += ep.stream.encode(iw.read_request(ep._next_msn(iw.QN_READ), *want))
        ep.stream.send_raw(data)
        while ep.reads_out:
            ep.expect(iw.READ_RESP, SOON)
        same_bytes(bytes(sink.buf), pattern(1000, depth) * depth, "what was read")
        qp.event("connected")
        qp.first = 2
        ep.send(b"goes on")
        same_bytes(qp.received(0), b"goes on", "Send behind the Reads")
        ep.close()
        host.check_end()


@case("a rejection without a queue pair names valid depths")
def _(t):
    none = iw.NOT_NEGOTIATED
    host = Host(t)
    qp = host.expecting(1)
    for what, private, verdict in (("wrong token", qp.pdata(token=qp.token ^ 1), 2),
                                   ("no receives", qp.pdata(recv_depth=0), 1), ("no private data", b"", 1)):
        for ird, ord in ((1, 1), (0, 4), (3, 0), (40, 40), (none, none), (none, 1), (1, none)):
            asked = iw.Enhanced(ird, ord)
            reply = refused(host, iw.MpaFrame(enhanced=asked, private=private), what)
            check(reply and reply.reject and reply.enhanced, f"{what}: {reply}")
            # Cards look at these before they look whether it is a rejection: it would be lost on them.
            check_depths(asked, reply.enhanced, 16)
            check(reply.enhanced.p2p and reply.enhanced.rtr, f"{what}: {reply}")
            equal(Pdata.decode(reply.private).verdict, verdict, f"{what}: verdict")
        reply = refused(host, iw.MpaFrame(enhanced=iw.Enhanced(1, 1, False, ()), private=private), what)
        check(reply and not reply.enhanced.p2p and not reply.enhanced.rtr, f"{what}, client and server: {reply}")
    host.check_end()


@case("a responder that missed the first FPDU gets a second one")
def _(t):
    for rtr in ("write", "read", "send"):
        host = Host(t, answer_ms=60000)
        qp, ep = from_host(host, recvs=0, rtr={rtr}, wait_rtr=False)
        # It says nothing, and would say nothing as long as nothing more arrives.
        ep.answer_reads = False
        first = ep.next(SOON)
        equal(first.kind, {"send": iw.SEND, "write": iw.WRITE, "read": iw.READ_REQ}[rtr], "RTR")
        try:
            second = ep.next(2 * PATIENCE)
        except iw.Timeout:
            raise Failure(f"nothing behind the RTR {rtr}, its responder would not look again") from None
        check(second.kind != iw.SEND, f"{second} takes a receive that is not for it")
        if second.kind == iw.WRITE:
            equal(second.data, b"", "the second word")
        try:
            third = ep.next(0.15)
            raise Failure(f"{third} after the second message, unsolicited")
        except iw.Timeout:
            pass
        ep.answer_reads = True
        ep.answer_held()
        exchange(host, qp, ep)
        ep.close()
        host.check_end()


def lst_reply(request, ird=8, ord=1, rtr=iw.RTR_ALL):
    return iw.MpaFrame(True, request.rev, enhanced=iw.Enhanced(ird, ord, True, rtr), private=pd_reply(request))


def failed_active(host, what, answer, term):
    """The device initiates; after this answer it gives up, with this Terminate or none."""
    lst = iw.Listener(host.t.addr)
    qp = host.qp()
    start_active(host, qp, lst)
    sock, request = lst.accept(SOON)
    reply = answer(request)
    if isinstance(reply, bytes):
        sock.sendall(reply)
    elif reply is not None:
        sock.sendall(reply.encode())
    line = qp.event("connect_failed")
    check(len(line.split()) > 3, f"{what}: no reason: {line}")
    if isinstance(reply, iw.MpaFrame) and not reply.reject:
        ep = iw.full_operation(sock, reply, request)
        try:
            got = ep.expect(iw.TERMINATE, SOON, skip=(iw.WRITE, iw.READ_REQ, iw.SEND)).term.why
        except iw.Closed:
            got = None
        equal(got, term, f"{what}: Terminate")
    sock.close()
    lst.close()
    qp.destroy()
    return line


def refused(host, request, what):
    """A request that is rejected or cut off."""
    try:
        ep = iw.connect((host.addr, host.port), request, timeout=SOON)
    except iw.Rejected as e:
        return e.reply
    except iw.Closed:
        return None
    ep.close()
    raise Failure(f"{what}: accepted")


@host_case("rejected requests, with a reason in the private data; rejection of our own")
def _(host):
    qp, other = host.qp(), host.qp()
    for q in (qp, other):
        q.recv(4)
        q.expect()
    for what, over, verdict in (("wrong token", {"token": qp.token ^ 1}, 2), ("wrong PSN", {"psn": qp.psn ^ 1}, 2),
                                ("token of another link", {"token": other.token}, 2),
                                ("QPN of another link", {"qpn": other.qpn}, 2), ("no receives", {"recv_depth": 0}, None),
                                ("unknown QPN", {"qpn": 0xfffff1}, 4), ("version 7", {"version": 7}, 1)):
        reply = refused(host, iw.MpaFrame(enhanced=iw.Enhanced(), private=qp.pdata(**over)), what)
        check(reply and reply.reject and reply.enhanced, f"{what}: {reply}")
        if verdict is not None:
            equal(Pdata.decode(reply.private).verdict, verdict, f"{what}: verdict")
        equal(Pdata.decode(reply.private).token, 0, "token in a reply")
    for what, private in (("no private data", b""), ("foreign private data", b"hello".ljust(40)),
                          ("short private data", qp.pdata()[:-1])):
        reply = refused(host, iw.MpaFrame(enhanced=iw.Enhanced(), private=private), what)
        check(reply is None or reply.reject, f"{what}: {reply}")
    equal(host.stats()["mpa_refused_token"] > 0, True, "counted")
    # All that did not use up the QP; longer private data of a newer peer are taken.
    ep = iw.connect((host.addr, host.port), iw.MpaFrame(enhanced=iw.Enhanced(), private=qp.pdata() + b"and more"),
                    rtr="write", timeout=SOON)
    qp.claim()
    qp.event("connected")
    reply = refused(host, iw.MpaFrame(enhanced=iw.Enhanced(), private=qp.pdata()), "used token")
    equal(Pdata.decode(reply.private).verdict, 3, "used token: verdict")
    qp.first = 0
    exchange(host, qp, ep)
    ep.close()
    reply = refused(host, iw.MpaFrame(enhanced=iw.Enhanced(), private=qp.pdata()), "used token, link gone")
    check(reply is None or reply.reject, "used token, link gone")
    for verdict in (0, 1, 2, 3, 4, 5, 6, 7, 8, 255):
        failed_active(host, f"verdict {verdict}", lambda r, v=verdict: iw.MpaFrame(
            True, reject=True, enhanced=iw.Enhanced(), private=pd_reply(r, verdict=v)), None)
    failed_active(host, "rejected without private data",
                  lambda r: iw.MpaFrame(True, reject=True, enhanced=iw.Enhanced()), None)
    failed_active(host, "rejected unenhanced", lambda r: iw.MpaFrame(True, reject=True, private=b"no"), None)


@host_case("malformed, slow and stalled MPA requests")
def _(host):
    qp = host.expecting(4)
    good = iw.MpaFrame(enhanced=iw.Enhanced(), private=qp.pdata())
    data = good.encode()
    bad = 0
    for what, request in (
            ("garbage", os.urandom(64)), ("zeroes", bytes(64)), ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            ("one wrong letter", data[:3] + b"x" + data[4:]), ("a Reply's key", iw.KEY_REP + data[16:]),
            ("revision 0", data[:17] + b"\0" + data[18:]), ("revision 3", data[:17] + b"\3" + data[18:]),
            ("revision 255", data[:17] + b"\xff" + data[18:]), ("revision 1 with S", data[:17] + b"\1" + data[18:]),
            ("PD_Length 513", good.encode(pd_length=513) + bytes(513)), ("PD_Length 65535", good.encode(pd_length=65535)),
            ("S with 3 bytes", good.encode(pd_length=3)[:23]), ("S with none", good.encode(pd_length=0)[:20]),
            ("bytes behind the request", data + b"too early")):
        sock = iw.tcp_connect((host.addr, host.port), SOON)
        sock.sendall(request)
        stream = iw.Stream(sock)
        try:
            stream.at_end(SOON)
        except iw.Error as e:
            reply = iw.MpaFrame.decode(bytes(stream.rx))
            check(reply.reject, f"{what}: {e}")
        sock.close()
        bad += 1
    check(host.stats()["mpa_bad"] >= bad - 3, f"{host.stats()['mpa_bad']} bad requests counted of {bad}")
    start = time.monotonic()
    stalled = []
    for n in (0, 1, 15, 16, 19, 20, 23, len(data) - 1):
        sock = iw.tcp_connect((host.addr, host.port), SOON)
        sock.sendall(data[:n])
        stalled.append(sock)
    for sock in stalled:
        iw.Stream(sock).at_end(SOON)
        sock.close()
    check(time.monotonic() - start < MS / 1000 * 3, f"stalled requests were let for {time.monotonic() - start:.1f} s")
    # A byte at a time is slow, not wrong; slower than the device's patience is.
    sock = iw.tcp_connect((host.addr, host.port), SOON)
    try:
        for byte in data:
            sock.sendall(bytes((byte,)))
            time.sleep(MS / 1000 / 20)	# raw: the pace of a slow peer
        iw.Stream(sock).at_end(SOON)
    except OSError:
        pass
    sock.close()
    sock = iw.tcp_connect((host.addr, host.port), SOON)
    for byte in data:
        sock.sendall(bytes((byte,)))
        time.sleep(0.0005)	# raw: the pace of a slow peer
    reply = iw.read_mpa(sock, SOON)
    check(not reply.reject, "byte at a time")
    ep = iw.full_operation(sock, good, reply)
    ep.rtr("write")
    qp.claim()
    qp.event("connected")
    qp.first = 0
    exchange(host, qp, ep)
    ep.close()
    for what, answer in (
            ("garbage", lambda r: os.urandom(64)), ("a Request", lambda r: data),
            ("revision 3", lambda r: lst_raw(r, rev=3)), ("revision 1", lambda r: lst_raw(r, rev=1)),
            ("unenhanced", lambda r: iw.MpaFrame(True, private=pd_reply(r)).encode()),
            ("PD_Length 600", lambda r: lst_raw(r, pd_length=600)),
            ("S with 2 bytes", lambda r: lst_raw(r, pd_length=2)[:22]),
            ("half", lambda r: lst_raw(r)[:30]), ("nothing", lambda r: b"")):
        failed_active(host, what, answer, None)
    for what, over in (("from another QP", {"from_qpn": 5}), ("to another QP", {"qpn": 5}), ("version 9", {"version": 9})):
        failed_active(host, what, lambda r, o=over: iw.MpaFrame(
            True, enhanced=iw.Enhanced(), private=pd_reply(r, **o)).encode(), None)


def lst_raw(request, rev=2, pd_length=None):
    return iw.MpaFrame(True, rev, enhanced=iw.Enhanced(), private=pd_reply(request)).encode(pd_length=pd_length)


@host_case("the initiator's side of set-up: no listener, closed, reset")
def _(host):
    qp = host.qp()
    dead = iw.Listener(host.t.addr)
    dead.close()
    host.cmd(f"connect {qp.id} active {host.t.addr} 1 2 {dead.at[1]}")
    qp.event("connect_failed")
    for how in ("close", "reset"):
        lst = iw.Listener(host.t.addr)
        q = host.qp()
        start_active(host, q, lst)
        sock, _ = lst.accept(SOON)
        if how == "reset":
            set_reset_on_close(sock)
        sock.close()
        q.event("connect_failed")
        lst.close()
    # The responder may send nothing before the first FPDU of the initiator; the device keeps to that.
    q = host.expecting(2)
    ep = iw.connect((host.addr, host.port), iw.MpaFrame(enhanced=iw.Enhanced(), private=q.pdata()), rtr="none",
                    timeout=SOON)
    q.claim()
    src = host.mr(100)
    try:
        q.send(src, 0, 44)
    except Failure:
        pass
    try:
        event = ep.next(0.2)
    except iw.Timeout:
        pass
    except iw.Closed:
        pass
    else:
        raise Failure(f"{event} before our first FPDU")
    ep.close()


# -- data and completions --


iwarp_cases.register(Mpa)


@case("FPDUs in pieces: cut at every byte, with and without markers")
def _(t):
    host = Host(t, markers=1)
    qp, ep = to_host(host, iw.MpaFrame(enhanced=iw.Enhanced()), rtr="write", recvs=0)
    mr = host.mr(4096, "w")

    def two(i):
        return ep.stream.encode(iw.tagged(iw.WRITE, mr.rkey, mr.addr + i, pattern(60, i))) \
            + ep.stream.encode(ep.segments_of_send(pattern(30, i))[0])
    cuts = 150		# more than two FPDUs with a marker have
    for i in range(cuts):
        qp.recv()
        data = two(i)
        ep.stream.send_raw(data[:i])
        time.sleep(0.001)	# raw: a pause between two parts
        ep.stream.send_raw(data[i:])
        same_bytes(qp.received(i), pattern(30, i), f"Send, cut at {i}")
        same_bytes(mr.get(i, 60), pattern(60, i), f"Write, cut at {i}")
    seed = int.from_bytes(os.urandom(4), "big")
    t.note(f"seed {seed}")
    rnd = random.Random(seed)
    big = pattern(1000, 1)
    for turn in range(20):
        qp.recv(8)
        sizes = [rnd.randrange(1000) for _ in range(8)]
        data = b"".join(ep.stream.encode(ep.segments_of_send(big[:n])[0]) for n in sizes)
        while data:
            n = rnd.randrange(1, 700)
            ep.stream.send_raw(data[:n])
            data = data[n:]
        for i, n in enumerate(sizes):
            same_bytes(qp.received(cuts + turn * 8 + i), big[:n], "Sends in random pieces")
    ep.close()
    host.check_end()
    host = Host(t)
    qp, ep = to_host(host, rtr="write", recvs=0)
    for i in range(64):
        qp.recv()
        data = ep.stream.encode(ep.segments_of_send(pattern(40, i))[0])
        ep.stream.send_raw(data[:i])
        time.sleep(0.001)	# raw: a pause between two parts
        ep.stream.send_raw(data[i:])
        same_bytes(qp.received(i), pattern(40, i), f"Send, cut at {i}")
    # Many messages in one piece, a message in many segments.
    qp.recv(30)
    ep.stream.send_raw(b"".join(ep.stream.encode(ep.segments_of_send(pattern(20, i))[0]) for i in range(29)))
    ep.mulpdu = 18 + 7
    ep.send(pattern(1024, 77))
    for i in range(29):
        same_bytes(qp.received(64 + i), pattern(20, i), "in one piece")
    same_bytes(qp.received(93), pattern(1024, 77), "in 147 segments")
    host.check_end()


@host_case("a Terminate before a reset reports its reason", answer_ms=60000)
def _(host):
    src = host.mr(100)
    told = 0
    for how in ("unread", "linger"):
        for term in (True, False):
            qp, ep = to_host(host, rtr="write")
            mr = host.mr(100, "w")
            if how == "unread":
                # The kernel's siw closes its socket behind its Terminate: a reset when it had not read all.
                qp.send(src, 0, 44)
                ep.stream.peek(SOON)
            with host.still():
                ep.write(mr.rkey, mr.addr, b"late")
                if term:
                    ep.terminate(2, 0, 2)
                if how == "linger":
                    set_reset_on_close(ep.sock)
                ep.close()
            told += term
            qp.event("qp_error", "MPA: CRC error" if term else "reset")
            equal(host.stats()["terminates_received"], told, "Terminates received")
            same_bytes(mr.get(0, 100), bytes(100), "memory: nothing is placed behind a reset")
            qp.destroy()


@host_case("FIN is answered by FIN", answer_ms=60000)
def _(host):
    src = host.mr(5000)
    for connect in (lambda: to_host(host, rtr="write", recvs=0), lambda: from_host(host, recvs=0)):
        for confirmed in (True, False):
            qp, ep = connect()
            exchange(host, qp, ep)
            wr = None
            if not confirmed:
                # It has the data, and ends without having said so.
                ep.answer_reads = False
                region = ep.register(5000)
                wr = qp.write(src, 0, 5000, region.stag, region.base)
                host.cmd(f"confirm {qp.id}")
                ep.expect(iw.READ_REQ, SOON, skip=(iw.WRITE,))
            ep.sock.shutdown(socket.SHUT_WR)
            qp.event("qp_error", "closed")
            if wr is not None:
                check(host.wait(f"wc {qp.id} {wr} ").split()[4] != "ok", "a Write that was not confirmed")
            equal(ep.stream.at_end(SOON), "closed", "how the device ends")
            ep.close()
            qp.destroy()


@host_case("a peer that ended gets no unread data", answer_ms=60000)
def _(host):
    size = 8 << 20		# more than sockets hold
    src = host.mr(size)
    qp, ep = to_host(host, rtr="write")
    ep.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    region = ep.register(size)
    wr = qp.write(src, 0, size, region.stag, region.base)
    ep.stream.peek(SOON)
    ep.sock.shutdown(socket.SHUT_WR)
    qp.event("qp_error", "closed")
    check(host.wait(f"wc {qp.id} {wr} ").split()[4] != "ok", "a Write of which not all was taken")
    there = ep.stream.unread()
    n, how = ep.stream.drain(SOON)
    equal(how, "reset", f"the end, {n} bytes behind our FIN")
    equal(n, there, "bytes that were read after the device gave up")
    ep.close()


# -- places that close --


@host_case("an element that closes during a Write gets no further byte, and the link ends", crc=0, fpdu_max=60000)
def _(host):
    mr = host.mr(40000, "w")
    qp, ep = to_host(host, iw.MpaFrame(crc=False, enhanced=iw.Enhanced()), rtr="write", recvs=0)
    data = b"w" * 30000
    fpdu = ep.stream.encode(iw.tagged(iw.WRITE, mr.rkey, mr.addr, data))
    ep.stream.send_raw(fpdu[:10600])
    wait_until(lambda: mr.get(10500, 1) == b"w", "a third of it is placed")
    placed = mr.get(0, 12000).count(b"w")
    # The unit that the next byte belongs to stays open.
    host.cmd(f"deny {mr.id} 1000 {placed // 1000}")
    ep.stream.send_raw(fpdu[10600:])
    term = ep.expect(iw.TERMINATE, SOON).term
    equal((term.layer, term.etype, term.code), (1, 1, 1), "Terminate: DDP, tagged buffer, base or bounds")
    qp.event("qp_error")
    same_bytes(mr.get(0, 30000), b"w" * placed + bytes(30000 - placed), "memory")
    ep.close()
    qp.destroy()


# -- segments --


@case("to a foreign peer each FPDU is a TCP segment")
def _(t):
    for markers in (False, True):
        host = Host(t)
        try:
            wire = iw.Wire(host.addr, host.port)
        except PermissionError:
            raise Skip("only root sees the segments on lo") from None
        t.later(wire.close)
        qp, ep = to_host(host, iw.MpaFrame(markers=markers, enhanced=iw.Enhanced()), rtr="write", recvs=0, how={"mss": 1460})
        exchange(host, qp, ep)
        reply, *fpdus = wire.segments()
        equal(iw.MpaFrame.decode(reply).encode(), ep.peer_frame.encode(), "the Reply's segment")
        stream = iw.Stream(None, rx_markers=markers)
        for i, segment in enumerate(fpdus):
            check(len(segment) <= 1460, f"segment {i} has {len(segment)} bytes")
            stream.rx += segment
            check(stream.pop() is not None, f"segment {i} of {len(segment)} bytes is not a whole FPDU")
            check(not stream.rx, f"segment {i} of {len(segment)} bytes has {len(stream.rx)} behind its FPDU")
        equal(len(fpdus), host.stats()["fpdus_sent"], "FPDUs sent, and segments")
        t.note(f"{len(fpdus)} segments")
        ep.close()
        host.check_end()


def own_network(t):
    """The rest of the case runs in a network namespace of its own, which has nothing but lo."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(0x40000000) != 0:		# CLONE_NEWNET
        os.close(before)
        raise Skip("no right to make network namespaces")

    def leave():
        equal(libc.setns(before, 0), 0, "setns")
        os.close(before)
    t.later(leave)
    t.run([need("ip"), "link", "set", "lo", "up"])


@case("FPDUs follow a smaller path MTU")
def _(t):
    own_network(t)
    host = Host(t)
    wire = iw.Wire(host.addr, host.port)
    t.later(wire.close)
    qp, ep = to_host(host, rtr="write", recvs=0)
    size = 40000
    src, region = host.mr(size), ep.register(size)

    def largest():
        """The largest segment of a Write."""
        wire.segments()
        confirm_all(ep, qp, [qp.write(src, 0, size, region.stag, region.base)])
        return max(map(len, wire.segments()))
    before = largest()
    check(before > 2000, f"{before} bytes while the MTU is lo's 65536")
    t.run([need("ip"), "link", "set", "lo", "mtu", "1500"])
    wr = qp.send(src, 0, 8)	# the kernel looks at the MTU when it sends
    same_bytes(ep.recv(SOON), src.get(0, 8), "a Send")
    confirm_all(ep, qp, [wr])
    after = largest()
    check(after <= 1460, f"{after} bytes in a segment of a path of 1500")
    ep.close()
    host.check_end()


# -- errors --


@case("every error on an established stream has its Terminate", timeout=60)
def _(t):
    b = Bad(t)
    stream_errors(b)
    b.run("CRC", (2, 0, 2), lambda b: b.ep.send_ulpdu(iw.tagged(iw.WRITE, b.mr.rkey, b.mr.addr, b"xyz"), crc_xor=1 << 31))
    b.run("payload that the CRC does not fit", (2, 0, 2), damaged_payload)
    b.run("more Reads than IRD", (1, 2, 2), reads_beyond_ird)
    b.finish()


def damaged_payload(b):
    """A wrong byte on the way: nothing of it is placed."""
    data = bytearray(b.ep.stream.encode(iw.tagged(iw.WRITE, b.mr.rkey, b.mr.addr, b"payload")))
    data[18] ^= 0x10
    b.ep.stream.send_raw(data)


def reads_beyond_ird(b):
    """All in one piece, and large, so that none is through when the last one comes."""
    ird = 16 + 1	# what the host has space for: its depth, and an RTR Read that a peer does not count
    b.ep.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    big = b.host.mr(8 << 20, "r")
    b.ep.stream.send_raw(b"".join(b.ep.stream.encode(iw.read_request(i + 1, 1 << 8, 0, 8 << 20, big.rkey, big.addr))
                                  for i in range(ird + 1)))
    sink = b.ep.register(8 << 20, base=0, stag=1 << 8)
    b.ep.reads_out = [[sink.stag, 0, 8 << 20] for _ in range(ird)]
    b.more.append(big)


@case("errors with markers: 2/0/3, and damage at every byte of an FPDU is detected", timeout=60)
def _(t):
    b = Bad(t, markers=1)
    b.run("FPDUPTR", (2, 0, 3), lambda b: b.ep.send_ulpdu(iw.tagged(iw.WRITE, b.mr.rkey, b.mr.addr, bytes(600)), marker_xor=4))
    b.run("FPDUPTR of the first marker in a second FPDU", (2, 0, 3), lambda b: [
        b.ep.send_ulpdu(iw.tagged(iw.WRITE, b.mr.rkey, b.mr.addr, bytes(300))),
        b.ep.send_ulpdu(iw.tagged(iw.WRITE, b.mr.rkey, b.mr.addr, bytes(300)), marker_xor=512)])
    b.finish()
    host = Host(t, markers=0)
    ulpdu_len = len(iw.Stream(None).encode(iw.tagged(iw.WRITE, 1, 0, b"payload!")))
    for at in range(2, ulpdu_len):
        qp, ep = to_host(host, rtr="write", recvs=1)
        mr = host.mr(100, "w")
        data = bytearray(ep.stream.encode(iw.tagged(iw.WRITE, mr.rkey, mr.addr, b"payload!")))
        data[at] ^= 1 << at % 8
        ep.stream.send_raw(data)
        equal(ep.expect(iw.TERMINATE, SOON).term.why, (2, 0, 2), f"damage at byte {at}")
        same_bytes(mr.get(0, 100), bytes(100), f"damage at byte {at}: memory")
        ep.close()
        qp.event("qp_error")
        qp.destroy()
        host.cmd(f"dereg {mr.id}")
    equal(host.stats()["crc_errors"], ulpdu_len - 2, "CRC errors counted")
    host.check_end()


if __name__ == "__main__":
    main()
