#!/usr/bin/env python3
"""The Python peers against golden vectors and against themselves: what the tests of the C code rely on."""
import itertools
import os
import random
import struct
import sys
import threading

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration")]

import pyiwarp as iw
import pysctp as sctp
import pysctp_ddp as ddp
import pysmc as smc
from pyiwarp import SOON
from harness import TOP_SRC, Failure, case, check, equal, in_thread, main, pattern, same_bytes, wait_until


def h(text):
    return bytes.fromhex(text)


# -- vectors --


@case("CRC32C of the published examples")
def _(t):
    pdu = h("01c00000" + 12 * "00" + "1400000000000400 00000014 00000018 2800000000000000 0200000000000000")
    for crc32c in (iw.crc32c, iw.crc32c_by_table):
        for data, want in ((b"123456789", 0xe3069283), (bytes(32), 0x8a9136aa), (b"\xff" * 32, 0x62a8ab43),
                           (bytes(range(32)), 0x46dd794e), (bytes(range(31, -1, -1)), 0x113fdb5c), (pdu, 0xd9963a56),
                           (b"", 0)):
            equal(f"{crc32c(data):08x}", f"{want:08x}", f"CRC32C of {data.hex()}")
        data = os.urandom(101)
        for cut in range(len(data)):
            equal(crc32c(data[cut:], crc32c(data[:cut])), crc32c(data), f"in two parts, cut at {cut}")
    for n in range(200):
        data = bytearray(os.urandom(n))
        equal(iw.crc32c(memoryview(data)), iw.crc32c_by_table(data), f"CRC32C of {data.hex()}")


@case("FPDUs of RFC 5044 figures 5 and 6, with markers")
def _(t):
    s = iw.Stream(None, tx_markers=True)
    first = s.encode(iw.untagged(iw.SEND, 0, 1, 0, bytes(24)))
    same_bytes(first, h("00000000002a4143000000000000000000000001" "00000000" + 24 * "00" + "52239983"), "figure 5")
    s.tx_pos = 0x1ec
    same_bytes(s.encode(iw.untagged(iw.SEND, 0, 2, 0, bytes(24))),
               h("002a4143000000000000000000000002" "00000000" "00000014" + 24 * "00" + "84925898"), "figure 6")


@case("MPA start-up frames")
def _(t):
    req, rep = iw.KEY_REQ.hex(), iw.KEY_REP.hex()
    e = iw.Enhanced
    frames = (
        (iw.MpaFrame(rev=1), req + "40010000"),
        (iw.MpaFrame(True, rev=1), rep + "40010000"),
        (iw.MpaFrame(True, rev=1, reject=True), rep + "60010000"),
        (iw.MpaFrame(enhanced=e(16, 8)), req + "50020004c010c008"),
        (iw.MpaFrame(True, enhanced=e(8, 16, True, {"read"})), rep + "5002000480084010"),
        (iw.MpaFrame(crc=False, enhanced=e(16, 8, False, ())), req + "1002000400100008"),
        # From a capture of two Linux siw in peer-to-peer mode.
        (iw.MpaFrame(enhanced=e(1, 1, True, {"write", "read"})), req + "500200048001c001"),
        (iw.MpaFrame(True, enhanced=e(1, 1, True, {"write"})), rep + "5002000480018001"),
    )
    for frame, want in frames:
        same_bytes(frame.encode(), h(want), repr(frame))
        same_bytes(iw.MpaFrame.decode(h(want)).encode(), h(want), f"{frame!r} decoded")


FPDUS = {
    "Send": (iw.untagged(iw.SEND, 0, 1, 0, b"hello"), "001741430000000000000000000000010000000068656c6c6f000000b990b10c"),
    "RTR Send": (iw.untagged(iw.SEND, 0, 1), "0012414300000000000000000000000100000000587be8c4"),
    "Send SE Inv": (iw.untagged(iw.SEND_SE_INV, 0, 2, 0, b"x", inv=0x12345678),
                    "001341461234567800000000000000020000000078000000583b09ff"),
    "Write": (iw.tagged(iw.WRITE, 0x11223344, 0x1000, b"abcd"), "0012c1401122334400000000000010006162636408272d8c"),
    "RTR Write": (iw.tagged(iw.WRITE, 1, 0), "000ec140000000010000000000000000ebd34c5f"),
    "Read Request": (iw.read_request(1, 0xaabbccdd, 0x2000, 8, 0x11223344, 0x1000),
                     "002e414100000000000000010000000100000000aabbccdd00000000000020000000000811223344"
                     "000000000000100011932413"),
    "RTR Read": (iw.read_request(1, 1, 0, 0, 1, 0),
                 "002e4141000000000000000100000001000000000000000100000000000000000000000000000001"
                 "000000000000000027dbd7e7"),
    "Read Response": (iw.tagged(iw.READ_RESP, 0xaabbccdd, 0x2000, b"ABCDEFGH"),
                      "0016c142aabbccdd00000000000020004142434445464748fa20f016"),
    "Terminate CRC": (iw.terminate(2, 0, 2), "0016414700000000000000020000000100000000200200007fe42585"),
    "Terminate RTR": (iw.terminate(2, 0, 7), "0016414700000000000000020000000100000000200700001bd2babe"),
    "Terminate STag": (iw.terminate(1, 1, 0, iw.tagged(iw.WRITE, 0xdeadbeef, 16), length=18),
                       "00264147000000000000000200000001000000001100c0000012c140deadbeef0000000000000010bff75c03"),
    "Terminate Read": (iw.terminate(0, 1, 2, iw.read_request(1, 0xaabbccdd, 0x2000, 8, 0x11223344, 0x1000)[:18],
                                    iw.read_request(1, 0xaabbccdd, 0x2000, 8, 0x11223344, 0x1000)[18:], 46),
                       "00464147000000000000000200000001000000000102e000002e4141000000000000000100000001"
                       "00000000aabbccdd000000000000200000000008112233440000000000001000e4f7f978"),
}


@case("FPDUs without markers")
def _(t):
    for name, (ulpdu, want) in FPDUS.items():
        same_bytes(iw.Stream(None).encode(ulpdu), h(want), name)
        s = iw.Stream(None)
        s.rx += h(want)
        same_bytes(s.pop(), ulpdu, f"{name}, read")
    equal(iw.Term(FPDUS["Terminate Read"][0][18:]).why, (0, 1, 2), "Terminate")


@case("FPDUs of Linux's siw: each has its CRC, and encodes to the same bytes")
def _(t):
    sends = 0
    with open(os.path.join(TOP_SRC, "tests/interop/siw-rping.txt")) as f:
        lines = [line.split() for line in f if line[0] != "#"]
    for side, text in lines:
        data = h(text)
        frame = iw.MpaFrame.decode(data[:24])
        equal((frame.rev, frame.crc, frame.enhanced.p2p), (2, True, True), side)
        s, again = iw.Stream(None), b""
        s.rx += data[24:]
        while (ulpdu := s.pop()) is not None:
            again += iw.Stream(None).encode(ulpdu)
            sends += iw.Segment(ulpdu).opcode == iw.SEND
        same_bytes(again, data[24:], f"FPDUs of the {side}")
    equal(sends, 12, "Sends")


@case("SMC messages: every vector decodes, and encodes to the same bytes")
def _(t):
    count = 0
    with open(os.path.join(TOP_SRC, "tests/unit/vectors/smc.txt")) as f:
        lines = [line.split() for line in f if line.strip() and line[0] != "#"]
    for kind, name, text in lines:
        data = h(text)
        if kind == "clc":
            m = smc.clc_decode(data)
            if m.type == smc.PROPOSAL:
                back = smc.clc_proposal(m.peer_id, m.gid, m.mac, m.subnet, m.v6, growth=m.growth, low=m.low,
                                        version=m.version)
            elif m.type == smc.DECLINE:
                if len(data) != 28:
                    continue
                back = smc.clc_decline(m.peer_id, m.diag, m.out_of_sync)
            else:
                back = smc.clc_accept(m.type, m.peer_id, m.gid, m.mac, m.qpn, m.rkey, m.idx, m.token, m.size_code,
                                      m.mtu_code, m.vaddr, m.psn, m.first, m.ext)
        elif kind == "llc":
            m = smc.Llc(data)
            if m.type == smc.CONFIRM_LINK:
                back = smc.llc_confirm_link(m.mac, m.gid, m.qpn, m.number, m.user_id, m.max_links, flags=m.flags)
            elif m.type == smc.ADD_LINK:
                back = smc.llc_add_link(m.mac, m.gid, m.qpn, m.number, m.mtu_code, m.psn, m.flags, m.low)
            elif m.type == smc.DELETE_LINK:
                back = smc.llc_delete_link(m.number, m.reason, m.all, bool(m.flags & 0x20), m.response)
            elif m.type == smc.CONFIRM_RKEY:
                back = smc.llc_confirm_rkey(m.rkey, m.vaddr, m.others, m.flags)
            elif m.type == smc.DELETE_RKEY:
                back = smc.llc_delete_rkey(m.rkeys, m.flags, m.mask)
            elif m.type == smc.TEST_LINK:
                back = smc.llc_test_link(m.data, m.response)
            else:
                continue
        elif kind == "cdc":
            m = smc.Cdc.decode(data)
            back = m.encode()
        else:
            continue
        count += 1
        same_bytes(back, data, name)
    t.note(f"{count} vectors")
    check(count > 60, f"{count} vectors")


@case("DDP over SCTP: control messages and segments of both profiles")
def _(t):
    c, e = ddp.Control, iw.Enhanced
    block = e(16, 8, False, ())
    for profile, ssn, control, want in (
            (ddp.RFC5043, 0, c(ddp.INITIATE, private=b"hi"), "000000016869"), (ddp.RFC5043, 0, c(ddp.ACCEPT), "00000002"),
            (ddp.RFC5043, 1, c(ddp.REJECT), "00010003"), (ddp.RFC5043, 5, c(ddp.TERMINATE), "00050004"),
            (ddp.RFC5043, 0, c(ddp.INITIATE, block), "0000000500100008"),
            (ddp.RFC5043, 0, c(ddp.ACCEPT, e(8, 16, True, {"read"}), b"x"), "000000068008401078"),
            (ddp.RFC5043, 0, c(ddp.REJECT, block), "0000000700100008"),
            (ddp.DRAFT00, 1, c(ddp.NEGOTIATE), "00010001"), (ddp.DRAFT00, 1, c(ddp.INITIATE), "00010002"),
            (ddp.DRAFT00, 1, c(ddp.ACCEPT), "00010003"), (ddp.DRAFT00, 2, c(ddp.TERMINATE), "00020004")):
        same_bytes(struct.pack(">H", ssn) + control.encode(profile), h(want), f"{control} of {profile.name}")
        same_bytes(ddp.Control.decode(profile, h(want)[2:]).encode(profile), h(want)[2:], f"{control} decoded")
    same_bytes(c(ddp.REJECT, block, b"no", block=False).encode(ddp.RFC5043), h("00076e6f"), "Reject without its block")
    same_bytes(sctp.Data(7, 0, 0, 16, b"abcde").encode(),
               h("00070015" "00000007" "00000000" "00000010" "6162636465000000"), "DATA chunk, unordered and whole")


# -- iWARP with itself --


def pair(request=None, **answer):
    """(initiator's, responder's) Endpoint."""
    lst = iw.Listener()
    rtr = answer.pop("rtr_kind", None)
    server = in_thread(lambda: lst.serve(**answer))
    try:
        a = iw.connect(lst.at, request, rtr=rtr)
    finally:
        b = server.result()
        lst.close()
    return a, b


@case("MPA: every RTR kind, markers in each direction, CRC on and off, revision 1")
def _(t):
    for rtr in ("send", "write", "read"):
        for markers in (0, 1, 2, 3):
            for crc in (True, False):
                req = iw.MpaFrame(markers=bool(markers & 1), crc=crc, enhanced=iw.Enhanced(4, 4, True, {rtr}))
                a, b = pair(req, markers=bool(markers & 2), crc=crc)
                want = {"send": iw.SEND, "write": iw.WRITE, "read": iw.READ_REQ}[rtr]
                equal(b.rtr_seen.kind, want, f"RTR {rtr}")
                exchange(a, b)
                equal([bool(x.stream.markers_seen) for x in (a, b)], [bool(markers & 1), bool(markers & 2)], "markers")
                a.close()
                b.close()
    a, b = pair(iw.MpaFrame(rev=1))
    equal((b.request.rev, a.peer_frame.rev, a.peer_frame.enhanced), (1, 1, None), "revision 1")
    exchange(a, b)
    try:
        pair(reject=True, private=b"no")
    except iw.Rejected as e:
        equal(e.reply.private, b"no", "private data of the rejection")
    else:
        check(False, "rejected")


def exchange(a, b):
    """Sends, Writes and Reads of sizes around segments and markers, both ways."""
    for x, y in ((a, b), (b, a)):
        y.receive_size = 1 << 20
        for n in (0, 1, 2, 3, 4, 487, 488, 489, 490, 508, 512, 1400, 5000):
            data = pattern(n)
            x.send(data)
            same_bytes(y.recv(), data, f"Send of {n} bytes")
        region = y.register(8192, read=True)
        data = pattern(6000, 7)
        x.write(region.stag, region.base + 100, data)
        sink = x.register(4096)
        x.read(sink.stag, sink.base + 5, 3000, region.stag, region.base + 50)
        y.expect(iw.READ_REQ, skip=(iw.WRITE,))
        same_bytes(region.bytes(region.base + 100, 6000), data, "Write")
        while x.reads_out:
            x.expect(iw.READ_RESP)
        same_bytes(sink.bytes(sink.base + 5, 3000), region.bytes(region.base + 50, 3000), "Read")


@case("each protocol error is answered with its Terminate, over TCP and over SCTP")
def _(t):
    def wrong(name, why, act, pair=pair, **kw):
        a, b = pair(**kw)
        b.receives, b.receive_size, b.ird = 2, 100, 1
        b.answer_reads = False
        region = b.register(1000, base=1 << 20, stag=0x77000001)
        b.register(1000, base=1 << 20, stag=0x77000002, write=False, read=True)
        act(a, region)
        try:
            for _ in range(5):
                b.next()
        except iw.Broken as e:
            equal(e.term, why, name)
        term = a.expect(iw.TERMINATE, skip=(iw.READ_RESP,)).term
        equal(term.why, why, f"Terminate for {name}")
        a.close()
        b.close()

    def ulpdu(*parts, **kw):
        return lambda a, r: [a.send_ulpdu(p, **kw) for p in parts]
    wrong("bad CRC", (2, 0, 2), lambda a, r: a.send_ulpdu(iw.tagged(iw.WRITE, 1, 0), crc_xor=1))
    wrong("marker", (2, 0, 3), lambda a, r: a.send_ulpdu(iw.untagged(iw.SEND, 0, 1, 0, bytes(600)), marker_xor=8),
          markers=True, rtr_kind="write")
    stag = 0x77000001
    for name, why, parts in (
            ("STag", (1, 1, 0), [iw.tagged(iw.WRITE, stag ^ 0x100, 1 << 20, b"x")]),
            ("bounds", (1, 1, 1), [iw.tagged(iw.WRITE, stag, (1 << 20) + 1000, b"x")]),
            ("below", (1, 1, 1), [iw.tagged(iw.WRITE, stag, (1 << 20) - 1, b"xy")]),
            ("wrap", (1, 1, 3), [iw.tagged(iw.WRITE, stag, (1 << 64) - 1, b"xy")]),
            ("access", (1, 1, 0), [iw.tagged(iw.WRITE, 0x77000002, 1 << 20, b"x")]),
            ("DDP version, tagged", (1, 1, 4), [iw.tagged(iw.WRITE, stag, 1 << 20, b"x", dv=0)]),
            ("DDP version, untagged", (1, 2, 6), [iw.untagged(iw.SEND, 0, 1, 0, b"x", dv=2)]),
            ("RDMAP version", (0, 2, 5), [iw.untagged(iw.SEND, 0, 1, 0, b"x", rv=0)]),
            ("opcode", (0, 2, 6), [iw.untagged(8, 0, 1, 0, b"x")]),
            ("QN", (1, 2, 1), [iw.untagged(iw.SEND, 9, 1, 0, b"x")]),
            ("MSN", (1, 2, 3), [iw.untagged(iw.SEND, 0, 5, 0, b"x")]),
            ("MO", (1, 2, 4), [iw.untagged(iw.SEND, 0, 1, 4, b"x")]),
            ("too long", (1, 2, 5), [iw.untagged(iw.SEND, 0, 1, 0, bytes(101))]),
            ("no receive", (1, 2, 2), [iw.untagged(iw.SEND, 0, n) for n in (1, 2, 3)]),
            ("Read STag", (0, 1, 0), [iw.read_request(1, 1, 0, 8, 5, 0)]),
            ("Read access", (0, 1, 2), [iw.read_request(1, 1, 0, 8, stag, 1 << 20)]),
            ("Read bounds", (0, 1, 1), [iw.read_request(1, 1, 0, 8, 0x77000002, 0)]),
            ("more Reads than IRD", (1, 2, 2), [iw.read_request(n, 1, 0, 0, 1, 0) for n in (1, 2)]),
            ("Read Response", (0, 2, 6), [iw.tagged(iw.READ_RESP, 1, 0)])):
        wrong(name, why, ulpdu(*parts), rtr_kind="write")
        wrong(f"{name}, over SCTP", why, ulpdu(*parts), sctp_pair)


@case("FPDUs in pieces of every size")
def _(t):
    a, b = pair(iw.MpaFrame(markers=True, enhanced=iw.Enhanced()), markers=True)
    b.partial = b""
    for size in range(1, 70):
        data = pattern(40 + size, size)
        a.stream.send_raw(a.stream.encode(a.segments_of_send(data)[0]), pieces=size)
        same_bytes(b.recv(), data, f"in pieces of {size}")


# -- DDP over SCTP with itself --


def sctp_pair(request=None, profile=ddp.RFC5043, rtr_kind=None, prepare=None, prepare_other=None, rto=sctp.RTO, **answer):
    """(active, passive) Endpoint. prepare, prepare_other: called with their Port."""
    lst = ddp.Listener(profile=profile, rto=rto)
    if prepare_other:
        prepare_other(lst.port)
    server = in_thread(lambda: lst.serve(SOON, **answer))
    try:
        session = ddp.associate(lst.at, SOON, profile=profile, prepare=prepare, rto=rto)
        a = ddp.begin(session, request or ddp.initiate(profile), rtr_kind, SOON)
    finally:
        b = server.result()
        lst.close()
    return a, b


def end_both(a, b):
    """In order; nothing is left over."""
    a.close()
    equal(b.stream.at_end(SOON), "closed", "the passive side's end")
    equal(a.stream.assoc.wait_end(SOON), "closed", "the active side's end")
    check(b.stream.terminated, "no session Terminate")


@case("DDP over SCTP: both profiles, depths, RTR, private data, rejections")
def _(t):
    for profile in ddp.PROFILES:
        a, b = sctp_pair(ddp.initiate(profile, private=b"ask"), profile, private=lambda request: request.private + b"ed")
        equal((b.request.private, a.peer_frame.private), (b"ask", b"asked"), "private data")
        equal(a.peer_frame.enhanced, iw.Enhanced(16, 1, False, ()) if profile.enhanced else None, "the answer's block")
        exchange(a, b)
        a.stream.assoc.heartbeat(SOON)
        end_both(a, b)
    for rtr, kind in (("send", iw.SEND), ("write", iw.WRITE), ("read", iw.READ_REQ)):
        a, b = sctp_pair(ddp.initiate(p2p=True, rtr={rtr}))
        equal(b.rtr_seen.kind, kind, f"RTR {rtr}")
        while a.reads_out:
            a.expect(iw.READ_RESP)
        exchange(a, b)
        end_both(b, a)
    a, b = sctp_pair(ddp.Control(ddp.INITIATE))
    equal((b.request.enhanced, a.peer_frame.enhanced), (None, None), "without the block")
    exchange(b, a)
    end_both(a, b)
    for profile, function in ((ddp.RFC5043, ddp.REJECT), (ddp.DRAFT00, ddp.TERMINATE)):
        try:
            sctp_pair(profile=profile, reject=True, private=b"no")
        except iw.Rejected as e:
            equal((e.reply.function, e.reply.private), (function, b"no" if function == ddp.REJECT else b""), "rejection")
        else:
            raise Failure("rejected, and a connection")


def came_early(order):
    """How many messages come before their turn."""
    turn, there, early = 0, set(), 0
    for i in order:
        early += i != turn
        there.add(i)
        while turn in there:
            turn += 1
    return early


@case("DDP over SCTP: all orders of five messages, by DDP-SSN and by the wire")
def _(t):
    orders = list(itertools.permutations(range(5)))
    a, b = sctp_pair(rto=SOON)
    for i, order in enumerate(orders):
        sent = [pattern(40 + k, i) for k in range(5)]
        b.stream.overtakes = 0
        if i % 2:
            a.stream.send_ulpdus([a.segments_of_send(data)[0] for data in sent], order)
        else:
            rule = a.stream.assoc.port.way.hold(sctp.of_type(sctp.DATA))
            for data in sent:
                a.send(data)
            rule.release(order)
        for data in sent:
            same_bytes(b.recv(SOON), data, f"Sends in the order {order}")
        equal(b.stream.overtakes, came_early(order), f"messages before their turn in {order}")
    equal((a.stream.assoc.resent, b.stream.assoc.doubled), (0, 0), "messages sent again")
    # Across the wrap of the DDP-SSN.
    a.stream.tx_ssn = b.stream.rx_ssn = 0xfffe
    a.stream.send_ulpdus([a.segments_of_send(bytes((i,)))[0] for i in range(5)], (4, 3, 2, 1, 0))
    equal([b.recv(SOON) for _ in range(5)], [bytes((i,)) for i in range(5)], "Sends across the wrap")
    end_both(a, b)


@case("SCTP: each kind of chunk lost, doubled, damaged once; swapped messages; then all of that at random", timeout=60)
def _(t):
    kinds = (sctp.INIT, sctp.INIT_ACK, sctp.COOKIE_ECHO, sctp.COOKIE_ACK, sctp.DATA, sctp.SACK, sctp.SHUTDOWN,
             sctp.SHUTDOWN_ACK, sctp.SHUTDOWN_COMPLETE)
    for kind in kinds:
        for what in ("drop", "double", "damage"):
            rules = []

            def spoil(port):
                rules.append(getattr(port.way, what)(sctp.of_type(kind)))
            a, b = sctp_pair(rto=0.05, prepare=spoil, prepare_other=spoil)
            for x, y in ((a, b), (b, a)):
                data = pattern(3000, kind)
                x.send(data)
                same_bytes(y.recv(SOON), data, f"Send with {what} of {sctp.NAMES[kind]}")
            end_both(a, b)
            met = sum(rule.met for rule in rules)
            equal(met, 2 if kind in (sctp.DATA, sctp.SACK) else 1, f"{what} of {sctp.NAMES[kind]}")
    a, b = sctp_pair()
    rule = a.stream.assoc.port.way.swap(sctp.of_type(sctp.DATA), times=2)
    for i in range(5):
        a.send(bytes((i,)))
    equal([b.recv(SOON) for _ in range(5)], [bytes((i,)) for i in range(5)], "Sends of which two pairs are swapped")
    equal((rule.met, b.stream.overtakes), (4, 2), "swapped")
    end_both(a, b)
    seed = int.from_bytes(os.urandom(4), "big")
    t.note(f"seed {seed}")
    rnd = random.Random(seed)
    a, b = sctp_pair(rto=0.05, prepare=lambda port: port.way.mangle(rnd, 0.2),
                     prepare_other=lambda port: port.way.mangle(rnd, 0.2))
    for x, y in ((a, b), (b, a)):
        y.receive_size = 1 << 20
        data = pattern(300000)
        sender = in_thread(lambda: x.send(data))
        same_bytes(y.recv(4 * SOON), data, "300,000 bytes on a bad path")
        sender.result()
        check(x.stream.assoc.resent > 0 and y.stream.overtakes > 0, "the path was too good")
    t.note(f"{a.stream.assoc.resent} sent again, {b.stream.assoc.doubled} came twice, {b.stream.overtakes} early")
    end_both(a, b)


@case("SCTP: SACK, the window, HEARTBEAT, unknown chunks and parameters")
def _(t):
    seen = []
    new = sctp.parameter(0xfff0, b"new")

    def with_new(port):
        params = port.adaptation_parameter() + new
        port.adaptation_parameter = lambda: params
    a, b = sctp_pair(prepare=with_new,
                     prepare_other=lambda port: seen.append(port.way.watch(sctp.of_type(sctp.INIT_ACK))))
    init_ack = seen[0].held[0][0]
    check(sctp.parameter(8, new) in init_ack, f"{init_ack.hex()}: unknown parameter not reported")
    one, other = a.stream.assoc, b.stream.assoc
    one.flush(SOON)
    n = one.sent
    sacks = other.port.way.watch(sctp.of_type(sctp.SACK))
    for what, which in (("drop", (0, 3)), ("double", (1,))):
        for i in which:
            getattr(one.port.way, what)(sctp.message(n + i))
    for i in range(5):
        a.send(bytes((i,)))
    for i in range(5):
        equal(b.recv(SOON), bytes((i,)), "Send")
    said = []
    for packet, _ in sacks.held[:4]:
        body = sctp.chunks_of(packet[12:])[0].body
        cumulative, _, gaps, doubles = struct.unpack_from(">IIHH", body)
        blocks = list(struct.iter_unpack(">HH", body[12:12 + 4 * gaps]))
        said.append((cumulative + 1 - one.first_tsn - n & 0xffffffff, blocks, doubles))
    equal(said, [(0, [(2, 2)], 0), (0, [(2, 2)], 1), (0, [(2, 3)], 0), (0, [(2, 3), (5, 5)], 0)], "the first four SACKs")
    one.flush(SOON)
    equal(one.resent, 2, "messages sent again")

    # Without a reader the sender stops, and continues with one.
    b.receive_size = 1 << 20
    data = pattern(3 * sctp.WINDOW)
    sender = in_thread(lambda: a.send(data))
    wait_until(lambda: other.unread >= sctp.WINDOW, "the window is full")
    resent = one.resent
    wait_until(lambda: len(one.unacked) == 1 and one.resent > resent, "one message asks again for room")
    check(sender.is_alive() and other.unread < sctp.WINDOW + 1500, f"{other.unread} bytes taken")
    same_bytes(b.recv(SOON), data, "Send larger than the window")
    sender.result()

    other.heartbeat(SOON)
    for type, reported in ((0x3f, False), (0x7f, True), (0xbf, False), (0xff, True)):
        # What is behind it in the packet counts when the type says so, by its first bit.
        info = sctp.parameter(1, bytes((type,)))
        one.heartbeats.add(info)
        errors = len(one.errors)
        one.send_chunk(sctp.Chunk(type, 0, b"x"), sctp.Chunk(sctp.HEARTBEAT, 0, info))
        one.heartbeat(SOON)
        equal(info in one.heartbeats, type < 0x80, f"HEARTBEAT behind a chunk of type {type:#x} passed over")
        equal(len(one.errors) - errors, reported, f"ERRORs for a chunk of type {type:#x}")
    end_both(a, b)


@case("SCTP: tags, a restarted association, aborts, no listener")
def _(t):
    lst = ddp.Listener()
    t.later(lst.close)
    nobody = sctp.Port()
    t.later(nobody.close)
    try:
        ddp.connect(nobody.at, timeout=SOON)
    except iw.Closed as e:
        check(e.reset, "refused by an ABORT")
    else:
        raise Failure("an association without a listener")

    port = sctp.Port(adaptation=1)
    t.later(port.close)
    first = port.connect(lst.at, timeout=SOON)
    other = lst.port.accept(SOON)
    for chunk in (sctp.Chunk(sctp.ABORT), sctp.Chunk(sctp.ABORT, sctp.REFLECTED), sctp.Chunk(sctp.SHUTDOWN_ACK),
                  sctp.Data(first.next_tsn, 0, 0, 16, b"xx")):
        dropped = lst.port.dropped["tag"]
        first.send_chunk(chunk, tag=first.peer_tag ^ 1)
        wait_until(lambda: lst.port.dropped["tag"] > dropped, f"{chunk} with a wrong tag is dropped")
    first.heartbeat(SOON)
    # The same ports once more: what was there is gone.
    second = port.connect(lst.at, timeout=SOON)
    equal(other.wait_end(SOON), "reset", "the association that was there before")
    other = lst.port.accept(SOON)
    second.heartbeat(SOON)
    second.abort(sctp.parameter(12, b"why"))
    equal((other.wait_end(SOON), other.abort_causes), ("reset", sctp.parameter(12, b"why")), "ABORT")

    # An ABORT that is lost: the next that is sent has one come back, with the tag reflected.
    third = port.connect(lst.at, timeout=SOON)
    other = lst.port.accept(SOON)
    lst.port.way.drop(sctp.of_type(sctp.ABORT))
    other.abort()
    third.send(b"\0\0\0\1", 17)
    equal(third.wait_end(SOON), "reset", "a message to an association that is gone")
    # Both end it at once.
    fourth = port.connect(lst.at, timeout=SOON)
    other = lst.port.accept(SOON)
    rules = [p.way.hold(sctp.of_type(sctp.SHUTDOWN)) for p in (port, lst.port)]
    for assoc in (fourth, other):
        assoc.shutdown()
    for rule in rules:
        rule.release()
    equal([assoc.wait_end(SOON) for assoc in (fourth, other)], ["closed", "closed"], "both sides' SHUTDOWN")


@case("DDP over SCTP: invalid messages end a session")
def _(t):
    send = iw.untagged(iw.SEND, 0, 1, 0, b"x")
    for name, act in (
            ("a DDP-SSN again", lambda s: s.send_ulpdu(send, 0)),
            ("duplicate DDP-SSN, ahead", lambda s: [s.send_ulpdu(send, 9) for _ in range(2)]),
            ("a DDP-SSN far ahead", lambda s: s.send_ulpdu(send, 0x8001)),
            ("an ordered message", lambda s: s.send_ulpdu(send, flags=sctp.FIRST | sctp.LAST)),
            ("a fragment", lambda s: s.send_ulpdu(send, flags=sctp.UNORDERED | sctp.FIRST)),
            ("another stream", lambda s: s.send_ulpdu(send, sid=1)),
            ("another payload protocol", lambda s: s.send_message(18, send)),
            ("a message without a number", lambda s: s.send_raw(b"\0")),
            ("a second Initiate", lambda s: s.send_control(ddp.initiate())),
            ("an unknown function", lambda s: s.send_control(ddp.Control(ddp.ACCEPT), code=9)),
            ("a function cut short", lambda s: s.send_message(17, b"\0")),
            ("513 bytes of private data", lambda s: s.send_control(ddp.Control(ddp.ACCEPT, private=bytes(513)))),
            ("a Terminate with private data", lambda s: s.send_control(ddp.Control(ddp.TERMINATE, private=b"x")))):
        a, b = sctp_pair()
        act(a.stream)
        try:
            b.next(SOON)
        except iw.Broken as e:
            equal(e.term, ddp.LOCAL, name)
        else:
            raise Failure(f"{name}: taken")
        equal(a.expect(iw.TERMINATE, SOON).term.why, ddp.LOCAL, f"Terminate for {name}")
        equal((a.stream.at_end(SOON), a.stream.terminated), ("closed", True), f"the end behind {name}")
    for name, adaptation in (("another adaptation", 3), ("no adaptation", None)):
        lst = ddp.Listener()
        session = ddp.associate(lst.at, SOON, adaptation=adaptation)
        try:
            lst.accept(SOON)
        except iw.Error as e:
            check("adaptation" in str(e), f"{name}: {e}")
        else:
            raise Failure(f"{name}: taken")
        equal(session.assoc.wait_end(SOON), "reset", name)
        lst.close()


# -- SMC with itself --


class Hosts:
    def __init__(self, t, **both):
        self.server = smc.Server(smc.Peer(**both))
        self.client = smc.Peer(**both)
        self.link = None
        t.later(self.server.close)

    def connect(self):
        """A connection's two ends: (client's, server's)."""
        other = in_thread(self.server.run)
        a = smc.Client(self.client, self.server.at, self.link).run()
        b = other.result()
        self.link = a.link
        return a, b


def talk(a, b, n):
    """n bytes each way at the same time."""
    for seed, (x, y) in enumerate(((a, b), (b, a))):
        data = pattern(n, seed)
        sender = in_thread(lambda: x.send(data))
        same_bytes(y.recv(n), data, f"{n} bytes")
        sender.result()


@case("SMC-R: first contact, more connections on the group, data over many wraps, close")
def _(t):
    for eye in (False, True):
        hosts = Hosts(t, eye_catcher=eye, recv_depth=8)
        conns = [hosts.connect() for _ in range(3)]
        equal(len({id(a.link) for a, _ in conns}), 1, "groups")
        for n in (1, 1000, 16384, 100000):
            for a, b in conns:
                talk(a, b, n)
        a, b = conns[0]
        a.shutdown()
        b.wait_state(smc.DONE)
        b.send(b"last words")
        same_bytes(a.recv(10), b"last words", "after D")
        closer = in_thread(a.close)
        b.wait_state(smc.CLOSED)
        b.close()
        closer.result()
        talk(*conns[1], 3000)
        talk(*hosts.connect(), 3000)


@case("SMC-R: fallback with the diagnosis of the Decline")
def _(t):
    server = smc.Server(smc.Peer())
    t.later(server.close)

    def decline():
        s = server.accept()
        s.read_proposal()
        s.decline(smc.SYNC, out_of_sync=True)
        return s.sock
    other = in_thread(decline)
    try:
        smc.Client(smc.Peer(), server.at).run()
    except smc.Declined as e:
        equal((e.diag, e.out_of_sync), (smc.SYNC, True), "diagnosis")
    else:
        check(False, "declined")
    other.result()


if __name__ == "__main__":
    threading.current_thread().name = "test"
    main()
