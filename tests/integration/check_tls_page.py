#!/usr/bin/env python3
"""doc/tls.md: its lines are followed one after the other, by two daemons on loopback, with connections at each step that stay."""
import os
import re
import shutil

from harness import SMCRCTL, SMCRD, Server, case, check, connect_to, echo, equal, main, need, outcome, wait_until, works
from pages import Page, PlainDaemon
from tls_files import Authority

PAGE = Page("tls.md")
CA, PSK = "With a private CA", "With a PSK"
SERVER = "127.0.0.1:5432"
NAMES = {CA: ["spiffe://example.org/gw/b", "spiffe://example.org/gw/a"], PSK: ["psk:gw-b", "psk:gw-a"]}


def steps(name):
    """Those of a section, one host after the other."""
    return [(host, place, lines) for hosts, place, lines in PAGE.sections[name] for host in hosts]


class Two:
    """The hosts, a program's server, and connections that are open since a step of the page."""

    def __init__(self, t, recheck=""):
        """recheck: a setting of tls in each configuration."""
        self.t, self.recheck, self.ports, self.live = t, recheck, {}, []
        self.server = Server(t, echo).at
        self.texts = dict.fromkeys("AB", "")
        self.files = {name: t.path(f"{name}.files.{t.count()}") for name in "ABC"}
        for where in self.files.values():
            os.mkdir(where)
        self.hosts = {name: PlainDaemon(t, name, "", []) for name in "AB"}

    def here(self, host, line):
        """Addresses are of this case, files in a directory of the host, users and groups ours."""
        def at(m):
            return "%s:%d" % (self.server if m[0] == SERVER else (self.t.addr, self.ports.setdefault(m[0], self.t.port())))
        line = re.sub(r"(?:127\.0\.0\.1|192\.0\.2\.2):\d+", at, line)
        line = line.replace("-g smcrd", f"-g {os.getegid()}").replace("-o smcrd", f"-o {os.geteuid()}")
        return line.replace("/etc/smcrd/", f"{self.hosts[host].dir}/") if host != "C" else line

    def write(self, host, text):
        d, self.texts[host] = self.hosts[host], text
        d.conf = f'{self.here(host, text)}\ndevices = ( {{ type = "siw"; address = "{self.t.addr}"; }} );'
        d.conf = d.conf.replace("tls = { ", f"tls = {{ {self.recheck}")
        d.write_conf(d.conf)

    def write_clear(self):
        """As before the page; its own settings are to come."""
        for host, text in self.texts.items():
            self.write(host, re.sub(r'tls = \{.*?\};|secure = "\w+";|peer_names = \[.*?\];', "", text))
            self.texts[host] = text

    def change(self, host, lines):
        """Settings are in the place of those before; others are new."""
        text = self.texts[host]
        for new in re.split(r"\n(?=\S)", "\n".join(lines)):
            key = new.split(" = ")[0]
            text, n = re.subn(rf'\b{key} = (\{{.*?\}}|\[.*?\]|"\w+");', lambda m, new=new: new, text)
            if n == 0:
                text += new + "\n"
        self.write(host, text)

    def restart(self, host):
        d = self.hosts[host]
        if d.alive():
            self.hosts[host] = d.successor()
        else:
            d.start()

    def shell(self, host, line):
        if line == "systemctl restart smcrd":
            self.restart(host)
            return
        if host in self.hosts:
            d, made = self.hosts[host], os.path.join(self.files["C"], host.lower())
            line = re.sub(r"^smcrctl ", f"{SMCRCTL} -s {d.control} ", re.sub(r"^smcrd ", f"{SMCRD} -f {d.conf_path} ", line))
            if os.path.isdir(made):		# the page says so in words
                shutil.copytree(made, os.path.join(self.files[host], "tls"), dirs_exist_ok=True)
        self.t.run(["sh", "-ec", self.here(host, line)], cwd=self.files[host])

    def take(self, host, place, lines):
        if place == "shell":
            for line in lines:
                self.shell(host, line)
        elif place == "smcrd.conf":
            self.change(host, lines)
        else:
            with open(os.path.join(self.files[host], os.path.basename(place)), "w") as f:
                f.write("".join(self.here(host, line) + "\n" for line in lines))

    def follow(self, name, cut=None):
        """Each step of a section, (host, lines), with what is open; cut: the number of the step that resets it."""
        for nr, (host, place, lines) in enumerate(steps(name), 1):
            self.take(host, place, lines)
            if nr == cut:
                self.all_cut()
            self.all_live()
            yield host, lines

    def up(self):
        return all(d.alive() for d in self.hosts.values())

    def connect(self):
        s = connect_to((self.t.addr, self.ports["127.0.0.1:15432"]))
        self.t.later(s.close)
        return s

    def one_more(self):
        """A connection that stays; its protection, and the peer's name, by each host."""
        said = [{c["id"] for c in d.connections()} for d in self.hosts.values()]
        s = self.connect()
        works(s)
        self.live.append(s)
        new = [c for d, old in zip(self.hosts.values(), said) for c in d.connections() if c["id"] not in old]
        equal([c["mode"] for c in new], ["smcr", "smcr"], "mode of the new connection at both ends")
        return [c["protection"] for c in new], [c["peer_name"] for c in new]

    def in_tls(self, names):
        equal(self.one_more(), (["tls", "tls"], names), "a connection in TLS")
        self.none_failed()

    def none_failed(self):
        counters = [d.counters() for d in self.hosts.values()]
        equal([c[what] for c in counters for what in ("tls_failed", "tls_refused")], [0] * 4, "failed handshakes, refused files")

    def all_live(self):
        for s in self.live:
            works(s)

    def all_cut(self):
        for s in self.live:
            equal(outcome(s), ("reset", b""), "a connection that is cut")
        self.live = []

    def reread(self, host, fn):
        """What fn changes is in force without a reload; nothing is cut."""
        d = self.hosts[host]
        before = d.counters()["tls_reread"]
        fn()
        wait_until(lambda: d.counters()["tls_reread"] > before, f"{host} has read its files again")
        self.none_failed()
        self.all_live()


def goes_on(two, name, names, cut=None):
    for _ in two.follow(name, cut):
        if two.up():
            two.in_tls(names)


def configured(t, section, **kw):
    """Not yet started, with all that the page has before that."""
    two = Two(t, **kw)
    for host, place, lines in [*steps(CA), *(steps(PSK) if section == PSK else [])]:
        if lines[0] != "smcrd -t" and "smcrctl" not in lines[0]:
            two.take(host, place, lines)
    if section == PSK:
        for host in "AB":
            two.shell(host, "sh take.sh")
    return two


def tutorial(t, section):
    two = configured(t, section)
    for host, place, lines in steps(CA)[-3:]:
        two.take(host, place, lines)
    two.in_tls(NAMES[section])
    return two


@case("from nothing to required with a private CA, a new certificate, a new CA: nothing is cut")
def _(t):
    two = tutorial(t, CA)
    equal(len({line for _, place, lines in steps(CA) for line in lines if place == "shell"}), 8, "commands")
    for name in ("New certificate", "New CA"):
        goes_on(two, name, NAMES[CA])


@case("a new CA without a connection since the new certificates: those of before are cut")
def _(t):
    two = tutorial(t, CA)
    for _ in two.follow("New CA", cut=len(steps("New CA")) - 1):
        pass


@case("revocation: the peer's connections are cut, and it gets none")
def _(t):
    two, last = tutorial(t, CA), len(steps("Revocation"))
    for nr, _ in enumerate(two.follow("Revocation", last), 1):
        if nr < last:
            two.in_tls(NAMES[CA])
    with two.connect() as s:
        equal(outcome(s), ("reset", b""), "a new connection")


@case("from nothing to required with a PSK, a new PSK: nothing is cut")
def _(t):
    goes_on(tutorial(t, PSK), "New PSK", NAMES[PSK])


@case("a new PSK without a connection since it is offered: those of before are cut")
def _(t):
    for _ in tutorial(t, PSK).follow("New PSK", cut=len(steps("New PSK")) - 1):
        pass


@case("from clear to TLS: nothing is cut")
def _(t):
    for section in (CA, PSK):
        two = configured(t, section)
        two.write_clear()
        for host in "BA":
            two.restart(host)
        clear = (["clear", "clear"], ["", ""])
        equal(two.one_more(), clear, "a connection before")
        names = None
        for host, lines in two.follow("From clear to TLS"):
            names = names or (NAMES[section] if (host, lines) == ("A", ["smcrctl reload"]) else None)
            equal(two.one_more(), (["tls", "tls"], names) if names else clear, f"a connection after {lines} of {host}")
            two.none_failed()
        check(two.hosts["B"].counters()["tls_clear"] > 0, "those in clear were counted")
        equal({c["protection"] for d in two.hosts.values() for c in d.connections()}, {"clear", "tls"}, "connections at the end")


def with_own_files(t, name, san, write):
    """A takes its files as this section says, by write(a certificate's); then new ones, without a reload."""
    two, ca = configured(t, CA, recheck='recheck = "1s"; '), Authority(t)
    for d in two.hosts.values():
        shutil.rmtree(os.path.join(d.dir, "tls"))
    for part in steps(name):
        two.take(*part)
    tls = " ".join(f'{k} = "{v}";' for k, v in ca.issue("b", san.replace("NAME", "b")).items())
    names = [san.replace("NAME", x).replace("URI:", "").replace("DNS:", "dns:") for x in "ba"]
    two.change("B", [f"tls = {{ {tls} }};", f'peer_names = [ "{names[1]}" ];'])

    def renew():
        write(two, ca.issue("a", san.replace("NAME", "a")))
    renew()
    for host in "BA":
        two.restart(host)
    two.in_tls(names)
    two.reread("A", renew)
    two.in_tls(names)


@case("SPIFFE: an agent writes new files")
def _(t):
    lines = next(lines for _, place, lines in steps("SPIFFE") if place == "spiffe-helper.conf")
    conf = dict(re.findall(r'(\w+) = "(.*)"', "\n".join(lines)))

    def agent(two, new):
        """As spiffe-helper: each file is opened for writing, one after the other, the key with its default mode."""
        for what, name, mode in (("cert", "svid", 0o644), ("key", "svid_key", 0o600), ("ca", "svid_bundle", 0o644)):
            path = os.path.join(two.here("A", conf["cert_dir"] + "/"), conf[f"{name}_file_name"])
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            with open(new[what]) as f, open(fd, "w") as out:
                out.write(f.read())
    with_own_files(t, "SPIFFE", "URI:spiffe://example.org/gw/NAME", agent)


@case("ACME: the hook of a client writes new files")
def _(t):
    def hook(two, new):
        lineage = t.path(f"live.{t.count()}")
        os.mkdir(lineage)
        shutil.copy(new["cert"], os.path.join(lineage, "fullchain.pem"))
        shutil.copy(new["key"], os.path.join(lineage, "privkey.pem"))
        t.run(["sh", "-e", os.path.join(two.files["A"], "smcrd")], env=dict(os.environ, RENEWED_LINEAGE=lineage))
        shutil.copy(new["ca"], two.here("A", "/etc/smcrd/tls/ca.pem"))
    with_own_files(t, "ACME", "DNS:gw-NAME.example.org", hook)


@case("each section has a case")
def _(t):
    equal(list(PAGE.sections), [CA, PSK, "From clear to TLS", "New certificate", "New CA", "Revocation", "New PSK", "SPIFFE", "ACME"], "sections")


if __name__ == "__main__":
    need("openssl")
    main(one_worker="each has link groups of its own, and the page makes one connection at a time")
