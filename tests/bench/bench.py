#!/usr/bin/env python3
"""
smcrd against a pair of haproxy and against the direct connection, side by side in one run.

All three ways to the same servers (iperf3, sockperf, redis, nginx) stand during the whole run; every row is measured in
rounds, the ways taking turns within each round, and the table shows the median over the rounds. smcrd runs with its
defaults (CRC on), haproxy with one thread. Everything is on loopback, so there is no network to hide behind: what is
measured is the work of the processes.

With --old BUILD it is smcrd against the smcrd of another build directory instead, in the same rounds: what a change costs.

Usage: bench.py [--quick] [--row NAME]... [--rounds N] [--seconds N] [--old BUILD] [--json FILE] [--list]
"""
import argparse
import csv
import io
import json
import os
import platform
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from harness import Case, Daemon, Failure, Pair, Skip, need, recv_exact, wait_until, SANITIZERS	# noqa: E402
from programs import HaproxyPair, Iperf3, Nginx, Redis, iperf3, wait_port	# noqa: E402

IDLE_CONNECTIONS = 5000


class Way:
    """One way from client to server: ports by server name, and the processes in between."""

    def __init__(self, name, host, ports, procs, fresh=None):
        """fresh: makes the same once more, with processes of its own."""
        self.name, self.host, self.ports, self.procs, self.fresh = name, host, ports, procs, fresh

    def cpu(self):
        return sum(p.cpu() for p in self.procs)

    def rss(self):
        return sum(p.rss() for p in self.procs)


class Bench:
    """The servers, the ways to them, and how long to measure."""

    def __init__(self, t, args):
        self.t = t
        self.seconds = args.seconds
        self.idle = args.idle
        self.notes = []
        self.redis, self.nginx, self.iperf = Redis(t), Nginx(t), Iperf3(t)
        self.sockperf_port = t.port()
        self.sockperf = need("sockperf")
        self.servers = {"redis": (self.redis.host, self.redis.port), "http": (self.nginx.host, self.nginx.port),
                        "iperf3": (self.iperf.host, self.iperf.port), "sockperf": (t.addr, self.sockperf_port)}
        proc = t.spawn([self.sockperf, "server", "--tcp", "-i", t.addr, "-p", str(self.sockperf_port)])
        wait_port(proc, t.addr, self.sockperf_port)
        self.direct = Way("direct", t.addr, {n: at[1] for n, at in self.servers.items()}, [])
        self.haproxy_confs = []
        if args.old:
            self.old = self.make_smcrd("old", os.path.join(args.old, "smcrd"))
        else:
            self.haproxy = self.make_haproxy("haproxy", False)
            self.splice = self.make_haproxy("haproxy splice", True)
        self.smcrd = self.make_smcrd()
        need("redis-benchmark", "wrk", "iperf3")

    def make_haproxy(self, name, splice):
        pair = HaproxyPair(self.t, self.servers, splice)
        self.haproxy_confs += pair.confs
        return Way(name, self.t.addr, pair.ports, pair.procs, lambda: self.make_haproxy(name, splice))

    def make_smcrd(self, name="smcrd", program=Daemon.program):
        limit = {"max_connections": 6000} 	# of a service; its default is below the idle row's number
        pair = Pair(self.t, self.servers, ingress=limit, egress=limit,
                    a={"log_level": "notice"}, b={"log_level": "notice"}, start=False)
        for d in (pair.b, pair.a):
            d.program = program
            d.start()
        return Way(name, pair.host, pair.port, [pair.a, pair.b], lambda: self.make_smcrd(name, program))

    def look_for_fallbacks(self, way):
        """A figure that is not SMC-R's is worth a note."""
        if isinstance(way.procs[0], Daemon):
            fallen = sum(s["fallbacks"] for d in way.procs for s in d.services())
            if fallen:
                self.notes.append(f"{fallen} connections of {way.name} fell back to TCP: figures are not SMC-R's alone")

    # -- single measurements; each gives a dict of figures --

    def bulk(self, way, streams):
        before = way.cpu()
        out = iperf3(self.t, way.host, way.ports["iperf3"], seconds=self.seconds, streams=streams)
        got = out["end"]["sum_received"]
        result = {"rate": got["bits_per_second"] / 1e9}
        if way.procs:
            result["cpu"] = (way.cpu() - before) / (got["bytes"] / 1e9)
        return result

    def round_trip(self, way):
        out = self.t.run([self.sockperf, "ping-pong", "--tcp", "-i", way.host, "-p", str(way.ports["sockperf"]),
                          "-t", str(self.seconds), "-m", "64", "--full-rtt"], timeout=self.seconds + 30).decode()
        out = re.sub(r"\x1b\[[0-9;]*m", "", out)
        return {"p50": float(re.search(r"percentile 50\.000 =\s*([\d.]+)", out)[1]),
                "p99": float(re.search(r"percentile 99\.000 =\s*([\d.]+)", out)[1])}

    def redis_run(self, way, clients, requests):
        before = way.cpu()
        out = self.t.run([need("redis-benchmark"), "-h", way.host, "-p", str(way.ports["redis"]), "-t", "get",
                          "-c", str(clients), "-n", str(requests), "--csv"], timeout=self.seconds * 10 + 60).decode()
        row = next(csv.DictReader(io.StringIO(out[out.index('"test"'):])))
        result = {"rate": float(row["rps"]) / 1000, "p99": float(row["p99_latency_ms"])}
        if way.procs:
            result["cpu"] = (way.cpu() - before) / requests * 1e6
        return result

    def redis_get(self, way, clients):
        """About `seconds` long, whatever the speed: a short run first tells how many requests that is."""
        probe = self.redis_run(way, clients, 20 * clients + 2000)
        return self.redis_run(way, clients, max(int(probe["rate"] * 1000 * self.seconds), clients * 10))

    def mixed(self, way):
        """The small ones' tail while one bulk stream shares the way."""
        argv = [need("iperf3"), "-c", way.host, "-p", str(way.ports["iperf3"]), "-t", "300", "-i", "0.5", "-f", "m",
                "--forceflush"]
        runs = []

        def rates():
            """Mbit/s of each half second so far. The server may still be busy with the run before: then again."""
            if not runs or not runs[-1].alive():
                runs.append(self.t.spawn(argv, "iperf3-bulk"))
            return [float(x) for x in re.findall(r"([\d.]+) Mbits/sec", runs[-1].log())]
        try:
            wait_until(rates, "the bulk stream flows", 20)
            probe = self.redis_run(way, 64, 2000)
            before = len(rates())
            result = self.redis_run(way, 64, max(int(probe["rate"] * 1000 * self.seconds), 2000))
            beside = rates()[before:]
            return dict(result, bulk=statistics.mean(beside) / 1000 if beside else 0.0)
        finally:
            for run in runs:
                run.kill()

    def new_connections(self, way):
        out = self.t.run([need("wrk"), "-t", "1", "-c", "64", "-d", str(self.seconds), "-H", "Connection: close",
                          f"http://{way.host}:{way.ports['http']}/small"], timeout=self.seconds + 30).decode()
        errors = re.search(r"Socket errors: (.*)", out)
        if errors:
            self.notes.append(f"new connections by {way.name}: wrk reports {errors[1]}")
        return {"rate": float(re.search(r"Requests/sec:\s*([\d.]+)", out)[1])}

    @staticmethod
    def elements_used(way):
        """RMB elements of their own that connections hold, over both daemons."""
        daemons = [p for p in way.procs if isinstance(p, Daemon)]
        return sum(r["used"] for d in daemons for r in d.ctl("rmbs")["rmbs"] if r["side"] == "local")

    def idle_memory(self, way):
        """With processes of its own, so that no earlier row's memory counts."""
        fresh = way.fresh()
        try:
            one = socket.create_connection((fresh.host, fresh.ports["redis"]))
            one.sendall(b"PING\r\n")
            recv_exact(one, 7)
            before, elements_before = fresh.rss(), self.elements_used(fresh)
            socks = []
            for _ in range(self.idle):
                s = socket.create_connection((fresh.host, fresh.ports["redis"]))
                s.sendall(b"PING\r\n")
                recv_exact(s, 7)
                socks.append(s)
            after = fresh.rss()
            elements = self.elements_used(fresh)
            for s in socks + [one]:
                s.close()
            self.look_for_fallbacks(fresh)
            # Each element begins on a page and took a few bytes: one page of it is touched, and no more.
            pages = (elements - elements_before) * resource.getpagesize()
            return {"bytes": (after - before) / self.idle / 1024, "own": (after - before - pages) / self.idle / 1024}
        finally:
            for p in fresh.procs:
                p.kill()


AGAINST_OLD = ("old", "smcrd")
ALL, PROXIES, BULK = ("direct", "haproxy", "smcrd"), ("haproxy", "smcrd"), ("direct", "haproxy", "splice", "smcrd")

# name, ways, measure(bench, way), then the figures: key, heading, unit, True when more is better.
ROWS = [
    ("bulk-1", BULK, lambda b, w: b.bulk(w, 1),
     [("rate", "bulk, 1 stream", "Gbit/s", True), ("cpu", "  CPU of the two", "s/GB", False)]),
    ("bulk-8", BULK, lambda b, w: b.bulk(w, 8),
     [("rate", "bulk, 8 streams", "Gbit/s", True), ("cpu", "  CPU of the two", "s/GB", False)]),
    ("round-trip", ALL, lambda b, w: b.round_trip(w),
     [("p50", "round trip of 64 B, median", "us", False), ("p99", "round trip of 64 B, p99", "us", False)]),
    ("redis-1", ALL, lambda b, w: b.redis_get(w, 1),
     [("rate", "Redis GET, 1 connection", "k/s", True), ("cpu", "  CPU of the two", "us/request", False)]),
    ("redis-64", ALL, lambda b, w: b.redis_get(w, 64),
     [("rate", "Redis GET, 64 connections", "k/s", True), ("p99", "  p99", "ms", False),
      ("cpu", "  CPU of the two", "us/request", False)]),
    ("redis-512", ALL, lambda b, w: b.redis_get(w, 512),
     [("rate", "Redis GET, 512 connections", "k/s", True), ("p99", "  p99", "ms", False),
      ("cpu", "  CPU of the two", "us/request", False)]),
    ("mixed", ALL, lambda b, w: b.mixed(w),
     [("p99", "Redis GET, 64 connections beside bulk, p99", "ms", False), ("rate", "  requests", "k/s", True),
      ("bulk", "  the bulk stream", "Gbit/s", True)]),
    ("connections", ALL, lambda b, w: b.new_connections(w), [("rate", "new connections", "1/s", True)]),
    ("idle", PROXIES, lambda b, w: b.idle_memory(w),
     [("bytes", "memory of an idle connection, both processes", "KiB", False),
      ("own", "  without the touched pages of RMB elements", "KiB", False)]),
]


def measure(bench, row, rounds, ways):
    """{way: {figure: [a value per round]}}; the ways take turns, and who is first turns too."""
    name, _, fn, _ = row
    rounds = 1 if name == "idle" else rounds
    got = {w: {} for w in ways}
    for r in range(rounds):
        for i in range(len(ways)):
            way = ways[(i + r) % len(ways)]
            for key, value in fn(bench, getattr(bench, way)).items():
                got[way].setdefault(key, []).append(value)
            print(".", end="", file=sys.stderr, flush=True)
    return got


def number(x):
    return f"{x:.0f}" if x >= 1000 else f"{x:.3g}"


def table(results, columns, other):
    """A column for each way, and what smcrd is beside the other one."""
    lines = [("", "unit", *columns, f"smcrd/{other}", "smcrd is")]
    for row in ROWS:
        if row[0] not in results:
            continue
        got = results[row[0]]
        for key, heading, unit, more in row[3]:
            mid = {w: statistics.median(v[key]) for w, v in got.items() if key in v}
            ratio, verdict = "", ""
            if "smcrd" in mid and mid.get(other):
                q = mid["smcrd"] / mid[other]
                ratio = f"{q:.2f}"
                verdict = "even" if abs(q - 1) < 0.05 else "better" if (q > 1) == more else "worse"
            lines.append((heading, unit, *(number(mid[w]) if w in mid else "-" for w in columns), ratio, verdict))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) if i < 2 else cell.rjust(w)
                               for i, (cell, w) in enumerate(zip(line, widths))).rstrip() for line in lines)


def version(argv):
    try:
        out = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout.decode()
        return out.strip().split("\n")[0]
    except OSError:
        return "?"


def main():
    p = argparse.ArgumentParser(description="smcrd beside haproxy and the direct connection")
    p.add_argument("--quick", action="store_true", help="one short round; figures are rough")
    p.add_argument("--row", action="append", choices=[r[0] for r in ROWS], help="only this row; may be repeated")
    p.add_argument("--rounds", type=int, help="rounds of each row (default 5)")
    p.add_argument("--seconds", type=float, help="length of one measurement (default 4)")
    p.add_argument("--idle", type=int, default=IDLE_CONNECTIONS, help="idle connections of the memory row")
    p.add_argument("--old", metavar="BUILD", help="against the smcrd of that build directory, and nothing else")
    p.add_argument("--json", help="where the figures go (default bench.json in the build directory)")
    p.add_argument("--list", action="store_true", help="names of the rows")
    args = p.parse_args()
    if args.list:
        print("\n".join(r[0] for r in ROWS))
        return 0
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.seconds = int(args.seconds or (1 if args.quick else 4))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if SANITIZERS:
        print("bench: this is a sanitizer build; figures mean nothing", file=sys.stderr)

    t = Case("bench")
    try:
        bench = Bench(t, args)
        if bench.haproxy_confs:
            print("haproxy, near and far:\n")
            print("\n".join("    " + line for line in "\n".join(bench.haproxy_confs[:2]).split("\n")))
        results = {}
        for row in ROWS:
            if not args.row or row[0] in args.row:
                print(f"{row[0]} ", end="", file=sys.stderr, flush=True)
                results[row[0]] = measure(bench, row, args.rounds, AGAINST_OLD if args.old else row[1])
                print(file=sys.stderr)
        for way in (bench.old, bench.smcrd) if args.old else (bench.smcrd,):
            bench.look_for_fallbacks(way)
        machine = {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(),
                   "kernel": platform.release(), "against": args.old or version([need("haproxy"), "-v"])}
        print(f"{machine['cores']} cores, Linux {machine['kernel']}, against {machine['against']}; median of {args.rounds} "
              f"rounds of {args.seconds} s\n")
        print(table(results, AGAINST_OLD, "old") if args.old else
              table(results, ("direct", "haproxy", "splice", "smcrd"), "haproxy"))
        for note in bench.notes:
            print(f"note: {note}")
        path = args.json or os.path.join(os.environ.get("top_builddir", "."), "bench.json")
        with open(path, "w") as f:
            json.dump({"schema": 1, "time": int(time.time()), "machine": machine, "rounds": args.rounds,
                       "seconds": args.seconds, "haproxy_conf": bench.haproxy_confs, "notes": bench.notes,
                       "results": results}, f, indent=1)
        print(f"\nfigures of every round: {path}")
        return 0
    except Skip as e:
        print(f"bench: {e}", file=sys.stderr)
        return 77
    except Failure as e:
        print(f"bench: {e}", file=sys.stderr)
        for proc in t.procs:
            if not proc.alive():
                print(f"-- {proc.name} ended with status {proc.popen.returncode}: {proc.log()[-500:]}", file=sys.stderr)
        return 1
    finally:
        t.close()
        shutil.rmtree(t.dir, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
