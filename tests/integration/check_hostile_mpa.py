#!/usr/bin/env python3
"""Strangers on the MPA port."""
import time

from harness import check, connect_to, equal, hostport, main, set_reset_on_close, wait_until
from hostile import MIB, SOON, iw, refused_ones, scene_case, smc, stranger, logged

REQUEST = iw.MpaFrame(enhanced=iw.Enhanced(), private=smc.Pdata(qpn=5, psn=6, token=7, from_qpn=8).encode()).encode()


@scene_case("silent connections to the MPA port: new links succeed")
def _(s):
    port = s.mpa_ports()[1]
    for _ in range(300):
        s.tcp((s.t.addr, port))
    equal(s.first_contacts(5), 5, "first contacts that worked")
    s.bound(s.b, rss=4 * MIB)


def storm(at, source, seconds):
    """Connects, asks, goes away, as often as it can; how often."""
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        try:
            with connect_to(at, 5, source=source) as sock:
                set_reset_on_close(sock)
                sock.sendall(REQUEST)
            n += 1
        except OSError:
            pass
    return n


@scene_case("requests to the MPA port at the rate of one core: new links succeed")
def _(s):
    flood = s.t.fork(storm, (s.t.addr, s.mpa_ports()[1]), stranger(s.t), 2)
    tried = good = 0
    while flood.alive():
        good += s.first_contacts(1, tried)
        tried += 1
    s.t.note(f"{flood.result() / 2:.0f} requests/s, {good} of {tried} first contacts")
    # The port makes room by turning away the oldest request that it has not read: about one in ten is of a peer, which uses TCP.
    check(good > 5 and good >= tried * 3 // 4, f"{good} of {tried} first contacts")
    s.bound(s.b, rss=4 * MIB)


BUSY, NOT_EXPECTED = 5, 4		# verdicts in the Reply's private data


@scene_case("requests for no link: one address takes half of the places, and another one gets one")
def _(s):
    at = (s.t.addr, s.mpa_ports()[1])
    held = [s.tcp(at) for _ in range(100)]
    for sock in held:
        sock.sendall(REQUEST)

    def verdict(sock):
        sock.settimeout(SOON)
        return smc.Pdata.decode(iw.read_mpa(sock, SOON).private).verdict
    # The first ones wait for a second to be claimed; the others are refused at once.
    asked = s.tcp(at, 2)
    asked.sendall(REQUEST)
    equal(verdict(asked), NOT_EXPECTED, "what another address hears")
    got = [verdict(sock) for sock in held]
    equal(got.count(NOT_EXPECTED) + got.count(BUSY), len(got), "requests that waited, and that found no place")
    check(got.count(BUSY) > 36, f"{got.count(BUSY)} of {len(got)} found no place, though all 64 are not for one address")


@scene_case("requests to the MPA port from a disallowed address: refused before they are read",
            smcr={"mpa_clients": ["192.0.2.1"]})
def _(s):
    # The service is open to all. Those who make first contact are in no list, but peers of the moment; the stranger is neither.
    flood = s.t.fork(storm, (s.t.addr, s.mpa_ports()[1]), stranger(s.t), 1)
    tried = 0
    while flood.alive():
        equal(s.first_contacts(1, tried), 1, "first contacts that worked")
        tried += 1
    asked = flood.result()
    s.t.note(f"{asked} requests, {tried} first contacts")
    words = "iWARP connections from addresses that may not connect"
    wait_until(lambda: logged(s.b, words)[1] >= asked // 2, "most are logged")
    equal(refused_ones(s.b, words)[-1].rsplit(":", 1)[0], stranger(s.t), "its address")
    s.bound(s.b, rss=4 * MIB)


@scene_case("bytes that are no MPA request: counted, and logged at most once a second")
def _(s):
    at = (s.t.addr, s.mpa_ports()[1])
    start = time.monotonic()
    for _ in range(200):
        sock = s.tcp(at)
        sock.sendall(b"GET / HTTP/1.0\r\nHost: smcrd\r\n\r\n")
        last = hostport(*sock.getsockname()[:2])
        s.leave()
    words = "iWARP connections without a proper request"
    wait_until(lambda: logged(s.b, words)[1] == 200, "all are logged")
    equal(refused_ones(s.b, words)[-1], last, "the last address")
    took = time.monotonic() - start
    lines = logged(s.b, words)[0]
    check(lines <= took + 2, f"{lines} lines in {took:.1f} s")


main()
