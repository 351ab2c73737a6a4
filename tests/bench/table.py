"""
Tables of a benchmark's document (document.py), as text for a terminal and as Markdown for doc/performance.md. Whatever is
printed is in the document, so a table of an earlier run needs nothing but its file.
"""
import stats
from harness import Failure

BEGIN, END = "<!-- made by bench.py --markdown: begin -->\n", "<!-- end -->\n"
SIDES = ("direct", "haproxy", "splice", "old", "tcp", "middle", "clear", "plain", "smcrd", "again")
# Whose ratios a group has besides.
FURTHER = {("smcrd", "tcp"): ("haproxy",), ("smcrd", "middle"): ("haproxy", "direct"), ("smcrd", "clear"): ("haproxy",),
           ("smcrd", "plain"): ("haproxy",)}
TITLES = {("smcrd", "tcp"): "smcrd over SCTP beside smcrd over TCP",
          ("smcrd", "clear"): "smcrd with secure = \"required\" beside smcrd in clear; haproxy has TLS between",
          ("smcrd", "plain"): "transparent mode beside plain smcrd, with connection tracking; haproxy connects by the client's address",
          ("smcrd", "middle"): "connections that open over the link (smcrd) beside those by a CLC connection (middle)",
          ("smcrd", "haproxy"): "smcrd beside haproxy", ("smcrd", "direct"): "smcrd beside the direct connection",
          ("again", "smcrd"): "the noise: two pairs of the same smcrd", ("smcrd", "old"): "smcrd beside another build"}


def title(subject, base):
    return TITLES.get((subject, base), f"{subject} beside {base}")


def ratio(q):
    return f"{q:.2f}" if q >= 0.1 else f"{q:.3f}"


def number(x):
    return f"{x:.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def cell(values, form=number):
    """Median (least-greatest)."""
    s = stats.spread(values)
    if s is None:
        return "-"
    return form(s.median) if s.rounds == 1 else f"{form(s.median)} ({form(s.least)}-{form(s.greatest)})"


def groups(doc):
    """Rows that compare the same two sides, in the order of their first one: [((subject, base), [row])]."""
    found = {}
    for row in doc["rows"]:
        if row["samples"]:
            found.setdefault((row["subject"], row["base"]), []).append(row)
    return list(found.items())


def lines(rows, subject, base):
    """Header and cells of one group."""
    sides = [s for s in SIDES if any(s in r for row in rows for r in row["samples"])]
    judged = base != "smcrd"	# neither of two that are the same is better
    further = FURTHER.get((subject, base), ())
    out = [["", "unit", *sides, f"{subject}/{base}", *([f"{subject} is"] if judged else []), *(f"{subject}/{s}" for s in further)]]
    for row in rows:
        for i, f in enumerate(row["figures"]):
            ratios = stats.ratios(row["samples"], subject, base, f["key"])
            parts = (row["heading"], f["heading"]) if i == 0 else (f["heading"],)
            out.append([("" if i == 0 else "- ") + ", ".join(x for x in parts if x), f["unit"],
                        *(cell(stats.values(row["samples"], s, f["key"])) for s in sides),
                        cell(ratios, ratio), *([stats.verdict(ratios, f["better"])] if judged else []),
                        *(cell(stats.ratios(row["samples"], subject, s, f["key"]), ratio) for s in further)])
    return out


def about(doc):
    """What was measured where: one sentence."""
    m = doc["machine"]
    rounds = sorted({len(row["samples"]) for row in doc["rows"] if row["samples"]})
    versions = ", ".join(v for v in m["versions"].values() if v)
    return (f"{doc['date']}, commit {doc['commit'] or 'unknown'}: {m['cores']} cores of {m['cpu']}, {m['memory_gib']} GiB, "
            f"Linux {m['kernel']}, {m['congestion_control']}; {versions}. Median (least-greatest) of "
            f"{' to '.join(str(n) for n in (rounds[:1] + rounds[1:][-1:])) or 'no'} rounds, "
            f"{doc['settings']['seconds']} s a measurement; ratios are taken round by round.")


def remarks(doc):
    """What did not go as the rows say."""
    out = list(doc["notes"])
    for row in doc["rows"]:
        if row["skipped"]:
            out.append(f"{row['name']}: skipped: {row['skipped']}")
        out += [f"{row['name']}: without {side}: {why}" for side, why in row["left_out"].items()]
        out += [f"{row['name']}: {text}" for text in row["failures"] + row["notes"]]
    return out


def text(doc):
    out = [about(doc), ""]
    for (subject, base), rows in groups(doc):
        cells = lines(rows, subject, base)
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        out += [title(subject, base)]
        out += ["  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip()
                for line in cells]
        out += [""]
    return "\n".join(out + [f"note: {x}" for x in remarks(doc)])


def markdown(doc):
    out = [about(doc), ""]
    for (subject, base), rows in groups(doc):
        cells = lines(rows, subject, base)
        out += [f"**{title(subject, base)}**", ""]
        out += ["| " + " | ".join(cells[0]) + " |", "| --- " * len(cells[0]) + "|"]
        out += ["| " + " | ".join(line) + " |" for line in cells[1:]]
        out += [""]
    return "\n".join(out + [f"- {x}" for x in remarks(doc)])


def replace_in(path, doc):
    """Puts the tables into a Markdown file, between the two lines that say so."""
    with open(path) as f:
        before, begin, rest = f.read().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Failure(f"{path} has no lines {BEGIN.strip()} and {END.strip()}")
    with open(path, "w") as f:
        f.write(before + BEGIN + markdown(doc).strip() + "\n" + END + after)
