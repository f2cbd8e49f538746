"""CNN inference on CPUs, by plans tuned for the machine at hand.

    plan = tilesmith.tune("resnet50.onnx", "resnet50.plan.jsonl", seconds="3m")
    model = tilesmith.load("resnet50.onnx", plan=plan)
    scores = model.run(image)["fc"]  # outputs by their names in the model

Arrays have the model's shapes and types, sizes in the order NHWC where a plan has an end in it, and are flat
where it is blocked; what is given for a float32 input is converted, other inputs must be given in their type.
Errors are RuntimeError, ValueError for arrays that do not fit, MissingFileError (a FileNotFoundError and a
RuntimeError) for files that are not there; their messages name the thing, the value and what was allowed.
"""

from __future__ import annotations

import collections.abc
import ctypes
import errno
import importlib.util
import json
import os
import shutil
import warnings
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Optional, Union

from ._tilesmith import Model as _Model
from ._tilesmith import Session as _Session
from ._tilesmith import StepTime, TensorInfo, __version__, core_distance, cores_of_numa_node
from ._tilesmith import graph_tune as _graph_tune
from ._tilesmith import optimize as _optimize
from ._tilesmith import quantize as _quantize
from ._tilesmith import tune as _tune

if TYPE_CHECKING:
    import numpy.typing

    Path = Union[str, "os.PathLike[str]"]
    Bytes = Union[bytes, bytearray, memoryview]
    AnyModel = Union[Path, Bytes, Any]  # or an onnx.ModelProto, or what torch.onnx.export returns
    Parts = Mapping[str, Bytes]
    Texts = Union[str, Iterable[str]]
    Paths = Union[Path, Iterable[Path]]
    Duration = Union[float, str]  # seconds, or a text such as "90s"
    Progress = Optional[Callable[[str], object]]
    Inputs = Union["numpy.typing.ArrayLike", Mapping[str, "numpy.typing.ArrayLike"]]

__all__ = [
    "__version__",
    "MissingFileError",
    "Model",
    "Session",
    "StepTime",
    "TensorInfo",
    "core_distance",
    "cores_of_numa_node",
    "find_program",
    "graph_tune",
    "load",
    "optimize",
    "quantize",
    "tune",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__"])


class MissingFileError(FileNotFoundError, RuntimeError):
    """A file that is not there; `filename` is its path."""


def _path(name: str, path: Any, read: bool = False) -> str:
    """As text; of what is `read` there must be something."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a path (str or os.PathLike), got {type(text).__name__}")
    if read and text and not os.path.exists(text):
        raise MissingFileError(errno.ENOENT, f"{name}: {os.strerror(errno.ENOENT)}", text)
    return text


def _paths(name: str, paths: Paths) -> list[str]:
    """Of files and directories to read."""
    one = isinstance(paths, (str, bytes, os.PathLike))
    return [_path(name, path, read=True) for path in ([paths] if one else paths)]


def _given(model: AnyModel, parts: Optional[Parts]) -> tuple[Any, dict[str, Bytes]]:
    """A path, or bytes, and what other files hold that those keep data in, by location."""
    model = getattr(model, "model_proto", model)  # of what torch.onnx.export returns
    if hasattr(model, "SerializeToString"):
        try:
            model = model.SerializeToString()
        except Exception as error:  # google.protobuf's, of which there are several
            raise ValueError(f"the model cannot be given in memory, save it to a file, with external data: {error}") from error
    in_memory = isinstance(model, (bytes, bytearray, memoryview))
    if parts and not in_memory:
        raise ValueError("parts are for a model in memory: a file's are read beside it")
    if in_memory:
        return model, dict(parts or {})
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(
            "model must be a path, the name of a built-in network, bytes of an ONNX file or an onnx.ModelProto, "
            f"got {type(model).__name__}; PyTorch's modules are for tilesmith.torch.compile"
        )
    path = _path("model", model)
    # Else it may be the name of a built-in network.
    is_path = isinstance(model, os.PathLike) or os.path.basename(path) != path or path.endswith(".onnx")
    return _path("model", path, read=is_path), {}


def _texts(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


class Session:
    """Runs one model; has activations of its own. Threads that share one take turns."""

    def __init__(self, model: Model, cores: Iterable[int] = ()) -> None:
        """`cores`: one for each thread of the model; empty: wherever the system lets them run."""
        self._model = model
        self._session = _Session(model._model, list(cores), model._other_sizes)

    def run(self, /, *inputs: Any, **named: numpy.typing.ArrayLike) -> Any:
        """Inputs in the model's order, by name or as a dict; returns a dict from output names to arrays.

        Outputs have their true sizes. Inputs may have other sizes than the model's where it was loaded with
        `sizes` > 1 or several input_shapes; a new one is prepared first. As ONNX Runtime's,
        `run(names, {...})` returns a list of the outputs of these names, of all for None.
        """
        if len(inputs) == 2 and isinstance(inputs[1], collections.abc.Mapping):
            return self._run_listed(inputs[0], inputs[1], named)
        outputs = self._session.run(self._in_order(inputs, named))
        return {info.name: array for info, array in zip(self._model.outputs, outputs)}

    def __call__(self, /, *inputs: Inputs, **named: numpy.typing.ArrayLike) -> Any:
        """The same, returning the array of a model's only output, or a tuple of arrays in the model's order."""
        outputs = tuple(self._session.run(self._in_order(inputs, named)))
        return outputs[0] if len(outputs) == 1 else outputs

    def _run_listed(self, wanted: Any, inputs: Mapping[str, Any], named: Mapping[str, Any]) -> list[numpy.ndarray]:
        known = [info.name for info in self._model.outputs]
        names = known if not wanted else _texts(wanted)
        unknown = [name for name in names if name not in known]
        if unknown or named:
            raise ValueError(
                f"give run a list of outputs and a dict of inputs; outputs are {', '.join(known)}; unknown: {unknown}"
            )
        outputs = self.run(inputs)
        return [outputs[name] for name in names]

    def profile(
        self, /, *inputs: Inputs, runs: int = 20, **named: numpy.typing.ArrayLike
    ) -> list[StepTime]:
        """Returns a StepTime for every step, in order of execution: a low quantile over the runs."""
        return self._session.profile(self._in_order(inputs, named), runs)

    @property
    def activation_bytes(self) -> int:
        return self._session.activation_bytes

    def _in_order(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        names = [info.name for info in self._model.inputs]
        if len(inputs) == 1 and isinstance(inputs[0], collections.abc.Mapping) and not named:
            inputs, named = (), inputs[0]
        elif not named:
            return list(inputs)
        if inputs:
            raise ValueError("give all inputs in order or all by name")
        unknown = sorted(set(named) - set(names))
        missing = [name for name in names if name not in named]
        if unknown or missing:
            raise ValueError(f"inputs are {', '.join(names)}; unknown: {unknown}, missing: {missing}")
        return [named[name] for name in names]


class Model:
    """A loaded network: code, packed weights and plan, shared by all its sessions."""

    def __init__(self, model: _Model, other_sizes: bool = False) -> None:
        self._model = model
        self._other_sizes = other_sizes
        self._own: Optional[Session] = None

    @property
    def inputs(self) -> list[TensorInfo]:
        return self._model.inputs

    @property
    def outputs(self) -> list[TensorInfo]:
        return self._model.outputs

    @property
    def warnings(self) -> list[str]:
        """What load warned of."""
        return self._model.warnings

    @property
    def threads(self) -> int:
        return self._model.threads

    @property
    def packed_weight_bytes(self) -> int:
        return self._model.packed_weight_bytes

    @property
    def predicted_seconds(self) -> float:
        """Of a run, by the plan; 0 without one."""
        return self._model.predicted_seconds

    def __repr__(self) -> str:
        def texts(infos: list[TensorInfo]) -> str:
            return ", ".join(f"{info.name} {'x'.join(map(str, info.shape))} {info.type}".rstrip() for info in infos)

        return f"<tilesmith.Model {texts(self.inputs)} -> {texts(self.outputs)}, {self.threads} threads>"

    def session(self, cores: Iterable[int] = ()) -> Session:
        return Session(self, cores)

    def run(self, /, *inputs: Any, **named: numpy.typing.ArrayLike) -> Any:
        """Session.run of a session that the model keeps for itself."""
        return self._default().run(*inputs, **named)

    def __call__(self, /, *inputs: Inputs, **named: numpy.typing.ArrayLike) -> Any:
        return self._default()(*inputs, **named)

    def profile(
        self, /, *inputs: Inputs, runs: int = 20, **named: numpy.typing.ArrayLike
    ) -> list[StepTime]:
        return self._default().profile(*inputs, runs=runs, **named)

    def _default(self) -> Session:
        if self._own is None:
            self._own = Session(self)
        return self._own


def load(
    model: AnyModel,
    plan: Path = "",
    threads: int = 0,
    batch: int = 0,
    input_shapes: Texts = (),
    max_elements: int = 0,
    max_memory: int = 0,
    sizes: int = 1,
    wait: str = "sleep",
    target: str = "cpu",
    precision: str = "f32",
    parts: Optional[Parts] = None,
    strict: bool = False,
    reproducible: bool = False,
) -> Model:
    """`model` is an ONNX file, its bytes, an onnx.ModelProto, or the name of a built-in network. Without a plan schedules are the defaults.

    `parts`, of bytes that keep data in other files: what those hold, by the locations that the model gives.

    `threads` 0: one for each core. `batch` 0: the model's own, or 1. `input_shapes`: "x=1x3x640x640", ...
    A model with a tensor of more than `max_elements` (0: 2^31), or that needs more than `max_memory` MiB
    (0: what this process may use), is refused. `sizes`: how many sizes of its inputs are kept prepared, the
    first (the model's own, or that of input_shapes) and those used last; several texts of input_shapes for one
    input are as many sizes. Threads that wait for each other "spin", or after a while "yield" the core to
    others, or at last "sleep" as well. `target`: "cpu", or a GPU, "cuda" or of several "cuda:N"; with
    `precision` "tf32" it may round what it multiplies.

    Sizes of inputs that the model leaves open, the batch excepted, and `input_shapes` does not give, are -1 in
    Model.inputs until the first run, which compiles the model for those of its arrays. A plan that was made for
    another number of threads runs on those there are, with a warning; `strict`: it is an error. `reproducible`:
    outputs are the same bits on every CPU, with any number of threads and any plan that was made so.
    """
    arguments = locals()
    shapes = _texts(input_shapes)
    names = [text.rpartition("=")[0] for text in shapes]
    other_sizes = (isinstance(sizes, int) and sizes > 1) or len(set(names)) < len(names)
    options = {**arguments, "plan": _path("plan", plan, read=True), "input_shapes": shapes}
    loaded = _Model.load(*_given(model, parts), options)
    for warning in loaded.warnings:
        warnings.warn(warning, RuntimeWarning, stacklevel=2)
    return Model(loaded, other_sizes)


def _ask(work: Any, output: str, arguments: dict[str, Any]) -> Any:
    """Has C++ do what a function was called with, by name, and write `output`."""
    for name in ("input_shapes", "forbid", "keep", "op_types"):
        if name in arguments:
            arguments[name] = _texts(arguments[name])
    arguments["calibrate"] = _paths("calibrate", arguments["calibrate"])
    model, parts, progress = (arguments.pop(name) for name in ("model", "parts", "progress"))
    return work(*_given(model, parts), output, arguments, progress)


def _settle(work: Any, arguments: dict[str, Any]) -> str:
    """Has C++ do what tune, optimize or graph_tune was called with; returns the plan's path."""
    plan = _path("plan", arguments.pop("plan"))
    # tune and optimize go on from a log, or begin one.
    arguments["log"] = _path("log", arguments["log"] or "", read="program" not in arguments)
    if "program" in arguments:
        arguments["program"] = _path("program", arguments["program"] or find_program())
    _ask(work, plan, arguments)
    return plan


def tune(
    model: AnyModel,
    plan: Path,
    *,
    log: Optional[Path] = None,
    seconds: Duration = "4m",
    graph_seconds: Duration = "90s",
    rounds: int = 3,
    threads: int = 0,
    batch: int = 0,
    input_shapes: Texts = (),
    database: bool = True,
    target: str = "cpu",
    precision: str = "f32",
    reproducible: bool = False,
    calibrate: Paths = (),
    max_output_error: float = 0,
    max_error: float = 0,
    forbid: Texts = (),
    input_layout: str = "NCHW",
    output_layout: str = "NCHW",
    max_weights: int = 0,
    max_elements: int = 0,
    max_memory: int = 0,
    wait: str = "sleep",
    program: Optional[Path] = None,
    progress: Progress = None,
    parts: Optional[Parts] = None,
) -> str:
    """Tunes the model's convolutions and chooses its layouts; writes `plan` and returns its path.

    Takes about `seconds` and `graph_seconds`, numbers or texts such as "3m", in which nothing else may run in
    the process or on the machine. `log` (default: the plan's path with .log.jsonl) keeps what was measured:
    called again, it goes on from there. `rounds`: how many plans are run at most, learning from each.
    `database`: ask and tell the user's database of earlier tunings. `precision` "int8": the model is
    quantised as quantize would, on `calibrate` or random inputs, and the plan says how, so that load takes
    the same model with it; "bf16"; "mixed": layer by layer what is fastest, with outputs at most
    `max_output_error` off, relative to f32's (0: any). `max_error`, `forbid`: only schedules whose error was at
    most this, templates not to use. `input_layout`, `output_layout`: of the plan's ends, "NCHW" or "NHWC".
    `max_weights`: MiB of packed weights, at most. `reproducible`: only schedules whose outputs are the same bits on
    every CPU. `program`: the tilesmith executable, which tries configs in a
    process of its own, by default what find_program returns. `progress` is called with a text between measurements; Ctrl-C raises
    KeyboardInterrupt there, and what was measured is in the log.
    """
    _share_xgboost()
    return _settle(_tune, locals())


def optimize(
    model: AnyModel,
    plan: Path,
    *,
    log: Optional[Path] = None,
    seconds: Duration = 60,
    threads: int = 0,
    batch: int = 0,
    input_shapes: Texts = (),
    database: bool = True,
    target: str = "cpu",
    precision: str = "f32",
    reproducible: bool = False,
    calibrate: Paths = (),
    max_output_error: float = 0,
    max_error: float = 0,
    forbid: Texts = (),
    input_layout: str = "NCHW",
    output_layout: str = "NCHW",
    max_weights: int = 0,
    max_elements: int = 0,
    max_memory: int = 0,
    wait: str = "sleep",
    program: Optional[Path] = None,
    progress: Progress = None,
    parts: Optional[Parts] = None,
) -> str:
    """Tunes and chooses layouts at once, within `seconds` (or a text such as "3m"); returns `plan`'s path.

    The file holds the best plan so far from the first seconds on, also when Ctrl-C ends it. The rest is as for
    tune; called again, it goes on from the log and the plan.
    """
    _share_xgboost()
    return _settle(_optimize, locals())


def graph_tune(
    model: AnyModel,
    plan: Path,
    *,
    log: Optional[Path] = None,
    seconds: Duration = "90s",
    rounds: int = 3,
    threads: int = 0,
    batch: int = 0,
    input_shapes: Texts = (),
    target: str = "cpu",
    precision: str = "f32",
    reproducible: bool = False,
    calibrate: Paths = (),
    max_output_error: float = 0,
    max_error: float = 0,
    forbid: Texts = (),
    input_layout: str = "NCHW",
    output_layout: str = "NCHW",
    max_weights: int = 0,
    max_elements: int = 0,
    max_memory: int = 0,
    wait: str = "sleep",
    progress: Progress = None,
    parts: Optional[Parts] = None,
) -> str:
    """The second half of tune: chooses schedules and layouts by a log, without one default schedules.

    Writes `plan`, the best so far from the first solution on, and returns its path.
    """
    return _settle(_graph_tune, locals())


def quantize(
    model: AnyModel,
    output: Path,
    calibrate: Paths = (),
    samples: int = 0,
    method: str = "minmax",
    percentile: float = 99.99,
    activations: str = "u8",
    reduce_range: bool = False,
    keep: Texts = (),
    keep_first: bool = False,
    keep_last: bool = False,
    op_types: Texts = (),
    check: bool = True,
    threads: int = 0,
    batch: int = 0,
    input_shapes: Texts = (),
    progress: Progress = None,
    external_data: bool = False,
    parts: Optional[Parts] = None,
) -> dict[str, Any]:
    """Writes the model with 8-bit integers (QDQ) to `output`; returns what `tilesmith quantize --json` prints.

    `calibrate`: .npz and .npy files or directories of them, or one; without any, inputs are random. `samples`:
    at most so many. `method`: "minmax", "percentile", "entropy", "mse". `activations`: "u8", "i8",
    "i8-symmetric". `reduce_range`: weights of 7 bits. `keep`: nodes that stay float; `keep_first`, `keep_last`:
    so do the first or last convolutions and products. `op_types`: only these are quantised. `check`: both models
    are run and compared. `external_data`: weights go into a second file beside it. `progress` is called with a text between runs; Ctrl-C raises KeyboardInterrupt there.
    """
    return json.loads(_ask(_quantize, _path("output", output), locals()))


def _find_xgboost() -> Optional[str]:
    """The library of the Python package xgboost, which `pip install tilesmith[tune]` brings."""
    spec = importlib.util.find_spec("xgboost")
    path = os.path.join(os.path.dirname(spec.origin), "lib", "libxgboost.so") if spec and spec.origin else ""
    return path if os.path.exists(path) else None


def _share_xgboost() -> None:
    """Once it is loaded, tuning finds it by its name, where the system has no other."""
    path = _find_xgboost()
    if path:
        ctypes.CDLL(path)


def find_program() -> str:
    """The program tilesmith: $TILESMITH, the one in this package (a wheel has it), or the one on the PATH."""
    packaged = os.path.join(os.path.dirname(__file__), "tilesmith")
    program = os.environ.get("TILESMITH") or (
        packaged if os.path.exists(packaged) else shutil.which("tilesmith")
    )
    if not program:
        raise RuntimeError("the program tilesmith was not found: set TILESMITH or add it to the PATH")
    return program


def __getattr__(name: str) -> Any:
    """tilesmith.torch, which imports PyTorch, once it is used."""
    if name != "torch":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    try:
        return importlib.import_module(".torch", __name__)
    except ModuleNotFoundError as missing:
        raise AttributeError(str(missing)) from missing
