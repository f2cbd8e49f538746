"""A side of a comparison, in a process of its own: loads a network by one library and runs it when asked.

usage: worker.py REQUEST

REQUEST is JSON: the "library", "threads", "package", the folder of ours, and what the library's load_by_... takes further.
"inputs" is a file of them by name, which ours makes where it is not there; "sampled": true, they are samples along the
first axis. Prints a JSON line when it is ready: the "version", the "outputs", a file of them by name, of all samples if there
are, "load", what it took from the library's import to the first run, and "first", what that took. Then one for each line on
its input, and ends with that:
  run SECONDS          the seconds of each of its runs, for about so long, one at least
  memory               bytes of its memory, what is shared by n processes counting 1/n in each
  distance             what a barrier between the threads takes now; ours alone
  apart MEASURE FILE   how far the outputs in FILE are from its own, as apart() says"""

import contextlib
import functools
import importlib
import json
import math
import os
import pathlib
import sys
import tempfile
import time

import numpy

TORCH_LIBRARIES = ("eager", "inductor", "backend", "compiled")
FOREVER = contextlib.ExitStack()  # holds what is entered for as long as the process lasts


def random_inputs(infos, seed=1):
    """Returns values in [0, 1) that float16 can hold, by the inputs' names, so that a model's twin of float16 gets the same."""
    random = numpy.random.default_rng(seed)
    kinds = {"f": "float", "i": "int", "u": "uint"}
    of = lambda kind: kind if kind == "bool" else kinds[kind[0]] + kind[1:]
    return {info.name: random.random(info.shape, numpy.float32).astype(numpy.float16).astype(of(info.type)) for info in infos}


def load_by_tilesmith(inputs, threads, model, plan=None, input_shapes=(), reproducible=False):
    import tilesmith  # pylint: disable=import-error,import-outside-toplevel

    loaded = tilesmith.load(model, plan=plan or "", threads=threads, input_shapes=input_shapes, reproducible=reproducible)
    if not inputs:
        inputs.update(random_inputs(loaded.inputs))
    session = loaded.session()
    return tilesmith.__version__, lambda: session.run(**inputs)


def load_by_onnxruntime(inputs, threads, model, plugin=None, optimised=None):
    """`plugin`: the library of the plug-in, whose threads compute then; the host's would spin beside them. `optimised`: a file
    to write, of the kind that ends so, with the model as it was optimised."""
    import onnxruntime  # pylint: disable=import-error,import-outside-toplevel

    options = onnxruntime.SessionOptions()
    if optimised:
        options.optimized_model_filepath = optimised
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    if plugin:
        onnxruntime.register_execution_provider_library("tilesmith", plugin)
        devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == "TilesmithExecutionProvider"]
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_provider_for_devices(devices, {"threads": str(threads)})
    session = onnxruntime.InferenceSession(model, options, providers=None if plugin else ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return onnxruntime.__version__, lambda: dict(zip(names, session.run(names, inputs)))


def load_by_openvino(inputs, threads, model, precision, cache=None):
    import openvino  # pylint: disable=import-error,import-outside-toplevel

    # Models of bytes are computed in bytes whatever is hinted; what stays float in them is f32.
    hint = "bf16" if precision == "bf16" else "f32"
    compiled = openvino.compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(threads),
        "INFERENCE_PRECISION_HINT": hint, **({"CACHE_DIR": cache} if cache else {})})
    request = compiled.create_infer_request()
    tensors = {name: openvino.Tensor(value) for name, value in inputs.items()}

    def run():
        request.infer(tensors)
        return {port.get_any_name(): request.get_tensor(port).data for port in compiled.outputs}

    return openvino.__version__.split("-")[0], run


def load_by_ncnn(inputs, threads, model):
    """The batch is 1, which its tensors do not have; the converter calls inputs and outputs by their places."""
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


def load_by_mnn(inputs, threads, model):
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


def load_by_torch(inputs, threads, library, network, weights, optimize_for=0):
    """The network is one of torch_networks.py, which has an image of its own, and is compiled by the first run."""
    import torch  # pylint: disable=import-error,import-outside-toplevel
    import torch_networks  # pylint: disable=import-outside-toplevel

    torch.set_num_threads(threads)
    module, image = torch_networks.network(network, pathlib.Path(weights)), torch_networks.image(network)
    FOREVER.enter_context(torch.inference_mode())
    compiled = []

    def run():
        if not compiled:
            compiled.append(torch_networks.compiled(library, module, image, optimize_for))
        return {"output": compiled[0](image)}

    return torch.__version__, run


LIBRARIES = {"tilesmith": load_by_tilesmith, "alone": load_by_tilesmith, "onnxruntime": load_by_onnxruntime,
             "plugin": load_by_onnxruntime, "openvino": load_by_openvino, "ncnn": load_by_ncnn, "mnn": load_by_mnn,
             **{library: functools.partial(load_by_torch, library=library) for library in TORCH_LIBRARIES}}


# What their modules are called, where that is not as the library.
MODULES = {"alone": "tilesmith", "plugin": "onnxruntime", "mnn": "MNN", **dict.fromkeys(TORCH_LIBRARIES, "torch")}


def own_memory():
    """Returns bytes."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


def apart(measure, exact, found):
    """Returns how far found outputs, by name, are from exact ones: "inf" where sizes differ or values are not finite. An output
    that was not found by its name is the first one found.
    first: of the first output, the largest difference over the largest value; largest: the same of the worst output; norm:
    the worst output's root of the sum of squares of the differences over that of the values."""
    def one(name):
        wanted, got = (numpy.asarray(value) for value in (exact[name], found.get(name, next(iter(found.values())))))
        if got.size != wanted.size or not numpy.isfinite(got).all():
            return math.inf
        wanted, got = wanted.astype(float), got.reshape(wanted.shape).astype(float)
        if measure == "norm":
            return numpy.sqrt(((got - wanted) ** 2).sum() / max((wanted**2).sum(), 1e-300))
        return abs(wanted - got).max() / max(abs(wanted).max(), 1e-30)

    return str(max(map(one, list(exact)[:1] if measure == "first" else exact)))


def seconds_of(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def turn(run, seconds):
    end = time.perf_counter() + seconds
    taken = [seconds_of(run)]
    while time.perf_counter() < end:
        taken.append(seconds_of(run))
    return taken


def of_all_samples(run, inputs, samples):
    """Returns outputs for each sample, along the first axis."""
    outputs = {}
    for i in range(len(next(iter(samples.values())))):
        inputs.update({name: values[i : i + 1] for name, values in samples.items()})
        for name, value in run().items():
            outputs.setdefault(name, []).append(numpy.array(value[0]))
    return {name: numpy.stack(values) for name, values in outputs.items()}


def load(path):
    with numpy.load(path) as file:
        return dict(file)


def main(library, threads, package, inputs=None, sampled=False, **further):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # where libraries print what they like
    sys.path.insert(0, package)
    given = load(inputs) if inputs and os.path.exists(inputs) else {}
    values = {name: value[:1] for name, value in given.items()} if sampled else given
    importlib.import_module(MODULES.get(library, library))
    begin = time.perf_counter()
    version, run = LIBRARIES[library](values, threads, **further)
    loaded = time.perf_counter() - begin
    if inputs and not os.path.exists(inputs):
        numpy.savez(inputs, **values)
    first = seconds_of(run)
    outputs = of_all_samples(run, values, given) if sampled else run()
    outputs = {name: numpy.array(value) for name, value in outputs.items()}
    with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as file:
        numpy.savez(file, **outputs)
    answer = lambda value: print(json.dumps(value), file=answers, flush=True)
    answer({"version": version, "outputs": file.name, "load": loaded, "first": first})
    for line in sys.stdin:
        what, *arguments = line.split(maxsplit=2)
        if what == "distance":
            answer(sys.modules["tilesmith"].core_distance(threads))
        elif what == "memory":
            answer(own_memory())
        elif what == "apart":
            answer(apart(arguments[0], outputs, load(arguments[1].rstrip("\n"))))
        else:
            answer(turn(run, float(arguments[0])))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
