"""tilesmith.torch, run by api_test.cc against an installed package with a Python that has PyTorch."""

import collections
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

import tilesmith
import tilesmith.torch
import torch
from torch import nn

KEPT = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = KEPT.name
torch.set_num_threads(1)
SEED = 1
Pair = collections.namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class Output:
    scores: torch.Tensor
    images: torch.Tensor


torch.export.register_dataclass(Output, serialized_type_name="Output")


class Net(nn.Module):
    """Two convolutions, with statistics, and scores."""

    def __init__(self, classes=5):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 24, 3, 2))
        self.scores = nn.Linear(24, classes)

    def images(self, x):
        return self.features(x)

    def forward(self, x):
        return self.scores(torch.relu(self.images(x)).mean((2, 3)))


class Odd(nn.Module):
    """An operator that nothing but torch has."""

    def forward(self, x):
        return torch.special.bessel_j0(x)


def made(module=None):
    """The module with weights that are the same each time, and statistics that are not those of nothing."""
    torch.manual_seed(SEED)
    module = Net() if module is None else module
    for child in module.modules():
        for name, tensor in [*child.named_parameters(recurse=False), *child.named_buffers(recurse=False)]:
            if tensor.is_floating_point():
                tensor.data = torch.rand_like(tensor) + 0.1 if name == "running_var" else torch.randn_like(tensor) * 0.3
    return module.eval()


def image(*shape, seed=2):
    return torch.randn(shape or (1, 3, 20, 24), generator=torch.Generator().manual_seed(seed))


def run_python(text, **environment):
    return subprocess.run([sys.executable, "-c", text], env={**os.environ, **environment}, capture_output=True, text=True)


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def assertClose(self, ours, theirs, tolerance=1e-5):
        self.assertEqual(ours.shape, theirs.shape)
        self.assertEqual(ours.dtype, theirs.dtype)
        self.assertLessEqual(float((ours - theirs).abs().max()), tolerance * float(theirs.abs().max()), f"seed {SEED}")


class CompileTest(Case):
    def compiled(self, module, example, **options):
        return tilesmith.torch.compile(module, example, threads=1, **options)

    def test_torch_is_imported_once_it_is_used(self):
        text = "import sys, tilesmith; assert 'torch' not in sys.modules; tilesmith.torch.compile; assert 'torch' in sys.modules"
        result = run_python(text)
        self.assertEqual(result.returncode, 0, result.stderr)
        with self.assertRaises(AttributeError):
            tilesmith.no_such_thing
        result = run_python("import sys; sys.modules['torch'] = None; import tilesmith; tilesmith.torch")
        self.assertIn("tilesmith.torch needs PyTorch: pip install", result.stderr)

    def test_takes_and_returns_tensors_without_copies(self):
        module, x = made(), image()
        fast = self.compiled(module, x)
        expected = module(x).detach()
        self.assertClose(fast(x), expected)
        self.assertClose(fast(x=x), expected)
        self.assertFalse(fast(x).requires_grad)
        with torch.inference_mode():
            self.assertClose(fast(x), expected)
        wide = image(1, 3, 20, 48)[..., ::2]
        self.assertClose(fast(wide), module(wide).detach())
        with unittest.mock.patch.object(fast._program, "_session") as session:
            result = fast(x)
            session.run_pointers.assert_called_once_with([x.data_ptr()], [[1, 3, 20, 24]], [result.data_ptr()])
        self.assertEqual(fast.model.threads, 1)
        self.assertEqual(result.data_ptr() % 64, 0)

    def test_structures_come_as_the_module_has_them(self):
        class Structured(Net):
            def forward(self, x, scale, *, half=True, other=None):
                y = self.images(x["image"]) * scale
                pair = Pair(y, (y, None, 3))
                return {"pair": pair, "x": x["image"], "bias": self.scores.bias, "all": [Output(y.sum((2, 3)), y + 1)], "half": half}

        module, x, scale = made(Structured()), {"image": image()}, torch.tensor(0.5)
        fast = self.compiled(module, (x, scale))
        ours, theirs = fast(x, scale), module(x, scale)
        self.assertEqual(list(ours), list(theirs))
        self.assertClose(ours["pair"].first, theirs["pair"].first.detach())
        self.assertIs(ours["pair"].first, ours["pair"].second[0])
        self.assertEqual(ours["pair"].second[1:], (None, 3))
        self.assertIs(ours["x"], x["image"])
        self.assertIs(ours["bias"], module.scores.bias)
        self.assertIsInstance(ours["all"][0], Output)
        self.assertClose(ours["all"][0].scores, theirs["all"][0].scores.detach())
        self.assertEqual(ours["half"], True)
        self.assertClose(fast(scale=scale, x=x)["all"][0].images, theirs["all"][0].images.detach())
        named = self.compiled(module, {"x": x, "scale": scale, "half": False})
        self.assertEqual(named(x, scale, half=False)["half"], False)
        with self.assertRaisesRegex(ValueError, "compiled for False where True is given"):
            named(x, scale)
        with self.assertRaisesRegex(TypeError, "compiled for arguments x, scale of the example's structure"):
            fast(x["image"], scale)

    def test_channels_last_is_taken_as_it_lies(self):
        class Images(Net):
            def forward(self, x):
                return self.images(x), x.mean((2, 3))

        module, x = made(Images()), image()
        last = x.contiguous(memory_format=torch.channels_last)
        fast = self.compiled(module, last)
        for given in last, x:
            images, means = fast(given)
            self.assertClose(images, module(x)[0].detach())
            self.assertClose(means, module(x)[1].detach())
            self.assertTrue(images.is_contiguous(memory_format=torch.channels_last))
        with unittest.mock.patch.object(fast._program, "_session") as session:
            fast(last)
            self.assertEqual(session.run_pointers.call_args.args[0], [last.data_ptr()])
        two = self.compiled(module, last, dynamic_batch=True)
        more = image(3, 3, 20, 24).contiguous(memory_format=torch.channels_last)
        self.assertClose(two(more)[0], module(more)[0].detach())

    def test_open_batches(self):
        module = made()
        fast = self.compiled(module, image(), dynamic_batch=True)
        for batch in (1, 3, 2, 3):
            x = image(batch, 3, 20, 24, seed=batch)
            self.assertClose(fast(x), module(x).detach())
        self.assertEqual(fast.model.inputs[0].shape, [1, 3, 20, 24])
        sizes = {2: torch.export.Dim("height", min=8, max=64), 3: torch.export.Dim("width", min=8, max=64)}
        fast = self.compiled(module, (image(),), dynamic_shapes=(sizes,))
        self.assertClose(fast(image(1, 3, 31, 17)), module(image(1, 3, 31, 17)).detach())
        with self.assertRaisesRegex(ValueError, r"shape \(2, 3, 20, 24\), expected \(1, 3, 20, 24\); others need dynamic_batch"):
            self.compiled(module, image())(image(2, 3, 20, 24))

    def test_sizes_that_are_not_open_are_refused(self):
        class Sized(Net):
            def forward(self, x):  # has its sizes in it
                return torch.nn.functional.interpolate(self.images(x), size=x.shape[2:]), x.sum((2, 3)) / x.shape[2]

        module = made(Sized())
        sizes = {2: torch.export.Dim("height", min=8, max=64), 3: torch.export.Dim("width", min=8, max=64)}
        fast = self.compiled(module, (image(),), dynamic_shapes=(sizes,))
        for got, wanted in zip(fast(image(1, 3, 40, 16)), module(image(1, 3, 40, 16))):
            self.assertClose(got, wanted.detach())
        for shape in (2, 3, 20, 24), (1, 3, 65, 24), (1, 3, 7, 24), (1, 4, 20, 24), (1, 3, 20):
            with self.assertRaisesRegex(ValueError, r"has shape .*, expected \(1, 3, s\d+ from 8 to 64, s\d+ from 8 to 64\)"):
                fast(torch.zeros(shape))
        fast = self.compiled(module, image(), dynamic_batch=True)
        with self.assertRaisesRegex(ValueError, r"expected \(s\d+ from 0 on, 3, 20, 24\)"):
            fast(image(1, 3, 24, 24))

    def test_wrong_arguments_are_refused_before_any_work(self):
        module, x = made(), image()
        for error, said, options in (
            (ValueError, "optimize_for must be at least 0, got -3", {"optimize_for": -3}),
            (ValueError, "precision is 'fp16'", {"precision": "fp16"}),
            (ValueError, "cache must be a folder", {"cache": __file__}),
        ):
            with self.assertRaisesRegex(error, said):
                self.compiled(module, x, **options)
        with self.assertRaisesRegex(TypeError, "must be a torch.nn.Module, got str"):
            tilesmith.torch.compile("resnet18", x)
        with self.assertRaisesRegex(RuntimeError, "is of torch.float64, where tilesmith computes in float32"):
            self.compiled(torch.nn.Conv2d(3, 8, 3).double().eval(), x.double())

    def test_parameters_that_are_replaced_are_noticed(self):
        module, x = made(), image()
        fast = self.compiled(module, x)
        self.assertClose(fast(x), module(x).detach())
        name, child = next((name, child) for name, child in module.named_modules() if getattr(child, "weight", None) is not None)
        child.weight = torch.nn.Parameter(2 * child.weight.detach())
        with self.assertRaisesRegex(RuntimeError, f"weight of module `{name}` was replaced"):
            fast(x)

    def test_other_types(self):
        class Types(nn.Module):
            def forward(self, x, n):
                return x > 0, n + 1, x * 2

        values = image(2, 3), torch.arange(6).reshape(2, 3)
        for ours, theirs in zip(self.compiled(Types().eval(), values)(*values), Types()(*values)):
            self.assertTrue(torch.equal(ours, theirs))
        half = made().half()
        self.assertClose(self.compiled(half, image().half())(image().half()).float(), made()(image()).detach(), 1e-2)
        for precision, tolerance in (("bf16", 0.05), ("int8", 0.3)):
            fast = self.compiled(made(), image(), precision=precision)
            self.assertClose(fast(image()), made()(image()).detach(), tolerance)
            self.assertFalse(torch.equal(fast(image()), self.compiled(made(), image())(image())), precision)

    def test_what_does_not_fit_says_what_to_do(self):
        fast = self.compiled(made(), image())
        with self.assertRaisesRegex(ValueError, 'input "x" is of torch.float64 on cpu, expected torch.float32'):
            fast(image().double())
        with self.assertRaisesRegex(TypeError, 'input "x" is of ndarray, expected a tensor'):
            fast(image().numpy())
        with self.assertRaisesRegex(RuntimeError, r'input "x" needs a gradient.*torch.no_grad\(\), or detach\(\)'):
            fast(image().requires_grad_())
        with torch.no_grad():
            fast(image().requires_grad_())
        with self.assertRaisesRegex(ValueError, r"module `features` is in training mode: call eval\(\)"):
            self.compiled(Net(), image())
        with self.assertRaisesRegex(ValueError, "unknown options of tilesmith: optimise_for; known: optimize_for,"):
            self.compiled(made(), image(), optimise_for=1)
        with self.assertRaisesRegex(RuntimeError, "optimize_for must be a duration .*, got soon"):
            self.compiled(made(), image(), optimize_for="soon")
        with self.assertRaisesRegex(RuntimeError, "(?s)bessel_j0.*is in module `block.1`"):
            self.compiled(Block().eval(), image())

    def test_weights_that_change_are_noticed(self):
        module, x = made(), image()
        fast = self.compiled(module, x)
        before = fast(x)
        with torch.no_grad():
            module.scores.weight.mul_(2)
        self.assertClose(fast(x), module(x).detach())
        module.scores.bias.data = module.scores.bias.data + 1
        self.assertClose(fast(x), module(x).detach())
        self.assertFalse(torch.equal(fast(x), before))
        module.load_state_dict(made().state_dict())
        self.assertTrue(torch.equal(fast(x), before))

    def test_threads_may_share_one(self):
        module = made()
        fast, wrong = self.compiled(module, image()), []

        def serve(seed):
            x = image(seed=seed)
            expected = fast(x)
            for _ in range(20):
                if not torch.equal(fast(x), expected) or not torch.allclose(expected, module(x), atol=1e-4):
                    wrong.append(seed)

        threads = [threading.Thread(target=serve, args=[seed]) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_another_process_exports_and_tunes_nothing(self):
        module, x = made(Net(7)), image()
        with tempfile.TemporaryDirectory() as cache:
            fast = self.compiled(module, x, optimize_for="2s", cache=cache)
            self.assertClose(fast(x), module(x).detach())
            (entry,) = pathlib.Path(cache).iterdir()
            self.assertIn("plan.jsonl", os.listdir(entry))
            text = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import torch_test
import tilesmith, torch
def refuse(*arguments, **named): raise AssertionError("is not needed")
torch.onnx.export = tilesmith.optimize = refuse
module = torch_test.made(torch_test.Net(7))
fast = tilesmith.torch.compile(module, torch_test.image(), threads=1, optimize_for=1, cache={cache!r})
assert torch.allclose(fast(torch_test.image()), module(torch_test.image()), atol=1e-4)
assert fast.model.predicted_seconds > 0
"""
            result = run_python(text)
            self.assertEqual(result.returncode, 0, result.stderr)
            # Other weights are no other graph.
            other = made(Net(7))
            other.scores.weight.data *= -3
            with unittest.mock.patch("torch.onnx.export", side_effect=AssertionError):
                self.assertClose(self.compiled(other, x, cache=cache)(x), other(x).detach())

    def test_what_is_damaged_is_made_anew(self):
        module, x = made(), image()
        with tempfile.TemporaryDirectory() as cache:
            self.compiled(module, x, cache=cache, optimize_for=1)
            (entry,) = pathlib.Path(cache).iterdir()
            for name, content in (("model.onnx", b"\x08"), ("plan.jsonl", b"{"), ("plan.jsonl", b""), ("model.onnx", b"")):
                (entry / name).write_bytes(content)
                self.assertClose(self.compiled(module, x, cache=cache)(x), module(x).detach())
                self.assertGreater((entry / "model.onnx").stat().st_size, 1000, name)
            self.assertEqual([path.name for path in pathlib.Path(cache).iterdir()], [entry.name])
            (entry / "plan.jsonl").unlink(missing_ok=True)
            (entry / "seconds").write_text("many")
            self.compiled(module, x, cache=cache, optimize_for=1)
            self.assertTrue((entry / "plan.jsonl").exists())
        self.assertClose(self.compiled(module, x, cache="/proc/no/folder")(x), module(x).detach())

    def test_what_the_page_says(self):
        page = pathlib.Path(__file__).parents[2] / "tools" / "api" / "torch.md"
        blocks = re.findall("(?s)```python\n(.*?)```", page.read_text())
        self.assertEqual(len(blocks), 3)
        names = {}
        exec("\n".join(blocks[:1]).replace("60s", "1s"), names)
        expected = names["module"](names["image"]).detach()
        self.assertClose(names["scores"], expected)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            exec(blocks[1].replace("60s", "1s"), names)
        self.assertClose(names["scores"], expected)
        exec(blocks[2], names)
        self.assertClose(torch.from_numpy(*names["scores"].values()), expected)

    def test_load_takes_onnx_protos(self):
        module, x = made(), image()
        program = torch.onnx.export(module, (x,), dynamo=True, verbose=False)
        for given in program, program.model_proto:
            (scores,) = tilesmith.load(given, threads=1).run(x.numpy()).values()
            self.assertClose(torch.from_numpy(scores), module(x).detach())
        large = unittest.mock.Mock(spec=["SerializeToString"])
        large.SerializeToString.side_effect = ValueError("exceeds maximum protobuf size of 2GB")
        with self.assertRaisesRegex(ValueError, "save it to a file, with external data: .*2GB"):
            tilesmith.load(large)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.block = nn.Sequential(nn.ReLU(), Odd())

    def forward(self, x):
        return self.block(self.first(x))


class Broken(Net):
    """With a break between its halves."""

    def forward(self, x):
        x = self.images(x)
        torch._dynamo.graph_break()
        return self.scores(x.mean((2, 3)))


class BackendTest(Case):
    def backend(self, module, **options):
        return torch.compile(module, backend="tilesmith", options={"threads": 1, **options})

    def programs(self):
        """The graphs that are prepared from now on, by what they were prepared for."""
        patch = unittest.mock.patch("tilesmith.torch.Program", side_effect=tilesmith.torch.Program)
        self.addCleanup(patch.stop)
        return patch.start()

    def test_graphs_and_their_sizes(self):
        for module, graphs in (made(), 1), (made(Broken()), 2):
            torch._dynamo.reset()
            programs, fast = self.programs(), self.backend(module)
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("error")
                for batch in (1, 2, 3, 1):
                    x = image(batch, 3, 20, 24, seed=batch)
                    self.assertClose(fast(x), module(x))
            self.assertEqual(programs.call_count, 3 * graphs)
            last = image().contiguous(memory_format=torch.channels_last)
            with torch.inference_mode():
                self.assertClose(fast(last), module(last))

    def test_what_is_refused_stays_torchs_and_says_so_once(self):
        module = Block().eval()
        fast = self.backend(module)
        with torch.no_grad(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(2):
                self.assertTrue(torch.equal(fast(image()), module(image())))
        said = [str(warning.message) for warning in said if "tilesmith" in str(warning.message)]
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], "(?s)leaves a graph to torch, from module `first` on: .*bessel_j0.*is in module `block.1`")

    def test_training_stays_torchs(self):
        module = made()
        fast, x = self.backend(module), image(2, 3, 20, 24)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for training in (False, True):
                module.train(training)
                theirs = torch.autograd.grad(module(x).sum(), module.scores.weight)[0]
                ours = torch.autograd.grad(fast(x).sum(), module.scores.weight)[0]
                self.assertClose(ours, theirs)
            with torch.no_grad():  # statistics go on
                before = module.features[1].running_mean.clone()
                fast(x)
                self.assertFalse(torch.equal(module.features[1].running_mean, before))

    def test_modules_of_one_class_have_their_own_weights(self):
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(3))

            def forward(self, x):
                for number, block in enumerate(self.blocks):
                    x = block(x)
                    torch._dynamo.graph_break()
                return x

        module, x = made(Twice()), image(1, 8, 12, 12)
        fast = self.backend(module)
        with torch.no_grad():
            self.assertClose(fast(x), module(x))
            module.blocks[1].weight.mul_(2)
            self.assertClose(fast(x), module(x))
            module.blocks[2] = made(nn.Conv2d(8, 8, 3, padding=1))
            self.assertClose(fast(x), module(x))

    def test_options(self):
        with torch.no_grad():
            for wrong in {"optimise_for": 1}, {"threads": 1, "batch": 2}:
                with self.assertRaisesRegex(Exception, "unknown options of tilesmith"):
                    torch.compile(made(), backend="tilesmith", options=wrong)(image())
            with tempfile.TemporaryDirectory() as cache:
                fast = self.backend(made(), optimize_for=1, cache=cache)
                self.assertClose(fast(image()), made()(image()))
                (entry,) = pathlib.Path(cache).iterdir()
                self.assertTrue((entry / "plan.jsonl").exists())


if __name__ == "__main__":
    unittest.main()
