"""Plays each seed directly and through daemons, many at a time, and says which of them differ."""
import heapq
import time

from draw import draw
from play import Player
from verdict import fits, need_not_come, same, transcript

DIRECT_RUNS = 2		# of each seed, and so many more before a difference is believed
MORE_RUNS = 8


class Finding:
    def __init__(self, seed, mode, lines):
        self.seed, self.mode, self.lines = seed, mode, lines

    def __str__(self):
        return "\n".join([f"seed {self.seed} {self.mode}", *self.lines])


class Referee:
    def __init__(self, direct, modes, unix, deadline, verbose=False):
        """direct: ways; modes: name -> ways, as many."""
        self.direct, self.modes, self.unix, self.deadline, self.verbose = direct, modes, unix, deadline, verbose
        self.findings = []
        self.played = 0

    def play(self, seeds, until=None):
        """until: a time of the clock after which nothing new is begun."""
        todo = iter(seeds)
        order = 0
        due = []
        now = time.monotonic()
        for i in range(len(self.direct)):
            heapq.heappush(due, (now, order, self._slot(i, todo, until)))
            order += 1
        while due:
            at, _, task = heapq.heappop(due)
            wait = at - time.monotonic()
            if wait > 0:
                time.sleep(wait)	# raw: until the next task is due
            try:
                pause = next(task)
            except StopIteration:
                continue
            order += 1
            heapq.heappush(due, (time.monotonic() + pause, order, task))
        return self.findings

    def _slot(self, i, todo, until):
        for seed in todo:
            if until is not None and time.monotonic() > until:
                return
            yield from self._seed(seed, i)

    def _directly(self, conv, i, count):
        runs = []
        for _ in range(count):
            p = yield from Player(conv, self.direct[i]).run()
            if p.wrong:
                self.findings.append(Finding(conv.seed, "direct", [p.wrong, *transcript(conv, [p.steps], ["direct"])]))
            runs.append(p.steps)
        return runs

    def _seed(self, seed, i):
        conv = draw(seed, self.unix, "local" in self.modes, "tls-fallback" not in self.modes)
        runs = yield from self._directly(conv, i, DIRECT_RUNS)
        for mode, ways in self.modes.items():
            self.played += 1
            p = yield from Player(conv, ways[i], runs, self.deadline).run()
            if self._agrees(p, runs, conv):
                if self.verbose:
                    print("\n".join([f"seed {seed} {mode}: as directly", *transcript(conv, [runs[0], p.steps], ["direct", mode])]))
                continue
            runs += yield from self._directly(conv, i, MORE_RUNS)
            if self._agrees(p, runs, conv, part=True):
                continue
            near = max(runs, key=lambda r: _alike(r, p.steps, conv))
            self.findings.append(Finding(seed, mode, [p.wrong or "another course", *transcript(conv, [near, p.steps],
                                                                                            ["direct", mode])]))
            yield 0.3		# what is left of it comes to its end

    def _agrees(self, p, runs, conv, part=False):
        """part: it was given up where it went astray of the runs that there were."""
        if p.never_came and need_not_come(conv):
            return True
        if part and (p.astray or not p.wrong):
            return any(same(r[:len(p.steps)], p.steps, conv) for r in runs)
        return not p.wrong and any(same(r, p.steps, conv) for r in runs)


def _alike(one, other, conv):
    n = 0
    for a, b in zip(one, other):
        if not fits(a, b, conv):
            break
        n += 1
    return n
