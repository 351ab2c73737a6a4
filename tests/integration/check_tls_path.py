#!/usr/bin/env python3
"""An attacker on the path between two gateways with secure = "required": it changes, drops, repeats, replays, reflects, cuts and forges.
A program's stream is whole up to where it ends, the daemons go on, and no byte of a program's is on the path in clear."""
import contextlib
import functools
import secrets
import socket
import threading

from capture import Capture
from clc import decline, proposal
from harness import Server, Skip, case, check, connect_to, equal, hostport, main, need, outcome, set_reset_on_close, wait_until, works
from tls_files import Authority, psk_file, secure_pair

MARK = b"the marker of a program's data, again and again; "
DATA = MARK * 400
CHANGE_CIPHER_SPEC = 20


class Path:
    """A relay whose next connection has this attack; all bytes that come are kept."""

    def __init__(self, t):
        self.to = self.attack = self.met = None
        self.seen = {"up": bytearray(), "down": bytearray()}
        self.at = Server(t, self._serve, unix=False).at

    def _serve(self, s):
        self.met = self.attack
        try:
            (self.met or forward)(self, s)
        except OSError:
            pass

    def has(self, text):
        return text in self.seen["up"] or text in self.seen["down"]


def unchanged(_, record):
    return [record]


def forward(path, s, hook=unchanged):
    """By records; hook(way, record) gives those to send, or None: a reset of both ends."""
    up = connect_to(path.to, 20)
    ways = [threading.Thread(target=move, args=(path, way, a, b, hook), daemon=True) for way, a, b in (("up", s, up), ("down", up, s))]
    for w in ways:
        w.start()
    for w in ways:
        w.join()
    up.close()


def move(path, way, a, b, hook):
    have = bytearray()
    try:
        while part := a.recv(65536):
            path.seen[way] += part
            have += part
            while len(have) >= 5 and len(have) >= (n := 5 + int.from_bytes(have[3:5], "big")):
                out = hook(way, bytes(have[:n]))
                del have[:n]
                if out is None:
                    for s in (a, b):
                        set_reset_on_close(s)
                        s.shutdown(socket.SHUT_RDWR)
                    return
                for record in out:
                    b.sendall(record)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def at_record(where, number, do):
    """The attack does this to one record of a direction, and nothing to others."""
    def attack(path, s):
        seen, lock = {"up": 0, "down": 0}, threading.Lock()

        def hook(way, record):
            with lock:
                seen[way] += 1
                return do(record) if (way, seen[way]) == (where, number) else [record]
        forward(path, s, hook)
    return attack


def cut(where, at, how):
    """The direction ends behind so many bytes, by FIN or RST."""
    def attack(path, s):
        up = connect_to(path.to, 20)
        a, b = (s, up) if where == "up" else (up, s)
        done, back = 0, "down" if where == "up" else "up"
        threading.Thread(target=move, args=(path, back, b, a, unchanged), daemon=True).start()
        with contextlib.suppress(OSError):	# a gateway has reset it before
            while done < at and (part := a.recv(at - done)):
                path.seen[where] += part
                done += len(part)
                b.sendall(part)
        for end in (a, b):
            if how == "reset":
                set_reset_on_close(end)
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)	# the other thread reads it: close() alone would not end it
        up.close()
    return attack


def answers(text):
    """The client's hello is answered by this; the server sees nothing."""
    def attack(path, s):
        path.seen["up"] += s.recv(65536)
        s.sendall(text)
        path.seen["up"] += s.recv(65536)
    return attack


def says(text):
    """The server gets this in place of the client's hello, and the client what it answers."""
    def attack(path, s):
        path.seen["up"] += s.recv(65536)
        with connect_to(path.to, 20) as up:
            up.sendall(text)
            while part := up.recv(65536):
                path.seen["down"] += part
                s.sendall(part)
    return attack


def reflect(path, s):
    while part := s.recv(65536):
        path.seen["up"] += part
        s.sendall(part)


def reflect_by_another(path, s):
    """The client's hello as that of a connection to a third party comes back as a server's first bytes, record by record."""
    first = s.recv(65536)
    path.seen["up"] += first
    s.sendall(first[:3] + first[3:5] + b"\x02" + first[6:])


def flip(at):
    return lambda record: [bytes(x ^ 0x40 * (i == at % len(record)) for i, x in enumerate(record))]


def attacks(records):
    """Name, attack; of so many records each way."""
    for where in ("up", "down"):
        for number in range(1, records + 1):
            yield f"{where}: record {number} is dropped", at_record(where, number, lambda r: [])
            yield f"{where}: record {number} comes twice", at_record(where, number, lambda r: [r, r])
            yield f"{where}: record {number} in clear", at_record(where, number, lambda r: [decline(), r])
            for at in (0, 1, 4, 5, -1):
                yield f"{where}: byte {at} of record {number} is changed", at_record(where, number, flip(at))
            yield f"{where}: a reset at record {number}", at_record(where, number, lambda r: None)
        for at in (0, 1, 5, 6, 9, 43, 127, 500, 1000, 3000):
            for how in ("end", "reset"):
                yield f"{where}: {how} behind byte {at}", cut(where, at, how)
    yield "a Decline in clear", answers(decline())
    yield "an alert in clear", answers(b"\x15\x03\x03\x00\x02\x02\x28")
    yield "HTTP", answers(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    yield "a Proposal in clear", says(proposal())
    yield "the hello comes back", reflect
    yield "the hello comes back as a ServerHello", reflect_by_another


class Programs:
    """A server that answers what it gets, and remembers it."""

    def __init__(self):
        self.got = []

    def __call__(self, s):
        mine = bytearray()
        self.got.append(mine)
        try:
            while part := s.recv(65536):
                mine += part
                s.sendall(part)
        except OSError:
            pass


def attack_all(t, records, a, b, a_names, b_names, ingress=None, egress=None, **kw):
    """The programs' own connections are at another address than those between the gateways, which are captured."""
    capture, legs = None, "127.79" + t.addr[6:]
    try:
        capture = Capture(t)
    except Skip as e:
        t.note(f"without a capture: {e}")
    path, programs = Path(t), Programs()
    server, at = Server(t, programs, host=legs), (legs, t.port())
    pair = secure_pair(t, programs, a, b, a_names, b_names, relay=path, ingress={"listen": hostport(*at), **(ingress or {})},
                       egress={"to": hostport(*server.at), **(egress or {})}, **kw)

    def talk():
        with connect_to(at) as c:
            try:
                c.sendall(DATA)
                c.shutdown(socket.SHUT_WR)
            except OSError:		# which tells of a reset, and nothing does so twice
                return "reset", b""
            return outcome(c)

    def wait_for_silence(limit):
        for d, conf in ((pair.a, pair.conf_a), (pair.b, pair.conf_b)):
            d.write_conf({**conf, "smcr": {**conf["smcr"], "clc_timeout": limit}})
            d.ctl("reload")
    equal(talk(), ("end", DATA), "without an attack")
    (pair.only_smcr if kw.get("links", True) else pair.only_tcp)()
    recorded = {way: bytes(path.seen[way]) for way in ("up", "down")}
    ends = {"end": 0, "reset": 0}
    wait_for_silence("300ms")
    more = [("the client's bytes of before", says(recorded["up"])), ("the server's bytes of before", answers(recorded["down"]))]
    for name, attack in [*attacks(records), *more]:
        path.attack = attack
        how, back = talk()
        wait_until(lambda: path.met is attack, f"{name}: a connection that meets it")
        ends[how] += 1
        check(back == DATA if how == "end" else DATA.startswith(back), f"{name}: {how} with {len(back)} bytes, not those that were sent")
    path.attack = None
    wait_for_silence("6s")
    t.note(f"connections that were whole: {ends['end']}; that were reset: {ends['reset']}")
    check(ends["reset"] > 40 and len(programs.got) > 0, f"attacks had effects: {ends}")
    for got in programs.got:
        check(DATA.startswith(bytes(got)), f"a server got {len(got)} bytes that are no beginning of the client's")
    with connect_to(at) as c:
        works(c)
    pair.quiet()
    check(not path.has(MARK), "the marker on the path in clear")
    if capture:
        capture.finish()
        with open(capture.file, "rb") as f:
            wire = f.read()
        check(len(wire) > len(DATA) and MARK not in wire, f"the marker in a capture of {len(wire)} bytes")


@case("TCP in TLS, certificates: each attack ends a stream or has no effect", timeout=120)
def _(t):
    ca = Authority(t)
    attack_all(t, 5, ca.issue("a"), ca.issue("b"), ["spiffe://example.org/gw/b"], ["spiffe://example.org/gw/a"], links=False)


@case("links in TLS, a PSK, no fallback: each attack on the CLC connection ends a stream or has no effect", timeout=120)
def _(t):
    key = secrets.token_bytes(32)
    attack_all(t, 2, psk_file(t, "gw-a", {"gw-b": key}), psk_file(t, "gw-b", {"gw-a": key}), ["psk:gw-b"], ["psk:gw-a"],
               ingress={"fallback": "refuse"}, egress={"fallback": "refuse"})


if __name__ == "__main__":
    need("openssl")
    main()
