#!/usr/bin/env python3
"""SCTP in UDP as Wireshark reads it: with tests/tools/ddp_sctp.lua its dissector of DDP and RDMAP finds every segment well formed,
and as many as the daemons say that they sent."""
import collections
import os
import time

os.environ.update(SMCRD_TRANSPORT="sctp", SMCRD_WORKERS="1")	# before the harness reads them

from capture import Capture, Undissected, numbers, traffic, until_dissected	# noqa: E402
from harness import Pair, Server, Skip, case, check, echo, equal, main, need, pattern, same_bytes, wait_until, TOP_SRC	# noqa: E402
from netns import enter	# noqa: E402
from programs import Redis, RedisClient	# noqa: E402

enter()

BRIDGE = os.path.join(TOP_SRC, "tests", "tools", "ddp_sctp.lua")
SEGMENT, CONTROL = 16, 17


def sent(pair):
    """Segments that both daemons have sent, once that stops growing, and the time when it was so."""
    seen = []

    def steady():
        at = time.time()
        seen.append(sum(d.ctl("devices")["devices"][0]["stats"]["fpdus_sent"] for d in (pair.a, pair.b)))
        return seen[-2:] == [seen[-1]] * 2 and (seen[-1], at)
    return wait_until(steady, "the links are quiet")


def store_and_get(pair):
    c = RedisClient(pair.connect("redis"))
    for i, size in enumerate((0, 3, 1000, 100000)):
        value = pattern(size, i)
        equal(c.call("SET", f"key{i}", value), b"OK", "SET")
        same_bytes(c.call("GET", f"key{i}"), value, "GET")
    c.sock.close()
    c.file.close()


def chunks(capture, until):
    """(payload protocols, control functions, opcodes) of DATA chunks up to that time, each counted once however often it was sent."""
    ppids, functions, opcodes = collections.Counter(), collections.Counter(), collections.Counter()
    for line in capture.tshark("-Y", f"sctp.chunk_type == 0 and frame.time_epoch <= {until:.6f}", "-T", "fields",
                               "-e", "sctp.data_payload_proto_id", "-e", "sctp.retransmission", "-e", "ddp_sctp_control.function",
                               "-e", "iwarp_rdma.opcode"):
        ppid, again, function, opcode = (line.split("\t") + [""] * 3)[:4]
        if not again:
            ppids.update(numbers(ppid))
        functions.update(numbers(function))
        opcodes.update(numbers(opcode))
    return ppids, functions, opcodes


def need_lua(t):
    if b"with Lua" not in b" ".join(t.run([need("tshark"), "-v"]).split()):
        raise Skip("this tshark has no Lua")


def packets_as_on_a_wire(t):
    """Those that go together are cut apart before they are captured, and not behind that."""
    t.run([need("ip"), "link", "set", "lo", "up", "gso_max_segs", "1"])


def attempt(t):
    packets_as_on_a_wire(t)
    server = Server(t, echo)
    redis = Redis(t)
    pair = Pair(t, {"x": server.at, "redis": (redis.host, redis.port)})
    ports = [d.ctl("devices")["devices"][0]["mpa_port"] for d in (pair.a, pair.b)]
    capture = Capture(t, ["-X", f"lua_script:{BRIDGE}", "-o", "sctp.checksum:crc-32c",
                          *(word for port in ports for word in ("-d", f"udp.port=={port},sctp"))])
    store_and_get(pair)
    traffic(t, pair)
    segments, at = sent(pair)
    for d in (pair.a, pair.b):
        equal(d.stop(), 0, f"exit status of {d.name}")
    capture.finish()
    ppids, functions, opcodes = chunks(capture, at)
    t.note(f"segments by opcode: {dict(opcodes)}, session control: {dict(functions)}")
    equal(set(ppids), {SEGMENT, CONTROL}, "payload protocols")
    equal(dict(functions), {5: 1, 6: 1}, "session control of one link: Enhanced Initiate, Enhanced Accept")
    if (sum(opcodes.values()), ppids[SEGMENT]) != (segments, segments):
        raise Undissected(f"{segments} segments were sent, {ppids[SEGMENT]} captured, {sum(opcodes.values())} dissected: {opcodes}")
    # RDMA Write, Read Request, Read Response, Send with Solicited Event; no other, above all no Terminate.
    equal(set(opcodes), {0, 1, 2, 5}, "opcodes")
    bad = capture.tshark("-Y", "sctp and (_ws.malformed or _ws.expert.severity == error or sctp.checksum.status == 0)")
    check(not bad, f"malformed: {bad[:5]}")
    good = capture.tshark("-Y", "sctp.checksum.status == 1", "-T", "fields", "-e", "frame.number")
    check(len(good) > 100, f"{len(good)} packets with a CRC that was checked")


@case("every DDP segment and session control message of a run is well formed", timeout=120)
def _(t):
    need_lua(t)
    until_dissected(t, lambda: attempt(t))


main()
