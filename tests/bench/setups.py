"""The setups that rows are measured in, by name: each is made when a row first wants it, with the bench (ways.py)."""
import idle
from link import DelayedLink
from ways import Loopback, Sctp, Unix

BUFFER = 512 * 1024
WORKERS = 2

SETUPS = {
    "loopback": Loopback,
    # Unused memory of a connection is returned soon, not after a minute.
    "idle": lambda bench: Loopback(bench, ["redis"], smcr={"rmb_idle": "1s"}),
    "many": lambda bench: Loopback(bench, ["redis"], maxconn=idle.many_count() + 1),
    "unix": Unix,
    "sctp": Sctp,
    "workers": lambda bench: Loopback(bench, threads=WORKERS, workers=WORKERS),
    "delay-0": lambda bench: DelayedLink(bench, 0),
    "delay-5": lambda bench: DelayedLink(bench, 5),
    "delay-20": lambda bench: DelayedLink(bench, 20),
    "delay-5-buffers": lambda bench: DelayedLink(bench, 5, BUFFER),
    "delay-20-buffers": lambda bench: DelayedLink(bench, 20, BUFFER),
}
