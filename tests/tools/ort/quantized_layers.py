"""usage: tests/tools/ort/quantized_layers.py BUILD-FOLDER [MODEL...]
Every layer of quantised networks (default: resnet18, mobilenet_v2, squeezenet1_1, quantised with random inputs of 96x96;
or QDQ models from files) in tilesmith and in ONNX Runtime, on the same bytes, which are those of ONNX Runtime's run of the
whole. Bytes that differ by more than one step, and reals that differ by more than 1e-5 of the largest, are printed with
their layer, and the exit code is 1."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, f"{sys.argv[1]}/python")
import tilesmith

DEFAULT = ["resnet18", "mobilenet_v2", "squeezenet1_1"]
SIZE = ["--input-shape", "input=1x3x96x96"]
ALLOWED = 1e-5


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", "1")  # products of bytes do not saturate
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Network:
    """A QDQ model, cut where bytes are."""

    def __init__(self, model):
        self.model = model
        graph = model.graph
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.producer = {name: node for node in graph.node for name in node.output}
        self.inputs = {value.name: value for value in graph.input if value.name not in self.initializers}
        varies = set(self.inputs)
        self.cuts = []
        for node in graph.node:
            if varies.intersection(node.input):
                varies.update(node.output)
                if node.op_type == "QuantizeLinear":
                    self.cuts.append(node.output[0])

    def byte_type(self, name):
        zero_point = self.initializers.get(self.producer[name].input[2])
        return zero_point.data_type if zero_point is not None else TensorProto.UINT8

    def layer(self, output, values):
        """The model of one layer and what it reads. `output`: bytes, or an output of the network."""
        nodes, sources, waiting = [], [], [output]
        while waiting:
            name = waiting.pop()
            if name in self.inputs or (name in self.cuts and name != output):
                sources.append(name)
            elif name in self.producer and self.producer[name] not in nodes:
                nodes.append(self.producer[name])
                waiting += [value for value in self.producer[name].input if value]
        sources = sorted(set(sources))
        order = {id(node): i for i, node in enumerate(self.model.graph.node)}
        nodes.sort(key=lambda node: order[id(node)])
        used = {name for node in nodes for name in node.input}

        def value(name, kind):
            return helper.make_tensor_value_info(name, kind, values[name].shape)

        given = [value(name, TensorProto.FLOAT if name in self.inputs else self.byte_type(name)) for name in sources]
        result = value(output, self.byte_type(output) if output in self.cuts else TensorProto.FLOAT)
        graph = helper.make_graph(nodes, "layer", given, [result],
                                  [tensor for name, tensor in self.initializers.items() if name in used])
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        return model, {name: values[name] for name in sources}

    def values(self):
        """Of all bytes and outputs, from a run of the whole."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        outputs = {value.name for value in model.graph.output}
        for name in self.cuts:
            if name not in outputs:
                model.graph.output.append(helper.make_tensor_value_info(name, self.byte_type(name), None))
        random = np.random.default_rng(1)
        feed = {}
        for name, value in self.inputs.items():
            shape = [dimension.dim_value or 1 for dimension in value.type.tensor_type.shape.dim]
            feed[name] = random.standard_normal(shape).astype(np.float32)
        runner = session(model)
        names = [value.name for value in runner.get_outputs()]
        return feed | dict(zip(names, runner.run(names, feed)))


def ours(model, feed, folder):
    onnx.save(model, folder / "layer.onnx")
    return tilesmith.load(str(folder / "layer.onnx"), threads=2).run(**feed)[model.graph.output[0].name]


def compare(path, folder):
    network = Network(onnx.load(path))
    values = network.values()
    counts = np.zeros(3, dtype=np.int64)  # bytes that are equal, that differ by a step, by more
    wrong = 0
    for output in dict.fromkeys(network.cuts + [value.name for value in network.model.graph.output]):
        model, feed = network.layer(output, values)
        want = session(model).run(None, feed)[0]
        got = ours(model, feed, folder)
        if got.shape != want.shape or got.dtype != want.dtype:
            print(f"{path.name}: {output}: {got.dtype} {got.shape} instead of {want.dtype} {want.shape}")
            wrong += 1
        elif want.dtype == np.float32:
            off = np.abs(got.astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-30)
            if not off <= ALLOWED:
                print(f"{path.name}: {output} is off by {off:.1e} of the largest")
                wrong += 1
        else:
            steps = np.abs(got.astype(np.int64) - want)
            counts += [(steps == 0).sum(), (steps == 1).sum(), (steps > 1).sum()]
            if steps.max() > 1:
                print(f"{path.name}: {output}: {(steps > 1).sum()} of {steps.size} bytes are off by up to {steps.max()}")
                wrong += 1
    print(f"{path.name}: {len(network.cuts)} tensors of bytes, {counts[0]} equal, {counts[1]} off by a step, "
          f"{counts[2]} by more")
    return wrong


def main():
    program = pathlib.Path(sys.argv[1]) / "tilesmith"
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in sys.argv[2:] or DEFAULT:
            path = pathlib.Path(name)
            if not path.exists():
                path = folder / f"{name}.int8.onnx"
                subprocess.run([program, "quantize", name, *SIZE, "--samples", "1", "-o", path], check=True,
                               capture_output=True)
            wrong += compare(path, folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
