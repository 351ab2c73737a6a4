#!/usr/bin/env python3
"""
The documents for operators name what there is: commands and options that smcrctl and smcrd take, settings that the manual
page has (check_config_doc compares that with the table), counters, configuration that smcrd -t takes, documents that exist.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.environ.get("top_srcdir", "."))
BUILD = os.path.abspath(os.environ.get("top_builddir", "build"))
DOCUMENTS = ["doc/tutorial.md", "doc/troubleshooting.md", "doc/sizing.md", "doc/faq.md", "README.md"]
SECTIONS = ("ingress", "egress", "devices", "smcr", "control", "confine", "keepalive", "defaults")
# Names of other programs' making that look like settings or counters.
FOREIGN = {"smc_run", "smc_rnics", "smc_chk", "smc_pnet", "allow_abbrev"}
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
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
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
    fields = set(re.findall(r"`([a-z_]+)`", read("doc/json-schema.md")))
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


def bad_documents(text):
    for name in re.findall(r"(?<![\w/])(?:doc/)?([a-z0-9-]+\.md)", text):
        if not os.path.exists(os.path.join(TOP, "doc", name)) and not os.path.exists(os.path.join(TOP, name)):
            yield name


CHECKS = [("commands of smcrctl", bad_smcrctl), ("options of smcrd", bad_smcrd), ("settings and counters", bad_names),
          ("settings with values", bad_settings), ("configurations", bad_blocks), ("words of smcrctl stats", bad_counters),
          ("documents", bad_documents)]


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
