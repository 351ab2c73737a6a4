"""A name server for tests: its records are a dictionary, and it can misbehave. UDP and TCP, on one address."""
import socket
import struct
import threading

from harness import PATIENCE

A, NS, CNAME, SOA, AAAA, SRV = 1, 2, 5, 6, 28, 33
NXDOMAIN, SERVFAIL, REFUSED = 3, 2, 5


def labels(name):
    return b"".join(bytes([len(x)]) + x.encode() for x in name.rstrip(".").split(".") if x) + b"\0"


def record(name, kind, ttl, data):
    return labels(name) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


def soa(zone, ttl, minimum):
    return record(zone, SOA, ttl, labels("ns." + zone) + labels("root." + zone) + struct.pack("!5I", 1, 2, 3, 4, minimum))


class Name:
    """What the server says of a name. a, aaaa: addresses; srv: (priority, weight, port, host). rcode: this instead.
    mode: "silent", "truncated" (over UDP), "garbage", "short", "other" (the answer to another question)."""

    def __init__(self, a=(), aaaa=(), srv=(), ttl=1, rcode=0, mode="", cname=None):
        self.a, self.aaaa, self.srv, self.ttl, self.rcode, self.mode, self.cname = a, aaaa, srv, ttl, rcode, mode, cname

    def answers(self, name, kind):
        if self.cname:
            yield record(name, CNAME, self.ttl, labels(self.cname))
        for addr in self.a if kind == A else ():
            yield record(name, A, self.ttl, socket.inet_aton(addr))
        for addr in self.aaaa if kind == AAAA else ():
            yield record(name, AAAA, self.ttl, socket.inet_pton(socket.AF_INET6, addr))
        for priority, weight, port, host in self.srv if kind == SRV else ():
            yield record(name, SRV, self.ttl, struct.pack("!3H", priority, weight, port) + labels(host))


class NameServer:
    def __init__(self, t, host="127.0.0.1", negative=1):
        self.names = {}		# name -> Name; a name that is not there does not exist
        self.negative = negative
        self.asked = []		# (name, kind, "udp" or "tcp")
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((host, 53))
        self.tcp = socket.socket()
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.bind((host, 53))
        self.tcp.listen(16)
        self.closing = False
        t.later(self.close)
        self.threads = [threading.Thread(target=fn, daemon=True) for fn in (self._serve_udp, self._serve_tcp)]
        for thread in self.threads:
            thread.start()

    def close(self):
        """The port is free afterwards: a thread that still waits for its socket would hold it."""
        self.closing = True
        for s in (self.udp, self.tcp):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join(10 * PATIENCE)
        self.udp.close()
        self.tcp.close()

    def count(self, name):
        return sum(x[0] == name for x in self.asked)

    def _answer(self, query, over):
        """None: no answer."""
        at, parts = 12, []
        while query[at]:
            parts.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        name = ".".join(parts).lower()
        kind = struct.unpack_from("!H", query, at + 1)[0]
        question = query[12:at + 5]
        self.asked.append((name, kind, over))
        entry = self.names.get(name)
        rcode = NXDOMAIN if entry is None else entry.rcode
        mode = entry.mode if entry else ""
        if mode == "silent":
            return None
        if mode == "garbage":
            return query[:2] + b"\x81\x80" + b"\xff" * 200
        if mode == "other":
            question = labels("stranger.test") + question[-4:]
        found = [] if entry is None or rcode else list(entry.answers(name, kind))
        truncated = mode == "truncated" and over == "udp"
        if truncated:
            found = found[:1]
        authority = [] if found else [soa("test", 3600, self.negative)]
        flags = 0x8180 | rcode | (0x0200 if truncated else 0)
        text = query[:2] + struct.pack("!5H", flags, 1, len(found), len(authority), 0) + question
        text += b"".join([*found, *authority])
        return text[:len(text) - 5] if mode == "short" else text

    def _serve_udp(self):
        while not self.closing:
            try:
                query, peer = self.udp.recvfrom(4096)
                text = self._answer(query, "udp") if len(query) > 12 else None
                if text is not None:
                    self.udp.sendto(text, peer)
            except OSError:
                if self.closing:
                    return

    def _serve_tcp(self):
        while not self.closing:
            try:
                s, _ = self.tcp.accept()
                with s:
                    s.settimeout(20 * PATIENCE)
                    while True:
                        head = s.recv(2, socket.MSG_WAITALL)
                        if len(head) < 2:
                            break
                        text = self._answer(s.recv(struct.unpack("!H", head)[0], socket.MSG_WAITALL), "tcp")
                        if text is None:
                            break
                        # In pieces, as a network may have it.
                        text = struct.pack("!H", len(text)) + text
                        s.sendall(text[:3])
                        s.sendall(text[3:])
            except OSError:
                if self.closing:
                    return
