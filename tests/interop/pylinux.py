"""
A Linux host with AF_SMC, SMC-R version 1 over RoCE, in Python: both roles, with what it does differently from RFC 7609,
written from its packets (vectors of check_clc and check_llc have some) and what is known of its behaviour. It talks to an
engine in roce_host, in virtual time: nothing here waits, and a run is repeated exactly by its seed.

What it does by default is what Linux does; the attributes of Linux that are switches make it do more of that, or less.
"""
import os
import select
import struct
import subprocess

import pysmc as smc
from harness import PATIENCE, TOP_BUILD, Failure, check, pattern, same_bytes

ELEM = 65536			# size code 2, the default of Linux
FIRST_MS, WAIT_MS, SHORT_MS = 5000, 2000, 1000	# how long Linux waits: for the first message of an exchange, others, a Decline
ERR_REGBUF, NO_SERVER_LINK, TIMEOUT_CONFIRM_LINK = 0x09990003, 0x030b0000, 0x02010000


class Aborted(Exception):
    """The kernel's connection was reset."""


class Host:
    """roce_host: commands, events to listeners, and time."""

    def __init__(self, t, **settings):
        argv = [os.path.join(TOP_BUILD, "tests", "interop", "roce_host")] + [f"{k}={v}" for k, v in settings.items()]
        self.proc = t.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.inp, self.out = self.proc.popen.stdin, self.proc.popen.stdout
        self.now = 0		# microseconds
        self.events, self.on, self.logs = [], {}, []
        self.rest = b""
        self.names = 0
        check(self._line() == "ready", "roce_host starts")

    def _line(self):
        while b"\n" not in self.rest:
            if not select.select([self.out], [], [], 30 * PATIENCE)[0]:
                raise Failure("roce_host says nothing")
            got = os.read(self.out.fileno(), 1 << 20)
            if not got:
                raise Failure(f"roce_host ended: {self.proc.log()}")
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def name(self, what):
        self.names += 1
        return f"{what}{self.names}"

    def cmd(self, *words):
        self.inp.write((" ".join(w.hex() if isinstance(w, (bytes, bytearray)) else str(w) for w in words) + "\n").encode())
        self.inp.flush()
        while True:
            kind, _, rest = self._line().partition(" ")
            if kind == "ok":
                return rest
            if kind == "error":
                raise Failure(f"{' '.join(map(str, words))[:200]}: {rest}")
            if kind == "log":
                self.logs.append(rest)
                check("BREACH" not in rest, f"the engine keeps to the contract of its devices: {rest}")
            else:
                self.events.append((kind, *rest.split(" ", 1)))

    def handle(self):
        while self.events:
            kind, name, rest = self.events.pop(0)
            if name in self.on:
                self.on[name](kind, rest.strip())

    def step(self, until):
        """Time passes until something has happened, at most until then."""
        self.now = int(self.cmd("run", max(1, -(-(until - self.now) // 1000))))
        self.handle()

    def wait(self, what, fn, ms=8000):
        got = self.within(fn, ms)
        if not got:
            raise Failure(f"not within {ms} ms: {what}")
        return got

    def within(self, fn, ms):
        """What fn gives once it is true, or something false after this time."""
        end = self.now + ms * 1000
        self.handle()
        while not (got := fn()) and self.now < end:
            self.step(end)
        return got

    def idle(self, ms):
        self.within(lambda: False, ms)

    def idle_us(self, us):
        """Less than a millisecond."""
        self.now = int(self.cmd("sleep", us))
        self.handle()

    def counter(self, name):
        return int(self.cmd("counter", name))

    def groups(self):
        """(id, role, state, type, connections) of each of the engine's."""
        return [tuple(g.split("/")) for g in self.cmd("groups").split()]

    def links(self):
        """(number, state, connections) of each link that is active."""
        got = [x.split("/") for x in self.cmd("links").split()]
        return [(int(n), state, int(conns)) for _, n, state, conns in got]

    def end(self):
        """Everything ends: nothing may be left."""
        left = self.cmd("end")
        check(left == "breaches=0 qp=0 mr=0 pd=0", f"left behind: {left}")


class App:
    """One connection of the engine with the program behind it, which echoes, or sends given data."""

    def __init__(self, host, role, echo=True, elem=ELEM, at=()):
        self.host, self.role, self.echo = host, role, echo
        self.name = host.name("app")
        self.clc, self.got, self.out = b"", b"", b""
        self.urgent = []		# positions of urgent bytes
        self.state, self.why = "setup", ""
        self.eof = self.closing = self.ended = False
        self.reading = True
        host.on[self.name] = self._event
        host.cmd("open", self.name, role, elem, *at)

    def _event(self, kind, rest):
        if kind == "clc":
            self.clc += bytes.fromhex(rest)
            return
        what, _, self.why = rest.partition(" ")
        if what == "proposal":
            self.host.cmd("admit", self.name)
        elif what in ("established", "fallback", "closed"):
            self.state = what
        if self.state == "established":
            self.work()

    # -- the middle --

    def clc_send(self, data):
        self.host.cmd("clc", self.name, data)

    def clc_read(self, ms=10000):
        def whole():
            return len(self.clc) >= 8 and len(self.clc) >= struct.unpack(">H", self.clc[5:7])[0]
        self.host.wait("a CLC message", whole, ms)
        n = struct.unpack(">H", self.clc[5:7])[0]
        m, self.clc = smc.clc_decode(self.clc[:n]), self.clc[n:]
        if m.type == smc.DECLINE:
            raise smc.Declined(m)
        return m

    def tcp(self, what):
        """FIN or RST of Linux, once."""
        ended, self.ended = self.ended, True
        if not ended and self.state != "closed":
            self.host.cmd("tcp", self.name, what)

    # -- the program --

    def work(self):
        while self.reading and not self.eof:
            flags, _, data = self.host.cmd("take", self.name, 1 << 20).partition(" ")
            data = bytes.fromhex(data)
            self.eof = "e" in flags
            self.got += data
            if "u" in flags:
                self.urgent.append(len(self.got) - 1)
            if self.echo:
                self.out += data
            if not data:
                break
        while self.out:
            n = int(self.host.cmd("put", self.name, self.out[:65536]))
            self.out = self.out[n:]
            if not n:
                return
        if self.eof and self.echo and not self.closing:
            self.finish()

    def put(self, data, urgent=False):
        if urgent:
            check(self.host.cmd("put", self.name, data, "urgent") == str(len(data)), "room for urgent data")
            return
        self.out += data
        self.work()

    def finish(self):
        """shutdown(); and close(), once the other end has done so."""
        self.host.cmd("shut", self.name)
        if self.eof:
            self.closing = True
            self.host.cmd("close", self.name)

    def close(self):
        self.closing = True
        self.host.cmd("close", self.name)

    def abort(self):
        self.host.cmd("abort", self.name)

    def release(self):
        self.host.on.pop(self.name)
        self.host.cmd("release", self.name)


class Card:
    def __init__(self, host, nr, engine=False):
        """nr: of the network that it is in. The addresses are made as in the captures."""
        last = 0x62 if engine else 0x61
        self.name = f"{'e' if engine else 'p'}{nr}"
        self.mac = bytes((0x52, 0x54, 0, nr, 0, last))
        self.gid = bytes.fromhex("fe80000000000000") + bytes((0x50, 0x54, 0, 0xff, 0xfe, nr, 0, last))
        host.cmd("card", self.name, "engine" if engine else "peer", self.gid, self.mac, "v1")


class Rmb:
    """A receive buffer: one element, under a key for each link."""

    def __init__(self, host, size):
        self.host, self.size = host, size
        self.name = host.name("rmb")
        self.keys = {}		# link -> (rkey, address)
        self.used = True
        host.cmd("buf", self.name, size)

    def register(self, link):
        if link not in self.keys:
            self.keys[link] = tuple(map(int, self.host.cmd("reg", link.name, self.name).split()))
        return self.keys[link]


class Link:
    """A queue pair of the kernel's."""

    def __init__(self, group, card, number=0):
        self.group, self.card, self.number = group, card, number
        self.host = group.host
        self.name = self.host.name("qp")
        self.qpn, self.psn = map(int, self.host.cmd("qp", self.name, card.name).split())
        self.uid = group.uid = group.uid + 1
        self.peer = None	# gid, mac, qpn of the far end
        self.active = self.dead = False
        self.pending = []	# what to do at the completion of each request
        self.host.on[self.name] = self._event

    def connect(self, gid, mac, qpn, psn):
        self.peer = (gid, mac, qpn)
        self.host.cmd("connect", self.name, "active" if self.group.client else "passive", gid, mac, qpn, psn)

    def send(self, msg, done=None):
        self.pending.append(done)
        self.host.cmd("send", self.name, msg)

    def write(self, key, data):
        self.pending.append(None)
        self.host.cmd("write", self.name, key[0], key[1], data)

    def kill(self):
        """smcr_link_clear: the queue pair is destroyed, its memory unmapped."""
        if self.dead:
            return
        self.dead, self.active = True, False
        self.host.on.pop(self.name)
        self.host.cmd("kill", self.name)
        self.group.links.remove(self)
        for rmb in self.group.rmbs:
            rmb.keys.pop(self, None)
        for token in self.group.rtokens:
            token.pop(self, None)

    def _event(self, kind, rest):
        if kind == "recv":
            data = bytes.fromhex(rest)
            if data[0] == smc.CDC:
                self.group.on_cdc(self, smc.Cdc.decode(data))
            else:
                self.group.on_llc(self, smc.Llc(data))
        elif kind == "wc":
            done = self.pending.pop(0)
            if rest.endswith(" ok"):
                if done:
                    done()
            else:
                self.group.errors.append(rest)
        elif kind == "down":
            self.group.errors.append(rest)
            self.group.link_down(self)


class Group:
    """A link group of the kernel's, with the exchanges that it has with its peer."""

    def __init__(self, linux, client):
        self.linux, self.client, self.host = linux, client, linux.host
        self.uid = 0x100
        self.links, self.rmbs, self.conns = [], [], {}
        self.rtokens = []	# of the peer: {link: (rkey, address)}
        self.llc_log = []	# (link, message) that came
        self.cdc_log = []	# (link, message)
        self.errors = []	# requests and links that failed
        self.adding = None	# client: the link that is being added
        self.deleting = set()	# numbers of links whose deletion waits for an answer
        self.dead = self.waited = False
        self.unknown = 0	# CDC messages for unknown tokens

    def active(self):
        return [x for x in self.links if x.active]

    def by_number(self, number):
        return next((x for x in self.links if x.number == number), None)

    def new_link(self, card, number=0):
        link = Link(self, card, number)
        self.links.append(link)
        return link

    # -- memory --

    def add_token(self, link, rkey, vaddr):
        """smc_rtoken_add: one that is known, or a new one."""
        for token in self.rtokens:
            if token.get(link) == (rkey, vaddr):
                return token
        self.rtokens.append({link: (rkey, vaddr)})
        return self.rtokens[-1]

    def get_rmb(self, link, first):
        """A buffer that is free, or a new one; its keys for all links are confirmed, each time. None: refused."""
        rmb = next((r for r in self.rmbs if not r.used), None)
        if rmb is None:
            rmb = Rmb(self.host, ELEM)
            self.rmbs.append(rmb)
        rmb.used = True
        self.host.cmd("zero", rmb.name)
        rmb.register(link)
        if first:
            return rmb
        links = self.active()
        for x in links:
            rmb.register(x)
        over = links[0]
        others = [(x.number, *rmb.keys[x]) for x in links[1:]]
        m = self.ask(over, smc.CONFIRM_RKEY, smc.llc_confirm_rkey(*rmb.keys[over], others=others))
        if m is None or m.negative:
            rmb.used = False
            return None
        return rmb

    def put_rmb(self, rmb):
        """smcr_buf_unuse: DELETE RKEY; with or without the peer's consent the buffer is free for the next one."""
        if not self.dead and self.active():
            over = self.active()[0]
            over.send(smc.llc_delete_rkey([rmb.keys[over][0]]))
        rmb.used = False

    # -- LLC --

    def llc_count(self, type, response=None):
        return len([m for _, m in self.llc_log if m.type == type and response in (None, m.response)])

    def ask(self, link, type, msg, ms=WAIT_MS):
        """Sends a request: the response, or None when it does not come in time."""
        before = len(self.llc_log)
        link.send(msg)
        return self.host.within(lambda: next((m for _, m in self.llc_log[before:]
                                              if m.type == type and m.response), None), ms)

    def on_llc(self, link, m):
        self.llc_log.append((link, m))
        if self.linux.deaf_to and self.linux.deaf_to(m):
            return
        if m.response:
            if m.type == smc.DELETE_LINK:
                self.deleting.discard(m.number)
            return
        if m.type == smc.TEST_LINK:
            link.send(smc.llc_test_link(m.data, response=True))
        elif m.type == smc.CONFIRM_RKEY and self.linux.full:
            link.send(smc.as_response(m, smc.NEGATIVE))
        elif m.type == smc.CONFIRM_RKEY:
            token = self.add_token(link, m.rkey, m.vaddr)
            for number, rkey, vaddr in m.others:
                if self.by_number(number):
                    token[self.by_number(number)] = (rkey, vaddr)
            link.send(smc.as_response(m))
        elif m.type == smc.DELETE_RKEY:
            for rkey in m.rkeys:
                self.rtokens = [t for t in self.rtokens if t.get(link, (None,))[0] != rkey]
            link.send(smc.as_response(m))
        elif m.type == smc.CONFIRM_LINK:
            self.confirm_link(link, m)
        elif m.type == smc.ADD_LINK and self.client:
            self.add_link_asked(link, m)
        elif m.type == smc.ADD_LINK_CONT and self.client:
            self.cont_asked(link, m)
        elif m.type == smc.DELETE_LINK:
            self.delete_link_asked(link, m)

    def confirm_link_msg(self, link, response):
        return smc.llc_confirm_link(link.card.mac, link.card.gid, link.qpn, link.number, link.uid, response=response)

    def check_confirm(self, link, m):
        check((m.gid, m.mac, m.qpn) == link.peer, f"CONFIRM LINK names the link: {m}")
        check(m.flags & smc.NO_EYECATCHER == smc.NO_EYECATCHER, "no eye catcher: Linux declines it")

    def confirm_link(self, link, m):
        self.check_confirm(link, m)
        self.host.cmd("rts", link.name)
        link.number = m.number
        link.active = True
        link.send(self.confirm_link_msg(link, True))
        if self.adding is link:
            self.adding = None

    # ADD LINK, as the client: message by message.

    def add_link_asked(self, link, m):
        card = self.linux.other_card([x.card for x in self.links])
        if card is None and any((x.peer[0], x.peer[1]) == (m.gid, m.mac) for x in self.links):
            link.send(m.raw[:2] + b"\1" + bytes((m.flags | smc.RESPONSE | smc.REJECTED,)) + m.raw[4:])
            return
        new = self.adding = self.new_link(card or link.card, m.number)
        new.connect(m.gid, m.mac, m.qpn, m.psn)
        link.send(smc.llc_add_link(new.card.mac, new.card.gid, new.qpn, m.number, 3, new.psn, smc.RESPONSE))
        self.cont = self.cont_messages(link, new)

    def cont_messages(self, link, new):
        """Each ADD LINK CONTINUATION of ours, in turn. Linux counts connections, then finds as many buffers as there are."""
        rmbs, todo = [r for r in self.rmbs if r.used], len(self.conns) + self.linux.uncounted
        while True:
            count, pairs = todo, []
            for _ in range(min(todo, 2)):
                if not rmbs:
                    count, todo = count - todo, 0
                    break
                rmb = rmbs.pop(0)
                pairs.append((rmb.keys[link][0], *rmb.register(new)))
                todo -= 1
            yield smc.llc_add_cont(new.number, count, pairs)

    def take_pairs(self, link, new, m):
        for old, rkey, vaddr in m.pairs:
            token = next((t for t in self.rtokens if t.get(link, (None,))[0] == old), None)
            check(token is not None, f"ADD LINK CONTINUATION names a key that is not known: {old:#x}")
            token[new] = (rkey, vaddr)

    def cont_asked(self, link, m):
        if self.adding is None:
            return
        self.take_pairs(link, self.adding, m)
        msg = next(self.cont)
        link.send(msg[:3] + bytes((smc.RESPONSE,)) + msg[4:])

    # ... and as the server: from the beginning to the end.

    def add_link(self, number=None, confirm=True):
        """smc_llc_srv_add_link: the new link, or None when the client has rejected it or it failed."""
        link = self.active()[0]
        card = self.linux.other_card([x.card for x in self.links]) or link.card
        number = number or max(x.number for x in self.links) + 1
        new = self.new_link(card, number)
        m = self.ask(link, smc.ADD_LINK, smc.llc_add_link(card.mac, card.gid, new.qpn, number, 3, new.psn), FIRST_MS)
        if m is None or m.rejected:
            new.kill()
            return None
        new.connect(m.gid, m.mac, m.qpn, m.psn)
        msgs, left, theirs = self.cont_messages(link, new), None, 0
        while left is None or left > 0 or theirs > 0:
            msg = next(msgs)
            m = self.ask(link, smc.ADD_LINK_CONT, msg)
            check(m is not None, "an answer to ADD LINK CONTINUATION in 2 s")
            self.take_pairs(link, new, m)
            left = max(0, msg[5] - 2)
            theirs = max(0, m.left - 2)
        if not confirm:
            return new
        m = self.ask(new, smc.CONFIRM_LINK, self.confirm_link_msg(new, False))
        if m is None:
            self.send_delete(link, number)
            new.kill()
            return None
        self.check_confirm(new, m)
        new.active = True
        return new

    def invite(self, card):
        """smc_llc_cli_add_link_invite: an ADD LINK that has a card, and nothing else."""
        self.active()[0].send(smc.llc_add_link(card.mac, card.gid, 0, 0, 0, 0))

    # DELETE LINK

    def send_delete(self, over, number, orderly=True, reason=smc.LOST_PATH):
        if not self.client:
            self.deleting.add(number)
        over.send(smc.llc_delete_link(number, reason, orderly=orderly))

    def delete_link_asked(self, link, m):
        """smc_llc_process_cli_delete_link, smc_llc_process_srv_delete_link."""
        if m.all:
            self.terminate()
            return
        gone = self.by_number(m.number)
        if self.client:
            reason = smc.UNKNOWN_LINK if gone is None else m.reason
            link.send(smc.llc(smc.DELETE_LINK, m.flags | smc.RESPONSE, struct.pack(">BI", m.number, reason)))
            if gone is not None:
                self.move_all(gone, link)
                gone.kill()
        elif gone is not None or m.number in self.deleting:
            # A request of the client is answered by our own; one for a link that is not known, by nothing.
            if m.number not in self.deleting:
                over = next(x for x in self.active() if x is not gone)
                self.move_all(gone, over)
                gone.kill()
                self.send_delete(over, m.number, reason=m.reason)

    def move_all(self, gone, over):
        for conn in self.conns.values():
            if conn.link is gone:
                conn.move(over)

    def link_down(self, link, tell=True):
        """smcr_link_down"""
        if link.dead:
            return
        link.active = False
        others = self.active()
        if not others:
            link.kill()
            self.terminate()
            return
        self.move_all(link, others[0])
        number = link.number
        link.kill()	# Linux tells first; that the queue pair is gone by then is the harder case
        if tell:
            self.send_delete(others[0], number)

    def terminate(self):
        self.dead = True
        for conn in list(self.conns.values()):
            conn.dead = True
        for link in list(self.links):
            link.kill()

    # -- CDC --

    def on_cdc(self, link, m):
        self.cdc_log.append((link, m))
        conn = self.conns.get(m.token)
        if conn is None:
            self.unknown += 1
        else:
            conn.on_cdc(link, m)


def ahead(a, b):
    return ((a - b + 0x8000) & 0xffff) - 0x8000


class Conn:
    """A connection of the kernel's. Its program reads and writes by recv() and send()."""

    def __init__(self, group, link, app, rmb, token):
        self.group, self.link, self.app, self.rmb, self.token = group, link, app, rmb, token
        self.host = group.host
        self.peer_token = self.size = self.rtoken = None
        self.stream = b""		# all that was sent
        self.sent = self.acked = 0
        self.seq = self.fin_seq = self.fin_pos = 0
        self.rx_seq = 0
        self.prod, self.cons = (0, 0), (0, 0)	# as the peer said last
        self.to_rcv = self.tail = self.told = 0
        self.peer_flags = self.peer_state = self.state = 0
        self.urgent = None
        self.aborted = self.dead = self.closed = False
        self.moves = 0
        group.conns[token] = self

    # -- what comes --

    @staticmethod
    def later(old, new):
        """Does Linux take this cursor? It looks at the wrap count as a number, but for 0."""
        return not (old[0] > new[0] and new[0] != 0) and not (old[0] == new[0] and old[1] > new[1])

    @staticmethod
    def diff(size, old, new):
        """smc_curs_diff"""
        return max(0, size - old[1] + new[1]) if old[0] != new[0] else max(0, new[1] - old[1])

    def on_cdc(self, link, m):
        if m.flags & smc.FAILOVER:
            if ahead(m.seq, self.rx_seq) > 0:
                self.host.logs.append("F beyond what came")
                self.abort()
            return
        if ahead(m.seq, self.rx_seq) < 0:
            return
        self.rx_seq = m.seq
        if self.later(self.cons, m.cons):
            self.acked += self.diff(self.size, self.cons, m.cons)
            self.cons = m.cons
        if self.later(self.prod, m.prod):
            self.to_rcv += self.diff(self.rmb.size, self.prod, m.prod)
            self.prod = m.prod
        check(self.acked <= self.sent, f"{m}: consumed {self.acked}, sent {self.sent}")
        check(self.to_rcv <= self.rmb.size, f"{m}: {self.to_rcv} bytes to be received in {self.rmb.size}")
        self.peer_flags = m.flags
        if m.flags & smc.URGENT_PRESENT:
            self.urgent = self.tail + self.to_rcv
        self.peer_state |= m.state
        # smc_close_passive_abort_received: a program that still has it open answers when it closes it.
        self.aborted = self.aborted or bool(m.state & smc.ABORT)
        self.maybe_done()

    # -- what goes --

    def cursor(self, pos, size):
        return (pos // size & 0xffff, pos % size)

    def cdc(self, flags=0):
        self.seq = self.seq + 1 & 0xffff
        seq, pos = self.seq - 1, self.sent

        def complete():
            self.fin_seq, self.fin_pos = seq & 0xffff, pos
        self.told = self.tail
        self.link.send(smc.Cdc(self.seq, self.peer_token, self.cursor(self.sent, self.size),
                               self.cursor(self.tail, self.rmb.size), flags, self.state).encode(), complete)

    def write(self, pos, data):
        rkey, vaddr = self.rtoken[self.link]
        at = pos % self.size
        first = min(len(data), self.size - at)
        self.link.write((rkey, vaddr + at), data[:first])
        if data[first:]:
            self.link.write((rkey, vaddr), data[first:])

    def is_open(self):
        return not self.dead and not self.aborted

    def send(self, data, flags=0):
        """Window by window."""
        while data:
            room = self.host.wait("window", lambda: not self.is_open() or self.size - (self.sent - self.acked))
            if not self.is_open():
                raise Aborted()
            now, data = data[:room], data[room:]
            self.stream += now
            self.write(self.sent, now)
            self.sent += len(now)
            self.cdc(flags if not data else smc.WRITE_BLOCKED)

    def take(self, most):
        n = min(most, self.to_rcv)
        at, size = self.tail % self.rmb.size, self.rmb.size
        data = b""
        for off, length in ((at, min(n, size - at)), (0, n - min(n, size - at))):
            if length:
                data += bytes.fromhex(self.host.cmd("get", self.rmb.name, off, length).split()[-1])
        self.tail += n
        self.to_rcv -= n
        if self.urgent is not None and self.tail >= self.urgent:
            self.urgent = None
            self.cdc()
        else:
            self.update()
        return data

    def update(self):
        """smc_tx_consumer_update"""
        if not self.is_open() or self.state & smc.CLOSED or self.link.dead:
            return
        news, size = self.tail - self.told, self.rmb.size
        free = size - (self.tail + self.to_rcv - self.told)
        if self.peer_flags & smc.UPDATE_REQUESTED or (
                news > max(size // 10, 2304) and (free <= size // 2 or self.peer_flags & smc.WRITE_BLOCKED)):
            self.cdc()

    def recv(self, n, ms=8000):
        """n bytes, or what there is before the end."""
        out = b""
        while len(out) < n:
            self.host.wait(f"{n} bytes, {len(out)} are there", lambda: self.to_rcv or self.peer_state or not self.is_open(), ms)
            if not self.to_rcv:
                if not self.is_open():
                    raise Aborted()
                break
            out += self.take(n - len(out))
        return out

    def echo(self, n, seed=0):
        """n bytes there and back."""
        data = pattern(n, seed or self.sent & 0xffff)
        back = b""
        while data[len(back):]:
            chunk = data[len(back):len(back) + self.size // 2]
            self.send(chunk)
            got = self.recv(len(chunk))
            same_bytes(got, chunk, "echo")
            back += got

    # -- the end --

    def shutdown(self):
        """The kernel ends its half of the middle with it."""
        self.state |= smc.DONE
        self.cdc()
        self.app.tcp("fin")

    def close(self):
        """close(): with unread data, or after the peer's A, that is an abort. The kernel waits for the peer's C or A."""
        if self.closed or self.state & smc.CLOSED:
            return
        if self.to_rcv or self.aborted:
            self.abort()
            return
        self.state |= smc.CLOSED
        self.cdc()
        self.app.tcp("fin")
        self.maybe_done()

    def abort(self):
        """A, by SO_LINGER or by answer."""
        if not self.dead and not self.state & (smc.CLOSED | smc.ABORT):
            self.state |= smc.ABORT
            self.cdc()
            self.app.tcp("fin")	# the middle ends as ever, not by RST
        self.maybe_done()

    def maybe_done(self):
        """The end, once both have said so."""
        last = smc.CLOSED | smc.ABORT
        if self.closed or not (self.dead or (self.state & last and self.peer_state & last)):
            return
        self.closed = True
        self.group.conns.pop(self.token, None)
        self.group.put_rmb(self.rmb)

    # -- moving --

    def move(self, link):
        """smc_switch_conns: a connection whose end has begun goes on over another link, and asks nothing."""
        old_seq, old_pos = self.fin_seq, self.fin_pos
        self.link = link
        self.moves += 1
        if (self.state | self.peer_state) and self.group.linux.moves_unasked:
            return
        link.send(smc.Cdc(old_seq, self.peer_token, flags=smc.FAILOVER).encode())
        if old_pos < self.sent or old_seq != (self.seq - 1 & 0xffff):
            if old_pos < self.sent:
                self.write(old_pos, self.stream[old_pos:self.sent])
            self.cdc()


class Linux:
    """The host. Switches: see __init__."""

    def __init__(self, host, cards=1):
        self.host = host
        self.cards = [Card(host, nr + 1) for nr in range(cards)]
        self.sysid = bytes((0xe3, 0x91)) + self.cards[0].mac
        self.groups = []
        self.tokens = 0
        self.moves_unasked = True	# closing connections move without F
        self.uncounted = 0		# connections that have no buffer (yet), which ADD LINK CONTINUATION counts
        self.deaf_to = None		# fn(message): dropped, as it comes across an exchange of its own
        self.full = False		# its table of the peer's RTokens: CONFIRM RKEY is refused
        self.favourite = None		# server: the number of the link that Accepts name; None: that with the fewest connections

    def other_card(self, used):
        return next((c for c in self.cards if c not in used), None)

    def token(self):
        self.tokens += 1
        return self.tokens

    def group(self, client):
        return next((g for g in self.groups if g.client == client and not g.dead and g.active()), None)

    def proposal(self):
        """As in a-first-contact-v1: of version 2, with an area for SMC-D that says nothing."""
        return smc.clc_proposal(self.sysid, self.cards[0].gid, self.cards[0].mac, (bytes((10, 99, 1, 0)), 24),
                                growth=bytes(40), low=8, version=2)

    def clc(self, type, conn, first):
        link, (rkey, vaddr) = conn.link, conn.rmb.keys[conn.link]
        return smc.clc_accept(type, self.sysid, link.card.gid, link.card.mac, link.qpn, rkey, 1, conn.token, 2, 3, vaddr,
                              link.psn, first=first)

    def decline(self, app, diag, sync=False):
        app.clc_send(smc.clc_decline(self.sysid, diag, out_of_sync=sync))

    def told(self, conn, m, link):
        """smc_rmb_rtoken_handling, of an Accept or a Confirm."""
        conn.peer_token, conn.size = m.token, m.elem_size
        check(m.idx >= 1, "an element")
        vaddr = m.vaddr + m.elem_size * (m.idx - 1)
        token = conn.group.add_token(link, m.rkey, m.vaddr)
        conn.rtoken = Offset(token, vaddr - m.vaddr)

    # -- as the client --

    def connect(self, **app):
        """A connection to the engine's server: a Conn."""
        app = App(self.host, "server", **app)
        app.clc_send(self.proposal())
        m = app.clc_read()
        check(m.ext is None and m.version == 1, f"an Accept as Linux knows it: {m}")
        conn = self.first_client(app, m) if m.first else self.next_client(app, m)
        if conn:
            self.host.wait("established", lambda: app.state != "setup")
            check(app.state == "established", f"{app.state}: {app.why}")
        return conn

    def first_client(self, app, m):
        group = Group(self, client=True)
        self.groups.append(group)
        link = group.new_link(self.cards[0])
        rmb = group.get_rmb(link, True)
        conn = Conn(group, link, app, rmb, self.token())
        self.told(conn, m, link)
        link.connect(m.gid, m.mac, m.qpn, m.psn)
        app.clc_send(self.clc(smc.CONFIRM, conn, True))
        if not self.host.within(lambda: link.active, WAIT_MS):
            self.decline(app, TIMEOUT_CONFIRM_LINK)
            raise Failure("no CONFIRM LINK in 2 s")
        if not self.host.within(lambda: group.llc_count(smc.ADD_LINK), WAIT_MS):
            group.waited = True
            self.host.idle(SHORT_MS)
        self.host.within(lambda: group.adding is None, FIRST_MS)
        return conn

    def lost_client(self, at):
        """A connection whose first contact fails, as no RoCE packet arrives. Milliseconds until its program goes on."""
        app, start = App(self.host, "server", at=at), self.host.now
        app.clc_send(self.proposal())
        try:
            group, m = Group(self, client=True), app.clc_read()
            link = group.new_link(self.cards[0])
            conn = Conn(group, link, app, group.get_rmb(link, True), self.token())
            link.connect(m.gid, m.mac, m.qpn, m.psn)
            app.clc_send(self.clc(smc.CONFIRM, conn, True))
            check(not self.host.within(lambda: link.active, WAIT_MS), "no CONFIRM LINK arrives")
            self.gives_up(app, link)
        except smc.Declined:
            pass
        return self.goes_on(app, start)

    def gives_up(self, app, link):
        """A Decline of the peer's is looked for, then the link is taken apart, then the Decline of our own."""
        self.host.within(lambda: app.clc, SHORT_MS)
        declined, app.clc = bool(app.clc), b""
        link.kill()
        self.host.idle(SHORT_MS)
        if not declined:
            check(not app.clc, "no Decline that the program would get")
            self.decline(app, TIMEOUT_CONFIRM_LINK)

    def goes_on(self, app, start):
        app.clc_send(b"a line of the program")
        self.host.wait(f"fallback; {app.state} {app.why}", lambda: app.state == "fallback")
        app.release()
        return (self.host.now - start) // 1000

    def next_client(self, app, m):
        group = self.group(True)
        link = group and next((x for x in group.active() if x.peer == (m.gid, m.mac, m.qpn)), None)
        if not link:
            self.decline(app, NO_SERVER_LINK)
            raise Failure(f"{m} names a link that is not there")
        rmb = group.get_rmb(link, False)
        if rmb is None:
            self.decline(app, ERR_REGBUF)
            self.host.wait("fallback", lambda: app.state == "fallback")
            return None
        conn = Conn(group, link, app, rmb, self.token())
        self.told(conn, m, link)
        app.clc_send(self.clc(smc.CONFIRM, conn, False))
        return conn

    # -- as the server --

    def accept(self, **app):
        """A connection of the engine's client: a Conn."""
        app = App(self.host, "client", **app)
        m = app.clc_read()
        check(m.type == smc.PROPOSAL and m.subnet == (bytes((10, 99, 1, 0)), 24), f"a Proposal: {m}")
        check(m.ext is None, "no smcrd speaks")
        group = self.group(False)
        conn = self.next_server(app, group) if group else self.first_server(app)
        if conn:
            self.host.wait("established", lambda: app.state != "setup")
            check(app.state == "established", f"{app.state}: {app.why}")
        return conn

    def first_server(self, app):
        group = Group(self, client=False)
        self.groups.append(group)
        link = group.new_link(self.cards[0], 1)
        conn = Conn(group, link, app, group.get_rmb(link, True), self.token())
        app.clc_send(self.clc(smc.ACCEPT, conn, True))
        m = app.clc_read()
        self.told(conn, m, link)
        link.connect(m.gid, m.mac, m.qpn, m.psn)
        answer = group.ask(link, smc.CONFIRM_LINK, group.confirm_link_msg(link, False), FIRST_MS)
        check(answer is not None, "an answer to CONFIRM LINK")
        group.check_confirm(link, answer)
        link.active = True
        group.add_link()
        return conn

    def lost_server(self, at):
        """As lost_client."""
        app, start = App(self.host, "client", at=at), self.host.now
        try:
            app.clc_read()
            group = Group(self, client=False)
            link = group.new_link(self.cards[0], 1)
            conn = Conn(group, link, app, group.get_rmb(link, True), self.token())
            app.clc_send(self.clc(smc.ACCEPT, conn, True))
            m = app.clc_read()
            link.connect(m.gid, m.mac, m.qpn, m.psn)
            check(not group.ask(link, smc.CONFIRM_LINK, group.confirm_link_msg(link, False), FIRST_MS), "no answer arrives")
            self.gives_up(app, link)
        except smc.Declined:
            pass
        return self.goes_on(app, start)

    def next_server(self, app, group):
        link = group.by_number(self.favourite) or min(
            group.active(), key=lambda x: len([c for c in group.conns.values() if c.link is x]))
        rmb = group.get_rmb(link, False)
        if rmb is None:
            self.decline(app, ERR_REGBUF)
            self.host.wait("fallback", lambda: app.state == "fallback")
            return None
        conn = Conn(group, link, app, rmb, self.token())
        app.clc_send(self.clc(smc.ACCEPT, conn, False))
        try:
            m = app.clc_read()
        except smc.Declined:
            group.conns.pop(conn.token)
            group.put_rmb(rmb)
            raise
        self.told(conn, m, link)	# whatever link the Confirm names, its key is taken for one of ours
        return conn


class Offset:
    """An element behind the beginning of an RMB: {link: (rkey, address)} of it."""

    def __init__(self, token, offset):
        self.token, self.offset = token, offset

    def __getitem__(self, link):
        rkey, vaddr = self.token[link]
        return rkey, vaddr + self.offset
