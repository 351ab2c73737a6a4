#!/usr/bin/env python3
"""
SMC-R's TCP option in invalid forms: in SYNs and SYN/ACKs made by hand, doubled, cut short, stretched, damaged, in
segments that are sent again or come later. A host with a TCP of its own, behind a TUN interface, is the peer. What counts:
a daemon's SYN/ACK has the option just when the SYN had it, what each side takes a connection for follows from what was on
the wire, and other connections go on.
"""
import fcntl
import os
import select
import socket
import struct
import subprocess
import time

import netns

netns.enter()

from harness import (PATIENCE, Daemon, Server, Skip, case, check, connect_to, echo, equal, hostport, main, need,	# noqa: E402
                     recv_exact, same_bytes, soft_device, wait_until)

HERE, THERE = "10.99.0.1", "10.99.0.2"
TUNSETIFF, TUN_NO_INFO = 0x400454ca, 0x1001
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
SMCR = bytes((254, 6)) + b"\xe2\xd4\xc3\xd9"
CLC = b"\xe2\xd4\xc3\xd9"
SOON = 5 * PATIENCE

# Options -> is it SMC-R's. The kernel that reads them stops at an end, at one of the kind that is too short, and where the room ends.
FORGED = {
    "none": (b"", False),
    "right": (SMCR, True),
    "twice": (SMCR * 2, True),
    "behind others": (b"\1\1\2\4\5\xb4" + SMCR, True),
    "behind as many blanks as fit": (b"\1" * 34 + SMCR, True),
    "with more behind the magic": (bytes((254, 8)) + SMCR[2:] + b"\0\0", True),
    "with one byte more": (bytes((254, 7)) + SMCR[2:] + b"\0", True),
    "as long as there is room": (bytes((254, 40)) + SMCR[2:] + bytes(34), True),
    "its magic cut short": (bytes((254, 4)) + SMCR[2:4], False),
    "its magic cut short, the rest behind": (bytes((254, 4)) + SMCR[2:] + b"\1\1", False),
    "of length 0": (bytes((254, 0)) + SMCR[2:], False),
    "of length 1": (bytes((254, 1)) + SMCR[2:], False),
    "of length 2": (bytes((254, 2)), False),
    "longer than the header": (bytes((254, 9)) + SMCR[2:], False),
    "much longer than the header": (bytes((254, 255)) + SMCR[2:], False),
    "a bit of the magic": (SMCR[:5] + b"\xd8", False),
    "another kind": (b"\xfd" + SMCR[1:], False),
    "behind the end": (b"\0" + SMCR, False),
    "the magic alone": (SMCR[2:], False),
    "a damaged one before it": (SMCR[:5] + b"\xd8" + SMCR, True),
    "a short one before it": (bytes((254, 3, 0)) + SMCR, False),
}


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


class Segment:
    def __init__(self, packet):
        tcp = packet[(packet[0] & 15) * 4:]
        self.source, self.port, self.seq, self.ack, length, self.flags = struct.unpack_from(">HHIIBB", tcp)
        self.options, self.data = tcp[20:(length >> 4) * 4], tcp[(length >> 4) * 4:]


class Tun:
    """The host THERE; its segments are ours to make."""

    def __init__(self, t):
        if not os.path.exists("/dev/net/tun"):
            raise Skip("no /dev/net/tun")
        self.fd = os.open("/dev/net/tun", os.O_RDWR)
        t.later(lambda: os.close(self.fd))
        fcntl.ioctl(self.fd, TUNSETIFF, struct.pack("16sH22x", b"smcrdtest", TUN_NO_INFO))
        ip = need("ip")
        for line in ("addr add 10.99.0.1/24 dev smcrdtest", "link set smcrdtest up", "link set lo up"):
            subprocess.run([ip, *line.split()], check=True)
        self.came = []

    def send(self, source, port, flags, seq, ack=0, options=b"", data=b"", cut=0):
        """cut: so many bytes of the options are beyond the header, as its length has it."""
        options += bytes(-len(options) % 4)
        words = 5 + len(options) // 4 - cut // 4
        head = struct.pack(">HHIIBBHHH", source, port, seq & 0xffffffff, ack & 0xffffffff, words << 4, flags, 65535, 0, 0)
        tcp = head + options + data
        ends = socket.inet_aton(THERE) + socket.inet_aton(HERE)
        tcp = tcp[:16] + struct.pack(">H", checksum(ends + struct.pack(">HH", 6, len(tcp)) + tcp)) + tcp[18:]
        ip = struct.pack(">BBHIBBH", 0x45, 0, 20 + len(tcp), 0, 64, 6, 0) + ends
        os.write(self.fd, ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:] + tcp)

    def expect(self, port, fits, timeout=SOON):
        """The next segment to this port of ours that fits, others to it are lost; None: there is none in time."""
        end = time.monotonic() + timeout
        while True:
            for x in self.came:
                if x.port == port and fits(x):
                    self.came.remove(x)
                    return x
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                return None
            packet = os.read(self.fd, 65536)
            if packet[0] >> 4 == 4 and packet[9] == 6:
                self.came.append(Segment(packet))


def has_option(segment):
    return SMCR in segment.options


class Scene:
    """An egress of peer auto before a plain server, and a bystander: a connection through it that is there all the time."""

    def __init__(self, t):
        if os.geteuid() != 0:
            raise Skip("only root can make a TUN interface")
        self.tun = Tun(t)
        self.server = Server(t, echo)
        self.at = (HERE, t.port())
        self.there = t.port()		# of the host THERE
        self.front = (t.addr, t.port())
        self.d = Daemon(t, "gateway", {
            "log_level": "info", "devices": [soft_device(t.addr)], "smcr": {"clc_timeout": "300ms", "hold_off": "10ms"},
            "egress": [{"name": "e", "listen": hostport(*self.at), "to": hostport(*self.server.at), "peer": "auto"}],
            "ingress": [{"name": "i", "listen": hostport(*self.front), "to": f"{THERE}:{self.there}", "peer": "auto",
                         "connect_timeout": "5s"}]})
        state = self.d.ctl("status")["tcp_option"]
        if not state["usable"]:
            raise Skip(f"the kernel takes no BPF program from us: {state}")
        self.bystander = connect_to(self.at)
        t.later(self.bystander.close)
        self.echo()
        self.ports = iter(range(20000, 30000))

    def echo(self):
        self.bystander.sendall(b"still here")
        same_bytes(recv_exact(self.bystander, 10), b"still here", "the bystander's echo")

    def counter(self, name):
        return self.d.counters()[name]


def opened(s, syns, **how):
    """A connection that these SYNs ask for, each option list one of them: (our port, our seq, the SYN/ACK)."""
    me = next(s.ports)
    for options in syns:
        s.tun.send(me, s.at[1], SYN, 1000, options=options, **how)
    answer = s.tun.expect(me, lambda x: x.flags & (SYN | ACK | RST) == SYN | ACK)
    return me, 1001, answer


def counts(s, act):
    """What the daemon took the next connection for: "agreed", "missing"."""
    before = {x: s.counter(f"option_{x}") for x in ("agreed", "missing")}
    act()
    wait_until(lambda: any(s.counter(f"option_{x}") > n for x, n in before.items()), "the connection is counted")
    grown = {x for x, n in before.items() if s.counter(f"option_{x}") > n}
    equal(len(grown), 1, f"counters that grew: {grown}")
    return grown.pop()


def served(s, name, syns, offered, **how):
    me, seq, answer = opened(s, syns, **how)
    check(answer is not None, f"{name}: no SYN/ACK")
    equal(has_option(answer), offered, f"{name}: the option in the SYN/ACK")

    def speak():
        # The option comes here as well: it is late, and nothing.
        s.tun.send(me, s.at[1], ACK, seq, answer.seq + 1, options=b"" if offered else SMCR)
        s.tun.send(me, s.at[1], ACK | PSH, seq, answer.seq + 1, options=SMCR, data=b"GET / HTTP/1.0\r\n")

    equal(counts(s, speak), "agreed" if offered else "missing", f"{name}: what it was taken for")
    if not offered:
        got = s.tun.expect(me, lambda x: x.data)
        check(got is not None, f"{name}: no echo")
        same_bytes(got.data, b"GET / HTTP/1.0\r\n", f"{name}: a plain client's echo")
    s.tun.send(me, s.at[1], RST | ACK, seq + 16, answer.seq + 1)
    s.echo()


@case("SYNs with forged options: the SYN/ACK has the option if and only if the SYN had it", timeout=180)
def _(t):
    s = Scene(t)
    for name, (options, offered) in FORGED.items():
        served(s, name, [options], offered)
    served(s, "cut off by the header's length", [b"\1\1" + SMCR], False, cut=4)
    s.d.finish()


@case("SYNs repeated with other options: the first one counts", timeout=180)
def _(t):
    s = Scene(t)
    served(s, "the option in the first alone", [SMCR, b"", b""], True)
    served(s, "the option from the second one on", [b"", SMCR, SMCR * 2], False)
    for i in range(200):	# half open: none of them is a connection, nothing is kept of them
        s.tun.send(next(s.ports), s.at[1], SYN, i, options=list(FORGED.values())[i % len(FORGED)][0][:40])
    s.echo()
    served(s, "behind many half-open ones", [SMCR], True)
    s.d.finish()


def connected(s, name, answers, agreed):
    """The daemon connects to THERE, which answers with these SYN/ACKs."""
    client = connect_to(s.front)
    try:
        syn = s.tun.expect(s.there, lambda x: x.flags & (SYN | ACK) == SYN)
        check(syn is not None and has_option(syn), f"{name}: a SYN with the option")

        def answer():
            client.sendall(b"hello")
            for options in answers:
                s.tun.send(s.there, syn.source, SYN | ACK, 5000, syn.seq + 1, options=options)

        equal(counts(s, answer), "agreed" if agreed else "missing", f"{name}: what it was taken for")
        got = s.tun.expect(s.there, lambda x: x.source == syn.source and x.data)
        check(got is not None, f"{name}: no data")
        equal(got.data[:4], CLC if agreed else b"hell", f"{name}: the first bytes")
        s.tun.send(s.there, syn.source, RST | ACK, 5001, got.seq)
    finally:
        client.close()
    s.echo()


@case("SYN/ACKs with forged options: a Proposal follows if and only if the option is present", timeout=180)
def _(t):
    s = Scene(t)
    for name, (options, agreed) in FORGED.items():
        connected(s, name, [options], agreed)
    connected(s, "again with it", [b"", SMCR], False)
    connected(s, "again without it", [SMCR, b""], True)
    s.d.finish()


main()
