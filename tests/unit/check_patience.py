#!/usr/bin/env python3
"""
Finds lines of test scripts that fail on a busy machine:

- a socket connected without connect_to() of tests/integration/sockets.py: connect() may report a reset already, and wait longer;
- a time to wait without the factor PATIENCE (or SOON, which has it);
- time.sleep(), where wait_until() waits for something;
- a port that the kernel chooses for bind(): free when looked at, and another's when it is used;
- words that must be in a log, looked for once: logs() waits for them.

A line that means it says why behind `# raw: `.
"""
import ast
import glob
import os
import re
import sys

TOP = os.environ.get("top_srcdir") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ALLOWED = re.compile(r"# raw: \S+ \S+")
TIMED = {"settimeout": 0, "select": 3, "join": 0, "communicate": 1}	# method: which argument is a time
MEANT = ("subprocess", "popen", "proc")					# whose run(), wait() and so on are Python's, not the harness's


def fixed(node):
    """Is that a number, or made of numbers alone? Less than a quarter of a second is a turn of a loop, which waits on."""
    if isinstance(node, ast.BinOp):
        return fixed(node.left) and fixed(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool) \
        and node.value >= 0.25


def is_in_log(node):
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In) and ast.unparse(node.comparators[0]).endswith(".log()")


def counts_in_log(call):
    """Does it want words in a log, so often? None of them may be looked for once."""
    return ast.unparse(call.func) == "equal" and len(call.args) > 1 and ".log().count(" in ast.unparse(call.args[0]) \
        and ast.unparse(call.args[1]) != "0"


def complaint(call, sockets):
    """What is wrong with a call, or None. sockets: names of what socket.socket() gave."""
    if counts_in_log(call) or ast.unparse(call.func) == "check" and any(is_in_log(n) for a in call.args[:1] for n in ast.walk(a)):
        return "looks once into a log"
    if not isinstance(call.func, ast.Attribute):
        return None
    name, of = call.func.attr, ast.unparse(call.func.value)
    args, named = call.args, {k.arg: k.value for k in call.keywords}
    if (of, name) == ("time", "sleep"):
        return "time.sleep()"
    if (of, name) == ("socket", "create_connection") or (name == "connect" and of in sockets):
        return "connects without connect_to()"
    if name == "bind" and args and isinstance(args[0], ast.Tuple) and ast.unparse(args[0]).endswith(", 0)"):
        return "a port of the kernel's choice"
    where = TIMED.get(name)
    if where is not None and len(args) > where and fixed(args[where]):
        return "a fixed time"
    if of.rsplit(".", 1)[-1] in MEANT and (fixed(named.get("timeout")) or (name == "wait" and args and fixed(args[0]))):
        return "a fixed time"
    return None


def socket_names(tree):
    """Variables that hold what socket.socket() gave."""
    def made(value):
        return isinstance(value, ast.Call) and ast.unparse(value.func) == "socket.socket"
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and made(node.value):
            names |= {ast.unparse(t) for t in node.targets}
        elif isinstance(node, ast.withitem) and made(node.context_expr) and node.optional_vars:
            names.add(ast.unparse(node.optional_vars))
    return names


def complaints(text):
    """(line, what) of a script."""
    tree, lines = ast.parse(text), text.split("\n")
    sockets = socket_names(tree)
    for node in ast.walk(tree):
        what = isinstance(node, ast.Call) and complaint(node, sockets)
        if isinstance(node, ast.FunctionDef) and "wait_until" not in text and "PATIENCE" not in ast.unparse(node) and any(
                a.arg == "timeout" and fixed(d) for a, d in zip(reversed(node.args.args), reversed(node.args.defaults), strict=False)):
            what = "a fixed time"
        if what and not any(ALLOWED.search(x) for x in lines[node.lineno - 1:node.end_lineno]):
            yield node.lineno, what


BAD = """
s = socket.create_connection(at, 20)
s = socket.socket()
s.connect(at)
s.settimeout(5)
s.settimeout(2 * 3)
time.sleep(1)
s.bind((host, 0))
select.select([s], [], [], 3)
thread.join(5)
subprocess.run(argv, timeout=20)
self.proc.wait(10)
check("down" in daemon.log(), "it says so")
equal(daemon.log().count("down"), 1, "lines")
def receive(n, timeout=5.0): pass
"""
GOOD = """
s = connect_to(at, 20)
s = socket.socket()
s.settimeout(5 * PATIENCE)
s.settimeout(0)
s.settimeout(None)
s.bind((host, port))
time.sleep(1)  # raw: the pause is what is measured
select.select([s], [], [], 3 * PATIENCE)
thread.join()
", ".join(names)
t.run(argv, timeout=20)
daemon.wait(10)
logs(daemon, "down")
check("down" not in daemon.log(), "it says nothing")
equal(daemon.log().count("down"), 0, "lines")
def receive(n, timeout=SOON): pass
def wait(timeout=5.0): return timeout * PATIENCE
"""


def main():
    print("1..2")
    ok = len(list(complaints(BAD))) == BAD.count("\n") - 2 and not list(complaints(GOOD))
    print(f"{'ok' if ok else 'not ok'} 1 - what is looked for is found, and nothing else")
    paths = sorted(glob.glob(os.path.join(TOP, "tests", "**", "*.py"), recursive=True))
    found = []
    for path in paths:
        with open(path) as f:
            found += [f"{os.path.relpath(path, TOP)}:{line}: {what}" for line, what in complaints(f.read())]
    for line in found:
        print(f"# {line}")
    good = not found and len(paths) > 50
    print(f"{'ok' if good else 'not ok'} 2 - the scripts of the tests wait with patience, and for something")
    sys.exit(0 if ok and good else 1)


main()
