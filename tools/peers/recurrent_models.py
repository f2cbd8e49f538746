#!/usr/bin/env python3
"""usage: tools/peers/recurrent_models.py DIR
Writes ONNX files with seeded weights, for tools/bench-rivals: an LSTM in one direction of 64 to 512 units over 20 and 200
steps for batches of 1 and 8 (lstm_UNITS_STEPS_BATCH.onnx), and a text recogniser, seven convolutions and two LSTMs of 256
units in both directions, of lines 32 pixels high and 100 or 320 wide (crnn_WIDTH.onnx). The Python package onnx is fetched
from PyPI at a pinned version into peers/recurrent, where it is not there.
exit codes: 0, 2 an argument, 7 PyPI out of reach"""

import pathlib

from bench_script import NUMPY, ONNX, Script

try:
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    onnx = None

SCRIPT = Script(__doc__, {}, rest=pathlib.Path, most=1, required="DIR", environment="recurrent")
UNITS, STEPS, BATCHES = (64, 128, 256, 512), (20, 200), (1, 8)
WIDTHS = (100, 320)
# Channels, kernel and pad of each convolution, and the pooling behind it: kernel, strides, pads.
CONVOLUTIONS = ((64, 3, 1, (2, 2, 2, 2, 0, 0)), (128, 3, 1, (2, 2, 2, 2, 0, 0)), (256, 3, 1, None),
                (256, 3, 1, (2, 2, 2, 1, 0, 1)), (512, 3, 1, None), (512, 3, 1, (2, 2, 2, 1, 0, 1)), (512, 2, 0, None))
CLASSES = 37


class Writer:
    def __init__(self):
        self.random = numpy.random.default_rng(1)
        self.nodes, self.weights = [], []

    def weight(self, *shape, bound):
        name = f"w{len(self.weights)}"
        values = self.random.uniform(-bound, bound, shape).astype(numpy.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def ints(self, *values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.array(values, numpy.int64), name))
        return name

    def add(self, op_type, *inputs, **attributes):
        output = f"{op_type.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [output], output, **attributes))
        return output

    def lstm(self, x, values, units, directions):
        bound = units**-0.5
        weights = [self.weight(directions, 4 * units, values, bound=bound), self.weight(directions, 4 * units, units, bound=bound),
                   self.weight(directions, 8 * units, bound=bound)]
        return self.add("LSTM", x, *weights, hidden_size=units, direction=("forward", "bidirectional")[directions - 1])

    def write(self, path, shape, output):
        self.nodes.append(helper.make_node("Identity", [output], ["y"], "output"))
        graph = helper.make_graph(self.nodes, path.stem, [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_lstm(folder, units, steps, batch):
    writer = Writer()
    writer.write(folder / f"lstm_{units}_{steps}_{batch}.onnx", [steps, batch, units], writer.lstm("x", units, units, 1))


def write_recogniser(folder, width):
    """As CRNNs of Shi et al., "An end-to-end trainable neural network for image-based sequence recognition" (2015)."""
    writer, x, channels = Writer(), "x", 1
    for wanted, kernel, pad, pool in CONVOLUTIONS:
        weight = writer.weight(wanted, channels, kernel, kernel, bound=(6 / (channels * kernel**2))**0.5)
        x = writer.add("Relu", writer.add("Conv", x, weight, pads=[pad] * 4))
        if pool:
            x = writer.add("MaxPool", x, kernel_shape=pool[:2], strides=pool[2:4], pads=pool[4:] * 2)
        channels = wanted
    x = writer.add("Transpose", writer.add("Squeeze", x, writer.ints(2)), perm=[2, 0, 1])
    for values in (channels, 512):
        states = writer.add("Transpose", writer.lstm(x, values, 256, 2), perm=[0, 2, 1, 3])
        x = writer.add("Reshape", states, writer.ints(0, 0, -1))
    x = writer.add("MatMul", x, writer.weight(512, CLASSES, bound=512**-0.5))
    writer.write(folder / f"crnn_{width}.onnx", [1, 1, 32, width], x)


def main():
    _, (folder,) = SCRIPT.parse()
    if onnx is None:
        SCRIPT.fetch((NUMPY, ONNX), what="the package onnx")
        SCRIPT.enter()
    folder.mkdir(parents=True, exist_ok=True)
    for units in UNITS:
        for steps in STEPS:
            for batch in BATCHES:
                write_lstm(folder, units, steps, batch)
    for width in WIDTHS:
        write_recogniser(folder, width)


if __name__ == "__main__":
    SCRIPT.run(main)
