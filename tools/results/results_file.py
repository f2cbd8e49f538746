"""Writes a file of results: a heading that says where the figures are from, then a table. pages reads it."""

import csv
import datetime
import pathlib
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(": ")[2].strip() for line in file if line.startswith("model name")), "unknown")


def multiplies_bytes():
    """Whether the CPU has instructions for sums of products of bytes, which do not saturate."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return "vnni" in file.read()


def commit():
    described = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT, text=True, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return described.stdout.strip() or "unknown"


def write(path, title, machine, command, columns, rows, note="", built_from=None):
    """`machine` is a list of what figures depend on, `command` one of words, `rows` are in the order of `columns`, `note`
    what to know when reading them, `built_from` the commit where it is not this folder's. The file is there whole or not
    at all."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        for key, value in (("title", title), ("machine", "; ".join(filter(None, machine))),
                           ("date", datetime.date.today()), ("commit", built_from or commit()),
                           ("command", shlex.join(command)),
                           *([("note", note)] if note else [])):
            file.write(f"# {key}: {value}\n")
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])
    partial.rename(path)
