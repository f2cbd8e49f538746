"""Results: what their cells look like, the files that keep them, and the tables that scripts print and pages show.

A row is a dict from columns to values; values of a file are text, "" where there is none."""

import csv
import datetime
import math
import pathlib
import shlex
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent if HERE.name == "peers" else HERE  # of the repository, or of a bundle
RIVALS = {"onednn": "oneDNN", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "ncnn": "ncnn", "mnn": "MNN"}
TYPES = {"f32": "f32", "bf16": "bf16", "floats": "f32 and bf16", "int8": "int8", "mixed": "mixed"}
FAST_ALGORITHMS = ("winograd", "grouped_winograd", "strassen")  # templates that multiply less, and err more


def quantiles(values):
    """The median, and the tenths from the lower and the upper end; Nones where there are no values."""
    ordered = sorted(values)
    if not ordered:
        return [None] * 3
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return [statistics.median(ordered), at(0.1), at(0.9)]


def ratio_columns(name, values, ends=("p10", "p90")):
    return dict(zip((name, *(f"{name}_{end}" for end in ends)), values))


def geometric_mean(values):
    """The mean of those that are known; None where none is."""
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


def percent(fraction, digits=0):
    return f"{float(fraction):.{digits}%}" if fraction else "-"


def ratio(row, name, low="p10", high="p90"):
    if not row.get(name):
        return "-"
    ends = [row.get(f"{name}_{end}") for end in (low, high)]
    return two_digits(row[name]) + (" ({:.2f} to {:.2f})".format(*map(float, ends)) if all(ends) else "")


def peer_ratio(row):
    return ratio(row, "onnxruntime_ratio", "low", "high")


def gain(row, name):
    if not row[name]:
        return "-"
    low, high = (float(row[f"{name}_{end}"]) * 100 for end in ("low", "high"))
    return f"{float(row[name]):+.1%} ({low:.1f} to {high:.1f})"


def line(cells):
    return "| " + " | ".join(str(cell) or "-" for cell in cells) + " |"


def table(columns, rows):
    """Lines. Columns whose names begin with < are aligned left."""
    rule = ["---" if name.startswith("<") else "---:" for name in columns]
    return [line("-" if cell is None else cell for cell in cells)
            for cells in [[name.removeprefix("<") for name in columns], rule, *rows]] + [""]


def by(rows, *keys):
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def networks_table(rows, differences=False):
    more = ["difference of outputs"] if differences else []
    cells = [[row["network"], ms(row["ours_seconds"]), ms(row["onednn_seconds"]), ratio(row, "onednn_ratio"),
              us(row["barrier_seconds"]), ms(row["beside_onnxruntime_seconds"]), ms(row["onnxruntime_seconds"]), peer_ratio(row),
              ", ".join(filter(None, (row["peak_mib"], row["onnxruntime_peak_mib"]))),
              *(error(row["output_difference"]) for _ in more)] for row in rows]
    return [*table(["<network", "ours ms", "oneDNN ms", "<ratio (p10 to p90)", "barriers us", "ours ms", "ONNX Runtime ms",
                    "<ratio (least to largest)", "peak MiB, ours and its", *more], cells),
            f"Geometric means: {mean(row['onednn_ratio'] for row in rows)} with oneDNN, "
            f"{mean(row['onnxruntime_ratio'] for row in rows)} with ONNX Runtime.", ""]


def plan_cells(row):
    closest = f"{row['single_layout']} {gain(row, 'single_gain')}" if row["single_layout"] else "-"
    if row["plan_is"]:
        closest = f"is {row['plan_is']}; {closest}"
    return [row["network"], f"{float(row['tuning_seconds']):.3g}", f"{float(row['solve_seconds']) * 1e3:.1f}",
            ms(row["log_predicted_seconds"]), ms(row["predicted_seconds"]), ms(row["measured_seconds"]),
            f"{float(row['gap']):+.1%}", f"{row['heavy_nodes_predicted']} of {row['heavy_nodes']}", closest,
            gain(row, "best_records_gain")]


def plans_table(rows):
    return table(["<network", "tuned for s", "solved in ms", "log predicts ms", "predicted ms", "measured ms", "gap",
                  "nodes within 15%", "<gain over the best single layout", "<over best records"], map(plan_cells, rows))


def outputs_table(rows):
    difference = lambda row, kind: f"{float(row[f'{kind}difference']):.1e} of {row[f'{kind}plans']} plans"
    return table(["<network", "with all templates", "without " + ", ".join(FAST_ALGORITHMS)],
                 [[row["network"], difference(row, ""), difference(row, "plain_")] for row in rows])


def types_table(rows):
    def cell(row, kind):
        seconds, f32 = row[f"{kind}_seconds"], row["f32_seconds"]
        return ms(seconds) + (f", {float(f32) / float(seconds):.2f}" if seconds and f32 else "")

    kinds = list(TYPES)[1:]
    return table(["<network", "f32 ms", *(f"<{TYPES[kind]} ms, f32 / it" for kind in kinds), "<errors in that order", "<the plan",
                  "<ONNX Runtime's int8 / ours"],
                 [[row["network"], ms(row["f32_seconds"]), *(cell(row, kind) for kind in kinds),
                   ", ".join(f"{float(row[f'{kind}_error']):.1e}" if row[f"{kind}_error"] else "-" for kind in kinds),
                   row["plan_is"], peer_ratio(row)] for row in rows])


def mixtures_table(rows, names_bounds=False):
    def cells(row):
        most = f"{float(row['most_error']):.1e}"
        gained = [percent(row[key], 1) for key in ("gain", "gain_low", "gain_high")]
        predicted = row["predicted_output_error"]
        return [row["network"], f"{row['bound']}: {most}" if names_bounds else most,
                f"{row['single']} {ms(row['single_seconds'])}", f"{row['plan_is']} {ms(row['plan_seconds'])}",
                "-" if row["single"] == row["plan_is"] else "{} ({} to {})".format(*gained),
                f"{float(row['output_error']):.1e}", f"{float(predicted):.1e}" if predicted else "-", row["mixture"]]

    return table(["<network", "error at most", "<fastest single type, ms", "<the plan, ms", "<gain (95% interval)", "its error",
                  "predicted", "<the mixture"], map(cells, rows))


def busy_table(rows):
    return table(["<network", "programs that compute beside it", "ours ms", "ONNX Runtime ms", "<ratio (least to largest)"],
                 [[row["network"], row["neighbours"], ms(row["beside_onnxruntime_seconds"]), ms(row["onnxruntime_seconds"]),
                   peer_ratio(row)] for row in rows])


def soak_table(rows):
    keys = ("network", "threads", "loads", "sessions", "runs", "differing", "as_first_count")
    return table(["<network", "threads", "loaded", "sessions", "runs", "outputs that differ", "<as by one thread"],
                 [[row[key] for key in keys] for row in rows])


def accuracy_cells(row):
    return [row["network"], row["side"], row["error"], row["worst_error"], percent(row["agreement"], 1), row["boxes"],
            percent(row["boxes_match"], 1)]


def accuracy_table(rows):
    return table(["<network", "<side", "error of outputs", "largest of an input", "same largest class", "boxes",
                  "boxes that match"], map(accuracy_cells, rows))


def text(value):
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def text_rows(rows):
    """As a file has them: times and ratios to four digits."""
    return [{column: text(value) for column, value in row.items()} for row in rows]


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


def without_machine(word):
    """A word of a command: paths of this machine as seen from the repository, from elsewhere by their names."""
    path = pathlib.Path(word)
    if not path.is_absolute():
        return word
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def write(path, title, machine, command, rows, columns=None, note="", built_from=None):
    """`machine` is a list of what figures depend on, `command` one of words, `columns` those of the first row unless they are
    named, `note` what to know when reading them, `built_from` the commit where it is not this folder's. The file is there
    whole or not at all."""
    path, columns = pathlib.Path(path), list(columns or rows[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        for key, value in (("title", title), ("machine", "; ".join(filter(None, machine))),
                           ("date", datetime.date.today()), ("commit", built_from or commit()),
                           ("command", shlex.join(map(without_machine, command))),
                           *([("note", note)] if note else [])):
            file.write(f"# {key}: {value}\n")
        writer = csv.DictWriter(file, columns, lineterminator="\n")
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
        """The title, where the figures are from, and the command."""
        origin = "; ".join(self.facts["machine"] + self.facts["date"] + [f"commit {self.facts['commit'][0]}"])
        commands = ["```sh", *self.facts["command"], "```"] if "command" in self.facts else []
        notes = [part for note in self.facts.get("note", []) for part in ("", note)]
        source = f"[{self.name}]({self.name}): {origin}."
        return [f"## {self.facts['title'][0]}", "", source, *([""] if commands else []), *commands, *notes, ""]
