#!/usr/bin/env python3
"""An engine as the server of a Linux client, which pylinux.py plays: SMC-R version 1 over RoCE."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import pysmc as smc
from linux_scene import both_roles, linux_case, lose
from pylinux import Card, Conn
from harness import check, equal, main

both_roles(client=True)


@linux_case(True, "ADD LINK with a card only: an invitation", cards=1, engine_cards=2)
def _(s):
    s.settled(2)	# asymmetric: both links end at the one card
    s.linux.cards.append(Card(s.host, 2))
    s.group.invite(s.linux.cards[1])
    s.host.wait("a link of the new card", lambda: {x.card for x in s.group.active()} == set(s.linux.cards))
    s.settled(2)
    check(not [m for _, m in s.group.llc_log if m.type == smc.ADD_LINK and m.response], "it has no answer but a request")
    s.open().echo(10000)


@linux_case(True, "one link at most: Linux continues with the first connection", cards=2, links_max=1)
def _(s):
    s.settled(1)
    check(s.group.waited and s.host.now > 3000000, "Linux waits for an offer that does not come")
    s.open().echo(10000)


@linux_case(True, "CONFIRM RKEY while the engine adds a link: a refusal would be final", cards=2)
def _(s):
    s.settled(2)
    s.linux.deaf_to = lambda m: m.type == smc.ADD_LINK
    gone = next(x for x in s.group.active() if x is not s.bystander.link)
    before = s.group.llc_count(smc.ADD_LINK, False)
    lose(s, gone, "reset")
    s.host.wait("ADD LINK", lambda: s.group.llc_count(smc.ADD_LINK, False) > before)
    c = s.open()
    check(c is not None, "the key was taken, the connection is no TCP")
    c.echo(5000)
    s.linux.deaf_to = None
    c.close()


@linux_case(True, "DELETE RKEY of a connection's buffer before the engine has the answer to its C", cards=1)
def _(s):
    for n in range(20):
        c = s.open()
        c.echo(500 + n)
        c.app.close()
        c.close()	# at the same moment: both C are under way
        s.closed_well(c)


main()
