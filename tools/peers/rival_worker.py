"""One side of tools/bench-rivals, in a process of its own: loads a model by one library and runs it when asked.

usage: rival_worker.py LIBRARY MODEL.onnx INPUTS.npz THREADS PRECISION [PLAN] [PACKAGE-FOLDER]

Prints one JSON line when it is ready, {"version": ..., "outputs": FILE.npz}, and one for each line "run SECONDS" on its
input: the seconds of its runs. Ends with its input."""

import json
import sys
import tempfile
import time

import numpy


def run_by_tilesmith(model, inputs, threads, plan, folder, input_shapes=()):
    sys.path.insert(0, folder)
    import tilesmith  # pylint: disable=import-error,import-outside-toplevel

    session = tilesmith.load(model, plan=plan, threads=threads, input_shapes=input_shapes).session()
    return tilesmith.__version__, lambda: session.run(**inputs)


def run_by_onnxruntime(model, inputs, threads):
    import onnxruntime  # pylint: disable=import-error,import-outside-toplevel

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return onnxruntime.__version__, lambda: dict(zip(names, session.run(names, inputs)))


def run_by_openvino(model, inputs, threads, precision):
    import openvino  # pylint: disable=import-error,import-outside-toplevel

    # Models of bytes are computed in bytes whatever is hinted; what stays float in them is f32.
    hint = "bf16" if precision == "bf16" else "f32"
    compiled = openvino.compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(threads),
        "INFERENCE_PRECISION_HINT": hint})
    request = compiled.create_infer_request()
    tensors = {name: openvino.Tensor(value) for name, value in inputs.items()}

    def run():
        request.infer(tensors)
        return {port.get_any_name(): request.get_tensor(port).data for port in compiled.outputs}

    return openvino.__version__.split("-")[0], run


def main():
    library, model, inputs_path, threads, precision, *rest = sys.argv[1:]
    with numpy.load(inputs_path) as file:
        inputs = dict(file)
    arguments = (model, inputs, int(threads))
    if library == "tilesmith":
        version, run = run_by_tilesmith(*arguments, *rest)
    elif library == "onnxruntime":
        version, run = run_by_onnxruntime(*arguments)
    else:
        version, run = run_by_openvino(*arguments, precision)
    outputs = run()
    with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as file:
        numpy.savez(file, **{name: numpy.array(value) for name, value in outputs.items()})
    print(json.dumps({"version": version, "outputs": file.name}), flush=True)
    for line in sys.stdin:
        end = time.perf_counter() + float(line.split()[1])
        seconds = []
        while not seconds or time.perf_counter() < end:
            begin = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main()
