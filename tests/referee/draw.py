"""
Draws a conversation from a seed: how client and server set up their sockets, and blocks of calls. A block has one actor; before and
after it everything that was sent has arrived, so that the block's effect does not depend on time. Within a block nothing waits.

A direction is `rough` once more may be under way than the receiver's window holds for certain: from then on what of it has
arrived depends on buffers, which a gateway adds to. The player compares less there (see verdict.py), and blocks have one call.
"""
import random

SMALL = 30000		# bytes unread at most that fit into every window
OTHER = {"c": "s", "s": "c"}


class Conversation:
    """setup: of the sockets; blocks: [(side, [(op, arg)])]; rough: block number -> sides whose stream to read is rough then."""

    def __init__(self, seed, unix, local, urgent):
        self.seed, self.unix, self.local, self.urgent = seed, unix, local, urgent
        self.setup, self.blocks, self.rough = {}, [], []

    def lines(self):
        yield " ".join(f"{k}={v}" for k, v in sorted(self.setup.items()))
        for who, ops in self.blocks:
            yield f"{'client' if who == 'c' else 'server'}: " + ", ".join(op if arg is None else f"{op} {arg}" for op, arg in ops)


class _Half:
    """What the generator knows of a side."""

    def __init__(self, tiny):
        self.unread = 0			# bytes that wait for this side
        self.rough = tiny		# and how many is known no more
        self.tiny = tiny
        self.closed = self.wrote_end = self.shut_read = self.reset = False
        self.refuses = False	# its kernel answers data with a reset
        self.urgent = False		# an urgent byte is on its way to this side; ever
        self.urgent_ever = False


def _size(r):
    return r.choice((1, 2, 7, 100, 1000, 1460, 4096, 5000, 16000)) if r.random() < 0.7 else r.randint(1, 20000)


def draw(seed, unix=False, local=False, urgent=True):
    """unix: what is common to both families; local: of a client of libsmcrd-local.so, whose SO_LINGER 0 is no reset; urgent: urgent
    bytes are drawn, which UNIX sockets do not have."""
    r = random.Random(seed)
    conv = Conversation(seed, unix, local, urgent and not unix)
    tiny = {w: not unix and r.random() < 0.06 for w in "cs"}
    conv.setup = {"connect": r.choice(("plain", "plain", "bind", "nonblock")), "accept": "late" if r.random() < 0.2 else "soon"}
    for w in "cs":
        conv.setup["rcvbuf_" + w] = "tiny" if tiny[w] else "as it is"
        conv.setup["nodelay_" + w] = r.random() < 0.8
        conv.setup["inline_" + w] = r.random() < 0.5
    if not unix and r.random() < 0.015:
        conv.setup["accept"] = "refuse"
        return conv
    half = {w: _Half(tiny[w]) for w in "cs"}
    for number in range(r.randint(2, 9)):
        who = "c" if number == 0 and conv.setup["accept"] == "late" else r.choice("cs")
        if half[who].closed:
            who = OTHER[who]
        me, peer = half[who], half[OTHER[who]]
        # When a reset comes to a program with bytes unread on a rough direction depends on buffers, too.
        if me.closed or me.reset and (me.rough or peer.rough):
            break
        ops = []
        alone = me.rough or peer.rough or me.reset
        for _ in range(1 if alone else r.choice((1, 1, 2, 2, 3, 4))):
            # The peer's kernel may answer what is sent now: nothing of this side's is to depend on when.
            answered = peer.closed or peer.refuses
            if answered and ops or me.closed:
                break
            late = number == 0 and conv.setup["accept"] == "late"
            op = _draw_op(r, conv, who, me, peer, late)
            if op is None:
                break
            ops.append(op)
            if op[0] in ("stream", "duplex", "flood"):
                break
            if me.rough or peer.rough:
                break
        if ops:
            conv.blocks.append((who, ops))
            conv.rough.append({w: half[w].rough for w in "cs"})
    return conv


def _draw_op(r, conv, who, me, peer, late):
    kinds = [("send", 30), ("recv", 22), ("peek", 5), ("drain", 8), ("shut", 9), ("close", 7), ("linger", 4), ("kill", 3),
             ("pause", 3)]
    if not late:
        kinds += [("stream", 4), ("duplex", 3), ("flood", 4)]
        if conv.urgent:
            kinds += [("oob", 6), ("recvoob", 3)]
    kind = r.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
    if kind == "linger" and who == "c" and conv.local:
        kind = "close"
    alive = not (peer.closed or peer.refuses or me.wrote_end or me.reset)
    may_be_rough = alive and not (peer.urgent_ever or peer.shut_read)
    if kind == "send":
        n = _size(r)
        if alive:
            peer.unread += n
            if peer.unread > SMALL and not peer.rough:
                if not may_be_rough:
                    return None
                peer.rough = True
        elif peer.closed or peer.refuses:
            if peer.rough:		# the answer may come between two parts of it
                return None
            me.reset = True
        return kind, n
    if kind == "oob":
        # More than one at a time is urgent only as the sender's TCP happens to cut the stream.
        if peer.rough or peer.urgent or not alive or peer.unread > SMALL - 1000:
            return None
        n = r.choice((1, 1, 5, 1000))
        peer.unread += n
        peer.urgent = peer.urgent_ever = True
        return kind, n
    if kind in ("recv", "peek"):
        n = _size(r)
        if kind == "recv":
            me.unread = max(0, me.unread - n)
        return kind, n
    if kind == "drain":
        me.unread, me.urgent = 0, False
        return kind, None
    if kind == "pause":
        return kind, r.choice((1, 5, 30))
    if kind == "shut":
        if me.refuses:		# the peer's FIN would change the answer, and can be seen by nothing else
            return None
        how = "w" if conv.unix else r.choice(("r", "w", "w", "w", "rw"))
        if "r" in how:
            if me.rough:
                return None
            me.shut_read = True
        me.wrote_end = me.wrote_end or "w" in how
        me.refuses = me.shut_read and me.wrote_end
        return kind, how
    if kind in ("close", "linger", "kill"):
        me.closed = True
        if me.unread or kind == "linger":
            peer.reset = True
        return kind, None
    if kind in ("stream", "duplex"):
        back = not (me.shut_read or me.urgent_ever or me.refuses or peer.wrote_end or peer.reset)
        if not may_be_rough or kind == "duplex" and not back:
            return None
        peer.unread = 0
        if kind == "duplex":
            me.unread = 0
        return kind, r.choice((1, 50000, 65536, 200000, 1 << 20)) if r.random() < 0.5 else r.randint(1, 1 << 20)
    if kind == "flood":
        if not may_be_rough:
            return None
        peer.rough = True
        peer.unread += 1 << 20
        return kind, None
    return kind, None
