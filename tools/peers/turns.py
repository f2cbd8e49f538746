"""Sides of a comparison, by turns: processes of rival_worker.py, torch_worker.py or the program, that run a network when
they are asked to."""

import json
import os
import pathlib
import statistics
import subprocess
import time

PAUSE = 0.15  # seconds between turns: threads of the side before spin that long


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


def take_turns(sides, enough, pause=PAUSE):
    """{name: what its function returns} of each turn until enough(turns); forth and back, so that no side is always behind
    the same one. The first turn warms up and does not count."""
    turns = []
    for number in range(-1, 1 << 30):
        if enough(turns):
            return turns
        turn = {}
        for name in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            time.sleep(pause)
            turn[name] = sides[name]()
        if number >= 0:
            turns.append(turn)


def compare(sides, options):
    """So many turns of seconds of each side as the options ask for; then the sides end."""
    runs = {name: lambda side=side: side.turn(options["seconds"]) for name, side in sides.items()}
    turns = take_turns(runs, lambda turns: len(turns) >= options["turns"])
    for side in sides.values():
        side.end()
    return turns


def median(turns, name):
    return statistics.median(turn[name] for turn in turns)


def differences(python, measure, sides):
    """How far outputs of all other sides are from the first one's, as outputs_apart.py measures it."""
    command = [python, "-W", "ignore", pathlib.Path(__file__).with_name("outputs_apart.py"), measure,
               *(side.outputs for side in sides)]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True)
    return list(map(float, done.stdout.split()))
