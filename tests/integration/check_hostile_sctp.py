#!/usr/bin/env python3
"""Strangers on the SCTP port, in UDP."""
import os
import socket
import struct
import time

os.environ.update(SMCRD_TRANSPORT="sctp", SMCRD_WORKERS="1")	# before the harness reads them

from harness import check, main, wait_until, SECONDS	# noqa: E402
from hostile import MIB, scene_case, stranger	# noqa: E402
import pysctp as sctp	# noqa: E402

EVERYBODY = {"mpa_clients": ["127.0.0.0/8"]}


def sctp_at(s):
    """Of b."""
    return (s.t.addr, s.mpa_ports()[1])


def counted(d, what):
    """A counter of the daemon's device."""
    return d.ctl("devices")["devices"][0]["stats"][what]


def init(tag=1, streams=1, adaptation=1):
    body = struct.pack(">IIHHI", tag, sctp.WINDOW, streams, streams, 1)
    return sctp.Chunk(sctp.INIT, 0, body + sctp.parameter(sctp.ADAPTATION, struct.pack(">I", adaptation)))


# -- floods --


def storm(at, source, seconds):
    """INITs, as many as one core can make; how many."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((source, 0))
        packet = sctp.encode_packet(sock.getsockname()[1], at[1], 0, init())
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for _ in range(100):
                sock.sendto(packet, at)
            n += 100
        return n


def through_storm(s, turned_away):
    """First contacts of others while the first stranger sends INITs, most of which this counter counts."""
    flood = s.t.fork(storm, sctp_at(s), stranger(s.t), SECONDS + 1)
    wait_until(lambda: counted(s.b, turned_away) > 0, "some are turned away")
    tried = good = 0
    while flood.alive():
        good += s.first_contacts(1, tried)
        tried += 1
    sent = flood.result()
    s.t.note(f"{sent / (SECONDS + 1):.0f} INITs/s, {good} of {tried} first contacts")
    # The kernel drops what the socket has no room for; the peer's next try comes too late.
    check(good > 0 and good >= tried * 3 // 4, f"{good} of {tried} first contacts")
    check(counted(s.b, turned_away) > sent // 4, f"{counted(s.b, turned_away)} of {sent} INITs turned away")
    s.bound(s.b, rss=4 * MIB)


@scene_case("INITs from one address, as many as one core can make: links are made meanwhile", smcr=EVERYBODY)
def _(s):
    through_storm(s, "strangers_limited")


@scene_case("INITs from an address that may not connect: turned away before they are looked at", smcr={"mpa_clients": ["192.0.2.1"]})
def _(s):
    through_storm(s, "mpa_refused_address")


main()
