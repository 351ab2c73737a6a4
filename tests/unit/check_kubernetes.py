#!/usr/bin/python3
"""
packaging/kubernetes: each manifest has only fields that the API has, with their types, as far as the table below goes; names of one
place are those of the other; what the gateway's container may do; configurations that smcrd takes. As TAP. It needs PyYAML, of Debian.
"""
import os
import re
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    print("1..0 # SKIP PyYAML is not installed (Debian package python3-yaml)")
    sys.exit(0)

TOP = os.path.abspath(os.environ.get("top_srcdir", "."))
BUILD = os.path.abspath(os.environ.get("top_builddir", "build"))
DIR = os.path.join(TOP, "packaging", "kubernetes")

# Fields of the API: a name with ! has to be there. A set lists words, a list has one kind of entries, ANY: free names.
ANY = "*"
LABELS = {ANY: str}
META = {"name!": str, "labels": LABELS}
SELECTOR = {"matchLabels": LABELS, "matchExpressions": [{"key!": str, "operator!": {"In", "NotIn", "Exists", "DoesNotExist"}, "values": [str]}]}
PROBE = {"httpGet": {"path": str, "port!": (str, int), "host": str}, "exec": {"command": [str]}, "periodSeconds": int, "timeoutSeconds": int,
         "failureThreshold": int, "initialDelaySeconds": int}
USER = {"runAsNonRoot": bool, "runAsUser": int, "runAsGroup": int, "seccompProfile": {"type!": {"RuntimeDefault", "Unconfined", "Localhost"}}}
CONTAINER = {"name!": str, "image!": str, "command": [str], "args": [str], "restartPolicy": {"Always"},
             "env": [{"name!": str, "value": str, "valueFrom": {"secretKeyRef": {"name!": str, "key!": str}, "fieldRef": {"fieldPath!": str}}}],
             "securityContext": {**USER, "allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool, "privileged": bool,
                                 "capabilities": {"add": [str], "drop": [str]}},
             "ports": [{"name": str, "containerPort!": int, "hostPort": int, "protocol": {"TCP", "UDP", "SCTP"}}],
             "startupProbe": PROBE, "readinessProbe": PROBE, "livenessProbe": PROBE,
             "resources": {"requests": {ANY: str}, "limits": {ANY: str}},
             "volumeMounts": [{"name!": str, "mountPath!": str, "readOnly": bool}]}
POD = {"hostNetwork": bool, "dnsPolicy": {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"}, "automountServiceAccountToken": bool,
       "enableServiceLinks": bool, "terminationGracePeriodSeconds": int, "securityContext": {**USER, "fsGroup": int},
       "containers!": [CONTAINER], "initContainers": [CONTAINER],
       "volumes": [{"name!": str, "configMap": {"name!": str}, "emptyDir": {"medium": str}, "hostPath": {"path!": str, "type": str}}]}
TEMPLATE = {"metadata!": {"labels!": LABELS}, "spec!": POD}
KINDS = {
    "ConfigMap": ("v1", {"metadata!": META, "data!": {ANY: str}}),
    "DaemonSet": ("apps/v1", {"metadata!": META, "spec!": {
        "selector!": SELECTOR, "template!": TEMPLATE, "updateStrategy": {"type": {"RollingUpdate", "OnDelete"}, "rollingUpdate": {"maxUnavailable": (int, str)}}}}),
    "Deployment": ("apps/v1", {"metadata!": META, "spec!": {"selector!": SELECTOR, "template!": TEMPLATE, "replicas": int}}),
    "PodMonitor": ("monitoring.coreos.com/v1", {"metadata!": META, "spec!": {
        "selector!": SELECTOR, "podMetricsEndpoints!": [{"port": str, "path": str, "interval": str}]}}),
}


def faults(value, want, at):
    """What is wrong with a value, by the table."""
    if isinstance(want, list):
        if not isinstance(value, list):
            return [f"{at}: no list"]
        return [f for i, x in enumerate(value) for f in faults(x, want[0], f"{at}[{i}]")]
    if isinstance(want, set):
        return [] if value in want else [f"{at}: {value!r} is not of {sorted(want)}"]
    if isinstance(want, dict):
        if not isinstance(value, dict):
            return [f"{at}: no mapping"]
        fields = {name.rstrip("!"): kind for name, kind in want.items()}
        out = [f"{at}: no {name[:-1]}" for name in want if name.endswith("!") and name[:-1] not in value]
        for name, x in value.items():
            kind = fields.get(name, fields.get(ANY))
            out += [f"{at}.{name}: no such field"] if kind is None else faults(x, kind, f"{at}.{name}")
        return out
    kinds = want if isinstance(want, tuple) else (want,)
    return [] if type(value) in kinds else [f"{at}: {value!r} is no {' or '.join(k.__name__ for k in kinds)}"]


def read(name):
    with open(name, encoding="utf-8") as f:
        return f.read()


FILES = sorted(name for name in os.listdir(DIR) if name.endswith(".yaml"))
OBJECTS = [(name, doc) for name in FILES for doc in yaml.safe_load_all(read(os.path.join(DIR, name)))]
TEMPLATES = [(name, doc["spec"]["template"]) for name, doc in OBJECTS if "template" in doc.get("spec", {})]


def gateways():
    """(file, pod's spec, the container of smcrd)."""
    for name, template in TEMPLATES:
        pod = template["spec"]
        for container in pod["containers"] + pod.get("initContainers", []):
            if container["name"] == "smcrd":
                yield name, pod, container


def fields():
    for name, doc in OBJECTS:
        version, want = KINDS[doc["kind"]]
        yield from faults(doc, {"apiVersion!": {version}, "kind!": str, **want}, f"{name}: {doc['kind']}")


def names():
    """Volumes and their mounts, configuration maps, labels and what selects by them, ports."""
    maps = {doc["metadata"]["name"] for _, doc in OBJECTS if doc["kind"] == "ConfigMap"}
    for name, template in TEMPLATES:
        pod = template["spec"]
        volumes = {v["name"] for v in pod["volumes"]}
        used = {m["name"] for c in pod["containers"] + pod.get("initContainers", []) for m in c.get("volumeMounts", ())}
        if volumes != used:
            yield f"{name}: volumes {volumes}, mounts of {used}"
        yield from (f"{name}: no map {v['configMap']['name']}" for v in pod["volumes"] if "configMap" in v and v["configMap"]["name"] not in maps)
    labels = [t["metadata"]["labels"] for _, t in TEMPLATES]
    for name, doc in OBJECTS:
        if doc["kind"] in ("DaemonSet", "Deployment") and doc["spec"]["selector"]["matchLabels"] != doc["spec"]["template"]["metadata"]["labels"]:
            yield f"{name}: the selector is not of the template's labels"
        if doc["kind"] == "PodMonitor":
            for e in doc["spec"]["selector"]["matchExpressions"]:
                if sorted(x[e["key"]] for x in labels) != sorted(e["values"]):
                    yield f"{name}: {e['values']}, pods have {labels}"
            ports = {p["port"] for p in doc["spec"]["podMetricsEndpoints"]}
            yield from (f"{n}: no port of {ports}" for n, _, c in gateways() if not ports & {p["name"] for p in c["ports"]})


def rights():
    """Nothing that the image does not have, and its user."""
    image = re.search(r"^USER (\d+):(\d+)$", read(os.path.join(TOP, "packaging", "Containerfile")), re.M)
    for name, pod, container in gateways():
        context = {**pod["securityContext"], **container["securityContext"]}
        want = {"runAsNonRoot": True, "runAsUser": int(image[1]), "runAsGroup": int(image[2]), "fsGroup": int(image[2]),
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"}}
        if context != want:
            yield f"{name}: {context}"
        if {m["mountPath"] for m in container["volumeMounts"]} != {"/etc/smcrd", "/run/smcrd"}:
            yield f"{name}: {container['volumeMounts']}"


def configuration():
    """smcrd takes it, its metrics are at the port of the container, and the pod waits for its drain."""
    for name, doc in OBJECTS:
        if doc["kind"] == "ConfigMap":
            with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
                f.write(doc["data"]["smcrd.conf"])
                f.flush()
                done = subprocess.run([f"{BUILD}/smcrd", "-T", "-f", f.name], capture_output=True, text=True)
            if done.returncode:
                yield f"{name}: {done.stderr}"
            port = int(re.search(r"metrics = \{[^}]*listen = \"[^\"]*:(\d+)\"", doc["data"]["smcrd.conf"])[1])
            drain = int(re.search(r"drain_timeout = \"(\d+)s\"", doc["data"]["smcrd.conf"])[1])
            for at, pod, container in gateways():
                if not any(v.get("configMap", {}).get("name") == doc["metadata"]["name"] for v in pod["volumes"]):
                    continue
                if [p["containerPort"] for p in container["ports"]] != [port]:
                    yield f"{at}: metrics are at {port}"
                if pod.get("terminationGracePeriodSeconds", 30) <= drain:
                    yield f"{at}: killed before the end of a drain"


def readme():
    text = read(os.path.join(DIR, "README.md"))
    yield from (f"README.md does not name {name}" for name in FILES if name not in text)
    yield from (f"README.md: no {name}" for name in re.findall(r"[a-z]+\.yaml", text) if name not in FILES)


def main():
    checks = [("fields and their types", fields), ("names", names), ("rights of the container", rights),
              ("configurations", configuration), ("README.md", readme)]
    print(f"1..{len(checks)}")
    for nr, (what, check) in enumerate(checks, 1):
        found = list(check())
        for line in found:
            print(f"# {line}")
        print(f"{'not ok' if found else 'ok'} {nr} - {what}")
    return 0


sys.exit(main())
