"""The Python package, run by api_test.cc against an installed one."""

import os
import tempfile
import threading
import unittest

import numpy as np
import tilesmith

NETWORK = "squeezenet1_1"
SHAPE = "input=1x3x64x64"


def image(seed=1):
    return np.random.default_rng(seed).standard_normal((1, 3, 64, 64)).astype(np.float32)


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tilesmith.load(NETWORK, threads=1, input_shapes=[SHAPE])

    def scores(self, *arguments, **named):
        (array,) = self.model.run(*arguments, **named).values()
        return array

    def test_describes_itself(self):
        (info,) = self.model.inputs
        self.assertEqual((info.name, info.shape, info.layout), ("input", [1, 3, 64, 64], "NCHW"))
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

    def test_what_does_not_fit_is_named(self):
        with self.assertRaisesRegex(ValueError, r"input \"input\" has shape \(3, 64, 64\), expected \(1, 3, 64, 64\)"):
            self.model.run(image()[0])
        with self.assertRaisesRegex(ValueError, "unknown: \\['data'\\], missing: \\['input'\\]"):
            self.model.run(data=image())
        with self.assertRaisesRegex(ValueError, "2 inputs given, expected 1"):
            self.model.run(image(), image())
        with self.assertRaisesRegex(RuntimeError, "resnet51"):
            tilesmith.load("resnet51")
        with self.assertRaisesRegex(RuntimeError, "4711"):
            tilesmith.cores_of_numa_node(4711)

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
            written = tilesmith.tune(
                NETWORK,
                plan,
                time_budget="1s",
                threads=1,
                options=["--input-shape", SHAPE],
                tune_options=["--no-db"],
                graph_tune_options=["--rounds", "0", "--no-baselines", "--time", "1ms"],
            )
            self.assertEqual(written, plan)
            model = tilesmith.load(NETWORK, plan=plan, threads=1, input_shapes=[SHAPE])
            self.assertGreater(model.predicted_seconds, 0)
            (tuned,) = model.run(image()).values()
            scores = self.scores(image())
            self.assertLess(np.abs(tuned - scores).max(), 1e-3 * np.abs(scores).max())
            with self.assertRaisesRegex(RuntimeError, "ended with status 2"):
                tilesmith.tune("resnet51", plan)


if __name__ == "__main__":
    unittest.main()
