"""Orthogonal polynomials of degree n, by their three-term recurrences.

Each family has p_0 = 1, a p_1 that is linear in x, and p_{k+1} = (a_k x + b_k) p_k - c_k p_{k-1}.
The derivative by x is the same recurrence, differentiated; it is made of ops, so every derivative
exists (PyTorch has none).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.tensor import Tensor, tensor_types
from flambeau.dispatch.pointwise import pointwise
from flambeau.kernels.pointwise.special import POLYNOMIALS, polynomials
from flambeau.ops.coercion import values_below
from flambeau.ops.factory.create import full_like, ones_like, zeros_like
from flambeau.ops.pointwise.comparison import isfinite
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.view.conversion import cast


def _slope_of(first: tuple[float, float], step: Any) -> Any:
    def slope(x: Any, n: Any) -> Tensor:
        """p' of degree n (rounded towards zero; of a negative degree 0) at x."""
        if type(n) not in tensor_types:
            n = full_like(x, float(n))
        n = n.detach()
        degree = cast(where(isfinite(n), n, -1), np.dtype(np.int64))
        result = zeros_like(x + n)
        before, here = ones_like(x), x * first[0] + first[1]
        before_slope, here_slope = zeros_like(x), zeros_like(x) + first[0]
        for k in range(1, int(values_below(degree).max(initial=-1)) + 1):
            result = where(degree == k, here_slope, result)
            a, b, c = step(k)
            factor = x * a + b
            before_slope, here_slope = here_slope, here * a + factor * here_slope - before_slope * c
            before, here = here, factor * here - before * c
        return result
    return slope


def _declare(name: str, doc: str) -> None:
    full = f"special_{name}"
    pointwise(f"{full}(Tensor x, Tensor n)", f"{full}.x_scalar(Scalar x, Tensor n)",
              f"{full}.n_scalar(Tensor x, Scalar n)", kernel=polynomials[name], floating=True,
              inplace=False, refuses=(f"{name}_cpu", "ecW8"), d_x=_slope_of(*POLYNOMIALS[name]),
              out_reported_as=False,
              doc=f"The {doc} of degree `n` at the input.")


for _kind in "tuvw":
    _declare(f"chebyshev_polynomial_{_kind}", f"Chebyshev polynomial {_kind.upper()}")
    _declare(f"shifted_chebyshev_polynomial_{_kind}",
             f"Chebyshev polynomial {_kind.upper()} of 2x - 1")
_declare("hermite_polynomial_h", "physicists' Hermite polynomial")
_declare("hermite_polynomial_he", "probabilists' Hermite polynomial")
_declare("laguerre_polynomial_l", "Laguerre polynomial")
_declare("legendre_polynomial_p", "Legendre polynomial")
