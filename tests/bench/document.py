"""
The document that a benchmark writes as JSON: the machine, the settings, and of each row what it compares and every sample.

    {"schema": 2, "date", "commit", "against", "machine": {...}, "settings": {"seconds"}, "configurations": {...},
     "notes": [text], "rows": [{"name", "heading", "subject", "base", "figures": [{"key", "heading", "unit", "better"}],
               "samples": [{side: {key: number}}],      one for each round
               "skipped": null or why the whole row was not measured,
               "left_out": {side: why}, "failures": [text], "notes": [text]}]}

A change of the shape gets another number.
"""
import datetime
import json
import os
import platform
import subprocess

from harness import SMCRD, TOP_SRC, Failure, Skip, need

SCHEMA = 2
PROGRAMS = {"smcrd": "--version", "haproxy": "-v", "iperf3": "--version", "redis-server": "--version", "sockperf": "--version",
            "wrk": "-v", "nginx": "-v"}


def _first_line(argv):
    try:
        out = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             check=False, timeout=20).stdout  # raw: no test
        return out.decode(errors="replace").strip().split("\n")[0]
    except (OSError, subprocess.TimeoutExpired):
        return None


def _read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def _version(name, option):
    try:
        line = _first_line([SMCRD if name == "smcrd" else need(name), option])
    except Skip:
        return None
    words = [w.strip(",") for w in (line or "").replace("v=", "").replace("nginx/", "").split() if any(c.isdigit() for c in w)]
    return f"{name} {words[0]}" if words else name


def machine():
    cpu = next((line.split(":", 1)[1].strip() for line in _read("/proc/cpuinfo").split("\n") if line.startswith("model name")),
               platform.machine())
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(),
            "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2 ** 30),
            "congestion_control": _read("/proc/sys/net/ipv4/tcp_congestion_control").strip() or None,
            "versions": {name: _version(name, option) for name, option in PROGRAMS.items()}}


def commit():
    """Of the source that this file belongs to; None where that is no git tree."""
    name = _first_line(["git", "-C", TOP_SRC, "describe", "--always", "--dirty"])
    return name if name and not name.startswith("fatal") else None


def new(seconds, against):
    return {"schema": SCHEMA, "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"), "commit": commit(),
            "against": against, "machine": machine(), "settings": {"seconds": seconds},
            "configurations": {}, "rows": [], "notes": []}


def save(doc, path):
    with open(path, "w") as f:
        json.dump(doc, f, indent=1)
        f.write("\n")


def load(paths):
    """One document of one or several files; rounds of a row that several have add up. A row of a later run says which one that was."""
    whole = None
    for path in paths:
        try:
            with open(path) as f:
                doc = json.load(f)
        except (OSError, ValueError) as e:
            raise Failure(f"{path}: {e}") from None
        if not isinstance(doc, dict) or doc.get("schema") != SCHEMA:
            raise Failure(f"{path}: no document of schema {SCHEMA}")
        if whole is None:
            whole = doc
            continue
        if (doc["against"], doc["settings"]["seconds"]) != (whole["against"], whole["settings"]["seconds"]):
            raise Failure(f"{path}: measured against something else, or by other seconds, than {paths[0]}")
        whole["configurations"].update(doc["configurations"])
        for row in doc["rows"]:
            same = next((r for r in whole["rows"] if r["name"] == row["name"]), None)
            if same is None:
                if doc["commit"] != whole["commit"]:
                    row["notes"].append(f"{doc['date']}, commit {doc['commit'] or 'unknown'}")
                whole["rows"].append(row)
                continue
            for key in ("samples", "failures", "notes"):
                same[key] += row[key]
    return whole
