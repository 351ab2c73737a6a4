"""
In the guest: a soft iWARP device over SCTP in a network namespace of its own, and its peer in Python in the first one,
at the two ends of a wire; and cases that take a wire.
"""
import subprocess

import rxe
import sctp_cases
from harness import Skip, case, check, need, pattern, same_bytes
from sctp_cases import PATIENT
from siw_scene import SIW_HOST, confirm_all, exchange, from_host, host_case, to_host

UDP = 9899
MTU = 1500
AMOUNT = 1 << 19
DEVICE, PEER = "10.79.0.1", "10.79.0.2"


class Transport(sctp_cases.Sctp):
    """settings: of the device; stack, ports: of ours."""
    command, peer = ["ip", "netns", "exec", "device"], PEER

    def __init__(self, profile, stack, ports, **settings):
        super().__init__(profile)
        self.stack, self.ports = stack, ports
        self.settings = dict(self.settings, addr=DEVICE, **settings)


def wire():
    """d0 of the device and p0 of its peer, ends of one wire; either kernel does SCTP in UDP, too."""
    need("ip", "tc")
    rxe.modprobe("sctp", "veth", "sch_netem")
    rxe.sysctl("net/sctp/udp_port", UDP)
    # The kernel hands packets of several chunks to a card in one piece, which in UDP goes wrong as soon as the piece is
    # longer than a packet may be: it arrives as one, without a checksum.
    run("ip netns add device; ip link add p0 type veth peer name d0 netns device; "
        f"ip link set p0 mtu {MTU} gso_max_size {MTU}; "
        f"ip addr add {PEER}/24 dev p0; ip link set p0 up; "
        f"ip -n device link set d0 mtu {MTU} gso_max_size {MTU}; "
        f"ip -n device addr add {DEVICE}/24 dev d0; ip -n device link set d0 up; ip -n device link set lo up; "
        f"ip netns exec device sh -c 'echo {UDP} > /proc/sys/net/sctp/udp_port'")


def run(lines):
    subprocess.run(["sh", "-ec", lines], check=True)


def path(how):
    """What netem makes of the wire's two directions; "" for nothing."""
    for end in ("dev p0", "-n device dev d0"):
        run(f"tc {end.replace('dev ', 'qdisc replace dev ')} root {f'netem {how}' if how else 'pfifo'}")


def much(host):
    """Half a mebibyte each way at the same time, by Writes, in both roles."""
    data, back = pattern(AMOUNT, 1), pattern(AMOUNT, 2)
    src, dst = host.mr(AMOUNT), host.mr(AMOUNT, "w")
    src.set(0, back)
    for begin in (to_host, from_host):
        qp, ep = begin(host)
        region = ep.register(AMOUNT)
        dst.set(0, bytes(AMOUNT))
        wr = qp.write(src, 0, AMOUNT, region.stag, region.base)
        ep.write(dst.rkey, dst.addr, data)
        confirm_all(ep, qp, [wr])
        same_bytes(bytes(region.buf), back, f"{begin.__name__}: from the device")
        ep.send(b"done")
        same_bytes(qp.received(0), b"done", "the Send behind it")
        same_bytes(dst.get(0, AMOUNT), data, f"{begin.__name__}: to the device")
        ep.close()
        host.wait(f"event {qp.id} qp_error")
        qp.destroy()


def bad_path(host):
    """Many messages each way, of which some are lost and some overtake others, in both roles."""
    late = 0
    path("delay 2ms reorder 25% 50% loss 5%")
    try:
        for begin in (to_host, from_host):
            qp, ep = begin(host, recvs=0)
            exchange(host, qp, ep)
            resent, overtakes = ep.stream.assoc.resent, ep.stream.overtakes
            host.t.note(f"{begin.__name__}: {resent} chunks sent again, {overtakes} of the device's came early")
            late += resent + overtakes
            ep.end()
            qp.event("qp_error")
            qp.destroy()
    finally:
        path("")
    check(late > 0, "nothing was lost, and nothing overtook")


def lacking(transport):
    """What siw_host says when it was built without the stack that the device needs."""
    argv = [SIW_HOST] + [f"{k}={v}" for k, v in transport.settings.items() if k != "addr"]
    said = subprocess.run(argv, input=b"", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE).stderr.decode()
    return said.strip() if "built without" in said else None


def register(*transports, where=""):
    """What a peer over the kernel's sockets can ask; skipped when siw_host was built without the device's stack."""
    if why := lacking(transports[0]):
        @case(f"the device over SCTP{where}")
        def _(_t):
            raise Skip(why)
        return
    sctp_cases.register(*transports, where=where)
    for transport in transports:
        name = f"{transport.profile.name}{where}"
        host_case(f"half a mebibyte each way at the same time, {name}", transport, answer_ms=60000)(much)
        host_case(f"a wire that loses and reorders, {name}", transport, **PATIENT)(bad_path)
