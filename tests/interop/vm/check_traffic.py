#!/usr/bin/env python3
# takes: 30 s
# load: 80
"""Two daemons over two rxe devices: data of all kinds, on SMC-R over verbs by the daemons' word and by the kernel's."""
import hashlib
import os
import signal
import socket

import many
import rxe
from gates import MTU, Gates, verbs
from harness import (SHRINK, Server, case, check, echo, equal, in_thread, main, need, pattern, same_bytes, wait_until)
from load import Probe, all_go_on
from programs import Redis, RedisClient

BULK = (12 << 20) // SHRINK


@case("Redis: redis-benchmark, values of many sizes; smcrctl and the kernel report the same objects", timeout=60)
def _(t):
    net = rxe.Wires(t, 1)
    server = Redis(t)
    gw = Gates(t, net, {"redis": (server.host, server.port)})
    c = RedisClient(gw.connect("redis"))
    before = gw.packets()
    sent = 0
    for i, size in enumerate((0, 1, 1000, 16384, 65535, 65536, 65537, 1 << 20)):
        value = pattern(size, i)
        equal(c.call("SET", f"k{i}", value), b"OK", f"SET of {size} bytes")
        same_bytes(c.call("GET", f"k{i}"), value, f"GET of {size} bytes")
        sent += size
    after = gw.packets()
    for side in "ab":
        check(after[side] - before[side] > sent // MTU, f"{sent} bytes in {after[side] - before[side]} packets to {side}")
    gw.check_verbs()
    t.note(gw.a.ctl_text("devices"))
    out = t.run([need("redis-benchmark"), "-h", gw.host, "-p", str(gw.port["redis"]), "-t", "set,get,lpush,lrange_100",
                 "-c", "20", "-n", str(2000 // SHRINK), "-P", "4", "-d", "100", "--csv"], timeout=60).decode()
    rows = [x for x in out.split("\n") if x.startswith('"') and not x.startswith('"test"')]
    check(len(rows) >= 4, out)
    t.note("; ".join(",".join(r.replace('"', "").split(",")[:2]) for r in rows) + " requests/s")
    gw.only_smcr(20)
    c.sock.close()
    c.file.close()
    for d in gw.both:
        gw.all_free(d)
    gw.no_resets()
    gw.stop()


def _digest(sock, n):
    """Reads to the end: what came, as a checksum."""
    h, got = hashlib.sha256(), 0
    while part := sock.recv(1 << 18):
        h.update(part)
        got += len(part)
    return got, h.hexdigest()


def _block():
    return os.urandom(1 << 20)


def _send(sock, block):
    """BULK bytes made of a block, each time turned a little further; then the end. Gives the checksum."""
    h = hashlib.sha256()
    for i in range(BULK >> 20):
        part = block[i * 977 % len(block):] + block[:i * 977 % len(block)]
        h.update(part)
        sock.sendall(part)
    sock.shutdown(socket.SHUT_WR)
    return BULK >> 20 << 20, h.hexdigest()


@case("12 MB in each direction at the same time, with a checksum", timeout=90)
def _(t):
    net = rxe.Wires(t, 1)
    result = {}

    def serve(s):
        task = in_thread(_send, s, _block())
        result["there"] = _digest(s, BULK)
        result["back"] = task.result(120)
    server = Server(t, serve)
    gw = Gates(t, net, {"bulk": server.at}, smcr={"group_idle": "1m"})	# looked at when all is over
    s = gw.connect()
    task = in_thread(_send, s, _block())
    back = _digest(s, BULK)
    sent = task.result(120)
    wait_until(lambda: len(result) == 2, "the server has seen the end")
    equal(sent, result["there"], "bytes and checksum of what came at the server")
    equal(back, result["back"], "bytes and checksum of what came at the client")
    server.ok()
    gw.check_verbs()
    packets = gw.packets()
    check(min(packets.values()) > BULK // MTU, f"packets received: {packets}")
    t.note(f"packets received: {packets}")
    gw.only_smcr(1)
    gw.no_resets()
    s.close()
    gw.stop()


@case("200 connections at once, each with its own bytes, one queue pair a side; a card with non-default settings", timeout=90)
def _(t):
    net = rxe.Wires(t, 1)
    server = many.echo_server(t)
    card = {"retry_count": 3, "rnr_timer": 12, "service_level": 1, "traffic_class": 8, "hop_limit": 4, "busy_poll": "1ms"}
    gw = Gates(t, net, {"echo": server.at}, a=verbs(net, "a", **card), b=verbs(net, "b", **card))

    def full():
        equal([len([c for c in d.connections() if c["mode"] == "smcr"]) for d in gw.both], [200, 200], "connections")
        equal([len(gw.queue_pairs(d)) for d in gw.both], [1, 1], "queue pairs")
        gw.check_verbs()
    many.rounds(t, (gw.host, gw.port["echo"]), 200, 1, full, batch=50)
    server.ok()
    gw.only_smcr(200)
    gw.no_resets()
    gw.stop()


@case("a stopped daemon: its device answers RNR, and nothing is lost", timeout=60)
def _(t):
    net = rxe.Wires(t, 1)
    server = Redis(t)
    gw = Gates(t, net, {"redis": (server.host, server.port)}, smcr={"test_link_interval": "1m", "receive_queue": 16})
    # More connections than the link has receives: a message of each is too many.
    silent = [RedisClient(gw.connect("redis")) for _ in range(30)]
    for c in silent:
        equal(c.call("PING"), b"PONG", "PING")
    probes = [Probe(gw, f"count{i}", 0.02) for i in range(10)]
    all_go_on(probes, 5)
    gw.b.send_signal(signal.SIGSTOP)
    try:
        before = net.statistics("b", 1)["send_rnr_err"]
        for c in silent:
            c.send("PING")
        wait_until(lambda: net.statistics("b", 1)["send_rnr_err"] > before + 3, "b's device finds no receive again and again", 10)
    finally:
        gw.b.send_signal(signal.SIGCONT)
    for c in silent:
        equal(c.reply(), b"PONG", "PING")
    all_go_on(probes, 20)
    for p in probes:
        p.stop()
    gw.no_resets()
    equal(len(gw.links(gw.a)), 1, "links")


main()
