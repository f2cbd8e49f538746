"""CNN inference on CPUs, by plans tuned for the machine at hand.

    plan = tilesmith.tune("resnet50.onnx", "resnet50.plan.jsonl", time_budget="3m")
    model = tilesmith.load("resnet50.onnx", plan=plan)
    scores = model.run(image)["fc"]  # outputs by their names in the model

Arrays are float32, in the model's shapes; other types are converted. Errors are RuntimeError, ValueError for
arrays that do not fit; their messages name the thing, the value and what was allowed.
"""

import os
import shutil
import subprocess

from ._tilesmith import Model as _Model
from ._tilesmith import Session as _Session
from ._tilesmith import StepTime, TensorInfo, __version__, cores_of_numa_node

__all__ = ["__version__", "Model", "Session", "StepTime", "TensorInfo", "cores_of_numa_node", "find_program", "load", "tune"]


class Session:
    """Runs one model; has activations of its own. Threads that share one take turns."""

    def __init__(self, model, cores=()):
        """`cores`: one for each thread of the model; empty: wherever the system lets them run."""
        self._model = model
        self._session = _Session(model._model, list(cores))

    def run(self, *inputs, **named):
        """Inputs in the model's order or by name; returns a dict from output names to arrays."""
        outputs = self._session.run(self._in_order(inputs, named))
        return {info.name: array for info, array in zip(self._model.outputs, outputs)}

    def profile(self, *inputs, runs=20, **named):
        """Returns a StepTime for every step, in order of execution: a low quantile over the runs."""
        return self._session.profile(self._in_order(inputs, named), runs)

    @property
    def activation_bytes(self):
        return self._session.activation_bytes

    def _in_order(self, inputs, named):
        names = [info.name for info in self._model.inputs]
        if inputs and named:
            raise ValueError("give all inputs in order or all by name")
        if not named:
            return list(inputs)
        unknown = sorted(set(named) - set(names))
        missing = [name for name in names if name not in named]
        if unknown or missing:
            raise ValueError(f"inputs are {', '.join(names)}; unknown: {unknown}, missing: {missing}")
        return [named[name] for name in names]


class Model:
    """A loaded network: code, packed weights and plan, shared by all its sessions."""

    def __init__(self, model):
        self._model = model
        self._own = None

    @property
    def inputs(self):
        return self._model.inputs

    @property
    def outputs(self):
        return self._model.outputs

    @property
    def threads(self):
        return self._model.threads

    @property
    def packed_weight_bytes(self):
        return self._model.packed_weight_bytes

    @property
    def predicted_seconds(self):
        """Of a run, by the plan; 0 without one."""
        return self._model.predicted_seconds

    def session(self, cores=()):
        return Session(self, cores)

    def run(self, *inputs, **named):
        """Session.run of a session that the model keeps for itself."""
        return self._default().run(*inputs, **named)

    def profile(self, *inputs, runs=20, **named):
        return self._default().profile(*inputs, runs=runs, **named)

    def _default(self):
        if self._own is None:
            self._own = Session(self)
        return self._own


def load(model, plan="", threads=0, batch=0, input_shapes=(), max_elements=0, max_memory=0):
    """`model` is an ONNX file or the name of a built-in network. Without a plan schedules are the defaults.

    `threads` 0: one for each core. `batch` 0: the model's own, or 1. `input_shapes`: "x=1x3x640x640", ...
    A model with a tensor of more than `max_elements` (0: 2^31), or that needs more than `max_memory` MiB
    (0: what this process may use), is refused.
    """
    paths = os.fspath(model), os.fspath(plan)
    return Model(_Model.load(*paths, threads, batch, list(input_shapes), max_elements, max_memory))


def tune(
    model,
    plan,
    log=None,
    time_budget="4m",
    threads=0,
    options=(),
    tune_options=(),
    graph_tune_options=(),
    program=None,
):
    """Tunes the model's convolutions and chooses its layouts; writes `plan` and returns its path.

    Runs the command line, since nothing else may run in a process that measures. `log` (default: the plan's
    path with .log.jsonl) keeps what was measured: called again, it goes on from there. `options` are passed to
    both `tilesmith tune` and `tilesmith graph-tune`: ["--batch", "8"]; the others to one of them. `program`:
    the tilesmith executable, by default what find_program returns.
    """
    program = program or find_program()
    model, plan = os.fspath(model), os.fspath(plan)
    log = os.fspath(log) if log else plan + ".log.jsonl"
    common = list(options) + (["--threads", str(threads)] if threads else [])
    budget = ["--time-budget", time_budget]
    _call([program, "tune", model, "-o", log, "--resume", *budget, *common, *tune_options])
    _call([program, "graph-tune", model, "--log", log, "-o", plan, *common, *graph_tune_options])
    return plan


def find_program():
    """The program tilesmith: $TILESMITH, the one in this package (a wheel has it), or the one on the PATH."""
    packaged = os.path.join(os.path.dirname(__file__), "tilesmith")
    program = os.environ.get("TILESMITH") or (
        packaged if os.path.exists(packaged) else shutil.which("tilesmith")
    )
    if not program:
        raise RuntimeError("the program tilesmith was not found: set TILESMITH or add it to the PATH")
    return program


def _call(command):
    # The progress shows on stderr; the tables are for people at a terminal.
    result = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with status {result.returncode}")
