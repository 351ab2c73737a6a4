#!/usr/bin/env python3
"""Local users at the control socket, with garbage, silence and haste: the data path and other clients are served."""
import contextlib
import os
import random
import socket
import time

from harness import case, check, equal, main, wait_until, PATIENCE, Skip, SHRINK
from hostile import MIB, Scene, ask

NOBODY = 65534
PLACES, KEPT, TRACES = 16, 2, 8	# of control_parts.h


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
    # One byte a second: other clients are answered all the time. It is let in once those that have closed are gone.
    def let_in():
        s = control(pair)
        try:
            s.sendall(b"{")
            time.sleep(0.05)
            s.sendall(b'"')
            return s
        except OSError:
            s.close()
    slow = wait_until(let_in, "a place at the control socket")
    for byte in b"co":
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


@contextlib.contextmanager
def as_nobody():
    """What is connected meanwhile is another user's, whom the daemon does not trust."""
    if os.geteuid() != 0:
        raise Skip("not root: there is no other user to be")
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def let_in(path):
    """Anybody may connect to the socket, as a group may to which its mode gives it."""
    os.chmod(path, 0o666)
    while (path := os.path.dirname(path)) not in ("/", "/tmp"):
        os.chmod(path, os.stat(path).st_mode | 0o011)


def nobodys(pair, cnt, says=b""):
    out = []
    with as_nobody():
        for _ in range(cnt):
            s = control(pair)
            with contextlib.suppress(OSError):	# turned away already
                s.sendall(says)
            out.append(s)
    return out


def ended(s):
    s.setblocking(False)
    try:
        while s.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


@case("another user at all places of the control socket: the operator finds one", timeout=90)
def _(t):
    scene = Scene(t)
    let_in(scene.b.control)
    idle = nobodys(scene.pair, PLACES + 4)
    wait_until(lambda: sum(map(ended, idle)) == KEPT + 4, "those that find no place are turned away")
    equal(ask(scene.b, "status")["draining"], False, "status for the operator beside them")
    for s in idle:
        s.close()
    scene.bound(scene.b, fds=20, rss=4 * MIB)
    scene.finish()


@case("another user's silent traces at all places but those that are kept: the oldest make room", timeout=90)
def _(t):
    scene = Scene(t)
    let_in(scene.b.control)
    trace = b'{"command": "trace", "group": 4711}\n'
    traces = nobodys(scene.pair, PLACES - KEPT, trace)
    wait_until(lambda: sum(map(ended, traces)) == PLACES - KEPT - TRACES, "the oldest traces end")
    idle = nobodys(scene.pair, PLACES - KEPT - TRACES)
    with as_nobody():
        equal(ask(scene.b, "status")["draining"], False, "status for another user")
    for s in traces + idle:
        s.close()
    scene.bound(scene.b, fds=20, rss=4 * MIB)
    scene.finish()


main()
