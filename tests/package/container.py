#!/usr/bin/env python3
"""
container.py ROOT: the image of packaging/Containerfile as Kubernetes runs it, without a registry. ROOT is a directory in which the package
is unpacked; it gets the libraries and the user, and is changed to with a read-only mount of it, as the image's user, by the image's
entry point. The configuration is that of packaging/kubernetes, laid out as the kubelet does. Needs root; check_package.sh runs it.
"""
import json
import os
import re
import shutil
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
sys.path.insert(0, os.path.join(TOP, "tests", "integration"))
from harness import case, check, equal, main, need, wait_until	# noqa: E402

ROOT = os.path.abspath(sys.argv[1])
PAGE = b"hello from behind the gateways"


def text(name):
    with open(os.path.join(TOP, "packaging", name), encoding="utf-8") as f:
        return f.read()


IMAGE = text("Containerfile")
USER = re.search(r"^USER (\d+:\d+)$", IMAGE, re.M)[1]
ENTRY = json.loads(re.search(r"^ENTRYPOINT (.*)$", IMAGE, re.M)[1])
HEALTH = json.loads(re.search(r"^HEALTHCHECK CMD (.*)$", IMAGE, re.M)[1])


def make_image(t):
    """What the image has besides the package, as far as the programs notice."""
    for program in ("usr/sbin/smcrd", "usr/bin/smcrctl"):
        out = t.run([need("ldd"), os.path.join(ROOT, program)]).decode()
        for path in re.findall(r"(/\S+) \(0x", out):
            os.makedirs(ROOT + os.path.dirname(path), exist_ok=True)
            shutil.copy(os.path.realpath(path), ROOT + path)
    for d in ("proc", "run/smcrd", "etc/smcrd"):
        os.makedirs(os.path.join(ROOT, d), exist_ok=True)
    with open(os.path.join(ROOT, "etc/passwd"), "w") as f:
        f.write(f"smcrd:x:{USER}::/:/usr/sbin/nologin\n")


def configuration(service):
    """That of the DaemonSet, with the server's gateway in the same process, and a service of this name."""
    found = re.search(r"smcrd\.conf: \|\n((?:    .*\n)+)", text("kubernetes/configmap.yaml"))[1]
    found = found.replace("db.example.com:", "127.0.0.1:").replace('"postgres"', f'"{service}"')
    return found + 'egress = ( { name = "pg"; listen = "127.0.0.1:15432"; to = "127.0.0.1:8000"; } );\n'


def mount_map(where, conf):
    """A ConfigMap's directory: the kubelet renews it by renaming one link."""
    new = f"..{len(os.listdir(where))}"
    os.mkdir(os.path.join(where, new))
    with open(os.path.join(where, new, "smcrd.conf"), "w") as f:
        f.write(conf)
    old = os.path.realpath(os.path.join(where, "..data"))
    os.symlink(new, os.path.join(where, "..new"))
    os.rename(os.path.join(where, "..new"), os.path.join(where, "..data"))
    if os.path.exists(os.path.join(where, "smcrd.conf")):
        shutil.rmtree(old)
    else:
        os.symlink("..data/smcrd.conf", os.path.join(where, "smcrd.conf"))


def files():
    return {os.path.join(d, n) for d, _, names in os.walk(ROOT) for n in names}


class Container:
    """With mounts and a network of its own."""

    def __init__(self, t, config):
        self.t = t
        script = f"""set -e
            mount --make-rprivate / && mount --bind {ROOT} {ROOT} && mount -o remount,bind,ro {ROOT}
            mount --bind {config} {ROOT}/etc/smcrd && mount -o remount,bind,ro {ROOT}/etc/smcrd
            mount -t tmpfs -o mode=2777,gid={USER.split(":")[1]} tmpfs {ROOT}/run/smcrd
            mount -t proc proc {ROOT}/proc
            ip link set lo up
            exec setpriv --no-new-privs chroot --userspec={USER} --groups= {ROOT} {" ".join(ENTRY)}"""
        self.proc = t.spawn([need("unshare"), "--mount", "--net", "--", "sh", "-c", script], "container")

    def enter(self, *argv):
        """A command in it, as `kubectl exec` runs one."""
        user, group = USER.split(":")
        return self.t.run([need("nsenter"), "-t", str(self.proc.pid), "-m", "-n", "-r", "-S", user, "-G", group, "--", *argv]).decode()

    def near(self, *argv):
        """A program of this host in its network."""
        return [need("nsenter"), "-t", str(self.proc.pid), "-n", "--", *argv]

    def get(self, url):
        return self.t.run(self.near(need("curl"), "-sSf", "--max-time", "20", url))

    def status(self):
        with open(f"/proc/{self.proc.pid}/status") as f:
            return dict(re.findall(r"^(\w+):[ \t]*(.*)$", f.read(), re.M))


@case("the image with a read-only root, without root's rights")
def _(t):
    make_image(t)
    config = t.path("map")
    os.mkdir(config)
    mount_map(config, configuration("postgres"))
    before = files()
    c = Container(t, config)
    wait_until(lambda: '"message":"ready"' in c.proc.log() or not c.proc.alive(), "it is ready", 30)
    check(c.proc.alive(), c.proc.log())
    for line in c.proc.log().splitlines():
        json.loads(line)
    have = c.status()
    user, group = USER.split(":")
    equal((have["Uid"].split(), have["Gid"].split(), have["Groups"]), ([user] * 4, [group] * 4, ""), "its users and groups")
    equal([int(have[k], 16) for k in ("CapPrm", "CapEff", "CapInh", "CapAmb")], [0] * 4, "its capabilities")
    equal(have["NoNewPrivs"], "1", "no new privileges")

    check("pid" in c.enter(f"/usr/bin/{HEALTH[0]}", *HEALTH[1:]), "the health check of the image")
    c.get("http://127.0.0.1:9471/healthz")
    check(b"smcrd_" in c.get("http://127.0.0.1:9471/metrics"), "metrics")
    with open(t.path("page"), "wb") as f:
        f.write(PAGE)
    server = t.spawn(c.near(sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", t.dir, "8000"), "server")
    wait_until(lambda: ":8000 " in t.run(c.near(need("ss"), "-tln")).decode() or not server.alive(), "the server listens")
    equal(c.get("http://127.0.0.1:5432/page"), PAGE, "a page through it")
    answer = json.loads(c.enter("/usr/bin/smcrctl", "--json", "status"))["data"]
    equal([(s["accepted"], s["fallbacks"]) for s in answer["services"]], [(1, 0)] * 2, "connections, and those on TCP")

    mount_map(config, configuration("database"))
    c.enter("/usr/bin/smcrctl", "reload")
    names = {s["name"] for s in json.loads(c.enter("/usr/bin/smcrctl", "--json", "status"))["data"]["services"]}
    equal(names, {"database", "pg"}, "services after a new configuration")
    equal(c.proc.stop(), 0, "its status after SIGTERM")
    equal(files(), before, "files of the image")


main()
