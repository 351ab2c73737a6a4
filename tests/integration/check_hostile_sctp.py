#!/usr/bin/env python3
"""Strangers on the SCTP port, in UDP, and hostile peers on an association that is theirs: packets, chunks and messages that
a correct peer does not send, in every role of a stranger."""
import os
import random
import socket
import struct
import time

os.environ.update(SMCRD_TRANSPORT="sctp", SMCRD_WORKERS="1")	# before the harness reads them

from harness import Failure, Skip, case, check, equal, main, same_bytes, wait_until, PATIENCE, SECONDS, SHRINK	# noqa: E402
from hostile import MIB, SOON, Scene, goes_on, how_it_ends, iw, refused_ones, scene_case, smc, stranger	# noqa: E402
import pysctp as sctp	# noqa: E402
import pysctp_ddp as ddp	# noqa: E402

STRANGE = (iw.Error, smc.SmcError, OSError)	# results for such a peer
EVERYBODY = {"mpa_clients": ["127.0.0.0/8"]}
SEND = iw.untagged(iw.SEND, 0, 1, 0, b"x")
REQUEST = ddp.initiate(private=smc.Pdata(qpn=5, psn=6, token=7, from_qpn=8).encode())


def sctp_at(s):
    """Of b."""
    return (s.t.addr, s.mpa_ports()[1])


def counted(d, what):
    """A counter of the daemon's device."""
    return d.ctl("devices")["devices"][0]["stats"][what]


class Raw:
    """A UDP socket that says whatever the test wants, and remembers nothing but the peer's tag."""

    def __init__(self, s, i=1):
        self.at = sctp_at(s)
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((stranger(s.t, i), 0))	# raw: held from here on
        self.sock.settimeout(SOON)
        self.port = self.sock.getsockname()[1]
        self.tag = random.randrange(1, 1 << 32)
        self.peer_tag = 0
        s.open.append(self)

    def close(self):
        self.sock.close()

    def send(self, *chunks, tag=None):
        self.sock.sendto(sctp.encode_packet(self.port, self.at[1], self.peer_tag if tag is None else tag, *chunks), self.at)

    def expect(self, type):
        """The first chunk of the next packet that begins like that."""
        while True:
            data = self.sock.recv(1 << 16)
            chunk = sctp.chunks_of(data[12:])[0]
            if chunk.type == type:
                return chunk

    def asked(self, ask, type):
        """Asks again and again: packets of strangers are limited."""
        self.sock.settimeout(0.03 * PATIENCE)
        try:
            return wait_until(lambda: ask() or self.came(type), f"chunk {type}")
        finally:
            self.sock.settimeout(SOON)

    def came(self, type):
        try:
            return self.expect(type)
        except TimeoutError:
            return None

    def cookie(self):
        answer = self.asked(lambda: self.send(ddp.init(self.tag), tag=0), sctp.INIT_ACK)
        self.peer_tag = sctp.read_init(answer)[0]
        return sctp.cookie_of(answer)

    def echo(self, cookie, **how):
        self.send(sctp.Chunk(sctp.COOKIE_ECHO, 0, cookie), **how)

    def associate(self):
        cookie = self.cookie()
        self.asked(lambda: self.echo(cookie), sctp.COOKIE_ACK)


# -- floods --


def storm(at, source, seconds):
    """INITs, as many as one core can make; how many."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((source, 0))	# raw: held from here on
        packet = sctp.encode_packet(sock.getsockname()[1], at[1], 0, ddp.init())
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for _ in range(100):
                sock.sendto(packet, at)
            n += 100
        return n


def through_storm(s, turned_away, words):
    """First contacts of others while the first stranger sends INITs, most of which this counter counts, and the log tells of."""
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
    # A line names the last one; others are turned away meanwhile, too, where no address may connect.

    def named():
        storm(sctp_at(s), stranger(s.t), 0.01)
        return stranger(s.t) in [x.rsplit(":", 1)[0] for x in refused_ones(s.b, words)]
    wait_until(named, "its address is logged", 30)
    s.bound(s.b, rss=4 * MIB)


@scene_case("INITs from one address at the rate of one core: new links succeed", smcr=EVERYBODY)
def _(s):
    through_storm(s, "strangers_limited", "SCTP packets without an association, over the limit")


@scene_case("INITs from a disallowed address: refused before they are parsed", smcr={"mpa_clients": ["192.0.2.1"]})
def _(s):
    through_storm(s, "mpa_refused_address", "iWARP connections from addresses that may not connect")


@scene_case("silent associations: they are ended, and new links succeed", smcr=EVERYBODY)
def _(s):
    bad = counted(s.b, "mpa_bad")
    silent = [Raw(s, 1 + i % 60) for i in range(140)]	# more than may wait
    for raw in silent:
        raw.associate()
    equal(s.first_contacts(5, 10), 5, "first contacts that worked")
    for raw in silent:
        raw.expect(sctp.ABORT)
    wait_until(lambda: counted(s.b, "mpa_bad") - bad >= len(silent), "all are counted")
    s.bound(s.b, rss=4 * MIB)


@scene_case("successive refused associations from one UDP address: other links continue", smcr=EVERYBODY)
def _(s):
    bad, start = counted(s.b, "mpa_bad"), time.monotonic()
    bystander = s.connected(s.peer(60))
    floods = [s.t.fork(ddp.swarm, sctp_at(s), stranger(s.t), SECONDS + 1) for _ in range(3)]
    echoes = 0
    while any(flood.alive() for flood in floods):
        s.echoes(bystander, 100)
        echoes += 1
    made, took = sum(flood.result() for flood in floods), time.monotonic() - start
    s.t.note(f"{made / took:.0f} associations/s, {echoes / took:.0f} echoes/s")
    # Two packets make one, and of one source 250 packets a second are looked at behind the first 64.
    check(counted(s.b, "mpa_bad") - bad <= 125 * took + 100, f"{counted(s.b, 'mpa_bad') - bad} were refused in {took:.1f} s")
    check(counted(s.b, "strangers_limited") > 0, "INITs were turned away")
    s.bound(s.b, rss=6 * MIB)


@scene_case("refused associations without acknowledgements: lingering ones are bounded over all addresses", smcr=EVERYBODY)
def _(s):
    made = early = 0
    end = time.monotonic()
    while goes_on(end, early, 1):	# on a busy machine they do not come as fast as their places become free
        floods = [s.t.fork(ddp.swarm, sctp_at(s), stranger(s.t, 1 + i), SECONDS + 1) for i in range(4)]
        made += sum(flood.result() for flood in floods)
        early = counted(s.b, "linger_refused")
    s.t.note(f"{made} associations, {early} ended early")
    check(early > 0, "some have to go before their time")
    s.bound(s.b, rss=6 * MIB)


def forged(source, at, packets, seconds):
    """These packets again and again, under an address that is not ours, as fast as it goes; how many."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sock:
        hosts = socket.inet_aton(source[0]) + socket.inet_aton(at[0])
        frames = [struct.pack(">BBHIBBH", 0x45, 0, 28 + len(p), 0, 64, socket.IPPROTO_UDP, 0) + hosts +
                  struct.pack(">HHHH", source[1], at[1], 8 + len(p), 0) + p for p in packets]
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for frame in frames:
                sock.sendto(frame, (at[0], 0))
            n += len(frames)
        return n


@scene_case("an INIT with many unknown parameters: not answered, because the answer repeats each", smcr=EVERYBODY)
def _(s):
    raw = Raw(s)

    def ask(unknown):
        body = ddp.init(raw.tag).body + b"".join(sctp.parameter(0xc100 + i, b"") for i in range(unknown))
        raw.send(sctp.Chunk(sctp.INIT, 0, body), tag=0)

    before = counted(s.b, "strangers_limited")
    for _ in range(10):
        ask(120)
    wait_until(lambda: counted(s.b, "strangers_limited") - before == 10, "all of them are turned away")
    raw.asked(lambda: ask(60), sctp.INIT_ACK)	# one of less than 512 bytes


@scene_case("INITs and other chunks from the address of a peer with a link: limited as any, and the link continues", smcr=EVERYBODY)
def _(s):
    if os.geteuid() != 0:
        raise Skip("only root can send under the address of others")
    peer, at = (s.t.addr, s.mpa_ports()[0]), sctp_at(s)	# from which the link of the witness comes
    packets = [sctp.encode_packet(1024 + i, at[1], 0, ddp.init(i + 1)) for i in range(50)]
    packets += [sctp.encode_packet(1024 + i, at[1], 99, sctp.Chunk(type, 0, os.urandom(64)))
                for i in range(10) for type in (sctp.COOKIE_ECHO, sctp.DATA, sctp.HEARTBEAT, sctp.ABORT, sctp.SHUTDOWN_ACK)]
    before, echoes = counted(s.b, "strangers_limited"), s.witness.turns
    flood = s.t.fork(forged, peer, at, packets, SECONDS + 1)
    sent = flood.result()
    limited = counted(s.b, "strangers_limited") - before
    s.t.note(f"{sent / (SECONDS + 1):.0f} packets/s, {limited} limited, {s.witness.turns - echoes} echoes meanwhile")
    check(limited > 0, "none was limited")
    s.bound(s.b, rss=4 * MIB)


@scene_case("cookies that are damaged, replayed, or from another address", smcr=EVERYBODY)
def _(s):
    raw, other = Raw(s), Raw(s, 2)
    bad, cookie = counted(s.b, "mpa_bad"), raw.cookie()
    for i in range(30):
        forged = bytearray(cookie)
        forged[random.randrange(len(forged))] ^= 1 << random.randrange(8)
        raw.echo(bytes(forged[:len(forged) - i % 3]))
    raw.echo(cookie, tag=raw.peer_tag ^ 1)
    other.peer_tag = raw.peer_tag
    other.echo(cookie)
    equal(counted(s.b, "mpa_bad"), bad, "associations so far")
    for _ in range(20):
        raw.asked(lambda: raw.echo(cookie), sctp.COOKIE_ACK)
    other.sock.settimeout(0.1 * PATIENCE)
    check(not other.came(sctp.COOKIE_ACK), "a cookie of another address made an association")
    raw.expect(sctp.ABORT)
    wait_until(lambda: counted(s.b, "mpa_bad") - bad == 1, "it was one, that said nothing")
    for _ in range(20):
        raw.echo(cookie)	# behind its end
    s.bound(s.b, rss=2 * MIB)


# -- on an association --


def whole(ppid, body, **how):
    return lambda session: session.send_message(ppid, body, **how)


# What a peer may not do on an association, whatever was said before: name -> what does it to a Session.
LIES = {
    "a DDP-SSN far ahead": lambda session: session.send_ulpdu(SEND, session.tx_ssn + 0x8001 & 0xffff),
    "a DDP-SSN from behind": lambda session: session.send_ulpdu(SEND, session.tx_ssn - 1 & 0xffff),
    "one DDP-SSN twice, ahead": lambda session: [session.send_ulpdu(SEND, session.tx_ssn + 9 & 0xffff) for _ in range(2)],
    "more ahead of its turn than the contract has": lambda session: [
        session.send_ulpdu(SEND, session.tx_ssn + 1 + i & 0xffff) for i in range(1000)],
    "an unknown function": lambda session: session.send_control(ddp.Control(ddp.ACCEPT), code=99),
    "a function cut short": whole(17, b"\0"),
    "more private data than there may be": whole(17, b"\0\5" + bytes(517)),
    "a message without a DDP-SSN": lambda session: session.assoc.send(b"x", 16),
    "another payload protocol": whole(0, SEND),
    "that of the other profile": whole(1, SEND),
    "another stream": whole(16, SEND, sid=1),
    "a message that never ends": lambda session: [session.send_message(16, bytes(1000), ssn=0, flags=sctp.UNORDERED | first)
                                                  for first in [sctp.FIRST] + 300 * [0]],
    "a fragment without a beginning": whole(16, SEND, flags=sctp.UNORDERED | sctp.LAST),
    "a message of 60,000 bytes": whole(16, bytes(60000)),
    "DATA of nothing": lambda session: session.assoc.send(b"", 16),
    "chunks cut short": lambda session: session.assoc.send_chunk(sctp.Chunk(sctp.SACK, 0, b"\0"), sctp.Chunk(sctp.DATA, 7, bytes(3))),
    "a SACK of what was never sent": lambda session: session.assoc.send_chunk(
        sctp.Chunk(sctp.SACK, 0, struct.pack(">IIHH", session.assoc.seen + 1000 & sctp.MASK, 0, 0, 0))),
    "an ABORT": lambda session: session.assoc.abort(),
    "a SHUTDOWN at once": lambda session: session.assoc.shutdown(),
}

def sins(session, lie):
    try:
        lie(session)
    except iw.Closed:
        pass	# it was closed before the last of it
    except iw.Timeout:
        pass	# as it is closed


def ends(session, name):
    try:
        how = session.assoc.wait_end(SOON)
    except iw.Closed as e:
        how = "reset" if e.reset else "closed"
    except iw.Timeout:
        raise Failure(f"{name}: the association is still there") from None
    check(how in ("reset", "closed"), f"{name}: {how}")


@scene_case("forged messages before, instead of and after an Initiate", smcr=EVERYBODY)
def _(s):
    told = []
    for i, (name, lie) in enumerate(LIES.items()):
        for first in (None, ddp.Control(ddp.INITIATE, private=b"garbage"), REQUEST):
            session = ddp.associate(sctp_at(s), SOON, source=stranger(s.t, 1 + i % 8))
            session.settimeout(SOON)
            if first:
                session.send_control(first)
            sins(session, lie)
            told.append((session, f"{name} behind {first}"))
    for session, name in told:
        ends(session, name)
    for adaptation in (None, 2, 3):
        try:
            ends(ddp.associate(sctp_at(s), SOON, source=stranger(s.t, 9), adaptation=adaptation), f"adaptation {adaptation}")
        except iw.Closed:
            pass	# at once
    s.bound(s.b, rss=4 * MIB)


@scene_case("forged messages instead of an Accept, to a connecting daemon", hostile_server=True)
def _(s):
    for name in ("a DDP-SSN far ahead", "one DDP-SSN twice, ahead", "an unknown function", "another payload protocol",
                 "a message that never ends", "a message of 60,000 bytes", "an ABORT"):
        s.fresh_server()
        _, v = s.proposed()
        v.send_accept()
        session, _ = s.server.mpa.accept(SOON)
        session.settimeout(SOON)
        sins(session, LIES[name])
        ends(session, name)
        s.leave()
        s.server.forget()
    s.bound(s.a, rss=4 * MIB)


# SCTP itself passes over some of them: then the peer ends as any that takes nothing.
@scene_case("forged messages on a link, beside a healthy link")
def _(s):
    bystander = s.connected(s.peer(2))
    for name, lie in LIES.items():
        c = s.connected()
        session = c.link.ep.stream
        session.settimeout(SOON)
        with c.link.cond:
            sins(session, lie)
        ends(session, name)
        s.echoes(bystander, 100)
    s.bound(s.b, rss=4 * MIB)


@scene_case("packets with the tag of an association from another address; from its address with a wrong tag")
def _(s):
    c = s.connected()
    assoc, thief = c.link.ep.stream.assoc, Raw(s, 2)
    data = sctp.Data(assoc.next_tsn, 0, 0, 16, struct.pack(">H", c.link.ep.stream.tx_ssn) + SEND)
    some = (sctp.Chunk(sctp.ABORT), sctp.Chunk(sctp.SHUTDOWN, 0, struct.pack(">I", assoc.seen)), data,
            sctp.Chunk(sctp.SHUTDOWN_ACK), sctp.Chunk(sctp.ABORT, sctp.REFLECTED))
    for chunk in some:
        thief.port = assoc.port.port	# the SCTP port of the association, from another address in UDP
        thief.send(chunk, tag=assoc.peer_tag)
        for bit in range(32):
            assoc.send_chunk(chunk, tag=assoc.peer_tag ^ 1 << bit)
    for tag in range(20):
        assoc.send_chunk(ddp.init(tag + 1), tag=0)	# as if its host restarted, and then was silent
        assoc.send_chunk(sctp.Chunk(sctp.COOKIE_ECHO, 0, os.urandom(200)))
    s.echoes(c)


@scene_case("chunks of any kind on an association, with the valid tag")
def _(s):
    seed = int.from_bytes(os.urandom(4), "big")
    s.t.note(f"seed {seed}")
    rnd = random.Random(seed)
    sent = links = 0
    end = time.monotonic() + SECONDS
    while goes_on(end, links, 6):
        try:
            assoc = s.connected().link.ep.stream.assoc
            links += 1
            for _ in range(rnd.randrange(1, 30)):
                chunk = sctp.Chunk(rnd.choice((*range(16), 64, 128, 192, 255)), rnd.randrange(256),
                                   rnd.randbytes(rnd.choice((0, 1, 4, 8, 12, 16, 40, 1000))))
                if rnd.random() < 0.5:	# DATA, SACK and SHUTDOWN that are nearly right
                    chunk.body = struct.pack(">I", assoc.next_tsn + rnd.randrange(-2, 3) & sctp.MASK) + chunk.body
                assoc.send_chunk(chunk)
                sent += 1
        except STRANGE:
            pass
        s.leave()
    s.t.note(f"{sent} chunks over {links} links")
    check(links > 5, f"{links} links")
    s.bound(s.b, rss=8 * MIB)


main()
