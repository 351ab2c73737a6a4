"""
SMC-R (RFC 7609) in Python over pyiwarp: CLC, LLC and CDC messages, and a small peer that can be client and server of
connections, a correct one and, step by step, a wrong one. What smcrd peers tell each other beyond the RFC (growth area,
token, MPA private data) is here too, written from the wire layouts in the headers clc.h and mpa_pdata.h.

A Link has a thread that reads: it places what the peer writes, answers Reads and LLC requests, and hands CDC messages
to their connections. Everything is under link.cond; link.wait() waits for something to become true.
"""
import os
import select
import socket
import struct
import threading
import time

import pyiwarp as iw
import pysctp_ddp as ddp

EYE = bytes.fromhex("e2d4c3d9")		# "SMCR" in EBCDIC
PROPOSAL, ACCEPT, CONFIRM, DECLINE = 1, 2, 3, 4
ROCE, IWARP, SCTP_UDP, PREWARM = 0x01, 0x02, 0x08, 0x80

NO_DEVICE, MODE_MISMATCH, SYNC, PEER_DECLINED = 0x03030000, 0x03040000, 0x04000000, 0x05000000


class SmcError(Exception):
    """The peer did something wrong or unexpected."""


class Declined(SmcError):
    def __init__(self, msg):
        super().__init__(f"declined with {msg.diag:#010x}")
        self.diag = msg.diag
        self.out_of_sync, self.answers = msg.out_of_sync, msg.answers


# -- CLC (RFC 7609 A.2) --


class Ext:
    """What only smcrd peers tell each other: 28 bytes."""

    def __init__(self, transports=IWARP, mpa_port=0, recv_depth=256, token=0, version=1, features=0, ticket=0):
        self.ticket = ticket	# of an Accept (doc/open.md)
        self.transports, self.mpa_port, self.recv_depth, self.token = transports, mpa_port, recv_depth, token
        self.version, self.features = version, features

    def encode(self):
        return struct.pack(">4sBBBBHHQ4xI", b"smrd", 28, self.version, self.transports, self.features, self.mpa_port,
                           self.recv_depth, self.token, self.ticket)

    @classmethod
    def decode(cls, data):
        """None when it is not there."""
        if len(data) < 28 or data[:4] != b"smrd" or data[4] < 28:
            return None
        version, transports, features, port, depth, token = struct.unpack(">BBBHHQ", data[5:20])
        ext = cls(transports, port, depth, token, version, features, int.from_bytes(data[24:28], "big"))
        ext.uses = data[21]	# of an Accept
        return ext


CLIENT, DEST = 0x81, 0x82	# types of TLVs behind the growth area (doc/transparent.md)
HAS_TLVS = 0x20			# feature of a Proposal
USES_DEST = 0x01		# of an Accept
CLIENT_USED, DEST_USED, DEST_REFUSED = 0x01, 0x02, 0x04	# answers of a Decline


def tlv(type, value):
    return bytes((type, len(value))) + value


def tlv_place(type, host, port):
    """Of a client or a destination."""
    v6 = ":" in host
    return tlv(type, struct.pack(">BH", 6 if v6 else 4, port) + socket.inet_pton(socket.AF_INET6 if v6 else socket.AF_INET, host))


def tlv_list(*tlvs):
    whole = b"".join(tlvs)
    return b"smrt" + struct.pack(">H", len(whole)) + whole


class Clc:
    """Any CLC message: attributes by type, see decode()."""

    def __init__(self, type, **fields):
        self.type = type
        self.__dict__.update(fields)

    def __repr__(self):
        return f"<CLC {({k: v.hex() if isinstance(v, bytes) else v for k, v in self.__dict__.items()})}>"


def clc_frame(type, low, body, length=None, eye=EYE, tail=EYE, version=1):
    return eye + struct.pack(">BHB", type, 8 + len(body) + 4 if length is None else length, version << 4 | low) \
        + body + tail


def clc_proposal(peer_id, gid, mac, subnet=(bytes(4), 0), v6=(), ext=None, growth=None, low=0, **frame):
    """growth: bytes of the area for future growth; ext puts its own there."""
    if growth is None:
        growth = bytes(12) + ext.encode() if ext else b""
    body = peer_id + gid + mac + struct.pack(">H", len(growth)) + growth + subnet[0] \
        + struct.pack(">BxxB", subnet[1], len(v6)) + b"".join(a + bytes((n,)) for a, n in v6)
    return clc_frame(PROPOSAL, low, body, **frame)


def clc_accept(type, peer_id, gid, mac, qpn, rkey, idx, token, size_code, mtu_code, vaddr, psn, first=False, ext=None,
               **frame):
    """Accept and Confirm."""
    body = peer_id + gid + mac + qpn.to_bytes(3, "big") + struct.pack(">IBIBxQx", rkey, idx, token,
                                                                      size_code << 4 | mtu_code, vaddr) \
        + psn.to_bytes(3, "big") + (ext.encode() if ext else b"")
    return clc_frame(type, 8 * first, body, **frame)


def clc_decline(peer_id, diag, out_of_sync=False, **frame):
    return clc_frame(DECLINE, 8 * out_of_sync, peer_id + struct.pack(">IB3x", diag, 0), **frame)


def clc_decode(data):
    if data[:4] != EYE or data[-4:] != EYE:
        raise SmcError(f"CLC eye catchers: {data.hex()}")
    type, length, flags = struct.unpack(">BHB", data[4:8])
    if length != len(data):
        raise SmcError(f"CLC length {length}, {len(data)} bytes")
    m = Clc(type, version=flags >> 4, low=flags & 15)
    if type == PROPOSAL:
        m.peer_id, m.gid, m.mac = data[8:16], data[16:32], data[32:38]
        (offset,) = struct.unpack(">H", data[38:40])
        m.growth = data[40:40 + offset]
        at = 40 + offset
        m.subnet = (data[at:at + 4], data[at + 4])
        m.v6 = [(data[i:i + 16], data[i + 16]) for i in range(at + 8, at + 8 + 17 * data[at + 7], 17)]
        if at + 8 + 17 * data[at + 7] + 4 != length:
            raise SmcError(f"Proposal of {length} bytes, offset {offset}, {data[at + 7]} prefixes")
        m.ext = Ext.decode(m.growth[12:])
    elif type in (ACCEPT, CONFIRM):
        if length < 68:
            raise SmcError(f"Accept or Confirm of {length} bytes")
        m.first = bool(flags & 8)
        m.peer_id, m.gid, m.mac = data[8:16], data[16:32], data[32:38]
        m.qpn, m.psn = int.from_bytes(data[38:41], "big"), int.from_bytes(data[61:64], "big")
        m.rkey, m.idx, m.token, sizes, m.vaddr = struct.unpack(">IBIBxQ", data[41:60])
        m.size_code, m.mtu_code = sizes >> 4, sizes & 15
        m.elem_size = 16384 << m.size_code
        m.ext = Ext.decode(data[64:-4])
    elif type == DECLINE:
        if length not in (28, 44):
            raise SmcError(f"Decline of {length} bytes")
        m.out_of_sync = bool(flags & 8)
        m.peer_id = data[8:16]
        (m.diag,) = struct.unpack(">I", data[16:20])
        m.answers = data[23]
    else:
        raise SmcError(f"CLC type {type}")
    return m


def _read_exact(sock, n, timeout):
    end, data = time.monotonic() + timeout, b""
    while len(data) < n:
        left = end - time.monotonic()
        if left <= 0 or not select.select([sock], [], [], left)[0]:
            raise iw.Timeout(f"{len(data)} of {n} bytes came in time")
        try:
            got = sock.recv(n - len(data))
        except ConnectionError as e:
            raise iw.Closed(True, str(e)) from None
        if not got:
            raise iw.Closed(False)
        data += got
    return data


def clc_read(sock, timeout=iw.SOON):
    """One message off the middle, not a byte more. Declined when it is a Decline."""
    head = _read_exact(sock, 8, timeout)
    if head[:4] != EYE:
        raise SmcError(f"no CLC message: {head!r}")
    (length,) = struct.unpack(">H", head[5:7])
    m = clc_decode(head + _read_exact(sock, length - 8, timeout))
    if m.type == DECLINE:
        raise Declined(m)
    return m


# -- MPA private data between smcrd peers, layout in mpa_pdata.h; what is to be read by confirming Reads is left out --


PACKETS_TOGETHER = 1


class Pdata:
    """flags: 0 for a peer that knows none."""

    def __init__(self, qpn=0, psn=0, token=0, from_qpn=0, recv_depth=256, ulpdu_max=0, verdict=0, version=1, flags=0):
        self.qpn, self.psn, self.token, self.from_qpn = qpn, psn, token, from_qpn
        self.recv_depth, self.ulpdu_max, self.verdict, self.version = recv_depth, ulpdu_max, verdict, version
        self.flags = flags

    def encode(self):
        known = struct.pack(">4sBBHIIQII", b"SMCr", self.version, self.verdict, self.recv_depth, self.qpn, self.psn,
                            self.token, self.from_qpn, self.ulpdu_max)
        return known + (struct.pack(">IQI", 0, 0, self.flags) if self.flags else b"")

    @classmethod
    def decode(cls, data):
        if len(data) < 32 or data[:4] != b"SMCr":
            raise SmcError(f"MPA private data {data.hex()}")
        version, verdict, depth, qpn, psn, token, from_qpn, ulpdu_max = struct.unpack(">BBHIIQII", data[4:32])
        flags = struct.unpack_from(">I", data, 44)[0] if len(data) >= 48 else 0
        return cls(qpn, psn, token, from_qpn, depth, ulpdu_max, verdict, version, flags)

    def __repr__(self):
        return f"<Pdata {({k: v for k, v in self.__dict__.items() if k != 'token'})}>"


# -- LLC (RFC 7609 A.3, ADD LINK as Linux lays it out) --

(CONFIRM_LINK, ADD_LINK, ADD_LINK_CONT, DELETE_LINK, _, CONFIRM_RKEY, TEST_LINK, CONFIRM_RKEY_CONT,
 DELETE_RKEY) = range(1, 10)
CDC = 0xfe
RESPONSE = 0x80
REJECTED = 0x40
NEGATIVE = 0x20
NO_EYECATCHER = 0x03
LOST_PATH, OPERATOR, PROGRAM, PROTOCOL = 0x00010000, 0x00020000, 0x00030000, 0x00040000
UNKNOWN_LINK = 0x00100000


def llc(type, flags=0, body=b"", low=0, length=44, size=44):
    """Any LLC message: `low` is the low nibble of byte 2; length: what its length byte says; size: what it has."""
    return (struct.pack(">BBBB", type, length, low, flags) + body).ljust(size, b"\0")[:size]


def as_response(m, flags=0, raw=None):
    """The message, or these bytes in its place, as its response."""
    raw = raw or m.raw
    return raw[:3] + bytes((m.flags | RESPONSE | flags,)) + raw[4:]


def llc_confirm_link(mac, gid, qpn, number, user_id, max_links=2, response=False, flags=NO_EYECATCHER):
    return llc(CONFIRM_LINK, flags | RESPONSE * response, mac + gid + qpn.to_bytes(3, "big")
               + struct.pack(">BIB", number, user_id, max_links))


def llc_add_link(mac, gid, qpn, number, mtu_code, psn, flags=0, low=0, mpa_port=0):
    return llc(ADD_LINK, flags, mac + bytes(2) + gid + qpn.to_bytes(3, "big") + struct.pack(">BB", number, mtu_code)
               + psn.to_bytes(3, "big") + struct.pack(">H", mpa_port), low)


def llc_add_cont(number, left, pairs=()):
    """pairs: (rkey on the link that carries this, rkey and address on the new one)"""
    return llc(ADD_LINK_CONT, 0, struct.pack(">BBxx", number, left) + b"".join(struct.pack(">IIQ", *p) for p in pairs))


def llc_delete_link(number=0, reason=OPERATOR, all=False, orderly=True, response=False):
    return llc(DELETE_LINK, 0x40 * all | 0x20 * orderly | RESPONSE * response, struct.pack(">BI", number, reason))


def llc_confirm_rkey(rkey, vaddr, others=(), flags=0):
    """others: (link number, rkey, address) for other links."""
    body = struct.pack(">BIQ", len(others), rkey, vaddr)
    return llc(CONFIRM_RKEY, flags, body + b"".join(struct.pack(">BIQ", *o) for o in others))


def llc_delete_rkey(rkeys, flags=0, mask=0):
    return llc(DELETE_RKEY, flags, struct.pack(">BBxx", len(rkeys), mask) + b"".join(struct.pack(">I", r)
                                                                                   for r in rkeys))


def llc_test_link(data=bytes(16), response=False):
    return llc(TEST_LINK, RESPONSE * response, data)


# -- opening over a link (doc/open.md) --

GRANT, OPEN = 0x81, 0x82


class Elem:
    """An RMB element as GRANT and OPEN name it."""

    def __init__(self, token, rkey, vaddr, idx, size_code):
        self.token, self.rkey, self.vaddr, self.idx, self.size_code = token, rkey, vaddr, idx, size_code

    @property
    def elem_size(self):
        return 16384 << self.size_code

    def encode(self):
        return struct.pack(">IIQBB", self.token, self.rkey, self.vaddr, self.idx, self.size_code)

    @classmethod
    def decode(cls, data):
        return cls(*struct.unpack(">IIQBB", data[:18]))


def llc_grant(elems, count=None):
    return (bytes((GRANT, 44, len(elems) if count is None else count, 0)) + b"".join(e.encode() for e in elems)).ljust(44, b"\0")


def llc_open(granted, ticket, own, left=0, hops=0, origin=0):
    return bytes((OPEN, 44, left, 0)) + struct.pack(">II18sBxI8x", granted, ticket, own.encode(), hops, origin)


class Llc:
    """A received LLC message."""

    def __init__(self, data):
        if len(data) != 44 or data[1] != 44:
            raise SmcError(f"LLC message {data.hex()}")
        self.raw, self.type, self.low, self.flags = data, data[0], data[2] & 15, data[3]
        self.response = bool(data[3] & RESPONSE)
        if self.type == CONFIRM_LINK:
            self.mac, self.gid, self.qpn = data[4:10], data[10:26], int.from_bytes(data[26:29], "big")
            self.number, self.user_id, self.max_links = struct.unpack(">BIB", data[29:35])
        elif self.type == ADD_LINK:
            self.mac, self.gid, self.qpn = data[4:10], data[12:28], int.from_bytes(data[28:31], "big")
            self.number, self.mtu_code, self.psn = data[31], data[32] & 15, int.from_bytes(data[33:36], "big")
            self.rejected = bool(self.flags & REJECTED)
        elif self.type == ADD_LINK_CONT:
            self.number, self.left = data[4], data[5]
            self.pairs = [struct.unpack(">IIQ", data[i:i + 16]) for i in (8, 24)[:self.left]]
        elif self.type == DELETE_LINK:
            self.number, self.reason = struct.unpack(">BI", data[4:9])
            self.all = bool(self.flags & 0x40)
        elif self.type == CONFIRM_RKEY:
            count, self.rkey, self.vaddr = struct.unpack(">BIQ", data[4:17])
            self.others = [struct.unpack(">BIQ", data[i:i + 13]) for i in (17, 30)[:count]]
            self.negative = bool(self.flags & NEGATIVE)
        elif self.type == DELETE_RKEY:
            self.rkeys = struct.unpack(f">{data[4]}I", data[8:8 + 4 * data[4]])
            self.mask = data[5]
            self.negative = bool(self.flags & NEGATIVE)
        elif self.type == TEST_LINK:
            self.data = data[4:20]
        elif self.type == GRANT:
            self.response = False
            self.elems = [Elem.decode(data[i:]) for i in (4, 22)[:data[2]]]
        elif self.type == OPEN:
            self.response = False
            self.left, (self.granted, self.ticket) = data[2], struct.unpack(">II", data[4:12])
            self.own, self.hops, self.origin = Elem.decode(data[12:]), data[30], int.from_bytes(data[32:36], "big")

    def __repr__(self):
        return f"<LLC {self.raw.hex()}>"


# -- CDC (RFC 7609 A.4) --

WRITE_BLOCKED, URGENT_PENDING, URGENT_PRESENT, UPDATE_REQUESTED, FAILOVER = 0x80, 0x40, 0x20, 0x10, 0x08
STARTED_OVER = 0x04	# between two smcrd whose extensions both have START_OVER
IN_PEACE = 0x02		# with FAILOVER, between two smcrd
START_OVER = 0x01
OPENS = 0x08		# connections open over a link (doc/open.md)
DONE, CLOSED, ABORT, NOT_OPENED = 0x80, 0x40, 0x20, 0x08


class Cdc:
    """Cursors are (wrap, count)."""

    def __init__(self, seq, token, prod=(0, 0), cons=(0, 0), flags=0, state=0):
        self.seq, self.token, self.prod, self.cons, self.flags, self.state = seq, token, prod, cons, flags, state

    def encode(self):
        return struct.pack(">BBHIHHIHHIBB18x", CDC, 44, self.seq & 0xffff, self.token, 0, self.prod[0] & 0xffff,
                           self.prod[1], 0, self.cons[0] & 0xffff, self.cons[1], self.flags, self.state)

    @classmethod
    def decode(cls, data):
        if len(data) != 44 or data[0] != CDC or data[1] != 44:
            raise SmcError(f"CDC message {data.hex()}")
        seq, token, pw, pc, cw, cc, flags, state = struct.unpack(">HIxxHIxxHIBB", data[2:26])
        return cls(seq, token, (pw, pc), (cw, cc), flags, state)

    def __repr__(self):
        return f"<CDC {self.__dict__}>"


class Space:
    """How stream positions map into an element: base 0 (Linux) or 4 (RFC 7609, behind the eye catcher)."""

    def __init__(self, size, eye_catcher=False):
        self.base = 4 if eye_catcher else 0
        self.usable = size - self.base
        self.skipped = 0	# by starting over

    def cursor(self, pos):
        at = pos + self.skipped
        return (at // self.usable & 0xffff, self.base + at % self.usable)

    def start_over(self, pos):
        """The writer, which is at pos, goes on at the start of the element. False: it is there."""
        rest = -(pos + self.skipped) % self.usable
        self.skipped += rest
        return rest > 0

    def position(self, cursor, near):
        """The stream position of a cursor that is not far from `near`."""
        wrap, count = cursor
        if not self.base <= count < self.base + self.usable:
            raise SmcError(f"cursor {cursor} outside {self.base}..{self.base + self.usable}")
        turns = (near + self.skipped) // self.usable
        turns += ((wrap - turns + 0x8000) & 0xffff) - 0x8000
        return turns * self.usable + count - self.base - self.skipped

    def pieces(self, pos, n):
        """(offset in the element, bytes) of n bytes from a position: one or two."""
        at = (pos + self.skipped) % self.usable
        first = min(n, self.usable - at)
        return [(self.base + at, first)] + ([(self.base, n - first)] if n > first else [])


# -- the peer --


class Peer:
    """An SMC-R host: identity, and elements of one RMB per link group. sctp: its links are over SCTP in UDP, in place of MPA."""

    def __init__(self, host="127.0.0.1", size_code=0, elems=8, recv_depth=256, eye_catcher=False, mtu_code=3, features=0,
                 sctp=False):
        self.host = host
        self.peer_id = os.urandom(8)
        self.gid = bytes(10) + b"\xff\xff" + socket.inet_aton(host)
        self.mac = b"\x02" + os.urandom(5)
        self.size_code, self.elems, self.recv_depth, self.mtu_code = size_code, elems, recv_depth, mtu_code
        self.eye_catcher, self.features = eye_catcher, features
        self.subnet = (socket.inet_aton(host)[:1] + bytes(3), 8)
        self.timeout = iw.SOON
        self.llp, self.transport = (ddp, SCTP_UDP) if sctp else (iw, IWARP)
        self.mpa = iw.MpaFrame(enhanced=iw.Enhanced())	# how we ask over MPA; private data are added

    @property
    def elem_size(self):
        return 16384 << self.size_code

    def ext(self, **kw):
        return Ext(**dict({"transports": self.transport, "recv_depth": self.recv_depth,
                              "features": self.features}, **kw))

    def listener(self):
        """Where others make links to us."""
        return self.llp.Listener(self.host)

    def request(self, private):
        """What we say first on a link that we make."""
        m = self.mpa
        if self.llp is ddp:
            return ddp.initiate(private=private)
        return iw.MpaFrame(rev=m.rev, markers=m.markers, crc=m.crc, enhanced=m.enhanced, private=private)


class Rmb:
    """Elements of one size in a region, from an offset on; the region may have further RMBs."""

    def __init__(self, region, size_code, elems, offset=0):
        self.region, self.size_code, self.offset = region, size_code, offset
        self.elem_size = 16384 << size_code
        self.rkey, self.vaddr = region.stag, region.base + offset
        self.free = list(range(1, elems + 1))

    def at(self, idx):
        """Where an element begins in the region."""
        return self.offset + self.elem_size * (idx - 1)


class Link:
    """One queue pair and, as these peers have one link a group, the group with its RMB and connections."""

    def __init__(self, peer, client):
        self.peer, self.client = peer, client
        self.cond = threading.Condition(threading.RLock())
        self.qpn = int.from_bytes(os.urandom(3), "big") | 1
        self.psn = int.from_bytes(os.urandom(3), "big")
        self.rmb_key = int.from_bytes(os.urandom(4), "big") | 1
        self.rmb = iw.Region(peer.elem_size * peer.elems, int.from_bytes(os.urandom(5), "big") << 12, self.rmb_key)
        self.home = Rmb(self.rmb, peer.size_code, peer.elems)	# the RMB that first contact tells of
        self.free = self.home.free
        self.remote = None		# Accept or Confirm that named the far end
        self.number = 0
        self.user_id = int.from_bytes(os.urandom(4), "big")
        self.eye_catcher = peer.eye_catcher
        self.ep = None
        self.conns = {}			# by our alert token
        self.next_token = 0x1000
        self.peer_rmbs = {}		# rkey -> address
        self.llc_log = []		# every LLC message that came
        self.cdc_log = []		# every CDC message that came
        self.ended = None		# why the link is over: an exception or a Term
        self.answers = {}		# LLC type -> fn(link, message) in place of the proper answer; None: no answer
        self.peer_depth = 1 << 30
        self.unconfirmed = 0		# Sends since the last Read
        self.confirming = []		# Sends before each Read that is out
        self.thread = None
        self.closing = False

    # -- the reading thread --

    def attach(self, ep):
        self.ep = ep
        ep.regions[self.rmb_key] = self.rmb

    def start(self):
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            while not self.closing:
                with self.cond:
                    while (ulpdu := self.ep.stream.pop()) is not None:
                        self._take(ulpdu)
                    self.cond.notify_all()
                self.ep.stream.fill(0.1)
        except (OSError, ValueError, iw.Error, SmcError) as e:
            with self.cond:
                if isinstance(e, ConnectionError):
                    e = iw.Closed(True, str(e))
                if self.ended is None:
                    self.ended = e
                self.cond.notify_all()

    def _take(self, ulpdu):
        try:
            self._event(self.ep.take(ulpdu))
        except iw.Closed:
            pass	# the answer cannot be sent; what is still to be read has the end of the link

    def _event(self, event):
        if event is None:
            return
        if event.kind == iw.TERMINATE:
            self.ended = event.term
        elif event.kind == iw.READ_RESP and self.confirming:
            self.unconfirmed -= self.confirming.pop(0)
        elif event.kind == iw.SEND:
            if event.data[:1] == bytes((CDC,)):
                msg = Cdc.decode(event.data)
                self.cdc_log.append(msg)
                if msg.token not in self.conns:
                    raise SmcError(f"{msg}: unknown token")
                self.conns[msg.token].on_cdc(msg)
            else:
                self.on_llc(Llc(event.data))

    def wait(self, what, fn, timeout=iw.SOON):
        """Until fn() gives something true, which is returned."""
        end = time.monotonic() + timeout
        with self.cond:
            while True:
                got = fn()
                if got:
                    return got
                left = end - time.monotonic()
                if left <= 0:
                    raise iw.Timeout(f"not within {timeout} s: {what}")
                if not self.cond.wait(left):
                    continue

    def wait_ended(self, timeout=iw.SOON):
        """How the link ended: an exception or a Term."""
        return self.wait("the link's end", lambda: self.ended, timeout)

    def ended_how(self, timeout=iw.SOON):
        """In one word."""
        e = self.wait_ended(timeout)
        if isinstance(e, iw.Term):
            return "terminate %d/%d/%d" % e.why
        return ("reset" if e.reset else "closed") if isinstance(e, iw.Closed) else repr(e)

    def close(self, reset=False):
        self.closing = True
        if reset and self.ep:
            self.ep.reset()
        elif self.ep:
            self.ep.close()

    # -- sending --

    def send(self, msg):
        """A Send, kept within the peer's receives by zero-length Reads, as the C side does it."""
        with self.cond:
            if self.unconfirmed + 1 >= self.peer_depth:
                self.confirm()
                self.wait("receives of the peer", lambda: self.unconfirmed + 1 < self.peer_depth or self.ended)
            self.ep.send(msg, iw.SEND_SE)
            self.unconfirmed += 1

    def confirm(self):
        with self.cond:
            if not self.confirming:
                self.confirming.append(self.unconfirmed)
                self.ep.read(1, 0, 0, 1, 0)

    # -- LLC --

    def on_llc(self, m):
        self.llc_log.append(m)
        if m.type in self.answers:
            fn = self.answers[m.type]
            if fn:
                fn(self, m)
            return
        if m.response:
            return
        if m.type == TEST_LINK:
            self.send(llc_test_link(m.data, response=True))
        elif m.type == CONFIRM_RKEY:
            self.peer_rmbs[m.rkey] = m.vaddr
            self.send(as_response(m))
        elif m.type == DELETE_RKEY:
            for key in m.rkeys:
                self.peer_rmbs.pop(key, None)
            self.send(as_response(m))
        elif m.type == ADD_LINK:
            self.reject_add_link(m)
        elif m.type == DELETE_LINK:
            self.send(as_response(m))

    def reject_add_link(self, m):
        """No second path here."""
        self.send(m.raw[:2] + b"\1" + bytes((m.flags | RESPONSE | REJECTED,)) + m.raw[4:])

    def wait_llc(self, type, response=None, count=1, timeout=iw.SOON):
        """The count-th message of that type."""
        def found():
            got = [m for m in self.llc_log if m.type == type and response in (None, m.response)]
            return got[count - 1] if len(got) >= count else None
        return self.wait(f"LLC message {type}", found, timeout)

    # -- first contact, synchronous --

    def next_llc(self, type, timeout=None):
        """The next one; a TEST LINK before it is answered, as it may come at any time."""
        while True:
            m = Llc(self.ep.recv(timeout or self.peer.timeout))
            self.llc_log.append(m)
            if m.type == type:
                return m
            if m.type != TEST_LINK or m.response:
                raise SmcError(f"{m}, expected LLC type {type}")
            self.send(as_response(m))

    def check_confirm_link(self, m):
        r = self.remote
        if (m.qpn, m.gid, m.mac) != (r.qpn, r.gid, r.mac):
            raise SmcError(f"{m} names another link than {r}")
        if not m.flags & NO_EYECATCHER:
            self.eye_catcher = True

    def confirm_link_msg(self, response, **over):
        fields = {"mac": self.peer.mac, "gid": self.peer.gid, "qpn": self.qpn, "number": self.number,
                  "user_id": self.user_id, "flags": 0 if self.peer.eye_catcher else NO_EYECATCHER}
        fields.update(over)
        return llc_confirm_link(response=response, **fields)

    def client_llc(self):
        """CONFIRM LINK and ADD LINK as a client without a second path."""
        m = self.next_llc(CONFIRM_LINK)
        self.check_confirm_link(m)
        self.number = m.number
        self.send(self.confirm_link_msg(True))
        self.reject_add_link(self.next_llc(ADD_LINK))

    def server_llc(self):
        """CONFIRM LINK, and the offer of a second link that the client has no path for."""
        self.number = 1
        self.send(self.confirm_link_msg(False))
        m = self.next_llc(CONFIRM_LINK)
        self.check_confirm_link(m)
        self.send(llc_add_link(self.peer.mac, self.peer.gid, self.qpn, 2, self.peer.mtu_code, self.psn))
        m = self.next_llc(ADD_LINK)
        if not m.rejected:
            raise SmcError(f"{m}: not rejected")

    def server_second(self, serving, lefts=(1,)):
        """A second link, from another RNIC of ours, as a server offers it: the same memory by another rkey. lefts: how many
        of our RTokens each ADD LINK CONTINUATION says are left, the first is the true one."""
        new = Link(self.peer, client=False)
        new.cond, new.conns, new.rmb, new.number = self.cond, self.conns, self.rmb, 2
        new.mac = b"\x02" + os.urandom(5)
        self.send(llc_add_link(new.mac, self.peer.gid, new.qpn, 2, self.peer.mtu_code, new.psn,
                               mpa_port=serving.server.mpa.at[1]))
        serving.accept_mpa(link=new)
        m = new.remote = self.next_llc(ADD_LINK)
        if m.rejected:
            raise SmcError(f"{m}: rejected")
        theirs = {}
        for i, left in enumerate(lefts):
            self.send(llc_add_cont(2, left, [(self.rmb_key, new.rmb_key, new.rmb.base)] if i == 0 else []))
            theirs.update((old, (key, at)) for old, key, at in self.next_llc(ADD_LINK_CONT).pairs)
        new.theirs = theirs
        new.send(new.confirm_link_msg(False, mac=new.mac))
        new.check_confirm_link(new.next_llc(CONFIRM_LINK))
        return new

    # -- connections --

    def new_conn(self, middle, rmb=None):
        rmb = rmb or self.home
        with self.cond:
            self.next_token += 1
            c = Conn(self, middle, self.next_token, rmb, rmb.free.pop(0))
            self.conns[c.token] = c
            return c

    def forget(self, conn):
        with self.cond:
            self.conns.pop(conn.token, None)
            conn.rmb.free.append(conn.idx)


class Conn:
    """A connection: the middle, our element, the peer's, and the cursors between them."""

    def __init__(self, link, middle, token, rmb, idx):
        self.link, self.middle, self.token, self.rmb, self.idx = link, middle, token, rmb, idx
        self.rx = Space(rmb.elem_size, link.eye_catcher)
        self.tx = None
        self.remote = None
        self.elem_at = rmb.at(idx)
        self.seq = 0
        self.sent = self.acked = 0		# stream positions of what we send
        self.head = self.tail = self.told = 0	# ... of what we receive
        self.state = 0			# our D, C, A
        self.peer_state = 0
        self.peer_flags = 0
        self.urgent = None		# stream position behind the peer's urgent byte
        self.last_seq = 0
        self.over = None		# where we last started over
        self.peer_overs = 0		# how often the peer did
        rmb.region.buf[self.elem_at:self.elem_at + rmb.elem_size] = bytes(rmb.elem_size)

    def set_remote(self, m):
        """The peer's element as its Accept or Confirm names it. By now it is known how cursors are read."""
        self.remote = m
        self.tx = Space(m.elem_size, self.link.eye_catcher)
        self.rx = Space(self.rmb.elem_size, self.link.eye_catcher)
        if self.link.eye_catcher:
            self.rmb.region.buf[self.elem_at:self.elem_at + 4] = EYE
        self.remote_at = m.vaddr + m.elem_size * (m.idx - 1)

    def elem(self):
        """Ours."""
        return Elem(self.token, self.rmb.rkey, self.rmb.vaddr, self.idx, self.rmb.size_code)

    def move(self, link):
        """What we send goes over another link from here on: the same element, by another rkey."""
        with self.link.cond:
            self.remote.rkey, at = link.theirs[self.remote.rkey]
            self.remote_at = at + self.remote.elem_size * (self.remote.idx - 1)
            self.link = link

    # -- what comes --

    def on_cdc(self, m):
        if m.flags & FAILOVER:
            return
        if (m.seq - self.last_seq) & 0xffff != 1:
            raise SmcError(f"{m}: sequence after {self.last_seq}")
        self.last_seq = m.seq
        if m.flags & STARTED_OVER:
            self.on_started_over(m)
        head = self.rx.position(m.prod, self.head)
        acked = self.tx.position(m.cons, self.acked) if self.tx else 0
        if not self.head <= head <= self.tail + self.rx.usable:
            raise SmcError(f"{m}: producer {head}, have {self.head}, consumed {self.tail}")
        if not self.acked <= acked <= self.sent:
            raise SmcError(f"{m}: consumer {acked}, have {self.acked}, sent {self.sent}")
        if self.peer_state & ~m.state:
            raise SmcError(f"{m}: took back one of {self.peer_state:#x}")
        if self.peer_state & (CLOSED | ABORT):
            raise SmcError(f"{m}: after its end")
        if self.peer_state & DONE and head != self.head:
            raise SmcError(f"{m}: data after the end of data")
        self.head, self.acked = head, acked
        self.peer_state, self.peer_flags = m.state, m.flags
        if m.flags & URGENT_PRESENT:
            self.urgent = head
        if m.flags & UPDATE_REQUESTED:
            self.told = -1	# an answer is due

    @property
    def starts_over(self):
        """Both ends have said that they know how to."""
        return self.link.peer.features & START_OVER

    def on_started_over(self, m):
        if not self.starts_over:
            raise SmcError(f"{m}: starts over, which we do not know")
        at = self.rx.cursor(self.head)
        if at[1] == self.rx.base or m.prod[0] != at[0] + 1 & 0xffff:
            return	# said again
        if self.told != self.head:
            raise SmcError(f"{m}: starts over, told {self.told} of {self.head}")
        self.rx.start_over(self.head)
        self.peer_overs += 1

    # -- what goes --

    def cdc(self, flags=0, state=None, **over):
        """The next CDC message; `over` lies."""
        self.seq = self.seq + 1 & 0xffff
        if state is not None:
            self.state |= state
        fields = {"seq": self.seq, "token": self.remote.token, "prod": self.tx.cursor(self.sent),
                  "cons": self.rx.cursor(self.tail), "flags": flags, "state": self.state}
        fields.update(over)
        return Cdc(**fields).encode()

    def send_cdc(self, flags=0, state=None, **over):
        with self.link.cond:
            self.link.send(self.cdc(flags, state, **over))
            self.told = self.tail

    def write_at(self, offset, data, rkey=None):
        """An RDMA write into the peer's element, or wherever the offset leads."""
        with self.link.cond:
            self.link.ep.write(self.remote.rkey if rkey is None else rkey, self.remote_at + offset, data)

    def send(self, data, timeout=iw.SOON, flags=0):
        """All of data, window by window."""
        view = memoryview(data)
        while view:
            with self.link.cond:
                if self.starts_over and self.sent == self.acked and self.tx.start_over(self.sent):
                    self.over = self.sent

            def space():
                if self.link.ended or self.peer_state & (CLOSED | ABORT):
                    raise SmcError(f"ended: {self.link.ended} {self.peer_state:#x}")
                return self.tx.usable - (self.sent - self.acked) - (self.acked == self.over)
            with self.link.cond:
                n = min(self.link.wait("window", space, timeout), len(view))
                at = 0
                for offset, size in self.tx.pieces(self.sent, n):
                    self.write_at(offset, bytes(view[at:at + size]))
                    at += size
                self.sent += n
                view = view[n:]
                self.send_cdc((flags if not view else WRITE_BLOCKED) | (STARTED_OVER if self.acked == self.over else 0))

    def peek(self):
        """What has come and was not received yet."""
        with self.link.cond:
            return b"".join(bytes(self.rmb.region.buf[self.elem_at + o:self.elem_at + o + n])
                            for o, n in self.rx.pieces(self.tail, self.head - self.tail))

    def recv(self, n, timeout=iw.SOON):
        """n bytes, or what comes before the end of the peer's data."""
        out = b""
        while len(out) < n:
            def ready():
                return self.head > self.tail or self.peer_state or self.link.ended
            with self.link.cond:
                self.link.wait(f"{n} bytes, {len(out)} are there", ready, timeout)
                data = self.peek()[:n - len(out)]
                if not data:
                    if not self.peer_state:
                        raise SmcError(f"{len(out)} of {n} bytes came, then the link ended: {self.link.ended!r}")
                    break
                out += data
                self.tail += len(data)
                # Sent when asked, or when it would free half the window.
                if (self.told < 0 or self.tail - self.told >= self.rx.usable // 2
                        or self.peer_flags & WRITE_BLOCKED) and not self.state & (CLOSED | ABORT):
                    self.send_cdc()
        return out

    def wait_state(self, bits, timeout=iw.SOON):
        """Until the peer has sent all of these of D, C, A."""
        self.link.wait(f"state {bits:#x} from the peer", lambda: self.peer_state & bits == bits, timeout)

    def shutdown(self):
        self.send_cdc(state=DONE)

    def close(self, timeout=iw.SOON):
        """Done both ways; waits until the peer is, too, then ends the middle."""
        self.send_cdc(state=CLOSED)
        self.link.wait("C or A from the peer", lambda: self.peer_state & (CLOSED | ABORT), timeout)
        self.link.forget(self)
        self.middle.close()

    def abort(self):
        self.send_cdc(state=ABORT)


class Client:
    """The client's side of a rendezvous, step by step; run() does all of them."""

    def __init__(self, peer, at, link=None, prewarm=False, tlvs=b""):
        """link: of the group that this connection is expected to join. tlvs: what follows the growth area of the Proposal."""
        self.peer, self.link, self.tlvs = peer, link, tlvs
        self.sock = iw.tcp_connect(at, peer.timeout, peer.host)
        self.prewarm = prewarm
        self.accept = self.conn = None

    def close(self):
        self.sock.close()

    def propose(self, **over):
        p = self.peer
        fields = {"peer_id": p.peer_id, "gid": p.gid, "mac": p.mac, "subnet": p.subnet,
                  "ext": p.ext(transports=p.transport | PREWARM * self.prewarm)}
        if self.tlvs:
            ext = p.ext(features=p.features | HAS_TLVS)
            fields["growth"] = bytes(12) + ext.encode() + self.tlvs
        fields.update(over)
        self.sock.sendall(clc_proposal(**fields))

    def read_accept(self):
        self.accept = clc_read(self.sock, self.peer.timeout)
        if self.accept.type != ACCEPT:
            raise SmcError(f"{self.accept} for an Accept")
        return self.accept

    def new_link(self):
        self.link = Link(self.peer, client=True)
        self.link.remote = self.accept

    def mpa_request(self, **over):
        """The MPA Request, or Initiate, for the link of the Accept."""
        a = self.accept
        fields = {"qpn": a.qpn, "psn": a.psn, "token": a.ext.token, "from_qpn": self.link.qpn,
                  "recv_depth": self.peer.recv_depth}
        fields.update(over)
        return self.peer.request(Pdata(**fields).encode())

    @property
    def mpa_at(self):
        return (socket.inet_ntoa(self.accept.gid[12:]), self.accept.ext.mpa_port)

    def connect_mpa(self, rtr=None, **over):
        p = self.peer
        ep = p.llp.connect(self.mpa_at, self.mpa_request(**over), rtr=rtr, timeout=p.timeout, source=p.host)
        self.link.attach(ep)
        self.link.peer_depth = Pdata.decode(ep.peer_frame.private).recv_depth

    def confirm_msg(self, **over):
        link, p = self.link, self.peer
        fields = {"type": CONFIRM, "peer_id": p.peer_id, "gid": p.gid, "mac": p.mac, "qpn": link.qpn,
                  "rkey": link.rmb_key, "idx": self.conn.idx, "token": self.conn.token, "size_code": p.size_code,
                  "mtu_code": min(p.mtu_code, self.accept.mtu_code), "vaddr": link.rmb.base, "psn": link.psn,
                  "first": self.accept.first, "ext": p.ext()}
        fields.update(over)
        return clc_accept(**fields)

    def confirm(self, **over):
        if not self.conn:
            self.conn = self.link.new_conn(self.sock)
        self.sock.sendall(self.confirm_msg(**over))

    def decline(self, diag=NO_DEVICE, **kw):
        self.sock.sendall(clc_decline(self.peer.peer_id, diag, **kw))

    # First contact up to and with a step.

    def to_accept(self):
        self.propose()
        self.read_accept()
        self.new_link()

    def to_mpa(self):
        self.to_accept()
        self.connect_mpa()

    def to_confirm(self):
        self.to_mpa()
        self.confirm()

    def finish(self):
        """Data may flow; the link's thread reads from here on."""
        self.conn.set_remote(self.accept)
        if not self.link.thread:
            self.link.start()
        return self.conn

    def run(self):
        """A Conn, by first contact or on the link that was given."""
        self.propose()
        a = self.read_accept()
        if a.first:
            self.new_link()
            self.connect_mpa()
            self.confirm()
            self.link.client_llc()
        else:
            if not self.link or (a.qpn, a.gid) != (self.link.remote.qpn, self.link.remote.gid):
                raise SmcError(f"{a} names another link")
            if a.rkey != self.link.remote.rkey and a.rkey not in self.link.peer_rmbs:
                raise SmcError(f"{a} names an RMB that was never confirmed")
            self.confirm()
        return self.finish()


class Server:
    """The server's side: listens for connections and MPA; accept() gives a Serving."""

    def __init__(self, peer, port=0):
        self.peer = peer
        self.sock = socket.create_server((peer.host, port))
        self.at = self.sock.getsockname()[:2]
        self.mpa = peer.listener()
        self.link = None	# of the group that further connections join

    def close(self):
        self.sock.close()
        self.mpa.close()

    def accept(self, timeout=iw.SOON):
        if not select.select([self.sock], [], [], timeout)[0]:
            raise iw.Timeout("no connection")
        sock, _ = self.sock.accept()
        sock.settimeout(timeout)
        return Serving(self, sock)

    def forget(self):
        """Drops connections that were not accepted."""
        while select.select([self.sock], [], [], 0)[0]:
            self.sock.accept()[0].close()
        self.mpa.forget()

    def run(self, timeout=iw.SOON):
        """A Conn, by first contact or on the link that is there."""
        return self.accept(timeout).run()


class Serving:
    """One rendezvous at the server, step by step."""

    def __init__(self, server, sock):
        self.server, self.peer, self.sock = server, server.peer, sock
        self.link = server.link
        self.first = self.link is None
        self.proposal = self.conn = self.confirm = None
        self.token = int.from_bytes(os.urandom(8), "big")

    def close(self):
        self.sock.close()

    def read_proposal(self):
        self.proposal = clc_read(self.sock, self.peer.timeout)
        if self.proposal.type != PROPOSAL:
            raise SmcError(f"{self.proposal} for a Proposal")
        if self.first:
            self.link = Link(self.peer, client=False)
        return self.proposal

    def accept_msg(self, **over):
        link, p, rmb = self.link, self.peer, self.conn.rmb
        fields = {"type": ACCEPT, "peer_id": p.peer_id, "gid": p.gid, "mac": p.mac, "qpn": link.qpn,
                  "rkey": rmb.rkey, "idx": self.conn.idx, "token": self.conn.token, "size_code": rmb.size_code,
                  "mtu_code": p.mtu_code, "vaddr": rmb.vaddr, "psn": link.psn, "first": self.first,
                  "ext": p.ext(mpa_port=self.server.mpa.at[1], token=self.token if self.first else 0)
                  if self.proposal.ext else None}
        fields.update(over)
        return clc_accept(**fields)

    def send_accept(self, rmb=None, **over):
        """rmb: another one than that of first contact."""
        if not self.conn:
            self.conn = self.link.new_conn(self.sock, rmb)
        self.sock.sendall(self.accept_msg(**over))

    def decline(self, diag=NO_DEVICE, **kw):
        self.sock.sendall(clc_decline(self.peer.peer_id, diag, **kw))

    def accept_mpa(self, link=None, **answer):
        link = link or self.link
        came, request = self.server.mpa.accept(self.peer.timeout)
        pd = Pdata.decode(request.private)
        if (pd.qpn, pd.psn, pd.token) != (link.qpn, link.psn, self.token):
            raise SmcError(f"request for another link: {pd}")
        fields = {"private": Pdata(qpn=pd.from_qpn, from_qpn=link.qpn, recv_depth=self.peer.recv_depth).encode()}
        if self.peer.llp is iw:
            fields.update(crc=self.peer.mpa.crc, markers=self.peer.mpa.markers)
        fields.update(answer)
        ep = self.server.mpa.reply(came, request, self.peer.timeout, **fields)
        if ep:
            link.attach(ep)
            link.peer_depth = pd.recv_depth

    def read_confirm(self):
        m = self.confirm = clc_read(self.sock, self.peer.timeout)
        if m.type != CONFIRM:
            raise SmcError(f"{m} for a Confirm")
        if self.first:
            self.link.remote = m
        elif m.rkey != self.link.remote.rkey and m.rkey not in self.link.peer_rmbs:
            raise SmcError(f"{m} names an RMB that was never confirmed")
        return m

    # First contact behind the Proposal, up to and with a step.

    def to_mpa(self):
        self.send_accept()
        self.accept_mpa()

    def to_confirm(self):
        self.to_mpa()
        self.read_confirm()

    def finish(self):
        """Data may flow; the link's thread reads from here on."""
        self.conn.set_remote(self.confirm)
        if self.first:
            self.server.link = self.link
            self.link.start()
        return self.conn

    def run(self, rmb=None):
        self.read_proposal()
        self.send_accept(rmb)
        if self.first:
            self.accept_mpa()
            self.read_confirm()
            self.link.server_llc()
        else:
            self.read_confirm()
        return self.finish()
