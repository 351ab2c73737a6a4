"""
In the guest: soft RoCE devices (rdma_rxe), most of them in pairs joined by a wire within this machine. Pair i has the devices rxa<i> and rxb<i> on the
interfaces a<i> and b<i>, the ends of a veth pair, with the addresses 10.78.<i>.1 and 10.78.<i>.2 of one subnet.

rxe knows no network namespaces, and Linux never sends traffic between two of its own addresses over a wire. So both ends
stay in one namespace, and rules send what goes from one end of a pair to the other over the wire: reports of
comes before the table of local addresses, which is asked first only for what came in by an interface.
"""
import json
import os
import socket

from harness import Failure, need, shorten, wait_until

ENDS = {"a": 1, "b": 2}
SHARE = os.environ["SMCRD_VM_SHARE"]		# the directory that the host sees
# Addresses for what is to outlive every wire: the TCP connections below SMC-R, the servers.
ADDR_A, ADDR_B = "10.77.100.1", "10.77.100.2"


def modprobe(*names):
    for name in names:
        status = os.spawnv(os.P_WAIT, "/run/modprobe", ["modprobe", name])
        if status != 0:
            raise Failure(f"modprobe {name}: status {status}")


def sysctl(path, value):
    with open(f"/proc/sys/{path}", "w") as f:
        f.write(str(value))


def address(side, i):
    return f"10.78.{i}.{ENDS[side]}"


def other(side):
    return "b" if side == "a" else "a"


def settles(fn, want, what, timeout=10.0):
    """Waits until fn() gives `want`; a failure says what it gave last."""
    got = [None]

    def is_so():
        got[0] = fn()
        return got[0] == want
    try:
        wait_until(is_so, what, timeout)
    except Failure as e:
        raise Failure(f"{e}: got {shorten(got[0])}, want {shorten(want)}") from None


def rdma(t, *words):
    """`rdma` of iproute2; lists come as data."""
    out = t.run([need("rdma"), "-j", *words]).decode()
    return json.loads(out) if out.strip() else []


def verbs_devices(name):
    """The nodes by which programs open a device: none when it is gone, or about to go."""
    top, found = "/sys/class/infiniband_verbs", []
    for node in os.listdir(top):
        try:
            with open(f"{top}/{node}/ibdev") as f:
                if f.read().strip() == name:
                    found.append(node)
        except OSError:
            pass
    return found


def device(side, i):
    return f"rx{side}{i}"


class Devices:
    """rxe devices and what the kernel knows of them; rx<side><i> is on the interface <side><i>."""

    TYPE, MODULES = "rxe", ("ib_uverbs", "rdma_ucm", "rdma_rxe")

    def __init__(self, t):
        self.t = t
        modprobe(*self.MODULES)

    @staticmethod
    def name(side, i):
        return device(side, i)

    def ip(self, *lines, force=False):
        self.t.run([need("ip"), *(["-force"] if force else []), "-batch", "-"],
                   input="".join(f"{x}\n" for x in lines).encode(), status=None if force else 0)

    def plug(self, side, i):
        self.t.run([need("rdma"), "link", "add", self.name(side, i), "type", self.TYPE, "netdev", f"{side}{i}"])

    def unplug(self, side, i, force=False):
        """The device is removed, in use or not."""
        self.t.run([need("rdma"), "link", "del", self.name(side, i)], status=None if force else 0)

    def active(self, *ends):
        """Waits for devices whose ports are up."""
        want = {self.name(*e) for e in ends}

        def there():
            return want <= {x["ifname"] for x in rdma(self.t, "link", "show") if x["state"] == "ACTIVE"}
        wait_until(there, f"ports of {', '.join(sorted(want))} are active", 10)

    @staticmethod
    def threads(pid):
        """Of a process that runs: the kernel says of an object which of them has made it."""
        return {int(tid) for tid in os.listdir(f"/proc/{pid}/task")}

    def resources(self, kind, pid=None, threads=None):
        """Queue pairs (qp), memory regions (mr), completion queues (cq), protection domains (pd) of a process that runs, of
        threads, or of all programs: not those of the kernel itself, which has a name there, and no number."""
        if pid is not None:
            threads = self.threads(pid)
        return [x for x in rdma(self.t, "resource", "show", kind) if "pid" in x and (threads is None or x["pid"] in threads)]

    def let_go(self, *kinds, pid=None, threads=None, who="", timeout=10):
        """Waits until the kernel has no object of these kinds. What a program gave back, or had when it ended, is
        destroyed by threads, which wait for packets that are under way."""
        for kind in kinds:
            settles(lambda kind=kind: self.resources(kind, pid, threads), [], f"{kind} left in the kernel{who}", timeout)

    def statistics(self, side, i):
        """The device's own counters by name."""
        for x in rdma(self.t, "statistic", "show", "link", f"{self.name(side, i)}/1"):
            return x
        raise Failure(f"no statistics of {self.name(side, i)}")


class Wires(Devices):
    """Pairs joined by wires."""

    def __init__(self, t, pairs=1):
        super().__init__(t)
        self.pairs = range(1, pairs + 1)
        modprobe("veth")
        for name, value in (("all/rp_filter", 0), ("default/rp_filter", 0), ("all/arp_ignore", 1), ("all/arp_announce", 2),
                            ("default/accept_local", 1)):
            sysctl(f"net/ipv4/conf/{name}", value)
        lines = ["rule add pref 100 lookup local"]
        for i in self.pairs:
            lines.append(f"link add a{i} type veth peer name b{i}")
            for side in ENDS:
                lines += [f"addr add {address(side, i)}/24 dev {side}{i}", f"rule add pref 10 iif {side}{i} lookup local"]
                here, there, table = address(side, i), address(other(side), i), self._table(side, i)
                # from: also what rdma_cm asks; iif lo: senders that have not bound their address
                lines += [f"rule add pref 20 from {here} to {there} lookup {table}",
                          f"rule add pref 30 iif lo to {there} lookup {table}"]
        lines += ["rule del pref 0", f"addr add {ADDR_A}/24 dev lo", f"addr add {ADDR_B}/24 dev lo"]
        t.later(self.close)
        self.ip(*lines)
        ends = [(side, i) for i in self.pairs for side in ENDS]
        for end in ends:
            self.up(*end)
        for end in ends:		# siw takes a port without a carrier for one that is down, until its interface goes up again
            self.plug(*end)
        self.active(*ends)

    @staticmethod
    def _table(side, i):
        return 1000 + 2 * i + ENDS[side]

    def close(self):
        for p in self.t.procs:		# a device is removed only when it is not open
            p.kill()
        for side, i in [(side, i) for i in self.pairs for side in ENDS]:
            self.unplug(side, i, force=True)
        self.ip("rule add pref 0 lookup local", "rule flush", "rule add pref 32766 lookup main",
                *[f"link del a{i}" for i in self.pairs], f"addr del {ADDR_A}/24 dev lo", f"addr del {ADDR_B}/24 dev lo",
                force=True)

    # -- what happens to a wire or a device --

    def up(self, side, i):
        """The interface, with the route to the other end, which the kernel forgets when it goes down."""
        self.ip(f"link set {side}{i} up",
                f"route replace {address(other(side), i)} dev {side}{i} src {address(side, i)} table {self._table(side, i)}")

    def down(self, side, i):
        self.ip(f"link set {side}{i} down")

    def silence(self, i):
        """Packets of this pair arrive nowhere, without a word to anybody."""
        for side in ENDS:
            self.t.run([need("tc"), "qdisc", "replace", "dev", f"{side}{i}", "root", "netem", "loss", "100%"])

    def unsilence(self, i):
        for side in ENDS:
            self.t.run([need("tc"), "qdisc", "del", "dev", f"{side}{i}", "root"])

    def lossy(self, i, percent):
        for side in ENDS:
            self.t.run([need("tc"), "qdisc", "replace", "dev", f"{side}{i}", "root", "netem", "loss", f"{percent}%"])

    def active(self, *ends):
        """Waits for devices whose ports are up."""
        super().active(*ends)
        self._acquaint(ends)

    def _acquaint(self, ends):
        """The ends know each other's MAC addresses: the kernel's rdma_resolve_ip waits a second for an answer that comes
        at once, as it does within one machine."""
        for side, i in ends:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.bind((address(side, i), 0))	# raw: whichever port
                s.sendto(b"", (address(other(side), i), 9))
