#!/usr/bin/env python3
"""
The size of the tree, and its words, within their budgets, as TAP. A change that needs more raises a figure here, and says why.
"""
import os
import re
import subprocess
import sys
from collections import defaultdict

TOP = os.environ.get("top_srcdir") or os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
LINES = 78360			# of the product
WORDS = 82230			# of documents and manual pages, without those generated from tables
LONG_FUNCTIONS = 1		# of more than 60 lines
LONG_FILES = 0			# of more than 600 lines
SHARED_NAMES = 55		# of static functions, that stand in two files or more
UNPLAIN = {"user": 0, "product": 42, "documents": 0}	# lines with words of another dialect
WORD = re.compile(r"\b(told|anew|in vain|any more|who|whoever|let go|lets go|well again|is none|are none)\b", re.IGNORECASE)


def files(*patterns):
    out = subprocess.run(["git", "-C", TOP, "ls-files", *patterns], capture_output=True, text=True)
    return sorted(out.stdout.split())


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as f:
        return f.read()


PRODUCT = files("lib/*.[ch]", "daemon/*.[ch]", "ctl/*.[ch]", "local/*.[ch]")
GENERATED = ("doc/metrics-list.md", "doc/json-fields.md")	# of tables that the code uses
DOCUMENTS = [n for n in files("*.md", "man/*.[158]") if n not in GENERATED]
TABLE = re.compile(r"<!-- made by .*?<!-- end -->", re.DOTALL)	# in a document; also generated
SOURCE = {name: read(name) for name in PRODUCT}
# A function by the layout of the code: its name begins a line, its body is between two braces that are lines of their own.
FUNCTION = re.compile(r"^(static [^\n;]*\n)?([a-z_]\w*)\([^;{}]*\)\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')


def long_functions():
    return [f"{name}: {m[2]}" for name, text in SOURCE.items() for m in FUNCTION.finditer(text) if m[3].count("\n") > 60]


def shared_names():
    where = defaultdict(set)
    for name, text in SOURCE.items():
        for m in FUNCTION.finditer(text):
            if m[1]:
                where[m[2]].add(name)
    return [f"{name}: {' '.join(sorted(at))}" for name, at in sorted(where.items()) if len(at) > 1]


def unplain():
    """Of user-visible text (strings of the product, manual pages, README, NEWS, FAQ), comments, documents."""
    out = defaultdict(list)
    for name, text in SOURCE.items():
        for nr, line in enumerate(text.split("\n"), 1):
            if line.startswith("#include"):
                continue
            strings = " ".join(STRING.findall(line))
            if WORD.search(strings):
                out["user"].append(f"{name}:{nr}: {line.strip()}")
            elif WORD.search(line):
                out["product"].append(f"{name}:{nr}: {line.strip()}")
    for name in DOCUMENTS:
        kind = "user" if name.startswith("man/") or name in ("README.md", "NEWS.md", "doc/faq.md") else "documents"
        out[kind] += [f"{name}:{nr}: {line}" for nr, line in enumerate(read(name).split("\n"), 1) if WORD.search(line)]
    return out


def untested_settings():
    """Those that stand in no test over sockets, in the laboratory or the bench."""
    keys = set(re.findall(r'^\t\{ "([a-z_0-9]+)", [A-Z]', read("daemon/config/config_keys.c"), re.MULTILINE))
    tests = "\n".join(map(read, files("tests/integration/*", "tests/interop/*", "tests/referee/*", "tests/bench/*.py")))
    return sorted(k for k in keys if not re.search(rf"\b{k}\b", tests))


def main():
    if not PRODUCT or not DOCUMENTS:
        print("1..0 # SKIP no git checkout")
        return 0
    words = unplain()
    rows = [("lines of the product", sum(t.count("\n") for t in SOURCE.values()), LINES, []),
            ("words of documents and manual pages", sum(len(TABLE.sub("", read(n)).split()) for n in DOCUMENTS), WORDS, []),
            ("functions above 60 lines", *[len(long_functions())], LONG_FUNCTIONS, long_functions()),
            ("files above 600 lines", len(f := [n for n in PRODUCT if SOURCE[n].count("\n") > 600]), LONG_FILES, f),
            ("names of static functions in two files or more", len(f := shared_names()), SHARED_NAMES, f),
            ("settings without a test over sockets", len(f := untested_settings()), 0, f),
            *[(f"lines with words that are not plain: {k}", len(words[k]), v, words[k]) for k, v in UNPLAIN.items()]]
    print(f"1..{len(rows)}")
    for nr, (what, n, limit, which) in enumerate(rows, 1):
        if n > limit or "-v" in sys.argv:
            for line in which:
                print(f"# {line}")
        print(f"{'not ok' if n > limit else 'ok'} {nr} - {what}: {n} of {limit}")
    return 0


sys.exit(main())
