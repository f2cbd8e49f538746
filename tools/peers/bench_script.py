"""What the scripts share that set networks beside other libraries."""

import contextlib
import difflib
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys

import tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TILESMITH_BINARY") or ROOT / "build" / "tilesmith").absolute()
PYTHON_PACKAGE = BINARY.parent / "python"
ONNX_RUNTIME = "onnxruntime==1.32.0"
NUMPY = "numpy==2.3.4"
BUILT_IN = ("mobilenet_v1 mobilenet_v2 squeezenet1_1 densenet121 inception_v3 resnet18 resnet34 resnet50 resnet101"
            " vgg16 vgg19 unet").split()
# Networks of tools/fetch-models that leave sizes of their inputs open, and what they are run with.
OPEN_SHAPES = {"ch_PP-OCRv4_det_infer": "x=1x3x640x640",
               "ch_PP-OCRv4_rec_infer": "x=1x3x48x320",
               "nms-yolov8": "detection=1x84x8400"}
CORES = len(os.sched_getaffinity(0))
UNITS = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600}  # seconds of each


def meant(text, names):
    """"did you mean NAME? " of the shortest one that contains the text, or else the closest one; or nothing."""
    containing = sorted((name for name in names if text.lower() in name.lower()), key=len)
    close = containing or difflib.get_close_matches(text, names, 1)
    return f"did you mean {close[0]}? " if close else ""


def known_text(text, names):
    return f"{meant(text, names)}known: {', '.join(names)}"


def seconds_of(text):
    """Seconds of a duration as the program's options take it; 0 where it is none."""
    number = r"([0-9]+\.?[0-9]*|\.[0-9]+)"
    if re.fullmatch(number, text):
        return float(text)
    if not re.fullmatch(rf"({number}(ms|s|m|h))+", text):
        return 0
    return sum(float(value) * UNITS[unit] for value, unit in re.findall(rf"{number}(ms|s|m|h)", text))


@contextlib.contextmanager
def busy_programs(count):
    """So many programs that want a core each, meanwhile."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


class BenchScript:
    """`usage` is printed by --help; libraries, if any, are fetched into `environment`, once."""

    def __init__(self, name, usage, environment=None):
        self.name, self.usage, self.environment = name, usage, environment
        self.python = environment and environment / "bin" / "python3"

    def say(self, message):
        print(f"{self.name}: {message}", file=sys.stderr)

    def fail(self, message, code=2):
        self.say(message)
        sys.exit(code)

    def run(self, main):
        """main(), whose end by Ctrl-C is told as the program tells it."""
        try:
            main()
        except KeyboardInterrupt:
            self.fail("interrupted", 130)

    def refuse(self, argument, options):
        """One that the script does not know, or one too many."""
        known = [f"--{name}" for name in options]
        hint = meant(argument.partition("=")[0], known) if argument.startswith("--") else ""
        self.fail(f"unexpected argument {argument} ({hint}known: {', '.join(known)}; see {sys.argv[0]} --help)")

    def parse(self, arguments, options, most=math.inf):
        """Takes options into `options`, which has defaults; returns the other arguments, of which there are at most so
        many. Those that default to False have no value, those that default to a list may be repeated."""
        if {"-h", "--help"} & set(arguments):
            print(self.usage)
            sys.exit(0)
        others, rest = [], list(arguments)
        while rest:
            argument = rest.pop(0)
            name = argument.removeprefix("--")
            if not argument.startswith("-") and len(others) < most:
                others.append(argument)
            elif name == argument or name not in options:
                self.refuse(argument, options)
            elif isinstance(options[name], bool):
                options[name] = True
            elif not rest:
                self.fail(f"{argument} needs a value")
            elif isinstance(options[name], list):
                options[name] = [*options[name], rest.pop(0)]
            else:
                options[name] = rest.pop(0)
        return others

    def require_readable(self, path):
        try:
            open(path, "rb").close()
        except OSError as error:
            self.fail(f"cannot read {path}: {error.strerror}", 7)

    def require_models(self, models):
        """Each must be a built-in network or a file."""
        for model in models:
            if model in BUILT_IN:
                continue
            if not model.endswith(".onnx") and not os.path.exists(model):
                self.fail(f"{model} is neither an ONNX file nor a built-in network ({known_text(model, BUILT_IN)})")
            self.require_readable(model)

    def require_of(self, options, name, known, hint="of "):
        """Makes a list of an option's value, words of those that are known with commas between."""
        options[name] = options[name].split(",")
        for word in options[name]:
            if word not in known:
                self.fail(f"--{name} must be {hint}, got {word}" if hint != "of " else
                          f"--{name} must be of {', '.join(known)}, got {word}")

    def require_duration(self, name, text):
        """As the program's options take them; returns its seconds."""
        if not 0 < seconds_of(text) < math.inf:
            self.fail(f"--{name} must be a duration such as 500ms, 90s, 8m or 1h30m, or a number of seconds, got {text}")
        return seconds_of(text)

    def require_number(self, name, text):
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            self.fail(f"--{name} must be a number above 0, got {text}")
        return number

    def require_folders(self, options, *names):
        """They can be written to, or made."""
        for name in names:
            path = pathlib.Path(options[name] or ".").absolute()
            there = next(folder for folder in (path, *path.parents) if folder.exists())
            if not there.is_dir() or not os.access(there, os.W_OK):
                self.fail(f"--{name} must be a folder to write to, got {path}")

    def to_counts(self, options, **least):
        """Makes numbers of the named options, each no less than its least; None stays."""
        for name, smallest in least.items():
            if options[name] is None:
                continue
            if not re.fullmatch("[0-9]+", options[name]) or int(options[name]) < smallest:
                self.fail(f"--{name} must be a number from {smallest} on, got {options[name]}")
            options[name] = int(options[name])

    def require_binary(self, named=None):
        """The program, or the one that an option names."""
        path = pathlib.Path(named or BINARY).absolute()
        if not path.is_file() or not os.access(path, os.X_OK):
            self.fail(f"{path} is missing; tools/quickstart or ninja builds it, or TILESMITH_BINARY names another", 7)
        return path

    def require_build(self):
        self.require_binary()
        if not (PYTHON_PACKAGE / "tilesmith").exists():
            self.fail(f"the Python package {PYTHON_PACKAGE} is missing; tools/check builds it", 7)

    def fetch(self, packages, *further, failed):
        """A virtual environment with these packages, and what further commands bring; exits with `failed` and 7."""
        done = self.environment / "done"
        brought = "\n".join([*packages, *(shlex.join(map(str, command[1:])) for command in further)])
        if done.exists() and done.read_text() == brought:
            return
        for command in ([sys.executable, "-m", "venv", "--clear", self.environment], self.pip(*packages), *further):
            if subprocess.run(command, check=False).returncode != 0:
                self.fail(failed, 7)
        done.write_text(brought)

    def pip(self, *arguments):
        return [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]

    def results(self, options, name, title, machine, rows, columns=None, note=""):
        """The file of --csv, where that is given."""
        if options["csv"]:
            command = [self.usage.split()[1], *sys.argv[1:]]
            tables.write(pathlib.Path(options["csv"]) / name, title, [tables.cpu_model(), *machine], command, rows, columns, note)

    def tilesmith(self, *arguments):
        command = list(map(str, arguments))
        result = subprocess.run([BINARY, *command], stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            self.fail(f"{shlex.join(command)} exited with {result.returncode}", 1)
        return result.stdout
