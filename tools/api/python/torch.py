"""PyTorch modules run by tilesmith, on torch's CPU tensors without copies.

    fast = tilesmith.torch.compile(module, example, optimize_for="60s")
    scores = fast(image)

    fast = torch.compile(module, backend="tilesmith")  # graphs that are refused stay torch's

Both are for inference. The traced graph and its plan are kept in the user's cache, without the weights, under a hash of
the graph, the machine and the options: the next process exports and tunes nothing.
"""

from __future__ import annotations

import inspect
import re
import threading
import warnings
from importlib.metadata import entry_points
from typing import Any, Callable, Mapping, Optional, Sequence

import tilesmith

try:
    import torch
    import torch._dynamo
    from torch.utils import _pytree as pytree

    from ._torch_program import Options, Program, Traced, cache_folder, is_last, log, module_of, module_text, trace
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError("tilesmith.torch needs PyTorch: pip install torch onnx onnxscript", name=missing.name) from missing

__all__ = ["Compiled", "Options", "backend", "cache_folder", "compile"]

# A graph of torch.compile's with none of these has nothing to gain.
_HEAVY = re.compile("conv|linear|matmul|mm|einsum|attention|lstm|gru|rnn")
_MOST_PROGRAMS = 16  # for sizes and weights of one of its graphs


def compile(
    module: torch.nn.Module, example_inputs: Any, *, dynamic_batch: bool = False, dynamic_shapes: Any = None, **options: Any
) -> Compiled:
    """Traces the module and returns a callable that takes and returns what the module does, by tilesmith.

    `example_inputs`: a tensor, a tuple of the module's arguments, or a dict of its named ones. Where an image among them
    is channels_last, it is taken so, and images are returned so. `dynamic_batch`: the first size of every input may
    vary; `dynamic_shapes`: as torch.export takes it. The options are those of Options.

    Raises ValueError for a module in training mode, and RuntimeError, with the torch modules, for operators that are
    refused. Weights that change later are noticed at the next call, which prepares them anew.
    """
    chosen = Options.of(options)
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {type(module).__name__}")
    training = [name for name, child in module.named_modules() if child.training]
    if training:
        path = next(filter(None, training), "")
        raise ValueError(f"{module_text(path)} is in training mode: call eval() of the whole module first")
    named = isinstance(example_inputs, Mapping)
    kwargs = dict(example_inputs) if named else {}
    args = () if named else (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    traced_args, traced_kwargs = args, kwargs
    if dynamic_batch:
        if dynamic_shapes is not None:
            raise ValueError("give dynamic_batch or dynamic_shapes, not both")
        batch = {0: torch.export.Dim("batch")}
        dynamic_shapes = pytree.tree_map(lambda leaf: batch if _has_batch(leaf) else None, kwargs or args)
        # Tracing takes a size of one for a constant.
        traced_args, traced_kwargs = pytree.tree_map(_widened, (args, kwargs))
    traced = trace(module, traced_args, traced_kwargs, dynamic_shapes)
    return Compiled(module, traced, pytree.tree_leaves((args, kwargs)), chosen)


def _has_batch(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dim() > 0


def _widened(leaf: Any) -> Any:
    return torch.cat([leaf, leaf]) if _has_batch(leaf) and leaf.size(0) == 1 else leaf


class Compiled:
    """What compile returns. Threads may share it; they take turns."""

    def __init__(self, module: torch.nn.Module, traced: Traced, leaves: list, options: Options) -> None:
        self._program = Program(traced, leaves, options)
        self._signature = inspect.signature(module.forward)
        held = [(path, table) for path, child in module.named_modules() for table in (child._parameters, child._buffers)]
        self._slots = [(table, name, tensor, path) for path, table in held for name, tensor in table.items()]
        self._in_spec, self._out_spec = traced.exported.call_spec.in_spec, traced.out_spec

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for table, name, tensor, path in self._slots:
            if table.get(name) is not tensor:
                raise RuntimeError(f"{name} of {module_text(path)} was replaced by another tensor: compile the module anew")
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec:
            leaves = self._rearranged(args, kwargs)
        return pytree.tree_unflatten(self._program(leaves), self._out_spec)

    @property
    def model(self) -> tilesmith.Model:
        """What runs: says its threads, profiles itself, and so on."""
        return self._program.model

    def _rearranged(self, args: tuple, kwargs: dict) -> list:
        """By the names of arguments, where some are given by name and others by place than the example's."""
        bound = dict(self._signature.bind(*args, **kwargs).arguments)
        places, names = pytree.tree_unflatten(list(range(self._in_spec.num_leaves)), self._in_spec)
        wanted = [*list(self._signature.parameters)[: len(places)], *names]
        for name in wanted:
            bound.setdefault(name, self._signature.parameters[name].default)
        if set(bound) == set(wanted):
            values = [bound[name] for name in wanted]
            leaves, spec = pytree.tree_flatten((tuple(values[: len(places)]), dict(zip(names, values[len(places) :]))))
            if spec == self._in_spec:
                return leaves
        raise TypeError(f"compiled for arguments {', '.join(wanted)} of the example's structure: compile it for others, too")


def backend(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Optional[Mapping[str, Any]] = None,
    mode: Optional[str] = None,
) -> Callable[..., Any]:
    """torch.compile(module, backend="tilesmith", options={"optimize_for": "60s"}), options being those of Options.

    Graphs that are refused, or of which gradients are wanted, stay torch's, which a warning says once; so do those
    without convolutions or products, which have nothing to gain.
    """
    if mode not in (None, "default"):
        raise ValueError(f'mode "{mode}" is of another backend: give options={{"optimize_for": "60s"}}')
    return _Graph(graph_module, example_inputs, Options.of(dict(options or {})))


class _Graph:
    """A graph of torch.compile's. Prepared at the first call with inputs of their sizes, and weights."""

    def __init__(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any], options: Options) -> None:
        self._graph_module, self._options = graph_module, options
        # Parameters and buffers, which torch passes with each call.
        self._fixed = [place for place, value in enumerate(inputs) if _is_weight(value)]
        self._free = [place for place, value in enumerate(inputs) if not _is_weight(value)]
        self._programs: dict[Any, Optional[Program]] = {}
        self._lock = threading.Lock()
        self._said = False

    def __call__(self, *args: Any) -> Any:
        free = [args[place] for place in self._free]
        sizes = [(leaf.shape, is_last(leaf)) if isinstance(leaf, torch.Tensor) else leaf for leaf in free]
        key = (*sizes, torch.is_grad_enabled(), *[id(args[place]) for place in self._fixed])
        if key not in self._programs:
            with self._lock:
                if key not in self._programs:
                    self._programs[key] = self._prepared(args, free)
        program = self._programs[key]
        return self._graph_module(*args) if program is None else program(free)

    def _prepared(self, args: Sequence[Any], free: Sequence[Any]) -> Optional[Program]:
        """None where the graph stays torch's."""
        try:
            if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
                raise RuntimeError("gradients are wanted, which only torch computes: run it under torch.no_grad()")
            if sum(program is not None for program in self._programs.values()) >= _MOST_PROGRAMS:
                raise RuntimeError(f"it was prepared for {_MOST_PROGRAMS} sizes and weights already")
            traced = trace(self._with_weights(args), tuple(free), {})
            if not any(_HEAVY.search(str(node.target)) for node in traced.exported.graph.nodes if node.op == "call_function"):
                log.info("a graph without convolutions and products stays torch's")
                return None
            return Program(traced, free, self._options)
        except Exception as error:  # whatever it is, torch can run the graph
            if not self._said:
                self._said = True
                path = next(filter(None, map(module_of, self._graph_module.graph.nodes)), "")
                warnings.warn(f"tilesmith leaves a graph to torch, from {module_text(path)} on: {error}", stacklevel=3)
            return None

    def _with_weights(self, args: Sequence[Any]) -> torch.fx.GraphModule:
        """The graph with its parameters and buffers inside."""
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(self._graph_module.graph, {}))
        module = torch.fx.GraphModule(self._graph_module, graph)
        holders = [node for node in module.graph.nodes if node.op == "placeholder"]
        for place in self._fixed:
            node = holders[place]
            if isinstance(args[place], torch.nn.Parameter):
                module.register_parameter(node.name, args[place])
            else:
                module.register_buffer(node.name, args[place])
            with module.graph.inserting_before(node):
                node.replace_all_uses_with(module.graph.get_attr(node.name))
            module.graph.erase_node(node)
        module.recompile()
        return module


def _is_weight(value: Any) -> bool:
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


def _register() -> None:
    """For who has the package without entry points: from a folder of a build, say."""
    found: Any = entry_points()
    group = found.select(group="torch_dynamo_backends") if hasattr(found, "select") else found.get("torch_dynamo_backends", ())
    if "tilesmith" not in {point.name for point in group}:
        torch._dynamo.register_backend(backend, name="tilesmith")


_register()
