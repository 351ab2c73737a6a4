#!/usr/bin/env python3
"""
SMC-R's TCP option: the outcome of a connection by the kind of its ends and the availability of BPF. The table of
smcrd.conf(5), THE TCP OPTION, cell by cell, with four daemons: ingress and egress, with and without the right. Where the
kernel refuses the program to the tests, too, only the half without is tested.
"""
import os
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import clc																# noqa: E402
from harness import (PATIENCE, SMCRD, Daemon, Failure, Server, Skip, case, check, connect_to, equal,	# noqa: E402
                     hostport, logs, main, need, recv_exact, same_bytes, wait_until)

KINDS = ("smcrd", "linux", "auto")
NO_PEER, NO_OPTION = "0x03010000", "0x03f10000"
GREETING = b"220 ready\r\n"


def without_right():
    """In front of the command line: root without the capabilities that the program takes."""
    if os.geteuid() != 0:
        return []
    caps = "-bpf,-sys_admin,-net_admin"
    argv = [need("setpriv"), f"--bounding-set={caps}", f"--inh-caps={caps}"]
    if subprocess.run([*argv, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        caps = "-cap_39,-sys_admin,-net_admin"		# an older libcap-ng has no name for it
        argv = [need("setpriv"), f"--bounding-set={caps}", f"--inh-caps={caps}"]
    return argv


def device(t):
    return [{"type": "siw", "address": t.addr}]


def has_bpf(t):
    """Does the kernel take the program from a daemon that is started as the tests are?"""
    path = t.path("probe.conf")
    with open(path, "w", encoding="ascii") as f:
        f.write(f'egress = ( {{ name = "e"; listen = "{t.addr}:9"; to = "{t.addr}:10"; peer = "auto"; }} );\n')
    line = [x for x in t.run([SMCRD, "-t", "-f", path]).decode().split("\n") if x.startswith("SMC-R's TCP option: ")]
    equal(len(line), 1, "lines of -t about the option")
    if line[0].endswith(": ready"):
        return True
    t.note(line[0])
    return False


def need_bpf(t):
    if not has_bpf(t):
        raise Skip("the kernel takes no BPF program from us")


class Recorder:
    """A plain server that echoes; with a greeting it speaks first. `got` has what each connection sent."""

    def __init__(self, t, greeting=b"", pause=0):
        self.got = []
        self.greeting = greeting
        self.pause = pause
        self.server = Server(t, self.serve)
        self.at = self.server.at

    def serve(self, s):
        mine = bytearray()
        self.got.append(mine)
        time.sleep(self.pause)	# raw: the server's
        s.sendall(self.greeting)
        try:
            while data := s.recv(65536):
                mine += data
                s.sendall(data)
        except ConnectionError:
            pass


class Hosts:
    """Egress daemons with and without the right, with a service of each kind each; what they lead to is `server`."""

    def __init__(self, t, server, fallback="tcp", kinds=KINDS, clc_s=1):
        self.t = t
        self.server = server
        self.middle = {}
        self.daemons = {}
        for bpf in ((True, False) if has_bpf(t) else (False,)):
            services = []
            for kind in kinds:
                self.middle[kind, bpf] = (t.addr, t.port())
                services.append({"name": kind, "listen": hostport(*self.middle[kind, bpf]), "to": hostport(*server.at),
                                 "peer": kind, "fallback": fallback})
            self.daemons[bpf] = Daemon(t, f"egress{int(bpf)}", {
                "log_level": "info", "devices": device(t), "smcr": {"clc_timeout": f"{clc_s}s", "open_over_link": False}, "egress": services,
            }, wrap=() if bpf else without_right())

    def ingress(self, targets, fallback="tcp"):
        """Ingress daemons with and without the right, with a service of each kind for each of the targets."""
        self.port = {}
        self.fronts = {}
        for bpf in self.daemons:
            services = []
            for kind in KINDS:
                for name, at in targets.items():
                    port = self.port[kind, bpf, name] = self.t.port()
                    services.append({"name": f"{kind}-{name}", "listen": hostport(self.t.addr, port),
                                     "to": hostport(*at), "peer": kind, "fallback": fallback})
            self.fronts[bpf] = Daemon(self.t, f"ingress{int(bpf)}", {
                "log_level": "info", "devices": device(self.t), "smcr": {"clc_timeout": "1s", "hold_off": "10ms", "open_over_link": False},
                "ingress": services,
            }, wrap=() if bpf else without_right())


def talk(at, greeting):
    """What a client sees: the echo of what it sent behind the greeting, or b"" when it was turned away."""
    try:
        with connect_to(at, 20) as s:
            if greeting and recv_exact(s, len(greeting)) != greeting:
                return b"", None
            s.sendall(b"hello")
            got = recv_exact(s, 5)
            return got, s.getsockname()
    except ConnectionError:
        return b"", None


def outcome(way, server_kind):
    """The words of the manual's table for an ingress (kind, bpf) and a far end: "plain", or (kind, bpf)."""
    kind, bpf = way
    sends = kind != "smcrd" and bpf
    if server_kind == "plain":
        return "reset" if kind == "smcrd" else "tcp"
    far, far_bpf = server_kind
    agreed = sends and far != "smcrd" and far_bpf
    if kind == "smcrd":
        return {"smcrd": "smcr", "linux": "reset", "auto": "smcr"}[far]
    if agreed:
        return "smcr"
    return "reset" if far == "smcrd" else "tcp"


def run_table(t, greeting):
    server = Recorder(t, greeting, pause=0.2 if greeting else 0)
    hosts = Hosts(t, server)
    targets = {"plain": server.at}
    targets.update({f"{kind}{int(bpf)}": at for (kind, bpf), at in hosts.middle.items()})
    hosts.ingress(targets)
    ends = {"plain": "plain", **{f"{kind}{int(bpf)}": (kind, bpf) for kind, bpf in hosts.middle}}
    wrong = []
    for (kind, bpf, name), port in hosts.port.items():
        front, want, before = hosts.fronts[bpf], outcome((kind, bpf), ends[name]), len(server.got)
        clc_before = front.counters()["clc_sent"]
        got = "reset"
        try:
            with connect_to((t.addr, port), 20) as s:
                if recv_exact(s, len(greeting)) == greeting:
                    s.sendall(b"hello")
                    if recv_exact(s, 5) == b"hello":
                        got = [c["mode"] for c in front.connections() if c["service"] == f"{kind}-{name}"][0]
        except ConnectionError:
            pass
        sent = front.counters()["clc_sent"] - clc_before
        if want == "smcr" and kind == "linux" and got == "tcp" and sent > 0:
            # The rendezvous began. Whether a gateway that takes its peer for a Linux host finds a device in common with an
            # smcrd is the engine's business.
            got = "smcr"
        if got != want:
            wrong.append(f"{kind}{int(bpf)} to {name}: {got}, want {want}")
        if want == "tcp":
            equal(sent, 0, f"CLC messages of {kind}{int(bpf)} to {name}")
        # Only an ingress with peer smcrd that leads straight to a plain server sends it a CLC message.
        if name != "plain" or kind != "smcrd":
            for x in server.got[before:]:
                check(bytes(x) in (b"", b"hello"), f"{kind}{int(bpf)} to {name}, at the server: {bytes(x)}")
    check(not wrong, "; ".join(wrong))
    return hosts


@case("each pair of an ingress and its target", timeout=180)
def _(t):
    hosts = run_table(t, b"")
    for bpf, d in hosts.fronts.items():
        stats = d.counters()
        equal(stats["option_unknown"] > 0, not bpf, f"ingress{int(bpf)}: option_unknown")
        equal(stats["option_agreed"] > 0 and stats["option_missing"] > 0, bpf, f"ingress{int(bpf)}: agreed, missing")
    for bpf, d in hosts.daemons.items():
        check(d.counters()["option_stray_clc"] > 0, f"egress{int(bpf)}: CLC without the option")
        logs(d, "CLC message without the SMC-R option")


@case("the same with a server that sends first, after a delay", timeout=180)
def _(t):
    run_table(t, GREETING)


@case("plain clients at an egress of each kind; a silent client, a server that sends first")
def _(t):
    for greeting in (b"", GREETING):
        server = Recorder(t, greeting)
        clc_s = 1 + int(PATIENCE)
        hosts = Hosts(t, server, kinds=("linux", "auto"), clc_s=clc_s)
        for (kind, bpf), at in hosts.middle.items():
            start = time.monotonic()
            got, me = talk(at, greeting)
            same_bytes(got, b"hello", f"echo, {kind}{int(bpf)}")
            check(time.monotonic() - start < clc_s - 0.1, f"{kind}{int(bpf)}: it took as long as a CLC message is waited for")
            check(me is not None, "an address")
            with connect_to(at, 20) as s:
                s.settimeout(20 * PATIENCE)
                if greeting:
                    equal(recv_exact(s, len(greeting)), greeting, "greeting without a word of the client")
                s.shutdown(socket.SHUT_WR)
                equal(s.recv(10), b"", "half close of a client that said nothing")
        for bpf, d in hosts.daemons.items():
            reasons = d.ctl("stats")["fallback_reasons_local"]
            equal({r["code"] for r in reasons}, {NO_PEER if bpf else NO_OPTION}, f"reasons of egress{int(bpf)}")
            equal(sum(s["fallbacks"] for s in d.services()), 4, f"fallbacks of egress{int(bpf)}")
        server.server.ok()
        for d in hosts.daemons.values():
            d.finish()


@case("a connection without data is in set-up with its reason and has its server; the idle time counts")
def _(t):
    server = Recorder(t)
    at = (t.addr, t.port())
    d = Daemon(t, "e", {"log_level": "info", "devices": device(t), "egress": [
        {"name": "e", "listen": hostport(*at), "to": hostport(*server.at), "peer": "auto", "idle_timeout": f"{1 + PATIENCE // 4:.0f}s"}]})
    with connect_to(at, 20) as s:
        wait_until(lambda: server.got, "the server has the connection")
        c = d.connections()[0]
        equal((c["mode"], c["state"]), ("setup", "no SMC-R option, waiting for the first byte"), "mode and state")
        check(c["reason"]["local_code"] in (NO_PEER, NO_OPTION), c["reason"])
        s.settimeout(20 * PATIENCE)
        try:
            equal(s.recv(10), b"", "the end")
        except ConnectionResetError:
            pass
    logs(d, "idle for too long")


@case("first bytes: a Proposal without the option reaches no server, early or late, alone or followed by data")
def _(t):
    quiet = Recorder(t)
    hosts = Hosts(t, quiet, kinds=("linux", "auto"))
    for (kind, bpf), at in hosts.middle.items():
        with connect_to(at, 20) as s:
            s.settimeout(20 * PATIENCE)
            s.sendall(clc.proposal())
            if kind == "auto":
                # Over soft iWARP a RoCE-only Proposal cannot be served, so it is declined: that is an answer of SMC-R.
                equal(clc.read_message(s)[0], clc.DECLINE, "answer")
            else:
                check(closed(s), "linux: turned away")
        stray = hosts.daemons[bpf].counters()["option_stray_clc"]
        equal(stray, 1 if kind == "linux" else 2, "counted")
    check(not any(clc.EYE in x for x in quiet.got), "no CLC message at the server")

    loud = Recorder(t, GREETING)
    hosts = Hosts(t, loud, kinds=("linux", "auto"))
    for (kind, bpf), at in hosts.middle.items():
        with connect_to(at, 20) as s:
            s.settimeout(20 * PATIENCE)
            equal(recv_exact(s, len(GREETING)), GREETING, "greeting")
            s.sendall(clc.proposal())
            check(closed(s), f"{kind}: turned away, the server has spoken")
        logs(hosts.daemons[bpf], "after data of the server")
    check(not any(loud.got), f"bytes at the server: {loud.got}")
    # Data: a prefix of the eye catcher, or bytes that only begin like a CLC message.
    for first in (clc.EYE[:3], clc.EYE[:3] + b"x", b"\xe2"):
        with connect_to(hosts.middle["auto", False], 20) as s:
            s.settimeout(20 * PATIENCE)
            equal(recv_exact(s, len(GREETING)), GREETING, "greeting")
            s.sendall(first)
            same_bytes(recv_exact(s, len(first)), first, "echo")


def closed(s):
    try:
        return s.recv(100) == b""
    except ConnectionResetError:
        return True


@case('fallback = "refuse": no plain TCP at either end, SMC-R where possible')
def _(t):
    server = Recorder(t)
    hosts = Hosts(t, server, fallback="refuse")
    targets = {"plain": server.at, **{f"{k}{int(b)}": at for (k, b), at in hosts.middle.items()}}
    hosts.ingress(targets, fallback="refuse")
    for (kind, bpf), at in hosts.middle.items():
        equal(talk(at, b"")[0], b"", f"a plain client at {kind}{int(bpf)}")
    for (kind, bpf, name), port in hosts.port.items():
        got, _ = talk((t.addr, port), b"")
        if kind == "smcrd":
            want = name[:-1] in ("smcrd", "auto")
        else:
            want = bpf and name in ("linux1", "auto1")
        if kind != "linux":		# what an engine makes of an smcrd that it takes for a Linux host is its own business
            equal(got == b"hello", want, f"{kind}{int(bpf)} to {name}")
        elif not want:
            equal(got, b"", f"{kind}{int(bpf)} to {name}")
    check(not any(x and not x.startswith((b"hello", clc.EYE)) for x in server.got), "at the server")
    for d in (*hosts.fronts.values(), *hosts.daemons.values()):
        equal(sum(s["fallbacks"] for s in d.services()), 0, "fallbacks")


@case("without the privilege: a warning, the reason in status, and the reason of a client that offered the option")
def _(t):
    server = Recorder(t)
    at = (t.addr, t.port())
    e = Daemon(t, "egress", {"log_level": "info", "devices": device(t), "egress": [
        {"name": "e", "listen": hostport(*at), "to": hostport(*server.at), "peer": "linux"}]}, wrap=without_right())
    wait_until(lambda: "notice: ready" in e.log(), "the daemon has started")
    warnings = [x for x in e.log().split("\n") if "SMC-R's TCP option cannot be used" in x]
    equal(len(warnings), 1, "warnings")
    check("warning: " in warnings[0], warnings[0])
    option = e.status()["tcp_option"]
    equal((option["services"], option["usable"]), (1, False), "status")
    check("CAP_BPF" in option["text"] or "bpf(2)" in option["text"], option)
    check("TCP option   SMC-R's cannot be used: BPF" in e.ctl_text("status"), "status in words")
    if not has_bpf(t):
        return
    port = t.port()
    a = Daemon(t, "ingress", {"log_level": "info", "devices": device(t), "ingress": [
        {"name": "i", "listen": hostport(t.addr, port), "to": hostport(*at), "peer": "linux"}]})
    check("TCP option   SMC-R's is in use" in a.ctl_text("status"), "status in words")
    check("cannot be used" not in a.log(), "no warning")
    with connect_to((t.addr, port), 20) as s:
        s.sendall(b"hello")
        same_bytes(recv_exact(s, 5), b"hello", "echo")
        equal(e.connections()[0]["reason"]["local_code"], NO_OPTION, "the egress's reason")
        check("the peer's SYN had the option" in e.connections()[0]["reason"]["detail"], "the egress's words")
        equal(a.connections()[0]["reason"]["local_code"], NO_PEER, "the ingress's reason")
        check("no SMC-R option in the SYN/ACK" in a.connections()[0]["reason"]["detail"], "the ingress's words")


@case("a separate user with the two capabilities of the drop-in: the option works, the capabilities are dropped")
def _(t):
    need_bpf(t)
    if os.geteuid() != 0:
        raise Skip("only root can change the user")
    server = Recorder(t)
    at, port = (t.addr, t.port()), t.port()
    for bpf in ("bpf", "cap_39"):		# an older libcap-ng has no name for it
        rights = f"+{bpf},+net_admin"
        wrap = [need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps=-all,{rights}",
                f"--ambient-caps=-all,{rights}", f"--bounding-set=-all,{rights}"]
        if subprocess.run([*wrap, "true"], stderr=subprocess.DEVNULL).returncode == 0:
            break
    d = Daemon(t, "nobody", {"log_level": "info", "devices": device(t),
                             "egress": [{"name": "e", "listen": hostport(*at), "to": hostport(*server.at), "peer": "auto"}],
                             "ingress": [{"name": "i", "listen": hostport(t.addr, port), "to": hostport(*at),
                                          "peer": "auto"}]}, start=False, wrap=wrap)
    os.chown(d.dir, 65534, 65534)
    d.start()
    check(d.status()["tcp_option"]["usable"], d.status()["tcp_option"])
    with open(f"/proc/{d.pid}/status", encoding="ascii") as f:
        caps = {x.split(":")[0]: int(x.split(":")[1], 16) for x in f if x.startswith("Cap")}
    left = caps["CapEff"] | caps["CapPrm"]
    check(left in (0, 1 << 39), f"capabilities: {left:x}")
    equal("CAP_BPF" in d.status()["confinement"]["capabilities"]["text"], left != 0, "what status says is kept")
    same_bytes(talk((t.addr, port), b"")[0], b"hello", "echo")
    equal((d.counters()["option_agreed"], d.counters()["established_client"]), (2, 1), "by the option, on SMC-R")


@case("option not needed: no program, no warning; a reload that needs it requires a take-over; peer changes apply")
def _(t):
    server = Recorder(t)
    at, port = (t.addr, t.port()), t.port()
    conf = {"log_level": "info", "devices": device(t),
            "egress": [{"name": "e", "listen": hostport(*at), "to": hostport(*server.at)}],
            "ingress": [{"name": "i", "listen": hostport(t.addr, port), "to": hostport(*at)}]}
    d = Daemon(t, "d", conf)
    option = d.status()["tcp_option"]
    equal((option["services"], option["usable"]), (0, False), "status")
    check("no service wanted it when smcrd was started" in option["text"], option)
    check("TCP option" not in d.ctl_text("status") and "TCP option" not in d.log(), "no word of it")
    d.write_conf(dict(conf, egress=[dict(conf["egress"][0], peer="auto")]))
    messages = d.ctl("reload")["messages"]
    check("warning: SMC-R's TCP option cannot be used" in messages and "smcrd --reload" in messages, messages)
    equal(d.status()["waiting_settings"], 1, "what waits for a take-over")
    same_bytes(talk(at, b"")[0], b"hello", "a plain client after the reload")
    same_bytes(talk((t.addr, port), b"")[0], b"hello", "an ingress with peer smcrd")
    equal(d.counters()["established_server"], 1, "on SMC-R")
    d.finish()
    need_bpf(t)
    # The option is there, but the socket was opened before the service wanted it.
    d = Daemon(t, "d", dict(conf, ingress=[dict(conf["ingress"][0], peer="auto")]))
    d.write_conf(dict(conf, ingress=[dict(conf["ingress"][0], peer="auto")],
                      egress=[dict(conf["egress"][0], peer="auto")]))
    messages = d.ctl("reload")["messages"]
    check("warning: service e: its listening socket was opened without" in messages, messages)
    same_bytes(talk((t.addr, port), b"")[0], b"hello", "by TCP")
    equal(d.counters()["established_server"], 0, "on SMC-R")
    d.finish()
    d.start()
    same_bytes(talk((t.addr, port), b"")[0], b"hello", "after the restart")
    equal(d.counters()["established_server"], 1, "on SMC-R")
    # And back: the option in the SYN/ACKs does no harm to a service that does not look at it.
    d.write_conf(conf)
    equal(d.ctl("reload")["messages"].count("warning"), 0, "warnings")
    same_bytes(talk((t.addr, port), b"")[0], b"hello", "after the second reload")
    equal(d.counters()["established_server"], 2, "on SMC-R")


@case("smcrctl check and prewarming use the option",
      one_worker="each worker makes a link group ahead")
def _(t):
    server = Recorder(t)
    at = (t.addr, t.port())
    d = Daemon(t, "d", {"log_level": "info", "devices": device(t), "smcr": {"clc_timeout": "1s"},
                        "egress": [{"name": "e", "listen": hostport(*at), "to": hostport(*server.at), "peer": "auto"}],
                        "ingress": [{"name": "i", "listen": hostport(t.addr, t.port()), "to": hostport(*server.at),
                                     "peer": "auto", "prewarm": True}]})
    check(d.ctl("check", hostport(*at))["possible"], "an egress with auto")
    wait_until(lambda: "prewarming failed" in d.log() and server.got, "prewarming has failed, and the server had it")
    # Others are the egress's, which says in a check whether its server works.
    equal({bytes(x) for x in server.got}, {b""}, "a check and prewarming send a plain server nothing")
    if has_bpf(t):
        logs(d, "no SMC-R option in the SYN/ACK")
        text = d.ctl_text("check", hostport(*server.at), status=1)
        check("no SMC-R option in its SYN/ACK: its kernel has no SMC, or a middlebox drops it" in text, text)


@case("300 plain and 300 SMC-R connections at once to one egress", timeout=120)
def _(t):
    server = Recorder(t)
    at, port = (t.addr, t.port()), t.port()
    d = Daemon(t, "d", {"log_level": "info", "devices": device(t),
                        "egress": [{"name": "e", "listen": hostport(*at), "to": hostport(*server.at), "peer": "auto"}],
                        "ingress": [{"name": "i", "listen": hostport(t.addr, port), "to": hostport(*at),
                                     "peer": "auto" if has_bpf(t) else "smcrd"}]})
    wrong = []

    def client(n):
        got, _ = talk(at if n % 2 else (t.addr, port), b"")
        if got != b"hello":
            wrong.append((n, got))
    threads = [threading.Thread(target=client, args=(n,)) for n in range(600)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    check(not wrong, f"{len(wrong)} of 600: {wrong[:3]}")
    stats = d.counters()
    equal(stats["established_server"], 300, "on SMC-R")
    equal(sum(s["fallbacks"] for s in d.services() if s["kind"] == "egress"), 300, "plain")
    server.server.ok()


@case("after a take-over the sockets keep the option, also when the old process has ended")
def _(t):
    need_bpf(t)
    server = Recorder(t)
    at, port = (t.addr, t.port()), t.port()
    b = Daemon(t, "b", {"log_level": "info", "devices": device(t), "workers": 2, "egress": [
        {"name": "e", "listen": hostport(*at), "to": hostport(*server.at), "peer": "auto"}]})
    Daemon(t, "a", {"log_level": "info", "devices": device(t), "ingress": [
        {"name": "i", "listen": hostport(t.addr, port), "to": hostport(*at), "peer": "auto"}]})
    for n in range(1, 4):
        equal(talk((t.addr, port), b"")[0], b"hello", "echo")
        equal(b.counters()["option_agreed"], 1, "with the option")
        old, b = b, b.successor()
        equal(old.wait(), 0, "exit status")
        check("without SMC-R's TCP option" not in b.log(), b.log())
    equal(talk((t.addr, port), b"")[0], b"hello", "echo")
    equal((b.counters()["option_agreed"], b.established()), (1, 1), "with the option, on SMC-R")


main()
