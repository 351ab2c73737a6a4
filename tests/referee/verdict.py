"""
What two runs of a conversation have to have in common: everything that a Step has. What may differ, and why:

- connect() to a port without a server fails directly. A gateway has accepted before it can know: the connection is reset then.
- A client that resets before the server has accepted, and has sent nothing, never comes to the server. Directly it has a place in
  the queue; a gateway that connects to the server because of it would do so for no client.
- On a rough direction (draw.py) how much has arrived: a gateway has buffers of its own. The player compares the bytes with those
  that were sent, and the end of the stream with its kind, once all is read; not when they come.
- On such a direction a reset may find bytes and FIN that wait for the reader's window. Directly they are lost, and the reader has ECONNRESET;
  a gateway has taken them, so the reader has all bytes and their end, and the reset behind it.
- Whether a socket can be written while more is under way than a window holds, for the same reason.
- On TCP in TLS an urgent byte is an ordinary one, as a TLS stream has no mark; it is not drawn.

On UNIX legs, where a gateway has TCP's notion of a connection (doc/daemon.md, "UNIX sockets"):

- A peer that closes ends its stream, as shutdown(SHUT_WR) would: EOF and POLLRDHUP, but no POLLHUP yet.
- So a write after that may be taken, and fails later; then what the other side had sent before may be lost, and the end may
  be an error, as on TCP.
- A reset is an error only to a program of whose bytes the gateway has some unread; to others it is an end.
- Of a client of libsmcrd-local.so, SO_LINGER 0 is no reset; it is not drawn. shutdown() behind a reset does not fail. Urgent data is
  check_local.py's.
- Of a side that shuts its writing and then closes with bytes unread, TCP's reader has the end; the reset is for later calls. A UNIX
  socket's reader has ECONNRESET and then the end, and all bytes before as well. So has a client of libsmcrd-local.so. Its server has
  ECONNRESET if the client made both calls at once: its gateway sees only the reset.
- shutdown(SHUT_RD) refuses the other side's writes, which TCP cannot; it is not drawn. SO_LINGER has no meaning there.
"""


def fits(one, other, conv):
    """Is `other` a step that may be seen where `one` was seen directly?"""
    if one.what != other.what or len(one.says) != len(other.says):
        return False
    if not conv.unix:
        if one.says == ("ECONNRESET",) and other.says == ("end",):		# all bytes, or it would be "end after"
            return one.what.startswith("end ") and bool(conv.rough) and conv.rough[-1][one.what[4:]] and one.sees == other.sees
        return one.says == other.says and one.sees == other.sees
    who = one.what[-1]
    says = all(conv.local and (_local_says(a, b) or _reset_first(who, a, b, conv)) or _unix_says(a, b, other.late)
               for a, b in zip(one.says, other.says))
    return says and all(_unix_sees(one.sees[w], other.sees.get(w)) for w in one.sees)


def _local_says(one, other):
    """Directly it is TCP's answer to a reset, here that of a UNIX socket."""
    return (one, other) in (("0 ECONNRESET", "0 EPIPE"), ("ENOTCONN", "w"))


def _reset_first(who, one, other, conv):
    """Directly this side reads an end, here the reset behind it."""
    behind = (one, other) == ("0:00000000", "ECONNRESET") or one.endswith("end") and other == one[:-3] + "ECONNRESET"
    return behind and _resets_behind_end(who, conv)


def _resets_behind_end(who, conv):
    """The side that this one reads from shuts its writing, and may close with bytes unread."""
    if who == "s":
        return any(w == "c" and ("shut", "w") in ops and ops[-1][0] in ("close", "kill") for w, ops in conv.blocks)
    ops = [op for w, block in conv.blocks if w == "s" for op, _ in block]
    return "shut" in ops and ops[-1] in ("close", "linger", "kill") and conv.rough[-1]["s"]


def _unix_says(one, other, late):
    if one == other or one == "0 EPIPE" and (other.isdigit() or other == "0 ECONNRESET"):
        return True
    if one in ("EPIPE", "ECONNRESET") and other in ("EPIPE", "ECONNRESET", "sent"):
        return True
    if one.endswith("ECONNRESET"):
        return other == one.replace("ECONNRESET", "end") or other.startswith("end after") or other == "0:00000000"
    if late and one == "0:00000000":
        return other == "ECONNRESET"
    return late and one.endswith("end") and (other == one.replace("end", "ECONNRESET") or other.startswith("end after"))


def _unix_sees(one, other):
    if one is None or other is None:
        return one is other

    def coarse(seen):
        words = seen[0].split()
        return "in" in words, "hup" in words or "rdhup" in words, seen[1]
    return coarse(one) == coarse(other)


def refused(run):
    """Does the client see that there is no server?"""
    says = run[0].says if len(run) == 1 else ()
    return says[:1] in (("ECONNREFUSED",), ("ECONNRESET",)) or says == ("connect", "ECONNRESET")


def need_not_come(conv):
    """Does the client reset before anybody has seen it?"""
    ops = conv.blocks[0][1] if conv.blocks else []
    speaks = [i for i, (op, _) in enumerate(ops) if op == "send"]
    mute = [i for i, (op, how) in enumerate(ops) if op == "shut" and "w" in how]
    return conv.setup["accept"] == "late" and ops[-1:] == [("linger", None)] and (not speaks or bool(mute) and mute[0] < speaks[0])


def same(one, other, conv):
    if conv.setup["accept"] == "refuse":
        return refused(one) and refused(other)
    return len(one) == len(other) and all(fits(a, b, conv) for a, b in zip(one, other))


def transcript(conv, runs, titles):
    """The script, and the runs side by side: lines of text."""
    out = list(conv.lines())
    for i in range(max(len(r) for r in runs)):
        what = next(r[i].what for r in runs if len(r) > i)
        texts = [_text(r[i]) if len(r) > i else ["-"] for r in runs]
        if all(t == texts[0] for t in texts):
            out.append(f"  step {what}: " + "; ".join(texts[0]))
            continue
        out.append(f"* step {what}:")
        out += [f"    {title:9} " + "; ".join(t) for title, t in zip(titles, texts)]
    return out


def _text(step):
    words = ["says " + ", ".join(step.says)] if step.says else []
    for w, seen in sorted(step.sees.items()):
        name = "client" if w == "c" else "server"
        words.append(f"{name} closed" if seen is None else f"{name} sees [{seen[0]}] {seen[1]} unread"
                     + (" at the mark" if seen[2] else ""))
    return words
