"""
DDP over SCTP in Python: RFC 5043 with RFC 6581 section 7, and draft-ietf-rddp-sctp-00, on pysctp.py or on Linux's own
(stack=ksctp); what is above it, segments and RDMAP, is pyiwarp.py's, which also has the shape of what is here.

    Profile      RFC5043, DRAFT00: the numbers
    Control      a session control message
    Session      the DDP stream session on an association: an Llp, whose messages are put in order by their DDP-SSN
    connect()    the active side
    Listener     the passive side
    swarm()      a hostile one
"""
import random
import socket
import struct
import time

import pyiwarp as iw
import pysctp as sctp
from pyiwarp import Broken, Closed, Error, Rejected

NEGOTIATE, INITIATE, ACCEPT, REJECT, TERMINATE = "Negotiate", "Initiate", "Accept", "Reject", "Terminate"
PRIVATE_MAX = 512
LOCAL = (2, 0, 5)	# the Terminate for a session gone wrong (RFC 6581 8)


class Profile:
    """codes: of the functions without and, in `enhanced`, with the block of RFC 6581 9."""

    def __init__(self, name, adaptation, segment, control, first_ssn, codes, enhanced):
        self.name, self.adaptation, self.segment, self.control = name, adaptation, segment, control
        self.first_ssn, self.codes, self.enhanced = first_ssn, codes, enhanced

    def function(self, code):
        """(function, whether enhanced)."""
        for codes in (self.codes, self.enhanced):
            for function, other in codes.items():
                if code == other:
                    return function, codes is self.enhanced
        raise Broken(LOCAL, f"session control function {code:#x}")


RFC5043 = Profile("rfc5043", 1, 16, 17, 0, {INITIATE: 1, ACCEPT: 2, REJECT: 3, TERMINATE: 4},
                  {INITIATE: 5, ACCEPT: 6, REJECT: 7})
DRAFT00 = Profile("draft-00", 2, 1, 2, 1, {NEGOTIATE: 1, INITIATE: 2, ACCEPT: 3, TERMINATE: 4}, {})
PROFILES = (RFC5043, DRAFT00)


class Control:
    """`enhanced` None: a function without the block. An Enhanced Reject may come without it, and then says so by
    block=False, which only a sender can know."""

    def __init__(self, function, enhanced=None, private=b"", block=True):
        self.function, self.enhanced, self.private, self.block = function, enhanced, private, block

    @property
    def reject(self):
        """The draft has no other word for it than Terminate; RFC 5043 has both."""
        return self.function in (REJECT, TERMINATE)

    def encode(self, profile, code=None):
        """Without the DDP-SSN. code: another one than the right one."""
        if code is None:
            code = (profile.codes if self.enhanced is None else profile.enhanced)[self.function]
        block = self.enhanced.encode() if self.enhanced and self.block else b""
        return struct.pack(">H", code) + block + self.private

    @classmethod
    def decode(cls, profile, body):
        if len(body) < 2:
            raise Broken(LOCAL, f"session control message of {len(body)} bytes")
        (code,), private = struct.unpack_from(">H", body), body[2:]
        function, is_enhanced = profile.function(code)
        if len(private) > PRIVATE_MAX or function == TERMINATE and private:
            raise Broken(LOCAL, f"{function} with {len(private)} bytes of private data")
        enhanced = None
        if is_enhanced:
            if len(private) < 4:
                raise Broken(LOCAL, f"enhanced {function} with {len(private)} bytes of private data")
            enhanced, private = iw.Enhanced.decode(private[:4]), private[4:]
        return cls(function, enhanced, private)

    def __repr__(self):
        return f"Control({self.function} {self.enhanced} private={self.private.hex()})"


class Session(iw.Llp):
    """Messages both ways, each with its DDP-SSN. early: those that came before their turn, by their number; overtakes
    counts them. terminated: the peer's session Terminate was there."""

    def __init__(self, assoc, profile=RFC5043):
        self.assoc, self.profile = assoc, profile
        self.tx_ssn = self.rx_ssn = profile.first_ssn
        self.early = {}
        self.overtakes = 0
        self.ending = self.terminated = False

    # -- sending --

    def take_ssn(self):
        """The next DDP-SSN, for a message that is sent later, or never."""
        ssn = self.tx_ssn
        self.tx_ssn = ssn + 1 & 0xffff
        return ssn

    def send_message(self, ppid, body, ssn=None, **how):
        """how: see Association.send(). The number of the message in the association."""
        return self.assoc.send(struct.pack(">H", self.take_ssn() if ssn is None else ssn) + body, ppid, **how)

    def send_ulpdu(self, ulpdu, ssn=None, **how):
        return self.send_message(self.profile.segment, ulpdu, ssn, **how)

    def send_control(self, control, ssn=None, code=None, **how):
        return self.send_message(self.profile.control, control.encode(self.profile, code), ssn, **how)

    def send_raw(self, data):
        """A message that may be anything, as a segment; nothing is in front of it."""
        return self.assoc.send(data, self.profile.segment)

    def send_ulpdus(self, ulpdus, order):
        """All of them, with numbers in order, but sent in this order of their indices."""
        ssns = [self.take_ssn() for _ in ulpdus]
        for i in order:
            self.send_ulpdu(ulpdus[i], ssns[i])

    def settimeout(self, seconds):
        self.assoc.timeout = seconds

    def end(self):
        """The session Terminate, and a SHUTDOWN behind it."""
        if not self.ending:
            self.ending = True
            self.send_control(Control(TERMINATE))
        self.assoc.shutdown()

    def close(self):
        try:
            self.end()
        except (Error, OSError):
            self.assoc.abort()

    def reset(self):
        self.assoc.abort()

    # -- receiving --

    def _take(self, data):
        if data.flags & 7 != sctp.WHOLE:
            raise Broken(LOCAL, f"message with flags {data.flags:#x}, not unordered and in one piece")
        if data.sid != 0:
            raise Broken(LOCAL, f"message on stream {data.sid}")
        if data.ppid not in (self.profile.segment, self.profile.control) or len(data.payload) < 2:
            raise Broken(LOCAL, f"message of {len(data.payload)} bytes, payload protocol {data.ppid}")
        (ssn,) = struct.unpack_from(">H", data.payload)
        if ssn - self.rx_ssn & 0x8000 or ssn in self.early:
            raise Broken(LOCAL, f"DDP-SSN {ssn}, expected {self.rx_ssn}")
        self.overtakes += ssn != self.rx_ssn
        self.early[ssn] = data

    def fill(self, timeout):
        try:
            self._take(self.assoc.recv(max(timeout, 0)))
        except iw.Timeout:
            return False
        return True

    def _next(self):
        """The message whose turn it is: a Control, an ULPDU, or None."""
        if self.rx_ssn not in self.early:
            return None
        data = self.early.pop(self.rx_ssn)
        self.rx_ssn = self.rx_ssn + 1 & 0xffff
        if data.ppid == self.profile.control:
            return Control.decode(self.profile, data.payload[2:])
        return data.payload[2:]

    def pop(self):
        if self.terminated:
            raise Closed(False, "session Terminate")
        got = self._next()
        if not isinstance(got, Control):
            return got
        if got.function != TERMINATE:
            raise Broken(LOCAL, f"{got} out of turn")
        self.terminated = True
        return self.pop()

    def recv_control(self, timeout=iw.SOON):
        """The next message, which has to be a session control message."""
        end = time.monotonic() + timeout
        while (got := self._next()) is None:
            if not self.fill(end - time.monotonic()):
                raise iw.Timeout("no session control message in time")
        if not isinstance(got, Control):
            raise Broken(LOCAL, f"segment {got[:20].hex()} where session control was expected")
        return got

    def at_end(self, timeout=iw.SOON):
        end = time.monotonic() + timeout
        try:
            ulpdu = self.recv_ulpdu(timeout)
            raise Error(f"{iw.Segment(ulpdu)} where the end was expected")
        except Closed as e:
            if e.reset:
                return "reset"
        return self.assoc.wait_end(end - time.monotonic())

    # -- the start --

    def check_adaptation(self):
        """The peer has to do what the profile wants."""
        if self.assoc.peer_adaptation != self.profile.adaptation:
            self.assoc.abort()
            raise Error(f"adaptation indication {self.assoc.peer_adaptation}, expected {self.profile.adaptation}")


def ddp_ssn(*ssns):
    """Picks messages by their DDP-SSN, for the rules of a Way."""
    return lambda chunk: isinstance(chunk, sctp.Data) and struct.unpack_from(">H", chunk.payload)[0] in ssns


def initiate(profile=RFC5043, ird=1, ord=1, p2p=False, rtr=(), private=b""):
    """What an active side says first. SCTP needs no RTR: either side may send first."""
    return Control(INITIATE, iw.Enhanced(ird, ord, p2p, rtr) if profile.enhanced else None, private)


def associate(at, timeout=iw.SOON, source=None, profile=RFC5043, port=None, prepare=None, stack=sctp, **kw):
    """An association of a Port of its own, which goes with it: its Session, with nothing said yet. port: the peer's
    SCTP port, by default its UDP port, which is in `at`; prepare: called with our Port before anything leaves; kw: see
    Port."""
    own = stack.Port(source or ("::" if ":" in at[0] else ""), **{"adaptation": profile.adaptation, **kw})
    try:
        if prepare:
            prepare(own)
        return Session(own.connect(at, port, timeout), profile)
    finally:
        own.close()


def connect(at, request=None, rtr=None, timeout=iw.SOON, source=None, profile=RFC5043, **kw):
    """The active side, as pyiwarp's connect(); kw: see associate()."""
    request = request or initiate(profile)
    session = associate(at, timeout, source, profile, **kw)
    try:
        return begin(session, request, rtr, timeout)
    except BaseException:
        session.close()
        raise


def begin(session, request, rtr=None, timeout=iw.SOON):
    """The active side on an association that is there."""
    session.check_adaptation()
    session.send_control(request)
    reply = session.recv_control(timeout)
    if reply.reject:
        session.ending = True
        raise Rejected(reply)
    if reply.function != ACCEPT or (reply.enhanced is None) != (request.enhanced is None):
        raise Error(f"{request} answered by {reply}")
    ep = iw.Endpoint(session)
    ep.peer_frame = reply
    if reply.enhanced:
        iw.begin(ep, request.enhanced, reply.enhanced, rtr)
    return ep


class Listener:
    """The passive side: accept() gives (Session, its Initiate), serve() an Endpoint."""

    def __init__(self, host="127.0.0.1", profile=RFC5043, stack=sctp, **kw):
        """kw: see Port."""
        self.port = stack.Port(host, listening=True, **{"adaptation": profile.adaptation, **kw})
        self.at, self.profile = self.port.at, profile

    def close(self):
        self.port.close()

    def forget(self):
        self.port.forget()

    def accept(self, timeout=iw.SOON):
        session = Session(self.port.accept(timeout), self.profile)
        try:
            session.check_adaptation()
            request = session.recv_control(timeout)
            if request.function != INITIATE:
                raise Error(f"{request} for an Initiate")
        except BaseException:
            session.close()
            raise
        return session, request

    def answer(self, request, rtr=iw.RTR_ALL, ird=16, ord=16, private=b"", reject=False):
        """The Control that the specifications ask for. The draft rejects by a Terminate, which has no private data."""
        if reject and REJECT not in self.profile.codes:
            return Control(TERMINATE)
        enhanced = request.enhanced.answer(ird, ord, rtr) if request.enhanced else None
        return Control(REJECT if reject else ACCEPT, enhanced, private)

    def serve(self, timeout=iw.SOON, wait_rtr=True, **answer):
        """As pyiwarp's serve()."""
        session, request = self.accept(timeout)
        if callable(answer.get("private")):
            answer["private"] = answer["private"](request)
        return self.reply(session, request, timeout, wait_rtr, **answer)

    def reply(self, session, request, timeout=iw.SOON, wait_rtr=True, **answer):
        """As pyiwarp's reply()."""
        reply = self.answer(request, **answer)
        session.send_control(reply)
        if reply.reject:
            session.ending = True
            session.close()
            return None
        ep = iw.Endpoint(session)
        ep.request = ep.peer_frame = request
        if reply.enhanced and reply.enhanced.p2p and wait_rtr:
            ep.rtr_seen = ep.next(timeout)
        return ep


def init(tag=1, streams=1, adaptation=RFC5043.adaptation):
    """An INIT chunk."""
    body = struct.pack(">IIHHI", tag, sctp.WINDOW, streams, streams, 1)
    return sctp.Chunk(sctp.INIT, 0, body + sctp.parameter(sctp.ADAPTATION, struct.pack(">I", adaptation)))


def swarm(at, source, seconds):
    """Associations from one UDP address, as many as one core can make, each with a first message that is none and nothing behind it,
    not even an acknowledgement; how many."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((source, 0))	# raw: held from here on
        sock.setblocking(False)
        rnd, wrong = random.Random(1), sctp.Data(1, 0, 0, RFC5043.control, b"\0\0garbage!")
        end, begun, made = time.monotonic() + seconds, 0, 0

        def send(port, tag, *chunks):
            try:
                sock.sendto(sctp.encode_packet(port, at[1], tag, *chunks), at)
            except BlockingIOError:
                pass	# as if it was lost

        while time.monotonic() < end:
            for _ in range(8):
                begun += 1
                send(1 + begun % 65535, 0, init(rnd.randrange(1, 1 << 32)))
            try:
                while True:
                    data = sock.recv(1 << 16)
                    port, chunk = struct.unpack_from(">H", data, 2)[0], sctp.chunks_of(data[12:])[0]
                    if chunk.type == sctp.INIT_ACK:
                        send(port, sctp.read_init(chunk)[0], sctp.Chunk(sctp.COOKIE_ECHO, 0, sctp.cookie_of(chunk)), wrong)
                    made += chunk.type == sctp.COOKIE_ACK
            except BlockingIOError:
                pass
        return made
