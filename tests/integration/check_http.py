#!/usr/bin/env python3
"""nginx through a pair with curl and wrk: large files both ways, ranges, many connections."""
import hashlib

from harness import Pair, case, check, equal, main, need, pattern, same_bytes, SECONDS, SHRINK
from programs import Nginx, wrk


def setup(t):
    server = Nginx(t)
    pair = Pair(t, {"http": (server.host, server.port)})
    return server, pair, f"http://{pair.host}:{pair.port['http']}"


@case("curl: 100 MiB down and up, and ranges", timeout=120)
def _(t):
    server, pair, url = setup(t)
    curl = need("curl")
    data = pattern((100 << 20) // SHRINK)
    path = server.file("big", data)
    same_bytes(t.run([curl, "-sSf", f"{url}/big"]), data, "download")
    t.run([curl, "-sSf", "-T", path, f"{url}/put/copy"])
    with open(f"{server.root}/put/copy", "rb") as f:
        same_bytes(f.read(), data, "upload")
    for first, last in ((0, 0), (65535, 65536), (1 << 20, (1 << 20) + 99999)):
        same_bytes(t.run([curl, "-sSf", "-r", f"{first}-{last}", f"{url}/big"]), data[first:last + 1], "range")
    pair.only_smcr(5)


@case("curl: 300 files of random sizes, 30 at a time", timeout=120)
def _(t):
    server, pair, url = setup(t)
    sums, names = {}, []
    for i in range(300 // SHRINK):
        data = pattern(i * i * 7, i)
        server.file(f"f{i}", data)
        sums[f"f{i}"] = hashlib.sha256(data).hexdigest()
        names.append(f"f{i}")
    argv = [need("curl"), "-sSf", "-Z", "--parallel-max", "30"]
    for name in names:
        argv += ["-o", t.path(name), f"{url}/{name}"]
    t.run(argv, timeout=90)
    for name in names:
        with open(t.path(name), "rb") as f:
            equal(hashlib.sha256(f.read()).hexdigest(), sums[name], f"checksum of {name}")
    pair.only_smcr()


@case("wrk: 100 kept connections", timeout=60)
def _(t):
    _, pair, url = setup(t)
    t.note(f"{wrk(t.run, url + '/small', 100, SECONDS + 1)} requests in {SECONDS + 1} s")
    pair.only_smcr(100)


@case("wrk: a new connection for every request", timeout=60)
def _(t):
    _, pair, url = setup(t)
    done = wrk(t.run, url + "/small", 20, SECONDS + 1, "-H", "Connection: close")
    t.note(f"{done} connections in {SECONDS + 1} s")
    pair.only_smcr(done)
    pair.quiet()


main()
