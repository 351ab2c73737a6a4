"""
SCTP (RFC 9260) in UDP (RFC 6951), as much of it as a peer of DDP needs: one path, one stream each way, messages in one
chunk each, a fixed window, a simple timer. No congestion control, and no message is put in order: DDP asks for none.
A second implementation beside the stacks of others; it can be a correct peer, and every step can also be done wrong on
purpose.

    Port           a UDP socket with an SCTP port on it: connect(), accept()
    Association    send(), recv(), shutdown(), abort()
    Way            the way out of a Port: its chunks held back, swapped, doubled, dropped, damaged

Each packet has one chunk, so what is done to a chunk on its way is done to nothing else. A thread of the Port does what
a kernel does for a socket: it acknowledges, sends again and answers while the test does other things.
"""
import collections
import hmac
import os
import select
import socket
import struct
import threading
import time

from pyiwarp import SOON, Closed, Error, Timeout, crc32c

(DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT, SHUTDOWN, SHUTDOWN_ACK, ERROR, COOKIE_ECHO,
 COOKIE_ACK) = range(12)
SHUTDOWN_COMPLETE = 14
NAMES = ("DATA", "INIT", "INIT ACK", "SACK", "HEARTBEAT", "HEARTBEAT ACK", "ABORT", "SHUTDOWN", "SHUTDOWN ACK", "ERROR",
         "COOKIE ECHO", "COOKIE ACK", "ECNE", "CWR", "SHUTDOWN COMPLETE")
UNORDERED, FIRST, LAST = 4, 2, 1	# flags of DATA
WHOLE = UNORDERED | FIRST | LAST
REFLECTED = 1			# flag T of ABORT and SHUTDOWN COMPLETE: the tag is the receiver's own
COOKIE, UNRECOGNIZED, ADAPTATION = 7, 8, 0xc006		# parameters
KNOWN = (1, 5, 6, COOKIE, UNRECOGNIZED, 9, 11, 12, ADAPTATION)
WINDOW = 256 << 10
RTO, RTO_MAX, TRIES = 0.4, 1.6, 12
MASK = 0xffffffff
UDP_GRO = 104			# of the socket: datagrams may be several packets

# -- packets --


class Chunk:
    """number: which message of its association it is, from 0, for a DATA chunk that we send."""

    def __init__(self, type, flags=0, body=b"", number=None):
        self.type, self.flags, self.body, self.number = type, flags, bytes(body), number

    def encode(self):
        return struct.pack(">BBH", self.type, self.flags, 4 + len(self.body)) + self.body + bytes(-len(self.body) % 4)

    def __repr__(self):
        name = NAMES[self.type] if self.type < len(NAMES) else f"chunk type {self.type}"
        return f"<{name} flags {self.flags:#x} {self.body[:16].hex()} {len(self.body)} bytes>"


class Data(Chunk):
    def __init__(self, tsn, sid, ssn, ppid, payload, flags=WHOLE, number=None):
        super().__init__(DATA, flags, struct.pack(">IHHI", tsn, sid, ssn, ppid) + payload, number)
        self.tsn, self.sid, self.ssn, self.ppid, self.payload = tsn, sid, ssn, ppid, bytes(payload)

    @classmethod
    def decode(cls, chunk):
        if len(chunk.body) < 13:
            raise Error(f"{chunk}: no user data")
        return cls(*struct.unpack_from(">IHHI", chunk.body), chunk.body[12:], chunk.flags)


def _tlvs(data, head, what):
    """All that is in data in the form of chunks and parameters: the fields of the head but the length, and the value."""
    at = 0
    while at < len(data):
        if len(data) - at < 4:
            raise Error(f"{what} with {len(data) - at} bytes too many")
        *fields, length = struct.unpack_from(head, data, at)
        # The pad of the last parameter is not in the length of its chunk.
        if length < 4 or at + length > len(data):
            raise Error(f"{what} of {length} bytes, {len(data) - at} are there")
        yield (*fields, data[at + 4:at + length])
        at += length + -length % 4


def chunks_of(data):
    return [Chunk(*fields) for fields in _tlvs(data, ">BBH", "chunk")]


def parameter(type, value):
    return struct.pack(">HH", type, 4 + len(value)) + value + bytes(-len(value) % 4)


def encode_packet(source, destination, tag, *chunks):
    """With the SCTP ports and the verification tag; its CRC32c goes with the low byte first."""
    head = struct.pack(">HHI", source, destination, tag)
    body = b"".join(chunk.encode() for chunk in chunks)
    return head + struct.pack("<I", crc32c(head + bytes(4) + body)) + body


def _behind(a, b):
    """How far TSN a is behind b; 1 << 31 and more when it is before it."""
    return a - b & MASK


# -- what becomes of what we send --


def any_chunk(_):
    return True


def of_type(*types):
    """Picks chunks by their type, for the rules of a Way."""
    return lambda chunk: chunk.type in types


def message(*numbers):
    """Picks DATA chunks by their place in the association, from 0; those that are sent again, too."""
    return lambda chunk: chunk.type == DATA and chunk.number in numbers


def tsn(*numbers):
    return lambda chunk: isinstance(chunk, Data) and chunk.tsn in numbers


class Rule:
    """What happens to the next `left` packets whose chunk fits."""

    def __init__(self, way, fits, left, act):
        self.way, self.fits, self.left, self.act = way, fits, left, act
        self.held = []		# packets, in the order in which they would have left
        self.met = 0		# packets that it took

    def end(self):
        with self.way.lock:
            self.left = 0

    def release(self, order=None):
        """Ends it, and sends what it held back: all, or these by their index, in this order; the others are lost."""
        with self.way.lock:
            self.left = 0
            for i in range(len(self.held)) if order is None else order:
                self.way.emit(*self.held[i])
            self.held.clear()


class Way:
    """The way out of a Port. The first rule that fits a chunk decides about its packet; without one it goes out."""

    def __init__(self, emit, lock):
        self.emit, self.lock = emit, lock
        self.rules = []

    def out(self, chunk, packet):
        for rule in self.rules:
            if rule.left > 0 and rule.fits(chunk):
                rule.left -= 1
                rule.met += 1
                rule.act(rule, packet)
                return
        self.emit(*packet)

    def _add(self, fits, times, act):
        rule = Rule(self, fits, times, act)
        with self.lock:
            self.rules.append(rule)
        return rule

    def drop(self, fits=any_chunk, times=1):
        return self._add(fits, times, lambda rule, packet: None)

    def hold(self, fits, times=float("inf")):
        """Holds packets back; what is sent again meanwhile counts once."""
        def act(rule, packet):
            if packet not in rule.held:
                rule.held.append(packet)
        return self._add(fits, times, act)

    def watch(self, fits=any_chunk):
        """Keeps a copy of what leaves."""
        return self._add(fits, float("inf"), lambda rule, packet: (rule.held.append(packet), self.emit(*packet)))

    def double(self, fits=any_chunk, times=1):
        return self._add(fits, times, lambda rule, packet: (self.emit(*packet), self.emit(*packet)))

    def damage(self, fits=any_chunk, times=1, at=-1):
        """Turns a bit of the packet over, which its CRC32c then tells."""
        def act(rule, packet):
            data = bytearray(packet[0])
            data[at] ^= 0x10
            self.emit(bytes(data), *packet[1:])
        return self._add(fits, times, act)

    def swap(self, fits=any_chunk, times=1):
        """Sends two that fit the other way round."""
        def act(rule, packet):
            if not rule.held:
                rule.held.append(packet)
                return
            self.emit(*packet)
            self.emit(*rule.held.pop())
        return self._add(fits, 2 * times, act)

    def mangle(self, rnd, share, fits=any_chunk):
        """Does one of all that to this share of the packets, by a random.Random."""
        def act(rule, packet):
            what = rnd.random() / share
            if what < 0.3:
                return
            if what < 0.6 and not rule.held:
                rule.held.append(packet)
                return
            if what < 0.7:
                self.emit(packet[0][:-1] + bytes((packet[0][-1] ^ 1,)), *packet[1:])
                return
            self.emit(*packet)
            if what < 1:
                self.emit(*packet)
            if rule.held:
                self.emit(*rule.held.pop())
        return self._add(fits, float("inf"), act)


# -- ports --


class Port:
    """A UDP socket and an SCTP port. udp 0: any; port None: the same number as UDP's. adaptation: the indication that
    goes out in INIT and INIT ACK, None for no such parameter."""

    def __init__(self, host="127.0.0.1", udp=0, port=None, adaptation=None, listening=False, rto=RTO):
        self.sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((host, udp))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.sock.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        self.together = 0		# datagrams that were several packets, which the sender's kernel had not cut apart
        self.at = self.sock.getsockname()[:2]
        self.port = self.at[1] if port is None else port
        self.adaptation, self.listening, self.rto = adaptation, listening, rto
        self.cond = threading.Condition(threading.RLock())
        self.way = Way(self._emit, self.cond)
        self.associations = {}		# by the peer's address and SCTP port
        self.backlog = []		# not yet accepted
        self.key, self.used = os.urandom(16), set()	# of cookies
        self.dropped = collections.Counter()		# packets that came, by why they were dropped
        self.failure = None
        self.closing = False
        self.until = 0			# answers, even to what it knows no more
        threading.Thread(target=self._run, daemon=True).start()

    def close(self):
        """No more associations; the socket goes with the last one."""
        with self.cond:
            self.closing, self.listening = True, False
            self.forget()

    def forget(self):
        """Aborts associations that were not accepted."""
        with self.cond:
            while self.backlog:
                self.backlog.pop().abort()

    def connect(self, at, port=None, timeout=SOON):
        """The Association with an SCTP port, by default of the same number as the UDP port in `at`."""
        with self.cond:
            assoc = Association(self, at, at[1] if port is None else port, _tag(), _tag())
            self.associations[at[0], assoc.peer_port] = assoc
            assoc.start()
            assoc.wait(lambda: assoc.state == "established", timeout, "association")
        return assoc

    def accept(self, timeout=SOON):
        end = time.monotonic() + timeout
        with self.cond:
            while not self.backlog:
                if self.failure:
                    raise self.failure
                if not self.cond.wait(end - time.monotonic()):
                    raise Timeout("no association")
            return self.backlog.pop(0)

    def send_raw(self, at, port, tag, *chunks):
        """A packet of its own, all chunks in it; the way asks for the first one."""
        with self.cond:
            self.way.out(chunks[0], (encode_packet(self.port, port, tag, *chunks), at))

    def _emit(self, data, at):
        if self.sock.fileno() >= 0:
            self.sock.sendto(data, at)

    def _run(self):
        try:
            while not self.closing or self.associations or time.monotonic() < self.until:
                came = select.select([self.sock], [], [], 0.01)[0]
                with self.cond:
                    if came:
                        self._datagram_in(*self.sock.recvmsg(1 << 16, socket.CMSG_SPACE(4)))
                    for assoc in list(self.associations.values()):
                        assoc.tick(time.monotonic())
        except Exception as e:
            self.failure = e
        finally:
            with self.cond:
                self.sock.close()
                self.cond.notify_all()

    def _datagram_in(self, data, control, _flags, at):
        each = len(data)
        for level, kind, value in control:
            if (level, kind) == (socket.IPPROTO_UDP, UDP_GRO):
                each = struct.unpack("i", value[:4])[0]
        self.together += each < len(data)
        for i in range(0, len(data), each or 1):
            self._packet_in(data[i:i + each], at[:2])

    def _packet_in(self, data, at):
        if len(data) < 16 or crc32c(data[:8] + bytes(4) + data[12:]) != struct.unpack_from("<I", data, 8)[0]:
            self.dropped["CRC32c"] += 1
            return
        source, destination, tag = struct.unpack_from(">HHI", data)
        if destination != self.port:
            self.dropped["port"] += 1
            return
        try:
            self._chunks_in(chunks_of(data[12:]), at, source, tag)
        except (Error, struct.error) as e:
            assoc = self.associations.get((at[0], source))
            if assoc is not None and tag == assoc.tag:
                assoc.broken(e)
            else:
                self.dropped["malformed"] += 1

    def _chunks_in(self, chunks, at, source, tag):
        assoc = self.associations.get((at[0], source))
        if chunks[0].type == INIT:
            self._init_in(chunks, at, source, tag)
            return
        if chunks[0].type == COOKIE_ECHO:
            assoc = self._cookie_in(chunks[0], at, source, tag)
            if assoc is None:
                return
        if assoc is None:
            self._out_of_the_blue(chunks, at, source, tag)
        elif assoc.knows(tag, chunks[0]):
            assoc.at = at
            assoc.packet_in(chunks)
        else:
            self.dropped["tag"] += 1

    def _init_in(self, chunks, at, source, tag):
        if len(chunks) != 1 or tag != 0:
            self.dropped["INIT"] += 1
            return
        peer_tag, rwnd, _, _, tsn, adaptation, unknown = read_init(chunks[0])
        if not self.listening:
            self.send_raw(at, source, peer_tag, Chunk(ABORT))
            return
        # All that the association will need is in the cookie: nothing is kept before it comes back.
        cookie = struct.pack(">IIIIIq", _tag(), _tag(), peer_tag, tsn, rwnd, -1 if adaptation is None else adaptation)
        body = cookie[:4] + struct.pack(">IHH", WINDOW, 1, 1) + cookie[4:8] + self.adaptation_parameter()
        body += parameter(COOKIE, cookie + hmac.digest(self.key, cookie, "sha256"))
        body += b"".join(parameter(UNRECOGNIZED, p) for p in unknown)
        self.send_raw(at, source, peer_tag, Chunk(INIT_ACK, 0, body))

    def adaptation_parameter(self):
        return b"" if self.adaptation is None else parameter(ADAPTATION, struct.pack(">I", self.adaptation))

    def _cookie_in(self, chunk, at, source, tag):
        cookie, seal = chunk.body[:28], chunk.body[28:]
        if not hmac.compare_digest(seal, hmac.digest(self.key, cookie, "sha256")):
            self.dropped["cookie"] += 1
            return None
        own_tag, own_tsn, peer_tag, tsn, rwnd, adaptation = struct.unpack(">IIIIIq", cookie)
        assoc = self.associations.get((at[0], source))
        if tag != own_tag or own_tag in self.used and (assoc is None or assoc.tag != own_tag):
            self.dropped["stale cookie"] += 1
            return None
        if own_tag not in self.used:
            self.used.add(own_tag)
            if assoc is not None:
                assoc.finish("reset")	# the peer restarted
            assoc = Association(self, at, source, own_tag, own_tsn)
            self.associations[at[0], source] = assoc
            assoc.peer_is(peer_tag, rwnd, tsn, None if adaptation < 0 else adaptation)
            assoc.state = "established"
            self.backlog.append(assoc)
            self.cond.notify_all()
        return assoc

    def _out_of_the_blue(self, chunks, at, source, tag):
        """RFC 9260 8.4."""
        self.dropped["no association"] += 1
        types = [chunk.type for chunk in chunks]
        if types[0] == SHUTDOWN_ACK:
            self.send_raw(at, source, tag, Chunk(SHUTDOWN_COMPLETE, REFLECTED))
        elif not {ABORT, SHUTDOWN_COMPLETE, COOKIE_ACK, ERROR} & set(types):
            self.send_raw(at, source, tag, Chunk(ABORT, REFLECTED))


def _tag():
    return int.from_bytes(os.urandom(4), "big") or 1


def read_init(chunk):
    """Of an INIT or INIT ACK: tag, window, streams out and in, first TSN, adaptation indication or None, unknown
    parameters to be reported."""
    if len(chunk.body) < 16:
        raise Error(f"{chunk}")
    adaptation, unknown = None, []
    for type, value in _tlvs(chunk.body[16:], ">HH", "parameter"):
        if type == ADAPTATION:
            (adaptation,) = struct.unpack(">I", value)
        elif type not in KNOWN and type & 0x4000:
            unknown.append(parameter(type, value))
        if type not in KNOWN and not type & 0x8000:
            break
    return *struct.unpack_from(">IIHHI", chunk.body), adaptation, unknown


def cookie_of(init_ack):
    cookies = [value for type, value in _tlvs(init_ack.body[16:], ">HH", "parameter") if type == COOKIE]
    if len(cookies) != 1:
        raise Error(f"INIT ACK with {len(cookies)} cookies")
    return cookies[0]


# -- associations --


class Unacked:
    def __init__(self, chunk, due):
        self.chunk, self.due, self.tries = chunk, due, 0


class Association:
    """Of a Port, whose lock guards all of it. Counters: resent, doubled (DATA that came more than once)."""

    def __init__(self, port, at, peer_port, tag, first_tsn):
        self.port, self.at, self.peer_port, self.tag = port, at, peer_port, tag
        self.first_tsn = self.next_tsn = first_tsn
        self.next_ssn = 0		# of ordered messages, which is not what a peer should get
        self.peer_tag = 0		# 0: not known yet
        self.peer_adaptation = None
        self.peer_window = 0
        self.seen = 0			# all TSNs up to here came
        self.ahead = set()		# TSNs that came behind it
        self.again = []			# TSNs that came again, for the next SACK
        self.unacked = {}		# by TSN
        self.awaited = None		# the control chunk that waits for its answer
        self.messages = collections.deque()
        self.unread = 0			# bytes in them
        self.state = "new"
        self.how = None			# it ended so: "closed", "reset", "timeout"
        self.peer_ended = False		# it said SHUTDOWN
        self.failure = None		# what the peer did wrong
        self.errors = []		# bodies of its ERRORs
        self.abort_causes = b""		# of its ABORT
        self.heartbeats = set()		# ours that are not answered
        self.resent = self.doubled = 0
        self.timeout = SOON		# of send()

    # -- for the test --

    @property
    def sent(self):
        """Messages that were sent: the number of the next one."""
        return _behind(self.next_tsn, self.first_tsn)

    def send(self, payload, ppid, sid=0, flags=WHOLE, timeout=None):
        """A message; its number, from 0. Waits for room in the windows."""
        with self.port.cond:
            self.wait(lambda: not self.unacked or self._in_flight() + len(payload) <= min(WINDOW, self.peer_window),
                      self.timeout if timeout is None else timeout, "room to send")
            if self.state != "established":
                raise Closed(False, "a SHUTDOWN is on its way")
            ssn = 0
            if not flags & UNORDERED:
                ssn, self.next_ssn = self.next_ssn, self.next_ssn + 1 & 0xffff
            number = self.sent
            chunk = Data(self.next_tsn, sid, ssn, ppid, payload, flags, number)
            self.unacked[chunk.tsn] = Unacked(chunk, time.monotonic() + self.port.rto)
            self.next_tsn = self.next_tsn + 1 & MASK
            self.send_chunk(chunk)
            return number

    def recv(self, timeout=SOON):
        """The next message as a Data, in the order in which they come. Closed when no more will."""
        with self.port.cond:
            self.wait(lambda: self.messages or self.peer_ended, timeout, "message")
            if not self.messages:
                raise Closed(False)
            was_full = self._room() == 0
            data = self.messages.popleft()
            self.unread -= len(data.payload)
            if was_full and self.how is None:
                self._send_sack()
            return data

    def flush(self, timeout=SOON):
        """Waits until the peer has acknowledged all."""
        with self.port.cond:
            self.wait(lambda: not self.unacked, timeout, "acknowledgement")

    def shutdown(self):
        """Ends it in order, behind what is to be sent and acknowledged; wait_end() waits for that."""
        with self.port.cond:
            if self.state == "established":
                self.state = "shutdown pending"
                self._shut_when_dry()

    def abort(self, causes=b""):
        with self.port.cond:
            if self.how is None:
                self.send_chunk(Chunk(ABORT, 0, causes))
                self.finish("reset")

    def wait_end(self, timeout=SOON):
        """How it ended."""
        with self.port.cond:
            self.wait(lambda: self.how, timeout, "end of the association")
            return self.how

    def heartbeat(self, timeout=SOON):
        """Asks the peer whether it is there."""
        info = parameter(1, os.urandom(8))
        with self.port.cond:
            self.heartbeats.add(info)
            self.send_chunk(Chunk(HEARTBEAT, 0, info))
            self.wait(lambda: info not in self.heartbeats, timeout, "answer to a HEARTBEAT")

    def send_chunk(self, *chunks, tag=None):
        """In one packet, whatever they are; tag: another verification tag than the right one."""
        self.port.send_raw(self.at, self.peer_port, self.peer_tag if tag is None else tag, *chunks)

    def wait(self, fn, timeout, what):
        """Waits for something, for the end, or for a mistake of the peer; the lock is held."""
        end = time.monotonic() + timeout
        while not fn():
            for failure in (self.failure, self.port.failure):
                if failure:
                    raise failure
            if self.how:
                raise Closed(self.how != "closed", self.how)
            left = end - time.monotonic()
            if left <= 0:
                raise Timeout(f"no {what} in time")
            self.port.cond.wait(left)

    # -- for the Port --

    def start(self):
        self.state = "cookie wait"
        body = struct.pack(">IIHHI", self.tag, WINDOW, 1, 1, self.first_tsn) + self.port.adaptation_parameter()
        self._await(Chunk(INIT, 0, body))

    def peer_is(self, tag, window, tsn, adaptation):
        self.peer_tag, self.peer_window, self.peer_adaptation = tag, window, adaptation
        self.seen = tsn - 1 & MASK

    def knows(self, tag, chunk):
        """Is it the verification tag that this chunk needs?"""
        if chunk.type in (ABORT, SHUTDOWN_COMPLETE) and chunk.flags & REFLECTED:
            return tag == self.peer_tag
        return tag == self.tag

    def packet_in(self, chunks):
        for chunk in chunks:
            if self.how:
                return
            self._chunk_in(chunk)
            if chunk.type > SHUTDOWN_COMPLETE and not chunk.type & 0x80:
                break
        if any(chunk.type == DATA for chunk in chunks) and self.how is None:
            self._send_sack()
            if self.state == "shutdown sent":
                self.send_chunk(self.awaited.chunk)
        self.port.cond.notify_all()

    def broken(self, error):
        self.failure = self.failure or Error(f"the peer's SCTP: {error}")
        self.port.cond.notify_all()

    def tick(self, now):
        """T1, T2 and T3 in one: each chunk has its own."""
        for sent in [self.awaited, *self.unacked.values()]:
            if sent is None or now < sent.due or self.how:
                continue
            sent.tries += 1
            if sent.tries > TRIES:
                self.finish("timeout")
                return
            sent.due = now + min(self.port.rto * (1 << sent.tries), RTO_MAX)
            self.resent += 1
            self.send_chunk(sent.chunk)

    def finish(self, how):
        self.how, self.state = how, "ended"
        self.awaited = None
        self.unacked.clear()
        key = self.at[0], self.peer_port
        if self.port.associations.get(key) is self:
            del self.port.associations[key]
        self.port.until = time.monotonic() + 2 * RTO_MAX
        self.port.cond.notify_all()

    # -- what comes --

    def _chunk_in(self, chunk):
        if chunk.type == DATA:
            self._data_in(Data.decode(chunk))
        elif chunk.type == INIT_ACK and self.state == "cookie wait":
            self._init_ack_in(chunk)
        elif chunk.type == COOKIE_ECHO:
            self.send_chunk(Chunk(COOKIE_ACK))
        elif chunk.type == COOKIE_ACK and self.state == "cookie echoed":
            self.state, self.awaited = "established", None
        elif chunk.type == SACK:
            self._sack_in(chunk)
        elif chunk.type == HEARTBEAT:
            self.send_chunk(Chunk(HEARTBEAT_ACK, 0, chunk.body))
        elif chunk.type == HEARTBEAT_ACK:
            self.heartbeats.discard(chunk.body)
        elif chunk.type == ABORT:
            self.abort_causes = chunk.body
            self.finish("reset")
        elif chunk.type == ERROR:
            self.errors.append(chunk.body)
        elif chunk.type == SHUTDOWN:
            self._shutdown_in(chunk)
        elif chunk.type == SHUTDOWN_ACK and self.state in ("shutdown sent", "shutdown acked"):
            self.send_chunk(Chunk(SHUTDOWN_COMPLETE))
            self.finish("closed")
        elif chunk.type == SHUTDOWN_COMPLETE and self.state == "shutdown acked":
            self.finish("closed")
        elif chunk.type > SHUTDOWN_COMPLETE and chunk.type & 0x40:
            self.send_chunk(Chunk(ERROR, 0, parameter(6, chunk.encode())))

    def _init_ack_in(self, chunk):
        tag, window, streams_out, streams_in, tsn, adaptation, _ = read_init(chunk)
        if 0 in (tag, streams_out, streams_in):
            raise Error(f"INIT ACK with tag {tag}, {streams_out} streams out, {streams_in} in")
        self.peer_is(tag, window, tsn, adaptation)
        self.state = "cookie echoed"
        self._await(Chunk(COOKIE_ECHO, 0, cookie_of(chunk)))

    def _data_in(self, data):
        offset = _behind(data.tsn, self.seen)
        if offset == 0 or offset >= 1 << 31 or data.tsn in self.ahead:
            self.doubled += 1
            self.again.append(data.tsn)
            return
        if self._room() == 0:
            return	# not acknowledged: the peer sends it again
        self.ahead.add(data.tsn)
        while self.seen + 1 & MASK in self.ahead:
            self.seen = self.seen + 1 & MASK
            self.ahead.remove(self.seen)
        self.messages.append(data)
        self.unread += len(data.payload)

    def _sack_in(self, chunk):
        seen, self.peer_window, gaps, doubles = struct.unpack_from(">IIHH", chunk.body)
        if len(chunk.body) != 12 + 4 * gaps + 4 * doubles:
            raise Error(f"{chunk} with {gaps} gap blocks and {doubles} duplicates")
        if _behind(seen, self.next_tsn) < 1 << 31:
            raise Error(f"SACK of TSN {seen}, which was not sent")
        blocks = list(struct.iter_unpack(">HH", chunk.body[12:12 + 4 * gaps]))
        self._acknowledge(seen)
        for sent in list(self.unacked):
            if any(first <= _behind(sent, seen) <= last for first, last in blocks):
                del self.unacked[sent]
        self._shut_when_dry()

    def _acknowledge(self, seen):
        for sent in list(self.unacked):
            if _behind(seen, sent) < 1 << 31:
                del self.unacked[sent]

    def _shutdown_in(self, chunk):
        self._acknowledge(*struct.unpack(">I", chunk.body))
        self.peer_ended = True
        if self.state in ("established", "shutdown pending"):
            self.state = "shutdown received"
        if self.state == "shutdown sent":
            self._ack_shutdown()
        self._shut_when_dry()

    # -- what goes --

    def _await(self, chunk):
        """Sends a control chunk, again and again until what it asks for is there."""
        self.awaited = Unacked(chunk, time.monotonic() + self.port.rto)
        self.send_chunk(chunk)

    def _shut_when_dry(self):
        if self.unacked:
            return
        if self.state == "shutdown pending":
            self.state = "shutdown sent"
            self._await(Chunk(SHUTDOWN, 0, struct.pack(">I", self.seen)))
        elif self.state == "shutdown received":
            self._ack_shutdown()

    def _ack_shutdown(self):
        self.state = "shutdown acked"
        self._await(Chunk(SHUTDOWN_ACK))

    def _in_flight(self):
        return sum(len(sent.chunk.payload) for sent in self.unacked.values())

    def _room(self):
        return max(0, WINDOW - self.unread)

    def _send_sack(self):
        blocks = []
        for offset in sorted(_behind(tsn, self.seen) for tsn in self.ahead):
            if blocks and blocks[-1][1] + 1 == offset:
                blocks[-1][1] = offset
            else:
                blocks.append([offset, offset])
        body = struct.pack(">IIHH", self.seen, self._room(), len(blocks), len(self.again))
        body += b"".join(struct.pack(">HH", *block) for block in blocks)
        body += b"".join(struct.pack(">I", tsn) for tsn in self.again)
        self.again.clear()
        self.send_chunk(Chunk(SACK, 0, body))
