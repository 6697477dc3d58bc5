"""Discrete Fourier transforms.

Three linear maps carry all of them: complex to complex, real to complex, and complex to real. Each
is given by its dimensions, its direction and what it is scaled by: "none", "ortho" (1/√n) or "by_n"
(1/n). The adjoint of one is another, so every derivative is again a transform.
"""
from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy as np

from flambeau.core import dtypes
from flambeau.core.dtypes import FLOATING
from flambeau.core.op import linear
from flambeau.core.promotion import type_name
from flambeau.core.shapes import size_of, wrap_dim
from flambeau.core.tensor import Tensor, basis, wrap
from flambeau.dispatch.factory import finish
from flambeau.kernels import fourier, views
from flambeau.ops.indexing.index import basic_view, slice_backward
from flambeau.ops.linalg.support import composed, conj
from flambeau.ops.pointwise.arithmetic import mul
from flambeau.ops.view.rearranging import roll

_HIDDEN: dict[str, Any] = {"method": False, "namespace": None, "dims": "dims"}

# ---- the three maps -----------------------------------------------------------------------------


def _factor(x: np.ndarray, dims: Any, scale: str, size: int = 0) -> float:
    """The number that sums are multiplied by; `size`: the real extent of the last dimension."""
    n = prod([x.shape[d] for d in dims[:-1]]) * (size or x.shape[dims[-1]])
    return {"none": 1.0, "ortho": 1 / math.sqrt(n), "by_n": 1 / n}[scale]


def _laid_out(x: np.ndarray, dims: Any, keep_last: bool) -> tuple[np.ndarray, list[int]]:
    """x, the transformed dimensions innermost in memory, and the order of its dimensions there: by
    falling stride, but the last of `dims` stays so. Results keep this layout."""
    def falling(several: Any) -> list[int]:
        return sorted(several, key=lambda d: -x.strides[d])
    order = falling([d for d in range(x.ndim) if d not in dims])
    order += [*falling(dims[:-1]), dims[-1]] if keep_last else falling(dims)
    x = x.transpose(order)
    return x if x.flags.c_contiguous else views.contiguous(x), order


def _over(x: np.ndarray, axes: Any, forward: bool, factor: float = 1.0) -> np.ndarray:
    for axis in axes:
        x, factor = fourier.c2c(x, axis, forward, factor), 1.0
    return x


def _c2c(self: np.ndarray, dims: Any, forward: bool, scale: str) -> np.ndarray:
    if not dims:
        return self.copy("K")
    x, order = _laid_out(self, dims, False)
    axes = range(x.ndim - 1, x.ndim - 1 - len(dims), -1)
    return views.in_order(_over(x, axes, forward, _factor(self, dims, scale)), order)


@linear(_c2c, node_name="FftC2CBackward0", name="fft_c2c", **_HIDDEN,
        d_self=lambda grad, dims, forward, scale: c2c(grad, dims, not forward, scale))
def c2c(input: Tensor, dims: Any, forward: bool, scale: str) -> Any:
    return input, dims, forward, scale


def _r2c(self: np.ndarray, dims: Any, scale: str, half: bool) -> np.ndarray:
    x, order = _laid_out(self, dims, half)
    found = fourier.r2c(x, _factor(self, dims, scale))
    if not half:
        n, have = x.shape[-1], found.shape[-1]
        whole = np.empty(x.shape, found.dtype)
        whole[..., :have] = found
        np.conjugate(found[..., n - have:0:-1], out=whole[..., have:])
        found = whole
    return views.in_order(_over(found, range(x.ndim - 2, x.ndim - 1 - len(dims), -1), True), order)


def _r2c_back(grad: Tensor, self_shape: Any, dims: Any, scale: str, half: bool) -> Tensor:
    if half:
        grad = resized(grad, dims[-1], self_shape[dims[-1]])
    return basis.real(c2c(grad, dims, False, scale))


@linear(_r2c, node_name="FftR2CBackward0", name="fft_r2c", d_self=_r2c_back, **_HIDDEN)
def r2c(input: Tensor, dims: Any, scale: str, half: bool) -> Any:
    """Real to complex; `half`: without the mirrored half of the last dimension."""
    return input, dims, scale, half


def _c2r(self: np.ndarray, dims: Any, scale: str, size: int) -> np.ndarray:
    factor = _factor(self, dims, scale, size)
    if len(dims) > 1:
        self = _c2c(self, dims[:-1], False, "none")
    x, order = _laid_out(self, dims[-1:], False)
    return views.in_order(fourier.c2r(x, size, factor), order)


def _c2r_back(grad: Tensor, self_shape: Any, dims: Any, scale: str, size: int) -> Tensor:
    """Elements that stand for themselves and their mirror image count twice."""
    n, last = self_shape[dims[-1]], dims[-1]
    twice = np.ones(n, grad._array.dtype)
    twice[1:(size + 1) // 2] = 2
    weights = wrap(twice.reshape((n,) + (1,) * (len(self_shape) - 1 - last)))
    return mul(r2c(grad, dims, scale, True), weights)


@linear(_c2r, node_name="FftC2RBackward0", name="fft_c2r", d_self=_c2r_back, **_HIDDEN)
def c2r(input: Tensor, dims: Any, scale: str, size: int) -> Any:
    """A half spectrum to `size` real values in the last of `dims`: inverse transforms."""
    return input, dims, scale, size


# ---- arguments ----------------------------------------------------------------------------------


def resized(x: Tensor, dim: int, n: int) -> Tensor:
    """The first `n` slices along `dim`, or zeros after the last."""
    shape = x._array.shape
    have = shape[dim]
    if n == have:
        return x
    index = (*(slice(None),) * dim, slice(0, min(n, have)), Ellipsis)
    if n < have:
        return basic_view(x, index)
    full = (*(slice(0, m) for m in shape[:dim]), slice(0, have),
            *(slice(0, m) for m in shape[dim + 1:]))
    return slice_backward(x, (*shape[:dim], n, *shape[dim + 1:]), full)


def _scale_of(norm: str | None, forward: bool) -> str:
    if norm in (None, "backward"):
        return "none" if forward else "by_n"
    if norm == "forward":
        return "by_n" if forward else "none"
    if norm == "ortho":
        return "ortho"
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _floating(x: Tensor) -> Tensor:
    d = x._array.dtype
    if d not in FLOATING:
        return basis.cast(x, dtypes.default_float())
    if d.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {type_name(x.dtype)}")
    if d.kind == "W":
        raise RuntimeError("MKL FFT doesn't support tensors of type: Half")
    return x


def _complex(x: Tensor) -> Tensor:
    x = _floating(x)
    return x if x._array.dtype.kind in "cW" else basis.cast(x, x.dtype.to_complex().numpy)


def _real(x: Tensor, name: str, what: str = "real") -> Tensor:
    if x._array.dtype.kind in "cW":
        raise RuntimeError(f"{name} expects a {what} input tensor, but got {type_name(x.dtype)}")
    return _floating(x)


def _wrapped(dim: int, ndim: int) -> int:
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def _one_dim(x: Tensor, n: int | None, dim: int, default: int | None = None) -> tuple[int, int]:
    dim = _wrapped(dim, x._array.ndim)
    n = (x._array.shape[dim] if default is None else default) if n is None else n
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dim, n


def _half(x: Tensor, dim: int) -> int:
    """How many real values a half spectrum stands for, by default."""
    return 2 * (x._array.shape[wrap_dim(dim, x._array.ndim)] - 1) if x._array.ndim else 0


def _many_dims(x: Tensor, s: Any, dim: Any, name: str) -> tuple[tuple[int, ...], list[int]]:
    shape = x._array.shape
    s = None if s is None else list(size_of((s,)))
    if dim is None:
        if s is not None and len(s) > len(shape):
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has "
                               f"{len(shape)} dimensions.")
        dims = tuple(range(len(shape) - (len(shape) if s is None else len(s)), len(shape)))
    else:
        dims = tuple([_wrapped(d, len(shape)) for d in ((dim,) if isinstance(dim, int) else dim)])
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = [shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims)]
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, sizes


def _fitted(x: Tensor, dims: Any, sizes: Any) -> Tensor:
    for d, n in zip(dims, sizes):
        x = resized(x, d, n)
    return x


# ---- one dimension ------------------------------------------------------------------------------


def _full(x: Tensor, dims: Any, norm: str | None, forward: bool) -> Tensor:
    scale = _scale_of(norm, forward)
    if x._array.dtype.kind not in "cW" and dims:
        found = r2c(x, dims, scale, False)
        return found if forward else conj(found)
    return c2c(_complex(x), dims, forward, scale)


def _named(name: str) -> Any:
    """A function of `flambeau.fft`: its body is called `<name>_`."""
    return composed(namespace="fft", name=name)


@_named("fft")
def fft_(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """X_k = Σ_j x_j exp(-2πi jk/n) along `dim`, cut or padded with zeros to `n`.

    `norm` "backward" leaves it so, "ortho" divides by √n, "forward" by n; inverse transforms divide
    by the rest.

    >>> import flambeau
    >>> flambeau.fft.fft(flambeau.tensor([1.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.-0.j])
    """
    x = _floating(input)
    d, n = _one_dim(x, n, dim)
    return _full(resized(x, d, n), (d,), norm, True)


@_named("ifft")
def ifft_(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `fft`."""
    x = _floating(input)
    d, n = _one_dim(x, n, dim)
    return _full(resized(x, d, n), (d,), norm, False)


@_named("rfft")
def rfft_(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first n//2 + 1 values of `fft` of real numbers: the rest mirrors them.

    >>> import flambeau
    >>> flambeau.fft.rfft(flambeau.ones(4))
    tensor([4.+0.j, 0.+0.j, 0.+0.j])
    """
    x = _real(input, "rfft")
    d, n = _one_dim(x, n, dim)
    return r2c(resized(x, d, n), (d,), _scale_of(norm, True), True)


@_named("irfft")
def irfft_(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`: `n` real values (by default an even number)."""
    x = _complex(input)
    d, n = _one_dim(x, n, dim, _half(x, dim))
    return c2r(resized(x, d, n // 2 + 1), (d,), _scale_of(norm, False), n)


@_named("hfft")
def hfft_(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`fft` of a signal whose second half mirrors (conjugates) the first: real values."""
    x = _complex(input)
    d, n = _one_dim(x, n, dim, _half(x, dim))
    return c2r(conj(resized(x, d, n // 2 + 1)), (d,), _scale_of(norm, True), n)


@_named("ihfft")
def ihfft_(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`."""
    x = _real(input, "ihfft")
    d, n = _one_dim(x, n, dim)
    return conj(r2c(resized(x, d, n), (d,), _scale_of(norm, False), True))


# ---- several dimensions -------------------------------------------------------------------------


def _fftn(input: Tensor, s: Any, dim: Any, norm: str | None, name: str) -> Tensor:
    x = _floating(input)
    dims, sizes = _many_dims(x, s, dim, name)
    x = _fitted(x, dims, sizes)
    if name == "ifftn":
        return c2c(_complex(x), dims, False, _scale_of(norm, False))
    return _full(x, dims, norm, True)


def _rfftn(input: Tensor, s: Any, dim: Any, norm: str | None, name: str) -> Tensor:
    x = _real(input, name, "real-valued")
    dims, sizes = _many_dims(x, s, dim, name)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return r2c(_fitted(x, dims, sizes), dims, _scale_of(norm, True), True)


def _from_half(x: Tensor, s: Any, dim: Any, name: str) -> tuple[Tensor, tuple[int, ...], int]:
    """The spectrum in the extents asked for, its dimensions, the extent of the last result."""
    dims, sizes = _many_dims(x, s, dim, name)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    last = 2 * (x._array.shape[dims[-1]] - 1) if s is None or list(size_of((s,)))[-1] == -1 \
        else sizes[-1]
    if last < 1:
        raise RuntimeError(f"Invalid number of data points ({last}) specified")
    return _fitted(x, dims, [*sizes[:-1], last // 2 + 1]), dims, last


def _irfftn(input: Tensor, s: Any, dim: Any, norm: str | None, name: str) -> Tensor:
    x, dims, last = _from_half(_complex(input), s, dim, name)
    return c2r(x, dims, _scale_of(norm, False), last)


def _hfftn(input: Tensor, s: Any, dim: Any, norm: str | None, name: str) -> Tensor:
    x, dims, last = _from_half(_complex(input), s, dim, name)
    scale = _scale_of(norm, True)
    return c2r(conj(c2c(x, dims[:-1], True, scale)), dims[-1:], scale, last)


def _ihfftn(input: Tensor, s: Any, dim: Any, norm: str | None, name: str) -> Tensor:
    x = _real(input, name, "real-valued")
    dims, sizes = _many_dims(x, s, dim, name)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    scale = _scale_of(norm, False)
    return c2c(conj(r2c(_fitted(x, dims, sizes), dims[-1:], scale, True)), dims[:-1], False, scale)


_MANY = {"fft": (_fftn, "`fft` over several dimensions (by default all), cut or padded to `s`"),
         "ifft": (_fftn, "The inverse of `fftn`"),
         "rfft": (_rfftn, "`fftn` of real numbers, without the mirrored half of the last one"),
         "irfft": (_irfftn, "The inverse of `rfftn`"),
         "hfft": (_hfftn, "`fftn` of signals that are Hermitian in the last one: real values"),
         "ihfft": (_ihfftn, "The inverse of `hfftn`")}


def _declare(stem: str) -> None:
    body, doc = _MANY[stem]

    def over_many(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
        return body(input, s, dim, norm, f"{stem}n")

    def over_two(input: Tensor, s: Any = None, dim: Any = (-2, -1),
                 norm: str | None = None) -> Tensor:
        return body(input, s, dim, norm, f"{stem}n")
    for function, suffix, end in ((over_many, "n", "."), (over_two, "2", ", the last two.")):
        function.__doc__ = doc + end
        composed(function, namespace="fft", name=stem + suffix)


for _stem in _MANY:
    _declare(_stem)

# ---- frequencies and their order ----------------------------------------------------------------


def _frequencies(name: str, of: Any, doc: str) -> None:
    def function(n: int, d: float = 1.0, *, dtype: Any = None, layout: Any = None,
                 device: Any = None, requires_grad: bool = False) -> Tensor:
        target = dtypes.as_numpy_dtype(dtype) or dtypes.default_float()
        if target not in FLOATING:
            raise RuntimeError(f"{name} requires a floating point or complex dtype")
        values = of(n).astype(target) * target.type(1 / (n * d)) if n else np.zeros(0, target)
        return finish(values, device, requires_grad)
    function.__doc__ = doc
    composed(function, namespace="fft", name=name)


_frequencies("fftfreq", lambda n: np.fft.ifftshift(np.arange(-(n // 2), (n + 1) // 2)),
             """The frequencies of `fft`'s values, for samples `d` apart: 0, 1, … then the negative.

    >>> import flambeau
    >>> flambeau.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """)
_frequencies("rfftfreq", lambda n: np.arange(n // 2 + 1), "The frequencies of `rfft`'s values.")


def _shift(name: str, sign: int, doc: str) -> None:
    def function(input: Tensor, dim: Any = None) -> Tensor:
        n = input._array.ndim
        dims = range(n) if dim is None else (dim,) if isinstance(dim, int) else dim
        dims = tuple([wrap_dim(d, n) for d in dims])
        sizes = [input._array.shape[d] for d in dims]
        shifts = [m // 2 if sign > 0 else (m + 1) // 2 for m in sizes]
        return roll(input, shifts, dims) if dims else basis.clone(input)
    function.__doc__ = doc
    composed(function, namespace="fft", name=name)


_shift("fftshift", 1, """Values reordered so that frequency 0 stands in the middle.

    >>> import flambeau
    >>> flambeau.fft.fftshift(flambeau.arange(4))
    tensor([2, 3, 0, 1])
    """)
_shift("ifftshift", -1, "The inverse of `fftshift`.")
