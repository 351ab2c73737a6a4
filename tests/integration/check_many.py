#!/usr/bin/env python3
"""5,000 connections at once through one pair, three times over; no byte of another connection is ever seen."""
from harness import Pair, case, check, equal, main, SHRINK
from many import echo_server, rounds


@case("5,000 connections in 20 groups or more, three generations", timeout=300)
def _(t):
    count = 5000 // SHRINK
    server = echo_server(t)
    limits = {"max_connections": 6000}
    pair = Pair(t, {"x": server.at}, ingress=limits, egress=limits)
    before = [d.rss() for d in (pair.a, pair.b)]
    seen = []

    def full():
        for d in (pair.a, pair.b):
            modes = [c["mode"] for c in d.connections()]
            equal((modes.count("smcr"), len(modes)), (count, count), f"connections of daemon {d.name} on SMC-R, all")
            groups = d.groups()
            check(len(groups) >= count // 255, f"daemon {d.name}: {len(groups)} groups")
        after = [d.rss() for d in (pair.a, pair.b)]
        seen.append(after)
        t.note(f"{len(groups)} groups; resident memory per connection: "
               + " and ".join(str((y - x) // count) for x, y in zip(before, after)) + " bytes")
    rounds(t, (pair.host, pair.port["x"]), count, 3, full)
    pair.quiet(60)
    pair.only_smcr(3 * count)
    for first, last, d in zip(seen[0], seen[-1], (pair.a, pair.b)):
        check(last < first * 1.3 + (20 << 20), f"daemon {d.name}: memory grows from generation to generation: {seen}")
    server.ok()


main()
