#!/usr/bin/env python3
"""
The conversations of check_referee.py with a wire of some delay between the daemons. Connections open over the link, so most of what a
client does happens before the answer to its OPEN has come.

	check_referee_delay.py [FROM COUNT]
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "integration")]

from netns import delayed_wire, enter, namespace		# noqa: E402

enter()

from harness import PATIENCE, Daemon, case, check, equal, hostport, main, soft_device	# noqa: E402
from live import socket_in		# noqa: E402
from referee import Referee		# noqa: E402
from ways import Way, direct		# noqa: E402

DELAY_MS = 5		# one way
SLOTS = 24
FROM, COUNT = map(int, sys.argv[1:] or ("1", "60"))


@case("connections that open over a slow link against the direct one", timeout=3600)
def _(t):
    far, pid = namespace(t)
    a, b = delayed_wire(t, far, pid, DELAY_MS)
    at = {f"x{i}": (("127.0.0.1", t.port()), (b, t.port()), (b, t.port())) for i in range(SLOTS)}
    common = {"log_level": "notice", "smcr": {"open_over_link": True}}
    pair = (Daemon(t, "b", {**common, "devices": [soft_device(b)], "egress": [
                {"name": name, "listen": hostport(*middle), "to": hostport(*server)} for name, (_, middle, server) in at.items()]},
                wrap=far.wrap()),
            Daemon(t, "a", {**common, "devices": [soft_device(a)], "ingress": [
                {"name": name, "listen": hostport(*client), "to": hostport(*middle)} for name, (client, middle, _) in at.items()]}))
    ways = [Way(t, False, server, client, lambda: socket_in(pid)) for client, _, server in at.values()]
    for way in ways:
        way.warm()
    r = Referee(direct(t, False, SLOTS), {"delayed": ways}, False, 5.0 * PATIENCE)
    begun = time.monotonic()
    found = r.play(range(FROM, FROM + COUNT))
    count = pair[1].counters()
    t.note(f"{r.played} conversations in {time.monotonic() - begun:.1f} s, {count['opened_client']} over a link")
    for f in found:
        t.note(f)
    equal(len(found), 0, f"seeds that differ: {' '.join(sorted({str(f.seed) for f in found}))}")
    check(count["opened_client"] > COUNT / 2, "most open over the link")


main()
