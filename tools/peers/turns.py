"""Turns of sides: they alternate, and cores may be near each other or far apart meanwhile."""

import itertools
import statistics
import time

import tables

PAUSE = 0.15  # seconds behind a turn; threads of its side spin that long


def alternate(sides, seconds, distance=None):
    """Yields turns without an end, in each of which every side runs for about so many seconds: {"seconds": {name: of a run},
    "barriers": {name: [before, after]}}, the latter what distance() told, if that is given. Sides go forth and back, so that
    none is always behind the same one. The first turn warms up and is left out."""
    now = distance and distance()
    for number in itertools.count():
        turn = {"seconds": {}, "barriers": {}}
        for side in sides if number % 2 else sides[::-1]:
            before = now
            turn["seconds"][side.name] = side.turn(seconds)
            time.sleep(PAUSE)
            if distance:
                now = distance()
                turn["barriers"][side.name] = [before, now]
        if number:
            yield turn


def take(sides, options, least_time=0):
    """Takes as many turns as the options say, and more until so many seconds are over, and ends the sides."""
    turns, end = [], time.monotonic() + least_time
    for turn in alternate(sides, options["seconds"]):
        turns.append(turn)
        if len(turns) >= options["turns"] and time.monotonic() >= end:
            break
    for side in sides:
        side.end()
    return turns


def median(turns, name):
    """Returns the median of the side's seconds."""
    return statistics.median(turn["seconds"][name] for turn in turns)


def ratio(turns, other, ours, column, digits=None):
    """Returns columns of the other side's seconds over ours, turn by turn."""
    ratios = [turn["seconds"][other] / turn["seconds"][ours] for turn in turns if other in turn["seconds"]]
    return tables.quantile_columns(column, ratios, digits)


class Distances:
    """Knows what barriers took in all turns so far, and tells near cores from far ones if they are not all alike."""

    GAP = 1.5  # times the next shorter one: another distance
    FEW = 20  # one in so many or fewer: two threads on one core for a while, or a core that was taken away

    def __init__(self):
        self.seen = []
        self.kinds = []  # shortest and longest of each

    def add(self, turns):
        self.seen += [value for turn in turns for pair in turn["barriers"].values() for value in pair if value > 0]
        self.seen.sort()
        groups = []
        for value in self.seen:
            if not groups or value > self.GAP * groups[-1][-1]:
                groups.append([])
            groups[-1].append(value)
        self.kinds = [(group[0], group[-1]) for group in groups if self.FEW * len(group) > len(self.seen)][:2]

    def kind(self, pair):
        """"near", "far", "" where all are alike, None where the cores moved or were taken away."""
        if min(pair) <= 0:
            return ""
        names = ("near", "far") if len(self.kinds) == 2 else ("",)
        for name, (least, most) in zip(names, self.kinds):
            if least <= min(pair) and max(pair) <= most:
                return name
        return None

    def count(self, turns, kind):
        """Counts turns whose every side saw the cores so."""
        return sum(all(self.kind(pair) == kind for pair in turn["barriers"].values()) for turn in turns)
