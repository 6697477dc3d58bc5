"""Modules and functions that tests of exporting share."""
import flambeau as torch
from flambeau import nn
from flambeau.export import export
from flambeau.nn import functional as F


class Stateful(nn.Module):
    """A parameter, buffers of both kinds, a constant."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)
        self.register_buffer("b", torch.ones(3))
        self.c = torch.ones(3)
        self.register_buffer("np", torch.zeros(3), persistent=False)

    def forward(self, x, y=None, *, z=2.0):
        o = self.lin(x).relu() + self.b + self.c + self.np
        return {"o": o, "n": o.shape[0], "k": 3}, o * z


class Network(nn.Module):
    """Layers with state that changes when they run."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)
        x = F.max_pool2d(F.gelu(self.bn(self.conv(x))), 2)
        return x.flatten(1).view(x.size(0), -1), x.reshape(x.shape[0], -1)


def function(f, *args, **options):
    class Module(nn.Module):
        def forward(self, x, y=None):
            return f(x) if y is None else f(x, y)
    return export(Module(), args, **options)
