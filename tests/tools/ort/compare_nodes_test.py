"""tools/compare-nodes, run by check-nodes: how nodes of both sides are matched, and a network that both run."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import onnx
from onnx import TensorProto, helper

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "tools/compare-nodes"
TILESMITH = os.environ["TILESMITH"]

LOADER = importlib.machinery.SourceFileLoader("compare_nodes", str(SCRIPT))
nodes = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare_nodes", LOADER))
LOADER.exec_module(nodes)


def model(*graph_nodes):
    """Nodes as (type, inputs, output), each called after its output with an n in front; x is the input."""
    made = [helper.make_node(kind, inputs, [output], name="n" + output) for kind, inputs, output in graph_nodes]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    return nodes.Model(helper.make_graph(made, "test", [given], []))


def step(node, kind, seconds=1.0, converts=False):
    return {"node": node, "kind": kind, "seconds": seconds, "converts": converts, "layouts": "NCHW -> NCHW"}


class Matching(unittest.TestCase):
    FORMULA = (("Conv", ["x", "w"], "c"), ("Div", ["c", "s"], "d"), ("Erf", ["d"], "e"), ("Add", ["e", "s"], "a"),
               ("Mul", ["c", "a"], "g"), ("Relu", ["g"], "r"))

    def test_what_was_fused_goes_to_its_producer(self):
        units, lost = nodes.own_units(model(*self.FORMULA), [step("nc", "direct"), step("nr", "Relu")])
        self.assertEqual(lost, [])
        self.assertEqual([covered for _, covered in units], [{0, 1, 2, 3, 4}, {5}])

    def test_a_formula_goes_to_the_step_that_has_another_type(self):
        units, _ = nodes.own_units(model(*self.FORMULA), [step("nc", "direct"), step("ng", "Gelu"), step("nr", "Relu")])
        self.assertEqual([covered for _, covered in units], [{0}, {1, 2, 3, 4}, {5}])

    def test_layout_conversions_go_with_their_tensor_and_strangers_are_counted(self):
        units, lost = nodes.own_units(model(*self.FORMULA), [step("nc", "direct"), step("nc", "transform", converts=True),
                                                             step("g_1", "Relu"), step("other", "copy")])
        self.assertEqual([len(steps) for steps, _ in units], [2, 1])
        self.assertEqual([found["node"] for found in lost], ["other"])

    def test_blocked_convolutions_are_known_by_their_tensor(self):
        optimized = nodes.Model(helper.make_graph([
            helper.make_node("ReorderInput", ["x"], ["t1"], name="in"),
            helper.make_node("Conv", ["t1", "w"], ["t2"], name="c_nchwc"),
            helper.make_node("ReorderOutput", ["t2"], ["t3"], name="out"),
            helper.make_node("Gelu", ["t3"], ["g"], name="gelu"),
            helper.make_node("Relu", ["g"], ["r"], name="nr")], "test", [], []))
        units = nodes.peer_units(model(*self.FORMULA), optimized)
        covered = {name: found for names, found in units for name in names}
        self.assertEqual(covered["c_nchwc"], {0})
        self.assertEqual(covered["gelu"], {1, 2, 3, 4})
        self.assertEqual(covered["nr"], {5})

    def test_groups_are_the_smallest_that_neither_side_mixes(self):
        whole = model(("Conv", ["x", "w"], "a"), ("Relu", ["a"], "b"), ("Conv", ["b", "w"], "c"), ("Relu", ["c"], "d"))
        optimized = nodes.Model(helper.make_graph([
            helper.make_node("FusedConv", ["x", "w"], ["b"], name="first"),
            helper.make_node("Conv", ["b", "w"], ["c"], name="nc"),
            helper.make_node("Relu", ["c"], ["d"], name="nd")], "test", [], []))
        how = {"first": ("FusedConv", [[1]]), "nc": ("Conv", [[1]]), "nd": ("Relu", [[1]])}
        rows, lost, unmatched = nodes.compare(whole, [step("na", "direct", 3.0), step("nc", "direct", 1.0)], optimized,
                                              {"first": 1.0, "nc": 2.0, "nd": 1.0}, how)
        self.assertEqual([(row["nodes"], row["lost_seconds"]) for row in rows],
                         [(["na", "nb"], 2.0), (["nc", "nd"], -2.0)])
        self.assertEqual((lost, unmatched), (0, 0))


class Program(unittest.TestCase):
    def test_a_network_is_matched_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/model.onnx"
            subprocess.run([TILESMITH, "export", "squeezenet1_1", "--input-shape", "input=1x3x64x64", "-o", path],
                           check=True, capture_output=True)
            command = [SCRIPT, path, "--runs", "2", "--tilesmith", TILESMITH]
            report = json.loads(subprocess.run([*command, "--json"], check=True, capture_output=True, text=True).stdout)
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.assertEqual(report["ours_unmatched_seconds"], 0)
        self.assertAlmostEqual(sum(row["ours_seconds"] for row in report["groups"]), report["ours_seconds"])
        self.assertAlmostEqual(sum(row["onnxruntime_seconds"] for row in report["groups"])
                               + report["onnxruntime_unmatched_seconds"], report["onnxruntime_seconds"])
        self.assertGreater(len(report["groups"]), 20)
        self.assertEqual(report["groups"], sorted(report["groups"], key=lambda row: -row["lost_seconds"]))
        self.assertIn("lost to slower nodes", text)

    def test_nodes_without_names_are_matched_and_a_failure_leaves_the_others(self):
        with tempfile.TemporaryDirectory() as folder:
            path, broken, table = (f"{folder}/{name}" for name in ("model.onnx", "broken.onnx", "nodes.csv"))
            subprocess.run([TILESMITH, "export", "squeezenet1_1", "--input-shape", "input=1x3x64x64", "-o", path],
                           check=True, capture_output=True)
            nameless = onnx.load(path)
            for node in nameless.graph.node:
                node.name = ""
            onnx.save(nameless, path)
            pathlib.Path(broken).write_bytes(b"no model")
            command = [SCRIPT, broken, path, "--runs", "2", "--tilesmith", TILESMITH, "--csv", table, "--json"]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            lines = [line for line in pathlib.Path(table).read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(done.returncode, 7)
        self.assertIn(f"compare-nodes: {broken}: ", done.stderr)
        (report,) = json.loads(done.stdout)
        self.assertGreater(len(report["groups"]), 20)
        self.assertTrue(all(row["onnxruntime_kinds"] for row in report["groups"]))
        self.assertEqual([line.split(",")[0] for line in lines], ["network", "model"])

    def test_wrong_arguments_are_named(self):
        shape = [str(SCRIPT), "--tilesmith", TILESMITH, "--input-shape", "x=1y3"]
        for arguments, code, message in ((["none.onnx"], 7, "cannot read none.onnx: No such file or directory"),
                                         (shape, 2, "--input-shape must be INPUT=1x3x224x224, got x=1y3")):
            refused = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(refused.returncode, code)
            self.assertIn(message, refused.stderr)


if __name__ == "__main__":
    unittest.main()
