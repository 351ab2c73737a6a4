#!/usr/bin/env python3
"""
One ingress for all destinations (to = "original"): programs connect to servers, rules of the host bring their connections
to smcrd, and the egress connects where they wanted to go.
"""
import subprocess

from harness import SMCRD, Daemon, case, check, main
from netns import enter

enter()

VIA = [{"nets": ["198.51.100.0/24"], "peer": "*:15000"}]


@case("it is refused in words")
def _(t):
    conf = {"ingress": [{"name": "all", "listen": f"127.0.0.1:{t.port()}", "to": "original", "capture": "redirect", "via": VIA}]}
    d = Daemon(t, "a", conf, start=False)
    out = t.run([SMCRD, "-f", d.conf_path], status=1, stderr=subprocess.STDOUT).decode()
    check("is not served yet" in out, out)


main()
