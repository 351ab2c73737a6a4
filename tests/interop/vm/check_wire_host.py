#!/usr/bin/env python3
"""
The captures of check_wire.py: tshark finds nothing malformed, and every CLC, LLC and CDC message has the form of one that
Linux sent (tests/unit/vectors/smc.txt): the same but for addresses, keys, numbers and cursors.
"""
import collections
import os
import struct
import sys

TOP_SRC = os.environ.get("top_srcdir") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path[:0] = [os.path.join(TOP_SRC, "tests", "integration"), os.path.join(TOP_SRC, "tests", "interop")]

from harness import Skip, case, check, equal, main, need		# noqa: E402
import pysmc								# noqa: E402

FILES = [os.path.join(os.environ["SMCRD_VM_SHARE"], f"b{i}.pcap") for i in (1, 2)]
ORDERLY = 0x20			# of DELETE LINK
REASONS = range(1, 6)		# of DELETE LINK, times 0x10000 (RFC 7609 A.3.4)
SEND_ONLY, WRITES, ACK = 4, (6, 7, 8, 10), 17		# InfiniBand Architecture 9.2.1: of reliable connections


def packets(path):
    """(protocol, source, payload of UDP or TCP) of the IPv4 packets."""
    with open(path, "rb") as f:
        data = f.read()
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}[data[:4]]
    at = 24
    while at < len(data):
        length = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        eth = data[at + 16:at + 16 + length]
        at += 16 + length
        if eth[12:14] != b"\x08\x00":
            continue
        ip = eth[14:14 + struct.unpack(">H", eth[16:18])[0]]
        body = ip[(ip[0] & 15) * 4:]
        if ip[9] == 17:
            yield "udp", ip[12:16], body[8:]
        elif ip[9] == 6:
            yield "tcp", ip[12:16], body[(body[12] >> 4) * 4:]


class Seen:
    """Everything of SMC-R in the captures."""

    def __init__(self):
        self.clc, self.llc, self.cdc = [], [], []
        self.opcodes = collections.Counter()
        self.sends_without_event = 0
        for path in FILES:
            if not os.path.exists(path):
                raise Skip("the machine left no captures")
            for kind, _source, data in packets(path):
                if kind == "tcp" and data[:4] == pysmc.EYE:
                    self.clc.append(data)
                elif kind == "udp":
                    self._roce(data)

    def _roce(self, data):
        opcode, flags = data[0], data[1]
        self.opcodes[opcode] += 1
        if opcode != SEND_ONLY:
            return
        self.sends_without_event += not flags & 0x80
        payload = data[12:len(data) - 4 - (flags >> 4 & 3)]	# behind the BTH, before the padding and the ICRC
        (self.cdc if payload[0] == pysmc.CDC else self.llc).append(payload)


# -- forms: what is different each time is blanked --


def blank(data, *ranges):
    out = bytearray(data)
    for a, b in ranges:
        out[a:b] = bytes(len(out[a:b]))
    return bytes(out)


def form_clc(data):
    """A Proposal's subnet stays apart; ours has the words for other smcrd in place of zeros, and so do our Accepts and
    Confirms behind everything that Linux knows: that must be there, and goes before the comparison."""
    kind = data[4]
    if kind == pysmc.PROPOSAL:
        (offset,) = struct.unpack(">H", data[38:40])
        if data[52:56] == b"smrd":
            data = blank(data, (52, 80))
        # byte 7 of Linux: version 2 is offered, too
        return blank(data, (7, 8), (8, 38), (40 + offset, 40 + offset + 5))
    if kind in (pysmc.ACCEPT, pysmc.CONFIRM):
        if data[64:68] == b"smrd":
            data = data[:5] + struct.pack(">H", 68) + data[7:64] + data[64 + data[68]:]
        return blank(data, (8, 50), (52, 60), (61, 64))
    return blank(data, (8, 16))


def form_llc(m):
    kind = m[0]
    if kind == pysmc.CONFIRM_LINK:
        return blank(m, (4, 34))
    if kind == pysmc.ADD_LINK:
        return blank(m, (4, 10), (12, 32), (33, 36))
    if kind == pysmc.ADD_LINK_CONT:
        return blank(m, (4, 5), (8, 8 + 16 * m[5]))
    if kind == pysmc.DELETE_LINK:	# orderly or not, and why: not every pair of them was captured
        return blank(m[:3] + bytes((m[3] & ~ORDERLY,)) + m[4:], (4, 9))
    if kind == pysmc.CONFIRM_RKEY:
        return blank(m, (5, 17), (17, 17 + 13 * m[4]))
    if kind == pysmc.TEST_LINK:
        return blank(m, (4, 20))
    if kind == pysmc.DELETE_RKEY:
        return blank(m, (8, 8 + 4 * m[4]))
    return m


def form_cdc(m):
    """Two smcrd use two flags more, where Linux has zero: one of them only with F."""
    own = pysmc.STARTED_OVER | (pysmc.IN_PEACE if m[24] & pysmc.FAILOVER else 0)
    m = m[:24] + bytes([m[24] & ~own]) + m[25:]
    return blank(m, (2, 8), (10, 16), (18, 24))


def linux(kind, form):
    """form -> name of the first message of Linux that has it."""
    forms = {}
    with open(os.path.join(TOP_SRC, "tests", "unit", "vectors", "smc.txt")) as f:
        for line in f:
            words = line.split()
            if len(words) == 3 and words[0] == kind and not words[1].startswith("g7-"):
                forms.setdefault(form(bytes.fromhex(words[2])), words[1])
    check(forms, f"messages of Linux of kind {kind}")
    return forms


def compare(t, kind, messages, form, also=()):
    """also: forms that no capture of Linux has and why they are right, each a function of the message."""
    known = linux(kind, form)
    count = collections.Counter()
    strange = []
    for m in messages:
        f = form(m)
        why = known.get(f) or next((why for why, is_it in also if is_it(m)), None)
        if why:
            count[why] += 1
        else:
            strange.append(m.hex())
    t.note(f"{kind}: " + ", ".join(f"{n} as {why}" for why, n in sorted(count.items())))
    check(not strange, f"{len(strange)} {kind} messages of no form of Linux's: {sorted(set(strange))[:6]}")
    return count


@case("tshark: only RoCE on UDP port 4791, no malformed packet, no error")
def _(t):
    tshark = need("tshark")
    for path in FILES:
        def count(what):
            out = t.run([tshark, "-r", path, "-n", "-o", "tcp.try_heuristic_first:TRUE", "-Y", what, "-T", "fields", "-e",
                         "frame.number", "-e", "_ws.expert.message"], status=None).decode()
            return out.rstrip("\n").split("\n") if out.strip() else []
        roce = count("udp.port == 4791")
        check(len(roce) > 50, f"{len(roce)} packets")
        equal(len(count("infiniband.bth")), len(roce), "packets with a transport header")
        bad = count("_ws.malformed or _ws.expert.severity == error")
        check(not bad, f"malformed: {bad[:5]}")
        t.note(f"{os.path.basename(path)}: {len(roce)} RoCE packets, {len(count('smc'))} with SMC-R in them")


@case("operations are sends, writes and acknowledgements; every send requests an event")
def _(t):
    seen = Seen()
    t.note(f"operations: {dict(seen.opcodes)}")
    strange = set(seen.opcodes) - {SEND_ONLY, *WRITES, ACK}
    check(not strange, f"opcodes {strange}")
    check(all(seen.opcodes[x] > 0 for x in (SEND_ONLY, ACK)) and any(seen.opcodes[x] for x in WRITES), "all kinds are there")
    equal(seen.sends_without_event, 0, "sends without solicited event")


@case("CLC messages have Linux's form")
def _(t):
    got = compare(t, "clc", Seen().clc, form_clc)
    check(len(got) >= 3, f"kinds of messages: {got}")


@case("LLC messages have Linux's form")
def _(t):
    messages = Seen().llc
    compare(t, "llc", messages, form_llc)
    for m in messages:
        if m[0] == pysmc.DELETE_LINK:
            check(int.from_bytes(m[5:9], "big") in [r << 16 for r in REASONS], f"a reason of the RFC: {m.hex()}")
    kinds = {(m[0], bool(m[3] & pysmc.RESPONSE)) for m in messages}
    for kind in (pysmc.CONFIRM_LINK, pysmc.ADD_LINK, pysmc.ADD_LINK_CONT, pysmc.TEST_LINK, pysmc.DELETE_LINK):
        check({(kind, False), (kind, True)} <= kinds, f"request and response of type {kind}")


@case("CDC messages have Linux's form")
def _(t):
    compare(t, "cdc", Seen().cdc, form_cdc)


main()
