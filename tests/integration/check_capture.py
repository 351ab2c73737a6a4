#!/usr/bin/env python3
"""What goes over the wire, as Wireshark reads it: a run is captured on loopback, and tshark's dissectors must find
every CLC message, MPA frame and FPDU well formed, with good CRCs."""
import collections

from capture import Capture, Undissected, numbers, traffic, until_dissected
from harness import Pair, Server, case, check, echo, equal, main


def check_clc(capture, port):
    """Proposal, Accept and Confirm of each connection and not a byte else on the middle."""
    types, carried, described = collections.Counter(), 0, 0
    for line in capture.tshark("-Y", f"tcp.port == {port} and not tcp.analysis.retransmission", "-T", "fields",
                               "-e", "tcp.len", "-e", "smc.clc_msg", "-e", "smc.length"):
        length, msgs, lengths = (line.split("\t") + ["", ""])[:3]
        types.update(numbers(msgs))
        carried += int(length)
        described += sum(numbers(lengths))
    equal(dict(types), {1: 8, 2: 8, 3: 8}, "CLC messages by type: Proposal, Accept, Confirm")
    equal(described, carried, "bytes of the middle that are CLC messages")


def check_mpa(t, capture, port):
    """Every byte of the MPA connection belongs to a frame, every CRC is good."""
    carried, described, opcodes = collections.Counter(), collections.Counter(), collections.Counter()
    for line in capture.tshark("-Y", f"tcp.port == {port} and not tcp.analysis.retransmission", "-T", "fields",
                               "-e", "tcp.srcport", "-e", "tcp.len", "-e", "iwarp_mpa.ulpdulength",
                               "-e", "iwarp_mpa.pdlength", "-e", "iwarp_rdma.opcode"):
        source, length, ulpdus, private, codes = (line.split("\t") + [""] * 3)[:5]
        carried[source] += int(length)
        described[source] += sum((2 + n + 3) // 4 * 4 + 4 for n in numbers(ulpdus))	# RFC 5044 4.1
        described[source] += sum(20 + n for n in numbers(private))
        opcodes.update(numbers(codes))
    t.note(f"FPDUs by opcode: {dict(opcodes)}; bytes {dict(carried)}")
    equal(len(carried), 2, "one MPA connection, seen both ways")
    if described != carried:
        raise Undissected(f"bytes that belong to MPA frames: got {described}, want {carried}")
    # RDMA Write, Read Request, Read Response, Send with Solicited Event; no other, above all no Terminate.
    equal(set(opcodes), {0, 1, 2, 5}, "opcodes")
    crcs = [line for line in capture.tshark("-Y", "iwarp_mpa", "-V") if "CRC check" in line]
    equal(len(crcs), sum(opcodes.values()), "CRCs")
    bad = [line for line in crcs if "Good" not in line]
    check(not bad, f"bad CRCs: {bad[:3]}")


def run(t, **device):
    until_dissected(t, lambda: attempt(t, **device))


def attempt(t, **device):
    capture = Capture(t)
    server = Server(t, echo)
    conf = {"devices": [dict({"type": "siw", "address": t.addr}, **device)]}
    pair = Pair(t, {"x": server.at}, a=conf, b=conf)
    traffic(t, pair)
    mpa_port = pair.b.ctl("devices")["devices"][0]["mpa_port"]
    for d in (pair.a, pair.b):
        equal(d.stop(), 0, f"exit status of {d.name}")
    capture.finish()
    check_clc(capture, pair.middle["x"])
    check_mpa(t, capture, mpa_port)
    bad = capture.tshark("-Y", f"(tcp.port == {pair.middle['x']} or tcp.port == {mpa_port}) and "
                               "(_ws.malformed or _ws.expert.severity == error)")
    check(not bad, f"malformed: {bad[:5]}")


@case("every CLC message, MPA frame and FPDU of a run is well formed", timeout=120,
      one_worker="one MPA port is looked at")
def _(t):
    run(t)


# Not with markers: tshark loses its place where one stands between two FPDUs of a segment.
@case("the same with short FPDUs", timeout=120,
      one_worker="one MPA port is looked at")
def _(t):
    run(t, fpdu_max=1500)


main()
