#!/usr/bin/env python3
"""What a network takes by PyTorch and cuDNN: usage: torch_baseline.py NETWORK

Prints its seconds in floats without rounding as JSON, null for a network other than resnet18: the faster of NCHW and NHWC,
cuDNN trying all of its algorithms, with bias, sum and relu in the same call where cuDNN has one. Launches are recorded in a
CUDA graph and timed by events. Needs a GPU and a Python with PyTorch; ends with 7 where either is missing."""
import json
import sys

try:
    import torch
except ImportError:
    print("this Python has no PyTorch", file=sys.stderr)
    sys.exit(7)


def seconds_of(run, samples=100):
    """Returns a low quantile of the seconds of run(), recorded as a graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    times = []
    for _ in range(samples):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return sorted(times)[len(times) // 4]


class Convolution(torch.nn.Module):
    """The batch norm behind it is folded, as tilesmith has it, and cuDNN fuses what it can."""

    def __init__(self, inputs, outputs, kernel, stride=1):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2)

    def forward(self, x, residual=None, relu=True):
        w, bias, where = self.conv.weight, self.conv.bias, (self.conv.stride, self.conv.padding, self.conv.dilation, 1)
        if not relu:
            return self.conv(x)
        if residual is None:
            return torch.cudnn_convolution_relu(x, w, bias, *where)
        return torch.cudnn_convolution_add_relu(x, w, residual, 1.0, bias, *where)


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
    times = []
    for layout in (torch.contiguous_format, torch.channels_last):
        network = ResNet18().cuda().eval().to(memory_format=layout)
        x = torch.randn(1, 3, 224, 224, device="cuda").contiguous(memory_format=layout)
        times.append(seconds_of(lambda: network(x)))
    return min(times)


def main():
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU", file=sys.stderr)
        return 7
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    with torch.inference_mode():
        print(json.dumps(seconds_of_network() if sys.argv[1] == "resnet18" else None))
    return 0


if __name__ == "__main__":
    sys.exit(main())
