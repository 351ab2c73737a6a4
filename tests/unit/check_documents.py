#!/usr/bin/env python3
"""
The documents for operators name what exists: commands and options of smcrctl and smcrd, settings of the manual page
(check_config_doc compares that with the table), counters, log lines, configuration that smcrd -t accepts, documents, and numbers of
another document.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.environ.get("top_srcdir", "."))
BUILD = os.path.abspath(os.environ.get("top_builddir", "build"))
DOCUMENTS = ["doc/tutorial.md", "doc/troubleshooting.md", "doc/failover.md", "doc/sizing.md", "doc/faq.md", "doc/unix.md", "doc/recipes.md", "doc/tls.md", "README.md"]
SECTIONS = ("ingress", "egress", "devices", "smcr", "control", "confine", "keepalive", "defaults", "tls")
# Names of other programs' making that look like settings or counters.
FOREIGN = {"smc_run", "smc_rnics", "smc_chk", "smc_pnet", "allow_abbrev", "unix_socket", "auth_socket"}
PLACES = ["%s", "smcr = { %s };", "keepalive = { %s };", "confine = { %s };", "control = { %s };"] + [
    'ingress = ( { name = "n"; listen = "127.0.0.1:1024"; to = "127.0.0.1:1025"; %s } );',
    'egress = ( { name = "n"; listen = "127.0.0.1:1024"; to = "127.0.0.1:1025"; %s } );',
    'ingress = ( { name = "n"; to = "127.0.0.1:1025"; %s } );',
    'ingress = ( { name = "n"; listen = "unix:/run/s"; to = "127.0.0.1:1025"; %s } );',
    'egress = ( { name = "n"; listen = "127.0.0.1:1024"; %s } );', 'ingress = ( { name = "n"; %s } );',
    'devices = ( { type = "siw"; address = "127.0.0.1"; %s } );', "devices = ( { type = \"verbs\"; device = \"*\"; %s } );"]


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as f:
        return f.read()


def run(*argv):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)  # raw: an end of it all
    return p.returncode, p.stdout.decode()


def config_error(text):
    """What smcrd has against this configuration; nothing is looked up or connected."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
        f.write(text)
        f.flush()
        status, out = run(f"{BUILD}/smcrd", "-T", "-f", f.name)
    return "" if status == 0 else out


def spans(text):
    """Code in the flow of text, and the lines of indented blocks."""
    flow = "\n".join(line for line in text.split("\n") if not line.startswith("    "))
    return re.findall(r"`([^`\n]+)`", flow.replace("\n", " "))


def blocks(text):
    return [re.sub(r"^    ", "", b, flags=re.M) for b in re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", text, flags=re.M)]


def commands(text, program):
    """Command lines of a program: in spans, and in blocks at the beginning of a line or behind a prompt."""
    found = [s for s in spans(text) if s.startswith(program + " ")]
    for b in blocks(text):
        for line in b.split("\n"):
            if (m := re.match(r"(?:[#$] )?(" + program + r" .*)", line)) is not None:
                found.append(m.group(1))
    return [re.split(r"\s{2,}|[|>]|\s#", c)[0].strip() for c in found]


def bad_smcrctl(text):
    for c in commands(text, "smcrctl"):
        if re.match(r"smcrctl \S+[:,]", c) or re.match(r"smcrctl \d", c):   # what it prints
            continue
        args = c.replace("HOST:PORT", "127.0.0.1:1").replace("NAME", "x").replace("GROUP LINK", "1 1")
        _, out = run(f"{BUILD}/smcrctl", "-s", "/nonexistent/control", *shlex.split(args)[1:])
        # A command may be named without its arguments.
        if not re.search("smcrd does not run|needs HOST:PORT|is needed", out):
            yield f"{c}: {out.splitlines()[0]}"


def bad_smcrd(text):
    known = set(re.findall(r"-[a-zA-Z]\b|--[a-z]+(?:-[a-z]+)*", run(f"{BUILD}/smcrd", "--help")[1]))
    for c in commands(text, "smcrd"):
        for option in re.findall(r"(?<=\s)-\S+", c):
            if option not in known:
                yield c


def bad_names(text):
    keys = set(re.findall(r"^\.It Ic (\w+)", read("man/smcrd.conf.5"), flags=re.M))
    quoted = re.findall(r"`([^`\n]+)`", read("doc/json-schema.md") + read("doc/json-fields.md"))
    fields = {word for q in quoted for word in re.findall(r"[a-z_]+", q)}
    for s in spans(text):
        name = s.split(" = ")[0].strip()
        dotted = re.fullmatch(r"(?:(" + "|".join(SECTIONS) + r")\.)?([a-z]+(?:_[a-z]+)*)", name)
        if dotted is None or name in SECTIONS:
            continue
        setting = " = " in s or dotted.group(1) is not None
        if setting and dotted.group(2) not in keys and not re.match(r"smcr\w*$", name):
            yield f"no such setting: {s}"
        if "_" in name and not setting and name not in keys | fields | FOREIGN:
            yield f"neither setting nor counter: {s}"


def bad_settings(text):
    """`name = value;`: there is a place that takes it."""
    for s in set(spans(text)):
        if re.match(r"[a-z_]+ = ", s) is None or "..." in s:
            continue
        value = s if s.endswith(";") else s + ";"
        errors = [config_error(p % value) for p in PLACES]
        if all(errors):
            yield f"{s}: {min(errors, key=len).strip()}"


def bad_blocks(text):
    for b in blocks(text):
        config = re.match(r"\s*(#.*\n)*\s*(" + "|".join(SECTIONS) + r") = [({]", b)
        if config is not None and (error := config_error(b)):
            yield f"{b.splitlines()[0]} ...: {error.strip()}"


def bad_counters(text):
    """"words" in the neighbourhood of smcrctl stats are what it prints."""
    labels = " ".join(re.findall(r'"([^"]*)"', read("lib/control/counters.h")))
    flow = re.sub(r"\s+", " ", text)
    for quoted in re.findall(r'`smcrctl stats`[^".]*"([^"]+)"', flow):
        if quoted not in labels:
            yield f"not a counter: {quoted}"


def sources():
    """Text of the daemon's sources; literals that continue on the next line are one."""
    found = []
    for folder in ("daemon", "lib"):
        for path, _, names in os.walk(os.path.join(TOP, folder)):
            found += [read(os.path.join(path, n)) for n in names if n.endswith((".c", ".h"))]
    return re.sub(r'"\s*\n\s*"', "", "\n".join(found))


def bad_log_lines(text):
    """The fixed phrase of each log line, and the keys behind it, are in the sources."""
    lines = [m for b in blocks(text) for m in re.finditer(r"^(?:warning|notice): ([^:]+): (.*)", b, flags=re.M)]
    source = sources() if lines else ""
    for m in lines:
        words = m.group(1).split(" ")
        variants = [m.group(1)] + [" ".join(words[:i] + ["%s"] + words[i + 1:]) for i in range(len(words))]
        if not any(v in source for v in variants):
            yield f"no such log line: {m.group(1)}"
        for key in re.findall(r'(?:^| )([a-z_]+)=', m.group(2)):
            if f"{key}=" not in source and f'"{key}"' not in source:
                yield f"no such key: {key} in {m.group(0)}"


def bad_documents(text):
    for name in re.findall(r"(?<![\w/])(?:doc/)?([a-z0-9-]+\.md)", text):
        if not os.path.exists(os.path.join(TOP, "doc", name)) and not os.path.exists(os.path.join(TOP, name)):
            yield name


def measured():
    """What doc/performance.md has of smcrd: (row, row below it or "") -> its first number, of the first table that has the row."""
    found, column, row = {}, None, ""
    for line in read("doc/performance.md").split("\n"):
        cells = [c.strip() for c in line.split("|")[1:-1]]
        if "smcrd" in cells and "unit" in cells:
            column = cells.index("smcrd")
        elif column is None or len(cells) <= column:
            column = None
        elif (m := re.match(r"[\d.]+", cells[column])) is not None:
            below = cells[0].startswith("- ")
            row = row if below else cells[0]
            found.setdefault((row, cells[0][2:] if below else ""), float(m.group()))
    return found


# A row of sizing.md; the row of performance.md that it is made of, and by what factor; what a core does in a second is the last
# number divided by the figure.
FIGURES = [("new connection (both hosts)", ("new connections", "CPU"), 1, 1e6),
           ("small request and answer, one at a time", ("Redis GET, 1 connection", "CPU"), 1, 1e6),
           ("small request and answer, 64 connections", ("Redis GET, 64 connections", "CPU"), 1, 1e6),
           ("the same over UNIX sockets of the programs", ("UNIX sockets: Redis GET, 64 connections", "CPU"), 1, 1e6),
           ("GB of bulk data", ("bulk, 1 stream", "CPU"), 1, 8),
           ("10,000 idle connections", ("50,000 idle connections, several pairs", "CPU of each"), 10 / 60, None)]


def far_from(a, b):
    return abs(a - b) > 0.03 * b


def bad_figures(text):
    """Processor time is what performance.md has, but for rounding."""
    if "## Processor time" not in text:
        return
    there, first = measured(), {}
    for name, where, scale, second in FIGURES:
        m = re.search(r"^\| " + re.escape(name) + r" \| ([\d.]+) [^|]*\| ([\d,.]+|-)", text, flags=re.M)
        if m is None or where not in there:
            yield f"no figure: {name}"
            continue
        first[name] = float(m.group(1))
        if far_from(first[name], there[where] * scale):
            yield f"{name}: {m.group(1)}, where performance.md has {there[where] * scale:g}"
        if second is not None and far_from(float(m.group(2).replace(",", "")), second / first[name]):
            yield f"{name}: one core does {second / first[name]:g}, not {m.group(2)}"
    m = re.search(r"cores of both daemons = ([\d.]+) s x GB/s \+ ([\d.]+) us x requests/s \+ ([\d.]+) us x new", text)
    if m is None or [float(x) for x in m.groups()] != [first.get(FIGURES[i][0]) for i in (4, 2, 0)]:
        yield "the sum of cores has other figures than the table above it"


CHECKS = [("commands of smcrctl", bad_smcrctl), ("options of smcrd", bad_smcrd), ("settings and counters", bad_names),
          ("settings with values", bad_settings), ("configurations", bad_blocks), ("words of smcrctl stats", bad_counters),
          ("log lines", bad_log_lines), ("documents", bad_documents), ("figures of performance.md", bad_figures)]


def main():
    print(f"1..{len(DOCUMENTS) * len(CHECKS)}")
    n, failed = 0, False
    for name in DOCUMENTS:
        text = read(name)
        for what, check in CHECKS:
            n += 1
            wrong = list(check(text))
            for w in wrong:
                print("# " + w.replace("\n", "\n# "))
            print(f"{'not ok' if wrong else 'ok'} {n} - {name}: {what}")
            failed = failed or bool(wrong)
    sys.exit(failed)


main()
