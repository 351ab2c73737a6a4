"""The rows of the benchmark: what is measured by which measurement, between whom, and what the figures are."""
import collections
import functools

import idle
import measure

# measure(bench, way), or with fresh=True measure(bench, setup, side), which makes its way itself. subject / base is what is judged.
Row = collections.namedtuple("Row", "name heading setup sides measure figures subject base fresh")
Figure = collections.namedtuple("Figure", "key heading unit better")

SCTP = ("haproxy", "tcp", "smcrd")
OPENING = ("direct", "haproxy", "middle", "smcrd")
ALL, PROXIES, BULK = ("direct", "haproxy", "smcrd"), ("haproxy", "smcrd"), ("direct", "haproxy", "splice", "smcrd")
RATE, P99, CPU = Figure("rate", "", "k/s", "more"), Figure("p99", "p99", "ms", "less"), Figure("cpu", "CPU", "us/request", "less")
P50, P999 = Figure("p50", "median", "ms", "less"), Figure("p999", "p99.9", "ms", "less")
LOAD, STREAM = Figure("load", "load", "k/s", "more"), Figure("bulk", "the bulk stream", "Gbit/s", "more")
COUNT, MEMORY = Figure("count", "", "open", "more"), Figure("memory", "memory of each", "KiB", "less")
IDLE_FIGURES = (Figure("fresh", "before its first byte", "KiB", "less"), Figure("once", "after an answer", "KiB", "less"),
                Figure("busy", "all asked at once", "KiB", "less"), Figure("used", "idle after 1 MB", "KiB", "less"))
BULK_FIGURES = (Figure("rate", "", "Gbit/s", "more"), Figure("cpu", "CPU", "s/GB", "less"))


def row(name, heading, sides, fn, figures, setup="loopback", subject="smcrd", base="haproxy", fresh=False, **kw):
    return Row(name, heading, setup, sides, functools.partial(fn, **kw) if kw else fn, tuple(figures), subject, base, fresh)


ROWS = [
    row("bulk-1", "bulk, 1 stream", BULK, measure.bulk, BULK_FIGURES, streams=1),
    row("bulk-8", "bulk, 8 streams", BULK, measure.bulk, BULK_FIGURES, streams=8),
    row("round-trip", "round trip of 64 B", ALL, measure.round_trip,
        (Figure("p50", "median", "us", "less"), Figure("p99", "p99", "us", "less"))),
    row("redis-1", "Redis GET, 1 connection", ALL, measure.redis, (RATE, CPU), clients=1),
    row("redis-64", "Redis GET, 64 connections", ALL, measure.redis, (RATE, P99, CPU), clients=64),
    row("redis-512", "Redis GET, 512 connections", ALL, measure.redis, (RATE, P99, CPU), clients=512),
    row("redis-1k", "Redis SET of 1 KiB, 64 connections", ALL, measure.redis, (RATE, P99, CPU), clients=64,
        command=("-t", "set"), size=1 << 10),
    row("redis-16k", "Redis SET of 16 KiB, 64 connections", ALL, measure.redis, (RATE, P99, CPU), clients=64,
        command=("-t", "set"), size=16 << 10),
    row("half-load", "Redis GET at half of the other's most, 64 connections", ALL, measure.half_load, (P50, P99, P999, CPU, LOAD)),
    row("mixed", "Redis GET, 64 connections beside bulk", ALL, measure.mixed, (P99, RATE._replace(heading="requests"), STREAM),
        small=functools.partial(measure.redis, clients=64)),
    row("mixed-element", "the same, bulk with rmb_element of 2M", PROXIES, measure.mixed,
        (P99, RATE._replace(heading="requests"), STREAM), setup="element", small=functools.partial(measure.redis, clients=64)),
    row("mixed-load", "Redis GET at 2000/s, 64 connections beside bulk", ALL, measure.mixed, (P50, P99, P999, STREAM),
        small=functools.partial(measure.load, rate=2000)),
    row("idle", "memory of a connection, both processes", PROXIES, idle.memory, IDLE_FIGURES, setup="idle", fresh=True, count=5000),
    *(row(f"growing-{n}", f"Redis GET, {n:,} connections", ALL, idle.growing, (COUNT, RATE._replace(heading="requests"), CPU, MEMORY),
          setup="growing", fresh=True, count=n) for n in (100, 1000, 10000)),
    row("idle-50k", "50,000 idle connections, several pairs", PROXIES, idle.many,
        (COUNT, MEMORY, Figure("idle", "CPU of each", "us/min", "less")), setup="many", fresh=True),
    row("unix-64", "UNIX sockets: Redis GET, 64 connections", ALL, measure.redis, (RATE, P99, CPU), setup="unix", clients=64),
    row("unix-512", "UNIX sockets: Redis GET, 512 connections", ALL, measure.redis, (RATE, P99, CPU), setup="unix", clients=512),
    row("local-64", "the preload: Redis GET, 64 connections", ALL, measure.redis, (RATE, P99, CPU), setup="local", clients=64),
    row("local-512", "the preload: Redis GET, 512 connections", ALL, measure.redis, (RATE, P99, CPU), setup="local", clients=512),
    row("workers-512", "2 workers: Redis GET, 512 connections", ALL, measure.redis, (RATE, P99, CPU), setup="workers",
        clients=512),
    row("workers-mixed", "2 workers: Redis GET at 2000/s, 64 connections beside bulk", ALL, measure.mixed,
        (P50, P99, P999, STREAM), setup="workers", small=functools.partial(measure.load, rate=2000)),
    row("workers-spread", "2 workers, 600 connections: the busier one's share", ("smcrd",), idle.spread,
        (Figure("near", "near", "%", "less"), Figure("far", "far", "%", "less")), setup="workers", connections=600),
]

# smcrd over SCTP beside smcrd over TCP. SET of 16 KiB fills messages, GET does not.
ROWS += [
    row("sctp-" + name, heading, SCTP, fn, figures, setup="sctp", base="tcp", **kw) for name, heading, fn, figures, kw in (
        ("bulk-1", "bulk, 1 stream", measure.bulk, BULK_FIGURES, {"streams": 1}),
        ("bulk-8", "bulk, 8 streams", measure.bulk, BULK_FIGURES, {"streams": 8}),
        ("redis-1", "Redis GET, 1 connection", measure.redis, (RATE, CPU), {"clients": 1}),
        ("redis-64", "Redis GET, 64 connections", measure.redis, (RATE, P99, CPU), {"clients": 64}),
        ("redis-16k", "Redis SET of 16 KiB, 64 connections", measure.redis, (RATE, P99, CPU),
         {"clients": 64, "command": ("-t", "set"), "size": 16 << 10}))
]

# smcrd with secure = "required" beside smcrd in clear, and a pair of haproxy with TLS between, certificates both ways, the same suite.
ROWS += [
    row("secure-" + name, heading, ("haproxy", "clear", "smcrd"), fn, figures, setup="secure", base="clear", **kw)
    for name, heading, fn, figures, kw in (
        ("bulk-1", "bulk, 1 stream", measure.bulk, BULK_FIGURES, {"streams": 1}),
        ("redis-64", "Redis GET, 64 connections", measure.redis, (RATE, P99, CPU), {"clients": 64}),
        ("redis-512", "Redis GET, 512 connections", measure.redis, (RATE, P99, CPU), {"clients": 512}),
        ("connections", "new connections", measure.new_connections,
         (Figure("rate", "", "1/s", "more"), Figure("cpu", "CPU", "us each", "less")), {}))
]

# Each connection with a CLC connection, so with a handshake by an association; haproxy resumes sessions of TLS 1.3.
ROWS.append(row("secure-resumed", "new connections, each with a handshake", ("haproxy", "clear", "smcrd"), measure.resumed_connections,
                (Figure("rate", "", "1/s", "more"), Figure("cpu", "CPU", "us each", "less")), setup="secure-resumed", base="clear"))

# Data is on a link: of TLS with the peer only what its proof needs stays.
ROWS.append(row("secure-idle", "memory of a connection, both processes", ("haproxy", "clear", "smcrd"), idle.memory, IDLE_FIGURES,
                setup="secure-idle", base="clear", fresh=True, count=5000))

# Captured connections to the server's own address, which sees the client's.
ROWS.append(row("transparent", "new connections, transparent", ("haproxy", "plain", "smcrd"), measure.new_connections,
                (Figure("rate", "", "1/s", "more"), Figure("cpu", "CPU", "us each", "less")), setup="transparent", base="plain"))

# Connections that open over the link beside those by a CLC connection.
ROWS.append(row("connections", "new connections", OPENING, measure.new_connections,
                (Figure("rate", "", "1/s", "more"), Figure("cpu", "CPU", "us each", "less")), setup="opening", base="middle"))
ROWS += [
    row(f"first-byte-{ms}", f"connect to first byte, {ms} ms one-way delay", OPENING, measure.first_byte,
        (P50, Figure("p90", "p90", "ms", "less")), setup=f"opening-{ms}", base="middle") for ms in (0, 0.5, 5)
]

# The link itself, then with one-way delay: buffers as they are by default, and the same ones for both.
FLIGHT = Figure("flight", "under way", "KiB", "more")
ROWS.append(row("delay-0", "bulk, 1 stream, over the link without delay", ALL, measure.bulk_far, BULK_FIGURES[:1],
                setup="delay-0", base="direct", round_trip_ms=0))
for words, kind, sides in (("", "", ALL), (", buffers of 512 KiB", "-buffers", ("direct", "smcrd"))):
    for ms in (5, 20):
        ROWS.append(row(f"delay-{ms}{kind}", f"bulk, 1 stream, {ms} ms one-way delay{words}", sides, measure.bulk_far,
                        (*BULK_FIGURES[:1], FLIGHT), setup=f"delay-{ms}{kind}", base="direct", round_trip_ms=2 * ms))

# A/A: what differs between these two is noise.
NOISE = [
    row("noise-" + r.name, r.heading, ("smcrd", "again"), r.measure, r.figures, setup=r.setup, subject="again", base="smcrd")
    for r in ROWS if r.name in ("bulk-1", "round-trip", "redis-64")
]
ROWS += NOISE


def against_old(r):
    """The same row between two builds of smcrd; a noise row stays what it is."""
    return r if r in NOISE else r._replace(sides=("old", "smcrd"), subject="smcrd", base="old")
