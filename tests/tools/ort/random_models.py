"""usage: tests/tools/ort/random_models.py BUILD-FOLDER [COUNT [FIRST-SEED [SIZES]]]
Random models (tests/support/ops/random_model.h; default 100 of them) in tilesmith and in ONNX Runtime: outputs that differ
by more than 1e-4 of the largest are printed with their seed, and the exit code is 1. SIZES is mixed (the default), zero or
equal. What ONNX Runtime refuses, which it does of some sizes of 0, is counted, and no difference."""

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

sys.path.insert(0, f"{sys.argv[1]}/python")
import tilesmith

ALLOWED = 1e-4
REFUSED = "ONNX Runtime:"
host = onnxruntime.capi.onnxruntime_pybind11_state
HOST_ERRORS = (host.Fail, host.InvalidArgument, host.RuntimeException, host.NotImplemented, host.InvalidGraph)


def difference(got, want):
    if got.shape != want.shape or not np.isfinite(got).all():
        return np.inf
    if want.size == 0:
        return 0
    largest = np.abs(want).max()
    return np.abs(got.astype(np.float64) - want).max() / (largest if largest > 0 else 1)


TYPES = {"tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8,
         "tensor(float16)": np.float16}


def random_input(random, value):
    if value.type == "tensor(float)":
        return random.uniform(-1, 1, value.shape).astype(np.float32)
    if value.type == "tensor(bool)":
        return random.integers(0, 2, value.shape).astype(bool)
    return random.integers(0, 10, value.shape).astype(TYPES[value.type])


def session_of(model, level):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def run_host(session, model, feed):
    """As it is; without the host's optimizations where an op that they made refuses what it is given (1.32's FastGelu
    does of rank 0)."""
    try:
        return session.run(None, feed)
    except HOST_ERRORS:
        return session_of(model, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL).run(None, feed)


def host_results(model):
    """The inputs, and the outputs by their names."""
    session = session_of(model, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    random = np.random.default_rng(int(model.stem))
    feed = {value.name: random_input(random, value) for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    return feed, dict(zip(names, run_host(session, model, feed)))


def results_apart(model):
    """host_results in a process of its own, which some sizes of 0 end by a signal; a text where it has none."""
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            done = 1
            try:
                try:
                    pickle.dump(host_results(model), file)
                except HOST_ERRORS as error:
                    pickle.dump(str(error), file)
                file.flush()
                done = 0
            finally:
                os._exit(done)
        done = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if done != 0:
            return f"signal {-done}" if done < 0 else "an error of this script"
        file.seek(0)
        return pickle.load(file)


def compare(model):
    results = results_apart(model)
    if isinstance(results, str):
        return f"{REFUSED} {results}"
    feed, expected = results
    try:
        got = tilesmith.load(str(model), threads=2).run(**feed)
    except (RuntimeError, ValueError) as error:
        return f"tilesmith: {error}"
    for name, want in expected.items():
        off = difference(got[name], want)
        if not off <= ALLOWED:
            return f"output {name} is off by {off:.1e} of the largest"
    return ""


def main():
    build = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    sizes = sys.argv[4] if len(sys.argv) > 4 else "mixed"
    wrong = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([build / "tests/graph_tuner_tests", f"--gtest_filter=*RandomModels.*/{sizes}", "--gtest_brief=1"], check=True,
                       env={**os.environ, "TILESMITH_MODELS_OUT": str(folder), "TILESMITH_RANDOM_MODELS": str(count),
                            "TILESMITH_RANDOM_SEED": str(first)})
        for model in sorted(folder.glob("*.onnx"), key=lambda path: int(path.stem)):
            why = compare(model)
            if sizes == "zero" and why.startswith(REFUSED):
                refused += 1
            elif why:
                wrong += 1
                print(f"seed {model.stem}: {why}", flush=True)
    print(f"{count} random models beside ONNX Runtime {onnxruntime.__version__}: {wrong} differ, {refused} it refuses")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
