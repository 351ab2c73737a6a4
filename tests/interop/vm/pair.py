"""
In a guest of two that a wire joins, each with a kernel of its own: this machine's end of the wire, with an rxe device; calls
into the other machine; two daemons, one here and one there, of the same kind as Gates.

Side a is the machine that has the cases, side b executes calls (check_NAME_peer.py calls serve()).
The daemons have both directions, services "there" (clients in a, server in b) and "back" (clients in b, server in a).
"""
import json
import os
import select
import socket
import threading
import time

import rxe
from gates import Gates
from harness import (PATIENCE, Case, Daemon, Failure, Server, connect_to, echo, hostport, in_thread, recv_exact, same_bytes,
                     wait_until)

PEER_SHARE = os.path.join(rxe.SHARE, "peer")	# side a's view of what side b shares with the host
CALLS = (rxe.address("b", 1), 7001)


def address6(side):
    return f"2001:db8:78::{rxe.ENDS[side]}"


class End(rxe.Devices):
    """The device rx<side>1 on the interface <side>1, with an IPv4 and a global IPv6 address. Made by the first case."""

    pairs = (1,)

    def __init__(self, t, side):
        super().__init__(t)
        self.side, self.device = side, rxe.device(side, 1)
        if os.path.exists(f"/sys/class/net/{side}1"):
            return
        rxe.modprobe("virtio_net")
        wait_until(lambda: os.path.exists("/sys/class/net/eth0"), "the network card is there")
        self.ip(f"link set eth0 name {side}1", f"addr add {rxe.address(side, 1)}/24 dev {side}1",
                f"addr add {address6(side)}/64 dev {side}1 nodad", f"link set {side}1 up")
        self.plug(side, 1)
        self.active((side, 1))

    def received(self):
        """Packets of each version of IP so far, and of the device."""
        with open("/proc/net/snmp") as f:
            names, values = [x.split() for x in f if x.startswith("Ip:")]
        v4 = int(dict(zip(names, values))["InReceives"])
        with open("/proc/net/snmp6") as f:
            v6 = int(dict(x.split() for x in f)["Ip6InReceives"])
        return {"ipv4": v4, "ipv6": v6, "device": self.statistics(self.side, 1)["rcvd_pkts"]}


# -- traffic, of either side's clients --


def exchange(s, size):
    """Random bytes to an echo and back, in both directions at the same time."""
    data = os.urandom(size)
    writer = in_thread(s.sendall, data)
    same_bytes(recv_exact(s, size), data, "echo")
    writer.result()


class Clients:
    """Connections to one service: some that have said something and are silent now, some that always have bytes under way."""

    def __init__(self, t, host, port, silent, busy):
        self.ends = {}		# how each one ended
        self.count = silent + busy
        self.socks = []
        for _ in range(self.count):
            s = connect_to((host, port), 30)
            t.later(s.close)
            exchange(s, 10000)
            self.socks.append(s)
        for i, s in enumerate(self.socks):
            threading.Thread(target=self._run, args=(i, s, i >= silent), daemon=True).start()

    def _run(self, i, s, busy):
        try:
            s.settimeout(None)
            while busy:
                exchange(s, 100000)
            self.ends[i] = "data" if s.recv(1) else "end"
        except ConnectionResetError:
            self.ends[i] = "reset"
        except Exception as e:
            self.ends[i] = repr(e)

    def close(self):
        for s in self.socks:
            s.shutdown(socket.SHUT_RDWR)
            s.close()

    def outcomes(self):
        return [self.ends[i] for i in sorted(self.ends)]


# -- calls into the other machine --


class Served:
    """What side a may ask of side b: objects by name and their methods."""

    def __init__(self):
        self.t = Case("peer")
        self.objects = {"end": End(self.t, "b"), "peer": self}

    def reset(self):
        """Everything of a case goes."""
        for d in getattr(self.t, "daemons", []):
            print(f"-- log of {d.name}\n{d.log()}", flush=True)
        self.t.close()
        self.t = Case("peer")
        self.objects = {"end": End(self.t, "b"), "peer": self}

    def serve_echo(self):
        server = self.objects["server"] = Server(self.t, echo)
        return server.at

    def gateway(self, conf):
        self.objects["daemon"] = Daemon(self.t, "b", conf)
        return self.objects["daemon"].pid

    def clients(self, *args):
        self.objects["clients"] = Clients(self.t, *args)

    def exchange(self, host, port, size):
        with connect_to((host, port), 30) as s:
            exchange(s, size)

    def check_daemon(self):
        self.objects["daemon"].check_log()

    def answer(self, line):
        name, method, args, named = json.loads(line)
        try:
            return {"ok": getattr(self.objects[name], method)(*args, **named)}
        except Exception as e:
            return {"failure": f"{type(e).__name__}: {e}"}


def serve(served=None):
    """One call at a time, in the thread that everything is started from, until the host has had enough."""
    served = served or Served()
    with socket.create_server(CALLS) as listener:
        while not os.path.exists(os.path.join(rxe.SHARE, "end")):
            if not select.select([listener], [], [], 0.2)[0]:
                continue
            s, _ = listener.accept()
            with s, s.makefile("rw") as f:
                if line := f.readline():	# empty: a connect only
                    json.dump(served.answer(line), f)
    served.t.close()


class Far:
    """An object of the other machine: its methods, called there."""

    def __init__(self, of, **own):
        self._of = of
        self.__dict__.update(own)

    def __getattr__(self, method):
        def call(*args, **named):
            with connect_to(CALLS, 5) as s, s.makefile("rw") as f:
                s.settimeout(30 * PATIENCE)
                f.write(json.dumps([self._of, method, args, named]) + "\n")
                f.flush()
                answer = json.loads(f.readline() or '{"failure": "no answer"}')
            if "failure" in answer:
                raise Failure(f"in the other machine: {self._of}.{method}: {answer['failure']}")
            return answer["ok"]
        return call


class Other:
    """The other machine as a whole."""

    def __init__(self, t):
        self.t = t

    def wait(self, timeout=30):
        """Until it takes calls."""
        def answers():
            try:
                with connect_to(CALLS, 2):
                    return True
            except OSError:
                return False
        wait_until(answers, "the other machine takes calls", timeout)

    def _ask(self, what):
        path = os.path.join(PEER_SHARE, what)
        with open(f"{path}.new", "w"):
            pass
        os.rename(f"{path}.new", path)		# the host takes it away as soon as it sees it
        wait_until(lambda: not os.path.exists(path), f"the host has done: {what}", 30)

    def kill(self):
        """Its qemu is no more. Gives the time when it surely was not."""
        self._ask("kill")
        return time.monotonic()

    def boot(self):
        self._ask("boot")
        self.wait()


class Machines(Gates):
    """A daemon in each machine, and an echo server behind each."""

    def __init__(self, t, version=4, **smcr):
        self.t = t
        self.ends = {"a": End(t, "a"), "b": Far("end")}
        self.other = Other(t)
        self.other.wait()
        self.net = self.ends["a"]
        self.host = t.addr
        self.smcr = dict({"links_max": 1, "group_idle": "1s"}, **smcr)
        self.at = {s: rxe.address(s, 1) if version == 4 else address6(s) for s in "ab"}
        self.port = {"there": t.port(), "back": t.port()}
        self.middle = {"there": t.port(), "back": t.port()}
        self.server = Server(t, echo)
        t.later(Far("peer").reset)
        self.start_b()
        self.a = Daemon(t, "a", self._conf("a", "there", "back", self.server.at))
        self.a.net = self.ends["a"]
        self.both = (self.a, self.b)

    def _conf(self, side, out, into, server):
        other = rxe.other(side)
        return {"log_level": "info", "smcr": self.smcr,
                "devices": [{"type": "verbs", "address": self.at[side], "name": rxe.device(side, 1)}],
                "ingress": [{"name": out, "listen": hostport("127.0.0.1" if side == "b" else self.host, self.port[out]),
                             "to": hostport(self.at[other], self.middle[out])}],
                "egress": [{"name": into, "listen": hostport(self.at[side], self.middle[into]), "to": hostport(*server)}]}

    def start_b(self):
        server = Far("peer").serve_echo()
        pid = Far("peer").gateway(self._conf("b", "back", "there", server))
        self.b = Far("daemon", name="b", pid=pid, net=self.ends["b"])

    def exchange(self, name, size):
        """Bytes both ways between a client and a server, the client in a ("there") or in b ("back")."""
        if name == "there":
            with self.connect(name) as s:
                exchange(s, size)
        else:
            Far("peer").exchange("127.0.0.1", self.port[name], size)

    def clients(self, name, silent, busy):
        if name == "there":
            return Clients(self.t, self.host, self.port[name], silent, busy)
        Far("peer").clients("127.0.0.1", self.port[name], silent, busy)
        return Far("clients")

    def finish(self):
        self.server.ok()
        for d in self.both:
            self.all_free(d)
        self.no_resets()
        Far("peer").check_daemon()
        self.stop()
