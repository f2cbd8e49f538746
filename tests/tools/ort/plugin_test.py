"""The plug-in in ONNX Runtime, run by check: its outputs beside those of the host's own kernels."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NAME = "TilesmithExecutionProvider"
LIBRARY = os.environ["TILESMITH_ORT"]
TILESMITH = os.environ["TILESMITH"]
PAGE = os.path.join(os.path.dirname(__file__), "../../../tools/ort/README.md")
RANDOM = np.random.default_rng(1)


def floats(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def weights(name, *shape):
    scale = 1 / np.sqrt(np.prod(shape[1:]))
    return numpy_helper.from_array((RANDOM.standard_normal(shape) * scale).astype(np.float32), name)


def conv(source, target, weight):
    return helper.make_node("Conv", [source, weight], [target], name=target, kernel_shape=[3, 3], pads=[1] * 4)


def model(nodes, inputs, outputs, initializers, opset=17):
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def small(batch=1):
    """Two convolutions, an op that tilesmith refuses (a Binarizer) between them, a sum around all of it."""
    nodes = [
        conv("x", "a", "w1"),
        helper.make_node("Relu", ["a"], ["b"], name="b"),
        helper.make_node("Binarizer", ["b"], ["c"], domain="ai.onnx.ml", threshold=0.5, name="c"),
        conv("c", "d", "w2"),
        helper.make_node("Add", ["d", "b"], ["y"], name="y"),
    ]
    initializers = [weights("w1", 8, 3, 3, 3), weights("w2", 8, 8, 3, 3)]
    return model(nodes, [floats("x", batch, 3, 12, 12)], [floats("y", batch, 8, 12, 12)], initializers)


def supported(outputs=1, batch=1):
    nodes = [conv("x", "a", "w1"), helper.make_node("Relu", ["a"], ["y"], name="y")]
    shown = [floats("y", batch, 8, 12, 12), floats("a", batch, 8, 12, 12)][:outputs]
    return model(nodes, [floats("x", batch, 3, 12, 12)], shown, [weights("w1", 8, 3, 3, 3)])


def session(made, options=None, overrides=None, ours=True, entries=None):
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for name, text in (entries or {}).items():
        settings.add_session_config_entry(name, text)
    for name, size in (overrides or {}).items():
        settings.add_free_dimension_override_by_name(name, size)
    if not ours:
        return onnxruntime.InferenceSession(made, settings, providers=["CPUExecutionProvider"])
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
    settings.add_provider_for_devices(devices, {"threads": "1", **(options or {})})
    return onnxruntime.InferenceSession(made, settings)


def regions(running):
    """How many nodes each region of ours has."""
    return [
        len(part.get_nodes())
        for part in running.get_provider_graph_assignment_info()
        if part.ep_name == NAME
    ]


class PluginTest(unittest.TestCase):
    def expect_like_host(self, made, running, feeds):
        expected = session(made, ours=False).run(None, feeds)
        actual = running.run(None, feeds)
        self.assertEqual(len(actual), len(expected))
        for ours, theirs in zip(actual, expected):
            self.assertEqual(ours.shape, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-3 * np.abs(theirs).max(initial=1e-30))

    def image(self, *shape):
        return {"x": RANDOM.standard_normal(shape).astype(np.float32)}

    def expect_refused(self, wanted, *arguments, **named):
        with self.assertRaises(Exception) as caught:
            session(*arguments, **named)
        self.assertIn(wanted, str(caught.exception))

    def test_whole_network(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "squeezenet.onnx")
            size = "input=1x3x64x64"
            subprocess.run([TILESMITH, "export", "squeezenet1_1", "--input-shape", size, "-o", path], check=True)
            running = session(path)
            self.assertEqual(len(regions(running)), 1)
            self.assertEqual(len(running.get_provider_graph_assignment_info()), 1)
            image = RANDOM.standard_normal((1, 3, 64, 64)).astype(np.float32)
            self.expect_like_host(path, running, {running.get_inputs()[0].name: image})

    def test_two_regions_around_what_is_refused(self):
        made = small()
        running = session(made)
        self.assertEqual(sorted(regions(running)), [2, 2])
        for _ in range(3):
            self.expect_like_host(made, running, self.image(1, 3, 12, 12))

    def test_several_outputs_and_memory_that_is_not_aligned(self):
        made = supported(outputs=2)
        running = session(made)
        memory = np.empty(3 * 12 * 12 + 1, np.float32)
        memory[1:] = RANDOM.standard_normal(3 * 12 * 12)
        self.expect_like_host(made, running, {"x": memory[1:].reshape(1, 3, 12, 12)})

    def test_open_batch_takes_the_sizes_of_runs(self):
        made = small("N")
        running = session(made)
        self.assertEqual(sorted(regions(running)), [2, 2])
        for batch in (3, 1, 5, 3, 0):
            self.expect_like_host(made, running, self.image(batch, 3, 12, 12))
        fixed = session(made, overrides={"N": 2})
        self.assertEqual(sorted(regions(fixed)), [2, 2])
        self.expect_like_host(made, fixed, self.image(2, 3, 12, 12))

    def test_runs_of_open_batches_overlap(self):
        made = supported(batch="N")
        running, host = session(made), session(made, ours=False)
        feeds = [self.image(batch, 3, 12, 12) for batch in (1, 2, 3, 4)]
        expected = [host.run(None, feed)[0] for feed in feeds]
        failures = []

        def work(turn):
            for run in range(20):
                which = (turn + run) % len(feeds)
                (actual,) = running.run(None, feeds[which])
                if actual.shape != expected[which].shape or np.abs(actual - expected[which]).max() > 1e-3:
                    failures.append(which)

        workers = [threading.Thread(target=work, args=(turn,)) for turn in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(failures, [])

    def test_other_open_sizes_are_left_to_the_host(self):
        nodes = [conv("x", "y", "w1")]
        made = model(nodes, [floats("x", 1, 3, "H", 12)], [floats("y", 1, 8, "H", 12)], [weights("w1", 8, 3, 3, 3)])
        left = session(made)
        self.assertEqual(regions(left), [])
        self.expect_like_host(made, left, self.image(1, 3, 9, 12))
        running = session(made, overrides={"H": 9})
        self.assertEqual(regions(running), [1])
        self.expect_like_host(made, running, self.image(1, 3, 9, 12))

    def test_runs_that_overlap(self):
        running = session(supported())
        feeds = self.image(1, 3, 12, 12)
        (expected,) = running.run(None, feeds)
        failures = []

        def work():
            for _ in range(50):
                (actual,) = running.run(None, feeds)
                if not np.array_equal(actual, expected):
                    failures.append(actual)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(failures, [])

    def test_branches_keep_their_nodes_but_read_from_a_region(self):
        def branch(name, op):
            out = floats(name, 1, 8, 12, 12)
            return helper.make_graph([helper.make_node(op, ["a"], [name])], name, [], [out])

        nodes = [
            conv("x", "a", "w1"),
            helper.make_node("If", ["c"], ["y"], then_branch=branch("t", "Neg"), else_branch=branch("e", "Abs")),
        ]
        inputs = [floats("x", 1, 3, 12, 12), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
        made = model(nodes, inputs, [floats("y", 1, 8, 12, 12)], [weights("w1", 8, 3, 3, 3)])
        running = session(made)
        self.assertEqual(regions(running), [1])
        for condition in (True, False):
            self.expect_like_host(made, running, {**self.image(1, 3, 12, 12), "c": np.array(condition)})

    def test_integers_stay_with_the_host(self):
        nodes = [helper.make_node("Cast", ["x"], ["a"], to=TensorProto.FLOAT, name="a"), conv("a", "y", "w1")]
        inputs = [helper.make_tensor_value_info("x", TensorProto.INT64, [1, 3, 12, 12])]
        made = model(nodes, inputs, [floats("y", 1, 8, 12, 12)], [weights("w1", 8, 3, 3, 3)])
        running = session(made)
        self.assertEqual(regions(running), [1])
        self.expect_like_host(made, running, {"x": RANDOM.integers(-5, 5, (1, 3, 12, 12))})

    def test_options_that_are_none(self):
        self.expect_refused("no option colour (known: dump, plan, reproducible, strict, threads)", supported(), {"colour": "red"})
        self.expect_refused("threads must be a number", supported(), {"threads": "two"})
        self.expect_refused("strict must be 0 or 1, got yes", supported(), {"strict": "yes"})
        self.expect_refused("no/such/plan", supported(), {"plan": "no/such/plan.jsonl"})
        self.expect_refused("threads", supported(), {"threads": "100000"})

    def plan_of(self, made, folder, *options):
        """For its only region, dumped and tuned."""
        session(made, {"dump": folder})
        (region,) = glob.glob(os.path.join(folder, "*.onnx"))
        plan = os.path.join(folder, "plan.jsonl")
        log = os.path.join(folder, "log.jsonl")
        shared = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, "XDG_DATA_HOME": folder}
        options = [*options, "--threads", "1"]
        subprocess.run([TILESMITH, "tune", region, "-o", log, "--trials", "2", *options], env=environment, **shared)
        subprocess.run(
            [TILESMITH, "graph-tune", region, "--log", log, "-o", plan, *options]
            + ["--rounds", "0", "--time", "1ms", "--default-schedules", "--no-baselines"],
            env=environment,
            **shared,
        )
        return plan

    def test_a_plan_made_for_the_dumped_region(self):
        made = supported()
        with tempfile.TemporaryDirectory() as folder:
            plan = self.plan_of(made, folder)
            running = session(made, {"plan": plan})
            self.expect_like_host(made, running, self.image(1, 3, 12, 12))
            self.expect_refused("it was made for none of the", small(2), {"plan": plan})
            with open(plan) as file:
                text = file.read()
            with open(plan, "w") as file:
                file.write(text.replace('"threads":1', '"threads":4096', 1))
            # Fewer cores than whoever made it had.
            for threads in "1", "4096":
                self.expect_like_host(made, session(made, {"plan": plan, "threads": threads}), self.image(1, 3, 12, 12))
            wanted = "made for 4096 threads, asked to run with 1"
            self.expect_refused(wanted, made, {"plan": plan, "strict": "1"})

    def test_a_plan_for_one_size_of_an_open_batch(self):
        made = supported(batch="N")
        with tempfile.TemporaryDirectory() as folder:
            plan = self.plan_of(made, folder, "--batch", "2")
            running = session(made, {"plan": plan})
            for batch in (2, 3):
                self.expect_like_host(made, running, self.image(batch, 3, 12, 12))
            other = session(made, {"plan": plan})
            with self.assertRaises(Exception) as caught:
                other.run(None, self.image(3, 3, 12, 12))
            self.assertIn("it was made for none of the 1 regions", str(caught.exception))

    def compiled(self, made, folder, embedded=False, options=None):
        """Its path, and the session that wrote it."""
        path = os.path.join(folder, f"network{int(embedded)}.onnx")
        entries = {"ep.context_enable": "1", "ep.context_file_path": path, "ep.context_embed_mode": str(int(embedded))}
        return path, session(made, options, entries=entries)

    def expect_same(self, first, second, feeds):
        for a, b in zip(first.run(None, feeds), second.run(None, feeds), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_compiled_models(self):
        for made in small(), supported(outputs=2):
            plain = session(made)
            for embedded in False, True:
                with tempfile.TemporaryDirectory() as folder:
                    path, writer = self.compiled(made, folder, embedded)
                    count = len(regions(plain))
                    files = [os.path.basename(path)] + [f"network0.{i}.tsc" for i in range(0 if embedded else count)]
                    self.assertEqual(sorted(os.listdir(folder)), sorted(files))
                    running = session(path)
                    self.assertEqual(regions(running), [1] * count)
                    for _ in range(2):
                        feeds = self.image(1, 3, 12, 12)
                        self.expect_same(running, plain, feeds)
                        self.expect_same(running, writer, feeds)

    def test_compiled_models_in_memory(self):
        made = small()
        for embedded in False, True:
            with tempfile.TemporaryDirectory() as folder:
                path, _ = self.compiled(made, folder, embedded)
                with open(path, "rb") as file:
                    content = file.read()
                running = session(content, entries={"ep.context_file_path": path})
                self.expect_same(running, session(made), self.image(1, 3, 12, 12))

    def test_compiled_models_that_are_refused(self):
        made = supported()
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(Exception) as caught:
                self.compiled(supported(batch="N"), folder)
            self.assertIn("give the batch its size", str(caught.exception))
            with self.assertRaises(Exception) as caught:
                session(made, entries={"ep.context_enable": "1"})
            self.assertRegex(str(caught.exception), "ep.context_file_path|ep_context")
            inside, _ = self.compiled(made, folder, embedded=True)
            path, _ = self.compiled(made, folder)
            with tempfile.TemporaryDirectory() as other:
                plan = {"plan": self.plan_of(made, other)}
                self.expect_refused("the option plan", path, plan)
                planned, writer = self.compiled(made, other, options=plan)
                self.expect_same(session(planned), writer, self.image(1, 3, 12, 12))
            if os.environ.get("TILESMITH_MAX_ISA") is None:
                os.environ["TILESMITH_MAX_ISA"] = "portable"
                try:
                    self.expect_refused("this CPU has portable", path)
                finally:
                    del os.environ["TILESMITH_MAX_ISA"]
            self.expect_refused("compiled for 1 threads", path, {"threads": "2", "strict": "1"})
            network = onnx.load(inside)
            (cache,) = [a for a in network.graph.node[0].attribute if a.name == "ep_cache_context"]
            cache.s = cache.s[:5000] + bytes([cache.s[5000] ^ 1]) + cache.s[5001:]
            self.expect_refused("its ep_cache_context: its tables are damaged", network.SerializeToString())
            data = os.path.join(folder, "network0.0.tsc")
            with open(data, "r+b") as file:
                file.seek(8)
                file.write(b"\xff")
            self.expect_refused("is of version", path)
            os.remove(data)
            self.expect_refused("cannot read", path)
            network = onnx.load(path)
            (cache,) = [a for a in network.graph.node[0].attribute if a.name == "ep_cache_context"]
            cache.s = b"../network0.0.tsc"
            self.expect_refused("names no file beside the model", network.SerializeToString())

    def test_the_page(self):
        """Its pieces of Python, where a reader has built: the second one's options instead of the first one's."""
        with open(PAGE) as page:
            pieces = re.findall(r"```python\n(.*?)```", page.read(), re.DOTALL)
        self.assertEqual(len(pieces), 3)
        (taken,) = re.findall(r"(?m)^options\.add_provider_for_devices.*$", pieces[0])
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "build/tools/ort"))
            os.symlink(LIBRARY, os.path.join(folder, "build/tools/ort/libtilesmith_ort.so"))
            network = os.path.join(folder, "resnet50.onnx")
            subprocess.run(
                [TILESMITH, "export", "resnet50", "--input-shape", "input=1x3x64x64", "-o", network], check=True
            )
            ours = f"\nassert any(p.ep_name == {NAME!r} for p in session.get_provider_graph_assignment_info())\n"
            for program in (pieces[0], pieces[0].replace(taken, pieces[1]), pieces[0] + pieces[2]):
                asked = 'options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")\n'
                program = program.replace("session = ", asked + "session = ", 1) + ours
                ran = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, program + ran.stderr)
            self.assertEqual(len(glob.glob(os.path.join(folder, "regions/*.onnx"))), 1)
            self.assertTrue(os.path.exists(os.path.join(folder, "resnet50_ctx.0.tsc")))


if __name__ == "__main__":
    onnxruntime.register_execution_provider_library("tilesmith", LIBRARY)
    unittest.main(verbosity=1)
