#!/usr/bin/env python3
"""The soft iWARP device (siw_host) over SCTP and the DDP stream session written in Python, both profiles: ways to
connect, order, what does not belong into a session, and all that test_iwarp.py asks over MPA (sctp_cases.py); and chunks
that are held back or lost, which takes a peer whose SCTP is Python, too."""
import os
import random
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration")]

import pysctp as sctp
import pysctp_ddp as ddp
import sctp_cases
from sctp_cases import Sctp
from siw_scene import MS, exchange, host_case, to_host
from harness import check, equal, main, wait_until

BOTH = [Sctp(profile) for profile in ddp.PROFILES]


@host_case("a Write is placed before its turn, a Send waits for it", BOTH[0])
def _(host):
    qp, ep = to_host(host, recvs=3)
    mr = host.mr(100, "w")
    held = ep.stream.assoc.port.way.hold(sctp.message(ep.stream.assoc.sent))
    ep.send(b"first")
    ep.write(mr.rkey, mr.addr, b"early")
    ep.send(b"second")
    wait_until(lambda: mr.get(0, 5) == b"early", "the Write behind a message that is missing is placed")
    host.quiet(f"wc {qp.id}")
    held.release()
    equal([qp.received(i) for i in range(2)], [b"first", b"second"], "Sends")
    ep.close()


# What is lost comes again after 200 ms and more: a device without patience would take that for a peer that is gone.
def bad_path(host):
    seed = int.from_bytes(os.urandom(4), "big")
    host.t.note(f"seed {seed}")
    qp, ep = to_host(host, recvs=0)
    way = ep.stream.assoc.port.way
    way.drop(sctp.of_type(sctp.DATA))	# one at least
    mangled = way.mangle(random.Random(seed), 0.1)
    exchange(host, qp, ep)
    check(ep.stream.assoc.resent > 0, "nothing was sent again")
    mangled.release()	# an ABORT that is lost is not said again
    ep.reset()
    qp.event("qp_error")


for transport in BOTH:
    host_case(f"a bad path, {transport.profile.name}", transport, connect_ms=20 * MS, answer_ms=20 * MS)(bad_path)
sctp_cases.register(*BOTH)

if __name__ == "__main__":
    main()
