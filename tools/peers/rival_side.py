"""A process of tools/peers/rival_worker.py, or of the program, that runs a network when it is asked to."""

import json
import os
import statistics
import subprocess


class Refused(Exception):
    """A side that does not take a network."""


class Side:
    """Has loaded the network once it is made; `outputs` is the file of what it gave."""

    def __init__(self, library, command):
        self.library = library
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self.answer()
        self.version, self.outputs = self.ready.get("version"), self.ready.get("outputs")

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Refused(f"{self.library} failed")
        return json.loads(line)

    def ask(self, request):
        self.process.stdin.write(f"{request}\n")
        self.process.stdin.flush()
        return self.answer()

    def turn(self, seconds):
        return statistics.median(self.ask(f"run {seconds}"))

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        os.unlink(self.outputs)


def quantiles(ratios):
    """The median, and the tenths from the lower and the upper end."""
    ordered = sorted(ratios)
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return statistics.median(ordered), at(0.1), at(0.9)
