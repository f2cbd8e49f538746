#!/usr/bin/env python3
"""What cuDNN takes for convolutions and for ResNet-18, by PyTorch: usage: torch_baseline.py REQUEST.json

The request is {"workloads": [as benchdnn writes them, with post-ops], "network": NAME}. Prints {"f32": {workload:
seconds}, "tf32": the same with products rounded to TF32, "network": seconds or null}. Of each convolution the fastest
of NCHW and NHWC, cuDNN trying all of its algorithms, with bias, sum and relu in the same call where cuDNN has one.
Launches are recorded in a CUDA graph, on copies of inputs and weights that together exceed the L2, and timed by
events. Needs a GPU and a Python with PyTorch; ends with 7 where either is missing."""
import json
import re
import sys

try:
    import torch
except ImportError:
    print("this Python has no PyTorch", file=sys.stderr)
    sys.exit(7)


def sizes_of(workload):
    """The sizes of a workload in canonical form, and its post-ops."""
    shape, *post = workload.split("+")
    sizes = {name: int(value) for name, value in re.findall(r"([a-z]+)(\d+)", shape)}
    for height, width, default in (("ih", "iw", None), ("oh", "ow", None), ("kh", "kw", None), ("sh", "sw", 1),
                                   ("ph", "pw", 0), ("dh", "dw", 0)):
        sizes.setdefault(height, default)
        sizes.setdefault(width, sizes[height])
    for name in ("mb", "g"):
        sizes.setdefault(name, 1)
    return sizes, post


def seconds_of(run, count, samples=20):
    """Seconds of one of `count` calls run(i), which are recorded as a graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(min(count, 3)):
            run(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(count):
            run(i)
    times = []
    for _ in range(samples):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / count)
    return sorted(times)[len(times) // 4]


def convolve(x, w, bias, residual, relu, s):
    stride, padding, dilation = (s["sh"], s["sw"]), (s["ph"], s["pw"]), (s["dh"] + 1, s["dw"] + 1)
    if relu and bias is not None and residual is not None:
        return torch.cudnn_convolution_add_relu(x, w, residual, 1.0, bias, stride, padding, dilation, s["g"])
    if relu and bias is not None:
        return torch.cudnn_convolution_relu(x, w, bias, stride, padding, dilation, s["g"])
    y = torch.nn.functional.conv2d(x, w, bias, stride, padding, dilation, s["g"])
    if residual is not None:
        y += residual
    return torch.relu_(y) if relu else y


def seconds_of_workload(workload):
    s, post = sizes_of(workload)
    relu = any(p not in ("bias", "sum") for p in post)  # other activations cost about the same
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    best = None
    for layout in (torch.contiguous_format, torch.channels_last):
        tensor = lambda *shape: torch.randn(*shape, device="cuda").contiguous(memory_format=layout)
        made = lambda: (tensor(s["mb"], s["ic"], s["ih"], s["iw"]), tensor(s["oc"], s["ic"] // s["g"], s["kh"], s["kw"]))
        sets = [made()]
        bytes_of_one = sum(t.numel() * 4 for t in sets[0])
        sets += [made() for _ in range(min(63, 2 * l2 // bytes_of_one))]
        bias = torch.randn(s["oc"], device="cuda") if "bias" in post else None
        residual = tensor(s["mb"], s["oc"], s["oh"], s["ow"]) if "sum" in post else None
        try:
            taken = seconds_of(lambda i: convolve(*sets[i % len(sets)], bias, residual, relu, s), max(16, len(sets)))
        except RuntimeError as error:
            print(f"{workload}: {error}", file=sys.stderr)
            continue
        best = taken if best is None else min(best, taken)
    return best


class Convolution(torch.nn.Module):
    """With the batch norm behind it folded, as tilesmith has it."""

    def __init__(self, inputs, outputs, kernel, stride=1):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2)
        self.sizes = {"sh": stride, "sw": stride, "ph": kernel // 2, "pw": kernel // 2, "dh": 0, "dw": 0, "g": 1}

    def forward(self, x, residual=None, relu=True):
        return convolve(x, self.conv.weight, self.conv.bias, residual, relu, self.sizes)


class ResNet18(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Convolution(3, 64, 7, 2)
        self.blocks = torch.nn.ModuleList()
        inputs = 64
        for outputs in (64, 128, 256, 512):
            for stride in (1 if outputs == 64 else 2, 1):
                shortcut = Convolution(inputs, outputs, 1, stride) if stride > 1 else torch.nn.Identity()
                self.blocks.append(torch.nn.ModuleList(
                    [Convolution(inputs, outputs, 3, stride), Convolution(outputs, outputs, 3), shortcut]))
                inputs = outputs
        self.dense = torch.nn.Linear(512, 1000)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(self.stem(x), 3, 2, 1)
        for first, second, shortcut in self.blocks:
            residual = shortcut(x, relu=False) if isinstance(shortcut, Convolution) else x
            x = second(first(x), residual)
        return self.dense(x.mean((2, 3)))


def seconds_of_network():
    best = None
    for layout in (torch.contiguous_format, torch.channels_last):
        network = ResNet18().cuda().eval().to(memory_format=layout)
        x = torch.randn(1, 3, 224, 224, device="cuda").contiguous(memory_format=layout)
        taken = seconds_of(lambda _: network(x), 1, 100)
        best = taken if best is None else min(best, taken)
    return best


def main():
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU", file=sys.stderr)
        return 7
    with open(sys.argv[1]) as file:
        request = json.load(file)
    torch.backends.cudnn.benchmark = True
    result = {}
    with torch.inference_mode():
        for name, rounded in (("f32", False), ("tf32", True)):
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = rounded
            result[name] = {workload: seconds_of_workload(workload) for workload in request["workloads"]}
            result[name] = {workload: seconds for workload, seconds in result[name].items() if seconds}
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        result["network"] = seconds_of_network() if request["network"] == "resnet18" else None
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
