"""A network's outputs for many samples by one library, for tools/bench-accuracy.

usage: outputs_worker.py LIBRARY MODEL.onnx SAMPLES.npz OUTPUTS.npz PLAN SHAPE PACKAGE-FOLDER

PLAN and SHAPE may be "". Samples, and what is written, lie along the first axis."""

import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import rival_worker


def main():
    library, model, samples_path, outputs_path, plan, shape, folder = sys.argv[1:]
    with numpy.load(samples_path) as file:
        samples = dict(file)
    inputs = {name: values[:1] for name, values in samples.items()}
    if library == "tilesmith":
        _, run = rival_worker.run_by_tilesmith(model, inputs, 0, plan, folder, [shape] if shape else [])
    else:
        _, run = rival_worker.run_by_onnxruntime(model, inputs, 0)
    outputs = {}
    for i in range(len(next(iter(samples.values())))):
        inputs.update({name: values[i : i + 1] for name, values in samples.items()})
        for name, value in run().items():
            outputs.setdefault(name, []).append(numpy.array(value[0]))
    numpy.savez(outputs_path, **{name: numpy.stack(values) for name, values in outputs.items()})


if __name__ == "__main__":
    main()
