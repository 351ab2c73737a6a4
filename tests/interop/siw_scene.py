"""
siw_host, a soft iWARP device, as a test drives it, and an Endpoint in Python as its peer: what test_iwarp.py (MPA on
TCP) and those over SCTP share. A transport says how the two come together; see Mpa.
"""
import contextlib
import os
import signal
import subprocess
import threading
import time

import pyiwarp as iw
from pyiwarp import SOON
from pysmc import Pdata
from harness import PATIENCE, TOP_BUILD, Failure, case, check, equal, pattern, same_bytes, wait_until

SIW_HOST = os.path.join(TOP_BUILD, "tests", "interop", "siw_host")
MS = int(250 * PATIENCE)		# the device's patience


class Mpa:
    """MPA on TCP. settings: of siw_host; command: words in front of its own; peer: our address, by default the device's,
    which is the test's; rtr: the RTR of an initiator that says nothing else about it."""
    settings, command, peer = {}, [], None
    rtr = "write"
    places_early = False
    connect = staticmethod(iw.connect)

    @staticmethod
    def listener(addr):
        return iw.Listener(addr)

    @staticmethod
    def request(**over):
        """What an initiator sends when it has nothing special in mind."""
        return iw.MpaFrame(enhanced=iw.Enhanced(), **over)

    @classmethod
    def unchecked(cls):
        """The same, without a checksum where there is a choice."""
        return cls.request(crc=False)


class Host:
    """A siw_host: commands by cmd(), what happens by wait()."""

    def __init__(self, t, transport=Mpa, **settings):
        settings = {"addr": t.addr, "connect_ms": MS, "answer_ms": MS, "confirm_ms": 5, **transport.settings,
                    **settings}
        self.transport = transport
        self.t = t
        self.proc = t.spawn(transport.command + [SIW_HOST] + [f"{k}={v}" for k, v in settings.items()], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)
        self.cond = threading.Condition()
        self.answers, self.news, self.seen = [], [], []
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()
        self.addr = settings["addr"]
        self.peer = transport.peer or self.addr
        self.ord = settings.get("ord", 1)
        self.names = 0
        with self.cond:
            self._until(lambda: self.answers, "ready")
            self.port = int(self.answers.pop(0).split("port=")[1])
        t.later(self.quit)

    def _read(self):
        for line in self.proc.popen.stdout:
            line = line.decode().rstrip("\n")
            with self.cond:
                (self.news if line.startswith(("event ", "wc ")) else self.answers).append(line)
                self.cond.notify_all()
        with self.cond:
            self.ended = True
            self.cond.notify_all()

    def _until(self, fn, what, timeout=SOON):
        end = time.monotonic() + timeout
        while True:
            got = fn()
            if got:
                return got
            left = end - time.monotonic()
            if left <= 0 or self.ended:
                raise Failure(f"{what}: {'siw_host ended' if self.ended else 'not in time'}; it said {self.news[-10:]}")
            self.cond.wait(left)

    def cmd(self, line):
        """The answer's values by key, or its text."""
        with self.cond:
            self.proc.popen.stdin.write(line.encode() + b"\n")
            self.proc.popen.stdin.flush()
            self._until(lambda: self.answers, line)
            text = self.answers.pop(0)
        if not text.startswith("ok"):
            raise Failure(f"{line[:80]}: {text}")
        words = text.split()[1:]
        if all("=" in w for w in words):
            return {k: v if k in ("gid", "mac") else int(v) for k, v in (w.split("=") for w in words)}
        return " ".join(words)

    def wait(self, start, timeout=SOON):
        """The first piece of news that begins so; it counts once."""
        with self.cond:
            def found():
                return next((x for x in self.news if x.startswith(start)), None)
            line = self._until(found, f'"{start}"', timeout)
            self.news.remove(line)
            return line

    def quiet(self, start, seconds=0.15):
        """Nothing of that kind happens for a while."""
        time.sleep(seconds)	# raw: for what must not come
        with self.cond:
            got = [x for x in self.news if x.startswith(start)]
        check(not got, f"{got}, nothing was expected")

    def stats(self):
        return self.cmd("stats")

    def wait_stat(self, key, at_least, timeout=SOON):
        end = time.monotonic() + timeout
        while self.stats()[key] < at_least:
            if time.monotonic() > end:
                raise Failure(f"{key} is {self.stats()[key]}, expected {at_least}")
            time.sleep(0.01)	# raw: between two looks

    @contextlib.contextmanager
    def still(self):
        """The device sees nothing of what happens meanwhile, then all of it at once."""
        self.proc.send_signal(signal.SIGSTOP)
        try:
            wait_until(self._stopped, "siw_host stands still")
            yield
        finally:
            self.proc.send_signal(signal.SIGCONT)

    def _stopped(self):
        with open(f"/proc/{self.proc.pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] == "T"

    def quit(self):
        if not self.ended:
            try:
                self.proc.popen.stdin.write(b"quit\n")
                self.proc.popen.stdin.flush()
            except BrokenPipeError:
                pass
        self.proc.wait(10)	# raw: Proc's, with patience

    def check_end(self):
        """Ends it; nothing leaked (the sanitizers tell by the status)."""
        self.quit()
        equal(self.proc.popen.returncode, 0, "exit status of siw_host")
        text = self.proc.log()
        check("ERROR" not in text and "runtime error" not in text, f"siw_host said: {text}")

    # -- things on it --

    def name(self, kind):
        self.names += 1
        return f"{kind}{self.names}"

    def mr(self, size, rights=""):
        return Mr(self, size, rights)

    def qp(self, sq=64, rq=64):
        return Qp(self, sq, rq)

    def listener(self):
        """Our end, for the device to connect to."""
        lst = self.transport.listener(self.peer)
        self.t.later(lst.close)
        return lst

    def expecting(self, recvs=0):
        """A queue pair that a peer may come to."""
        qp = self.qp()
        qp.recv(recvs)
        qp.expect()
        return qp


class Mr:
    def __init__(self, host, size, rights):
        self.host, self.size, self.id = host, size, host.name("m")
        got = host.cmd(f"mr {self.id} {size} {rights}")
        self.rkey, self.addr = got["rkey"], got["addr"]

    def get(self, at, n):
        return bytes.fromhex(self.host.cmd(f"get {self.id} {at} {n}")) if n else b""

    def set(self, at, data):
        for i in range(0, len(data), 8192):
            self.host.cmd(f"set {self.id} {at + i} {data[i:i + 8192].hex()}")


class Qp:
    def __init__(self, host, sq, rq):
        self.host, self.id = host, host.name("q")
        self.token = int.from_bytes(os.urandom(8), "big")
        got = host.cmd(f"qp {self.id} {sq} {rq} {self.token}")
        self.qpn, self.psn = got["qpn"], got["psn"]
        self.buf = host.mr(rq * 1024)
        self.rq = rq
        self.wr = 100
        self.recvs = 0

    def expect(self):
        self.host.cmd(f"expect {self.id}")

    def pdata(self, **over):
        fields = {"qpn": self.qpn, "psn": self.psn, "token": self.token, "from_qpn": 0x4242, "recv_depth": 64}
        fields.update(over)
        return Pdata(**fields).encode()

    def claim(self):
        """The engine's side of the passive set-up: the peer is known now."""
        self.host.cmd(f"connect {self.id} passive {self.host.peer} {0x4242} 1 0")

    def depths(self):
        """IRD and ORD of the peer, as it named them."""
        got = self.host.cmd(f"depths {self.id}")
        return got["ird"], got["ord"]

    def recv(self, n=1, size=1024):
        for _ in range(n):
            self.host.cmd(f"recv {self.id} {self.recvs} {self.buf.id} {self.recvs % self.rq * 1024} {size}")
            self.recvs += 1

    def received(self, i):
        """Data of receive number i, which has completed."""
        line = self.host.wait(f"wc {self.id} {i} recv").split()
        equal(line[4], "ok", f"receive {i}")
        return self.buf.get(i % self.rq * 1024, int(line[5]))

    def send(self, mr, at, n, flags="s"):
        self.wr += 1
        self.host.cmd(f"send {self.id} {self.wr} {mr.id} {at} {n} {flags}")
        return self.wr

    def write(self, mr, at, n, rkey, addr, flags="s"):
        self.wr += 1
        self.host.cmd(f"write {self.id} {self.wr} {mr.id} {at} {n} {rkey} {addr} {flags}")
        return self.wr

    def done(self, wr, status="ok"):
        line = self.host.wait(f"wc {self.id} {wr} ")
        equal(line.split()[4], status, f"completion of request {wr}")

    def event(self, kind, why=None):
        line = self.host.wait(f"event {self.id} ")
        equal(line.split()[2], kind, f"event of {self.id}: {line}")
        if why:
            check(why in line, f'"{why}" in "{line}"')
        return line

    def destroy(self):
        self.host.cmd(f"destroy {self.id}")
        self.host.cmd(f"dereg {self.buf.id}")


def to_host(host, request=None, rtr=None, recvs=4, size=1024, how=None, **over):
    """Python initiates: (Qp, Endpoint). how: for the transport's connect(); over: of the private data."""
    qp = host.qp()
    qp.recv(recvs, size)
    qp.expect()
    request = request or host.transport.request()
    request.private = qp.pdata(**over)
    ep = host.transport.connect((host.addr, host.port), request, rtr=rtr or host.transport.rtr, timeout=SOON,
                                **(how or {}))
    host.t.later(ep.close)
    qp.claim()
    qp.event("connected")
    # Tests of later messages need not know the RTR.
    while ep.reads_out:
        ep.expect(iw.READ_RESP, SOON)
    qp.first = 0	# an RTR takes no receive
    return qp, ep


def from_host(host, recvs=4, over={}, **answer):
    """The device initiates: (Qp, Endpoint); its request is ep.request. over: of the private data."""
    lst = host.listener()
    qp = host.qp()
    qp.recv(recvs)
    start_active(host, qp, lst)
    ep = lst.serve(SOON, private=lambda request: pd_reply(request, **over), **answer)
    host.t.later(ep.close)
    qp.event("connected")
    qp.first = 0
    return qp, ep


FAR = (0x99, 0x77)	# QPN and PSN of our end where the device connects


def start_active(host, qp, lst):
    host.cmd(f"connect {qp.id} active {host.peer} {FAR[0]} {FAR[1]} {lst.at[1]}")


def pd_reply(request, **over):
    """Private data for the Reply: to the QP that asks, from the one it meant."""
    fields = {"qpn": Pdata.decode(request.private).from_qpn, "from_qpn": FAR[0], "recv_depth": 64}
    fields.update(over)
    return Pdata(**fields).encode()


def exchange(host, qp, ep, reads=True):
    """Sends, Writes and Reads of sizes around segments and markers, both ways."""
    n = qp.recvs
    sizes = (0, 1, 3, 4, 487, 488, 489, 490, 508, 512, 1000, 1024)
    for size in sizes:
        qp.recv()
        ep.send(pattern(size, size))
    for i, size in enumerate(sizes):
        # What receives were posted before, but for one that an RTR by Send took, come first.
        same_bytes(qp.received(qp.first + i), pattern(size, size), f"Send of {size} bytes to the device")
    qp.first += len(sizes)
    mr = host.mr(20000, "w")
    data = pattern(15000, 5)
    qp.recv()
    ep.write(mr.rkey, mr.addr + 77, data)
    ep.write(mr.rkey, mr.addr, b"")
    ep.send(b"written")
    same_bytes(qp.received(qp.first), b"written", "Send behind the Write")
    qp.first += 1
    same_bytes(mr.get(77, 15000), data, "Write to the device")
    equal(mr.get(0, 77) + mr.get(15077, 20000 - 15077), bytes(5000), "what is beside it")

    src = host.mr(20000)
    src.set(0, pattern(20000, 9))
    region = ep.register(32000)
    wrs = []
    for size in sizes:
        wrs.append(qp.send(src, 3, size))
        same_bytes(ep.recv(SOON), pattern(20000, 9)[3:3 + size], f"Send of {size} bytes from the device")
    wrs.append(qp.write(src, 7, 16000, region.stag, region.base + 111))
    wrs.append(qp.send(src, 0, 10))
    same_bytes(ep.recv(SOON), pattern(20000, 9)[:10], "Send behind the Write")
    same_bytes(region.bytes(region.base + 111, 16000), pattern(20000, 9)[7:16007], "Write from the device")
    equal(ep.placed, 16000, "bytes written")
    confirm_all(ep, qp, wrs)
    if reads:
        shown = host.mr(9000, "r")
        shown.set(0, pattern(9000, 3))
        for size in (1, 1386, 4000):
            sink = ep.register(5000)
            ep.read(sink.stag, sink.base + 9, size, shown.rkey, shown.addr + 11)
            while ep.reads_out:
                ep.expect(iw.READ_RESP, SOON)
            same_bytes(sink.bytes(sink.base + 9, size), pattern(9000, 3)[11:11 + size], f"Read of {size} bytes")


def confirm_all(ep, qp, wrs):
    """Answers the device's confirming Reads until these requests are complete."""
    end = time.monotonic() + SOON
    while not any(x.startswith(f"wc {qp.id} {wrs[-1]} ") for x in list(qp.host.news)) and time.monotonic() < end:
        try:
            ep.next(0.01)
        except iw.Timeout:
            pass
    for wr in wrs:
        qp.done(wr)


def take_all(ep, seconds):
    """Reads until nothing comes for that long."""
    try:
        while True:
            ep.next(seconds)
    except iw.Timeout:
        pass


def host_case(name, transport=Mpa, **settings):
    """@case for a function of a Host with these settings, which is looked at behind it."""
    def register(fn):
        @case(name)
        def _(t):
            host = Host(t, transport, **settings)
            fn(host)
            host.check_end()
        return fn
    return register


# -- errors --


class Bad:
    """A connection to the device on which something wrong is sent; the Terminate that is due comes back."""

    def __init__(self, t, transport=Mpa, **settings):
        self.t = t
        self.host = Host(t, transport, **settings)
        self.failures = []
        self.more = []
        self.terms = 0

    def connect(self):
        self.qp, self.ep = to_host(self.host, recvs=2, size=100)
        self.mr = self.host.mr(1000, "w")
        self.ro = self.host.mr(1000, "r")
        self.gone = self.host.mr(1000, "rw")
        self.host.cmd(f"dereg {self.gone.id}")

    def run(self, name, whys, act, headers=None):
        """act(self) does it; whys: the Terminate, or several that are right."""
        try:
            self._run(name, whys if isinstance(whys, list) else [whys], act, headers)
        except (Failure, iw.Error) as e:
            self.failures.append(f"{name}: {type(e).__name__}: {e}")

    def _run(self, name, whys, act, headers):
        self.connect()
        with contextlib.suppress(iw.Closed):	# the device may be quicker than the second of two segments
            act(self)
        term = self.ep.expect(iw.TERMINATE, SOON, skip=(iw.READ_RESP, iw.READ_REQ)).term
        if term.why not in whys:
            raise Failure(f"Terminate {term.why}, expected {whys}")
        layer, etype, _ = term.why
        if layer == 1:
            check(term.flags & 0xc0 == 0xc0, f"flags {term.flags:#x}: DDP errors name the segment")
        if (layer, etype) == (0, 1):
            request = term.ddp_header[1] & 15 == iw.READ_REQ
            equal(term.flags & 0xe0, 0xe0 if request else 0xc0, "flags: Read Requests with their RDMAP header")
        if layer == 2:
            equal(term.flags & 0xe0, 0, "flags")
        if headers:
            want = headers(self)
            same_bytes(term.ddp_header, want[:14 if want[0] & 0x80 else 18], "terminated DDP header")
            equal(term.length, len(want), "length of the terminated segment")
        try:
            self.ep.next(SOON)
        except iw.Closed as e:
            check(not e.reset, "reset behind the Terminate")
        else:
            raise Failure("something behind the Terminate")
        self.terms += 1
        self.ep.close()
        self.qp.event("qp_error")
        self.qp.done(1, "flushed")
        same_bytes(self.mr.get(0, 1000), bytes(1000), "memory of the device")
        self.qp.destroy()
        for mr in (self.mr, self.ro, *self.more):
            self.host.cmd(f"dereg {mr.id}")
        self.more.clear()

    def finish(self):
        self.t.note(f"{self.terms} errors")
        check(not self.failures, f"{len(self.failures)} errors were not answered right:\n" + "\n".join(self.failures))
        stats = self.host.stats()
        equal(stats["terminates_sent"], self.terms, "Terminates sent")
        info = self.host.cmd("info")
        equal((info["qps"], info["mrs"]), (0, 0), "QPs and MRs left")
        self.host.check_end()


def segment(make):
    """Sends one ULPDU, and expects its header back in the Terminate."""
    def act(b):
        b.ep.send_ulpdu(make(b))
    return act, make
