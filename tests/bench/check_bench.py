#!/usr/bin/env python3
"""The benchmark itself: its arithmetic, its document, its tables and its plot; short runs of some rows."""
import errno
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]

import document	# noqa: E402
import measure	# noqa: E402
import plot	# noqa: E402
import rows	# noqa: E402
import stats	# noqa: E402
import table	# noqa: E402
from harness import (PATIENCE, Failure, Server, case, check, echo, equal, logs, main, need, recv_exact, unix_connect,
                     wait_until)	# noqa: E402
from link import DelayedLink	# noqa: E402
from programs import HaproxyPair	# noqa: E402
from setups import SETUPS	# noqa: E402
from ways import Bench, Many, installed	# noqa: E402

BENCH = [sys.executable, os.path.join(HERE, "bench.py")]


def made_up(samples, name="row", better="more", subject="smcrd", base="haproxy"):
    """A document of one row with one figure."""
    return {"schema": document.SCHEMA, "date": "2026-01-01T00:00+00:00", "commit": "c0ffee", "against": "haproxy",
            "machine": {"cpu": "CPU", "cores": 2, "kernel": "6", "memory_gib": 4, "congestion_control": "cubic", "versions": {}},
            "settings": {"seconds": 3}, "configurations": {}, "notes": [],
            "rows": [{"name": name, "heading": "Row", "subject": subject, "base": base,
                      "figures": [{"key": "rate", "heading": "", "unit": "k/s", "better": better}],
                      "samples": samples, "skipped": None, "left_out": {}, "failures": [], "notes": []}]}


def rounds(**sides):
    """Samples of figure `rate`: rounds(smcrd=[...], haproxy=[...]); None is a measurement that was lost."""
    return [{s: {"rate": v} for s, v in zip(sides, values) if v is not None} for values in zip(*sides.values())]


@case("the median and the range of each side, and of the ratios of each round")
def _(t):
    # The median ratio (2.0) is not the ratio of the medians (20 / 15).
    samples = rounds(smcrd=[10, 20, 40], haproxy=[5, 30, 15])
    equal(stats.spread(stats.values(samples, "smcrd", "rate")), (20, 10, 40, 3), "spread of smcrd")
    ratios = stats.ratios(samples, "smcrd", "haproxy", "rate")
    equal(ratios, [2.0, 20 / 30, 40 / 15], "paired ratios")
    equal(stats.spread(ratios).median, 2.0, "median ratio")
    equal(stats.verdict(ratios, "more"), "even", "rounds that do not agree")
    equal(stats.verdict([1.1, 1.2], "more"), "better", "more is better")
    equal(stats.verdict([1.1, 1.2], "less"), "worse", "less is better")
    equal(stats.verdict([0.9, 0.8], "less"), "better", "less is better")
    text = table.text(made_up(samples))
    check("20 (10-40)" in text and "15 (5-30)" in text and "2.00 (0.67-2.67)" in text, text)


@case("a round that lacks one side counts for the other, and for no ratio")
def _(t):
    samples = rounds(smcrd=[10, None, 30], haproxy=[5, 7, None])
    equal(stats.values(samples, "smcrd", "rate"), [10, 30], "values of smcrd")
    equal(stats.ratios(samples, "smcrd", "haproxy", "rate"), [2.0], "ratios")
    equal(stats.spread(stats.ratios(samples, "smcrd", "direct", "rate")), None, "without a measurement")
    check("| - |" in table.markdown(made_up(rounds(smcrd=[1], direct=[1]))), "no ratio is a dash")


@case("the noise has a table of its own without a verdict")
def _(t):
    doc = made_up(rounds(smcrd=[10, 10], again=[9, 8]), subject="again", base="smcrd")
    text = table.text(doc)
    check("again/smcrd" in text and "0.85 (0.80-0.90)" in text and "worse" not in text, text)


@case("SCTP is judged beside TCP, and has its ratio beside haproxy as well")
def _(t):
    doc = made_up(rounds(haproxy=[4, 4], tcp=[10, 20], smcrd=[5, 8]), base="tcp")
    text = table.markdown(doc)
    check("| Row | k/s | 4 (4-4) | 15 (10-20) | 6.5 (5-8) | 0.45 (0.40-0.50) | worse | 1.62 (1.25-2.00) |" in text, text)


@case("what went wrong stands below the table")
def _(t):
    doc = made_up([])
    doc["rows"][0].update(skipped="no such setting", left_out={"haproxy": "not installed"}, failures=["round 2, smcrd: late"])
    for text in (table.text(doc), table.markdown(doc)):
        for words in ("no such setting", "without haproxy: not installed", "round 2, smcrd: late"):
            check(words in text, f"{words!r} is missing in {text}")


@case("documents of several runs are one table; another schema is refused")
def _(t):
    paths = [t.path(f"{i}.json") for i in range(4)]
    document.save(made_up(rounds(smcrd=[10], haproxy=[5])), paths[0])
    document.save(made_up(rounds(smcrd=[30], haproxy=[5])), paths[1])
    document.save(made_up(rounds(smcrd=[7], haproxy=[7]), name="other"), paths[2])
    document.save(dict(made_up([]), schema=1), paths[3])
    doc = document.load(paths[:3])
    equal([(r["name"], len(r["samples"])) for r in doc["rows"]], [("row", 2), ("other", 1)], "rows and their rounds")
    out = t.run([*BENCH, "--from", *paths[:3], "--markdown"]).decode()
    check("| Row | k/s | 5 (5-5) | 20 (10-30) | 4.00 (2.00-6.00) | better |" in out, out)
    t.run([*BENCH, "--from", paths[3]], status=1)
    with open(t.path("page.md"), "w") as f:
        f.write(f"Before\n{table.BEGIN}old words\n{table.END}After\n")
    t.run([*BENCH, "--from", *paths[:3], "--markdown", t.path("page.md")])
    with open(t.path("page.md")) as f:
        page = f.read()
    equal(page, f"Before\n{table.BEGIN}{out.strip()}\n{table.END}After\n", "a page with the table in place of its old one")
    t.run([*BENCH, "--from", paths[0], "--markdown", paths[2]], status=1)
    try:
        document.load(paths[3:])
    except Failure as e:
        check("schema 2" in str(e), str(e))
    else:
        raise Failure("a document of schema 1 was taken")


@case("--list has each row once; an unknown name is refused")
def _(t):
    names = t.run([*BENCH, "--list"]).decode().split()
    equal(len(names), len(set(names)), "names")
    for name in ("bulk-1", "redis-64", "idle-50k", "noise-redis-64"):
        check(name in names, f"{name} is missing in {names}")
    t.run([*BENCH, "--row", "nonsense"], status=2)


@case("one short row, where not all programs are installed: a well-formed document, and its table", timeout=90)
def _(t):
    path = t.path("bench.json")
    for program in need("redis-server", "redis-cli", "redis-benchmark"):
        os.symlink(program, t.path(os.path.basename(program)))
    out = t.run([*BENCH, "--quick", "--row", "redis-1", "--row", "round-trip", "--json", path], timeout=60,
                env=dict(os.environ, PATH=t.dir)).decode()
    check("Redis GET, 1 connection" in out, out)
    doc = document.load([path])
    missing, row = doc["rows"]
    equal((missing["skipped"], missing["samples"], missing["failures"]), ("sockperf is not installed", [], []), "round-trip")
    equal((row["failures"], row["skipped"], len(row["samples"])), ([], None, 1), "what went wrong, and the rounds")
    figures = row["samples"][0]["smcrd"]
    check(figures["rate"] > 0 and figures["cpu"] > 0, f"figures of smcrd: {figures}")
    check(set(row["samples"][0]) | set(row["left_out"]) == {"direct", "haproxy", "smcrd"}, f"sides: {row}")
    check("smcrd near" in " ".join(doc["configurations"]), "configurations are kept")


@case("latency counts from when a request is due: a server that stands still delays all that come meanwhile", timeout=60)
def _(t):
    def serve(sock):
        """Answers each GET; once, at the 200th, there is no answer for 0.5 s."""
        data = b""
        while True:
            got = sock.recv(1 << 16)
            if not got:
                return
            data += got
            n = data.count(b"GET")
            data = b""
            with lock:
                before = state["requests"]
                state["requests"] += n
                if before < 200 <= before + n:
                    time.sleep(0.5)	# raw: the stall is what is measured
            sock.sendall(b"$3\r\nabc\r\n" * n)

    lock, state = threading.Lock(), {"requests": 0}
    server = Server(t, serve)
    got = json.loads(t.run([measure.open_load(), server.host, str(server.port), "4", "400", "2", "key"]))
    server.ok()
    equal(got["requests"], 800, "requests")
    equal(state["requests"], 804, "requests that the server saw, with one for each connection before")
    # 200 of 800 were due while it stood still, at 0 to 500 ms before its end: half of a second is p99's, and the median saw none.
    # A busy machine adds its own.
    check(got["p99_ms"] > 0.4e3 and got["max_ms"] > 0.45e3, f"the stall is not in the tail: {got}")
    check(got["p50_ms"] < got["p99_ms"] / 2, f"the median has the stall: {got}")


@case("open_load refuses an invalid number, and reports a server that does not answer", timeout=30)
def _(t):
    silent = Server(t, lambda sock: sock.recv(100))	# reads a request, and hangs up
    at = [silent.host, str(silent.port)]
    for argv in (["x", "1", "1"], ["1", "0", "1"], ["1", "1", "1e99"], ["1", "100", "1"]):
        out = t.run([measure.open_load(), *at, *argv, "key"], status=1, stderr=subprocess.STDOUT).decode()
        check("open_load:" in out, out)


@case("a link with delay delays both directions by the given time", timeout=60)
def _(t):
    need("iperf3")
    bench = Bench(t, {}, 1)
    for ms in (0, 25):
        link = DelayedLink(bench, ms)
        code = ("import socket, sys, time; at = time.monotonic(); socket.create_connection((sys.argv[1], int(sys.argv[2]))); "
                "print(time.monotonic() - at)")

        def soon(ms=ms, link=link, code=code):
            """Never sooner, and once, on a busy machine, not much later."""
            took = float(link.a.run([sys.executable, "-c", code, *map(str, link.targets["iperf3"])]))
            check(2 * ms / 1000 <= took, f"{ms} ms each way: a connection takes {took * 1000:.1f} ms")
            return took < 2 * ms / 1000 + 0.02 * PATIENCE
        wait_until(soon, f"a connection takes {2 * ms} ms")


@case("over a path with delay the first connection has the window that fits it", timeout=60)
def _(t):
    need("iperf3")
    bench = Bench(t, {}, 1)
    link = DelayedLink(bench, 20)
    way, _ = link.smcrd("smcrd")
    host, port = way.at("iperf3")
    link.a.spawn([sys.executable, "-c", "import socket, sys, time; s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); "
                  "time.sleep(1000)", host, str(port)], "client")
    for d in way.procs:
        wait_until(lambda d=d: [c["mode"] for c in d.connections()] == ["smcr"], "the connection is on SMC-R")
        c, = d.connections()
        # The largest, whatever a busy machine adds: 100 MB/s for 40 ms, and as much again while that is consumed.
        equal((c["rmbe_bytes"], c["peer_rmbe_bytes"], c["sndbuf_bytes"]), (4 << 20, 4 << 20, 8 << 20), f"sizes at {d.name}")


def in_small(t, name, bench, sides=("smcrd",), **less):
    """The figures that a row has of these sides, measured with fewer connections."""
    r = next(r for r in rows.ROWS if r.name == name)
    fn = functools.partial(r.measure, **less)
    got = {side: fn(bench, r.setup, side) if r.fresh else fn(bench, bench.way(r.setup, side)) for side in sides}
    for side, figures in got.items():
        check({f.key for f in r.figures} <= set(figures), f"{name}: {side} has {figures}")
        t.note(f"{name}, {side}: {figures}")
    return got["smcrd"]


@case("rows by the number of connections, in small: memory, requests, several pairs", timeout=90)
def _(t):
    need("redis-server", "redis-cli", "redis-benchmark")
    bench = Bench(t, {**SETUPS, "many": lambda bench: Many(bench, 25, 10)}, 0.1)
    got = in_small(t, "idle", bench, count=20)
    check(0 <= got["fresh"] <= got["busy"], f"memory grows with what is under way: {got}")
    equal(in_small(t, "growing-1000", bench, count=20)["count"], 20, "connections")
    equal(in_small(t, "idle-50k", bench)["count"], 25, "connections of three pairs, of 9, 8 and 8")


@case("rows of new connections: side smcrd opens them over the link, side middle does not", timeout=90)
def _(t):
    bench = Bench(t, SETUPS, 1)
    todo = [("opening-0.5", "first-byte-0.5")] + ([("opening", "connections")] if installed("wrk") and installed("nginx") else [])
    for setup, name in todo:
        in_small(t, name, bench, ("middle", "smcrd"))
        opened = {side: bench.way(setup, side).procs[0].counters()["opened_client"] for side in ("middle", "smcrd")}
        check(opened["smcrd"] > 0 and opened["middle"] == 0, f"{name}: connections over the link: {opened}")


@case("rows of TLS: handshakes at each end of smcrd, none in clear", timeout=60)
def _(t):
    need("redis-server", "redis-cli", "redis-benchmark")
    bench = Bench(t, SETUPS, 0.1)
    in_small(t, "secure-redis-64", bench, ("haproxy", "clear", "smcrd"), clients=4)
    for side in ("clear", "smcrd"):
        for d in bench.way("secure", side).procs:
            done = d.counters()["tls_handshakes"]
            check((done > 0) == (side == "smcrd"), f"{side}: {done} handshakes of {d.name}")


@case("a row of later handshakes: each way resumes, and one that does not fails", timeout=60)
def _(t):
    need("wrk", "nginx", "haproxy")
    bench = Bench(t, SETUPS, 1)
    in_small(t, "secure-resumed", bench, ("haproxy", "clear", "smcrd"), clients=8)
    for side in ("haproxy", "smcrd"):
        done, resumed = bench.way("secure-resumed", side).handshakes()
        check(0 < resumed < done, f"{side}: {resumed} of {done} handshakes use an earlier one")
    way = bench.way("secure-resumed", "smcrd")
    counts = iter([(0, 0), (200, 100)])
    way.handshakes = lambda: next(counts)
    try:
        measure.resumed_connections(bench, way)
    except Failure as e:
        equal(str(e), "100 of 200 handshakes use an earlier one", "the failure")
    else:
        raise Failure("half of the handshakes were by certificates, and the row has figures")


@case("a row of captured connections: the far end takes their destinations and clients, and none of side plain", timeout=60)
def _(t):
    need("wrk", "nginx", "nft", "nsenter", "ip")
    bench = Bench(t, SETUPS, 1)
    in_small(t, "transparent", bench, ("plain", "smcrd"))
    for side, captured in (("plain", False), ("smcrd", True)):
        near = bench.way("transparent", side).procs[0].services()[0]
        check((near["dest_taken"] >= 64) == captured and near["clients_unused"] == 0, f"{side}: {near['dest_taken']} destinations taken")


@case("rows of the preload: the client is on the UNIX socket; one that is not is refused", timeout=60)
def _(t):
    need("redis-server", "redis-cli", "redis-benchmark")
    bench = Bench(t, SETUPS, 0.1)
    in_small(t, "local-64", bench, clients=4)
    way = bench.way("local", "smcrd")
    check(sum(s["accepted"] for s in way.procs[0].services()) > 4, "the ingress accepted connections")
    equal(connect_ex(way.at("redis")), errno.ECONNREFUSED, "TCP to the same address")


def connect_ex(at):
    with socket.socket() as s:
        return s.connect_ex(at)


def by_number(**sides):
    """A document of a row for each number of connections: by_number(smcrd={10: [rates]})"""
    doc = made_up([])
    row, = doc["rows"]
    row["figures"].insert(0, {"key": "count", "heading": "", "unit": "open", "better": "more"})
    counts = sorted({n for of in sides.values() for n in of})
    doc["rows"] = [{**row, "name": f"row-{n}", "samples": [{side: {"count": n, "rate": rate} for side, rate in zip(sides, rates)}
                                                          for rates in zip(*(of[n] for of in sides.values()))]} for n in counts]
    return doc


@case("the plot has a panel for each figure of several numbers of connections, with its spread")
def _(t):
    doc = by_number(smcrd={100: [5, 7, 6], 10: [9, 9, 9]}, haproxy={100: [3, 3, 3], 10: [4, 4, 4]})
    (title, by), = plot.panels(doc)
    equal(title, "k/s", "title")
    equal(by["smcrd"], [(10, (9, 9, 9, 3)), (100, (6, 5, 7, 3))], "points of smcrd")
    equal(plot.panels(made_up(rounds(smcrd=[1]))), [], "panels of a row without a number of connections")
    document.save(doc, t.path("bench.json"))
    os.mkdir(t.path("none"))
    with open(t.path("none", "matplotlib.py"), "w") as f:
        f.write("raise ImportError")
    out = t.run([*BENCH, "--from", t.path("bench.json"), "--plot", t.path("plot.svg")], status=1, stderr=subprocess.STDOUT,
                env=dict(os.environ, PYTHONPATH=t.path("none"))).decode()
    check("has no matplotlib" in out, out)
    plot.library()	# a skip without it
    for name, begin in (("plot.svg", b"<?xml"), ("plot.png", b"\x89PNG")):
        t.run([*BENCH, "--from", t.path("bench.json"), "--plot", t.path(name)])
        with open(t.path(name), "rb") as f:
            data = f.read()
        check(data.startswith(begin), f"{name}: {data[:20]}")
        check(name.endswith(".png") or all(word in data for word in (b"smcrd", b"haproxy", b"connections", b"k/s")), name)
    t.run([*BENCH, "--from", t.path("bench.json"), "--plot", t.path("none", "missing", "plot.svg")], status=1)


@case("haproxy at a UNIX socket is seen to listen, and serves")
def _(t):
    need("haproxy")
    pair = HaproxyPair(t, {"x": Server(t, echo).at}, unix=True)
    with unix_connect(pair.at["x"]) as s:
        s.sendall(b"hello")
        equal(recv_exact(s, 5), b"hello", "echo")


@case("an interrupt keeps what was measured", timeout=90)
def _(t):
    need("redis-server", "redis-cli", "redis-benchmark")
    path = t.path("bench.json")
    bench = t.spawn([*BENCH, "--row", "redis-1", "--rounds", "1000", "--seconds", "1", "--json", path], "bench")
    wait_until(lambda: "." in bench.log(), "the first measurement is over", 30)
    equal(bench.stop(signal.SIGINT), 130, "exit status")
    with open(path) as f:
        row, = json.load(f)["rows"]
    check(1 <= len(row["samples"]) < 1000 and row["samples"][0], f"samples: {row['samples']}")
    logs(bench, "Redis GET, 1 connection")


if __name__ == "__main__":
    main()
