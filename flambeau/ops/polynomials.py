"""Orthogonal polynomials of degree n, by their three-term recurrences.

Each family has p_0 = 1, a p_1 that is linear in x, and p_{k+1} = (a_k x + b_k) p_k - c_k p_{k-1}.
The recurrences are made of ops, so every derivative exists (PyTorch has none).
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau.core import dtypes
from flambeau.core.dtypes import FLOATING
from flambeau.core.op import composite
from flambeau.core.promotion import convert, is_half, result_type, type_name
from flambeau.core.tensor import Tensor, basis, wrap
from flambeau.ops.coercion import values_below
from flambeau.ops.comparison import isfinite
from flambeau.ops.conditional import where
from flambeau.ops.pointwise import as_number


def _operands(name: str, input: Any, n: Any) -> tuple[Tensor, Any]:
    """x as a floating tensor; the degree as a number or a tensor of that type."""
    given = [t._array for t in (input, n) if isinstance(t, Tensor)]
    if not given:
        raise TypeError(f"{name}() received an invalid combination of arguments: one at least must "
                        "be a Tensor")
    numbers = [as_number(v, name, "input", 1) for v in (input, n) if not isinstance(v, Tensor)]
    wanted = result_type(given, numbers).numpy
    wanted = wanted if wanted in FLOATING else dtypes.default_float()
    if wanted.kind in "cW" or is_half(wanted):
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for "
                                  f"'{type_name(dtypes.from_numpy_dtype(wanted))}'")
    x, n = (wrap(convert(np.asarray(v), wanted)) if not isinstance(v, Tensor) else v
            if v._array.dtype == wanted else basis.cast(v, wanted) for v in (input, n))
    return x, n


def evaluate(x: Tensor, n: Tensor, first: tuple[float, float],
             step: Callable[[int], tuple[float, float, float]]) -> Tensor:
    """The polynomials of degrees n (rounded towards zero; of a negative degree 0) at x."""
    n = n.detach()
    degree = basis.cast(where(isfinite(n), n, -1), np.dtype(np.int64))
    highest = int(values_below(degree).max(initial=-1))
    result = where(degree == 0, 1, basis.zeros_like(x + n))
    before, here = basis.ones_like(x), x * first[0] + first[1]
    for k in range(1, highest + 1):
        result = where(degree == k, here, result)
        a, b, c = step(k)
        before, here = here, (x * a + b) * here - before * c
    return result


def _declare(name: str, first: tuple[float, float], step: Any, doc: str) -> None:
    def polynomial(input: Any, n: Any, *, out: Any = None) -> Tensor:
        result = evaluate(*_operands(name, input, n), first, step)
        return result if out is None else basis.into(out, function.op, result, (input, n))

    polynomial.__name__, polynomial.__doc__ = name, f"The {doc} of degree `n` at the input."
    function = composite(polynomial, namespace="special")


_KINDS = {"t": (1, 0), "u": (2, 0), "v": (2, -1), "w": (2, 1)}
for _kind, (_a, _b) in _KINDS.items():
    _declare(f"chebyshev_polynomial_{_kind}", (_a, _b), lambda k: (2, 0, 1),
             f"Chebyshev polynomial {_kind.upper()}")
    _declare(f"shifted_chebyshev_polynomial_{_kind}", (2 * _a, _b - _a), lambda k: (4, -2, 1),
             f"Chebyshev polynomial {_kind.upper()} of 2x - 1")
_declare("hermite_polynomial_h", (2, 0), lambda k: (2, 0, 2 * k), "physicists' Hermite polynomial")
_declare("hermite_polynomial_he", (1, 0), lambda k: (1, 0, k), "probabilists' Hermite polynomial")
_declare("laguerre_polynomial_l", (-1, 1),
         lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)), "Laguerre polynomial")
_declare("legendre_polynomial_p", (1, 0), lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1)),
         "Legendre polynomial")
