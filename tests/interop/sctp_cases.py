"""
What a device owes to a peer over SCTP, however the peer comes by its own: cases for test_ddp_sctp.py, whose peer has one
in Python, and vm/check_sctp.py and vm/check_sctp_kernel.py, where one of the two or both have the kernel's. Each registers them
for its own transports, by register().
"""
import os
import random

import iwarp_cases
import pyiwarp as iw
import pysctp
import pysctp_ddp as ddp
from iwarp_cases import stream_errors
from pysmc import PACKETS_TOGETHER, Pdata
from siw_scene import MS, SOON, Bad, confirm_all, exchange, from_host, host_case, pd_reply, start_active, to_host
from harness import Failure, case, check, equal, pattern, same_bytes, wait_until

# What is lost comes again after 200 ms and more: a device without patience would take that for a peer that is gone.
PATIENT = {"connect_ms": 20 * MS, "answer_ms": 20 * MS}
AMOUNT = 60000
CASES = []		# (name, function of a Host, whether for both profiles)


class Sctp:
    """As siw_scene's Mpa. stack: of our side; ports: for its Port."""
    command, peer, rtr = [], None, None
    places_early = True
    stack, ports = pysctp, {}

    def __init__(self, profile=ddp.RFC5043):
        self.profile = profile
        self.settings = {"transport": "sctp", "profile": profile.name}

    def associate(self, at, timeout, **kw):
        return ddp.associate(at, timeout, profile=self.profile, stack=self.stack, **self.ports, **kw)

    def connect(self, at, request, **kw):
        return ddp.connect(at, request, profile=self.profile, stack=self.stack, **self.ports, **kw)

    def listener(self, addr):
        return ddp.Listener(addr, self.profile, self.stack, **self.ports)

    def request(self, **over):
        return ddp.initiate(self.profile, **over)

    unchecked = request


def shared(name, both=False):
    def keep(fn):
        CASES.append((name, fn, both))
        return fn
    return keep


def register(*transports, where=""):
    """For the first transport alone, or for each, by its profile."""
    for name, fn, both in CASES:
        for transport in transports if both else transports[:1]:
            host_case(f"{name}, {transport.profile.name}{where}", transport)(fn)
    for transport in transports:
        iwarp_cases.register(transport, f", {transport.profile.name}{where}")
    case(f"every error on an established stream has its Terminate{where}", timeout=60)(
        lambda t: every_error(t, transports[0]))


def register_ways(*transports, where=""):
    """What takes a peer with an SCTP of its own: chunks that are held back or lost."""
    host_case(f"a Write is placed before its turn, a Send waits for it{where}", transports[0])(early_write)
    host_case(f"a message is sent before an earlier one is acknowledged{where}", transports[0])(
        nothing_waits_for_an_acknowledgement)
    host_case(f"a message that never ends{where}", transports[0])(endless_message)
    for transport in transports:
        host_case(f"a bad path, {transport.profile.name}{where}", transport, **PATIENT)(bad_path)
        if transport.settings.get("sctp_stack") != "kernel":
            host_case(f"packets are sent together to a peer that supports it, {transport.profile.name}{where}", transport)(together)


def together(host):
    """And one by one to any other: Linux's SCTP in UDP crashes on packets that a neighbour's kernel has not cut apart."""
    src = host.mr(AMOUNT)
    for flags in (0, PACKETS_TOGETHER, 0xffffffff ^ PACKETS_TOGETHER):
        for role in ("passive", "active"):
            if role == "passive":
                qp, ep = to_host(host, flags=flags)
            else:
                qp, ep = from_host(host, over={"flags": flags})
            region = ep.register(AMOUNT)
            confirm_all(ep, qp, [qp.write(src, 0, AMOUNT, region.stag, region.base)])
            came = ep.stream.assoc.port.together
            equal(came > 0, flags == PACKETS_TOGETHER, f"{role}, flags {flags:#x}: {came} datagrams of several packets")
            ep.close()
            qp.event("qp_error")
            qp.destroy()


# -- ways to connect --


@shared("the device as passive side", both=True)
def _(host):
    requests = [host.transport.request(), ddp.Control(ddp.INITIATE)]
    if host.transport.profile.enhanced:
        requests += [host.transport.request(p2p=True, rtr={rtr}) for rtr in ("send", "write", "read")]
    for request in requests:
        qp, ep = to_host(host, request, recvs=0)
        got = ep.peer_frame.enhanced
        equal(got is None, request.enhanced is None, f"{request} answered by {ep.peer_frame}: the block")
        if got:
            equal((got.p2p, got.rtr >= request.enhanced.rtr), (request.enhanced.p2p, True), f"{request} answered by {got}")
        exchange(host, qp, ep)
        ep.close()
        qp.event("qp_error")
        qp.destroy()


@shared("the device as active side", both=True)
def _(host):
    qp, ep = from_host(host, recvs=0)
    if host.transport.profile.enhanced:
        check(not ep.request.enhanced.p2p, f"{ep.request} asks for an RTR, which SCTP does not need")
    exchange(host, qp, ep)
    ep.close()
    qp.event("qp_error")


@shared("rejected requests, and rejection of ours")
def _(host):
    qp = host.expecting(4)
    for what, over, verdict in (("wrong token", {"token": qp.token ^ 1}, 2), ("no receives", {"recv_depth": 0}, 1),
                                ("unknown QPN", {"qpn": 0xfffff1}, 4), ("version 7", {"version": 7}, 1)):
        try:
            request = host.transport.request(private=qp.pdata(**over))
            host.transport.connect((host.addr, host.port), request, timeout=SOON).close()
        except iw.Rejected as e:
            equal((e.reply.function, Pdata.decode(e.reply.private).verdict), (ddp.REJECT, verdict), what)
        else:
            raise Failure(f"{what}: accepted")
    for kind in (ddp.REJECT, ddp.TERMINATE):
        for block in (True, False):
            lst = host.listener()
            q = host.qp()
            start_active(host, q, lst)
            session, request = lst.accept(SOON)
            private = pd_reply(request, verdict=2) if kind == ddp.REJECT else b""
            session.send_control(ddp.Control(kind, request.enhanced if kind == ddp.REJECT else None, private, block))
            q.event("connect_failed")
            session.reset()
            lst.close()
            q.destroy()


@shared("a missing or different adaptation indication")
def _(host):
    for adaptation in (None, 3):
        try:
            how = host.transport.associate((host.addr, host.port), SOON, adaptation=adaptation).assoc.wait_end(SOON)
        except iw.Closed as e:
            how = "reset" if e.reset else "closed"	# at once
        equal(how, "reset", f"adaptation {adaptation}")


@shared("Sends and Writes in any order", both=True)
def _(host):
    seed = int.from_bytes(os.urandom(4), "big")
    host.t.note(f"seed {seed}")
    rnd = random.Random(seed)
    qp, ep = to_host(host, recvs=0)
    mr = host.mr(1000, "w")
    for turn in range(100):
        qp.recv(4)
        sends = [pattern(50, 4 * turn + i) for i in range(4)]
        ulpdus = [ep.segments_of_send(data)[0] for data in sends]
        ulpdus[2:2] = [iw.tagged(iw.WRITE, mr.rkey, mr.addr + 100 * i, pattern(100, turn + i)) for i in range(10)]
        order = list(range(len(ulpdus)))
        rnd.shuffle(order)
        ep.stream.send_ulpdus(ulpdus, order)
        for i, data in enumerate(sends):
            same_bytes(qp.received(4 * turn + i), data, f"Send {i} in the order {order}")
        same_bytes(mr.get(0, 1000), b"".join(pattern(100, turn + i) for i in range(10)), f"Writes in the order {order}")
    ep.close()


# -- chunks that are held back or lost --


def early_write(host):
    qp, ep = to_host(host, recvs=3)
    mr = host.mr(100, "w")
    held = ep.stream.assoc.port.way.hold(pysctp.message(ep.stream.assoc.sent))
    ep.send(b"first")
    ep.write(mr.rkey, mr.addr, b"early")
    ep.send(b"second")
    wait_until(lambda: mr.get(0, 5) == b"early", "the Write behind a message that is missing is placed")
    host.quiet(f"wc {qp.id}")
    held.release()
    equal([qp.received(i) for i in range(2)], [b"first", b"second"], "Sends")
    ep.close()


def nothing_waits_for_an_acknowledgement(host):
    """SCTP_NODELAY (the draft's 8.2): a short message goes while an earlier one is not acknowledged."""
    qp, ep = to_host(host, recvs=0)
    held = ep.stream.assoc.port.way.hold(pysctp.of_type(pysctp.SACK))
    src = host.mr(100)
    for _ in range(3):
        qp.send(src, 0, 10)
        equal(len(ep.recv(SOON)), 10, "a Send before any SACK")
    check(held.held, "SACKs were held back")
    held.release()
    ep.close()


def endless_message(host):
    """More of one message than the stack keeps: it hands over a part, which DDP cannot take."""
    qp, ep = to_host(host, recvs=1)
    assoc = ep.stream.assoc
    try:
        for i in range(400):
            assoc.send(bytes(1000), 16, flags=pysctp.UNORDERED | (pysctp.FIRST if i == 0 else 0))
    except (iw.Closed, iw.Timeout):
        pass
    qp.event("qp_error", "the peer sends messages in fragments")
    qp.destroy()


def bad_path(host):
    seed = int.from_bytes(os.urandom(4), "big")
    host.t.note(f"seed {seed}")
    qp, ep = to_host(host, recvs=0)
    way = ep.stream.assoc.port.way
    way.drop(pysctp.of_type(pysctp.DATA))	# one at least
    mangled = way.mangle(random.Random(seed), 0.1)
    exchange(host, qp, ep)
    check(ep.stream.assoc.resent > 0, "nothing was sent again")
    mangled.release()	# an ABORT that is lost is not said again
    ep.reset()
    qp.event("qp_error")


# -- errors --

CATASTROPHIC = (0, 2, 7)	# for the stream: RFC 5043 has no code for segments that make no order or have no header


def every_error(t, transport):
    b = Bad(t, transport)
    stream_errors(b)
    send = iw.untagged(iw.SEND, 0, 1, 0, b"x")
    for name, act in (
            ("a DDP-SSN again", lambda s: s.send_ulpdu(send, 0)),
            ("duplicate DDP-SSN, ahead", lambda s: [s.send_ulpdu(send, 9) for _ in range(2)]),
            ("a DDP-SSN far ahead", lambda s: s.send_ulpdu(send, 0x8001)),
            ("a segment of one byte", lambda s: s.send_ulpdu(send[:1])),
            ("a segment shorter than its header", lambda s: s.send_ulpdu(send[:17]))):
        b.run(name, [CATASTROPHIC], lambda b, act=act: act(b.ep.stream))
    for name, act in (
            ("a second Initiate", lambda s: s.send_control(ddp.initiate())),
            ("an unknown function", lambda s: s.send_control(ddp.Control(ddp.ACCEPT), code=9)),
            ("a function cut short", lambda s: s.send_message(17, b"\0"))):
        b.run(name, ddp.LOCAL, lambda b, act=act: act(b.ep.stream))
    b.finish()


@shared("messages before the session is accepted")
def _(host):
    for name, act in (("a segment", lambda s: s.send_ulpdu(iw.untagged(iw.SEND, 0, 1, 0, b"x"))),
                      ("an Accept", lambda s: s.send_control(ddp.Control(ddp.ACCEPT))),
                      ("a Terminate", lambda s: s.send_control(ddp.Control(ddp.TERMINATE)))):
        session = host.transport.associate((host.addr, host.port), SOON)
        act(session)
        check(session.assoc.wait_end(SOON) in ("closed", "reset"), name)
    qp, ep = to_host(host, recvs=0)
    exchange(host, qp, ep)
    ep.close()


@shared("a waiting Initiate is withdrawn before it has a queue pair")
def _(host):
    """In order, it is no mistake; anything else is one."""
    qpn = 0
    for name, more, mistakes in (("a Terminate", lambda s: s.send_control(ddp.Control(ddp.TERMINATE)), 0),
                                 ("a second Initiate", lambda s: s.send_control(host.transport.request()), 1),
                                 ("a segment", lambda s: s.send_ulpdu(iw.untagged(iw.SEND, 0, 1, 0, b"x")), 1)):
        before, qpn = host.stats()["mpa_bad"], qpn + 1
        session = host.transport.associate((host.addr, host.port), SOON)
        with host.still():	# both are there when it looks
            session.send_control(host.transport.request(private=Pdata(qpn=qpn, psn=6, token=7, from_qpn=8).encode()))
            more(session)
        check(session.assoc.wait_end(SOON) in ("closed", "reset"), name)
        equal(host.stats()["mpa_bad"] - before, mistakes, f"{name}: mistakes that were counted")


@shared("depths of a mismatched Accept are known", both=True)
def _(host):
    if not host.transport.profile.enhanced:
        return
    lst = host.listener()
    q = host.qp()
    start_active(host, q, lst)
    session, request = lst.accept(SOON)
    session.send_control(ddp.Control(ddp.ACCEPT, iw.Enhanced(ird=5, ord=3000), pd_reply(request)))
    q.event("connect_failed")
    equal(q.depths(), (5, 3000), "depths of the peer")
    session.reset()
    lst.close()
    q.destroy()


@shared("forged messages instead of an Accept, beside a healthy link", both=True)
def _(host):
    first = host.transport.profile.first_ssn
    send = iw.untagged(iw.SEND, 0, 1, 0, b"x")
    bystander, to_bystander = to_host(host, recvs=0)
    for name, lie in (
            ("a DDP-SSN far ahead", lambda s: s.send_ulpdu(send, 0x8001)),
            ("duplicate DDP-SSN, ahead", lambda s: [s.send_ulpdu(send, first + 9) for _ in range(2)]),
            ("a segment", lambda s: s.send_ulpdu(send)),
            ("an Initiate", lambda s: s.send_control(ddp.initiate(host.transport.profile))),
            ("a function cut short", lambda s: s.send_message(host.transport.profile.control, b"\0")),
            ("another payload protocol", lambda s: s.send_message(99, send))):
        lst = host.listener()
        q = host.qp()
        q.recv(4)
        start_active(host, q, lst)
        session, _ = lst.accept(SOON)
        lie(session)
        q.event("connect_failed")
        session.reset()
        lst.close()
        q.destroy()
        host.t.note(name)
    exchange(host, bystander, to_bystander)
    to_bystander.close()
