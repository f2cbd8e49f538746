"""What tilesmith.torch runs: a traced module with its place in the cache, on the memory of torch's tensors."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import logging
import operator
import os
import pathlib
import platform
import re
import shutil
import tempfile
import threading
import warnings
from typing import TYPE_CHECKING, Any, Optional, Sequence

import numpy
import tilesmith
import torch
from torch.utils import _pytree as pytree

from ._tilesmith import seconds as _seconds

if TYPE_CHECKING:
    from tilesmith import Duration, Path, Paths, Progress

log = logging.getLogger("tilesmith.torch")

_VERSION = 1  # of what an entry of the cache holds
_TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "bool": torch.bool}
_TYPES |= {f"i{bits}": getattr(torch, f"int{bits}") for bits in (8, 16, 32, 64)}
_TYPES |= {f"u{bits}": getattr(torch, f"uint{bits}") for bits in (8, 16, 32, 64)}
_TO_FIRST, _TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_version = operator.attrgetter("_version")


@dataclasses.dataclass(frozen=True)
class Options:
    """What compile and the backend of torch.compile take.

    `optimize_for`: seconds, or a text such as "60s", to tune the network for, unless the cache has a plan that was
    tuned as long; 0: the cache's plan, or default schedules. `threads` 0: torch.get_num_threads(), or the cores there
    are. `precision`, `calibrate`, `max_output_error`, `program` and `progress` are as in tilesmith.optimize, `wait` and
    `max_memory` as in tilesmith.load, and `sizes`, of inputs whose sizes are open. `cache`: a folder other than cache_folder().
    """

    optimize_for: Duration = 0
    precision: str = "f32"
    threads: int = 0
    calibrate: Paths = ()
    max_output_error: float = 0
    sizes: int = 4
    wait: str = "sleep"
    max_memory: int = 0
    cache: Path = ""
    program: Optional[Path] = None
    progress: Progress = None

    def seconds(self) -> float:
        return _seconds("optimize_for", self.optimize_for or 0)

    @classmethod
    def of(cls, given: dict[str, Any]) -> Options:
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ValueError(f"unknown options of tilesmith: {', '.join(unknown)}; known: {', '.join(known)}")
        options = cls(**given)
        if options.precision not in _PRECISIONS:
            raise ValueError(f"precision is {options.precision!r} (known: {', '.join(_PRECISIONS)})")
        if not options.seconds() >= 0:
            raise ValueError(f"optimize_for must be at least 0, got {options.optimize_for}")
        if options.cache and not pathlib.Path(options.cache).is_dir() and pathlib.Path(options.cache).exists():
            raise ValueError(f"cache must be a folder, {os.fspath(options.cache)} is none")
        return options

    def cores(self) -> int:
        return self.threads or min(torch.get_num_threads(), len(os.sched_getaffinity(0)))


def cache_folder() -> pathlib.Path:
    """$XDG_CACHE_HOME/tilesmith/torch, or ~/.cache/tilesmith/torch. It may be removed at any time."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "tilesmith" / "torch"


_PRECISIONS = ("f32", "bf16", "int8", "mixed")
_tracing = threading.RLock()  # torch traces and exports in one thread at a time


@dataclasses.dataclass(frozen=True)
class Traced:
    exported: Any  # of what is computed, a torch.export.ExportedProgram
    held: list  # the module's parameters and buffers
    results: list  # where each leaf of the outputs is: ("value", it), or a number in "input", "held" or "output"
    out_spec: Any  # of all of them


def trace(module: torch.nn.Module, args: tuple, kwargs: dict, dynamic_shapes: Any = None) -> Traced:
    """The module without what need not be computed: values that are fixed, tensors that are inputs or there already."""
    traced: dict[str, Any] = {}
    # A graph's nodes know which modules they are of.
    run = torch.fx.Interpreter(module).run if isinstance(module, torch.fx.GraphModule) else module

    @functools.wraps(module.forward)
    def forward(*args, **kwargs):
        outputs: list = []
        held = [*module.parameters(), *module.buffers()]
        known = {"input": pytree.tree_leaves((args, kwargs)), "held": held, "output": outputs}
        leaves, spec = pytree.tree_flatten(run(*args, **kwargs))
        results = []
        for leaf in leaves:
            if isinstance(leaf, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                raise RuntimeError("the module returns a number that varies")
            if not isinstance(leaf, torch.Tensor):
                results.append(("value", leaf))
                continue
            kind = next((kind for kind, tensors in known.items() if any(leaf is tensor for tensor in tensors)), "output")
            if kind == "output" and not any(leaf is tensor for tensor in outputs):
                outputs.append(leaf)
            results.append((kind, next(place for place, tensor in enumerate(known[kind]) if tensor is leaf)))
        if not outputs:
            raise RuntimeError("the module computes nothing")
        traced.update(results=results, out_spec=spec)
        return tuple(outputs)

    flat = torch.nn.Module()
    flat.module, flat.forward = module, forward
    with _tracing, torch.no_grad(), torch.fx.traceback.preserve_node_meta(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(flat, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
    return Traced(exported, [*module.parameters(), *module.buffers()], **traced)


class Program:
    """A traced module: takes the leaves of its inputs, returns those of its outputs. Threads take turns."""

    def __init__(self, traced: Traced, leaves: Sequence[Any], options: Options) -> None:
        self._traced, self._exported, self._options = traced, traced.exported, options
        signature, kinds = self._exported.graph_signature, torch.export.graph_signature.InputKind
        held = {**self._exported.constants, **self._exported.state_dict}
        stored = [spec.target for spec in signature.input_specs if spec.kind in (kinds.PARAMETER, kinds.BUFFER)]
        # What the cache leaves out. Integers may be sizes, and are a part of the graph.
        self._weights = {name: held[name] for name in stored if held[name].is_floating_point()}
        self._fixed = [(place, leaf) for place, leaf in enumerate(leaves) if not isinstance(leaf, torch.Tensor)]
        self._places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self._names = [signature.user_inputs[place] for place in self._places]
        self._last = [is_last(leaves[place]) for place in self._places]
        self._shapes = [tuple(leaves[place].shape) for place in self._places]
        self._open = bool(self._exported.range_constraints)
        inputs = {node.name: node.meta.get("val") for node in self._exported.graph.nodes if node.op == "placeholder"}
        self._declared = [list(map(self._size, inputs[name].shape)) for name in self._names]
        given = {name: leaves[place] for name, place in zip(self._names, self._places)}
        doubles = [name for name, tensor in {**given, **self._weights}.items() if tensor.dtype is torch.float64]
        if doubles:
            raise RuntimeError(f'"{doubles[0]}" is of torch.float64, where tilesmith computes in float32: call float() of it')
        self._watched = list({id(tensor): tensor for tensor in traced.held}.values())
        self._versioned = [tensor for tensor in self._watched if not tensor.is_inference()]
        lines = self._exported.graph_module.print_readable(print_output=False).splitlines()
        self._graph = [line for line in lines if not line.lstrip().startswith("#")]  # without the places in users' files
        self._graph += [signature, self._exported.range_constraints, self._last, self._shapes]
        self._graph += [_digest(tensor) for name, tensor in held.items() if name not in self._weights]
        self._nodes: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()
        self._prepare()

    def __call__(self, leaves: Sequence[Any]) -> list:
        for place, value in self._fixed:
            if leaves[place] is not value and leaves[place] != value:
                raise ValueError(f"compiled for {value!r} where {leaves[place]!r} is given: compile it for that, too")
        if self._state() != self._prepared:
            with self._lock:
                if self._state() != self._prepared:
                    self._prepare()
        given = [leaves[place] for place in self._places]
        taken = [self._taken(tensor, number) for number, tensor in enumerate(given)]
        if any(tensor.shape != shape for tensor, shape in zip(given, self._shapes)):
            self._check_sizes(given)
        tensors = [taken[number] for number in self._order]
        addresses = [tensor.data_ptr() for tensor in tensors]
        shapes = [list(tensor.shape) for tensor in tensors]
        if shapes == self._first_shapes:
            outputs = [torch.empty(shape, dtype=dtype) for shape, dtype in self._outputs]
            self._session.run_pointers(addresses, shapes, [output.data_ptr() for output in outputs])
        else:
            outputs = [_from_numpy(array) for array in self._session.run_pointers(addresses, shapes, [])]
        if any(self._last):
            outputs = [output.permute(_TO_FIRST) if output.dim() == 4 else output for output in outputs]
        kinds = {"output": outputs, "input": leaves, "held": self._traced.held}
        return [value if kind == "value" else kinds[kind][value] for kind, value in self._traced.results]

    def _size(self, size: Any) -> Any:
        """Of an input: a number, or the symbol of an open one with its least and largest values."""
        if isinstance(size, int):
            return size
        symbol = size.node.expr
        bounds = self._exported.range_constraints.get(symbol)
        if bounds is None:
            return str(symbol), 0, None
        # Sizes of 0 and 1 are left out of what torch traces, and no different here.
        return str(symbol), 0 if bounds.lower <= 2 else int(bounds.lower), bounds.upper

    def _check_sizes(self, tensors: Sequence[torch.Tensor]) -> None:
        """That only what is open varies, in its bounds, and alike where it is one size."""
        known: dict[str, int] = {}
        for number, tensor in zip(range(len(self._places)), tensors):
            name, declared = self._names[number], self._declared[number]
            fits = len(declared) == tensor.dim()
            for wanted, size in zip(declared, tensor.shape):
                if isinstance(wanted, int):
                    fits = fits and size == wanted
                    continue
                symbol, least, most = wanted
                fits = fits and size >= least and (most is None or size <= most) and known.setdefault(symbol, size) == size
            if not fits:
                text = ", ".join(map(_size_text, declared))
                raise ValueError(
                    f'input "{name}" has shape {tuple(tensor.shape)}, expected ({text}); others need dynamic_batch or dynamic_shapes'
                )

    def _taken(self, tensor: Any, number: int) -> torch.Tensor:
        """The tensor as the model takes it."""
        name, dtype = self._names[number], self._dtypes[number]
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f'input "{name}" is of {type(tensor).__name__}, expected a tensor')
        if tensor.dtype is not dtype or tensor.device.type != "cpu":
            raise ValueError(f'input "{name}" is of {tensor.dtype} on {tensor.device}, expected {dtype} on cpu')
        if tensor.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f'input "{name}" needs a gradient, which only torch computes: run under torch.no_grad(), or detach() it'
            )
        return (tensor.permute(_TO_LAST) if self._last[number] else tensor).contiguous()

    def _state(self) -> list:
        """Differs once a weight has another value."""
        return [*map(torch.Tensor.data_ptr, self._watched), *map(_version, self._versioned)]

    def _key(self) -> str:
        options = self._options
        parts = [_VERSION, tilesmith.__version__, torch.__version__, _cpu(), options.cores(), options.precision, *self._graph]
        if options.precision not in ("f32", "bf16"):  # ranges of values are a part of the plan
            parts += [(path, os.stat(path).st_mtime_ns) for path in tilesmith._paths("calibrate", options.calibrate)]
            parts.append(options.max_output_error)
            parts += map(_digest, self._weights.values())
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()

    def _prepare(self) -> None:
        """From the cache, or from nothing where it has none, or one that is damaged or another machine's."""
        state = self._state()
        with _folder_for(self._options.cache) as root:
            entry = root / self._key()
            fresh = not (entry / "model.onnx").exists()
            if fresh:
                self._export(entry)
            try:
                self._load(entry)
            except (RuntimeError, OSError, ValueError) as error:
                shutil.rmtree(entry, ignore_errors=True)
                if fresh:
                    raise RuntimeError(self._with_modules(str(error))) from error
                log.info("%s is made anew: %s", entry, error)
                self._export(entry)
                self._load(entry)
        self._prepared = state

    def _load(self, entry: pathlib.Path) -> None:
        options, structure, plan = self._options, (entry / "model.onnx").read_bytes(), entry / "plan.jsonl"
        shapes = [[shape[axis] for axis in _TO_LAST] if last else shape for shape, last in zip(self._shapes, self._last)]
        given = [f"{name}={'x'.join(map(str, shape))}" for name, shape in zip(self._names, shapes)] if self._open else []
        weights = {name: _bytes_of(tensor) for name, tensor in self._weights.items()}
        shared = {"threads": options.cores(), "input_shapes": given, "parts": weights}
        taken = ("precision", "calibrate", "max_output_error", "progress")
        tuning = {**{name: getattr(options, name) for name in taken}, **shared}
        seconds, tuned = options.seconds(), entry / "seconds"
        if seconds > 0 or (options.precision != "f32" and not plan.exists()):
            with _locked(entry / "lock"):
                if seconds > (float(tuned.read_text()) if tuned.exists() else 0):
                    tilesmith.optimize(structure, plan, seconds=seconds, program=options.program, **tuning)
                    tuned.write_text(str(seconds))
                elif not plan.exists():
                    tilesmith.graph_tune(structure, plan, seconds=5, rounds=0, **tuning)
        self.model = tilesmith.load(
            structure, plan if plan.exists() else "", sizes=options.sizes if self._open else 1, wait=options.wait,
            max_memory=options.max_memory, **shared,
        )
        inputs, outputs = self.model.inputs, self.model.outputs
        self._order = [self._names.index(info.name) for info in inputs]
        self._dtypes = {number: _TYPES[info.type] for number, info in zip(self._order, inputs)}
        known = all(info.type for info in outputs)  # no output's size depends on values
        self._first_shapes = [info.shape for info in inputs] if known else None
        self._outputs = [(info.shape, _TYPES[info.type]) for info in outputs] if known else []
        self._session = self.model.session()._session

    def _export(self, entry: pathlib.Path) -> None:
        """Writes the graph without its weights, which are read from torch's memory whenever it is loaded."""
        import onnx_ir

        with _tracing, warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            try:
                program = torch.onnx.export(self._exported, dynamo=True, optimize=False, verbose=False)
            except torch.onnx.errors.OnnxExporterError as error:
                cause: BaseException = error  # its own text is a page
                while cause.__cause__ is not None:
                    cause = cause.__cause__
                raise RuntimeError(self._with_modules(f"torch cannot export it to ONNX: {cause}")) from error
            signature = program.exported_program.graph_signature
            mutated = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
            if mutated:
                raise RuntimeError(f"it writes to {mutated[0].removeprefix('module.')}: only inference is supported, of modules in eval mode")
            # Weights are inputs meanwhile, so that nothing is computed from them.
            graph, weights = program.model.graph, {}
            for name in [name for name in graph.initializers if name in self._weights]:
                value = graph.initializers.pop(name)
                weights[name], value.const_value = value.const_value, None
                graph.inputs.append(value)
            program.optimize()
        graph = program.model.graph
        for value in [value for value in graph.inputs if value.name in weights]:
            tensor = weights[value.name]
            graph.inputs.remove(value)
            value.const_value = onnx_ir.ExternalTensor(
                value.name, 0, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=value.name, base_dir=""
            )
            graph.initializers[value.name] = value
        _put_channels_last(graph, [name for name, last in zip(self._names, self._last) if last])
        self._nodes = {node.name: dict(node.metadata_props) for node in graph}
        for node in graph:
            node.metadata_props.clear()
        made = pathlib.Path(tempfile.mkdtemp(dir=entry.parent, prefix="new."))
        (made / "model.onnx").write_bytes(program.model_proto.SerializeToString())
        try:
            made.rename(entry)
        except OSError:  # another process has made it meanwhile
            shutil.rmtree(made)

    def _with_modules(self, message: str) -> str:
        """The message with the torch modules of the nodes and operators that it names."""
        lines = [message]
        for name in re.findall(r'"([^"]+)"', message):
            told = self._nodes.get(name, {})
            target = re.search(r"target=(?:torch\.ops\.)?([\w.]+)", told.get("pkg.torch.onnx.fx_node", ""))
            scopes = ["", *ast.literal_eval(told.get("pkg.torch.onnx.name_scopes", "[]"))]
            if target:
                lines.append(f'"{name}" is {target[1]} in {module_text(scopes[-2])}')
        for name in set(re.findall(r"op='[\w.:]*?(\w+)'", message)):
            node = next((node for node in self._exported.graph.nodes if name in str(node.target)), None)
            if node is not None:
                lines.append(f"{node.target} is in {module_text(module_of(node))}")
        return "\n  ".join(lines)


def _size_text(size: Any) -> str:
    """As Program declares it."""
    if isinstance(size, int):
        return str(size)
    symbol, least, most = size
    return f"{symbol} from {least} on" if most is None or "oo" in str(most) else f"{symbol} from {least} to {most}"


def module_of(node: torch.fx.Node) -> str:
    return ([path for path, _ in node.meta.get("nn_module_stack", {}).values()] or [""])[-1]


def module_text(path: str) -> str:
    """Of a module's path, as traces have it."""
    path = re.sub(r"^(module|L\['\w+'\])(\.|$)", "", path)
    return f"module `{path}`" if path else "the module itself"


def is_last(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


def _put_channels_last(graph: Any, names: Sequence[str]) -> None:
    """The named inputs, and where there are any, all images among the outputs, are in the order NHWC then."""
    import onnx_ir

    def turn(value, axes):
        node = onnx_ir.node("Transpose", [value], {"perm": list(axes)})
        node.outputs[0].type = value.type
        node.outputs[0].shape = onnx_ir.Shape([value.shape[axis] for axis in axes])
        return node

    for place, value in enumerate(graph.inputs if names else []):
        if value.name in names:
            shape = onnx_ir.Shape([value.shape[axis] for axis in _TO_LAST])
            graph.inputs[place] = onnx_ir.Value(name=value.name, shape=shape, type=value.type)
            node = turn(graph.inputs[place], _TO_FIRST)
            node.outputs[0].name = f"{value.name}.first"
            value.replace_all_uses_with(node.outputs[0])
            graph.insert_before(graph[0], node)
    for place, value in enumerate(graph.outputs if names else []):
        if value.shape is not None and len(value.shape) == 4:
            node = turn(value, _TO_LAST)
            node.outputs[0].name = f"{value.name}.last"
            graph.append(node)
            graph.outputs[place] = node.outputs[0]


def _bytes_of(tensor: torch.Tensor) -> numpy.ndarray:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()


def _digest(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype}{tuple(tensor.shape)}{hashlib.sha256(_bytes_of(tensor)).hexdigest()}"


def _from_numpy(array: numpy.ndarray) -> torch.Tensor:
    if array.dtype.kind == "V":  # bfloat16, which NumPy has not
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _cpu() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        return "".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))
    return platform.processor()


@contextlib.contextmanager
def _folder_for(given: Path):
    """Where entries are kept; a folder of this moment where that cannot be written to."""
    root = pathlib.Path(given) if given else cache_folder()
    with contextlib.suppress(OSError):
        root.mkdir(parents=True, exist_ok=True)
    if os.access(root, os.W_OK):
        yield root
        return
    log.warning("nothing is kept: %s cannot be written to", root)
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder)


@contextlib.contextmanager
def _locked(path: pathlib.Path):
    """One process at a time; others wait, to find the plan made."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
