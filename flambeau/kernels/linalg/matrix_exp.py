"""The exponential of matrices."""
from __future__ import annotations

import math

import numpy as np

from flambeau import kernels
from flambeau.kernels.linalg.blas import numpy_for
from flambeau.kernels.linalg.fortran import address

# The numerators of Padé's approximants of exp, from the constant on, and up to which 1-norm
# each is exact (Higham, The scaling and squaring method for the matrix exponential revisited, 2005)
_PADE = [(limit, [math.factorial(2 * m - j) // (math.factorial(j) * math.factorial(m - j))
                  / (math.factorial(2 * m) / math.factorial(m)) for j in range(m + 1)])
         for m, limit in ((3, 1.495585217958292e-2), (5, 2.53939833006323e-1),
                          (7, 9.504178996162932e-1), (9, 2.097847961257068),
                          (13, 5.371920351148152))]


_native_exp = getattr(kernels._native, "matrix_exp", None)


def matrix_exp(a: np.ndarray) -> np.ndarray:
    """exp(A): exp(A / 2ˢ) by a quotient of polynomials in A / 2ˢ, squared s times."""
    if not a.size:
        return a.copy()
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    flat = a.astype(wide, order="C").reshape(-1, *a.shape[-2:])
    if _native_exp is not None:
        (gemm, is_wide), (gesv, _) = (address(name, flat.dtype) for name in ("gemm", "gesv"))
        with numpy_for(a), np.errstate(all="ignore"):
            _native_exp(gemm, gesv, is_wide, flat)
            return flat.reshape(a.shape).astype(a.dtype, copy=False)
    return _matrix_exp(flat).reshape(a.shape).astype(a.dtype, copy=False)


def _matrix_exp(flat: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"), numpy_for(flat):
        norms = np.abs(flat).sum(1).max(1)
        result = np.full_like(flat, np.nan)
        lowest = -1.0
        for limit, coefficients in _PADE:
            last = limit == _PADE[-1][0]
            chosen = (norms > lowest) & (norms < np.inf if last else norms <= limit)
            lowest = limit
            if chosen.all():
                result = _exp_of(flat, coefficients, norms / limit)
                break
            if chosen.any():
                result[chosen] = _exp_of(flat[chosen], coefficients, norms[chosen] / limit)
        return result


def _exp_of(x: np.ndarray, c: list[float], excess: np.ndarray) -> np.ndarray:
    times = np.maximum(np.ceil(np.log2(np.maximum(excess, 1))), 0).astype(np.int64)
    most = int(times.max())
    if most:
        x = np.ldexp(x.real, -times[:, None, None]) if x.dtype.kind == "f" else \
            x * 2.0 ** -times[:, None, None]
    square, eye = x @ x, np.eye(x.shape[-1])
    powers = [square]
    for _ in range(len(c) // 2 - 2):
        powers.append(powers[-1] @ square)
    even = c[0] * eye + sum(k * p for k, p in zip(c[2::2], powers))
    odd = x @ (c[1] * eye + sum(k * p for k, p in zip(c[3::2], powers)))
    result = np.linalg.solve(even - odd, even + odd)
    for i in range(most):
        if times.min() > i:
            result = result @ result
        else:
            again = times > i
            result[again] = result[again] @ result[again]
    return result
