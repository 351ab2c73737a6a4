#!/usr/bin/env python3
"""Local users at the control socket, with garbage, silence and haste: the data path and other clients are served."""
import random
import socket
import time

from harness import case, check, equal, main, PATIENCE, SHRINK
from hostile import MIB, Scene, ask


def control(pair):
    s = socket.socket(socket.AF_UNIX)
    s.connect(pair.b.control)	# blocking: waits for a place in the backlog
    s.settimeout(20 * PATIENCE)
    return s


@case("the control socket: garbage, endless lines, slow and many clients", timeout=90)
def _(t):
    rnd = random.Random(1)
    scene = Scene(t)
    pair = scene.pair
    for data in (b"\n", b"{}\n", b"[" * 5000 + b"\n", b'{"command": "nonsense"}\n', b'{"command": 5}\n', b"\xff" * 100,
                 b'{"command": "status"', b'{"command": "status", "extra": [1,2,{"a":null}]}\n', b"x" * 1000000):
        s = control(pair)
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except OSError:
            pass
        s.close()
    for _ in range(200 // SHRINK):
        s = control(pair)
        try:
            s.sendall(rnd.randbytes(rnd.randrange(1, 3000)))
        except OSError:
            pass
        s.close()
    many = []
    for _ in range(300):
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        if s.connect_ex(pair.b.control) == 0:
            many.append(s)
    t.note(f"{len(many)} control clients at once")
    for s in many:
        s.close()
    # One byte a second: other clients are answered all the time.
    slow = control(pair)
    for byte in b'{"co':
        slow.sendall(bytes([byte]))
        equal(pair.b.status()["draining"], False, "status for somebody else")
        time.sleep(0.2)
    slow.close()
    # A client that asks and never reads.
    deaf = control(pair)
    deaf.setblocking(False)
    try:
        for _ in range(100000):
            deaf.send(b'{"command": "connections"}\n')
    except OSError:
        pass
    check(pair.b.status()["pid"] == pair.b.pid, "status for somebody else")
    deaf.close()
    scene.finish()


@case("traces that are silent for ever: whoever comes next is answered")
def _(t):
    scene = Scene(t)
    traces = []
    for _ in range(40):
        s = control(scene.pair)
        s.sendall(b'{"command": "trace", "group": 4711}\n')
        traces.append(s)
        equal(ask(scene.b, "status")["draining"], False, f"status beside {len(traces)} traces")
    for s in traces:
        s.close()
    scene.bound(scene.b, fds=20, rss=4 * MIB)
    scene.finish()


main()
