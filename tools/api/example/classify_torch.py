#!/usr/bin/env python3
"""usage: classify_torch.py [NETWORK] [SECONDS]
A network of torchvision, with random weights, run by torch and by tilesmith: tuned for SECONDS (default: as it was last
time, or not at all), compiled by torch.compile, and with a batch that varies."""

import sys

import tilesmith.torch
import torch
import torchvision

name = sys.argv[1] if len(sys.argv) > 1 else "resnet18"
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0
torch.manual_seed(1)
module = torchvision.models.get_model(name, weights=None).eval()
image = torch.randn(1, 3, 224, 224)

fast = tilesmith.torch.compile(module, image, optimize_for=seconds)
same = torch.compile(module, backend="tilesmith")
batches = tilesmith.torch.compile(module, image, dynamic_batch=True)

with torch.inference_mode():
    expected = module(image)
    for way, scores in ("tilesmith.torch.compile", fast(image)), ("torch.compile", same(image)):
        error = (scores - expected).abs().max() / expected.abs().max()
        print(f"{way}: the largest of {scores.numel()} is number {int(scores.argmax())}, error {error:.1e}")
    print(f"batches of 2 and 3: {tuple(batches(image.repeat(2, 1, 1, 1)).shape)}, {tuple(batches(image.repeat(3, 1, 1, 1)).shape)}")
for step in sorted(fast.model.profile(image.numpy()), key=lambda step: -step.seconds)[:3]:
    print(f"{step.seconds * 1e6:8.1f} us  {step.kind}  {step.name}")
