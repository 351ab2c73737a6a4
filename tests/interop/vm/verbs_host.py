"""In the guest: the verbs device alone, by the program verbs_host, on the two ends of the first wire."""
import os
import resource
import subprocess

import rxe
from harness import Failure, Skip

HOST = os.path.join(os.environ["top_builddir"], "tests", "interop", "vm", "verbs_host")
ABSENT = "10.78.1.77"		# of the wire's subnet, unused


def run_case(t, net, device, name, **doing):
    """device: (side, number) -> name of a card. doing: what the case asks for -> function. Its words are notes of ours."""
    if not os.path.exists(HOST):
        raise Skip("verbs_host is not built (make vm, or make check TESTS=)")
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY,) * 2)
    p = subprocess.Popen([HOST, name, *[device(s, 1) for s in "ab"], *[rxe.address(s, 1) for s in "ab"], ABSENT],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
    t.later(p.kill)
    said = []
    for line in p.stdout:
        said.append(line.strip())
        if line.startswith("do: "):
            doing[line[4:].strip()]()
            p.stdin.write("done\n")
            p.stdin.flush()
    status = p.wait(10)
    for line in said:
        t.note(f"{name}: {line}")
    if status != 0:
        raise Failure(f"verbs_host {name}: exit status {status}")
    net.let_go("qp", "mr", "cq", "pd")
    return said
