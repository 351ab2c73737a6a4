#!/usr/bin/env python3
"""The metrics endpoint of a pair under load: numbers, formats, permissions."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time

from harness import PATIENCE, Pair, Server, Skip, case, check, echo, equal, hostport, main, unlinkable_pair, wait_until, works
from scrape import get, scrape, value


def with_metrics(t, make=Pair, servers=None, **kw):
    """A pair whose daemons have metrics at at[0] and at[1]."""
    at = [(t.addr, t.port()) for _ in range(2)]
    sides = {side: {"metrics": {"listen": hostport(*where)}, **kw.pop(side, {})} for side, where in zip("ab", at)}
    pair = make(t, servers or {"x": Server(t, echo).at}, **sides, **kw)
    pair.at = at
    return pair


def talk(pair, n, name=None):
    s = pair.connect(name)
    works(s, 1, n)
    return s


@case("counters of a pair match its connections, at both ends")
def _(t):
    pair = with_metrics(t)
    conns = [talk(pair, 300000) for _ in range(8)]
    for at, kind in zip(pair.at, ("ingress", "egress")):
        m = scrape(at)
        equal(value(m, "smcrd_service_connections", service="x", kind=kind, mode="smcr"), 8, "on SMC-R")
        equal(value(m, "smcrd_service_connections", service="x"), 8, "all")
        equal(value(m, "smcrd_connections", mode="smcr"), 8, "of all services")
        equal(value(m, "smcrd_service_accepted_total", service="x"), 8, "accepted")
        for way in ("from_app", "to_app"):
            equal(value(m, "smcrd_service_bytes_total", service="x", direction=way), 8 * 300000, f"bytes {way}")
        for what in ("setup", "connect"):
            equal(value(m, f"smcrd_service_{what}_seconds_count", service="x"), 8, what)
        check("smcrd_service_life_seconds_count" not in m, "no life has ended")
        check(value(m, "process_open_fds") > 8 and value(m, "process_cpu_seconds_total") > 0, "of the process")
        check(abs(value(m, "process_start_time_seconds") - time.time()) < 600 * PATIENCE, "its start")
        equal(value(m, "smcrd_config_loaded_timestamp_seconds"), value(m, "process_start_time_seconds"), "read at the start")
        equal(value(m, "smcrd_write_size_bytes_count"), value(m, "smcrd_writes_total"), "writes by size")
        check(value(m, "smcrd_write_size_bytes_sum") >= 8 * 300000, "bytes written")
        check(value(m, "smcrd_links") >= 1 and value(m, "smcrd_groups") >= 1, "links and groups")
        equal(value(m, "smcrd_link_active"), value(m, "smcrd_links"), "links that are active")
        equal(value(m, "smcrd_link_connections"), 8, "connections of links")
        equal(value(m, "smcrd_devices_up"), value(m, "smcrd_device_up"), "devices")
        check(value(m, "smcrd_device_bytes_sent_total") > 8 * 300000, "bytes of devices")
    for s in conns:
        s.close()
    pair.quiet()

    def ended():
        m = scrape(pair.at[0])
        return "smcrd_service_life_seconds_count" in m and value(m, "smcrd_service_life_seconds_count", service="x") == 8 and \
            value(m, "smcrd_service_connections", service="x") == 0
    wait_until(ended, "the connections have ended")
    pair.only_smcr(8)


@case("reasons for TCP and for resets")
def _(t):
    pair = with_metrics(t, unlinkable_pair)
    s = talk(pair, 1000)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    s.close()
    pair.quiet()

    def told(at):
        m = scrape(at)
        return value(m, "smcrd_service_fallbacks_total", service="x") == 1 and \
            value(m, "smcrd_service_resets_total", service="x") == 1 and m
    a, b = (wait_until(lambda at=at: told(at), "fallback and reset are counted") for at in pair.at)
    equal(value(a, "smcrd_service_reset_reasons_total", service="x", reason="client reset the connection"), 1, "reset")
    equal(value(b, "smcrd_service_reset_reasons_total", service="x"), 1, "reset of the egress")
    reasons = [sum(m.get(f"smcrd_service_fallback_reasons_{whose}_total", {}).values())
               for m in (a, b) for whose in ("local", "peer")]
    check(reasons[0] + reasons[1] >= 1 and reasons[2] + reasons[3] >= 1, f"reasons at each end: {reasons}")


@case("promtool accepts the metrics")
def _(t):
    if shutil.which("promtool") is None:
        raise Skip("promtool is not there")
    pair = with_metrics(t)
    s = talk(pair, 100000)
    for at in pair.at:
        body = get(at)[2]
        done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, timeout=60 * PATIENCE)
        equal((done.returncode, done.stdout + done.stderr), (0, b""), "promtool check metrics")
    s.close()


@case("health, status, unknown paths, methods, and a draining daemon", timeout=90)
def _(t):
    pair = with_metrics(t)
    s = talk(pair, 1000)
    at = pair.at[0]
    status, headers, body = get(at, "/healthz")
    equal((status, body), (200, b"ok\n"), "health")
    equal(headers["Connection"], "close", "one request a connection")
    equal(json.loads(get(at, "/status.json")[2])["data"]["pid"], pair.a.pid, "status")
    equal(set(json.loads(get(at, "/status.json")[2])["data"]), set(pair.a.status()), "members of status")
    equal(get(at, "/etc/passwd")[0], 404, "another path")
    equal(get(at, "/metrics", "HEAD")[2], b"", "body of HEAD")
    check(get(at, "/metrics", "POST")[0] in (405, 501), "POST")
    openmetrics = get(at, Accept="application/openmetrics-text; version=1.0.0")
    check(openmetrics[1]["Content-Type"].startswith("application/openmetrics-text"), "content type")
    check(openmetrics[2].endswith(b"\n# EOF\n"), "end of OpenMetrics")
    pair.a.ctl_text("drain")
    wait_until(lambda: get(at, "/healthz")[0] == 503, "it says that it drains")
    pair.a.ctl_text("undrain")
    wait_until(lambda: get(at, "/healthz")[0] == 200, "it says that it drains no longer")
    pair.a.expect_dead = True
    pair.a.send_signal(signal.SIGTERM)
    wait_until(lambda: get(at, "/healthz")[0] == 503, "it says that it drains")
    equal(value(scrape(at), "smcrd_draining"), 1, "draining")
    s.close()
    equal(pair.a.wait(), 0, "exit status")


@case("a UNIX socket has its mode and is removed at the end; the allow list follows a reload")
def _(t):
    path = t.socket_path("metrics")
    at = (t.addr, t.port())
    pair = Pair(t, {"x": Server(t, echo).at}, a={"metrics": {"listen": f"unix:{path}", "mode": "0600"}},
                b={"metrics": {"listen": hostport(*at), "allow": ["192.0.2.1"]}})
    equal(os.stat(path).st_mode & 0o777, 0o600, "mode")
    equal(get(path, "/healthz")[0], 200, "over the UNIX socket")
    equal(value(scrape(path), "smcrd_service_connections", service="x"), 0, "numbers over the UNIX socket")

    def refused():
        try:
            return get(at, "/healthz")[0] == 403
        except OSError:
            return True
    check(refused(), "a stranger is answered")
    pair.b.write_conf(dict(pair.conf_b, metrics={"listen": hostport(*at), "allow": ["127.0.0.0/8"]}))
    pair.b.ctl("reload")
    equal(get(at, "/healthz")[0], 200, "after the reload")
    pair.b.write_conf(dict(pair.conf_b, metrics={"listen": hostport(t.addr, t.port()), "allow": ["127.0.0.0/8"]}))
    check("metrics.listen" in pair.b.ctl("reload")["messages"], "a restart is asked for")
    equal(get(at, "/healthz")[0], 200, "where it was")
    pair.a.finish()
    check(not os.path.exists(path), "the file is gone")


main()
