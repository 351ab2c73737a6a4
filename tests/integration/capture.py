"""What the tests share that look at the wire as Wireshark reads it: a capture on loopback, and traffic that has something of all."""
import functools
import socket

from harness import Failure, Skip, check, need, recv_exact, set_reset_on_close, wait_until, works, SHRINK


OURS = {"smc", "iwarp_mpa"}


@functools.cache
def guesses_of_others(t):
    """Options against dissectors that guess from the first bytes of a segment or a message: a wrong guess hides
    the data from the right dissector."""
    known = [line.split("\t") for line in t.run([need("tshark"), "-G", "heuristic-decodes"]).decode().split("\n")]
    found = {line[1] for line in known if line[0] in ("tcp", "udp", "sctp")}
    check(found.issuperset(OURS), f"tshark dissects {OURS}")
    return [f"--disable-protocol={name}" for name in sorted(found.difference(OURS, {"sctp"}))]


class Undissected(Failure):
    """tshark passed over a segment, as it does once in some fifty runs, also with the guesses of others switched off: why is not
    known. What is wrong with the bytes themselves is wrong each time."""


class Capture:
    """dumpcap on lo, for this test's address only; options: further ones of each tshark."""

    def __init__(self, t, options=()):
        self.t, self.options = t, list(options)
        self.file = t.path(f"run{t.count()}.pcap")
        dumpcap = need("dumpcap")
        need("tshark")
        self.proc = t.spawn([dumpcap, "-q", "-P", "-i", "lo", "-B", "64", "-f", f"(tcp or udp) and host {t.addr}",
                             "-w", self.file])

        def capturing():
            if not self.proc.alive():
                raise Skip(f"dumpcap cannot capture on lo here: {self.proc.log()[-300:]}")
            # The file is there before the first packet is captured, so a packet of our own tells.
            socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect_ex((t.addr, 9))
            return len(self.tshark("-T", "fields", "-e", "frame.number")) > 0
        wait_until(capturing, "dumpcap captures", 20)

    def finish(self):
        """Ends the capture when a last packet of our own is in it."""
        port = self.t.port()
        marker = [f"tcp.dstport == {port}"]

        def seen():
            socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect_ex((self.t.addr, port))
            return self.tshark("-Y", marker[0], "-T", "fields", "-e", "frame.number")
        wait_until(seen, "the last packet is captured", 20)
        self.proc.stop()
        dropped = [line for line in self.proc.log().split("\n") if "dropped" in line]
        self.t.note("; ".join(dropped) or "dumpcap says nothing of dropped packets")

    def tshark(self, *args):
        # Heuristics first: a client's port may be one that tshark knows as something else.
        out = self.t.run([need("tshark"), "-r", self.file, "-n", "-o", "tcp.try_heuristic_first:TRUE",
                          *guesses_of_others(self.t), *self.options, *args], status=None, timeout=120)
        return out.decode(errors="replace").rstrip("\n").split("\n") if out.strip() else []


def traffic(t, pair):
    """Bulk, small messages, an urgent byte, a reset, orderly ends."""
    socks = [pair.connect() for _ in range(8)]
    for i, s in enumerate(socks):
        works(s, i, 400000 // SHRINK + i * 1111)
        for n in (1, 2, 3, 5, 44, 1000):
            s.sendall(bytes(n))
            recv_exact(s, n)
    socks[0].send(b"!", socket.MSG_OOB)
    set_reset_on_close(socks[1])
    for s in socks[1:]:
        s.close()
    wait_until(lambda: len(pair.a.connections()) == 1, "seven are closed")
    socks[0].close()
    pair.ended_well(8)


def numbers(fields):
    return [int(x, 0) for x in fields.split(",") if x]


def until_dissected(t, attempt):
    """attempt() up to three times, while Undissected is what is wrong."""
    for attempts_left in (2, 1, 0):
        try:
            attempt()
            break
        except Undissected as e:
            t.note(f"{e}; {attempts_left} attempts left")
            if attempts_left == 0:
                raise
