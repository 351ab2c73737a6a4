"""
In the guest: two daemons, each with devices of its own side, and what is to be true of them: data on SMC-R over verbs, as
smcrctl says and as the kernel says, and nothing left behind.
"""
import glob
import os
import threading

import rxe
from harness import Daemon, Pair, check, equal, hostport, wait_until
from rxe import settles

MTU = 1024		# of the path: veth has 1500


def verbs(net, side, **settings):
    """Entries of `devices`: one for each card of this side."""
    return [dict({"type": "verbs", "device": net.name(side, i)}, **settings) for i in net.pairs]


def siw(net, side, **settings):
    return [dict({"type": "siw", "address": rxe.address(side, i)}, **settings) for i in net.pairs]


class Stacks(threading.Thread):
    """Looks where the threads of some daemons are in the kernel: which ones destroy an object of a card."""

    def __init__(self, daemons):
        super().__init__(daemon=True)
        self.daemons = daemons
        self.loop = self.others = 0		# times that a thread was seen there
        self.where = ""
        self.over = threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.02):
            for d in self.daemons:
                for path in glob.glob(f"/proc/{d.pid}/task/*/stack"):
                    self.look(path)

    def look(self, path):
        try:
            with open(path, encoding="ascii") as f:
                stack = f.read()
            with open(os.path.join(os.path.dirname(path), "comm"), encoding="ascii") as f:
                thread = f.read()
        except OSError:		# it has ended
            return
        if "__rxe_cleanup" not in stack:
            return
        if thread.startswith("smcrd-worker"):
            self.loop += 1
            self.where = stack
        else:
            self.others += 1

    def stop(self):
        self.over.set()
        self.join()


class Gates(Pair):
    """client -> a (ingress) == SMC-R == b (egress) -> server, for each of the servers: name -> (host, port).

    The TCP connections below run over the first wire, or, to outlive it, within the loopback interface (over="lo").
    a, b: devices of the two; smcr, more: settings of both.
    """

    def __init__(self, t, net, servers, a=None, b=None, over="wire", smcr=None, **more):
        self.t, self.net = t, net
        self.host = rxe.ADDR_A
        far = rxe.address("b", 1) if over == "wire" else rxe.ADDR_B
        self.port = {name: t.port() for name in servers}
        self.middle = {name: t.port() for name in servers}
        # Objects end with their last user, so that the end of all can be seen.
        common = dict({"log_level": "info", "smcr": dict({"links_max": len(net.pairs), "group_idle": "1s"}, **(smcr or {}))},
                      **more)
        self.b = Daemon(t, "b", dict(common, devices=verbs(net, "b") if b is None else b, egress=[
            {"name": n, "listen": hostport(far, self.middle[n]), "to": hostport(*servers[n])} for n in servers]))
        self.a = Daemon(t, "a", dict(common, devices=verbs(net, "a") if a is None else a, ingress=[
            {"name": n, "listen": hostport(self.host, self.port[n]), "to": hostport(far, self.middle[n])}
            for n in servers]))
        self.both = (self.a, self.b)
        self.a.net = self.b.net = net		# the kernel that each of them is on

    # -- links --

    def links(self, d):
        """device -> connections, of active links."""
        return {x["device"]: x["connections"] for x in d.ctl("links")["links"] if x["state"] == "active"}

    def wait_links(self, pairs, timeout=15):
        """Until there is a link over each of these pairs and no other one."""
        for d in self.both:
            want = {rxe.device(d.name, i) for i in pairs}
            wait_until(lambda d=d, want=want: set(self.links(d)) == want,
                       f"daemon {d.name} has links on {sorted(want)}", timeout)

    # -- the kernel's word --

    def queue_pairs(self, d):
        """(device, local number) -> what the kernel says, of the daemon's queue pairs."""
        return {(x["ifname"], x["lqpn"]): x for x in d.net.resources("qp", d.pid)}

    def check_verbs(self):
        """Every link of both daemons is a queue pair of the kernel's on an rxe device, and the two ends name each other;
        and the kernel has no more than that, once threads have destroyed what belonged to links before."""
        for d in self.both:
            qps = self.queue_pairs(d)
            links = [x for x in d.ctl("links")["links"] if x["state"] == "active"]
            check(links, f"daemon {d.name} has links")
            for x in links:
                qp = qps.get((x["device"], x["qpn"]))
                check(qp, f"daemon {d.name}: the kernel knows queue pair {x['qpn']} of {x}; it has {qps}")
                equal((qp["type"], qp["state"], qp["rqpn"]), ("RC", "RTS", x["peer_qpn"]),
                      f"queue pair {x['qpn']} of daemon {d.name} on {x['device']}: type, state, peer's number")
                equal(x["mtu"], MTU, "MTU of the path")
            devices = d.ctl("devices")["devices"]
            equal({x["transport"] for x in devices}, {"roce"}, f"transports of daemon {d.name}")
            settles(lambda d=d: self.differences(d), {}, f"daemon {d.name}: in use, (as it says, as the kernel says)")

    def differences(self, d):
        """What the daemon and the kernel do not agree upon: (its figure, the kernel's) by name."""
        devices = d.ctl("devices")["devices"]
        mrs, qps = d.net.resources("mr", d.pid), d.net.resources("qp", d.pid)
        pairs = {"memory regions": (sum(x["mrs"] for x in devices), len(mrs)),
                 "bytes registered": (sum(x["registered_bytes"] for x in devices), sum(int(x["mrlen"]) for x in mrs)),
                 "queue pairs": (sum(x["qps"] for x in devices), len(qps))}
        return {what: pair for what, pair in pairs.items() if pair[0] != pair[1]}

    def packets(self):
        """What all devices of both sides have sent and received so far."""
        return {d.name: sum(d.net.statistics(d.name, i)["rcvd_pkts"] for i in self.net.pairs) for d in self.both}

    def all_free(self, d, timeout=20):
        """The daemon goes on with nothing in the kernel but what belongs to the devices it has open."""
        wait_until(lambda: not d.connections(), f"daemon {d.name} has no connections left", timeout)
        wait_until(lambda: not d.groups(), f"daemon {d.name} has no link groups left", timeout)

        def in_use():
            return {x["name"]: (x["qps"], x["mrs"], x["registered_bytes"]) for x in d.ctl("devices")["devices"]}
        settles(in_use, {name: (0, 0, 0) for name in in_use()}, f"daemon {d.name}: in use of its devices", timeout)
        d.net.let_go("qp", "mr", pid=d.pid, who=f" of daemon {d.name}", timeout=timeout)

    def stop(self):
        """Both daemons end in order, and the kernel has no objects of them."""
        self.quiet()
        for d in self.both:
            equal(d.stop(), 0, f"exit status of {d.name}")
        for d in self.both:
            d.net.let_go("qp", "mr", "cq", "pd", who=f" of daemon {d.name}")

    def no_resets(self):
        for d in self.both:
            c = d.counters()
            for name in ("closed_reset", "sessions_reset", "failover_lost", "bad_cdc", "bad_llc", "fallback_local",
                         "fallback_peer"):
                equal(c[name], 0, f"daemon {d.name}: counter {name}")
