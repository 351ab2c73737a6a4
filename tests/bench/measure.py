"""
Single measurements: each takes the bench and a way (ways.py), lasts about bench.seconds, and gives a dict of figures. What goes
wrong is a Failure. CPU is the time of the processes in between, so the direct way has none.
"""
import csv
import io
import json
import os
import re
import statistics
import sys

from harness import TOP_BUILD, Failure, Skip, check, need, wait_until
from programs import iperf3

FIRST_BYTE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "first_byte.py")


def with_cpu(way, before, units, result):
    """Adds the CPU time since `before` for each unit."""
    if way.procs:
        result["cpu"] = (way.cpu() - before) / units
    return result


def found(pattern, text, what):
    """Numbers that the pattern finds."""
    match = re.search(pattern, text)
    if not match:
        raise Failure(f"{what} says nothing of {pattern!r}: {text[-400:]}")
    return [float(x) for x in match.groups()]


def bulk(bench, way, streams):
    """rate in Gbit/s, cpu in s/GB"""
    host, port = way.at("iperf3")
    before = way.cpu()
    got = iperf3(way.client, host, port, seconds=bench.seconds, streams=streams)["end"]["sum_received"]
    return with_cpu(way, before, got["bytes"] / 1e9, {"rate": got["bits_per_second"] / 1e9})


def bulk_far(bench, way, round_trip_ms):
    """One stream without its first second, in which windows grow: rate in Gbit/s, and what that means in KiB under way."""
    host, port = way.at("iperf3")
    got = iperf3(way.client, host, port, seconds=bench.seconds, extra=("-O", "1", *way.iperf3_options))
    rate = got["end"]["sum_received"]["bits_per_second"]
    return {"rate": rate / 1e9, "flight": rate / 8 * round_trip_ms / 1000 / 1024}


def round_trip(bench, way):
    """p50, p99 of 64 bytes there and back, us"""
    host, port = way.at("sockperf")
    out = way.run([need("sockperf"), "ping-pong", "--tcp", "-i", host, "-p", str(port), "-t", str(bench.seconds), "-m", "64",
                   "--full-rtt"], bench.seconds + 30)
    out = re.sub(r"\x1b\[[0-9;]*m", "", out)
    return {f"p{p}": found(rf"percentile {p}\.000 =\s*([\d.]+)", out, "sockperf")[0] for p in (50, 99)}


def redis_run(way, clients, requests, command, size=3):
    """So many requests: rate in 1000/s, p99 in ms, cpu in us."""
    at = way.at("redis")
    where = ["-s", at] if isinstance(at, str) else ["-h", at[0], "-p", str(at[1])]
    before = way.cpu()
    out = way.run([need("redis-benchmark"), *where, "-c", str(clients), "-n", str(requests), "-d", str(size), "--csv", *command],
                  120)
    try:
        row = next(csv.DictReader(io.StringIO(out[out.index('"test"'):])))
        result = {"rate": float(row["rps"]) / 1000, "p99": float(row["p99_latency_ms"])}
    except (ValueError, KeyError, StopIteration):
        raise Failure(f"redis-benchmark says {out[-400:]!r}") from None
    return with_cpu(way, before, requests / 1e6, result)


def redis(bench, way, clients, command=("get", "k3"), size=3):
    """About as long as it is to be, whatever the speed: a short run first tells how many requests that is."""
    probe = redis_run(way, clients, 20 * clients + 2000, command, size)
    return redis_run(way, clients, max(int(probe["rate"] * 1000 * bench.seconds), clients * 10), command, size)


def load(bench, way, rate):
    """GETs on 64 connections at a given rate, latency from when each is due (open_load.c): load in 1000/s, percentiles in ms."""
    host, port = way.at("redis")
    got = json.loads(way.run([open_load(), host, str(port), "64", str(rate), str(bench.seconds), "k3"], bench.seconds + 30))
    return {"load": got["rate"] / 1000, "p50": got["p50_ms"], "p99": got["p99_ms"], "p999": got["p999_ms"]}


def open_load():
    path = os.path.join(TOP_BUILD, "tests", "bench", "open_load")
    if not os.path.exists(path):
        raise Skip("tests/bench/open_load is not built (make bench does)")
    return path


def half_load(bench, way):
    """load() at half of what the other side can do at most, the same for all; and cpu in us."""
    if bench.half_rate is None:
        bench.half_rate = int(redis(bench, bench.way("loopback", bench.base), 64)["rate"] * 1000 / 2)
    before = way.cpu()
    result = load(bench, way, bench.half_rate)
    return with_cpu(way, before, bench.half_rate * bench.seconds / 1e6, result)


class BesideBulk:
    """One bulk stream on the way for as long as this context lasts."""

    def __init__(self, way):
        host, port = way.at("iperf3")
        self.argv = [need("iperf3"), "-c", host, "-p", str(port), "-t", "300", "-i", "0.5", "-f", "m", "--forceflush"]
        self.way, self.runs = way, []

    def rates(self):
        """Mbit/s of each half second so far. The server may still be busy with the run before: then again."""
        if not self.runs or not self.runs[-1].alive():
            self.runs.append(self.way.client.spawn(self.argv, "iperf3-bulk"))
        return [float(x) for x in re.findall(r"([\d.]+) Mbits/sec", self.runs[-1].log())]

    def __enter__(self):
        try:
            wait_until(self.rates, "the bulk stream flows", 20)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for run in self.runs:
            run.kill()


def mixed(bench, way, small):
    """small(bench, way), and bulk: the Gbit/s of one stream beside it."""
    with BesideBulk(way) as stream:
        before = len(stream.rates())
        result = small(bench, way)
        beside = stream.rates()[before:]
    if not beside:
        raise Failure("the bulk stream stood still")
    return dict(result, bulk=statistics.mean(beside) / 1000)


def first_byte(bench, way):
    """From connect() to the first byte of an answer, one connection after the other: p50, p90 in ms"""
    host, port = way.at("redis")
    got = json.loads(way.run([sys.executable, FIRST_BYTE, host, str(port), str(bench.seconds)], bench.seconds + 30))
    return {"p50": statistics.median(got), "p90": statistics.quantiles(got, n=10)[-1]}


def new_connections(bench, way, clients=64):
    """One request on each: rate in 1/s, cpu in us."""
    host, port = way.at("http")
    for _ in range(10):		# a busy machine may have no first one in time
        before = way.cpu()
        out = way.run([need("wrk"), "-t", "1", "-c", str(clients), "-d", str(bench.seconds), "--timeout", "20",
                       "-H", "Connection: close", f"http://{host}:{port}/small"], bench.seconds + 30)
        errors = re.search(r"Socket errors: (.*)|Non-2xx.*", out)
        if errors:
            raise Failure(f"wrk: {errors[0]}")
        requests, = found(r"(\d+) requests in", out, "wrk")
        if requests:
            break
    else:
        raise Failure("wrk: no request was answered, ten times")
    return with_cpu(way, before, requests / 1e6, {"rate": found(r"Requests/sec:\s*([\d.]+)", out, "wrk")[0]})


def resumed_connections(bench, way, clients=64):
    """The same of a way whose handshakes, if any, use an earlier one, but those before the first has ended: 64, and some whose
    association another has replaced."""
    before = way.handshakes()
    result = new_connections(bench, way, clients)
    done, resumed = (b - a for a, b in zip(before, way.handshakes()))
    check(done - resumed <= 80 + done // 100, f"{resumed} of {done} handshakes use an earlier one")
    return result
