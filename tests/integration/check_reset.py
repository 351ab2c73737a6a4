#!/usr/bin/env python3
"""RST through the pair both ways, dead servers, an absent peer, a peer daemon that is killed."""
from harness import (Pair, pair_to, Server, case, check, echo, equal, fill, in_thread, listener, main, outcome, pattern,
                     recv_exact, same_bytes, set_reset_on_close, wait_until, SHRINK)


def pair_with_ends(t, **kw):
    lsn = listener(t)
    pair = Pair(t, {"x": lsn.getsockname()[:2]}, **kw)
    client = pair.connect()
    server, _ = lsn.accept()
    server.settimeout(client.gettimeout())
    t.later(server.close)
    return pair, client, server


@case("client resets: the server sees a reset, not an end")
def _(t):
    pair, client, server = pair_with_ends(t)
    client.sendall(b"hello")
    same_bytes(recv_exact(server, 5), b"hello", "first bytes")
    set_reset_on_close(client)
    client.close()
    equal(outcome(server)[0], "reset", "at the server")
    pair.ended_well()


@case("server resets: the client sees a reset, not an end")
def _(t):
    pair, client, server = pair_with_ends(t)
    server.sendall(b"hello")
    same_bytes(recv_exact(client, 5), b"hello", "first bytes")
    set_reset_on_close(server)
    server.close()
    equal(outcome(client)[0], "reset", "at the client")
    pair.ended_well()


@case("reset during bulk data, by the sender and by the receiver, in both directions")
def _(t):
    block = pattern(1 << 20)
    lsn = listener(t)
    pair = Pair(t, {"x": lsn.getsockname()[:2]})

    def ends(client_sends):
        client = pair.connect()
        server, _ = lsn.accept()
        server.settimeout(client.gettimeout())
        return (client, server) if client_sends else (server, client)

    def send(s, blocks):
        try:
            for _ in range(blocks):
                s.sendall(block)
            set_reset_on_close(s)
            s.close()
            return "sent"
        except OSError as e:
            return type(e).__name__

    for client_sends in (True, False):
        what = "from the client" if client_sends else "from the server"
        a, b = ends(client_sends)
        task = in_thread(send, a, 20)
        kind, got = outcome(b)
        equal((kind, task.result()), ("reset", "sent"), f"{what}: the sender resets")
        same_bytes(got, (block * 20)[:len(got)], f"{what}: bytes before the reset")

        a, b = ends(client_sends)
        task = in_thread(send, a, 2000)
        same_bytes(recv_exact(b, 3 << 20), block * 3, f"{what}: the first bytes")
        set_reset_on_close(b)
        b.close()
        check(task.result() in ("ConnectionResetError", "BrokenPipeError"), f"{what}: {task.result()}")
        a.close()
    pair.ended_well(4)


@case("reset while the other side does not read and every buffer is full")
def _(t):
    pair, client, server = pair_with_ends(t)
    fill(client, server)
    set_reset_on_close(client)
    client.close()
    pair.quiet()
    equal(outcome(server)[0], "reset", "at the server")
    pair.only_smcr()


@case("many resets leave nothing behind",
      one_worker="descriptors are counted, and each worker makes link groups")
def _(t):
    pair = pair_to(t, echo)
    pair.connect().close()
    pair.quiet()
    before = [d.fds() for d in (pair.a, pair.b)]
    for i in range(300 // SHRINK):
        c = pair.connect()
        c.sendall(pattern(1000 + i))
        if i % 2:
            recv_exact(c, 500)
        set_reset_on_close(c)
        c.close()
    pair.quiet()
    wait_until(lambda: [d.fds() for d in (pair.a, pair.b)] <= before, f"descriptors go back to {before}")
    pair.only_smcr(100 // SHRINK)


@case("the server's port is closed: the client is reset, and connects work once it is open")
def _(t):
    port = t.port()
    pair = Pair(t, {"x": (t.addr, port)})
    for _ in range(5):
        check(pair.turned_away(), "at the client")
    equal(sum(s["refused_connect"] for s in pair.b.services()), 5, "counted as refused by the server")
    lsn = listener(t, port=port)
    c = pair.connect()
    s, _ = lsn.accept()
    c.sendall(b"now")
    same_bytes(recv_exact(s, 3), b"now", "at the server")
    c.close()
    s.close()


@case("the peer daemon is absent: the client is reset soon; connects work once it runs")
def _(t):
    pair = pair_to(t, echo, start=False)
    pair.a.start()
    for _ in range(3):
        check(pair.turned_away(), "at the client")
    pair.b.start()
    c = pair.connect()
    c.sendall(b"there")
    same_bytes(recv_exact(c, 5), b"there", "echo")
    pair.only_smcr()


@case("the peer daemon is killed: its connections are reset, new ones work after it is back")
def _(t):
    server = Server(t, echo)
    # A killed process sends FIN, so the ends of connections are believed only after a grace time.
    pair = Pair(t, {"x": server.at}, a={"smcr": {"fin_grace": "500ms"}}, b={"smcr": {"fin_grace": "500ms"}})
    for victim, other in ((pair.b, pair.a), (pair.a, pair.b)):
        socks = [pair.connect() for _ in range(20)]
        for i, c in enumerate(socks):
            c.sendall(pattern(5000, i))
            same_bytes(recv_exact(c, 5000), pattern(5000, i), "echo")
        pair.only_smcr()
        victim.kill()
        for c in socks:
            # The kernel closes a killed daemon's own sockets with FIN.
            want = "reset" if victim is pair.b else "end"
            equal(outcome(c), (want, b""), f"after {victim.name} was killed")
            c.close()
        wait_until(lambda: not other.connections(), f"daemon {other.name} has released all connections")
        victim.start()

        def works():
            try:
                c = pair.connect()
                c.sendall(b"again")
                return recv_exact(c, 5) == b"again"
            except ConnectionError:
                return False
        wait_until(works, "a new connection works")
        wait_until(lambda: pair.modes()[0] == 2, "and it is on SMC-R")


main()
