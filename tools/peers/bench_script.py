"""What the scripts share that measure: the program that they run, what they fetch, how they go through networks and leave
tables."""

import contextlib
import math
import os
import pathlib
import shlex
import subprocess
import sys
import time

import tables
from script_options import count, folder, known_text, meant, number, readable
from tables import ROOT

BINARY = pathlib.Path(os.environ.get("TILESMITH_BINARY") or ROOT / "build" / "tilesmith").absolute()
PYTHON_PACKAGE = BINARY.parent / "python"
ONNX_RUNTIME = "onnxruntime==1.32.0"
OPENVINO = "openvino==2026.4.1"
NUMPY = "numpy==2.3.4"
ONNX = "onnx==1.23.2"
BUILT_IN = ("mobilenet_v1 mobilenet_v2 squeezenet1_1 densenet121 inception_v3 resnet18 resnet34 resnet50 resnet101"
            " vgg16 vgg19 unet").split()
# Networks of tools/fetch-models that leave sizes of their inputs open, and what they are run with.
OPEN_SHAPES = {"ch_PP-OCRv4_det_infer": "x=1x3x640x640",
               "ch_PP-OCRv4_rec_infer": "x=1x3x48x320",
               "nms-yolov8": "detection=1x84x8400"}
CORES = len(os.sched_getaffinity(0))


class Refused(Exception):
    """Something does not take a network, or fails with it. The others go on; the script ends with the code."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def busy_programs(count):
    """Keeps so many programs running that want a core each."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def model(path):
    """Reads the name of a built-in network or the path of a file."""
    if path in BUILT_IN:
        return path
    if not path.endswith(".onnx") and not os.path.exists(path):
        raise ValueError(f"{path} is neither an ONNX file nor a built-in network ({known_text(path, BUILT_IN)})")
    return readable(path)


# Options of scripts whose sides take turns, each of so many seconds.
TURNS = {"threads": count(CORES), "turns": count(7), "seconds": number(0.7)}
CSV = {"csv": folder(None)}


def leaving(name):
    """Returns the options of a script that leaves files."""
    return {"out": folder(ROOT / "tilesmith-out" / name), **CSV}


class Script:
    """`usage`, which begins with "usage: PATH", is printed by --help. `options` are Options by name; others of the arguments
    are read by `rest`, as Options are, at most so many; `required` names what has to be given. Libraries, if any, are fetched
    into peers/`environment`, once."""

    def __init__(self, usage, options, rest=None, most=math.inf, required=None, environment=None):
        self.usage, self.options, self.rest, self.required = usage, options, rest, required
        self.most = most if rest else 0
        self.path = usage.split()[1]
        self.name = pathlib.Path(self.path).name
        self.environment = environment and ROOT / "peers" / environment
        self.python = environment and self.environment / "bin" / "python3"
        self.failures = []  # each a Refused

    def say(self, message):
        print(f"{self.name}: {message}", file=sys.stderr)

    def fail(self, message, code=2):
        self.say(message)
        sys.exit(code)

    def run(self, main):
        """main(), whose end by Ctrl-C is told as the program tells it; then what failed is."""
        try:
            main()
        except KeyboardInterrupt:
            self.fail("interrupted", 130)
        except Refused as refusal:
            self.fail(refusal, refusal.code)
        if self.failures:
            self.fail("failed: " + "; ".join(map(str, self.failures)), self.failures[0].code)

    def parse(self):
        """Returns the options' values by name, and the other arguments."""
        arguments, others = sys.argv[1:], []
        if {"-h", "--help"} & set(arguments):
            print(self.usage)
            sys.exit(0)
        values = {name: option.default for name, option in self.options.items()}
        while arguments:
            argument = arguments.pop(0)
            name = argument.removeprefix("--")
            if not argument.startswith("-") and len(others) < self.most:
                others.append(self.read(self.rest, argument))
            elif name == argument or name not in self.options:
                self.refuse(argument)
            else:
                values[name] = self.value(argument, self.options[name], values[name], arguments)
        if self.required and not others:
            self.fail(f"give a {self.required} (see {sys.argv[0]} --help)")
        return values, others

    def value(self, argument, option, before, rest):
        """Returns the value of an option, whose text is taken from the rest."""
        if not option.read:
            return True
        if not rest:
            self.fail(f"{argument} needs a value")
        value = self.read(option.read, rest.pop(0), argument)
        return [*before, value] if option.default == [] else value

    def refuse(self, argument):
        """Fails with an argument that the script does not know, or that is one too many."""
        known = [f"--{name}" for name in self.options]
        hint = meant(argument.partition("=")[0], known) if argument.startswith("--") else ""
        self.fail(f"unexpected argument {argument} ({hint}known: {', '.join(known)}; see {sys.argv[0]} --help)")

    def read(self, read, text, option=None):
        try:
            return read(text)
        except ValueError as error:
            self.fail(f"{option} must be {error}, got {text}" if option else error)
        except OSError as error:
            self.fail(f"cannot read {text}: {error.strerror}", 7)

    def require_binary(self, named=None):
        """Returns the path of the program, or of the one that an option names."""
        path = pathlib.Path(named or BINARY).absolute()
        if not path.is_file() or not os.access(path, os.X_OK):
            self.fail(f"{path} is missing; tools/quickstart or ninja builds it, or TILESMITH_BINARY names another", 7)
        return path

    def require_build(self):
        self.require_binary()
        if not (PYTHON_PACKAGE / "tilesmith").exists():
            self.fail(f"the Python package {PYTHON_PACKAGE} is missing; tools/check builds it", 7)

    def fetch(self, packages, *further, what):
        """Makes a virtual environment with these packages, and runs further commands that bring things; exits with 7, and
        says what they are, where they are out of reach."""
        done = self.environment / "done"
        brought = "\n".join([*packages, *(shlex.join(map(str, command[1:])) for command in further)])
        if done.exists() and done.read_text() == brought:
            return
        for command in ([sys.executable, "-m", "venv", "--clear", self.environment], self.pip(*packages), *further):
            if subprocess.run(command, check=False).returncode != 0:
                self.fail(f"{what} could not be fetched (are PyPI and npm in reach, and python3-venv here?)", 7)
        done.write_text(brought)

    def enter(self):
        """Goes on in the environment's Python, where its packages can be imported."""
        if pathlib.Path(sys.prefix).resolve() != self.environment.resolve():
            os.execv(self.python, [str(self.python), *sys.argv])

    def pip(self, *arguments):
        return [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]

    def tilesmith(self, *arguments):
        """Returns what the program prints; raises Refused with its code where it fails."""
        command = list(map(str, arguments))
        result = subprocess.run([BINARY, *command], stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            raise Refused(f"tilesmith {shlex.join(command)} exited with {result.returncode}", result.returncode)
        return result.stdout

    def exported(self, model, out):
        """Returns the whole path of a model's file. That of a built-in network is made in the folder."""
        if model not in BUILT_IN:
            return pathlib.Path(model).absolute()
        path = out.absolute() / f"{model}.onnx"
        if not path.exists():
            self.tilesmith("export", model, "-o", path)
        return path

    def quantized(self, model, out):
        """Returns the path of the model in int8, which is made in the folder, calibrated with random inputs."""
        path = out / pathlib.Path(model).with_suffix(".int8.onnx").name
        if not path.exists():
            self.tilesmith("quantize", model, "-o", path)
        return path

    def wrong(self, failure):
        """Tells a Refused now, and again at the end; the first one's is the exit code."""
        self.failures.append(failure)
        self.say(failure)

    def each(self, items, measure):
        """Yields what measure(item) finds of each; those Refused are told and left out."""
        start = time.monotonic()
        for done, item in enumerate(items, 1):
            try:
                found = measure(item)
            except Refused as refusal:
                self.wrong(Refused(f"{item}: {refusal}", refusal.code))
                continue
            yield found
            left = (time.monotonic() - start) / done * (len(items) - done)
            left_text = f"{left / 60:.0f} min" if left >= 60 else f"{left:.0f} s"
            self.say(f"{done} of {len(items)} done, about {left_text} left")

    def compare(self, items, measure, options, table, machine):
        """Measures all items, leaves a table of the rows that measure(item) returns, and prints it. `machine` is a list of what
        figures depend on besides the CPU."""
        options["out"].mkdir(parents=True, exist_ok=True)
        rows, text = [], ""
        for found in self.each(items, measure):
            rows += found
            text = self.leave(options, (table, rows, machine))
        print(text, end="")

    def leave(self, options, *found, name=None):
        """Writes tables, each (a Table, its rows, what these depend on besides the CPU): all as Markdown into --out, in a
        file called after the first one unless it has a name, and each into --csv. Returns the Markdown."""
        text = "\n".join("\n".join(table.lines(tables.text_rows(rows))) for table, rows, _ in found)
        (options["out"] / (name or pathlib.Path(found[0][0].file).with_suffix(".md"))).write_text(text)
        for table, rows, machine in found:
            if options["csv"]:
                self.keep(table, options["csv"] / table.file, rows, machine)
        return text

    def keep(self, table, path, rows, machine):
        """Writes the rows as a file of results."""
        table.write(path, rows, [tables.cpu_model(), *machine], [self.path, *sys.argv[1:]])
