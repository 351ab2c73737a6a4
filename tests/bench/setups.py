"""The setups that rows are measured in, by name: each is made when a row first wants it, with the bench (ways.py)."""
import idle
from link import DelayedLink, Transparent
from ways import Local, Loopback, Many, Opening, Sctp, Secure, Unix

BUFFER = 512 * 1024
WORKERS = 2

SETUPS = {
    "loopback": Loopback,
    "element": lambda bench: Loopback(bench, ["redis", "iperf3"], of_stream={"rmb_element": "2M"}),
    "opening": lambda bench: Opening(bench, ["http"]),
    # Unused memory of a connection is returned soon, not after a minute.
    "idle": lambda bench: Loopback(bench, ["redis"], smcr={"rmb_idle": f"{idle.RMB_IDLE_S}s"}),
    "growing": lambda bench: Loopback(bench, ["redis"], maxconn=idle.at_most() + 1),
    "many": lambda bench: Many(bench, 50000, idle.at_most()),
    "unix": Unix,
    "local": Local,
    "sctp": Sctp,
    "secure": Secure,
    "secure-idle": lambda bench: Secure(bench, ["redis"], smcr={"rmb_idle": f"{idle.RMB_IDLE_S}s"}),
    "secure-resumed": lambda bench: Secure(bench, ["http"], smcr={"open_over_link": False}),
    "transparent": Transparent,
    "workers": lambda bench: Loopback(bench, threads=WORKERS, workers=WORKERS),
    "delay-0": lambda bench: DelayedLink(bench, 0),
    "delay-5": lambda bench: DelayedLink(bench, 5),
    "delay-20": lambda bench: DelayedLink(bench, 20),
    "delay-5-buffers": lambda bench: DelayedLink(bench, 5, BUFFER),
    "delay-20-buffers": lambda bench: DelayedLink(bench, 20, BUFFER),
    **{f"opening-{ms}": lambda bench, ms=ms: DelayedLink(bench, ms, service="redis") for ms in (0, 0.5, 5)},
}
