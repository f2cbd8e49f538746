"""Sides of a comparison are processes that have loaded a network and run it when they are asked to: ours and other libraries'
(worker.py), and a chain of oneDNN's primitives."""

import json
import os
import pathlib
import statistics
import subprocess

import tables
from bench_script import BINARY, PYTHON_PACKAGE, Refused

WORKER = pathlib.Path(__file__).with_name("worker.py")
OURS = ("tilesmith", "alone")  # the second is ours by one thread
SYSTEM_PYTHON = "/usr/bin/python3"  # the build's package is for it


class Side:
    """A process that has loaded a network once this is made; `outputs` is the file of what that gave. `environment` has
    variables that are set besides."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **{key: str(value) for key, value in (environment or {}).items()}})
        self.ready = self.answer()
        self.version, self.outputs = self.ready.get("version"), self.ready.get("outputs")

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Refused(f"{self.name} failed")
        return json.loads(line)

    def ask(self, request):
        self.process.stdin.write(f"{request}\n")
        self.process.stdin.flush()
        return self.answer()

    def turn(self, seconds):
        """Returns the seconds of a run, the median of a turn that is about so long."""
        return statistics.median(self.ask(f"run {seconds}"))

    def apart(self, other, measure):
        """Returns how far outputs of the other side are from this one's, as worker.py measures it."""
        return float(self.ask(f"apart {measure} {other.outputs}"))

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        os.unlink(self.outputs)


class OneDnnSide(Side):
    """A chain of oneDNN's primitives, which the program itself runs."""

    def __init__(self, model, inputs, threads, precision, outputs):
        super().__init__("onednn", [BINARY, "network-worker", model, "--onednn", "--threads", threads, "--input", inputs,
                                    "--outputs", outputs, *(["--bf16"] if precision == "bf16" else [])])
        self.version, self.outputs = self.ready["ready"].split()[1], outputs
        self.once = self.ask('{"runs":1}')["seconds"]

    def turn(self, seconds):
        self.once = self.ask(json.dumps({"runs": max(1, int(seconds / self.once))}))["seconds"]
        return self.once


def open_side(library, python, name=None, environment=None, **request):
    """Opens a side by worker.py, which says what a request to a library has. `python` is that of the library's packages."""
    request = {"library": library, "package": PYTHON_PACKAGE, **request}
    command = [SYSTEM_PYTHON if library in OURS else python, "-W", "ignore", WORKER, json.dumps(request, default=str)]
    return Side(name or library, command, environment)


def converted(library, python, model, stem):
    """Converts a model, once, to what ncnn or MNN reads, beside the stem; returns its path."""
    place = pathlib.Path(f"{stem}.{library}").absolute()
    path = place / ("model.ncnn.param" if library == "ncnn" else "model.mnn")
    if path.exists():
        return path
    place.mkdir(parents=True, exist_ok=True)
    copied = place / "model.onnx"  # pnnx writes beside the file that it reads
    copied.unlink(missing_ok=True)
    copied.symlink_to(model)
    if library == "ncnn":
        command = [next(python.parents[1].glob("lib/*/site-packages/pnnx/pnnx")), copied.name, "fp16=0"]
    else:
        command = [python, "-m", "MNN.tools.mnnconvert", "-f", "ONNX", "--modelFile", copied, "--MNNModel", path,
                   "--bizCode", "tilesmith"]
    done = subprocess.run(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    (place / "conversion.txt").write_bytes(done.stdout)
    if done.returncode != 0 or not path.exists():
        path.unlink(missing_ok=True)
        raise Refused(f"{tables.RIVALS[library]} does not convert it ({place / 'conversion.txt'})")
    return path
