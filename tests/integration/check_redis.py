#!/usr/bin/env python3
"""Redis and redis-benchmark through a pair of daemons; replies and stored values compared byte for byte."""
import random

from harness import Pair, case, check, equal, main, need, pattern, same_bytes, SHRINK
from programs import Redis, RedisClient as Client


def redis_pair(t):
    server = Redis(t)
    pair = Pair(t, {"redis": (server.host, server.port)})
    return server, pair


def benchmark(t, pair, tests, clients, requests, pipeline=1, size=3):
    where = ["-s", pair.path["redis"]] if pair.path else ["-h", pair.host, "-p", str(pair.port["redis"])]
    out = t.run([need("redis-benchmark"), *where, "-t", tests, "-c", str(clients), "-n",
                 str(requests), "-P", str(pipeline), "-d", str(size), "-r", "1000", "--csv"],
                timeout=60).decode()
    rows = [line for line in out.split("\n") if line.startswith('"') and not line.startswith('"test"')]
    check(len(rows) >= len(tests.split(",")), f"redis-benchmark printed {out!r}")
    return rows


@case("redis-benchmark: many commands, 50 connections", timeout=90)
def _(t):
    _, pair = redis_pair(t)
    for row in benchmark(t, pair, "ping,set,get,incr,lpush,lrange_100,mset", 50, 20000 // SHRINK):
        t.note(row)
    pair.only_smcr(50)


@case("redis-benchmark: pipelining, large values", timeout=90)
def _(t):
    _, pair = redis_pair(t)
    benchmark(t, pair, "set,get", 20, 40000 // SHRINK, pipeline=16)
    benchmark(t, pair, "set,get", 10, 2000 // SHRINK, size=100000)
    pair.only_smcr(30)


@case("values of every size up to 64 MiB return as stored", timeout=90)
def _(t):
    _, pair = redis_pair(t)
    c = Client(pair.connect())
    sizes = [0, 1, 2, 1000, 16384, 65535, 65536, 65537, 131072, 1 << 20, (64 << 20) // SHRINK]
    for i, size in enumerate(sizes):
        value = pattern(size, i)
        equal(c.call("SET", f"key{i}", value), b"OK", f"SET of {size} bytes")
        same_bytes(c.call("GET", f"key{i}"), value, f"GET of {size} bytes")
    pair.only_smcr()


@case("500 pipelined values of random sizes, read back in one go, beside direct access", timeout=90)
def _(t):
    server, pair = redis_pair(t)
    rnd = random.Random(7609)
    values = [pattern(rnd.choice((0, 3, 100, 5000, 70000)) + rnd.randrange(100), i) for i in range(500 // SHRINK)]
    c = Client(pair.connect())
    for i, value in enumerate(values):
        c.send("SET", f"k{i}", value)
    for _ in values:
        equal(c.reply(), b"OK", "SET")
    for i in range(len(values)):
        c.send("GET", f"k{i}")
    for i, value in enumerate(values):
        same_bytes(c.reply(), value, f"GET k{i}")
    direct = Client(server.connect())
    for i, value in enumerate(values):
        same_bytes(direct.call("GET", f"k{i}"), value, f"GET k{i} without the daemons")
    pair.only_smcr()


@case("publish and subscribe: the server sends without a request")
def _(t):
    _, pair = redis_pair(t)
    sub, pub = Client(pair.connect()), Client(pair.connect())
    sub.call("SUBSCRIBE", "news")
    for i in range(200):
        text = pattern(i * 37, i)
        equal(pub.call("PUBLISH", "news", text), b"1", "receivers")
        same_bytes(sub.reply()[2], text, f"message {i}")
    pair.only_smcr(2)


main()
