#!/usr/bin/env python3
"""
Conversations of socket calls that are drawn from seeds, played directly and through two daemons: both sides have to see the same.

	check_referee.py --seed 7 --mode smcr -v	the script of one, and what was seen
	check_referee.py --from 1000 --count 5000	more of them
"""
import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "integration")]

from harness import LOCAL_LIBRARY, PATIENCE, SHRINK, TRANSPORT, case, check, equal, main
from referee import Referee
from ways import direct, through

MODES = {"smcr": False, "fallback": False, "open": False, "tls": False, "tls-open": False, "tls-fallback": False, "transparent": False, "transparent-open": False, "transparent-fallback": False,
         "unix": True, "local": True}	# is a leg a UNIX socket?
LOCAL = os.environ.pop("SMCRD_LOCAL", None)	# this process has the library; its children are to do without
os.environ.pop("LD_PRELOAD", None)
args = argparse.Namespace(seed=None, mode=None, start=1, count=None, slots=24, deadline=5.0, verbose=False)


def seeds(most):
    if args.seed is not None:
        return [args.seed]
    with open(os.path.join(HERE, "seeds.txt")) as f:
        kept = [int(word) for line in f for word in line.split("#")[0].split()]
    return dict.fromkeys([*kept, *range(args.start, args.start + (args.count or most // SHRINK))])


def judge(t, unix, *modes, most=150):
    modes = [m for m in modes if args.mode in (None, m) and (m, TRANSPORT) != ("fallback", "sctp")]
    count = 1 if args.seed is not None else args.slots
    ways, pairs = {}, {}
    for mode in modes:
        pairs[mode], ways[mode] = through(t, mode, unix, count, LOCAL)
        if "open" in mode:
            for way in ways[mode]:
                way.warm()
    r = Referee(direct(t, unix, count), ways, MODES[modes[0]], args.deadline * PATIENCE, args.verbose)
    begun = time.monotonic()
    found = r.play(seeds(most))
    took = time.monotonic() - begun
    t.note(f"{r.played} conversations in {took:.1f} s, {r.played / took:.0f}/s")
    for mode, pair in pairs.items():
        pair.quiet(60)
        carried = pair.a.counters()
        t.note(f"{mode}: {carried['established_client']} on SMC-R, {carried['opened_client']} of them opened over a link, "
               f"{carried['not_opened_client']} not")
        pair.as_made(r.played // 4)
        if "open" in mode:
            check(carried["opened_client"] > r.played / (4 * PATIENCE), "they open over a link")	# a slow machine has fewer
        if "tls" in mode:
            check(all(d.counters()["tls_handshakes"] > 0 for d in (pair.a, pair.b)), "they are in TLS")
        if mode == "local":
            equal(pair.accepted_local()[1], 0, "connections of clients on TCP")
    for f in found:
        t.note(f)
    equal(len(found), 0, f"seeds that differ: {' '.join(sorted({f'{f.mode}:{f.seed}' for f in found}))}")


@case("TCP: SMC-R and fallback against the direct connection", timeout=3600)
def _(t):
    if args.mode in (None, "smcr", "fallback"):
        judge(t, False, "smcr", "fallback")


@case("connections that open over a link against the direct one", timeout=3600)
def _(t):
    if args.mode in (None, "open"):
        judge(t, False, "open", most=100)


@case("TLS between the daemons, links in TLS and TCP in TLS, against the direct connection", timeout=3600)
def _(t):
    for mode in ("tls", "tls-open", "tls-fallback"):
        if args.mode in (None, mode) and TRANSPORT != "sctp":
            judge(t, False, mode, most=10)


@case("the client's address at the server: both ends see each other as directly", timeout=3600)
def _(t):
    for mode in ("transparent", "transparent-open", "transparent-fallback"):
        if args.mode in (None, mode):
            judge(t, False, mode, most=10)


@case("UNIX sockets at both ends against the direct one", timeout=3600)
def _(t):
    if args.mode in (None, "unix"):
        judge(t, True, "unix")


@case("clients of libsmcrd-local.so against the direct TCP connection", timeout=3600)
def _(t):
    if LOCAL:
        judge(t, False, "local")
    elif args.mode in (None, "local") and TRANSPORT != "sctp":
        words = [w for w in sys.argv[1:] if w not in ("--mode", "local")] or ["--count", "100"]
        env = {**os.environ, "LD_PRELOAD": LOCAL_LIBRARY, "SMCRD_LOCAL": os.path.dirname(t.path("local"))}
        r = subprocess.run([sys.executable, os.path.abspath(__file__), *words, "--mode", "local"], env=env, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)	# raw: it has this case's time limit
        for line in r.stdout.split("\n"):
            t.note(line)
        equal(r.returncode, 0, "exit status")


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
