"""Results: what their cells look like, the tables that scripts print and pages show, and the files that keep them.

A row is a dict from columns to values; values of a file are text, "" where there is none."""

import csv
import dataclasses
import datetime
import math
import pathlib
import shlex
import statistics
import subprocess
import typing

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent if HERE.name == "peers" else HERE  # of the repository, or of a bundle
RIVALS = {"onednn": "oneDNN", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "ncnn": "ncnn", "mnn": "MNN"}
TYPES = {"f32": "f32", "bf16": "bf16", "floats": "f32 and bf16", "int8": "int8", "mixed": "mixed"}
FAST_ALGORITHMS = ("winograd", "grouped_winograd", "strassen")  # templates that multiply less, and err more


def quantile_columns(name, values, digits=None):
    """Returns columns of the median and of the tenths from the lower and the upper end, with so many digits behind the
    point if that is given; Nones where there are no values."""
    ordered, columns = sorted(values), (name, f"{name}_p10", f"{name}_p90")
    if not ordered:
        return dict.fromkeys(columns)
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    found = (statistics.median(ordered), at(0.1), at(0.9))
    return dict(zip(columns, found if digits is None else [f"{value:.{digits}f}" for value in found]))


def geometric_mean(values):
    """Returns the mean of the values that are known; None where none is."""
    logs = [math.log(float(value)) for value in values if value]
    return math.exp(sum(logs) / len(logs)) if logs else None


def mean(values):
    return two_digits(geometric_mean(values))


def four_digits(value):
    return f"{value:#.4g}".rstrip(".") if value < 1e4 else f"{value:.0f}"


def ms(seconds):
    return four_digits(float(seconds) * 1e3) if seconds else "-"


def us(seconds):
    return f"{float(seconds) * 1e6:.2g}" if seconds else "-"


def two_digits(value):
    return f"{float(value):.2f}" if value else "-"


def error(value):
    return f"{float(value):.2g}" if value else "-"


def exponent(value):
    return f"{float(value):.1e}" if value else "-"


def percent(fraction, digits=0):
    return f"{float(fraction):.{digits}%}" if fraction else "-"


def tenths(fraction):
    return percent(fraction, 1)


def times(one, other):
    """Returns how many times the one is the other; "" where either is not known."""
    return str(float(one) / float(other)) if one and other else ""


def ratio(name, low="p10", high="p90"):
    """Returns what fills a cell with a ratio and its range."""
    def cell(row):
        if not row.get(name):
            return "-"
        ends = [row.get(f"{name}_{end}") for end in (low, high)]
        return two_digits(row[name]) + (" ({:.2f} to {:.2f})".format(*map(float, ends)) if all(ends) else "")
    return cell



def gain(name):
    """Returns what fills a cell with a gain and its interval."""
    def cell(row):
        if not row[name]:
            return "-"
        low, high = (float(row[f"{name}_{end}"]) * 100 for end in ("low", "high"))
        return f"{float(row[name]):+.1%} ({low:.1f} to {high:.1f})"
    return cell


def cell(row, filling, shown=str):
    return filling(row) if callable(filling) else "" if row[filling] is None else shown(row[filling])


def line(cells):
    return "| " + " | ".join(str(value) or "-" for value in cells) + " |"


def table(columns, rows):
    """Returns lines of Markdown. A column is a title, with < in front where it is aligned left, and what fills its cells: a
    key of the row, which a function of its value may follow, or a function of the row."""
    titles = [title for title, *_ in columns]
    rule = ["---" if title.startswith("<") else "---:" for title in titles]
    cells = [[cell(row, *filling) for _, *filling in columns] for row in rows]
    return [*map(line, [[title.removeprefix("<") for title in titles], rule, *cells]), ""]


def by(rows, *keys):
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def text(value):
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def text_rows(rows):
    """Returns rows as a file has them: times and ratios to four digits."""
    return [{column: text(value) for column, value in row.items()} for row in rows]


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(": ")[2].strip() for line in file if line.startswith("model name")), "unknown")


def multiplies_bytes():
    """Tells whether the CPU has instructions for sums of products of bytes, which do not saturate."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return "vnni" in file.read()


def commit():
    described = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT, text=True, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return described.stdout.strip() or "unknown"


def without_machine(word):
    """Returns a word of a command: a path as seen from the repository, or only its name if it is elsewhere."""
    path = pathlib.Path(word)
    if not path.is_absolute():
        return word
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Rows of one kind: the file of results that keeps them with its title, and how they are shown."""

    file: str
    title: str
    columns: list  # as table() takes them
    summary: typing.Callable = lambda rows: []  # lines below the table
    note: str = ""  # what to know when reading figures
    kept: tuple = ()  # the file's columns, where they are not those of the first row

    def lines(self, rows):
        """Returns lines of Markdown for rows as a file has them."""
        return [*table(self.columns, rows), *self.summary(rows)]

    def write(self, path, rows, machine, command, built_from=None):
        """Writes the file of results, which is there whole or not at all. `machine` is a list of what figures depend on,
        `command` one of words, `built_from` the commit where it is not this folder's."""
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = {"title": self.title, "machine": "; ".join(filter(None, machine)), "date": datetime.date.today(),
                 "commit": built_from or commit(), "command": shlex.join(map(without_machine, command)), "note": self.note}
        partial = path.with_suffix(".partial")
        with partial.open("w", newline="", encoding="utf-8") as file:
            file.writelines(f"# {key}: {value}\n" for key, value in facts.items() if value or key != "note")
            writer = csv.DictWriter(file, self.kept or list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(text_rows(rows))
        partial.rename(path)


class Results:
    """A file of results: comments "# key: value" in front, a key as often as need be, then CSV."""

    def __init__(self, path):
        self.name, self.facts = path.name, {}
        lines = path.read_text().splitlines()
        data = [line for line in lines if not line.startswith("#")]
        for comment in lines[:len(lines) - len(data)]:
            key, _, value = comment.removeprefix("# ").partition(": ")
            self.facts.setdefault(key, []).append(value)
        self.rows = list(csv.DictReader(data))

    def where(self, **wanted):
        return [row for row in self.rows if all(row[key] == value for key, value in wanted.items())]

    def heading(self):
        """Returns lines with the title, where the figures are from, and the command."""
        origin = "; ".join(self.facts["machine"] + self.facts["date"] + [f"commit {self.facts['commit'][0]}"])
        commands = ["```sh", *self.facts["command"], "```"] if "command" in self.facts else []
        notes = [part for note in self.facts.get("note", []) for part in ("", note)]
        source = f"[{self.name}]({self.name}): {origin}."
        return [f"## {self.facts['title'][0]}", "", source, *([""] if commands else []), *commands, *notes, ""]

    def section(self, columns):
        """Returns lines with the heading and a table of all rows."""
        return [*self.heading(), *table(columns, self.rows)]
