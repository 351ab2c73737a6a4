"""Ways from client to server: directly, and through pairs of daemons that serve many conversations at a time. Each way belongs to
one conversation at a time, so the connection that comes out is the one that went in."""
import os
import socket

from harness import Pair, Skip, connect_to, in_tls, unlinkable_pair, wait_until


IP_TRANSPARENT = 19
SOURCE = "127.0.0.77"	# of clients of transparent ways, and of no gateway


def need_source():
    with socket.socket() as s:
        try:
            s.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
        except PermissionError:
            raise Skip("no right to connect by foreign addresses") from None


class Way:
    def __init__(self, t, unix, behind, address=None, make=None, source=None):
        """behind: where the server listens, on a socket that make() gives; address: where clients connect to, there without one;
        source: the address of clients, which the server has to see."""
        self.unix = unix
        self.make = make or (lambda: socket.socket(self.family, socket.SOCK_STREAM))
        self.family = socket.AF_UNIX if unix else socket.AF_INET
        self.behind = behind
        self.address = address or behind
        self.source = source
        self.tiny = None
        self.listener = None
        self.listen()
        t.later(self.unlisten)

    def listen(self):
        s = self.make()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self.tiny:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.tiny)
        if self.unix and os.path.exists(self.behind):
            os.unlink(self.behind)
        s.bind(self.behind)
        if self.unix:
            os.chmod(self.behind, 0o777)
        s.listen(64)
        s.setblocking(False)
        self.listener = s

    def unlisten(self):
        if self.listener is not None:
            self.listener.close()
        self.listener = None

    def accepts(self):
        """Has a connection come? It is closed."""
        try:
            self.listener.accept()[0].close()
            return True
        except BlockingIOError:
            return False

    def warm(self):
        """The service is reached by a rendezvous, so that connections to come open over the link."""
        with connect_to(self.address, source=self.source):
            wait_until(self.accepts, "it came to the server", 20)

    def begin(self, tiny):
        """Nothing of an earlier conversation is left; connections that come have a receive buffer of that size."""
        if tiny != self.tiny:
            self.unlisten()
            self.tiny = tiny
            self.listen()
        while self.accepts():
            pass


def direct(t, unix, count):
    return [Way(t, unix, t.socket_path("direct") if unix else (t.addr, t.port())) for _ in range(count)]


def through(t, mode, unix, count, local=None):
    """A pair of daemons, which is returned, and so many ways through it. local: TCP's ingresses listen on UNIX sockets of their
    addresses in this directory as well, for libsmcrd-local.so."""
    behind = [t.socket_path("server") if unix else (t.addr, t.port()) for _ in range(count)]
    servers = {f"x{i}": (f"unix:{b}", 0) if unix else b for i, b in enumerate(behind)}
    make = unlinkable_pair if "fallback" in mode else Pair
    source, more = None, {}
    if "transparent" in mode:
        need_source()
        source = SOURCE
        more = {"ingress": {"forward_client": "required"}, "egress": {"client_address": "connect", "clients": [SOURCE]}}
    conf = {"log_level": "notice", "smcr": {"open_over_link": "open" in mode}}
    pair = make(t, servers, unix=unix, a=conf, b=conf, start=False, **more)
    if local:
        pair.listen_local(local)
    for d in (pair.b, pair.a):
        if "tls" in mode:
            d.write_conf(in_tls(t, d.conf, "required"))
        d.start()
    at = [pair.path[name] if unix else (pair.host, pair.port[name]) for name in servers]
    return pair, [Way(t, unix, b, a, source=source) for a, b in zip(at, behind)]
