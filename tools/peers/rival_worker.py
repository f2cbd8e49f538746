"""One side of tools/bench-rivals, in a process of its own: loads a model by one library and runs it when asked.

usage: rival_worker.py LIBRARY MODEL.onnx INPUTS.npz THREADS PRECISION [PLAN] [PACKAGE-FOLDER]

Prints one JSON line when it is ready, {"version": ..., "outputs": FILE.npz}, and one for each line on its input: for
"run SECONDS" the seconds of its runs, for "distance", which tilesmith knows, what a barrier between the threads takes now.
Ends with its input."""

import json
import os
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


def run_by_ncnn(model, inputs, threads):
    """Batch 1, which its tensors do not have; the converter calls inputs and outputs by their places."""
    import ncnn  # pylint: disable=import-error,import-outside-toplevel

    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    if net.load_param(model) or net.load_model(model.removesuffix(".param") + ".bin"):
        raise RuntimeError(f"ncnn does not load {model}")
    tensors = {f"in{i}": ncnn.Mat(numpy.ascontiguousarray(value[0])).clone() for i, value in enumerate(inputs.values())}
    names = net.output_names()

    def run():
        with net.create_extractor() as extractor:
            for name, value in tensors.items():
                extractor.input(name, value)
            return {name: numpy.array(extractor.extract(name)[1]) for name in names}

    return ncnn.__version__, run


def run_by_mnn(model, inputs, threads):
    import MNN  # pylint: disable=import-error,import-outside-toplevel

    net = MNN.Interpreter(model)
    session = net.createSession({"backend": "CPU", "numThread": threads, "precision": "high"})
    kind, order = MNN.Halide_Type_Float, MNN.Tensor_DimensionType_Caffe
    given = [(net.getSessionInput(session, name), MNN.Tensor(value.shape, kind, value, order))
             for name, value in inputs.items()]
    results = {name: (tensor, MNN.Tensor(tensor.getShape(), kind, numpy.zeros(tensor.getShape(), numpy.float32), order))
               for name, tensor in net.getSessionOutputAll(session).items()}

    def run():
        for tensor, value in given:
            tensor.copyFrom(value)
        net.runSession(session)
        for tensor, host in results.values():
            tensor.copyToHostTensor(host)
        return {name: host.getNumpyData() for name, (_, host) in results.items()}

    return MNN.version(), run


LIBRARIES = {"tilesmith": run_by_tilesmith, "alone": run_by_tilesmith, "onnxruntime": run_by_onnxruntime, "openvino": run_by_openvino,
             "ncnn": run_by_ncnn, "mnn": run_by_mnn}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # where libraries print what they like
    library, model, inputs_path, threads, precision, *rest = sys.argv[1:]
    with numpy.load(inputs_path) as file:
        inputs = dict(file)
    if library == "openvino":
        rest = [precision]
    version, run = LIBRARIES[library](model, inputs, int(threads), *rest)
    outputs = run()
    with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as file:
        numpy.savez(file, **{name: numpy.array(value) for name, value in outputs.items()})
    print(json.dumps({"version": version, "outputs": file.name}), file=answers, flush=True)
    for line in sys.stdin:
        if line.startswith("distance"):
            print(json.dumps(sys.modules["tilesmith"].core_distance(int(threads))), file=answers, flush=True)
            continue
        end = time.perf_counter() + float(line.split()[1])
        seconds = []
        while not seconds or time.perf_counter() < end:
            begin = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps(seconds), file=answers, flush=True)


if __name__ == "__main__":
    main()
