"""Small calls of the functions of neural networks, which run alike on PyTorch and on flambeau.

The test file of a module of ops lists them:

    from layer_tests import LayerTests
    from layers import Cases

    cases = Cases()

    @cases("embedding")                 # gives a tensor; `make` draws inputs, the same on either
    def _(torch, make):
        return torch.nn.functional.embedding(make.integers(5, 2, 3), make(5, 3))

    cases.simple("softmax", lambda t, F, x: F.softmax(x, 1), (3, 4))

    class TestLayers(LayerTests):       # all that every layer has to pass
        cases = cases

`tests/data/record_network.py` records what PyTorch gives for them, as `tests/data/network.npz`.
"""
import importlib.util
from pathlib import Path

import numpy as np

REDUCTIONS = ("mean", "sum", "none")
WEIGHT = [0.5, 2.0, 1.0, 0.25]
RANGES = {"unit": {"low": 0.05, "high": 0.95}, "positive": {"low": 0.1, "high": 3}}


class Cases(dict):
    """Names, and functions of a library and of a `Maker` of inputs."""

    def __call__(self, name):
        def register(function):
            self[name] = function
            return function
        return register

    def simple(self, name, call, *shapes, **options):
        """A case that calls `call(torch, F, *tensors)` on inputs of these shapes."""
        self[name] = lambda torch, make: call(
            torch, torch.nn.functional, *[make(*s, **options) for s in shapes])

    def pair(self, name, call, target=None):
        """A loss `call(torch, F, x, y, reduction)` of two tensors; `target` says what y is like,
        and what x is, if "unit"."""
        for reduction in REDUCTIONS:
            def run(torch, make, reduction=reduction):
                x = make(3, 4, **RANGES["unit"]) if target == "unit" else make(3, 4)
                y = make(3, 4, **RANGES.get(target, {}))
                return call(torch, torch.nn.functional, x, y, reduction)
            self[f"{name}_{reduction}"] = run

    def signed(self, name, call):
        """A loss `call(F, x, y, signs, reduction)`."""
        for reduction in REDUCTIONS:
            def run(torch, make, reduction=reduction):
                signs = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
                return call(torch.nn.functional, make(3, 4), make(3, 4), signs, reduction)
            self[f"{name}_{reduction}"] = run

    def classes(self, name, call, shape=(3, 4)):
        """A loss `call(torch, F, x, target, reduction)` of classes along dimension 1."""
        for reduction in REDUCTIONS:
            def run(torch, make, reduction=reduction):
                x = make(*shape)
                target = make.integers(shape[1], shape[0], *shape[2:])
                return call(torch, torch.nn.functional, x, target, reduction)
            self[f"{name}_{reduction}"] = run


class Maker:
    """Draws the inputs of one case and remembers those that take gradients."""

    def __init__(self, torch, name, dtype=None):
        self.torch, self.dtype = torch, dtype
        seed = sum(ord(c) * (i + 1) for i, c in enumerate(name))
        self.random = np.random.RandomState(seed % 2**31)
        self.inputs = []

    def __call__(self, *shape, low=None, high=None, grad=True, apart=False):
        if apart:               # all differ by more than any finite difference
            values = self.random.permutation(int(np.prod(shape))).reshape(shape) * 0.1 - 1
        elif low is None:
            values = self.random.standard_normal(shape)
        else:
            values = self.random.uniform(low, high, shape)
        tensor = self.torch.tensor(np.asarray(values, np.float64).tolist(),
                                   dtype=self.dtype or self.torch.float64)
        tensor = tensor.reshape(shape).requires_grad_(grad)
        if grad:
            self.inputs.append(tensor)
        return tensor

    def integers(self, high, *shape):
        return self.torch.tensor(self.random.randint(0, high, shape).tolist()).reshape(shape)


def every_case():
    """The cases of all test files beside this one."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*/test_*.py")):
        if "cases = Cases()" in path.read_text():
            spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            found |= module.cases
    return found
