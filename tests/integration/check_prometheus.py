#!/usr/bin/env python3
"""Prometheus itself: it scrapes a pair under load; the alert rules fire when they should; rules and dashboard know the metrics."""
import json
import os
import re
import subprocess
import urllib.parse

from harness import (PATIENCE, Pair, Server, case, check, echo, equal, hostport, main, need, pattern, recv_exact, wait_until)
from scrape import get

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
EXAMPLES = os.path.join(SOURCE, "prometheus")


def promtool(*args, **kw):
    done = subprocess.run([need("promtool"), *args], capture_output=True, text=True, timeout=120 * PATIENCE, **kw)
    return done.returncode, done.stdout + done.stderr


def documented():
    """Names of samples, by doc/metrics-list.md."""
    names = set()
    with open(os.path.join(SOURCE, "doc", "metrics-list.md")) as f:
        for name, kind in re.findall(r"^\| `(smcrd_\w+)` \| (\w+) \|", f.read(), re.M):
            names |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names


def dashboard():
    with open(os.path.join(EXAMPLES, "grafana-dashboard.json")) as f:
        return json.load(f)


def expressions():
    """Those of the dashboard, with values for its variables."""
    found = [t["expr"] for p in dashboard()["panels"] for t in p["targets"]]
    return [e.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$service", ".*") for e in found]


@case("rules and dashboard use existing metrics")
def _(t):
    with open(os.path.join(EXAMPLES, "smcrd-alerts.yml")) as f:
        rules = f.read()
    names = documented()
    check(len(names) > 100, f"{len(names)} names in the document")
    said = {"\n".join(expressions()): "dashboard", "\n".join(re.findall(r"expr:.*(?:\n {10,}.*)*", rules)): "rules"}
    for text, where in said.items():
        used = set(re.findall(r"\bsmcrd_\w+", text))
        check(len(used) > 5, f"the {where} use {used}")
        equal(used - names, set(), f"metrics of the {where} that are not there")
    with open(os.path.join(SOURCE, "doc", "metrics.md")) as f:
        first = set(re.findall(r"\bSmcrd\w+", f.read()))
    check(len(first) >= 5, f"alerts of the document: {first}")
    equal(first - set(re.findall(r"alert: (\w+)", rules)), set(), "alerts of the document that are not there")
    ids = [p["id"] for p in dashboard()["panels"]]
    equal(len(ids), len(set(ids)), "panels with a number of their own")


@case("promtool: the alert rules are valid and fire as expected; the dashboard's expressions are PromQL", timeout=150)
def _(t):
    equal(promtool("check", "rules", os.path.join(EXAMPLES, "smcrd-alerts.yml"))[0], 0, "check rules")
    status, said = promtool("test", "rules", "alerts-test.yml", cwd=EXAMPLES)
    equal(status, 0, f"test rules: {said}")
    rules = t.path("dashboard.yml")
    with open(rules, "w") as f:
        json.dump({"groups": [{"name": "dashboard", "rules": [
            {"record": f"test:{i}", "expr": e} for i, e in enumerate(expressions())]}]}, f)
    status, said = promtool("check", "rules", rules)
    equal(status, 0, f"dashboard: {said}")


@case("Prometheus scrapes a pair under load and evaluates the rules without an error", timeout=150)
def _(t):
    program = need("prometheus")
    at = [(t.addr, t.port()) for _ in range(2)]
    pair = Pair(t, {"x": Server(t, echo).at}, **{side: {"metrics": {"listen": hostport(*where)}} for side, where in zip("ab", at)})
    conns = [pair.connect() for _ in range(4)]

    def load():
        for i, s in enumerate(conns):
            s.sendall(pattern(50000, i))
            recv_exact(s, 50000)
    load()
    conf, where = t.path("prometheus.json"), (t.addr, t.port())
    with open(conf, "w") as f:	# JSON is YAML
        json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                   "rule_files": [os.path.abspath(os.path.join(EXAMPLES, "smcrd-alerts.yml"))],
                   "scrape_configs": [{"job_name": "smcrd", "static_configs": [
                       {"targets": [hostport(*x) for x in at]}]}]}, f)
    prometheus = t.spawn([program, f"--config.file={conf}", f"--storage.tsdb.path={t.path('tsdb')}",
                          f"--web.listen-address={hostport(*where)}", "--log.level=warn"], name="prometheus")

    def query(expr):
        load()
        try:
            answer = json.loads(get(where, "/api/v1/query?" + urllib.parse.urlencode({"query": expr}))[2])
        except (OSError, ValueError):
            return None
        return {r["metric"].get("instance", ""): float(r["value"][1]) for r in answer["data"]["result"]}

    both = {hostport(*x) for x in at}
    wait_until(lambda: query('up{job="smcrd"} == 1') == {x: 1.0 for x in both}, "both are up", 60)
    wait_until(lambda: query('sum by (instance) (smcrd_service_connections{mode="smcr"})') == {x: 4.0 for x in both},
               "four connections at each end", 30)
    rates = wait_until(lambda: (r := query("sum by (instance) (rate(smcrd_service_bytes_total[10s]))"))
                       and set(r) == both and min(r.values()) > 0 and r, "bytes grow", 60)
    t.note(f"rates: {rates}")
    p99 = query("histogram_quantile(0.99, sum by (instance, le) (smcrd_service_setup_seconds_bucket))")
    check(set(p99) == both and all(0 < v < 60 for v in p99.values()), f"set-up times: {p99}")
    # What the scraper said of them, and what became of the rules.
    targets = json.loads(get(where, "/api/v1/targets")[2])["data"]["activeTargets"]
    equal([x["lastError"] for x in targets], ["", ""], "errors of scraping")
    types = json.loads(get(where, "/api/v1/metadata?metric=smcrd_service_setup_seconds")[2])["data"]
    equal(types["smcrd_service_setup_seconds"][0]["type"], "histogram", "type, as OpenMetrics has it")
    equal(query("count(scrape_samples_scraped > 150)"), {"": 2.0}, "samples")

    def evaluated():
        groups = json.loads(get(where, "/api/v1/rules")[2])["data"]["groups"]
        rules = [r for g in groups for r in g["rules"]]
        return rules and all(r["health"] != "unknown" for r in rules) and rules
    rules = wait_until(evaluated, "rules are evaluated", 60)
    equal([(r["name"], r["lastError"]) for r in rules if r["health"] != "ok"], [], "rules that fail")
    equal([r["name"] for r in rules if r["state"] == "firing"], [], "alerts")
    check("level=error" not in prometheus.log() and "Duplicate sample" not in prometheus.log() and
          "out-of-order" not in prometheus.log(), f"Prometheus says: {prometheus.log()}")
    for s in conns:
        s.close()
    prometheus.stop()
    pair.quiet()


main()
