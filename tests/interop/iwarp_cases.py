"""
What a device owes to its peer and its user over any transport: cases for test_iwarp.py and sctp_cases.py, each of which
registers them all for its own, by register().
"""
import contextlib
import os
import random
import time

import pyiwarp as iw
from siw_scene import MS, SOON, Host, confirm_all, exchange, segment, take_all, to_host
from harness import Failure, case, check, equal, pattern, same_bytes

CASES = []		# (name, function of a Host, settings of siw_host)


def shared(name, **settings):
    def keep(fn):
        CASES.append((name, fn, settings))
        return fn
    return keep


def register(transport, where=""):
    for name, fn, settings in CASES:
        def run(t, fn=fn, settings=settings):
            host = Host(t, transport, **settings)
            fn(host)
            host.check_end()
        case(name + where)(run)


@shared("a completion means that the peer has the data", answer_ms=60000)
def _(host):
    qp, ep = to_host(host)
    ep.answer_reads = False
    src = host.mr(1 << 20)
    src.set(0, pattern(1 << 20, 4))
    region = ep.register(1 << 20)
    # All is received, nothing is confirmed: no completion, and no more than one Read at a time.
    wrs = [qp.write(src, i * 1000, 1000, region.stag, region.base + i * 1000) for i in range(10)] + [qp.send(src, 0, 44)]
    ep.recv(SOON)
    while not ep.reads_held:
        ep.next(SOON)
    equal(ep.reads_held[0][2], 0, "size of the confirming Read")
    host.quiet(f"wc {qp.id}")
    try:
        event = ep.next(0.1)
        raise Failure(f"{event} though a Read is out")
    except iw.Timeout:
        pass
    ep.answer_held()
    ep.answer_reads = True
    confirm_all(ep, qp, wrs)
    ep.answer_reads = False
    same_bytes(region.bytes(region.base, 10000), pattern(1 << 20, 4)[:10000], "Writes")
    # The peer does not even read: none completes, however much the kernel has taken.
    wr = qp.write(src, 0, 1 << 20, region.stag, region.base)
    host.cmd(f"confirm {qp.id}")
    host.quiet(f"wc {qp.id} {wr}")
    ep.answer_reads = True
    confirm_all(ep, qp, [wr])
    same_bytes(bytes(region.buf), pattern(1 << 20, 4), "1 MiB by Write")
    # The peer's receives are the limit for Sends.
    room = host.cmd(f"room {qp.id}")
    check(room["sends"] <= 64, f"room for {room['sends']} Sends")
    ep.close()


@shared("a peer that never confirms, or does not read, is reported at intervals, and nothing is lost")
def _(host):
    for read in (True, False):
        qp, ep = to_host(host)
        ep.answer_reads = False
        data = pattern(1 << 20, 7)
        src = host.mr(1 << 20)
        src.set(0, data)
        region = ep.register(1 << 20)
        n = 100 if read else 1 << 20
        start = time.monotonic()
        wrs = [qp.write(src, 0, n, region.stag, region.base), qp.write(src, 0, 10, region.stag, region.base)]
        if read:
            ep.expect(iw.READ_REQ, SOON, skip=(iw.WRITE,))
        for times in (1, 2):
            qp.event("silent")
            # The device's time is that of its turn, which may have begun before the command came.
            check(time.monotonic() - start >= 0.8 * times * MS / 1000, f"silence {times} after {time.monotonic() - start:.3f} s")
        host.quiet(f"wc {qp.id}", 0)
        # It is usable meanwhile, in both directions.
        ep.send(b"still here")
        same_bytes(qp.received(0), b"still here", "Send to the device")
        wrs.append(qp.write(src, 0, 10, region.stag, region.base))
        ep.answer_reads = True
        ep.answer_held()
        confirm_all(ep, qp, wrs)
        same_bytes(region.bytes(region.base, n), data[:n], "Writes")
        wrs = [qp.send(src, 0, 44)]
        same_bytes(ep.recv(SOON), data[:44], "Send from the device")
        confirm_all(ep, qp, wrs)
        drop_silences(host, qp)
        host.quiet(f"event {qp.id} silent", 1.5 * MS / 1000)
        ep.close()
        host.wait(f"event {qp.id} qp_error")	# there may be one of room, too
        qp.destroy()


def drop_silences(host, qp):
    """Those that were reported before the answer."""
    with contextlib.suppress(Failure):
        while True:
            host.wait(f"event {qp.id} silent", 0)


@shared("a peer that sends, and does not read, is reported")
def _(host):
    qp, ep = to_host(host)
    ep.answer_reads = False
    src = host.mr(1 << 20)
    region = ep.register(1 << 20)
    wr = qp.write(src, 0, 1 << 20, region.stag, region.base)
    for _ in range(20 * MS // 50):
        try:
            host.wait(f"event {qp.id} silent", 0.05)
            break
        except Failure:
            ep.write(1, 0, b"")
    else:
        raise Failure("the device waits for ever")
    host.quiet(f"wc {qp.id}", 0)
    ep.close()
    qp.event("qp_error")
    line = host.wait(f"wc {qp.id} {wr} ")
    check(line.split()[4] in ("retry_exc", "remote_err"), line)


@shared("more Sends than receives: held back, not lost")
def _(host):
    qp, ep = to_host(host, recvs=3)
    mr = host.mr(100, "w")
    for i in range(10):
        ep.send(pattern(50, i))
    ep.write(mr.rkey, mr.addr, b"behind the Sends")
    for i in range(3):
        same_bytes(qp.received(i), pattern(50, i), f"Send {i}")
    host.quiet(f"wc {qp.id}")
    # Its turn is behind the Send's. Where messages may overtake each other it is in place all the same.
    same_bytes(mr.get(0, 16), b"behind the Sends" if host.transport.places_early else bytes(16), "Write behind a Send")
    check(host.stats()["recv_stalls"] >= 1, "stall not counted")
    qp.recv(7)
    for i in range(3, 10):
        same_bytes(qp.received(i), pattern(50, i), f"Send {i}")
    ep.read(1, 0, 0, 1, 0)
    ep.expect(iw.READ_RESP, SOON)
    same_bytes(mr.get(0, 16), b"behind the Sends", "Write")
    qp.recv()
    ep.send(b"and on")
    same_bytes(qp.received(10), b"and on", "Send after the stall")
    ep.close()


@shared("the ends: graceful, reset, by either side; requests are flushed")
def _(host):
    src = host.mr(5000)
    src.set(0, pattern(5000, 1))
    for how in ("", "graceful"):
        qp, ep = to_host(host)
        region = ep.register(5000)
        qp.write(src, 0, 5000, region.stag, region.base)
        host.cmd(f"disconnect {qp.id} {how}")
        try:
            while True:
                ep.next(SOON)
        except iw.Closed as e:
            if how:
                same_bytes(bytes(region.buf), pattern(5000, 1), "data before the graceful end")
                check(not e.reset, "reset for a graceful end")
        for i in range(4):
            qp.done(i, "flushed")
        ep.close()
        qp.destroy()
    for how in ("fin", "rst", "terminate"):
        qp, ep = to_host(host)
        ep.answer_reads = False
        region = ep.register(5000)
        wr = qp.write(src, 0, 5000, region.stag, region.base)
        take_all(ep, 0.05)
        if how == "fin":
            ep.end()
        elif how == "rst":
            ep.reset()
        else:
            ep.terminate(0, 2, 7)
        line = qp.event("qp_error")
        check(len(line.split()) > 3, f"{how}: no reason: {line}")
        line = host.wait(f"wc {qp.id} {wr} ")
        check(line.split()[4] != "ok", line)
        for i in range(4):
            qp.done(i, "flushed")
        ep.close()
        qp.destroy()
    equal(host.stats()["terminates_received"], 1, "Terminates received")


@shared("unusual but valid messages")
def _(host):
    qp, ep = to_host(host, recvs=0)
    mr = host.mr(1000, "w")
    # Reserved bits are not looked at; zero-length Writes and Reads name no memory.
    qp.recv(3)
    ulpdu = bytearray(iw.untagged(iw.SEND, 0, ep._next_msn(0), 0, b"reserved bits"))
    ulpdu[0] |= 0x3c
    ulpdu[1] |= 0x30
    ep.send_ulpdu(bytes(ulpdu))
    same_bytes(qp.received(0), b"reserved bits", "Send")
    ep.send_ulpdu(iw.tagged(iw.WRITE, 0xdead, 0xffffffffffffffff))
    ep.read(1, 2, 0, 0xdead, 0xffffffffffffffff)
    ep.expect(iw.READ_RESP, SOON)
    # Between the segments of a Send, segments of a Write.
    msn = ep._next_msn(0)
    ep.send_ulpdu(iw.untagged(iw.SEND_SE, 0, msn, 0, b"one ", last=False))
    ep.send_ulpdu(iw.tagged(iw.WRITE, mr.rkey, mr.addr, b"between"))
    ep.send_ulpdu(iw.untagged(iw.SEND_SE, 0, msn, 4, b"two"))
    same_bytes(qp.received(1), b"one two", "Send in two segments")
    same_bytes(mr.get(0, 7), b"between", "Write")
    # The ends of the region.
    ep.write(mr.rkey, mr.addr + 999, b"z")
    ep.write(mr.rkey, mr.addr, b"a")
    # The last segment may be empty.
    msn = ep._next_msn(0)
    ep.send_ulpdu(iw.untagged(iw.SEND, 0, msn, 0, b"empty end", last=False))
    ep.send_ulpdu(iw.untagged(iw.SEND, 0, msn, 9, b""))
    same_bytes(qp.received(2), b"empty end", "Send with an empty last segment")
    equal((mr.get(0, 1), mr.get(999, 1)), (b"a", b"z"), "ends of the region")
    qp.first = 3
    exchange(host, qp, ep)
    ep.close()


@shared("garbage: no crash, no hang", crc=0, connect_ms=20 * MS)
def _(host):
    seed = int.from_bytes(os.urandom(4), "big")
    host.t.note(f"seed {seed}")
    rnd = random.Random(seed)
    for turn in range(60):
        qp, ep = to_host(host, host.transport.unchecked(), recvs=2)
        mr = host.mr(500, "w")
        try:
            for _ in range(rnd.randrange(1, 6)):
                kind = rnd.randrange(3)
                if kind == 0:
                    ep.stream.send_raw(rnd.randbytes(rnd.randrange(1, 300)))
                elif kind == 1:
                    ulpdu = bytearray(iw.tagged(iw.WRITE, mr.rkey, mr.addr + rnd.randrange(500), rnd.randbytes(20)))
                    ulpdu[rnd.randrange(14)] = rnd.randrange(256)
                    ep.send_ulpdu(bytes(ulpdu))
                else:
                    ulpdu = bytearray(iw.untagged(rnd.randrange(8), rnd.randrange(3), 1, 0, rnd.randbytes(rnd.randrange(40))))
                    ulpdu[rnd.randrange(18)] = rnd.randrange(256)
                    ep.send_ulpdu(bytes(ulpdu))
            ep.end()
            while True:
                ep.stream.recv_ulpdu(SOON)
        except iw.Timeout:
            raise Failure("the device does not end a stream whose peer has ended") from None
        except (iw.Error, OSError):
            pass
        ep.close()
        qp.event("qp_error")
        qp.destroy()
        host.cmd(f"dereg {mr.id}")
    qp, ep = to_host(host, recvs=0)
    exchange(host, qp, ep)
    ep.close()


def stream_errors(b):
    """Every error of DDP and RDMAP on an established stream, on a Bad."""
    def run(name, whys, make):
        act, headers = segment(make)
        single = whys if not isinstance(whys, list) else whys[0]
        b.run(name, whys, act, headers if single[0] == 1 else None)
    run("unknown STag", (1, 1, 0), lambda b: iw.tagged(iw.WRITE, b.mr.rkey ^ 0xff00, b.mr.addr, b"x"))
    run("STag 0", (1, 1, 0), lambda b: iw.tagged(iw.WRITE, 0, b.mr.addr, b"x"))
    run("STag with another key byte", (1, 1, 0), lambda b: iw.tagged(iw.WRITE, b.mr.rkey ^ 1, b.mr.addr, b"x"))
    run("revoked STag", (1, 1, 0), lambda b: iw.tagged(iw.WRITE, b.gone.rkey, b.gone.addr, b"x"))
    run("STag without the right to write", (1, 1, 0), lambda b: iw.tagged(iw.WRITE, b.ro.rkey, b.ro.addr, b"x"))
    run("STag of receives", (1, 1, 0), lambda b: iw.tagged(iw.WRITE, b.qp.buf.rkey, b.qp.buf.addr, b"x"))
    run("one byte behind", (1, 1, 1), lambda b: iw.tagged(iw.WRITE, b.mr.rkey, b.mr.addr + 990, b"x" * 11))
    run("behind", (1, 1, 1), lambda b: iw.tagged(iw.WRITE, b.mr.rkey, b.mr.addr + 1000, b"x"))
    run("before", (1, 1, 1), lambda b: iw.tagged(iw.WRITE, b.mr.rkey, b.mr.addr - 1, b"xx"))
    run("far away", (1, 1, 1), lambda b: iw.tagged(iw.WRITE, b.mr.rkey, b.mr.addr ^ 1 << 62, b"x"))
    run("TO wraps", (1, 1, 3), lambda b: iw.tagged(iw.WRITE, b.mr.rkey, (1 << 64) - 1, b"xx"))
    for dv in (0, 2, 3):
        run(f"DDP version {dv}, tagged", (1, 1, 4), lambda b: iw.tagged(iw.WRITE, b.mr.rkey, b.mr.addr, b"x", dv=dv))
        run(f"DDP version {dv}, untagged", (1, 2, 6), lambda b: iw.untagged(iw.SEND, 0, 1, 0, b"x", dv=dv))
    for rv in (0, 2, 3):
        run(f"RDMAP version {rv}", (0, 2, 5), lambda b: iw.untagged(iw.SEND, 0, 1, 0, b"x", rv=rv))
    for opcode in range(8, 16):
        run(f"opcode {opcode}", (0, 2, 6), lambda b: iw.untagged(opcode, 0, 1, 0, b"x" * 8))
    for opcode in (iw.READ_REQ, iw.SEND, iw.TERMINATE, 9):
        run(f"opcode {opcode}, tagged", (0, 2, 6), lambda b: iw.tagged(opcode, b.mr.rkey, b.mr.addr, b"x"))
    for opcode in (iw.WRITE, iw.READ_RESP):
        run(f"opcode {opcode}, untagged", (0, 2, 6), lambda b: iw.untagged(opcode, 0, 1, 0, b"x"))
    run("Send on QN 1", [(0, 2, 6), (1, 2, 1)], lambda b: iw.untagged(iw.SEND, 1, 1, 0, b"x"))
    run("Send on QN 3", (1, 2, 1), lambda b: iw.untagged(iw.SEND, 3, 1, 0, b"x"))
    run("Send on QN of all ones", (1, 2, 1), lambda b: iw.untagged(iw.SEND, 0xffffffff, 1, 0, b"x"))
    run("Read Request on QN 0", [(0, 2, 6), (1, 2, 1)], lambda b: iw.untagged(iw.READ_REQ, 0, 1, 0, bytes(28)))
    for msn in (0, 2, 0xffffffff):
        run(f"MSN {msn}", (1, 2, 3), lambda b: iw.untagged(iw.SEND, 0, msn, 0, b"x"))
    run("MO 1 at the start", (1, 2, 4), lambda b: iw.untagged(iw.SEND, 0, 1, 1, b"x"))
    run("MO of all ones", (1, 2, 4), lambda b: iw.untagged(iw.SEND, 0, 1, 0xffffffff, b"x"))
    run("Send one byte too long", (1, 2, 5), lambda b: iw.untagged(iw.SEND, 0, 1, 0, bytes(101)))
    run("Read Response to nothing", [(0, 2, 6), (0, 2, 0xff), (1, 1, 0)], lambda b: iw.tagged(iw.READ_RESP, 1, 0))
    run("Send with Invalidate", [(0, 1, 9), (0, 2, 9)], lambda b: iw.untagged(iw.SEND_INV, 0, 1, 0, b"x", inv=b.mr.rkey ^ 1))
    read = lambda b, **kw: iw.read_request(kw.pop("msn", 1), 7, 0, kw.pop("size", 8), kw.pop("stag", b.ro.rkey),
                                          kw.pop("to", b.ro.addr), **kw)
    run("Read of an unknown STag", (0, 1, 0), lambda b: read(b, stag=b.ro.rkey ^ 0xff00))
    run("Read without the right", (0, 1, 2), lambda b: read(b, stag=b.mr.rkey, to=b.mr.addr))
    run("Read beyond the end", (0, 1, 1), lambda b: read(b, size=1001))
    run("Read before the start", (0, 1, 1), lambda b: read(b, to=b.ro.addr - 1))
    run("Read whose TO wraps", (0, 1, 4), lambda b: read(b, to=(1 << 64) - 1))
    run("Read of 4 GiB", (0, 1, 1), lambda b: read(b, size=0xffffffff))
    run("Read Request MSN 2", (1, 2, 3), lambda b: read(b, msn=2))
    run("Read Request MO 4", (1, 2, 4), lambda b: iw.untagged(iw.READ_REQ, 1, 1, 4, bytes(28)))
    run("Read Request one byte too long", (1, 2, 5), lambda b: iw.untagged(iw.READ_REQ, 1, 1, 0, bytes(29)))
    run("Read Request one byte too short", [(1, 2, 5), (2, 0, 3), (0, 2, 0xff), (0, 2, 7), (0, 2, 6)],
        lambda b: iw.untagged(iw.READ_REQ, 1, 1, 0, bytes(27)))
    for n in (0, 1, 2, 13):
        run(f"ULPDU of {n} bytes", [(2, 0, 3), (0, 2, 0xff), (0, 2, 7)], lambda b: iw.tagged(iw.WRITE, 1, 0)[:n])
    run("untagged ULPDU of 17 bytes", [(2, 0, 3), (0, 2, 0xff), (0, 2, 7)], lambda b: iw.untagged(iw.SEND, 0, 1)[:17])
    b.run("two segments with a gap", (1, 2, 4), lambda b: [b.ep.send_ulpdu(u) for u in (
        iw.untagged(iw.SEND, 0, 1, 0, bytes(10), last=False), iw.untagged(iw.SEND, 0, 1, 20, bytes(10)))])
    b.run("another MSN in the middle of a message", (1, 2, 3), lambda b: [b.ep.send_ulpdu(u) for u in (
        iw.untagged(iw.SEND, 0, 1, 0, bytes(10), last=False), iw.untagged(iw.SEND, 0, 2, 0, bytes(10)))])
    b.run("second segment too long", (1, 2, 5), lambda b: [b.ep.send_ulpdu(u) for u in (
        iw.untagged(iw.SEND, 0, 1, 0, bytes(60), last=False), iw.untagged(iw.SEND, 0, 1, 60, bytes(41)))])
    # The first error is reported.
    b.run("two errors", (1, 1, 0), lambda b: [b.ep.send_ulpdu(u) for u in (
        iw.tagged(iw.WRITE, 9, 9, b"x"), iw.untagged(iw.SEND, 0, 7, 0, b"x"))])
