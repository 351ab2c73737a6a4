"""HTTP to a daemon's metrics endpoint, by Python's own client, and its text read into numbers."""
import http.client
import re

from harness import check, connect_to, equal, PATIENCE

SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=20 * PATIENCE)
        self.path = path

    def connect(self):
        self.sock = connect_to(self.path)


def get(at, path="/metrics", method="GET", **headers):
    """Status, headers and body; at: (host, port), or the path of a UNIX socket."""
    conn = UnixConnection(at) if isinstance(at, str) else http.client.HTTPConnection(*at, timeout=20 * PATIENCE)
    try:
        conn.request(method, path, headers=headers)
        answer = conn.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        conn.close()


def scrape(at):
    """{name: {labels as a sorted tuple of pairs: value}}"""
    status, _, body = get(at)
    equal(status, 200, "status of /metrics")
    metrics = {}
    for line in body.decode().splitlines():
        if line.startswith("#"):
            continue
        m = SAMPLE.match(line)
        check(m is not None, f"no sample: {line!r}")
        labels = tuple(sorted(LABEL.findall(m[2] or "")))
        of_name = metrics.setdefault(m[1], {})
        check(labels not in of_name, f"twice: {line!r}")
        of_name[labels] = float(m[3])
    return metrics


def value(metrics, name, **labels):
    """The sum of the samples with these labels."""
    found = [v for k, v in metrics.get(name, {}).items() if labels.items() <= dict(k).items()]
    check(found, f"no sample {name} {labels}")
    return sum(found)
