"""Cases of layers, which run alike on PyTorch and on flambeau.

The test file of a module of layers lists them:

    from module_tests import ModuleTests
    from nn_cases import Cases

    cases = Cases()
    cases("Linear", lambda t: t.nn.Linear(3, 4), (2, 5, 3))

    class TestLayers(ModuleTests):      # all that every layer has to pass
        cases = cases

A case names a layer, says how to make it, and describes its inputs: a tuple of sizes is a float
tensor, `ints(high, *sizes)` an integer one, anything else is passed as it is. `t` is a module with
torch's names. `tests/data/record_nn.py` records what PyTorch gives, as `tests/data/nn_layers.npz`.
"""

from __future__ import annotations

import importlib.util
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ints:
    """Integers from 0 (or `low`) up to `high`, which is left out."""

    high: int
    sizes: tuple
    low: int = 0


@dataclass(frozen=True)
class floats:
    """Uniform floats between two bounds; without a gradient if `grad` is False."""

    low: float
    high: float
    sizes: tuple
    grad: bool = True


@dataclass
class Case:
    name: str
    make: Callable[[Any], Any]
    inputs: tuple
    # Run in evaluation mode, because training draws random numbers.
    eval: bool = False
    call: dict = field(default_factory=dict)


def make_inputs(t, case, dtype=np.float32):
    """The inputs of a case, the same numbers everywhere."""
    draw = np.random.RandomState(zlib.crc32(case.name.encode()))

    def make(spec):
        if isinstance(spec, ints):
            return t.tensor(draw.randint(spec.low, spec.high, spec.sizes).astype(np.int64))
        if isinstance(spec, floats):
            array = draw.uniform(spec.low, spec.high, spec.sizes).astype(dtype)
            return t.tensor(array).requires_grad_(spec.grad)
        if isinstance(spec, tuple) and all(isinstance(n, int) for n in spec):
            return t.tensor(draw.standard_normal(spec).astype(dtype)).requires_grad_()
        if isinstance(spec, list):
            return [make(s) for s in spec]
        if callable(spec):
            return spec(t)
        return spec

    return [make(spec) for spec in case.inputs]


def tensors_of(t, value):
    """All tensors in a result, in order."""
    if isinstance(value, t.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in tensors_of(t, part)]
    return []


def run(t, case):
    """Make a layer with seed 0, run it forward and backward; everything it gave, as arrays."""
    t.manual_seed(0)
    module = case.make(t)
    initial = {k: v.detach().clone() for k, v in module.state_dict().items()}
    if case.eval:
        module.eval()
    inputs = make_inputs(t, case)
    outputs = tensors_of(t, module(*inputs, **case.call))
    result = {f"init.{k}": v.numpy() for k, v in initial.items()}
    result |= {f"out.{i}": out.detach().numpy() for i, out in enumerate(outputs)}
    # A weighted sum, so that every element of a gradient counts.
    loss = sum(
        (out * weights(t, out)).sum() for out in outputs if out.requires_grad
    )
    if isinstance(loss, t.Tensor):
        loss.backward()
        for i, x in enumerate(tensors_of(t, inputs)):
            if x.grad is not None:
                result[f"grad.{i}"] = x.grad.numpy()
        for name, param in module.named_parameters():
            if param.grad is not None:
                grad = param.grad.to_dense() if param.grad.is_sparse else param.grad
                result[f"grad.{name}"] = grad.numpy()
    for name, buffer in module.named_buffers():
        result[f"after.{name}"] = buffer.numpy()
    return module, result


def checksum(array):
    """Shape, sum and sum of absolute values: enough to tell one stream of draws from another."""
    values = array.astype(np.float64)
    return [list(array.shape), float(values.sum()), float(np.abs(values).sum())]


def weights(t, out):
    values = np.cos(np.arange(math.prod(out.shape), dtype=np.float64)).astype(np.float32)
    return t.tensor(values).reshape(out.shape).to(out.dtype)


class Cases(list):
    """The cases of a test file, in order."""

    def __call__(self, name, make, *inputs, **options):
        self.append(Case(name, make, inputs, **options))

    def plain(self, layer, *inputs, options="", name=None, **more):
        """A case of a layer that is made with `options`, written as in a call."""
        self(name or layer, lambda t: eval(f"t.nn.{layer}({options})", {"t": t}), *inputs, **more)


def warmed(t, name, args, shape):
    """A lazy layer after its first call."""
    layer = getattr(t.nn, name)(*args)
    layer(t.zeros(shape))
    return layer


def as_module(t, function, name="Apply"):
    """A module without weights, of a class of this name, that calls the function."""

    class Apply(t.nn.Module):
        def forward(self, *inputs):
            return function(*inputs)

    Apply.__name__ = name
    return Apply()


def every_case():
    """The cases of all test files beside this one."""
    found = []
    for path in sorted(Path(__file__).parent.glob("modules/**/test_*.py")):
        if "cases = Cases()" in path.read_text():
            spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            found += module.cases
    return found
