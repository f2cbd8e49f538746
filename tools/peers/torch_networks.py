"""Networks of PyTorch for worker.py, and what compiles them."""

import os
import warnings

import torch

SIZES = {"unet_with_break": (1, 3, 256, 256)}  # of those that do not take photographs of the usual size
USUAL = (1, 3, 224, 224)


def block(inputs, outputs):
    layers = []
    for channels in (inputs, outputs):
        layers += [torch.nn.Conv2d(channels, outputs, 3, padding=1, bias=False), torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers)


class UNetWithBreak(torch.nn.Module):
    """Its two halves are graphs of their own for torch.compile."""

    def __init__(self, channels=(32, 64, 128)):
        super().__init__()
        self.down = torch.nn.ModuleList(map(block, (3, *channels), channels))
        self.bottom = block(channels[-1], 2 * channels[-1])
        self.up = torch.nn.ModuleList(torch.nn.ConvTranspose2d(2 * size, size, 2, 2) for size in reversed(channels))
        self.join = torch.nn.ModuleList(block(2 * size, size) for size in reversed(channels))
        self.head = torch.nn.Conv2d(channels[0], 2, 1)

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = torch.nn.functional.max_pool2d(x, 2)
        x = self.bottom(x)
        if not torch.compiler.is_exporting():  # a whole graph has no break
            torch._dynamo.graph_break()
        for up, join, skip in zip(self.up, self.join, reversed(skips)):
            x = join(torch.cat([up(x), skip], 1))
        return self.head(x)


def network(name, weights):
    """Makes a network with statistics of what passes through, which random weights need to be of any use. `weights` is a file
    of them, made where it is not there."""
    torch.manual_seed(1)
    if name == "unet_with_break":
        module = UNetWithBreak()
    else:
        import torchvision

        module = getattr(torchvision.models, name)(weights=None)
    if not weights.exists():
        norms = [child for child in module.modules() if isinstance(child, torch.nn.BatchNorm2d)]
        for norm in norms:
            norm.momentum = None  # the mean of all that follows
        module.train()
        with torch.no_grad():
            for _ in range(3 if norms else 0):
                module(torch.randn(4, *SIZES.get(name, USUAL)[1:]))
        torch.save(module.state_dict(), f"{weights}.partial")
        os.rename(f"{weights}.partial", weights)
    module.load_state_dict(torch.load(weights))
    return module.eval()


def image(name):
    return torch.randn(SIZES.get(name, USUAL), generator=torch.Generator().manual_seed(2))


def compiled(side, module, image, optimize_for):
    """Returns the module by eager, inductor, backend (torch.compile by tilesmith) or compiled (tilesmith.torch.compile)."""
    if side == "eager":
        return module
    if side == "inductor":
        return torch.compile(module)
    import tilesmith.torch

    warnings.filterwarnings("error", message="tilesmith leaves a graph to torch")
    options = {"optimize_for": float(optimize_for), "program": os.environ["TILESMITH"]}
    if side == "backend":
        return torch.compile(module, backend="tilesmith", options=options)
    return tilesmith.torch.compile(module, image, **options)
