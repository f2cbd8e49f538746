"""The Python package, run by api_test.cc against an installed one."""

import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import unittest
import warnings

import numpy as np
import tilesmith

NETWORK = "squeezenet1_1"
SHAPE = "input=1x3x64x64"


def image(seed=1):
    return np.random.default_rng(seed).standard_normal((1, 3, 64, 64)).astype(np.float32)


def varint(value):
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])


def field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def one_node(op_type, input_name, shape, element_type=1):
    """An ONNX file of one node, by the field numbers of onnx.proto; y is its output. Sizes with names are open."""
    dims = b"".join(field(1, field(1 if isinstance(size, int) else 2, size)) for size in shape)
    tensor_type = field(1, element_type) + field(2, dims)
    graph_input = field(1, input_name) + field(2, field(1, tensor_type))
    node = field(1, input_name) + field(2, b"y") + field(4, op_type)
    graph_output = field(1, b"y") + field(2, field(1, field(1, element_type)))
    graph = field(1, node) + field(2, b"g") + field(11, graph_input) + field(12, graph_output)
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def with_data_elsewhere(location):
    """y = x + w, of two numbers, those of w in another file."""
    def entry(key, value):
        return field(13, field(1, key) + field(2, value))

    weights = field(1, 2) + field(2, 1) + field(8, b"w") + entry(b"location", location) + field(14, 1)
    tensor_type = field(1, 1) + field(2, field(1, field(1, 2)))
    node = field(1, b"x") + field(1, b"w") + field(2, b"y") + field(4, b"Add")
    graph = field(1, node) + field(2, b"g") + field(5, weights) + field(11, field(1, b"x") + field(2, field(1, tensor_type)))
    return field(1, 8) + field(7, graph + field(12, field(1, b"y"))) + field(8, field(2, 13))


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tilesmith.load(NETWORK, threads=1, input_shapes=[SHAPE])

    def scores(self, *arguments, **named):
        (array,) = self.model.run(*arguments, **named).values()
        return array

    def test_describes_itself(self):
        self.assertRegex(tilesmith.__version__, r"^\d+\.\d+\.\d+$")
        self.assertTrue(os.access(tilesmith.find_program(), os.X_OK))
        (info,) = self.model.inputs
        self.assertEqual((info.name, info.shape, info.layout), ("input", [1, 3, 64, 64], "NCHW"))
        self.assertEqual(info.type, "f32")
        self.assertEqual(self.model.threads, 1)
        self.assertGreater(self.model.packed_weight_bytes, 1_000_000)
        self.assertEqual(self.model.predicted_seconds, 0)

    def test_inputs_by_place_and_by_name_and_of_any_type(self):
        x = image()
        scores = self.scores(x)
        self.assertEqual(scores.size, 1000)
        self.assertTrue(np.isfinite(scores).all())
        np.testing.assert_array_equal(self.scores(input=x), scores)
        np.testing.assert_array_equal(self.scores(x.astype(np.float64)), scores)
        wide = np.zeros((1, 3, 64, 128), np.float32)
        wide[..., ::2] = x
        np.testing.assert_array_equal(self.scores(wide[..., ::2]), scores)
        self.assertFalse(np.array_equal(self.scores(image(2)), scores))
        np.testing.assert_array_equal(self.scores({"input": x}), scores)

    def test_compiled_networks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "network.tsc")
            subprocess.run(
                [tilesmith.find_program(), "compile", NETWORK, "--input-shape", SHAPE, "--threads", "1", "-o", path],
                check=True,
                capture_output=True,
            )
            compiled = tilesmith.load(path, threads=1)
            (scores,) = compiled.run(image()).values()
            np.testing.assert_array_equal(scores, self.scores(image()))
            with self.assertRaisesRegex(RuntimeError, "is compiled"):
                tilesmith.load(path, batch=2)

    def test_models_in_memory(self):
        weights = np.array([10, 20], np.float32)
        given = with_data_elsewhere(b"weights.bin")
        for model in given, bytearray(given), memoryview(given):
            loaded = tilesmith.load(model, threads=1, parts={"weights.bin": weights.tobytes()})
            np.testing.assert_array_equal(loaded.run(np.array([1, 2], np.float32))["y"], [11, 22])
        with self.assertRaisesRegex(RuntimeError, 'model in memory: .*"w": data in "weights.bin"'):
            tilesmith.load(given)
        with self.assertRaisesRegex(RuntimeError, "model in memory: the file is empty"):
            tilesmith.load(b"")
        with self.assertRaises(ValueError):
            tilesmith.load("net.onnx", parts={"weights.bin": b""})
        with tempfile.TemporaryDirectory() as folder:
            plan = tilesmith.graph_tune(
                one_node(b"Relu", b"x", [1, 3, 8, 8]), os.path.join(folder, "plan.jsonl"), seconds=1, rounds=0, threads=1
            )
            self.assertTrue(os.path.exists(plan))

    def test_models_are_called_and_run_as_onnx_runtimes(self):
        x, scores = image(), self.scores(image())
        (name,) = self.model.run(x)
        for called in self.model(x), self.model(input=x), self.model.session()(x):
            np.testing.assert_array_equal(called, scores)
        for wanted in None, [], [name], (name,), name:
            for runs in self.model, self.model.session():
                (array,) = runs.run(wanted, {"input": x})
                np.testing.assert_array_equal(array, scores)
        with self.assertRaisesRegex(ValueError, f"outputs are {name}; unknown: \\['data'\\]"):
            self.model.run(["data"], {"input": x})
        with self.assertRaisesRegex(ValueError, "missing: \\['input'\\]"):
            self.model.run(None, {})

    def test_first_run_says_sizes_that_are_open(self):
        given = one_node(b"Relu", b"x", [b"N", 3, b"H", b"W"])
        model = tilesmith.load(given, threads=1)
        self.assertEqual(model.inputs[0].shape, [-1, 3, -1, -1])
        self.assertEqual([info.name for info in model.outputs], ["y"])
        with self.assertRaisesRegex(ValueError, r"has shape \(2, 4, 5, 6\), expected \(-1, 3, -1, -1\)"):
            model(np.zeros((2, 4, 5, 6)))
        x = np.random.default_rng(1).standard_normal((2, 3, 5, 6)).astype(np.float32)
        self.assertTrue(model.profile(x))
        for _ in range(2):
            np.testing.assert_array_equal(model(x), np.maximum(x, 0))
        self.assertEqual(model.inputs[0].shape, [2, 3, 5, 6])
        with self.assertRaisesRegex(ValueError, r"expected \(2, 3, 5, 6\)"):
            model(x[:1])
        model = tilesmith.load(given, threads=1, sizes=2)
        for array in x, x[:1], x[..., :4]:
            np.testing.assert_array_equal(model(array), np.maximum(array, 0))
        with self.assertRaisesRegex(RuntimeError, "give them, such as `input_shapes` x=1x3x224x224"):
            tilesmith.graph_tune(given, "no.jsonl")

    def test_ends_with_channels_last(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "last.plan.jsonl")
            subprocess.run(
                [tilesmith.find_program(), "graph-tune", NETWORK, "--input-shape", SHAPE, "--default-schedules",
                 "--rounds", "0", "--threads", "1", "--input-layout", "NHWC", "--interpolate-costs", "-o", plan],
                check=True, capture_output=True,
            )
            model = tilesmith.load(NETWORK, plan=plan, threads=1, input_shapes=SHAPE)
            (info,) = model.inputs
            self.assertEqual((info.layout, info.elements, info.bytes), ("NHWC", 3 * 64 * 64, 4 * 3 * 64 * 64))
            x = image()
            (array,) = model.run(np.moveaxis(x, 1, 3)).values()
            np.testing.assert_allclose(array, self.scores(x), atol=1e-3 * abs(self.scores(x)).max())
            with self.assertRaisesRegex(ValueError, "expected \\(1, 64, 64, 3\\)"):
                model.run(x)

    def test_open_sizes_with_channels_last(self):
        given = one_node(b"Relu", b"x", [1, 3, b"H", b"W"])
        with tempfile.TemporaryDirectory() as folder:
            plan = tilesmith.graph_tune(
                given, os.path.join(folder, "plan.jsonl"), seconds=1, rounds=0, threads=1,
                input_shapes="x=1x3x5x6", input_layout="NHWC", output_layout="NHWC",
            )
            model = tilesmith.load(given, plan, threads=1)
            self.assertEqual((model.inputs[0].shape, model.inputs[0].layout), ([1, 3, -1, -1], "NHWC"))
            x = np.random.default_rng(1).standard_normal((1, 5, 6, 3)).astype(np.float32)
            for _ in range(2):
                np.testing.assert_array_equal(model(x), np.maximum(x, 0))

    def test_plan_of_other_threads(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "plan.jsonl")
            wanted = dict(plan=plan, input_shapes=SHAPE)
            tilesmith.graph_tune(NETWORK, plan, seconds=1, rounds=0, threads=1, input_shapes=SHAPE)
            with open(plan) as file:
                text = file.read()
            with open(plan, "w") as file:
                file.write(text.replace('"threads":1', '"threads":2', 1))
            with self.assertWarnsRegex(RuntimeWarning, "plan.jsonl: made for 2 threads, and 1 runs it"):
                model = tilesmith.load(NETWORK, threads=1, **wanted)
            np.testing.assert_allclose(*self.model(image()), *model(image()), atol=1e-3 * abs(self.scores(image())).max())
            with self.assertRaisesRegex(RuntimeError, "made for 2 threads, asked to run with 1"):
                tilesmith.load(NETWORK, threads=1, strict=True, **wanted)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual(tilesmith.load(NETWORK, threads=1, input_shapes=SHAPE).warnings, [])

    def test_files_that_are_not_there(self):
        for action in (
            lambda: tilesmith.load("no.onnx"),
            lambda: tilesmith.load("no/such"),
            lambda: tilesmith.load(pathlib.Path("no")),
            lambda: tilesmith.load(NETWORK, plan="no.jsonl"),
            lambda: tilesmith.tune("no.onnx", "plan.jsonl"),
            lambda: tilesmith.optimize(NETWORK, "plan.jsonl", precision="int8", calibrate="no.npz"),
            lambda: tilesmith.graph_tune(NETWORK, "plan.jsonl", log="no.jsonl"),
            lambda: tilesmith.quantize(NETWORK, "int8.onnx", ["no.npz"]),
        ):
            for kind in FileNotFoundError, RuntimeError, tilesmith.MissingFileError:
                with self.assertRaises(kind) as raised:
                    action()
                self.assertTrue(raised.exception.filename.startswith("no"))
        with self.assertRaisesRegex(RuntimeError, "resnet51 is neither"):
            tilesmith.load("resnet51")

    def test_arguments_of_other_types(self):
        secret = b"\x00SECRET" * 100
        for name, action in {
            "plan": lambda: tilesmith.load(NETWORK, plan=secret),
            "plan ": lambda: tilesmith.optimize(NETWORK, plan=secret),
            "log": lambda: tilesmith.tune(NETWORK, "plan.jsonl", log=secret),
            "output": lambda: tilesmith.quantize(secret, secret),
            "calibrate": lambda: tilesmith.quantize(NETWORK, "int8.onnx", secret),
            "program": lambda: tilesmith.optimize(secret, "plan.jsonl", program=secret),
            "model": lambda: tilesmith.load(4711),
            "threads": lambda: tilesmith.load(secret, threads="2"),
            "batch": lambda: tilesmith.optimize(secret, "plan.jsonl", batch=secret),
            "seconds": lambda: tilesmith.graph_tune(secret, "plan.jsonl", seconds=secret),
            "forbid": lambda: tilesmith.tune(secret, "plan.jsonl", forbid=secret),
            "target": lambda: tilesmith.load(NETWORK, target=secret),
            "sizes": lambda: tilesmith.load(NETWORK, sizes="3"),
        }.items():
            with self.assertRaisesRegex(TypeError, f"^{name.strip()} must be ") as raised:
                action()
            self.assertNotIn("SECRET", str(raised.exception))

    def test_shows_what_is_meant(self):
        shown = [name for name in dir(tilesmith) if not name.startswith("_")]
        self.assertEqual(shown, sorted(name for name in tilesmith.__all__ if not name.startswith("_")))
        self.assertFalse({"os", "json", "shutil", "annotations", "Any"} & set(dir(tilesmith)))

    def test_arrays_that_numpy_has_not(self):
        class Tensor:
            """As PyTorch's: what NumPy cannot have raises."""

            def __init__(self, dtype, requires_grad=False):
                self.dtype, self.requires_grad = dtype, requires_grad

            def detach(self):
                return self

            def __array__(self, *arguments, **named):
                raise TypeError("not here")

        with self.assertRaisesRegex(ValueError, r'"input" .*needs a gradient: give it as x.detach\(\)'):
            self.model(Tensor("torch.float32", True))
        with self.assertRaisesRegex(ValueError, r"bfloat16, which NumPy has not: give it as x.float\(\)"):
            self.model(Tensor("torch.bfloat16"))
        with self.assertRaisesRegex(ValueError, r"give it as x.detach\(\).cpu\(\).numpy\(\)"):
            self.model(Tensor("torch.float32"))
        for array in image().astype(np.complex64), image().astype("datetime64[s]"), image().astype(str), image().astype(object):
            with self.assertRaisesRegex(ValueError, '"input" is an array of .*, expected float32 \\(f32\\)'):
                self.model(array)
        try:
            import torch
        except ImportError:
            return
        x = torch.from_numpy(image())
        np.testing.assert_array_equal(self.model(x), self.scores(image()))
        for tensor, said in (x.clone().requires_grad_(), "x.detach"), (x.to(torch.bfloat16), "x.float"):
            with self.assertRaisesRegex(ValueError, said):
                self.model(tensor)

    def test_what_does_not_fit_is_named(self):
        with self.assertRaisesRegex(ValueError, r"input \"input\" has shape \(3, 64, 64\), expected \(1, 3, 64, 64\)"):
            self.model.run(image()[0])
        with self.assertRaisesRegex(ValueError, "unknown: \\['data'\\], missing: \\['input'\\]"):
            self.model.run(data=image())
        with self.assertRaisesRegex(ValueError, "unknown: \\['data'\\], missing: \\['input'\\]"):
            self.model.run({"data": image()})
        with self.assertRaisesRegex(RuntimeError, 'precision is "int8" \\(known: f32, tf32'):
            tilesmith.load(NETWORK, precision="int8")
        with self.assertRaisesRegex(RuntimeError, "got `input_shapes` input=3$"):
            tilesmith.load(NETWORK, input_shapes="input=3")
        with self.assertRaisesRegex(ValueError, "2 inputs given, expected 1"):
            self.model.run(image(), image())
        with self.assertRaisesRegex(RuntimeError, "resnet51"):
            tilesmith.load("resnet51")
        with self.assertRaisesRegex(RuntimeError, "4711"):
            tilesmith.cores_of_numa_node(4711)
        with self.assertRaisesRegex(RuntimeError, "threads must be at least 1, got 0"):
            tilesmith.core_distance(0)
        self.assertGreater(tilesmith.core_distance(2), 0)

    def test_hostile_files_are_runtime_errors(self):
        with self.assertRaisesRegex(RuntimeError, "threads must be at least 0"):
            tilesmith.load(NETWORK, threads=-1)
        with self.assertRaisesRegex(RuntimeError, "more than 1000 elements"):
            tilesmith.load(NETWORK, input_shapes=[SHAPE], max_elements=1000)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "named.onnx")
            with open(path, "wb") as file:
                file.write(one_node(b"Relu", b"x\xff\x1b[2J", [1, 4]))
            model = tilesmith.load(path, threads=1)
            self.assertEqual([info.name for info in model.inputs], ["x\\xff\\u001b[2J"])
            (array,) = model.run(np.float32([[-1, 0, 1, 2]])).values()
            np.testing.assert_array_equal(array, [[0, 0, 1, 2]])
            with open(path, "wb") as file:
                file.write(one_node(b"N\xffne", b"x\xff", [1, 4]))
            with self.assertRaisesRegex(RuntimeError, "operator is not supported"):
                tilesmith.load(path, threads=1)
            with open(path, "wb") as file:
                file.write(one_node(b"Relu", b"x", [1 << 16] * 4))
            with self.assertRaisesRegex(RuntimeError, "65536x65536x65536x65536"):
                tilesmith.load(path, threads=1)

    def test_types(self):
        types = [(2, "u8", np.uint8), (5, "i16", np.int16), (7, "i64", np.int64), (9, "bool", np.bool_), (10, "f16", np.float16)]
        for number, name, dtype in types:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "typed.onnx")
                with open(path, "wb") as file:
                    file.write(one_node(b"Transpose", b"x", [2, 3], number))
                model = tilesmith.load(path, threads=1)
                self.assertEqual((model.inputs[0].type, model.outputs[0].type), (name, name))
                x = np.array([[0, 1, 2], [3, 4, 5]], dtype)
                (array,) = model.run(x).values()
                self.assertEqual(array.dtype, dtype)
                np.testing.assert_array_equal(array, x.T)
                (array,) = model.run(np.array([[0, 3], [1, 4], [2, 5]], dtype).T).values()
                np.testing.assert_array_equal(array, x.T)
                with self.assertRaisesRegex(ValueError, f"an array of float32, expected {np.dtype(dtype)} \\({name}\\)"):
                    model.run(np.zeros((2, 3), np.float32))

    def test_sessions_in_threads(self):
        expected = [self.scores(image(seed)) for seed in range(4)]
        found = [None] * 4

        def work(seed):
            session = self.model.session()
            for _ in range(3):
                (found[seed],) = session.run(image(seed)).values()

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for array, wanted in zip(found, expected):
            np.testing.assert_array_equal(array, wanted)

    def test_profile(self):
        steps = self.model.profile(image(), runs=3)
        self.assertGreaterEqual(len(steps), 26)
        self.assertTrue(all(step.seconds > 0 and step.name and step.kind for step in steps))

    def test_tune(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "plan.jsonl")
            stages = []
            written = tilesmith.tune(
                NETWORK,
                plan,
                seconds="1s",
                graph_seconds=2,
                rounds=0,
                threads=1,
                input_shapes=[SHAPE],
                database=False,
                progress=stages.append,
            )
            self.assertEqual(written, plan)
            self.assertTrue(any("trials, about" in stage for stage in stages), stages)
            model = tilesmith.load(NETWORK, plan=plan, threads=1, input_shapes=[SHAPE])
            self.assertGreater(model.predicted_seconds, 0)
            (tuned,) = model.run(image()).values()
            scores = self.scores(image())
            self.assertLess(np.abs(tuned - scores).max(), 1e-3 * np.abs(scores).max())

            log = plan + ".log.jsonl"
            again = os.path.join(folder, "again.jsonl")
            wanted = dict(log=log, seconds="2s", rounds=0, threads=1, input_shapes=[SHAPE])
            self.assertEqual(tilesmith.graph_tune(NETWORK, again, **wanted), again)
            self.assertEqual(
                tilesmith.optimize(NETWORK, again, seconds=1, database=False, threads=1, input_shapes=[SHAPE]),
                again,
            )
            self.assertTrue(os.path.exists(again))
            samples = os.path.join(folder, "samples.npz")
            np.savez(samples, input=np.concatenate([image(1), image(2)]))
            settings = dict(
                precision="mixed", calibrate=samples, max_output_error=0.5, max_error=1, forbid="strassen",
                input_layout="NHWC", output_layout="NHWC", max_weights=1000, max_elements=10_000_000,
                max_memory=4096, wait="yield", threads=1, batch=1, input_shapes=SHAPE, target="cpu",
            )
            mixed = os.path.join(folder, "mixed.jsonl")
            tilesmith.optimize(NETWORK, mixed, seconds=2, database=False, **settings)
            tilesmith.tune(NETWORK, mixed, seconds=1, graph_seconds=2, rounds=0, database=False, **settings)
            tilesmith.graph_tune(NETWORK, mixed, seconds=2, rounds=0, **settings)
            loaded = tilesmith.load(NETWORK, mixed, threads=1, input_shapes=SHAPE)
            self.assertEqual(loaded.inputs[0].layout, "NHWC")
            with self.assertRaisesRegex(RuntimeError, "`max_output_error` is for `precision` mixed, not f32"):
                tilesmith.optimize(NETWORK, mixed, max_output_error=0.5, input_shapes=SHAPE)
            with self.assertRaisesRegex(RuntimeError, "resnet51"):
                tilesmith.tune("resnet51", plan)
            with self.assertRaisesRegex(RuntimeError, "seconds must be a duration"):
                tilesmith.tune(NETWORK, plan, seconds="soon")
            with self.assertRaisesRegex(RuntimeError, "no_such_program is not on the PATH: .* as `program`"):
                tilesmith.tune(NETWORK, plan, program="no_such_program")

    def test_quantize(self):
        with tempfile.TemporaryDirectory() as folder:
            inputs = os.path.join(folder, "inputs.npz")
            np.savez(inputs, input=np.concatenate([image(1), image(2)]))
            quantized = os.path.join(folder, "int8.onnx")
            wanted = dict(threads=1, input_shapes=[SHAPE], keep_first=True)
            stages = []
            report = tilesmith.quantize(NETWORK, quantized, inputs, progress=stages.append, **wanted)
            self.assertEqual(report["samples"], 2)
            self.assertEqual(report["kept_nodes"], 1)
            self.assertGreater(report["outputs"][0]["sqnr_db"], 20)
            self.assertLess(os.path.getsize(quantized), 2e6)
            self.assertTrue(any("ranges: sample 2/2" in stage for stage in stages), stages)
            with self.assertRaisesRegex(RuntimeError, "must be one of minmax"):
                tilesmith.quantize(NETWORK, quantized, inputs, method="best", **wanted)

    def test_ctrl_c_ends_tuning(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "plan.jsonl")

            def interrupt(stage):
                if "trials, about" in stage:
                    os.kill(os.getpid(), signal.SIGINT)

            with self.assertRaises(KeyboardInterrupt):
                tilesmith.tune(
                    NETWORK,
                    plan,
                    seconds="10m",
                    threads=1,
                    input_shapes=[SHAPE],
                    database=False,
                    progress=interrupt,
                )
            self.assertGreater(os.path.getsize(plan + ".log.jsonl"), 0)
            with self.assertRaisesRegex(ValueError, "of the caller"):

                def fail(stage):
                    raise ValueError("of the caller")

                tilesmith.graph_tune(NETWORK, plan, threads=1, input_shapes=[SHAPE], progress=fail)


if __name__ == "__main__":
    unittest.main()
