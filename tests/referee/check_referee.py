#!/usr/bin/env python3
"""
Conversations of socket calls that are drawn from seeds, played directly and through two daemons: both sides have to see the same.

	check_referee.py --seed 7 --mode smcr -v	the script of one, and what was seen
	check_referee.py --from 1000 --count 5000	more of them
"""
import argparse
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "integration")]

from harness import PATIENCE, SHRINK, TRANSPORT, case, equal, main
from referee import Referee
from ways import direct, through

MODES = {"smcr": False, "fallback": False, "unix": True}	# on UNIX legs?
args = argparse.Namespace(seed=None, mode=None, start=1, count=None, slots=24, deadline=5.0, verbose=False)


def seeds():
    if args.seed is not None:
        return [args.seed]
    with open(os.path.join(HERE, "seeds.txt")) as f:
        kept = [int(word) for line in f for word in line.split("#")[0].split()]
    return dict.fromkeys([*kept, *range(args.start, args.start + (args.count or 300 // SHRINK))])


def judge(t, unix):
    modes = [m for m, on_unix in MODES.items() if on_unix == unix and args.mode in (None, m) and (m, TRANSPORT) != ("fallback", "sctp")]
    count = 1 if args.seed is not None else args.slots
    ways, pairs = {}, {}
    for mode in modes:
        pairs[mode], ways[mode] = through(t, mode, unix, count)
    r = Referee(direct(t, unix, count), ways, unix, args.deadline * PATIENCE, args.verbose)
    begun = time.monotonic()
    found = r.play(seeds())
    took = time.monotonic() - begun
    t.note(f"{r.played} conversations in {took:.1f} s, {r.played / took:.0f}/s")
    for mode, pair in pairs.items():
        pair.quiet(60)
        carried = pair.a.counters()
        t.note(f"{mode}: {carried['established_client']} on SMC-R")
    for f in found:
        t.note(f)
    equal(len(found), 0, f"seeds that differ: {' '.join(sorted({f'{f.mode}:{f.seed}' for f in found}))}")


@case("TCP: SMC-R and fallback against the direct connection", timeout=3600)
def _(t):
    if args.mode != "unix":
        judge(t, False)


@case("UNIX sockets at both ends against the direct one", timeout=3600)
def _(t):
    if args.mode in (None, "unix"):
        judge(t, True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int)
    p.add_argument("--mode", choices=MODES)
    p.add_argument("--from", type=int, default=1, dest="start")
    p.add_argument("--count", type=int)
    p.add_argument("--slots", type=int, default=24)
    p.add_argument("--deadline", type=float, default=5.0)
    p.add_argument("-v", "--verbose", action="store_true")
    args = p.parse_args()
    main()
