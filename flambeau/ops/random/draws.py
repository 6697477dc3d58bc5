"""Random numbers: tensors filled in place, and new tensors.

The numbers come from a generator's stream (`flambeau.kernels.creation.random`), which is PyTorch's
to the last bit.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from flambeau.core.dtypes import from_numpy_dtype
from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.promotion import c_name, type_name
from flambeau.core.shapes import refuse_negative
from flambeau.core.tensor import Tensor, plain_types
from flambeau.core.views import check_inplace
from flambeau.dispatch.declaration import op
from flambeau.dispatch.factory import FORMAT, OPTIONS, factory
from flambeau.kernels.creation import random as kernels
from flambeau.kernels.refused import characters, no_kernel
from flambeau.ops.coercion import resize_output
from flambeau.ops.node_names import one_node
from flambeau.ops.out_types import NO_RESIZING
from flambeau.ops.random.fills import (
    Fill,
    bernoulli_fill,
    check_probabilities,
    draw_like,
    full_range_fill,
    integer_fill,
    is_common,
    is_real,
    normal_fill,
    overwrite,
    refused,
    stream_of,
    uniform_fill,
    vmap_level,
)

# ---- in place -----------------------------------------------------------------------------------


def _fills(*overloads: str, node: str = "") -> Callable[..., Any]:
    """Declares a method that fills a tensor in place, by the parameters of its overloads."""
    def declare(body: Callable[..., Tensor]) -> Any:
        noted = one_node(body, name=node)

        def run(self: Tensor, *values: Any) -> Tensor:
            try:
                return (body if self._edge is None else noted)(self, *values)
            except RuntimeError:
                if type(self) in plain_types:
                    check_inplace(self, False, False)   # autograd's refusals come first
                raise
        name = body.__name__
        texts = []
        for overload in overloads:
            title, _, parameters = overload.rpartition(":")
            texts.append(f"{name}{title}(Tensor(a!) self, {parameters}{', ' * bool(parameters)}*, "
                         "Generator? generator=None) -> Tensor(a!)")
        return op(*texts, function=False, out=False, explicit=True, body=run, doc=body.__doc__)
    return declare


@_fills("float from=0., float to=1.")
def uniform_(self: Tensor, low: float, high: float, generator: Any) -> Tensor:
    """Fill with uniform numbers of [from, to), by default [0, 1); returns the tensor.

    >>> import flambeau
    >>> generator = flambeau.manual_seed(0)
    >>> flambeau.empty(2).uniform_(-1, 1)
    tensor([-0.0075,  0.5364])
    """
    return overwrite(self, uniform_fill(self._array.dtype, low, high, generator))


@_fills("float mean=0., float std=1.")
def normal_(self: Tensor, mean: float, std: float, generator: Any) -> Tensor:
    """Fill with normal numbers; returns the tensor."""
    return overwrite(self, normal_fill(self._array.dtype, mean, std, generator))


@_fills(".from:int from, int? to", ".to:int to", "", node="RandomBackward2")
def random_(self: Tensor, low: int | None, high: int | None, generator: Any) -> Tensor:
    """Fill with integers: `random_(to)` of [0, to), `random_(from, to)` of [from, to), `random_()`
    of those from 0 to the type's largest (for floating types, the largest before gaps begin)."""
    target = self._array.dtype
    if high is None:
        return overwrite(self, full_range_fill(target, low, generator))
    return overwrite(self, integer_fill(target, low or 0, high, generator))


@_fills(".Tensor:Tensor p", ".float:float p=0.5", node="BernoulliBackward2")
def bernoulli_(self: Tensor, p: Any, generator: Any) -> Tensor:
    """Fill with ones with probability `p` (a number, or a tensor that broadcasts), else zeros."""
    if isinstance(p, Tensor):
        if not self._array.size:
            return overwrite(self, lambda array: None)
        if not is_common(self._array.dtype):
            raise no_kernel("bernoulli_tensor_cpu_self_", self._array.dtype)
        check_probabilities(p._array)
        if interceptors and vmap_level() is not None:
            from flambeau.ops.random.sampling import bernoulli
            return self.copy_(bernoulli(p.expand(self._array.shape), generator=generator))
        stream, chances = stream_of(generator, "bernoulli_"), p.expand(self._array.shape)
        return overwrite(self, lambda array: kernels.bernoulli_each(stream, array, chances._array))
    return overwrite(self, bernoulli_fill(self._array.dtype, p, generator))


@_fills("float lambd=1.")
def exponential_(self: Tensor, lambd: float, generator: Any) -> Tensor:
    """Fill with exponential numbers of rate `lambd`."""
    target, stream = self._array.dtype, stream_of(generator, "exponential_")
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if self._array.size:
        _check_continuous("Exponential", type_name(from_numpy_dtype(target)), target)
    return overwrite(self, lambda array: kernels.exponential(stream, array, float(lambd)))


def _check_continuous(title: str, name: str, array_type: np.dtype) -> None:
    if array_type.char in characters("8"):
        raise no_kernel(f"{title.lower()}_cpu", array_type)
    if not is_real(array_type):
        raise RuntimeError(f"{title} distribution is a continuous probability distribution. dtype "
                           f"must be a floating point but you specified {name}")


@_fills("float p")
def geometric_(self: Tensor, p: float, generator: Any) -> Tensor:
    """Fill with how many trials of success probability `p` it took to succeed."""
    target, stream = self._array.dtype, stream_of(generator, "geometric_")
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if target.kind == "b" or not is_common(target):
        return overwrite(self, refused("geometric_cpu", target))
    return overwrite(self, lambda array: kernels.geometric(stream, array, float(p)))


@_fills("float median=0., float sigma=1.")
def cauchy_(self: Tensor, median: float, sigma: float, generator: Any) -> Tensor:
    """Fill with Cauchy numbers."""
    target, stream = self._array.dtype, stream_of(generator, "cauchy_")
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _check_continuous("Cauchy", c_name(target), target)
    return overwrite(self, lambda array: kernels.cauchy(stream, array, float(median), float(sigma)))


@_fills("float mean=1., float std=2.")
def log_normal_(self: Tensor, mean: float, std: float, generator: Any) -> Tensor:
    """Fill with numbers whose logarithms are normal, of mean `mean` and deviation `std`."""
    target, stream = self._array.dtype, stream_of(generator, "log_normal_")
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if not is_real(target):
        return overwrite(self, refused("log_normal_cpu", target))
    return overwrite(self, lambda array: kernels.log_normal(stream, array, float(mean), float(std)))


# ---- new tensors --------------------------------------------------------------------------------


def fill_out(name: str, out: Tensor, shape: tuple[int, ...], fill: Fill) -> Tensor:
    """`out=`, filled."""
    if out.requires_grad and grad_enabled():
        raise RuntimeError(NO_RESIZING if name == "randn" else
                           f"aten::{name}(): functions with out=... arguments don't support "
                           "automatic differentiation, but one of the arguments requires grad.")
    if out._array.shape != shape:
        resize_output(out, shape, False)
    return overwrite(out, fill)


_GENERATOR, _WHOLE = "Generator? generator", OPTIONS.replace("dtype=None", "dtype=long")
_INT64 = np.dtype(np.int64)
draws = partial(factory, drawing=(draw_like, fill_out))

rand = draws(
    f"rand(SymInt[] size, *, {OPTIONS}) -> Tensor",
    f"rand.generator(SymInt[] size, *, {_GENERATOR}, {OPTIONS}) -> Tensor", out=True,
    fill=lambda generator, target: uniform_fill(target, 0, 1, generator),
    doc="""Uniform numbers of [0, 1): `rand(2, 3)` or `rand((2, 3))`.

    >>> import flambeau
    >>> generator = flambeau.manual_seed(0)
    >>> flambeau.rand(3)
    tensor([0.4963, 0.7682, 0.0885])
    """)
randn = draws(
    f"randn(SymInt[] size, *, {OPTIONS}) -> Tensor",
    f"randn.generator(SymInt[] size, *, {_GENERATOR}, {OPTIONS}) -> Tensor", out=True,
    fill=lambda generator, target: normal_fill(target, 0, 1, generator),
    doc="""Normal numbers of mean 0 and deviation 1.

    Complex ones have mean 0 and a variance of 1/2 in either part.

    >>> import flambeau
    >>> generator = flambeau.manual_seed(0)
    >>> flambeau.randn(3)
    tensor([ 1.5410, -0.2934, -2.1788])
    """)
randint = draws(
    f"randint(SymInt high, SymInt[] size, *, {_WHOLE}) -> Tensor",
    f"randint.generator(SymInt high, SymInt[] size, *, {_GENERATOR}, {_WHOLE}) -> Tensor",
    f"randint.low(SymInt low, SymInt high, SymInt[] size, *, {_WHOLE}) -> Tensor",
    f"randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, {_GENERATOR}, {_WHOLE}) "
    "-> Tensor", out=True, type=_INT64, missing={"low": 0},
    fill=lambda low, high, generator, target: integer_fill(target, low, high, generator),
    doc="""Integers of [low, high): `randint(high, size)` (low is 0) or `randint(low, high, size)`.

    >>> import flambeau
    >>> generator = flambeau.manual_seed(0)
    >>> flambeau.randint(10, (4,))
    tensor([4, 9, 3, 0])
    """)


def _permutation_fill(n: int, generator: Any, target: np.dtype) -> Fill:
    stream = stream_of(generator, "randperm")
    refuse_negative((n,))
    if target.kind in "iu" and n - 1 > np.iinfo(target).max:
        raise RuntimeError(f"value cannot be converted to type {target.name}_t without overflow")
    if target.kind == "b" or not is_common(target):
        raise no_kernel("randperm", target)
    digits = kernels.digits(target)
    if is_real(target) and digits != 8 and n > (1 << digits) + 1:       # bfloat16 may round
        top = "2049" if digits == 11 else f"2^{digits}+1"
        raise RuntimeError(f"n cannot be greater than {top} for "
                           f"{type_name(from_numpy_dtype(target))} type.")
    return lambda array: _permute(stream, array)


def _permute(stream: kernels.Stream, array: np.ndarray) -> None:
    """A permutation in each row."""
    for row in array.reshape(-1, array.shape[-1]) if array.ndim > 1 else (array,):
        row[...] = kernels.permutation(stream, row.shape[-1])


randperm = draws(
    f"randperm(SymInt n, *, {_WHOLE}) -> Tensor",
    f"randperm.generator(SymInt n, *, {_GENERATOR}, {_WHOLE}) -> Tensor", out=True, type=_INT64,
    fill=_permutation_fill, doc="""The integers from 0 to n - 1 in random order.

    >>> import flambeau
    >>> generator = flambeau.manual_seed(0)
    >>> flambeau.randperm(4)
    tensor([0, 1, 3, 2])
    """)
rand_like = draws(
    f"rand_like(Tensor self, *, {OPTIONS}, {FORMAT}) -> Tensor",
    f"rand_like.generator(Tensor self, *, {_GENERATOR}, {OPTIONS}, {FORMAT}) -> Tensor", like=True,
    fill=lambda generator, target: uniform_fill(target, 0, 1, generator),
    doc="Uniform numbers of [0, 1) in the shape and type of `input`.")
randn_like = draws(
    f"randn_like(Tensor self, *, {OPTIONS}, {FORMAT}) -> Tensor",
    f"randn_like.generator(Tensor self, *, {_GENERATOR}, {OPTIONS}, {FORMAT}) -> Tensor", like=True,
    fill=lambda generator, target: normal_fill(target, 0, 1, generator),
    doc="Standard normal numbers in the shape and type of `input`.")
randint_like = draws(
    *[f"randint_like{overload}(Tensor self, {bounds}, *, {more}{OPTIONS}, {FORMAT}) -> Tensor"
      for overload, bounds, more in (
          ("", "SymInt high", ""), (".generator", "SymInt high", f"{_GENERATOR}, "),
          (".Tensor", "Tensor high", ""), (".Tensor_generator", "Tensor high", f"{_GENERATOR}, "),
          (".low_dtype", "SymInt low, SymInt high", ""),
          (".low_generator_dtype", "SymInt low, SymInt high", f"{_GENERATOR}, "))],
    like=True, missing={"low": 0},
    fill=lambda low, high, generator, target: integer_fill(target, low, high, generator),
    doc="""Integers of [low, high) in the shape and type of `input`: `randint_like(input, high)` or
    `randint_like(input, low, high)`.""")
