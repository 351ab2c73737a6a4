#!/usr/bin/env python3
"""
The conversations of check_referee.py in transparent mode: programs connect to servers, rules of the host bring their connections to one
ingress, and the egress connects where they wanted to go, by their address. Both ends see each other as directly, but for the port of the
client.

	check_referee_transparent.py [FROM COUNT]
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "integration")]

from netns import ADDR_B, Net, enter		# noqa: E402

enter()

from harness import PATIENCE, Daemon, case, check, equal, hostport, main, need	# noqa: E402
from live import socket_in		# noqa: E402
from referee import Referee		# noqa: E402
from ways import Way		# noqa: E402

SLOTS = 24
FROM, COUNT = map(int, sys.argv[1:] or ("1", "60"))
CLIENT = "10.78.5.5"
INGRESS, MIDDLE, CAPTURED, DIRECT = 7000, 15000, 20000, 21000
PORTS = f"{CAPTURED}-{CAPTURED + SLOTS - 1}"
RULES = f"""table inet smcrd_all {{ chain out {{ type nat hook output priority -100;
ip daddr {ADDR_B} tcp dport {PORTS} redirect to :{INGRESS}
}}
}}"""


@case("captured connections by their clients' addresses against direct ones", timeout=3600)
def _(t):
    net = Net(t, 1)
    net.ip("a", f"addr replace {CLIENT}/32 dev lo")
    t.run([need("nft"), "-f", "-"], input=RULES.encode())
    net.ip("b", f"route add {CLIENT} via 10.77.1.1")	# of direct connections
    common = {"log_level": "notice", "smcr": {"open_over_link": True}}
    b = Daemon(t, "b", {**common, "devices": net.devices("b"), "egress": [
        {"name": "any", "listen": hostport(ADDR_B, MIDDLE), "to": "requested", "to_allow": [f"{ADDR_B}:{PORTS}"], "allow": ["10.77.0.0/16"],
         "client_address": "connect", "clients": ["10.78.0.0/16"], "socket_mark": 0x5d}]}, wrap=net.b.wrap())
    a = Daemon(t, "a", {**common, "devices": net.devices("a"), "ingress": [
        {"name": "all", "listen": hostport("0.0.0.0", INGRESS), "to": "original", "forward_client": "required",
         "via": [{"nets": [f"{ADDR_B}:{PORTS}"], "peer": f"*:{MIDDLE}"}]}]})

    net.b.run(["sh", "-ec", b.ctl_text("routes", "any")])

    def ways(first):
        return [Way(t, False, (ADDR_B, first + i), make=lambda: socket_in(net.far), source=CLIENT) for i in range(SLOTS)]
    captured = ways(CAPTURED)
    for way in captured:
        way.warm()
    r = Referee(ways(DIRECT), {"captured": captured}, False, 5.0 * PATIENCE)
    begun = time.monotonic()
    found = r.play(range(FROM, FROM + COUNT))
    count = a.counters()
    t.note(f"{r.played} conversations in {time.monotonic() - begun:.1f} s, {count['established_client']} on SMC-R, "
           f"{count['opened_client']} over a link")
    for f in found:
        t.note(f)
    equal(len(found), 0, f"seeds that differ: {' '.join(sorted({str(f.seed) for f in found}))}")
    check(count["established_client"] > COUNT / 2, "most on SMC-R")
    equal(b.services()[0]["refused_allow"], 0, "clients that were refused")


main()
