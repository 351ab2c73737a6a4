"""
A plot of a benchmark's document (document.py) as SVG or PNG, by the name of the file: the figures of rows that also have their
number of connections, by that number. Median, least and greatest of the rounds.
"""
import sys

import stats
from harness import Failure, Skip

COLOURS = {"direct": "#888888", "haproxy": "#d08020", "smcrd": "#2060c0", "old": "#d08020"}


def library():
    try:
        import matplotlib
    except ImportError:
        raise Skip(f"{sys.executable} has no matplotlib (Debian: python3-matplotlib)") from None
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "smcrd", "font.size": 9})
    from matplotlib import figure, ticker
    return figure, ticker


def points(rows, key):
    """side -> [(connections, spread of that figure)], in the order of connections"""
    found = {}
    for row in rows:
        for side in {side for r in row["samples"] for side in r}:
            count, spread = (stats.spread(stats.values(row["samples"], side, k)) for k in ("count", key))
            if count and spread:
                found.setdefault(side, []).append((count.median, spread))
    return {side: sorted(at) for side, at in sorted(found.items())}


def panels(doc):
    """(title, points) of each figure that more than one row has"""
    rows = [r for r in doc["rows"] if any(f["key"] == "count" for f in r["figures"])]
    figures = {f["key"]: f for r in rows for f in r["figures"] if f["key"] != "count"}
    found = [(", ".join(x for x in (f["heading"], f["unit"]) if x), points(rows, key)) for key, f in figures.items()]
    return [(title, by) for title, by in found if any(len(at) > 1 for at in by.values())]


def save(doc, path):
    figure, ticker = library()
    todo = panels(doc)
    if not todo:
        raise Failure(f"{path}: no figures by the number of connections")
    page = figure.Figure(figsize=(3.2 * len(todo), 2.8), layout="constrained")
    subplots = page.subplots(1, len(todo), squeeze=False)[0]
    for axes, (title, by) in zip(subplots, todo):
        for side, at in by.items():
            counts, spreads = zip(*at)
            medians = [s.median for s in spreads]
            ends = [[s.median - s.least for s in spreads], [s.greatest - s.median for s in spreads]]
            axes.errorbar(counts, medians, yerr=ends, label=side, color=COLOURS.get(side), marker="o", markersize=3, capsize=2)
        axes.set(title=title, xlabel="connections", xscale="log", ylim=(0, None))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:,.0f}"))
        axes.grid(alpha=0.3)
    subplots[0].legend()
    page.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)
