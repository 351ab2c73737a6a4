#!/usr/bin/env python3
"""An engine as the client of a Linux server, which pylinux.py plays: SMC-R version 1 over RoCE."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import pysmc as smc
from linux_scene import both_roles, linux_case, lose
from harness import check, equal, main

both_roles(client=False)


@linux_case(False, "Linux takes the key of a Confirm for one of the Accept's link", cards=2)
def _(s):
    s.settled(2)
    for s.linux.favourite in (2, 1):
        for c in [s.open() for _ in range(4)]:
            c.echo(100000)
    equal(s.group.errors, [], "errors of the card")
    equal([n for _, _, n in s.host.links()], [5, 4], "connections on the links, as Linux means it")


@linux_case(False, "a DELETE LINK request for a link unknown to Linux has no answer", cards=2)
def _(s):
    s.settled(2)
    c = s.open()
    gone = next(x for x in s.group.active() if x is not s.bystander.link)
    for conn in s.group.conns.values():
        if conn.link is gone:
            conn.move(s.bystander.link)
    s.host.idle(10)
    s.group.link_down(gone, tell=False)
    s.group.deleting.clear()
    s.host.wait("a plea", lambda: s.group.llc_count(smc.DELETE_LINK, False), 60000)
    s.host.idle(60000)
    c.echo(1000)
    equal(len(s.host.links()), 1, "links: the plea is given up")


@linux_case(False, "one link at most: the offer of Linux is rejected", cards=2, links_max=1)
def _(s):
    s.settled(1)
    s.open().echo(10000)


@linux_case(False, "a second link that Linux offers without a CONFIRM LINK", cards=2)
def _(s):
    s.settled(2)
    gone = next(x for x in s.group.active() if x is not s.bystander.link)
    lose(s, gone, "reset")
    s.settled(1)
    new = s.group.add_link(confirm=False)
    check(new is not None, "ADD LINK is answered")
    s.host.idle(2000)
    s.linux.deaf_to = lambda m: m.type == smc.DELETE_LINK
    s.group.send_delete(s.group.active()[0], new.number, orderly=False)
    new.kill()
    s.host.idle(30000)
    s.linux.deaf_to = None
    s.host.wait("a new link", s.group.add_link)
    s.settled(2)


main()
