"""Sample calls of public ops: what `sample_tests.py` walks, and what the oracle was recorded on.

The test file of a module of ops lists their samples:

    from sample_tests import SampleTests
    from samples import Samples, call

    family = Samples()

    @family("atan2")                    # torch.atan2; also "Tensor.where", "special.ndtr", …
    def _(r):                           # r draws arrays, the same ones each time
        return [call(r.real(2, 3), r.real(3)), call(r.real(), r.real())]

    family.unary("sin", "cos")          # the usual shapes, from a domain
    family.untested["draw_"] = "random; see random/test_draws.py"

    class TestSamples(SampleTests):     # all that every op has to pass
        family = family

Arrays become tensors, float64 as they are. `tests/data/record_ops.py pointwise/arithmetic` records
what PyTorch gives for them, as `tests/data/ops/pointwise_arithmetic.npz`.
"""
from __future__ import annotations

import importlib.util
import zlib
from pathlib import Path

import numpy as np

inf, nan = float("inf"), float("nan")
CORNERS = [[0.0, -0.0, inf, -inf, nan, 1.0, -1.0]]
TIES = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, -1.0]])
WITH_NAN = np.array([[1.0, nan, 3.0], [nan, nan, -1.0]])


class Call:
    """Arguments of one call. `smooth`: compare derivatives with differences; `constant`: places
    among the arrays that are not differentiated by; `tolerance` and `off`: how many times the
    usual distance differences, and PyTorch's own numbers, may be away."""

    def __init__(self, args, kwargs):
        self.args, self.kwargs, self.smooth, self.constant = args, kwargs, True, ()
        self.tolerance = self.off = 1.0

    def but(self, **flags):
        """The same call with other flags."""
        self.__dict__.update(flags)
        return self


def call(*args, **kwargs):
    return Call(args, kwargs)


class Draw:
    """Random arrays from various domains; a fixed stream for each op."""

    def __init__(self, name):
        self.rng = np.random.RandomState(zlib.crc32(name.encode()))

    def between(self, low, high, *shape):
        """Uniform numbers; apart from each other, so that none are equal."""
        return np.asarray(self.rng.uniform(low, high, shape))

    def real(self, *shape):
        """Numbers in (-2.9, 2.9), none near a multiple of a half, where much is not smooth."""
        x = self.rng.randint(-6, 6, shape) * 0.5 + self.rng.uniform(0.08, 0.42, shape)
        return np.asarray(x)

    def normal(self, *shape):
        return np.asarray(self.rng.randn(*shape))

    def positive(self, *shape):
        return np.asarray(np.abs(self.real(*shape)) + 0.05)

    def unit(self, *shape):
        """Numbers in (-1, 1)."""
        return np.asarray(self.rng.uniform(0.03, 0.93, shape) * self.rng.choice([-1, 1], shape))

    def probability(self, *shape):
        """Numbers in (0, 1)."""
        return np.asarray(self.rng.uniform(0.03, 0.97, shape))

    def above(self, low, *shape):
        return np.asarray(low + self.positive(*shape))

    def complex(self, *shape):
        return np.asarray(self.rng.randn(*shape) + 1j * self.rng.randn(*shape))

    def distinct(self, *shape):
        """Numbers in random order, at least 0.3 apart."""
        n = int(np.prod(shape))
        return (self.rng.permutation(n) * 0.4 - n * 0.2
                + self.rng.uniform(0, 0.1, n)).reshape(shape)

    def integers(self, low, high, *shape):
        return np.asarray(self.rng.randint(low, high, shape), np.int64)

    def bools(self, *shape):
        return np.asarray(self.rng.randint(0, 2, shape), bool)


class Samples(dict):
    """The samples of a family of ops: name to a function that draws calls."""

    def __init__(self):
        super().__init__()
        self.untested = {}              # ops that need no samples, and why
        self.pointwise = {}             # ops for the dtype matrix: name to number of tensors
        self.unbatched = ()             # ops whose results have no fixed shape: vmap refuses them
        self.own = ()                   # ops that PyTorch has not: tested by differences alone
        self.contiguous = ()            # ops that ask for the strides of their argument

    def __call__(self, name):
        def enter(draw):
            self[name] = draw
            return draw
        return enter

    def calls(self, name):
        return self[name](Draw(name))

    def unary(self, *names, domain="real", complex=True, bounds=(), more=(), off=1.0):
        """Ops of one tensor: in shapes (2, 3), () and (0, 2), and on complex numbers."""
        for name in names:
            def draw(r, name=name):
                of = getattr(r, domain)
                calls = [call(of(*bounds, *shape)) for shape in ((2, 3), (), (0, 2))]
                if complex:
                    calls.append(call(r.complex(3) * 0.6 + 0.1))
                calls += [call(np.asarray(m)).but(smooth=False) for m in more]
                return [c.but(off=off) for c in calls]
            self[name] = draw
            self.pointwise[name] = 1

    def binary(self, *names, domain="real", complex=True, number=None, first=None, bounds=(),
               more=(), off=1.0):
        """Ops of two tensors: of one shape, broadcast, 0-d, empty, complex, with a number, and
        with a number first."""
        for name in names:
            def draw(r, name=name):
                of = getattr(r, domain)
                calls = [call(of(*bounds, 2, 3), of(*bounds, 2, 3)),
                         call(of(*bounds, 2, 1), of(*bounds, 3)),
                         call(of(*bounds), of(*bounds, 2)), call(of(*bounds, 0, 2), of(*bounds))]
                if complex:
                    calls.append(call(r.complex(3), r.complex(3)))
                if number is not None:
                    calls.append(call(of(*bounds, 2, 3), number))
                if first is not None:
                    calls.append(call(first, of(*bounds, 2, 3)))
                calls += [call(*map(np.asarray, m)).but(smooth=False) for m in more]
                return [c.but(off=off) for c in calls]
            self[name] = draw
            self.pointwise[name] = 2


HERE = Path(__file__).parent


def families():
    """Every family in the test files beside this one, by folder and module: "view/shape"."""
    found = {}
    for path in sorted(HERE.glob("*/test_*.py")):
        if "family = Samples()" in path.read_text():
            name = family_name(path)
            spec = importlib.util.spec_from_file_location(name.replace("/", "_"), path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            found[name] = module.family
    return found


def family_name(path):
    path = Path(path)
    return f"{path.parent.name}/{path.stem.removeprefix('test_')}"


def resolve(torch, name):
    """The function of that name: in torch, or in one of its namespaces."""
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found


def as_tensors(torch, value, leaves=None):
    """`value` with tensors for its arrays; those are also appended to `leaves`."""
    if isinstance(value, np.ndarray):
        tensor = torch.tensor(value)
        if leaves is not None:
            leaves.append(tensor)
        return tensor
    if isinstance(value, (tuple, list)):
        return type(value)([as_tensors(torch, v, leaves) for v in value])
    if isinstance(value, dict):
        return {k: as_tensors(torch, v, leaves) for k, v in value.items()}
    if isinstance(value, np.dtype):
        return getattr(torch, value.name)
    return value


def flat_tensors(torch, value):
    """The tensors in a result, in order; other results count as tensors too."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat_tensors(torch, v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in flat_tensors(torch, v)]
    return [torch.tensor(value)] if isinstance(value, (bool, int, float, complex)) else []


def weights(shape, position, is_complex):
    """What gradients are weighted with: fixed numbers of no symmetry."""
    n = int(np.prod(shape))
    w = np.cos(1.7 * np.arange(n) + position) + 0.3
    if is_complex:
        w = w + 1j * np.sin(0.9 * np.arange(n) + 1 + position)
    return w.reshape(shape)


DTYPES = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex64")


def dtype_row(torch, name, count):
    """The result type of an elementwise op for each type of its arguments; or the error's type."""
    function, row = resolve(torch, name), []
    for dtype in DTYPES:
        tensors = [torch.ones(2, dtype=getattr(torch, dtype)) for _ in range(count)]
        try:
            result = function(*tensors)
            first = result[0] if isinstance(result, tuple) else result
            row.append(str(first.dtype).removeprefix("torch."))
        except Exception as error:
            row.append(type(error).__name__)
    return row
