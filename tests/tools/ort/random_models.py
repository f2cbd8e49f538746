"""usage: tests/tools/ort/random_models.py BUILD-FOLDER [COUNT [FIRST-SEED [SIZES]]]
Random models (tests/support/ops/random_model.h; default 100 of them) in tilesmith and in ONNX Runtime: outputs that differ
by more than 1e-4 of the largest are printed with their seed, and the exit code is 1. SIZES is mixed (the default), zero or
equal. What ONNX Runtime refuses, which it does of some sizes of 0, is counted, and no difference."""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

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


def compare(program, model, folder):
    try:
        session = session_of(model, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
        random = np.random.default_rng(int(model.stem))
        feed = {value.name: random_input(random, value) for value in session.get_inputs()}
        expected = run_host(session, model, feed)
    except HOST_ERRORS as error:
        return f"{REFUSED} {error}"
    outputs = folder / "outputs.npz"
    command = [program, "run", model, "--runs", "1", "--threads", "2", "--quiet", "--output", outputs]
    for name, value in feed.items():
        np.save(folder / f"{name}.npy", value)
        command += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"tilesmith: {done.stderr.strip()}"
    got = np.load(outputs)
    for value, want in zip(session.get_outputs(), expected):
        off = difference(got[value.name], want)
        if not off <= ALLOWED:
            return f"output {value.name} is off by {off:.1e} of the largest"
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
            why = compare(build / "tilesmith", model, folder)
            if sizes == "zero" and why.startswith(REFUSED):
                refused += 1
            elif why:
                wrong += 1
                print(f"seed {model.stem}: {why}", flush=True)
    print(f"{count} random models beside ONNX Runtime {onnxruntime.__version__}: {wrong} differ, {refused} it refuses")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
