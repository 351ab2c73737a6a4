#!/usr/bin/env python3
"""Strangers: garbage, truncated and slow input on every port, peers that stop at each step of the rendezvous. A
connection that was there before is served all the time, and afterwards nothing is left behind."""
import os
import random
import socket
import struct
import threading
import time

import clc
from harness import (Daemon, Failure, Server, case, check, connect_to, equal, hostport, in_thread, listener, main,
                     pattern, recv_exact, set_reset_on_close, wait_until, PATIENCE, SHRINK)
from hostile import Scene

QUICK = {"smcr": {"clc_timeout": "500ms", "llc_timeout": "500ms", "confirm_link_timeout": "500ms",
                  "fin_grace": "200ms", "hold_off": "10ms", "hold_off_max": "1s",
                  "open_over_link": False}}	# each connection has a CLC connection to attack


def garbage(rnd):
    kind = rnd.randrange(6)
    n = rnd.choice((1, 3, 7, 8, 19, 20, 28, 100, 5000))
    if kind == 0:
        return rnd.randbytes(n)
    if kind == 1:
        return clc.EYE + rnd.randbytes(n)
    if kind == 2:		# a Proposal with some bytes turned
        msg = bytearray(clc.proposal())
        for _ in range(rnd.randrange(1, 4)):
            msg[rnd.randrange(4, len(msg))] = rnd.randrange(256)
        return bytes(msg)
    if kind == 3:
        return clc.proposal()[:rnd.randrange(92)]
    if kind == 4:
        return (b"MPA ID Req Frame" + rnd.randbytes(4) + rnd.randbytes(n))[:rnd.randrange(4, 40 + n)]
    return b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def throw(at, data, rnd):
    """Connects, sends, perhaps reads a little, goes away in one of three ways."""
    try:
        with connect_to(at, 5) as s:
            s.settimeout(0.05)
            s.sendall(data)
            if rnd.random() < 0.5:
                try:
                    s.recv(1000)
                except TimeoutError:
                    pass
            way = rnd.randrange(3)
            if way == 0:
                set_reset_on_close(s)
            elif way == 1:
                s.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@case("garbage of many kinds on the SMC port and both MPA ports", timeout=90, one_worker="link groups are counted")
def _(t):
    seed = int.from_bytes(os.urandom(4), "big")
    t.note(f"seed {seed}")
    rnd = random.Random(seed)
    scene = Scene(t)
    ports = [scene.pair.middle["good"], *scene.mpa_ports()]
    for _ in range(600 // SHRINK):
        throw((t.addr, rnd.choice(ports)), garbage(rnd), rnd)
    # Clients of the ingress that come and go while their connection is being made.
    for i in range(200 // SHRINK):
        throw((t.addr, scene.pair.port["good"]), pattern(i), rnd)
    scene.finish()


@case("slow and silent strangers on every port are closed in bounded time", timeout=90)
def _(t):
    scene = Scene(t, smcr={"mpa_clients": ["127.0.0.0/8"]})  # else their MPA ports close at once
    ports = {"SMC": scene.pair.middle["good"]}
    ports["MPA of a"], ports["MPA of b"] = scene.mpa_ports()
    silent, slow = {}, {}
    for name, port in ports.items():
        silent[name] = [connect_to((t.addr, port), 5) for _ in range(50)]
        slow[name] = connect_to((t.addr, port), 5)
    script = {"SMC": clc.proposal(), "MPA of a": b"MPA ID Req Frame" + bytes(4), "MPA of b": b"MPA ID Req Frame\x10\2"}

    def drip(name):
        """A byte a second; how long it was let, and was it cut off before all was said?"""
        start = time.monotonic()
        s = slow[name]
        s.settimeout(1)		# raw: the pace
        try:
            for byte in script[name]:
                s.sendall(bytes([byte]))
                try:
                    if s.recv(100) == b"":
                        return time.monotonic() - start, True
                except TimeoutError:
                    pass
        except OSError:
            return time.monotonic() - start, True
        return time.monotonic() - start, False
    drips = {name: in_thread(drip, name) for name in ports}
    for name, socks in silent.items():
        for s in socks:
            s.settimeout(15 * PATIENCE)
            try:
                left = s.recv(100)
            except ConnectionResetError:
                left = b""
            except TimeoutError:
                raise Failure(f"a silent stranger on the {name} port is still connected") from None
            check(left == b"" or left[:4] == clc.EYE, f"on the {name} port: {left}")
            s.close()
    for name, task in drips.items():
        took, cut = task.result(80)
        t.note(f"a byte a second on the {name} port: cut off after {took:.1f} s")
        check(cut and took < 8 * PATIENCE, f"a byte a second on the {name} port was let for {took:.1f} s")
        slow[name].close()
    scene.finish()


class Relay:
    """Stands between the ingress and the egress on the middle; passes on `limit` bytes of one direction, then stops,
    resets or ends, whatever `how` says."""

    def __init__(self, t, to):
        self.sock = listener(t)
        self.at = self.sock.getsockname()[:2]
        self.sock.settimeout(None)
        self.to = to
        self.limit = {"up": None, "down": None}
        self.how = "stop"
        self.patch = None	# changes the bytes that come down
        self.open = []
        self.count = 0		# connections so far
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                near, _ = self.sock.accept()
                far = connect_to(self.to, 5)
            except OSError:
                return
            self.open += [near, far]
            self.count += 1
            for src, dst, name in ((near, far, "up"), (far, near, "down")):
                args = (src, dst, name, self.limit[name], self.how)
                threading.Thread(target=self.pump, args=args, daemon=True).start()

    def pump(self, src, dst, name, limit, how):
        left = limit
        try:
            while left is None or left > 0:
                data = src.recv(65536 if left is None else left)
                if not data:
                    dst.shutdown(socket.SHUT_WR)
                    return
                dst.sendall(self.patch(data) if self.patch and name == "down" else data)
                if left is not None:
                    left -= len(data)
            if how == "stop":
                while src.recv(65536):
                    pass
            if how == "reset":
                raise ConnectionResetError
            dst.shutdown(socket.SHUT_WR)
        except OSError:
            # The end of the whole connection always comes through.
            self.drop((src, dst))

    def close(self):
        self.drop(self.open)
        self.open = []

    @staticmethod
    def drop(socks):
        for s in socks:
            try:
                set_reset_on_close(s)
                s.shutdown(socket.SHUT_RDWR)	# wakes the thread that reads it
            except OSError:
                pass
            s.close()


class Client:
    """A third daemon whose way to b leads through a relay."""

    def __init__(self, t, relay):
        self.at = (t.addr, t.port())
        self.daemon = Daemon(t, "c", {"log_level": "info", "devices": [{"type": "siw", "address": t.addr,
                                                   "connect_timeout": "500ms", "answer_timeout": "1s"}], **QUICK,
                                      "ingress": [{"name": "r", "listen": hostport(*self.at),
                                                   "to": hostport(*relay.at)}]})

    def again(self):
        """Nothing is left of what it knew: its next connection is a first contact."""
        self.daemon.stop()
        self.daemon.start()

    def attempt(self):
        """True when an echo came back, False when the client was turned away; never a client left waiting."""
        try:
            with connect_to(self.at, 30) as s:
                s.sendall(b"0123456789")
                return recv_exact(s, 10) == b"0123456789"
        except ConnectionError:
            return False


def harm(t, relay, client, lengths, before_each=lambda: None):
    """Every way to cut the relay's connections; each attempt of the client ends in time, the next one after the harm
    works."""
    def attempt():
        """One that comes to the relay: after failures the peer is held off for a while, and clients go by TCP."""
        before, results = relay.count, []

        def came():
            results.append(client.attempt())
            return relay.count > before
        wait_until(came, "an attempt comes to the relay", 10)
        return results[-1]
    results = {}
    for way in ("up", "down"):
        for how in ("stop", "end", "reset"):
            for limit in lengths[::1 if SHRINK == 1 else 4]:
                relay.limit = {"up": None, "down": None, way: limit}
                relay.how = how
                what = f"{way} {how} {limit}"
                before_each()
                try:
                    results[what] = attempt()
                except TimeoutError:
                    raise Failure(f"{what}: the client is left waiting") from None
                relay.close()
    relay.limit = {"up": None, "down": None}
    t.note(f"{sum(results.values())} of {len(results)} attempts were served all the same")
    wait_until(client.attempt, "after the harm it works again")
    wait_until(lambda: not client.daemon.connections(), "daemon c has no connections left", 30)


@case("the CLC connection stops, ends or breaks after each CLC step, in both roles", timeout=240, one_worker="link groups are counted")
def _(t):
    scene = Scene(t)
    relay = Relay(t, (t.addr, scene.pair.middle["good"]))
    client = Client(t, relay)
    wait_until(client.attempt, "without any harm it works")
    harm(t, relay, client, [0, 1, 4, 7, 8, 9, 40, 60, 91, 92, 93, 95, 96, 97, 120, 150, 187, 188, 189, 220])
    before = scene.pair.b.counters()["first_contacts"]
    harm(t, relay, client, [1, 40, 92, 97, 150, 188, 220], client.again)
    check(scene.pair.b.counters()["first_contacts"] > before + 5, "first contacts were cut, too")
    scene.finish(groups=1)


@case("the MPA connection stops, ends or breaks after each step, in both roles", timeout=240)
def _(t):
    scene = Scene(t)
    mpa = Relay(t, (t.addr, scene.mpa_ports()[1]))
    middle = Relay(t, (t.addr, scene.pair.middle["good"]))

    def patch(data):
        """Puts the relay's port for MPA into the Accept; see struct clc_smcrd_ext."""
        at = data.find(b"smrd")
        if at < 0 or data[4] != clc.ACCEPT:
            return data
        return data[:at + 8] + struct.pack(">H", mpa.at[1]) + data[at + 10:]
    middle.patch = patch
    client = Client(t, middle)
    wait_until(lambda: client.attempt() and mpa.open, "without any harm it works, and the MPA connection goes through the relay")
    mpa.close()
    harm(t, mpa, client, [0, 1, 19, 20, 24, 50, 64, 100, 140, 200, 300])
    scene.finish(groups=1)


@case("MPA requests truncated at every length, and whole ones with an unknown token", timeout=60)
def _(t):
    scene = Scene(t, smcr={"mpa_clients": ["127.0.0.0/8"]})
    request = b"MPA ID Req Frame" + struct.pack(">BBHHH", 0x50, 2, 4 + 20, 0xc001, 0xc001) + bytes(20)
    for port in scene.mpa_ports():
        socks = []
        for n in range(len(request) + 1):
            s = connect_to((t.addr, port), 15)
            s.sendall(request[:n])
            socks.append(s)
        for n, s in enumerate(socks):
            try:
                answer = s.recv(1000)
                check(answer == b"" or (answer[:16] == b"MPA ID Rep Frame" and answer[16] & 0x20),
                      f"cut at {n}: closed or rejected, not {answer}")
            except ConnectionResetError:
                pass
            s.close()
    scene.finish()


@case("peers that accept and then send nothing, half an Accept, or garbage: the client's wait is bounded",
      timeout=90)
def _(t):
    def silent(s):
        clc.read_message(s)
        s.recv(100)

    def half(s):
        clc.read_message(s)
        s.sendall(clc.EYE + struct.pack(">BHB", clc.ACCEPT, 68, 0x18) + bytes(10))
        s.recv(100)

    def nonsense(s):
        clc.read_message(s)
        s.sendall(b"220 mail.example.org ESMTP\r\n")
        s.recv(100)

    def linux_accept(s):
        """An Accept for RoCE: no link can be made to it."""
        clc.read_message(s)
        s.sendall(clc.EYE + struct.pack(">BHB", clc.ACCEPT, 68, 0x18) + clc.PEER_ID + bytes(16) + bytes(6)
                  + bytes.fromhex("000019") + bytes.fromhex("00001544") + b"\1" + bytes.fromhex("00000001") + b"\x23\0"
                  + bytes(8) + b"\0" + bytes.fromhex("1a90df") + clc.EYE)
        try:
            s.recv(100)
        except ConnectionResetError:
            pass

    for what, serve in (("silent", silent), ("half", half), ("nonsense", nonsense), ("RoCE", linux_accept)):
        peer = Server(t, serve)
        port = t.port()
        d = Daemon(t, f"a-{what}", {"log_level": "info", "devices": [{"type": "siw", "address": t.addr}], **QUICK,
                                    "ingress": [{"name": "x", "listen": hostport(t.addr, port),
                                                 "to": hostport(*peer.at), "fallback": "refuse"}]})
        start = time.monotonic()
        try:
            s = connect_to((t.addr, port), 20)
            equal(s.recv(100), b"", f"{what}: at the client")
        except ConnectionResetError:  # which connect() may bring already
            pass
        took = time.monotonic() - start
        t.note(f"{what}: the client was reset after {took:.1f} s")
        check(took < 8 * PATIENCE, f"{what}: after {took:.1f} s")
        wait_until(lambda d=d: not d.connections(), f"{what}: nothing left")


main()
