"""
Two network namespaces joined by pairs of virtual Ethernet interfaces: the test script with its children lives in one
(a), what is started through Net.b lives in the other. Each pair i is a subnet of its own, 10.77.i.1 - 10.77.i.2 on
interfaces ai - bi; each side has an address on its loopback interface that is routed over whichever pair works.
"""
import ctypes
import os
import subprocess
import sys
import threading

from harness import TOP_BUILD, Skip, connect_to, need, wait_until

ADDR_A, ADDR_B = "10.77.100.1", "10.77.100.2"
CLONE_NEWNET = 0x40000000
NOWHERE = "02:00:00:00:00:99"


def enter(mount=False):
    """Runs this script again in a network namespace of its own, mount: and with mounts of its own; without one all its cases are
    skipped."""
    spaces = ["--net", "--mount"] if mount else ["--net"]
    if os.environ.get("SMCRD_NETNS"):
        return
    try:
        unshare, _ = need("unshare", "nsenter")
        need("ip")
        ok = subprocess.run([unshare, *spaces, "true"], stderr=subprocess.DEVNULL).returncode == 0
        why = "no right to make network namespaces"
    except Skip as e:
        ok, why = False, str(e)
    if not ok:
        print(f"1..0 # SKIP {why}")
        sys.exit(0)
    os.environ["SMCRD_NETNS"] = "1"
    os.execv(unshare, [unshare, *spaces, "--", sys.executable, *sys.argv])


class Side:
    """Stands for the Case `t` where programs are to run in the other namespace."""

    def __init__(self, t, pid):
        self._t = t
        self._pid = pid

    def __getattr__(self, name):
        return getattr(self._t, name)

    def wrap(self, kw=None):
        """nsenter, which turns into the program; it takes over the change of user, because it needs root itself."""
        ids = []
        if kw and "user" in kw:
            ids = ["--setgid", str(kw.pop("group")), "--setuid", str(kw.pop("user"))]
            kw.pop("extra_groups", None)
        return [need("nsenter"), f"--net=/proc/{self._pid}/ns/net", *ids, "--"]

    def spawn(self, argv, name=None, **kw):
        return self._t.spawn([*self.wrap(kw), *argv], name or os.path.basename(argv[0]), **kw)

    def run(self, argv, **kw):
        return self._t.run([*self.wrap(kw), *argv], **kw)

    def inside(self, fn):
        """What fn() gives, run by a thread in that namespace: sockets and threads that it makes are there."""
        out = []

        def run():
            fd = os.open(f"/proc/{self._pid}/ns/net", os.O_RDONLY)
            failed = ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET)
            os.close(fd)
            try:
                out.append(fn() if not failed else OSError("setns"))
            except Exception as e:	# the caller's
                out.append(e)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if isinstance(out[0], Exception):
            raise out[0]
        return out[0]


def namespace(t):
    """Another network namespace, which lives as long as the case: a Side, in which programs are started, and the pid that has it."""
    # sleep would run on when the script is killed; cat ends with its input, too
    holder = t.spawn([need("unshare"), "--net", "--", "cat"], "namespace", stdin=subprocess.PIPE)
    ours = os.readlink("/proc/self/ns/net")

    def there():
        if not holder.alive():
            raise Skip(f"no right to make network namespaces: {holder.log().strip()}")
        return os.readlink(f"/proc/{holder.pid}/ns/net") != ours
    wait_until(there, "a network namespace is there")
    return Side(t, holder.pid), holder.pid


def wire(near, far, far_pid):
    """Joins two namespaces by a pair of virtual Ethernet interfaces. Gives their addresses."""
    a, b = "10.78.0.1", "10.78.0.2"
    lines = ["link set lo up", f"link add wire type veth peer name wire netns {far_pid}"]
    near.run([need("ip"), "-batch", "-"], input="".join(f"{x}\n" for x in lines).encode())
    for side, here in ((near, a), (far, b)):
        lines = ["link set lo up", f"addr add {here}/24 dev wire", "link set wire up"]
        side.run([need("ip"), "-batch", "-"], input="".join(f"{x}\n" for x in lines).encode())
    wait_until(lambda: b"state UP" in near.run([need("ip"), "link", "show", "wire"]), "the wire has its carrier")
    return a, b


def delayed_wire(near, far, far_pid, delay_ms):
    """Joins two namespaces by delay_link.c, delay_ms one way. Gives their addresses."""
    a, b = "10.78.0.1", "10.78.0.2"
    program = os.path.join(TOP_BUILD, "tests", "bench", "delay_link")
    if not os.path.exists(program):
        raise Skip("tests/bench/delay_link is not built")
    relay = near.spawn([program, f"/proc/{far_pid}/ns/net", "far", str(int(delay_ms * 1000))])

    def ready():
        if not relay.alive():
            raise Skip(f"no link: {relay.log().strip()}")
        return "ready" in relay.log()
    wait_until(ready, "the link with delay is there")
    for side, here, peer in ((near, a, b), (far, b, a)):
        lines = ["link set lo up", f"addr add {here} peer {peer} dev far", "link set dev far txqueuelen 10000 up"]
        side.run([need("ip"), "-batch", "-"], input="".join(f"{x}\n" for x in lines).encode())
    return a, b


class Net:
    def __init__(self, t, pairs=2):
        self.t = t
        self.pairs = range(1, pairs + 1)
        self.b, self.far = namespace(t)
        t.later(self.close)
        lines = ["link set lo up", f"addr replace {ADDR_A}/32 dev lo"]
        for i in self.pairs:
            # The kernel tells at once that a carrier is lost when it sees that the interface depends on another one, by
            # their indices; the same index at both ends (each in its namespace) would hide that, and cost a second.
            lines += [f"link add a{i} index 1{i} type veth peer name b{i} index 2{i} netns {self.far}",
                      f"addr add 10.77.{i}.1/24 dev a{i}"]
        self.ip("a", *lines)
        self.ip("b", "link set lo up", f"addr replace {ADDR_B}/32 dev lo",
                *[f"addr add 10.77.{i}.2/24 dev b{i}" for i in self.pairs])
        for side in (t, self.b):
            for name in ("ipv4/conf/all/ignore_routes_with_linkdown", "ipv6/conf/all/keep_addr_on_down"):
                side.run(["sh", "-c", f"echo 1 > /proc/sys/net/{name}"])
        for i in self.pairs:
            self.up("a", i)
            self.up("b", i)
        wait_until(self._has_carriers, "each pair has its carrier, without which no route counts")

    def _has_carriers(self):
        states = [self.ip_text(side, "-br", "link", "show", f"{side}{i}").split()[1] for i in self.pairs for side in "ab"]
        return set(states) == {"UP"}

    def ip_text(self, side, *args):
        return (self.t if side == "a" else self.b).run([need("ip"), *args]).decode()

    def close(self):
        self.ip("a", *[f"link del a{i}" for i in self.pairs], force=True)

    def ip(self, side, *lines, force=False):
        where = self.t if side == "a" else self.b
        where.run([need("ip"), *(["-force"] if force else []), "-batch", "-"], input="".join(f"{x}\n" for x in lines).encode(),
                  status=None if force else 0)

    def add_v6(self):
        """The pairs have IPv6 addresses as well, fd77:i::1 and fd77:i::2. Gives the entries of `devices` with them."""
        for side, end in (("a", 1), ("b", 2)):
            self.ip(side, *[f"addr add fd77:{i}::{end}/64 dev {side}{i} nodad" for i in self.pairs])
        return {side: [{"type": "siw", "address": f"fd77:{i}::{end}", "name": f"{side}{i}"} for i in self.pairs]
                for side, end in (("a", 1), ("b", 2))}

    def _route(self, i, side):
        """The loopback address of the other side over pair i; pair 1 first, while it works."""
        there, here, end = (ADDR_B, ADDR_A, 2) if side == "a" else (ADDR_A, ADDR_B, 1)
        return f"route replace {there} via 10.77.{i}.{end} dev {side}{i} src {here} metric {10 + i}"

    def down(self, side, i):
        """Switches an interface off; the other side loses its carrier."""
        self.ip(side, f"link set {side}{i} down")

    def up(self, side, i):
        self.ip(side, f"link set {side}{i} up", self._route(i, side))

    def silence(self, i, sides="ab"):
        """From now on packets of pair i from these sides arrive nowhere, without a word to anybody."""
        for side in sides:
            self.ip(side, f"neigh replace 10.77.{i}.{2 if side == 'a' else 1} lladdr {NOWHERE} dev {side}{i} nud permanent")

    def unsilence(self, i):
        for side in "ab":
            self.ip(side, f"neigh del 10.77.{i}.{2 if side == 'a' else 1} dev {side}{i}", force=True)

    def connect(self, port, timeout=20.0):
        """A client of the daemon on this side."""
        s = connect_to((ADDR_A, port), timeout)
        self.t.later(s.close)
        return s

    def devices(self, side, **settings):
        """Entries of `devices`: one for each interface of this side."""
        return [dict({"type": "siw", "interface": f"{side}{i}"}, **settings) for i in self.pairs]
