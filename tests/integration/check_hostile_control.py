#!/usr/bin/env python3
"""Local users at the control socket, with garbage, silence and haste: the data path and other clients are served."""
import contextlib
import os
import random
import socket
import time

from harness import case, check, connect_to, equal, main, wait_until, Skip, SHRINK
from hostile import MIB, Scene, ask

NOBODY = 65534
PLACES, KEPT, TRACES = 16, 2, 8	# of control_parts.h
SILENT_TRACE = b'{"command": "trace", "kinds": ["clc"]}\n'	# as long as there is no new connection
SILENT_FOLLOWER = b'{"command": "events", "follow": true, "kind": "circle"}\n'


READERS = 8


def control(pair, path=None):
    return connect_to(path or pair.b.control)


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
            time.sleep(0.05)	# raw: the pace of a slow client
            s.sendall(b'"')
            return s
        except OSError:
            s.close()
    slow = wait_until(let_in, "a place at the control socket")
    for byte in b"co":
        slow.sendall(bytes([byte]))
        equal(pair.b.status()["draining"], False, "status for another client")
        time.sleep(0.2)		# raw: the pace of a slow client
    slow.close()
    # A client that asks and never reads.
    deaf = control(pair)
    deaf.setblocking(False)
    try:
        for _ in range(100000):
            deaf.send(b'{"command": "connections"}\n')
    except OSError:
        pass
    check(pair.b.status()["pid"] == pair.b.pid, "status for another client")
    deaf.close()
    scene.finish()


@case("silent traces: the next client is answered")
def _(t):
    scene = Scene(t)
    traces = []
    for _ in range(40):
        s = control(scene.pair)
        s.sendall(SILENT_TRACE)
        traces.append(s)
        equal(ask(scene.b, "status")["draining"], False, f"status beside {len(traces)} traces")
    for s in traces:
        s.close()
    scene.bound(scene.b, fds=20, rss=4 * MIB)
    scene.finish()


@case("the read-only socket: garbage, orders, silence and more readers than places; other clients are served", timeout=90)
def _(t):
    rnd = random.Random(2)
    scene = Scene(t, control={"readonly": True, "readonly_mode": "0600"})
    pair, path = scene.pair, scene.b.readonly
    orders = ("close", "disable", "enable", "drain", "undrain", "reload", "rebalance", "link-add", "link-delete", "retry",
              "check", "trace")
    lines = [b"\n", b"[" * 5000 + b"\n", b"x" * 100000, b'{"command":"log_level","level":"debug"}\n',
             b'{"command":"close","id":1}\n', b'{"command":"close","service":"good"}\n', b'{"command":"disable","service":"good"}\n',
             b'{"command":"link-delete","group":1,"link":1}\n', b'{"command":"check","peer":"127.0.0.1:1"}\n',
             *(b'{"command":"%s"}\n' % o.encode() for o in orders), *(rnd.randbytes(rnd.randrange(1, 3000)) for _ in range(50))]
    for line in lines:
        s = control(pair, path)
        with contextlib.suppress(OSError):
            s.sendall(line)
            s.shutdown(socket.SHUT_WR)
            while part := s.recv(65536):
                check(b'"error":null' not in part, f"{line[:80]}: {part[:200]}")
        s.close()
    silent = []
    for _ in range(3 * READERS):
        s = control(pair, path)
        with contextlib.suppress(OSError):
            s.sendall(b'{"command":"connections"}\n' * 100)
        silent.append(s)
    # Places and time of the control socket are its own.
    for _ in range(20):
        equal(ask(scene.b, "status")["draining"], False, "status for an operator")
    with scene.watch[scene.b].asking:
        many = [control(pair) for _ in range(PLACES - 1)]
        equal(ask(scene.b, "status")["draining"], False, "status for an operator")
        for s in silent + many:
            s.close()
        status = ask(scene.b, "status")
    equal([s["disabled"] for s in status["services"]], [False], "disabled")
    check("asked for on the control socket" not in scene.b.log(), "nothing was ordered")
    scene.bound(scene.b, fds=20, rss=4 * MIB)
    scene.finish()


@case("orders on the control socket: every invalid one is an error, in rapid repetition")
def _(t):
    scene = Scene(t)
    pair = scene.pair
    wrong = (b'{"command":"close"}', b'{"command":"close","id":0}', b'{"command":"close","id":1e3}', b'{"command":"close","id":[1]}',
             b'{"command":"close","peer":"::::"}', b'{"command":"close","service":"%s"}' % (b"x" * 3000),
             b'{"command":"disable"}', b'{"command":"disable","service":"\\u0000"}', b'{"command":"enable","service":7}',
             b'{"command":"link-add","group":99999999999999}', b'{"command":"retry","peer":""}', b'{"command":"retry","peer":{}}',
             b'{"command":"log_level","level":""}', b'{"command":"log_level","level":"%s"}' % (b"y" * 3000), b'{"command":"top"}',
             b'{"command":"undrain","worker":1}', b'{"command":"undrain"}', b'{"command":"disable","service":"none"}',
             b'{"command":"link-add","group":4711}')
    s = control(pair)
    f = s.makefile("rb")
    for line in wrong:
        s.sendall(line + b"\n")
        answer = f.readline()
        check(b'"data":null' in answer, f"{line[:80]}: {answer[:200]}")
    for _ in range(300 // SHRINK):
        s.sendall(b'{"command":"close","id":9000000}\n{"command":"retry"}\n{"command":"log_level","level":"info"}\n')
        for _ in range(3):
            check(b'"error":null' in f.readline(), "harmless orders")
    s.close()
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


@case("another user at all places of the control socket: the operator gets one", timeout=90)
def _(t):
    scene = Scene(t)
    let_in(scene.b.control)
    with scene.watch[scene.b].asking:
        idle = nobodys(scene.pair, PLACES + 4)
        wait_until(lambda: sum(map(ended, idle)) == KEPT + 4, "those that find no place are turned away")
        equal(ask(scene.b, "status")["draining"], False, "status for the operator beside them")
    for s in idle:
        s.close()
    scene.bound(scene.b, fds=20, rss=4 * MIB)
    scene.finish()


@case("another user's silent followers at all unreserved places: the oldest yield", timeout=90)
def _(t):
    scene = Scene(t)
    let_in(scene.b.control)
    with scene.watch[scene.b].asking:
        traces = nobodys(scene.pair, PLACES - KEPT, SILENT_FOLLOWER)
        wait_until(lambda: sum(map(ended, traces)) == PLACES - KEPT - TRACES, "the oldest followers end")
        idle = nobodys(scene.pair, PLACES - KEPT - TRACES)
        with as_nobody():
            equal(ask(scene.b, "status")["draining"], False, "status for another user")
    for s in traces + idle:
        s.close()
    scene.bound(scene.b, fds=20, rss=4 * MIB)
    scene.finish()


main()
