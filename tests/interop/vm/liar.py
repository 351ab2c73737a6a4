"""
In a guest with Linux's SMC at the other end of its wire: packets of soft RoCE that come in with an LLC message of version 2 go by
way of this program, which now and then writes another message there. The peer itself is true, and does not know of it.

Such a packet leaves the ingress of its card for a tap device, and comes back from there. The tap has the card's MAC address, so
that the packet is for this host; type of service 4, which no CRC covers, says that it has been here.
"""
import collections
import fcntl
import os
import random
import select
import struct
import threading
import zlib

import rxe
from harness import equal, in_thread

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454ca, 2, 0x1000
ETH, IP, UDP, BTH, ICRC = 14, 20, 8, 12, 4
SEEN = 4		# type of service; afsmc.MESSAGES["LLC"] has 0
PREFIX = "liar-"	# of the taps' names
LLC_V2 = (0x21, 0x22, 0x24, 0x25, 0x26, 0x27, 0x29)
CONFIRM_RKEY = 0x26
NOT_LLC_V2 = (0x20, 0x23, 0x28, 0x2f, *range(10), 0xff)
REPLY = 0x80
EDGES = (0, 1, 2, 3, 0x7f, 0x80, 0xfe, 0xff)
MOST = 1000		# what one packet of an MTU of 1,024 has room for


def icrc(packet):
    """InfiniBand Architecture 9.1: of IP packet with UDP and BTH, without what routers change."""
    head = bytearray(packet[:IP + UDP + BTH])
    head[1] = head[8] = head[IP + UDP + 4] = 0xff
    head[10:12] = head[IP + 6:IP + 8] = b"\xff\xff"
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + head + packet[IP + UDP + BTH:]))


def with_message(frame, msg):
    """The frame with this message, whatever was its length. The checksum of IP is left to tc."""
    pad = -len(msg) % 4
    ip, udp, bth = (bytearray(frame[at:at + n]) for at, n in ((ETH, IP), (ETH + IP, UDP), (ETH + IP + UDP, BTH)))
    bth[1] = bth[1] & ~0x30 | pad << 4
    udp[4:6] = struct.pack(">H", UDP + BTH + len(msg) + pad + ICRC)
    ip[2:4] = struct.pack(">H", IP + UDP + BTH + len(msg) + pad + ICRC)
    ip[1] = SEEN
    packet = bytes(ip + udp + bth) + msg + bytes(pad)
    return frame[:ETH] + packet + icrc(packet)


class Liar:
    """For what comes in by the cards of a Host. Lies as long as `lies` is true; `told`: how many of each kind it has."""

    def __init__(self, t, host, seed):
        self.host = host
        self.rng = random.Random(seed)
        self.lies = False
        self.told = collections.Counter()
        self.known = collections.deque(maxlen=50)		# messages of the peer, most of which are good ones for some other moment
        self.ending = threading.Event()
        rxe.modprobe("tun")
        self.taps = [self._tap(f"{host.side}{i}") for i in host.pairs]
        host.divert("LLC", PREFIX)
        self.task = in_thread(self._run)
        t.later(self.end)

    def _tap(self, card):
        fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", f"{PREFIX}{card}".encode(), IFF_TAP | IFF_NO_PI))
        with open(f"/sys/class/net/{card}/address") as f:
            self.host.ip(f"link set {PREFIX}{card} address {f.read().strip()} up")
        return fd

    def end(self):
        """Packets go straight again; raises what went wrong here."""
        if self.ending.is_set():
            return
        self.host.lose_nothing()
        self.ending.set()
        try:
            self.task.result()
        finally:
            for fd in self.taps:
                os.close(fd)

    def _run(self):
        while not self.ending.is_set():
            for fd in select.select(self.taps, [], [], 0.1)[0]:
                frame = os.read(fd, 9000)
                if frame[12:14] == b"\x08\x00" and frame[ETH + 9] == 17:
                    os.write(fd, with_message(frame, self._message(frame)))

    def _message(self, frame):
        packet = frame[ETH:]
        size = struct.unpack(">H", packet[2:4])[0]
        body, pad = packet[:size - ICRC], packet[IP + UDP + 1] >> 4 & 3
        equal(packet[size - ICRC:size].hex(), icrc(body).hex(), "ICRC of a packet of Linux")
        msg = body[IP + UDP + BTH:len(body) - pad]
        self.known.append(msg)
        if not self.lies or self.rng.random() < 0.6:
            return msg
        name = self.rng.choice(sorted(LIES))
        self.told[name] += 1
        return LIES[name](self.rng, self.rng.choice(self.known) if name == "other" else msg)[:MOST]


def put(msg, at, *values):
    return msg[:at] + bytes(values) + msg[at + len(values):]


def length(rng, msg, n):
    """In one of the two orders of bytes; Linux has its host's."""
    return put(msg, 1, *n.to_bytes(2, rng.choice(["little", "little", "big"])))


def changed(rng, msg):
    """Not the keys of CONFIRM RKEY: a connection in an RMB that smcrd does not know is one for Linux only, and its kernel (6.12) then
    waits for ever in smc_cdc_wait_pend_tx_wr() when the group ends."""
    end = 5 if msg[0] == CONFIRM_RKEY else min(len(msg), 64)
    for _ in range(rng.randint(1, 3)):
        msg = put(msg, rng.randrange(3, end), rng.choice([*EDGES, rng.randrange(256)]))
    return msg


def longer(rng, msg):
    """With its own words again and again, or with noise; in the list's count as many, or more, or none."""
    size = rng.choice([45, 48, 100, 500, MOST])
    more = rng.randbytes(size) if rng.random() < 0.5 else msg[8:] * (size // max(1, len(msg) - 8) + 1)
    return length(rng, put((msg + more)[:size], 4, rng.choice(EDGES)), rng.choice([size, size, 44, 8192]))


def other(rng, msg):
    """Of another type, as a request or an answer, with the words of one that was."""
    msg = put(msg, 0, rng.choice(LLC_V2 if rng.random() < 0.8 else NOT_LLC_V2))
    return longer(rng, msg) if rng.random() < 0.5 else msg


LIES = {
    "changed": changed, "longer": longer, "other": other,
    "length": lambda rng, msg: length(rng, msg, rng.choice([0, 1, 43, 45, 1000, 8192, 8193, 65535])),
    "shorter": lambda rng, msg: msg[:rng.choice([1, 3, 4, 8, 29, 43])],
    "turned": lambda _, msg: put(msg, 3, msg[3] ^ REPLY),
    "again": lambda rng, msg: msg,
}
