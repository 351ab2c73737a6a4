#!/usr/bin/env python3
"""
smcrd against a pair of haproxy and against the direct connection, side by side in one run.

Every row is measured in rounds; in each round the ways take turns, starting with each in turn. The table has the median with
the least and the greatest over the rounds, and of what smcrd is beside the other one, which is computed in each round by itself.
Rows noise-... compare two pairs of the same smcrd: as far as these are apart, a figure means nothing.

With --old BUILD it is smcrd against the smcrd of another build directory instead, in the same rounds: what a change costs.
With --from FILE... nothing is measured: the table of earlier runs is printed, whose rounds add up.
"""
import argparse
import os
import resource
import shutil
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import document	# noqa: E402
import plot	# noqa: E402
import rows	# noqa: E402
import table	# noqa: E402
from harness import SANITIZERS, Case, Failure, Skip	# noqa: E402
from setups import SETUPS	# noqa: E402
from ways import Bench	# noqa: E402


def progress(text):
    print(text, end="", file=sys.stderr, flush=True)


def row_document(row):
    return {"name": row.name, "heading": row.heading, "subject": row.subject, "base": row.base,
            "figures": [f._asdict() for f in row.figures], "samples": [], "skipped": None, "left_out": {}, "failures": [],
            "notes": []}


def one_line(t, e):
    text = str(e) if isinstance(e, (Failure, Skip)) else repr(e)
    return "; ".join(text.strip().split("\n")).replace(t.dir + "/", "")


def usable_sides(bench, row, out):
    """Those whose programs are there and run here; why others are not is in the document."""
    try:
        bench.setup(row.setup)
    except Exception as e:
        out["skipped"] = one_line(bench.t, e)
        return []
    sides = []
    for side in row.sides:
        try:
            if row.fresh:
                bench.fresh_way(row.setup, side).end()
            else:
                bench.way(row.setup, side)
            sides.append(side)
        except Exception as e:
            out["left_out"][side] = one_line(bench.t, e)
    if row.subject not in sides:
        out["skipped"] = out["left_out"].pop(row.subject)
        return []
    return sides


def measure_row(bench, row, rounds, out):
    sides = usable_sides(bench, row, out)
    for n in range(rounds if sides else 0):
        sample = {}
        out["samples"].append(sample)
        for i in range(len(sides)):
            side = sides[(i + n) % len(sides)]
            try:
                sample[side] = row.measure(bench, row.setup, side) if row.fresh else row.measure(bench, bench.way(row.setup, side))
                progress(".")
            except Skip as e:
                out.update(skipped=one_line(bench.t, e), samples=[])
                return
            except Exception as e:	# one measurement is lost, not the run
                out["failures"].append(f"round {n + 1}, {side}: {one_line(bench.t, e)}")
                progress("!")


def fallen_back(bench):
    """Words on each way whose figures are not SMC-R's alone."""
    notes = []
    for (setup, side), way in bench.ways():
        try:
            fallen = way.fallbacks()
            if fallen:
                notes.append(f"{fallen} connections of {side} ({setup}) fell back to TCP: figures are not SMC-R's alone")
        except Failure as e:
            notes.append(f"{side} ({setup}): {one_line(bench.t, e)}")
    return notes


def measure_all(bench, chosen, rounds, doc):
    """Fills the document; an interrupt keeps what is there."""
    try:
        for row in chosen:
            out = row_document(row)
            doc["rows"].append(out)
            progress(f"{row.name} ")
            measure_row(bench, row, rounds, out)
            progress("\n")
    except KeyboardInterrupt:
        progress(" interrupted\n")
        return False
    finally:
        doc["configurations"] = bench.configurations
    doc["notes"] += fallen_back(bench)	# not after an interrupt, which ends the daemons as well
    return True


def arguments():
    p = argparse.ArgumentParser(description="smcrd beside haproxy and the direct connection")
    p.add_argument("--quick", action="store_true", help="one short round; figures are rough")
    p.add_argument("--row", action="append", choices=[r.name for r in rows.ROWS], metavar="NAME",
                   help="only this row; may be repeated")
    p.add_argument("--rounds", type=int, help="rounds of each row (default 7)")
    p.add_argument("--seconds", type=int, help="length of one measurement (default 2)")
    p.add_argument("--old", metavar="BUILD", help="against the smcrd of that build directory, and nothing else")
    p.add_argument("--json", metavar="FILE", help="where the samples go (default bench.json in the build directory)")
    p.add_argument("--from", dest="files", nargs="+", metavar="FILE", help="only print what these files have")
    p.add_argument("--markdown", nargs="?", const="", metavar="FILE",
                   help="the table as doc/performance.md has it; with a FILE: put it there, in place of the one that it has")
    p.add_argument("--plot", metavar="FILE", help="figures by the number of connections (rows growing-...), as SVG or PNG")
    p.add_argument("--list", action="store_true", help="names of the rows")
    args = p.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 7)
    args.seconds = args.seconds or (1 if args.quick else 2)
    if args.rounds < 1 or args.seconds < 1:
        p.error("at least one round and one second")
    return args


def interrupt(_signo, _frame):
    raise KeyboardInterrupt


def run(args):
    """Measures; the document, and whether the run came to its end."""
    chosen = [r for r in rows.ROWS if not args.row or r.name in args.row]
    if args.old:
        chosen = [rows.against_old(r) for r in chosen]
    for signo in (signal.SIGINT, signal.SIGTERM):	# the first one is ignored where a shell started us in the background
        signal.signal(signo, interrupt)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    doc = document.new(args.seconds, args.old or "haproxy")
    if SANITIZERS:
        doc["notes"].append("this is a sanitizer build; figures mean nothing")
    t = Case("bench")
    try:
        whole = measure_all(Bench(t, SETUPS, args.seconds, args.old), chosen, args.rounds, doc)
    finally:
        t.close()
        shutil.rmtree(t.dir, ignore_errors=True)
    path = args.json or os.path.join(os.environ.get("top_builddir", "."), "bench.json")
    document.save(doc, path)
    progress(f"every sample: {path}\n")
    return doc, whole


def main():
    args = arguments()
    if args.list:
        print("\n".join(r.name for r in rows.ROWS))
        return 0
    try:
        if args.plot:
            plot.library()	# that it is missing is said before the measurements
        doc, whole = (document.load(args.files), True) if args.files else run(args)
        if args.markdown:
            table.replace_in(args.markdown, doc)
        else:
            print((table.text if args.markdown is None else table.markdown)(doc))
        if args.plot:
            plot.save(doc, args.plot)
    except (Failure, Skip, OSError) as e:
        print(f"bench: {e}", file=sys.stderr)
        return 1
    if not whole:
        return 130
    return 1 if any(r["failures"] for r in doc["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
