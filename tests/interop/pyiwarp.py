"""
iWARP in Python: MPA (RFC 5044, RFC 6581), DDP (RFC 5041) and RDMAP (RFC 5040) on blocking TCP sockets. A second
implementation, written from the RFCs alone, to test the one in C against: it shares nothing with it. It can be a
correct peer, and every step can also be done wrong on purpose.

    Llp         what RDMAP needs of the protocol below it
    Stream      that by MPA: FPDUs on a socket: markers, CRC, cut and checked
    Endpoint    RDMAP on an Llp: messages, memory regions, Terminate; the sender's half lets everything through
    connect()   the initiator's MPA start-up, request() ... its single steps
    Listener    the responder's
    Wire        what is in each TCP segment

One thread uses an Endpoint at a time.
"""
import ctypes
import fcntl
import functools
import os
import select
import socket
import struct
import sys
import termios
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration"))

from basics import PATIENCE

SOON = 5 * PATIENCE		# the longest that a peer waits, by default

# -- CRC32C (RFC 5044 4.4) --


@functools.cache
def _crc_tables():
    one = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ 0x82f63b78 if n & 1 else n >> 1
        one.append(n)
    two = [one[one[n & 255] & 255 ^ n >> 8] ^ one[n & 255] >> 8 for n in range(65536)]
    return one, two


def crc32c_by_table(data, crc=0):
    """CRC32C of data, or of what gave `crc` followed by data; two bytes a step."""
    one, two = _crc_tables()
    crc ^= 0xffffffff
    even = len(data) & ~1
    for (pair,) in struct.iter_unpack("<H", memoryview(data)[:even]):
        crc = two[crc & 0xffff ^ pair] ^ crc >> 16
    if len(data) & 1:
        crc = one[(crc ^ data[-1]) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def _fast_crc32c():
    """The same by ISA-L, which takes a hundredth of the time; test_self.py compares them. Without it, the table's."""
    try:
        fn = ctypes.CDLL("libisal.so.2").crc32_iscsi
    except (OSError, AttributeError):
        return crc32c_by_table
    fn.argtypes, fn.restype = (ctypes.c_char_p, ctypes.c_int, ctypes.c_uint), ctypes.c_uint
    return lambda data, crc=0: fn(bytes(data), len(data), crc ^ 0xffffffff) ^ 0xffffffff


crc32c = _fast_crc32c()


# -- errors --


class Error(Exception):
    """The peer did something wrong or unexpected."""


class Closed(Error):
    """The connection ended; `reset` tells how."""

    def __init__(self, reset, what=""):
        super().__init__(("reset" if reset else "closed") + (f" {what}" if what else ""))
        self.reset = reset


class Timeout(Error):
    """Nothing came in time."""


class Rejected(Error):
    """MPA Reply with R set, or what stands for it elsewhere."""

    def __init__(self, reply):
        super().__init__(f"request rejected, private data {reply.private.hex()}")
        self.reply = reply


class Broken(Error):
    """What came breaks the protocol: `term` is the Terminate (layer, type, code) that is due for it."""

    def __init__(self, term, what, ulpdu=b""):
        super().__init__(f"{what} (Terminate {'/'.join(map(str, term))})")
        self.term = term
        self.ulpdu = ulpdu


# -- MPA start-up frames (RFC 5044 7.1.1, RFC 6581 6 and 9) --

KEY_REQ = b"MPA ID Req Frame"
KEY_REP = b"MPA ID Rep Frame"
RTR_SEND, RTR_WRITE, RTR_READ = "send", "write", "read"
RTR_ALL = frozenset((RTR_SEND, RTR_WRITE, RTR_READ))
NOT_NEGOTIATED = 0x3fff


class Enhanced:
    """The four bytes of RFC 6581 section 9."""

    def __init__(self, ird=1, ord=1, p2p=True, rtr=RTR_ALL):
        self.ird, self.ord, self.p2p, self.rtr = ird, ord, p2p, frozenset(rtr)

    def encode(self):
        a = self.ird | 0x8000 * self.p2p | 0x4000 * (RTR_SEND in self.rtr)
        b = self.ord | 0x8000 * (RTR_WRITE in self.rtr) | 0x4000 * (RTR_READ in self.rtr)
        return struct.pack(">HH", a, b)

    @classmethod
    def decode(cls, data):
        a, b = struct.unpack(">HH", data)
        rtr = {kind for kind, set_ in ((RTR_SEND, a & 0x4000), (RTR_WRITE, b & 0x8000), (RTR_READ, b & 0x4000)) if set_}
        return cls(a & 0x3fff, b & 0x3fff, bool(a & 0x8000), rtr)

    def answer(self, ird=16, ord=16, rtr=RTR_ALL):
        """The block that RFC 6581 9 wants for an answer to this one, of a host with these depths and kinds of RTR."""
        return Enhanced(NOT_NEGOTIATED if self.ord == NOT_NEGOTIATED else max(self.ord, ird),
                        NOT_NEGOTIATED if self.ird == NOT_NEGOTIATED else min(self.ird, ord),
                        self.p2p, rtr if self.p2p else ())

    def __eq__(self, other):
        return isinstance(other, Enhanced) and self.encode() == other.encode()

    def __repr__(self):
        return f"Enhanced(ird={self.ird}, ord={self.ord}, p2p={self.p2p}, rtr={sorted(self.rtr)})"


class MpaFrame:
    """A Request or Reply. `enhanced` None: unenhanced, S clear."""

    def __init__(self, reply=False, rev=2, markers=False, crc=True, reject=False, enhanced=None, private=b""):
        self.reply, self.rev, self.markers, self.crc, self.reject = reply, rev, markers, crc, reject
        self.enhanced, self.private = enhanced, private

    def encode(self, key=None, flags=None, pd_length=None):
        pd = (self.enhanced.encode() if self.enhanced else b"") + self.private
        if flags is None:
            flags = 0x80 * self.markers | 0x40 * self.crc | 0x20 * self.reject | 0x10 * (self.enhanced is not None)
        if key is None:
            key = KEY_REP if self.reply else KEY_REQ
        return key + struct.pack(">BBH", flags, self.rev, len(pd) if pd_length is None else pd_length) + pd

    @classmethod
    def decode(cls, data):
        """From one whole frame."""
        key, (flags, rev, length) = data[:16], struct.unpack(">BBH", data[16:20])
        if key not in (KEY_REQ, KEY_REP):
            raise Error(f"no MPA start-up frame: {data[:20].hex()}")
        if length > 512 or len(data) != 20 + length:
            raise Error(f"MPA frame with PD_Length {length}, {len(data) - 20} bytes there")
        enhanced, private = None, data[20:]
        if flags & 0x10:
            if rev < 2 or length < 4:
                raise Error(f"enhanced MPA frame of revision {rev} with {length} bytes of private data")
            enhanced, private = Enhanced.decode(private[:4]), private[4:]
        return cls(key == KEY_REP, rev, bool(flags & 0x80), bool(flags & 0x40), bool(flags & 0x20), enhanced, private)

    def __repr__(self):
        return (f"MpaFrame({'reply' if self.reply else 'request'} rev={self.rev} markers={self.markers} "
                f"crc={self.crc} reject={self.reject} {self.enhanced} private={self.private.hex()})")


def read_mpa(sock, timeout=SOON):
    """One MPA start-up frame off a socket, not a byte more."""
    end = time.monotonic() + timeout
    data = _read_exact(sock, 20, end)
    (length,) = struct.unpack(">H", data[18:])
    if data[:16] not in (KEY_REQ, KEY_REP) or length > 512:
        raise Error(f"no MPA start-up frame: {data.hex()}")
    return MpaFrame.decode(data + _read_exact(sock, length, end))


def _read_some(sock, n, end):
    left = end - time.monotonic()
    if left <= 0 or not select.select([sock], [], [], left)[0]:
        raise Timeout("nothing came in time")
    try:
        data = sock.recv(n)
    except ConnectionError as e:
        raise Closed(True, str(e)) from None
    if not data:
        raise Closed(False)
    return data


def _read_exact(sock, n, end):
    data = b""
    while len(data) < n:
        data += _read_some(sock, n - len(data), end)
    return data


# -- the protocol below RDMAP and DDP --


class Llp:
    """What an Endpoint needs of it: whole DDP segments ("ULPDUs") both ways, in order. An implementation has

        send_ulpdu(ulpdu, **how)    how: what can be done wrong or otherwise there
        fill(timeout)               waits for something to come; False: nothing did; Closed
        pop()                       the next ULPDU of what came, None when it is not all there; Broken, Closed
        end()                       says that nothing more comes from here
        settimeout(seconds)         how long what goes out may wait for room
        close(), reset()            gives it up, in good order or not
        at_end(timeout)             waits for the peer's end: "closed" or "reset"; Error when ULPDUs come instead
    """

    def recv_ulpdu(self, timeout=SOON):
        end = time.monotonic() + timeout
        while True:
            ulpdu = self.pop()
            if ulpdu is not None:
                return ulpdu
            if not self.fill(end - time.monotonic()):
                raise Timeout("nothing came in time")


# -- FPDUs (RFC 5044 4) --

MARKER_EVERY = 512


def _pad(n):
    """Bytes that make 2 + n a multiple of four."""
    return -(2 + n) % 4


class Stream(Llp):
    """FPDUs in both directions of a socket. tx_markers: the peer asked for them; rx_markers: we did."""

    def __init__(self, sock, tx_markers=False, rx_markers=False, crc=True):
        self.sock = sock
        self.tx_markers, self.rx_markers, self.crc = tx_markers, rx_markers, crc
        self.tx_pos = 0		# bytes since full operation began
        self.rx_pos = 0
        self.rx = bytearray()
        self.markers_seen = 0

    def encode(self, ulpdu, length=None, crc_xor=0, marker_xor=0, pad=None):
        """The next bytes of the stream for this ULPDU. length: another ULPDU_Length than the right one; crc_xor,
        marker_xor: damage to the CRC, and to the FPDUPTRs (the CRC then covers the damage)."""
        body = struct.pack(">H", len(ulpdu) if length is None else length) + bytes(ulpdu)
        body += pad if pad is not None else bytes(_pad(len(ulpdu)))
        out = bytearray()
        at, start = 0, None
        # All that is left to send: the body, then the CRC, which a marker may also precede.
        while at < len(body):
            pos = self.tx_pos + len(out)
            if self.tx_markers and pos % MARKER_EVERY == 0:
                out += struct.pack(">HH", 0, (0 if start is None else pos - start) ^ marker_xor)
                pos += 4
            if start is None:
                start = pos
            n = len(body) - at
            if self.tx_markers:
                n = min(n, MARKER_EVERY - pos % MARKER_EVERY)
            out += body[at:at + n]
            at += n
        pos = self.tx_pos + len(out)
        if self.tx_markers and pos % MARKER_EVERY == 0:
            out += struct.pack(">HH", 0, pos - start ^ marker_xor)
        out += struct.pack("<I", crc32c(out) ^ crc_xor) if self.crc else struct.pack("<I", crc_xor)
        self.tx_pos += len(out)
        return bytes(out)

    def send_ulpdu(self, ulpdu, **damage):
        self.send_raw(self.encode(ulpdu, **damage))

    def send_raw(self, data, pieces=None):
        """Sends bytes; pieces: in parts of that size, each in a segment of its own."""
        try:
            if pieces is None:
                self.sock.sendall(data)
                return
            for i in range(0, len(data), pieces):
                self.sock.sendall(data[i:i + pieces])
        except ConnectionError as e:
            raise Closed(True, str(e)) from None

    def _cut(self):
        """(bytes that the first FPDU in self.rx takes, its ULPDU) or None when it is not all there."""
        at, pos, crc_from = 0, self.rx_pos, 0
        markers = []
        if self.rx_markers and pos % MARKER_EVERY == 0:
            markers.append((0, None))
            at = 4
        if len(self.rx) < at + 2:
            return None
        (length,) = struct.unpack_from(">H", self.rx, at)
        start, left = at, 2 + length + _pad(length)
        body = bytearray()
        while left > 0:
            p = pos + at
            if self.rx_markers and p % MARKER_EVERY == 0:
                markers.append((at, at - start))
                at += 4
                p += 4
            n = left
            if self.rx_markers:
                n = min(n, MARKER_EVERY - p % MARKER_EVERY)
            if len(self.rx) < at + n:
                return None
            body += self.rx[at:at + n]
            at += n
            left -= n
        if self.rx_markers and (pos + at) % MARKER_EVERY == 0:
            markers.append((at, at - start))
            at += 4
        if len(self.rx) < at + 4:
            return None
        if self.crc and crc32c(self.rx[crc_from:at]) != struct.unpack_from("<I", self.rx, at)[0]:
            raise Broken((2, 0, 2), "CRC of an FPDU", bytes(body[2:2 + length]))
        for where, distance in markers:
            if struct.unpack_from(">H", self.rx, where + 2)[0] != (distance or 0):
                raise Broken((2, 0, 3), f"marker at stream byte {pos + where}", bytes(body[2:2 + length]))
        self.markers_seen += len(markers)
        return at + 4, bytes(body[2:2 + length])

    def fill(self, timeout):
        try:
            self.rx += _read_some(self.sock, 1 << 18, time.monotonic() + timeout)
        except Timeout:
            return False
        return True

    def pop(self):
        """The ULPDU of the first FPDU among the bytes that were read; None when it is not all there."""
        got = self._cut()
        if not got:
            return None
        used, ulpdu = got
        del self.rx[:used]
        self.rx_pos += used
        return ulpdu

    def at_end(self, timeout=SOON):
        """Waits for the end of the TCP connection: "closed" or "reset"; Error when bytes come instead."""
        try:
            if not self.rx:
                self.rx += _read_some(self.sock, 1 << 16, time.monotonic() + timeout)
        except Closed as e:
            return "reset" if e.reset else "closed"
        raise Error(f"{len(self.rx)} bytes where the end was expected: {bytes(self.rx[:64]).hex()}")

    def end(self):
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError as e:
            raise Closed(True, str(e)) from None

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def settimeout(self, seconds):
        self.sock.settimeout(seconds)

    def peek(self, timeout=SOON):
        """Waits until there is something to read, and leaves it there."""
        if not select.select([self.sock], [], [], timeout)[0]:
            raise Timeout("nothing came in time")

    def unread(self):
        """Bytes that came and were not read."""
        return len(self.rx) + int.from_bytes(fcntl.ioctl(self.sock, termios.FIONREAD, bytes(4)), sys.byteorder)

    def drain(self, timeout=SOON):
        """Reads to the end of the TCP connection: (bytes that still came, "closed" or "reset")."""
        end, n = time.monotonic() + timeout, len(self.rx)
        self.rx.clear()
        try:
            while True:
                n += len(_read_some(self.sock, 1 << 18, end))
        except Closed as e:
            return n, "reset" if e.reset else "closed"


# -- DDP segments and RDMAP messages (RFC 5041 4, RFC 5040 4) --

WRITE, READ_REQ, READ_RESP, SEND, SEND_INV, SEND_SE, SEND_SE_INV, TERMINATE = range(8)
NAMES = ("Write", "Read Request", "Read Response", "Send", "Send with Invalidate", "Send with SE",
         "Send with SE and Invalidate", "Terminate")
TAGGED_OPS = (WRITE, READ_RESP)
QN_SEND, QN_READ, QN_TERM = 0, 1, 2


def _control(tagged, last, opcode, dv, rv):
    return bytes((0x80 * tagged | 0x40 * last | dv, rv << 6 | opcode))


def tagged(opcode, stag, to, payload=b"", last=True, dv=1, rv=1, t=True):
    """A tagged DDP segment; t=False lies about that."""
    return _control(t, last, opcode, dv, rv) + struct.pack(">IQ", stag, to) + payload


def untagged(opcode, qn, msn, mo=0, payload=b"", last=True, inv=0, dv=1, rv=1, t=False):
    return _control(t, last, opcode, dv, rv) + struct.pack(">IIII", inv, qn, msn, mo) + payload


def read_request(msn, sink_stag, sink_to, size, src_stag, src_to, **kw):
    body = struct.pack(">IQIIQ", sink_stag, sink_to, size, src_stag, src_to)
    return untagged(READ_REQ, QN_READ, msn, 0, body, **kw)


def terminate(layer, etype, code, ddp_header=b"", rdmap_header=b"", length=None):
    """length: of the terminated segment; goes in whenever a header does."""
    flags = 0x80 * (length is not None) | 0x40 * bool(ddp_header) | 0x20 * bool(rdmap_header)
    body = bytes((layer << 4 | etype, code, flags, 0))
    if length is not None:
        body += struct.pack(">H", length)
    return untagged(TERMINATE, QN_TERM, 1, 0, body + ddp_header + rdmap_header)


class Segment:
    """A decoded DDP segment."""

    def __init__(self, ulpdu):
        if len(ulpdu) < 2:
            raise Broken((2, 0, 3), f"ULPDU of {len(ulpdu)} bytes", ulpdu)
        self.tagged, self.last = bool(ulpdu[0] & 0x80), bool(ulpdu[0] & 0x40)
        self.dv, self.rv, self.opcode = ulpdu[0] & 3, ulpdu[1] >> 6, ulpdu[1] & 15
        self.ulpdu = ulpdu
        head = 14 if self.tagged else 18
        if self.dv != 1:
            raise Broken((1, 1, 4) if self.tagged else (1, 2, 6), f"DDP version {self.dv}", ulpdu)
        if len(ulpdu) < head:
            raise Broken((2, 0, 3), f"ULPDU of {len(ulpdu)} bytes", ulpdu)
        if self.tagged:
            self.stag, self.to = struct.unpack(">IQ", ulpdu[2:14])
        else:
            self.inv, self.qn, self.msn, self.mo = struct.unpack(">IIII", ulpdu[2:18])
        self.payload = ulpdu[head:]

    def __repr__(self):
        what = NAMES[self.opcode] if self.opcode < 8 else f"opcode {self.opcode}"
        where = f"stag={self.stag:#x} to={self.to:#x}" if self.tagged else f"qn={self.qn} msn={self.msn} mo={self.mo}"
        return f"<{what} {where} {len(self.payload)} bytes{' last' if self.last else ''}>"


class Term:
    """A decoded Terminate body (RFC 5040 4.8)."""

    def __init__(self, body):
        if len(body) < 4:
            raise Error(f"Terminate of {len(body)} bytes")
        self.layer, self.etype, self.code = body[0] >> 4, body[0] & 15, body[1]
        self.flags = body[2]
        at = 4
        self.length = self.ddp_header = self.rdmap_header = None
        if self.flags & 0x80:
            (self.length,) = struct.unpack_from(">H", body, at)
            at += 2
        if self.flags & 0x40:
            if self.length is None:
                raise Error("Terminate with a DDP header but no segment length")
            n = 14 if body[at] & 0x80 else 18
            self.ddp_header = body[at:at + n]
            at += n
        if self.flags & 0x20:
            self.rdmap_header = body[at:at + 28]
            at += 28
        if at != len(body):
            raise Error(f"Terminate of {len(body)} bytes, its flags {self.flags:#x} say {at}")

    @property
    def why(self):
        return (self.layer, self.etype, self.code)

    def __repr__(self):
        return f"<Terminate {self.layer}/{self.etype}/{self.code}>"


# -- RDMAP (RFC 5040) --


class Region:
    """Memory that the peer may write or read; addresses start at `base`."""

    def __init__(self, size, base, stag, write=True, read=False):
        self.buf = bytearray(size)
        self.base, self.stag, self.write, self.read = base, stag, write, read

    def place(self, to, data):
        at = to - self.base
        self.buf[at:at + len(data)] = data

    def bytes(self, to, n):
        return bytes(self.buf[to - self.base:to - self.base + n])


class Event:
    """What one received message amounts to: kind is an opcode; Sends have `data`, `opcode`, `inv`; Writes and Read
    Responses `to` and `data` (of this segment, `last` tells whether it was the last); Read Requests `req`;
    Terminates `term`."""

    def __init__(self, kind, **what):
        self.kind = kind
        self.__dict__.update(what)

    def __repr__(self):
        return f"<{NAMES[self.kind]} {({k: v for k, v in self.__dict__.items() if k != 'kind'})}>"


class Endpoint:
    """RDMAP on an Llp."""

    def __init__(self, stream, mulpdu=1400, ird=16, ord=16):
        self.stream = stream
        self.mulpdu = mulpdu
        self.ird, self.ord = ird, ord
        self.tx_msn = {QN_SEND: 1, QN_READ: 1}
        self.rx_msn = {QN_SEND: 1, QN_READ: 1, QN_TERM: 1}
        self.regions = {}
        self.receives = None	# posted receives: how many Sends may come; None = any number
        self.receive_size = 65536
        self.answer_reads = True
        self.reads_held = []	# Read Requests not answered
        self.reads_out = []	# our Reads: [stag, to, bytes left]
        self.partial = b""	# of the Send that is arriving
        self.peer_frame = None	# what the peer said at the start
        self.placed = 0		# bytes the peer wrote

    @property
    def sock(self):
        """Where the Llp is a Stream."""
        return self.stream.sock

    def settimeout(self, seconds):
        self.stream.settimeout(seconds)

    def close(self):
        self.stream.close()

    def reset(self):
        self.stream.reset()

    def end(self):
        self.stream.end()

    # -- sending --

    def register(self, size, base=None, stag=None, write=True, read=False):
        if stag is None:
            stag = int.from_bytes(os.urandom(4), "big") | 1
        if base is None:
            base = int.from_bytes(os.urandom(5), "big") << 12
        self.regions[stag] = Region(size, base, stag, write, read)
        return self.regions[stag]

    def send_ulpdu(self, ulpdu, **damage):
        self.stream.send_ulpdu(ulpdu, **damage)

    def _next_msn(self, qn):
        msn = self.tx_msn[qn]
        self.tx_msn[qn] = msn + 1 & 0xffffffff
        return msn

    def segments_of_send(self, data, opcode=SEND, inv=0):
        """The ULPDUs of a Send, which takes the next MSN."""
        msn, room, out = self._next_msn(QN_SEND), self.mulpdu - 18, []
        for mo in range(0, max(len(data), 1), room):
            out.append(untagged(opcode, QN_SEND, msn, mo, data[mo:mo + room], last=mo + room >= len(data), inv=inv))
        return out

    def send(self, data, opcode=SEND, inv=0):
        for ulpdu in self.segments_of_send(data, opcode, inv):
            self.send_ulpdu(ulpdu)

    def _send_tagged(self, opcode, stag, to, data):
        room = self.mulpdu - 14
        for at in range(0, max(len(data), 1), room):
            self.send_ulpdu(tagged(opcode, stag, to + at & 0xffffffffffffffff, data[at:at + room],
                                   last=at + room >= len(data)))

    def write(self, stag, to, data):
        self._send_tagged(WRITE, stag, to, data)

    def read(self, sink_stag, sink_to, size, src_stag, src_to):
        self.reads_out.append([sink_stag, sink_to, size])
        self.send_ulpdu(read_request(self._next_msn(QN_READ), sink_stag, sink_to, size, src_stag, src_to))

    def respond(self, req):
        """Answers a Read Request: (sink stag, sink to, size, source stag, source to)."""
        sink_stag, sink_to, size, src_stag, src_to = req
        data = self.regions[src_stag].bytes(src_to, size) if size else b""
        self._send_tagged(READ_RESP, sink_stag, sink_to, data)

    def terminate(self, layer, etype, code, **headers):
        self.send_ulpdu(terminate(layer, etype, code, **headers))

    def rtr(self, kind):
        """The zero-length message of RFC 6581 9.2."""
        if kind == RTR_SEND:
            self.send(b"")
        elif kind == RTR_WRITE:
            self.send_ulpdu(tagged(WRITE, 1, 0))
        else:
            self.read(1, 0, 0, 1, 0)

    # -- receiving --

    def _check_region(self, seg, stag, to, n, right, layer):
        """layer: (layer, type) of the Terminate; DDP and RDMAP number these errors differently."""
        region = self.regions.get(stag)
        wrap, rights = (3, 0) if layer[0] == 1 else (4, 2)
        if region is None:
            raise Broken((*layer, 0), f"STag {stag:#x}", seg.ulpdu)
        if not getattr(region, right):
            raise Broken((*layer, rights), f"{right} of STag {stag:#x}", seg.ulpdu)
        if to + n > 1 << 64:
            raise Broken((*layer, wrap), f"TO {to:#x} + {n}", seg.ulpdu)
        if to < region.base or to + n > region.base + len(region.buf):
            raise Broken((*layer, 1), f"TO {to:#x} + {n} of STag {stag:#x}", seg.ulpdu)
        return region

    def _take_write(self, seg):
        if seg.payload:
            self._check_region(seg, seg.stag, seg.to, len(seg.payload), "write", (1, 1)).place(seg.to, seg.payload)
            self.placed += len(seg.payload)
        return Event(WRITE, stag=seg.stag, to=seg.to, data=seg.payload, last=seg.last)

    def _take_read_response(self, seg):
        if not self.reads_out:
            raise Broken((0, 2, 6), "unsolicited Read Response", seg.ulpdu)
        want = self.reads_out[0]
        if want[2] or seg.payload:
            if (seg.stag, seg.to) != (want[0], want[1]) or len(seg.payload) > want[2]:
                raise Broken((1, 1, 1), f"Read Response {seg}, wanted {want}", seg.ulpdu)
            region = self.regions.get(seg.stag)
            if region is None:
                raise Broken((1, 1, 0), "sink STag", seg.ulpdu)
            region.place(seg.to, seg.payload)
        want[1] += len(seg.payload)
        want[2] -= len(seg.payload)
        if seg.last:
            if want[2]:
                raise Broken((1, 1, 1), f"Read Response {want[2]} bytes short", seg.ulpdu)
            self.reads_out.pop(0)
        return Event(READ_RESP, to=seg.to, data=seg.payload, last=seg.last)

    def _take_send(self, seg):
        if seg.msn != self.rx_msn[QN_SEND]:
            raise Broken((1, 2, 3), f"MSN {seg.msn} for {self.rx_msn[QN_SEND]}", seg.ulpdu)
        if self.receives == 0 and seg.mo == 0:
            raise Broken((1, 2, 2), "no receive posted", seg.ulpdu)
        if seg.mo != len(self.partial):
            raise Broken((1, 2, 4), f"MO {seg.mo} for {len(self.partial)}", seg.ulpdu)
        if seg.mo + len(seg.payload) > self.receive_size:
            raise Broken((1, 2, 5), f"Send of {seg.mo + len(seg.payload)} bytes", seg.ulpdu)
        self.partial += seg.payload
        if not seg.last:
            return None
        data, self.partial = self.partial, b""
        self.rx_msn[QN_SEND] = self.rx_msn[QN_SEND] + 1 & 0xffffffff
        if self.receives is not None:
            self.receives -= 1
        return Event(SEND, data=data, opcode=seg.opcode, inv=seg.inv)

    def _take_read_request(self, seg):
        if seg.msn != self.rx_msn[QN_READ]:
            raise Broken((1, 2, 3), f"Read Request MSN {seg.msn} for {self.rx_msn[QN_READ]}", seg.ulpdu)
        if seg.mo != 0:
            raise Broken((1, 2, 4), "Read Request MO", seg.ulpdu)
        if len(seg.payload) != 28:
            raise Broken((1, 2, 5), f"Read Request of {len(seg.payload)} bytes", seg.ulpdu)
        if len(self.reads_held) >= self.ird:
            raise Broken((1, 2, 2), "more Reads than IRD", seg.ulpdu)
        self.rx_msn[QN_READ] = self.rx_msn[QN_READ] + 1 & 0xffffffff
        req = struct.unpack(">IQIIQ", seg.payload)
        if req[2]:
            self._check_region(seg, req[3], req[4], req[2], "read", (0, 1))
        if self.answer_reads:
            self.respond(req)
        else:
            self.reads_held.append(req)
        return Event(READ_REQ, req=req)

    def answer_held(self):
        """Answers every Read Request that was held back."""
        while self.reads_held:
            self.respond(self.reads_held.pop(0))

    def take(self, ulpdu):
        """One ULPDU: an Event, or None in the middle of a message. Broken when it breaks the protocol."""
        seg = Segment(ulpdu)
        if seg.rv != 1:
            raise Broken((0, 2, 5), f"RDMAP version {seg.rv}", ulpdu)
        if seg.opcode > TERMINATE or seg.tagged != (seg.opcode in TAGGED_OPS):
            raise Broken((0, 2, 6), f"opcode {seg.opcode}", ulpdu)
        if seg.tagged:
            return self._take_write(seg) if seg.opcode == WRITE else self._take_read_response(seg)
        if seg.qn > QN_TERM:
            raise Broken((1, 2, 1), f"QN {seg.qn}", ulpdu)
        qn = {READ_REQ: QN_READ, TERMINATE: QN_TERM}.get(seg.opcode, QN_SEND)
        if seg.qn != qn:
            raise Broken((0, 2, 6), f"opcode {seg.opcode} on QN {seg.qn}", ulpdu)
        if qn == QN_SEND:
            return self._take_send(seg)
        if qn == QN_READ:
            return self._take_read_request(seg)
        return Event(TERMINATE, term=Term(seg.payload))

    def next(self, timeout=SOON):
        """The next Event. A protocol error is answered with the Terminate that is due, and raised."""
        end = time.monotonic() + timeout
        try:
            while True:
                event = self.take(self.stream.recv_ulpdu(end - time.monotonic()))
                if event:
                    return event
        except Broken as e:
            self._answer_broken(e)
            raise

    def _answer_broken(self, e):
        layer, etype, _ = e.term
        head = {}
        if layer == 1 or (layer, etype) in ((0, 1), (0, 2)):
            n = 14 if e.ulpdu[0] & 0x80 else 18
            head = {"ddp_header": e.ulpdu[:n], "length": len(e.ulpdu)}
            if (layer, etype) == (0, 1):
                head["rdmap_header"] = e.ulpdu[18:46]
        try:
            self.terminate(*e.term, **head)
            self.end()
        except (Closed, OSError):
            pass

    def expect(self, kind, timeout=SOON, skip=()):
        """The next Event, which has to be of that kind; Events of kinds in `skip` are passed over."""
        end = time.monotonic() + timeout
        while True:
            event = self.next(end - time.monotonic())
            if event.kind == kind:
                return event
            if event.kind not in skip:
                raise Error(f"{event!r} where {NAMES[kind]} was expected")

    def recv(self, timeout=SOON):
        """Data of the next Send; other things may come before."""
        return self.expect(SEND, timeout, skip=(WRITE, READ_REQ, READ_RESP)).data


# -- MPA start-up --


def full_operation(sock, own, peer, **kw):
    """The Endpoint after both MPA frames, `own` being the one that we sent."""
    stream = Stream(sock, tx_markers=peer.markers, rx_markers=own.markers, crc=own.crc or peer.crc)
    ep = Endpoint(stream, **kw)
    ep.peer_frame = peer
    return ep


def tcp_connect(at, timeout=SOON, source=None, mss=None):
    """source: the address to come from; mss: what a segment may have, both ways."""
    sock = socket.socket(socket.AF_INET6 if ":" in at[0] else socket.AF_INET)
    try:
        sock.settimeout(timeout)
        if mss:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss)
        if source:
            sock.bind((source, 0))	# raw: as connect() would choose it
        sock.connect(at)	# raw: a reset is Closed, now or later
    except ConnectionError as e:
        sock.close()
        raise Closed(True, str(e)) from None
    except OSError:
        sock.close()
        raise
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def connect(at, request=None, rtr=None, timeout=SOON, source=None, mss=None, **kw):
    """The initiator's side. rtr: the kind to send, "none" for no RTR at all, None for one that both know (RFC 6581
    9.2: the initiator's choice). Rejected, Closed or Error when it does not work out."""
    request = request or MpaFrame(enhanced=Enhanced())
    sock = tcp_connect(at, timeout, source, mss)
    try:
        sock.sendall(request.encode())
        reply = read_mpa(sock, timeout)
        if not reply.reply:
            raise Error("MPA Request for an answer")
        if reply.reject:
            raise Rejected(reply)
        if (reply.enhanced is None) != (request.enhanced is None):
            raise Error(f"{request} answered by {reply}")
        ep = full_operation(sock, request, reply, **kw)
        if reply.enhanced:
            begin(ep, request.enhanced, reply.enhanced, rtr)
        return ep
    except BaseException:
        sock.close()
        raise


def begin(ep, own, peer, rtr):
    """The initiator's part once both blocks are known: the depths (RFC 6581 9.1), and the RTR (9.2) as in connect()."""
    if peer.ird != NOT_NEGOTIATED:
        ep.ord = min(ep.ord, peer.ird)
    if peer.ord != NOT_NEGOTIATED:
        ep.ird = max(ep.ird, peer.ord)
    if not own.p2p or rtr == "none":
        return
    if not peer.p2p:
        raise Error("peer-to-peer mode was not taken")
    common = own.rtr & peer.rtr
    if not (rtr or common):
        ep.terminate(2, 0, 7)
        raise Error("no RTR kind in common")
    ep.rtr(rtr or sorted(common)[0])


class Listener:
    """The responder's side: accept() gives (socket, Request), reply() sends an answer, serve() does both."""

    def __init__(self, host="127.0.0.1", port=0):
        self.sock = socket.create_server((host, port))
        self.at = self.sock.getsockname()[:2]

    def close(self):
        self.sock.close()

    def forget(self):
        """Drops connections that were not accepted."""
        while select.select([self.sock], [], [], 0)[0]:
            self.sock.accept()[0].close()

    def accept_tcp(self, timeout=SOON):
        if not select.select([self.sock], [], [], timeout)[0]:
            raise Timeout("no connection")
        sock, _ = self.sock.accept()
        sock.settimeout(timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def accept(self, timeout=SOON):
        sock = self.accept_tcp(timeout)
        try:
            request = read_mpa(sock, timeout)
            if request.reply:
                raise Error("MPA Reply for a Request")
        except BaseException:
            sock.close()
            raise
        return sock, request

    @staticmethod
    def answer(request, markers=False, crc=True, rtr=RTR_ALL, ird=16, ord=16, private=b"", reject=False):
        """The Reply that RFC 6581 asks for."""
        enhanced = request.enhanced.answer(ird, ord, rtr) if request.enhanced else None
        return MpaFrame(True, request.rev, markers, crc or request.crc, reject, enhanced, private)

    def serve(self, timeout=SOON, wait_rtr=True, **answer):
        """Accepts a connection and, in peer-to-peer mode, its RTR. private: bytes, or what makes them of the Request."""
        sock, request = self.accept(timeout)
        if callable(answer.get("private")):
            answer["private"] = answer["private"](request)
        return self.reply(sock, request, timeout, wait_rtr, **answer)

    def reply(self, sock, request, timeout=SOON, wait_rtr=True, **answer):
        """The Endpoint; None after a rejection."""
        reply = self.answer(request, **answer)
        sock.sendall(reply.encode())
        if reply.reject:
            sock.close()
            return None
        ep = full_operation(sock, reply, request)
        ep.request = request
        if reply.enhanced and reply.enhanced.p2p and wait_rtr:
            ep.rtr_seen = ep.next(timeout)
        return ep


# -- TCP segments --


class Wire:
    """Watches what a port of an IPv4 address on lo sends: one connection, from its beginning. For root."""

    SO_ATTACH_FILTER, SO_RCVBUFFORCE, PACKET_OUTGOING, ETH_P_ALL = 26, 33, 4, 3

    def __init__(self, addr, port):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)	# PermissionError unless root
        # Other packets on lo are ignored: TCP, this source address and port (packet(7), classic BPF).
        program = ((0x30, 0, 0, 9), (0x15, 0, 6, socket.IPPROTO_TCP),
                   (0x20, 0, 0, 12), (0x15, 0, 4, int.from_bytes(socket.inet_aton(addr), "big")),
                   (0xb1, 0, 0, 0), (0x48, 0, 0, 0), (0x15, 0, 1, port), (0x06, 0, 0, 1 << 18), (0x06, 0, 0, 0))
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
        self.sock.setsockopt(socket.SOL_SOCKET, self.SO_ATTACH_FILTER,
                             struct.pack("HL", len(program), ctypes.addressof(code)))
        self.sock.setsockopt(socket.SOL_SOCKET, self.SO_RCVBUFFORCE, 16 << 20)
        self.sock.bind(("lo", self.ETH_P_ALL))
        self.next_seq = None

    def close(self):
        self.sock.close()

    def segments(self):
        """Payloads of the segments that were sent since the last call; what was sent again counts once."""
        out = []
        while True:
            try:
                packet, where = self.sock.recvfrom(1 << 17, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return out
            tcp = packet[4 * (packet[0] & 15):int.from_bytes(packet[2:4], "big")]
            payload = tcp[4 * (tcp[12] >> 4):]
            if where[2] != self.PACKET_OUTGOING or not payload:
                continue	# lo shows each packet twice, on its way out before anybody has it
            (seq,) = struct.unpack_from(">I", tcp, 4)
            ahead = 0 if self.next_seq is None else seq - self.next_seq & 0xffffffff
            if ahead >= 1 << 31:
                continue
            if ahead:
                raise Error(f"{ahead} bytes of the connection were not seen")
            self.next_seq = seq + len(payload) & 0xffffffff
            out.append(payload)
