"""
The arithmetic of the benchmark, over the samples of a row: a list of rounds, each {side: {figure: value}}. A side or a figure
that a round does not have was not measured then.

What one side is beside another one is computed round by round, because a noisy machine is slow for both sides of a round: the
median of these ratios holds where the ratio of two medians would not.
"""
import collections
import statistics

Spread = collections.namedtuple("Spread", "median least greatest rounds")


def spread(values):
    """Of a list of numbers; None of an empty one."""
    return Spread(statistics.median(values), min(values), max(values), len(values)) if values else None


def values(samples, side, figure):
    return [r[side][figure] for r in samples if figure in r.get(side, ())]


def ratios(samples, subject, base, figure):
    """subject / base of each round that has both."""
    both = ((r[subject][figure], r[base][figure]) for r in samples if figure in r.get(subject, ()) and figure in r.get(base, ()))
    return [a / b for a, b in both if b]


def verdict(ratio_values, better):
    """What all rounds agree on; better: "more" or "less"."""
    if not ratio_values:
        return ""
    if all(q > 1 for q in ratio_values):
        return "better" if better == "more" else "worse"
    if all(q < 1 for q in ratio_values):
        return "worse" if better == "more" else "better"
    return "even"
