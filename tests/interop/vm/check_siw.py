#!/usr/bin/env python3
# takes: 130 s
# load: 75
# needs: siw
"""The kernel's soft iWARP, siw: smcrd with it as a card, and smcrd's own soft iWARP, against it and each other."""
import fcntl
import socket
import termios

import pyiwarp as iw
import rxe
import siw
from gates import Gates, siw as soft, verbs as card
from harness import (PATIENCE, Failure, Server, case, check, echo, equal, in_thread, logs, main, need, pattern, recv_exact, same_bytes,
                     wait_until)
from programs import listens
from verbs_host import run_case

MIB = 1 << 20
SIDES = (("soft client, card server", soft, card), ("card client, soft server", card, soft), ("cards", card, card))


def rping(t, server, client, port):
    """Rounds of a Send, a Read and a Write each, with what is in the bytes; does it come to an end?"""
    there = t.spawn([need("rping"), "-s", "-a", server, "-p", str(port), "-C", "20", "-V"])
    wait_until(lambda: listens(server, port), "rping listens")
    here = t.spawn([need("rping"), "-c", "-a", server, "-I", client, "-p", str(port), "-C", "20", "-V"])
    try:
        equal((here.wait(2), there.wait(2)), (0, 0), "rping's ends")
    except Failure as e:
        t.note(f"{e}; {here.log()} {there.log()}")
        return False
    finally:
        here.kill()
        there.kill()
    return True


class Scene:
    """Two daemons, each on a card or with soft iWARP: a, b: card or soft; soft_settings: of soft devices."""

    def __init__(self, t, net, a, b, smcr=None, **soft_settings):
        smcr = {"group_idle": "200ms", **(smcr or {})}		# what is to be seen is seen while a connection is open
        self.t, self.net = t, net
        self.server = Server(t, echo)
        self.cards = [side for side, of in (("a", a), ("b", b)) if of is card]
        make = {side: of(net, side, **(soft_settings if of is soft else {})) for side, of in (("a", a), ("b", b))}
        self.gw = Gates(t, net, {"echo": self.server.at}, smcr=smcr, **make)

    def exchange(self, amount=MIB, seed=0):
        """So many bytes there and back at the same time, on a connection that stays open."""
        s = self.gw.connect()
        data = pattern(amount, seed)
        writer = in_thread(s.sendall, data)
        same_bytes(recv_exact(s, len(data)), data, "echo")
        writer.result()
        return s

    def check_links(self):
        """One link, of which each daemon on a card has a queue pair and memory in the kernel, and the others nothing."""
        self.gw.only_smcr(1)
        for d in self.gw.both:
            links = [x for x in d.ctl("links")["links"] if x["state"] == "active"]
            equal(len(links), 1, f"links of daemon {d.name}")
            qps = {(x["ifname"], x["lqpn"]) for x in self.net.resources("qp", d.pid)}
            mrs = len(self.net.resources("mr", d.pid))
            if d.name in self.cards:
                equal(qps, {(siw.device(d.name, 1), links[0]["qpn"])}, f"daemon {d.name}: the kernel's queue pairs")
                # and the queue pair's own, of its Reads
                equal(mrs, sum(x["mrs"] for x in d.ctl("devices")["devices"]) + 1,
                      f"daemon {d.name}: the kernel's memory regions")
            else:
                equal((qps, mrs), (set(), 0), f"daemon {d.name}, without a card, in the kernel")

    def depths(self):
        """What the soft side has heard of the card: IRD, ORD."""
        for d in self.gw.both:
            if d.name not in self.cards:
                link = d.ctl("links")["links"][0]
                return link["peer_ird"], link["peer_ord"]
        return None

    def finish(self):
        """In order, with nothing left behind."""
        self.server.ok()
        self.gw.quiet()
        for d in self.gw.both:
            self.gw.all_free(d)
        self.gw.no_resets()
        self.gw.stop()


def runs(t, net, a, b, amount=MIB, parameters=None, **settings):
    """Data goes both ways by SMC-R, and all ends in order. What the soft side has heard of the card's depths."""
    net.parameters(**{**siw.AS_BUILT, **(parameters or {})})
    scene = Scene(t, net, a, b, **settings)
    s = scene.exchange(amount)
    scene.check_links()
    depths = scene.depths()
    s.close()
    scene.finish()
    return depths


def mpa_port(d):
    return d.ctl("devices")["devices"][0]["mpa_port"]


def taken(s):
    """Waits until the other end's TCP has all that was sent."""
    wait_until(lambda: fcntl.ioctl(s, termios.TIOCOUTQ, b"\0" * 4) == b"\0" * 4, "what was sent is acknowledged")


@case("rping over siw: as built, peer to peer, with CRC")
def _(t):
    net = siw.Wires(t)
    for i, parameters in enumerate(({}, {"peer_to_peer": True}, {"mpa_crc_required": True})):
        net.parameters(**{**siw.AS_BUILT, **parameters})
        # siw may miss a first message (below), and rping says nothing more then.
        check(any(rping(t, rxe.address("b", 1), rxe.address("a", 1), 7174 + 10 * i + n) for n in range(4)),
              f"rping, {parameters}")
    net.let_go("qp", "mr", "cq", "pd")


@case("a card serves soft iWARP, with stock siw, and with MPA revision 1", timeout=90)
def _(t):
    # We offer a depth of 16, and smcrd on a card asks for 2.
    net = siw.Wires(t)
    equal(runs(t, net, soft, card, 4 * MIB), (16, 2), "depths that the card named")
    equal(runs(t, net, soft, card, mpa_revision=1), (-1, -1), "depths, MPA revision 1")


@case("soft iWARP serves a card, with stock siw, with each kind of RTR, and with MPA revision 1", timeout=90)
def _(t):
    net = siw.Wires(t)
    equal(runs(t, net, card, soft, 4 * MIB), (2, 2), "depths that the card named")
    for rtr in ("write", "read"):
        equal(runs(t, net, card, soft, parameters={"peer_to_peer": True}, rtr=[rtr]), (2, 2), f"depths, RTR {rtr}")
    equal(runs(t, net, card, soft, parameters={"mpa_version": 1}), (-1, -1), "depths, MPA revision 1")


@case("soft iWARP with an IRD of one serves a card with two Reads at once", timeout=90)
def _(t):
    net = siw.Wires(t)
    for rtr in ("write", "read"):
        equal(runs(t, net, card, soft, parameters={"peer_to_peer": True}, rtr=[rtr], ird=1), (2, 2), f"depths, RTR {rtr}")


@case("cards on both ends: stock siw, and with CRC, peer to peer", timeout=90)
def _(t):
    net = siw.Wires(t)
    runs(t, net, card, card, 4 * MIB)
    runs(t, net, card, card, parameters={"mpa_crc_required": True, "peer_to_peer": True})


@case("a card that is not yet listening at the first message gets the next", timeout=90)
def _(t):
    net = siw.Wires(t)
    for a in (soft, card):
        runs(t, net, a, card, parameters={"reply_gap": 50})


@case("an MPA Request in pieces, from a stranger: a card rejects it like a whole one", timeout=90)
def _(t):
    net = siw.Wires(t)
    scene = Scene(t, net, card, card)
    request = iw.MpaFrame(enhanced=iw.Enhanced(), private=b"nobody").encode()
    for cut in (len(request), 1, 19, 20, 23, len(request) - 1):
        with iw.tcp_connect((rxe.address("b", 1), mpa_port(scene.gw.b)), source=rxe.address("a", 1)) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.sendall(request[:cut])
            if cut < len(request):
                taken(s)
                s.sendall(request[cut:])
            reply = iw.read_mpa(s, 5 * PATIENCE)
            check(reply.reply and reply.reject, f"cut at {cut}: {reply}")
    scene.exchange(1000).close()
    scene.finish()


@case("a program on a card that soft iWARP does not know is rejected", timeout=90)
def _(t):
    net = siw.Wires(t)
    scene = Scene(t, net, card, soft)
    for peer_to_peer in (False, True):
        net.parameters(peer_to_peer=peer_to_peer)
        stranger = t.spawn([need("rping"), "-c", "-a", rxe.address("b", 1), "-I", rxe.address("a", 1), "-p",
                            str(mpa_port(scene.gw.b)), "-C", "1"])
        check(stranger.wait() != 0, "rping: exit status 0")
        logs(stranger, "RDMA_CM_EVENT_REJECTED")
    equal(scene.gw.b.ctl("devices")["devices"][0]["stats"]["mpa_refused_token"], 2, "Replies that reject")
    scene.exchange(1000).close()
    scene.finish()


@case("the wire's MTU falls and rises during a connection", timeout=90)
def _(t):
    net = siw.Wires(t)
    for name, a, b in SIDES:
        scene = Scene(t, net, a, b)
        s = scene.exchange(MIB // 4)
        for mtu in (1280, 600, 1500):
            net.ip(*(f"link set {side}1 mtu {mtu}" for side in "ab"))
            data = pattern(MIB // 4, mtu)
            writer = in_thread(s.sendall, data)
            same_bytes(recv_exact(s, len(data)), data, f"{name}: echo at MTU {mtu}")
            writer.result()
        scene.check_links()
        s.close()
        scene.finish()


@case("short writes that cross a page arrive as they were sent", timeout=90)
def _(t):
    run_case(t, siw.Wires(t), siw.device, "short")


@case("siw has no markers: TCP, with the reason", timeout=90)
def _(t):
    net = siw.Wires(t)
    for name, a, b in SIDES[:2]:
        scene = Scene(t, net, a, b, markers=True)
        s = scene.exchange()
        reasons = [d.connections()[0]["reason"] for d in scene.gw.both]
        t.note(f"{name}: {reasons[0]['detail']!r}, {reasons[0]['local_text']!r}")
        check("rejected by the peer" in reasons[0]["detail"], f"{name}: reasons {reasons}")
        for d in scene.gw.both:
            equal([c["mode"] for c in d.connections()], ["tcp"], f"{name}: mode of daemon {d.name}'s connection")
        s.close()
        scene.gw.quiet()
        for d in scene.gw.both:
            scene.gw.all_free(d)
        scene.gw.stop()


@case("a daemon is killed: the other one detects it, and has a link again after the restart", timeout=120)
def _(t):
    net = siw.Wires(t)
    for name, a, b in SIDES:
        scene = Scene(t, net, a, b)
        for d, other in (scene.gw.both, scene.gw.both[::-1])[:2 if scene.cards != ["a", "b"] else 1]:
            s = scene.exchange(MIB // 4)
            scene.check_links()
            threads = net.threads(d.pid)
            d.expect_dead = True
            d.kill()
            scene.gw.all_free(other)
            net.let_go("qp", "mr", "cq", "pd", threads=threads, who=" of the killed daemon")
            said = [x for x in other.log().split("\n") if "link down" in x]
            check(said, f"{name}: daemon {other.name} tells of the link")
            t.note(f"{name}: {d.name} was killed, {other.name}: {said[-1].split('reason=')[-1]}")
            s.close()
            d.expect_dead = False
            d.start()
        scene.exchange(MIB // 4).close()
        scene.gw.only_smcr(1)
        scene.gw.stop()


@case("an interface goes down: both ends detect it, and use it again when it is up", timeout=120)
def _(t):
    net = siw.Wires(t)
    for name, a, b in SIDES:
        scene = Scene(t, net, a, b, smcr={"test_link_interval": "1s", "test_link_timeout": "4s", "hold_off": "100ms",
                                          "hold_off_max": "1s", "last_link_timeout": "1s"})
        s = scene.exchange(MIB // 4)
        scene.check_links()
        net.down("b", 1)
        for d in scene.gw.both:
            wait_until(lambda d=d: not d.groups(), f"{name}: daemon {d.name} has no group left", 20)
            said = [x for x in d.log().split("\n") if "link down" in x]
            t.note(f"{name}: daemon {d.name}: {said[-1].split('reason=')[-1] if said else ''}")
        s.close()
        for side in "ab":
            net.up(side, 1)
        net.active(("a", 1), ("b", 1))
        before = [d.established() for d in scene.gw.both]

        def again():
            scene.exchange(1000).close()
            return [d.established() for d in scene.gw.both] != before
        wait_until(again, f"{name}: SMC-R again", 20)
        scene.gw.quiet()
        for d in scene.gw.both:
            scene.gw.all_free(d)
        scene.gw.stop()


@case("the card's last message, a Terminate, is received", timeout=90)
def _(t):
    net = siw.Wires(t)
    for name, a, b in SIDES[:2]:
        scene = Scene(t, net, a, b)
        s = scene.exchange(MIB // 4)
        net.parameters(bad_crc=True)
        try:
            s.sendall(pattern(MIB // 4, 1))
        except ConnectionError:
            pass		# it ends in the middle
        for d in scene.gw.both:
            wait_until(lambda d=d: "link down" in d.log(), f"{name}: daemon {d.name} has lost its link", 20)
            said = [x for x in d.log().split("\n") if "link down" in x]
            t.note(f"{name}: daemon {d.name}: {said[-1].split('reason=')[-1]}")
            if d.name not in scene.cards:
                check("MPA: CRC error" in said[-1], f"{name}: {said[-1]}")
        s.close()
        scene.gw.stop()


main()
