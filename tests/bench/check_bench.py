#!/usr/bin/env python3
"""The benchmark itself: its arithmetic, its document and its tables, and a run of one short row."""
import json
import os
import signal
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]

import document	# noqa: E402
import stats	# noqa: E402
import table	# noqa: E402
from harness import Failure, case, check, equal, main, need, wait_until	# noqa: E402

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
    check("20 (10 to 40)" in text and "15 (5 to 30)" in text and "2.00 (0.67 to 2.67)" in text, text)


@case("a round that lacks one side counts for the other, and for no ratio")
def _(t):
    samples = rounds(smcrd=[10, None, 30], haproxy=[5, 7, None])
    equal(stats.values(samples, "smcrd", "rate"), [10, 30], "values of smcrd")
    equal(stats.ratios(samples, "smcrd", "haproxy", "rate"), [2.0], "ratios")
    equal(stats.spread(stats.ratios(samples, "smcrd", "direct", "rate")), None, "beside who was not measured")
    check("| - |" in table.markdown(made_up(rounds(smcrd=[1], direct=[1]))), "no ratio is a dash")


@case("the noise has a table of its own that judges nobody")
def _(t):
    doc = made_up(rounds(smcrd=[10, 10], again=[9, 8]), subject="again", base="smcrd")
    text = table.text(doc)
    check("again/smcrd" in text and "0.85 (0.80 to 0.90)" in text and "worse" not in text, text)


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
    check("| Row | k/s | 5 (5 to 5) | 20 (10 to 30) | 4.00 (2.00 to 6.00) | better |" in out, out)
    t.run([*BENCH, "--from", paths[3]], status=1)
    try:
        document.load(paths[3:])
    except Failure as e:
        check("schema 2" in str(e), str(e))
    else:
        raise Failure("a document of schema 1 was taken")


@case("--list has each row once; a name that is none is refused")
def _(t):
    names = t.run([*BENCH, "--list"]).decode().split()
    equal(len(names), len(set(names)), "names")
    for name in ("bulk-1", "redis-64", "idle", "noise-redis-64"):
        check(name in names, f"{name} is missing in {names}")
    t.run([*BENCH, "--row", "nonsense"], status=2)


@case("one short row: a well-formed document, and its table", timeout=90)
def _(t):
    need("redis-server", "redis-benchmark")
    path = t.path("bench.json")
    out = t.run([*BENCH, "--quick", "--row", "redis-1", "--json", path], timeout=60).decode()
    check("Redis GET, 1 connection" in out, out)
    doc = document.load([path])
    row, = doc["rows"]
    equal((row["failures"], row["skipped"], len(row["samples"])), ([], None, 1), "what went wrong, and the rounds")
    figures = row["samples"][0]["smcrd"]
    check(figures["rate"] > 0 and figures["cpu"] > 0, f"figures of smcrd: {figures}")
    check(set(row["samples"][0]) | set(row["left_out"]) == {"direct", "haproxy", "smcrd"}, f"sides: {row}")
    check("smcrd near" in " ".join(doc["configurations"]), "configurations are kept")


@case("an interrupt keeps what was measured", timeout=90)
def _(t):
    need("redis-server", "redis-benchmark")
    path = t.path("bench.json")
    bench = t.spawn([*BENCH, "--row", "redis-1", "--rounds", "1000", "--seconds", "1", "--json", path], "bench")
    wait_until(lambda: "." in bench.log(), "the first measurement is over", 30)
    equal(bench.stop(signal.SIGINT), 130, "exit status")
    with open(path) as f:
        row, = json.load(f)["rows"]
    check(1 <= len(row["samples"]) < 1000 and row["samples"][0], f"samples: {row['samples']}")
    check("Redis GET, 1 connection" in bench.log(), "the table is printed")


if __name__ == "__main__":
    main()
