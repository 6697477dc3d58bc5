"""Window functions: `flambeau.signal.windows`, and the older ones of `flambeau` itself.

A window of M values is a formula of n = 0 … M - 1; a *periodic* one (`sym=False`) is the symmetric
one of M + 1 values without the last. See Harris, On the use of windows for harmonic analysis with
the discrete Fourier transform, 1978.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from flambeau.core import dtypes
from flambeau.core.dtypes import FLOATING, from_numpy_dtype
from flambeau.core.tensor import Tensor
from flambeau.core.type_info import strided
from flambeau.dispatch.factory import OPTIONS, factory
from flambeau.dispatch.python_functions import python_function
from flambeau.ops.factory.create import empty, ones
from flambeau.ops.factory.from_data import tensor
from flambeau.ops.factory.ranges import arange, linspace
from flambeau.ops.view.join import cat

# ---- flambeau.signal.windows --------------------------------------------------------------------


def _make_window(name: str, M: int, dtype: Any, layout: Any, device: Any, requires_grad: bool,
                 start: float, step: float, values: Callable[[Tensor], Tensor],
                 single: bool = True) -> Tensor:
    """A window of `values` at start, start + step, …, computed in its own type. `single` says that
    a window of one value is 1."""
    own = _check_window(name, M, dtype, layout)
    options = {"dtype": own, "layout": layout, "device": device, "requires_grad": requires_grad}
    if M == 0:
        return empty(0, **options)
    if M == 1 and single:
        return ones(1, **options)
    return values(linspace(start=start, end=start + (M - 1) * step, steps=M, **options))


def _check_window(name: str, M: int, dtype: Any, layout: Any) -> Any:
    """The type of a window's values."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    own = from_numpy_dtype(dtypes.default_float()) if dtype is None else dtype
    if own not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {own}")
    return own


def _sample_step(M: int, sym: bool) -> float:
    """1 / (M - 1), and 1 / M for a periodic window."""
    return 1 / ((M - 1 if M < 2 or sym else M) or 1)


def _sum_of_cosines(x: Tensor, coefficients: Iterable[float]) -> Tensor:
    """Σ (-1)ᵏ a_k cos(k x)"""
    a = tensor([(-1) ** k * value for k, value in enumerate(coefficients)], dtype=x.dtype)
    k = arange(len(a), dtype=x.dtype)
    return (a.unsqueeze(-1) * (k.unsqueeze(-1) * x).cos()).sum(0)


def _cosine_window(name: str, coefficients: tuple[float, ...], doc: str,
                   checks: bool = False) -> Any:
    def window(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided,
               device: Any = None, requires_grad: bool = False) -> Tensor:
        if checks:
            _check_window(name, M, dtype, layout)
        return general_cosine(M, a=coefficients, sym=sym, dtype=dtype, layout=layout,
                              device=device, requires_grad=requires_grad)
    window.__doc__ = doc
    return python_function(window, namespace="signal.windows", name=name)


@python_function(namespace="signal.windows")
def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None,
                   layout: Any = strided, device: Any = None, requires_grad: bool = False
                   ) -> Tensor:
    """Σ (-1)ᵏ a_k cos(2πkn/(M-1))"""
    def values(x: Tensor) -> Tensor:
        if not isinstance(a, Iterable):
            raise TypeError("Coefficients must be a list/tuple")
        if not a:
            raise ValueError("Coefficients cannot be empty")
        return _sum_of_cosines(x, a)
    return _make_window("general_cosine", M, dtype, layout, device, requires_grad,
                        0, 2 * np.pi * _sample_step(M, sym), values)


hann = _cosine_window("hann", (0.5, 0.5), """(1 - cos(2πn/(M-1))) / 2

    >>> import flambeau
    >>> flambeau.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """)
hamming = _cosine_window("hamming", (0.54, 1 - 0.54), "0.54 - 0.46 cos(2πn/(M-1))")
blackman = _cosine_window("blackman", (0.42, 0.5, 0.08),
                          "0.42 - 0.5 cos(2πn/(M-1)) + 0.08 cos(4πn/(M-1))", checks=True)
nuttall = _cosine_window("nuttall", (0.3635819, 0.4891775, 0.1365995, 0.0106411),
                         "Nuttall's sum of four cosines, with low sidelobes.")


@python_function(namespace="signal.windows")
def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None,
                    layout: Any = strided, device: Any = None, requires_grad: bool = False
                    ) -> Tensor:
    """α - (1 - α) cos(2πn/(M-1))"""
    return general_cosine(M, a=(alpha, 1 - alpha), sym=sym, dtype=dtype, layout=layout,
                          device=device, requires_grad=requires_grad)


@python_function(namespace="signal.windows")
def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """1 - |2n/(M-1) - 1|, a triangle."""
    return _make_window("bartlett", M, dtype, layout, device, requires_grad,
                        -1, 2 * _sample_step(M, sym), lambda x: 1 - x.abs())


@python_function(namespace="signal.windows")
def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided,
           device: Any = None, requires_grad: bool = False) -> Tensor:
    """sin(π(n + ½)/M)"""
    _check_window("cosine", M, dtype, layout)
    step = np.pi / max(M if M <= 1 or sym else M + 1, 1)
    return _make_window("cosine", M, dtype, layout, device, requires_grad,
                        0.5 * step, step, lambda x: x.sin(), single=False)


def _center(M: int, sym: bool) -> float:
    return (M if M > 1 and not sym else M - 1) / 2


@python_function(namespace="signal.windows")
def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
                dtype: Any = None, layout: Any = strided, device: Any = None,
                requires_grad: bool = False) -> Tensor:
    """exp(-|n - center| / τ)"""
    _check_window("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    center = _center(M, sym) if center is None else center
    return _make_window("exponential", M, dtype, layout, device, requires_grad,
                        -center / tau, 1 / tau, lambda x: (-x.abs()).exp(), single=False)


@python_function(namespace="signal.windows")
def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None,
             layout: Any = strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """exp(-½ ((n - (M-1)/2) / std)²)"""
    _check_window("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    step = 1 / (std * 2 ** 0.5)
    return _make_window("gaussian", M, dtype, layout, device, requires_grad,
                        -_center(M, sym) * step, step, lambda x: (-(x ** 2)).exp(), single=False)


@python_function(namespace="signal.windows")
def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None,
           layout: Any = strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """I₀(β √(1 - (2n/(M-1) - 1)²)) / I₀(β)"""
    _check_window("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def values(x: Tensor) -> Tensor:
        top = tensor(beta, dtype=x.dtype)
        return (top * top - x.clamp(max=top) ** 2).sqrt().i0() / top.i0()
    return _make_window("kaiser", M, dtype, layout, device, requires_grad,
                        -beta, 2 * beta * _sample_step(M, sym), values)


# ---- the older functions ------------------------------------------------------------------------


def _declare_legacy_window(name: str, values: Any, doc: str, **parameters: float) -> Any:
    overloads = ["", ".periodic"] + (
        [".beta"] if name == "kaiser_window" else
        [".periodic_" + "_".join([*parameters][:n]) for n in range(1, len(parameters) + 1)])
    given = ["int window_length", "bool periodic", *[f"float {p}" for p in parameters]]
    schemas = [f"{name}{overload}({', '.join(given[:n])}, *, {OPTIONS}) -> Tensor"
               for n, overload in enumerate(overloads, 1)]

    def kernel(window_length: int, periodic: bool, *rest: Any) -> np.ndarray:
        n, target = window_length, rest[-1]
        own = from_numpy_dtype(target)
        if target not in FLOATING or target.kind in "cW":
            raise RuntimeError(f"{name} expects floating point dtypes, got: dtype={own}")
        if n < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
        if n <= 1:
            return np.ones(n, target)
        return values(arange(n + periodic, dtype=own), n - 1 + periodic,
                      *rest[:-1])[:n]._array.copy()
    return factory(*schemas, kernel=kernel, missing={"periodic": True, **parameters}, doc=doc)


def _triangle_of(n: Tensor, last: int) -> Tensor:
    rising = n * (2 / last)
    half = 1 + last // 2
    return cat([rising[:half], 2 - rising[half:]])


def _raised_cosine(n: Tensor, last: int, alpha: float, beta: float) -> Tensor:
    return (n * (2 * np.pi / last)).cos() * -beta + alpha


def _blackman_of(n: Tensor, last: int) -> Tensor:
    angle = n * (np.pi / last)
    return (angle * 4).cos() * 0.08 - (angle * 2).cos() * 0.5 + 0.42


bartlett_window = _declare_legacy_window("bartlett_window", _triangle_of,
                                         "A triangle; see `signal.windows.bartlett`.")
hann_window = _declare_legacy_window("hann_window",
                                     lambda n, last: _raised_cosine(n, last, 0.5, 0.5),
                                     """Hann's window; see `signal.windows.hann`.

    >>> import flambeau
    >>> flambeau.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """)
hamming_window = _declare_legacy_window("hamming_window", _raised_cosine,
                                        "α - β cos(2πn/N); see `signal.windows.general_hamming`.",
                                        alpha=0.54, beta=0.46)
blackman_window = _declare_legacy_window("blackman_window", _blackman_of,
                                         "Blackman's window; see `signal.windows.blackman`.")


def _kaiser_of(n: Tensor, last: int, beta: float) -> Tensor:
    x = 2 * n.double() / last - 1
    return ((1 - x * x).clamp(min=0).sqrt() * beta).i0().div(tensor(beta).double().i0()).to(n.dtype)


kaiser_window = _declare_legacy_window("kaiser_window", _kaiser_of,
                                       "Kaiser's window; see `signal.windows.kaiser`.", beta=12.0)
