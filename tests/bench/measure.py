"""
Single measurements: each takes the bench and a way (ways.py), lasts about bench.seconds, and gives a dict of figures. What goes
wrong is a Failure. CPU is the time of the processes in between, so the direct way has none.
"""
import csv
import io
import re
import statistics

from harness import Failure, need, wait_until
from programs import iperf3


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


def bulk(bench, way, streams, seconds=None, extra=()):
    """rate in Gbit/s, cpu in s/GB"""
    host, port = way.at["iperf3"]
    before = way.cpu()
    got = iperf3(way.client, host, port, seconds=seconds or bench.seconds, streams=streams, extra=extra)["end"]["sum_received"]
    return with_cpu(way, before, got["bytes"] / 1e9, {"rate": got["bits_per_second"] / 1e9})


def round_trip(bench, way):
    """p50, p99 of 64 bytes there and back, us"""
    host, port = way.at["sockperf"]
    out = way.run([need("sockperf"), "ping-pong", "--tcp", "-i", host, "-p", str(port), "-t", str(bench.seconds), "-m", "64",
                   "--full-rtt"], bench.seconds + 30)
    out = re.sub(r"\x1b\[[0-9;]*m", "", out)
    return {f"p{p}": found(rf"percentile {p}\.000 =\s*([\d.]+)", out, "sockperf")[0] for p in (50, 99)}


def redis_run(way, service, clients, requests, command, size=3):
    """So many requests: rate in 1000/s, p99 in ms, cpu in us."""
    at = way.at[service]
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


def redis(bench, way, clients, command=("get", "k3"), size=3, service="redis"):
    """About as long as it is to be, whatever the speed: a short run first tells how many requests that is."""
    probe = redis_run(way, service, clients, 20 * clients + 2000, command, size)
    return redis_run(way, service, clients, max(int(probe["rate"] * 1000 * bench.seconds), clients * 10), command, size)


def mixed(bench, way):
    """The small ones' tail while one bulk stream shares the way: redis(), and bulk, that stream's Gbit/s."""
    host, port = way.at["iperf3"]
    argv = [need("iperf3"), "-c", host, "-p", str(port), "-t", "300", "-i", "0.5", "-f", "m", "--forceflush"]
    runs = []

    def rates():
        """Mbit/s of each half second so far. The server may still be busy with the run before: then again."""
        if not runs or not runs[-1].alive():
            runs.append(way.client.spawn(argv, "iperf3-bulk"))
        return [float(x) for x in re.findall(r"([\d.]+) Mbits/sec", runs[-1].log())]
    try:
        wait_until(rates, "the bulk stream flows", 20)
        probe = redis_run(way, "redis", 64, 2000, ("get", "k3"))
        before = len(rates())
        result = redis_run(way, "redis", 64, max(int(probe["rate"] * 1000 * bench.seconds), 2000), ("get", "k3"))
        beside = rates()[before:]
        return dict(result, bulk=statistics.mean(beside) / 1000 if beside else 0.0)
    finally:
        for run in runs:
            run.kill()


def new_connections(bench, way):
    """One request on each: rate in 1/s, cpu in us."""
    host, port = way.at["http"]
    before = way.cpu()
    out = way.run([need("wrk"), "-t", "1", "-c", "64", "-d", str(bench.seconds), "-H", "Connection: close",
                   f"http://{host}:{port}/small"], bench.seconds + 30)
    errors = re.search(r"Socket errors: (.*)|Non-2xx.*", out)
    if errors:
        raise Failure(f"wrk: {errors[0]}")
    requests, = found(r"(\d+) requests in", out, "wrk")
    return with_cpu(way, before, requests / 1e6, {"rate": found(r"Requests/sec:\s*([\d.]+)", out, "wrk")[0]})
