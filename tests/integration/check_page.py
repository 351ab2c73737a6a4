#!/usr/bin/env python3
"""The page of the metrics endpoint in a browser: headless Chromium, at the width of a screen and of a phone, light and dark.
SMCRD_SCREENSHOT=FILE keeps a picture (doc/metrics.png is one)."""
import os
import re
import shutil

from harness import Pair, Server, Skip, case, check, echo, equal, hostport, main, pattern, recv_exact, soft_device, wait_until
from scrape import get

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr"]
DARK, LIGHT = 0, 1
# What the browser makes of the page on a screen of that width, in its title: how far it goes to the right, and the rest. Its window
# is not as narrow as a phone, whatever one asks for. What is in a box may be wider: it scrolls.
PROBE = """<style>html{width:WIDTHpx}</style><script>document.title = [
Math.ceil(Math.max(...[...document.querySelectorAll("h1,h2,p,.tile,.box")].map(e => e.getBoundingClientRect().right))),
getComputedStyle(document.body).backgroundColor, document.querySelectorAll("tr").length,
document.querySelectorAll(".tile").length].join(";")</script>"""


def chromium(t, *args, width=1280, height=900, scheme=LIGHT):
    """What it prints, and what the page says on its console."""
    browser = shutil.which("chromium")
    if browser is None:
        raise Skip("chromium is not there")
    log = t.path(f"chromium.{t.count()}")
    with open(log, "wb") as err:
        out = t.run([browser, *FLAGS, f"--user-data-dir={t.path(f'profile.{t.count()}')}", f"--window-size={width},{height}",
                     f"--blink-settings=preferredColorScheme={scheme}", *args], timeout=90, stderr=err)
    with open(log, errors="replace") as f:
        return out.decode(), [line for line in f if "CONSOLE" in line]


def lively_pair(t):
    """Two services, of which the second has no server; connections on SMC-R with data."""
    at = (t.addr, t.port())
    server = Server(t, echo)
    pair = Pair(t, {"redis": server.at, "nobody": (t.addr, t.port())}, a={"metrics": {"listen": hostport(*at)}, "devices": [
        soft_device(t.addr)]})
    for i in range(5):
        s = pair.connect("redis")
        s.sendall(pattern(20000, i))
        recv_exact(s, 20000)
    pair.turned_away("nobody")
    return pair, at


@case("a browser shows services, groups, links and devices, without an error", timeout=150)
def _(t):
    pair, at = lively_pair(t)
    url = f"http://{hostport(*at)}/"
    dom, said = chromium(t, "--dump-dom", url)
    equal(said, [], "on the console")
    for word in ("redis", "nobody", "siw0", hostport(pair.host, pair.port["redis"]), "on SMC-R", "Devices"):
        check(word in dom, f"{word} is not there")
    check(re.search(r'<b class="ok">5</b><span>on SMC-R', dom), "five connections on SMC-R")
    check(re.search(r">redis</a></td><td class=\"wrap ok\">up</td><td class=\"\">-</td><td class=\"n ok\">5</td>", dom), "they are of that service")
    equal(get(at, "/")[1]["Content-Security-Policy"].split(";")[0], "default-src 'none'", "policy")
    wait_until(lambda: sum(pair.a.ctl("history")["total"]["accepted"]) > 0, "a step is over")
    dom, said = chromium(t, "--dump-dom", url + "service?name=redis")
    equal(said, [], "on the console")
    check(dom.count("<figure") == 4 and "ingress redis" in dom, "charts of a service")
    equal(get(at, "/service?name=nope")[0], 404, "another service")
    picture = t.path("page.png")
    chromium(t, f"--screenshot={picture}", url)
    check(os.path.getsize(picture) > 10000, "a picture")
    if keep := os.environ.get("SMCRD_SCREENSHOT"):
        shutil.copy(picture, keep)


@case("it fits a phone, and follows the dark mode", timeout=150)
def _(t):
    _, at = lively_pair(t)
    page = t.path("page.html")
    seen = {}
    for width, scheme in ((1280, LIGHT), (390, LIGHT), (390, DARK)):
        with open(page, "wb") as f:
            f.write(get(at, "/")[2] + PROBE.replace("WIDTH", str(width)).encode())
        dom, _ = chromium(t, "--dump-dom", f"file://{page}", width=width, scheme=scheme)
        needs, colour, rows, tiles = re.search(r"<title>([^<]*)</title>", dom)[1].split(";")
        t.note(f"{width} wide: the page needs {needs}, {colour}, {rows} rows")
        check(width / 2 < int(needs) <= width, f"it needs {needs} of {width}")
        check(int(rows) >= 8 and int(tiles) == 9, f"{rows} rows, {tiles} tiles")
        seen[width, scheme] = sum(map(int, re.findall(r"\d+", colour)[:3]))
    check(seen[390, LIGHT] > 600 and seen[390, DARK] < 150, f"brightness: {seen}")


main()
