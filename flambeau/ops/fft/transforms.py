"""Discrete Fourier transforms.

Three linear maps carry all of them: complex to complex, real to complex, and complex to real. Each
is given by its dimensions, its direction and its normalization: none, by 1/√n, or by 1/n. The
adjoint of one is another, so every derivative is again a transform.
"""
from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy as np

from flambeau.core import dtypes
from flambeau.core.dtypes import FLOATING
from flambeau.core.promotion import type_name
from flambeau.core.shapes import refuse_negative, wrap_dim, wrap_existing_dim
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.declaration import op
from flambeau.dispatch.factory import OPTIONS, factory
from flambeau.kernels._extension import compiled
from flambeau.kernels.linalg import fourier
from flambeau.kernels.moving import views
from flambeau.kernels.refused import no_kernel
from flambeau.ops.factory.ranges import other_count
from flambeau.ops.indexing.basic import basic_view
from flambeau.ops.linalg.support import conj, differentiating, with_gradient_by_rows
from flambeau.ops.out_types import FOUND_TYPE
from flambeau.ops.pointwise.arithmetic import mul
from flambeau.ops.pointwise.complex import conjugated, real_part
from flambeau.ops.spatial.padding import constant_pad_nd
from flambeau.ops.view.conversion import cast
from flambeau.ops.view.rearranging import roll

NONE, BY_ROOT, BY_N = range(3)              # normalizations

# ---- the three maps -----------------------------------------------------------------------------


def _scale_factor(x: np.ndarray, dims: Any, normalization: int, size: int = 0) -> float:
    """The number that sums are multiplied by; `size`: the real extent of the last dimension."""
    n = prod([x.shape[d] for d in dims[:-1]]) * (size or x.shape[dims[-1]])
    return (1.0, 1 / math.sqrt(n), 1 / n)[normalization]


def _laid_out(x: np.ndarray, dims: Any, keep_last: bool) -> tuple[np.ndarray, list[int]]:
    """x, the transformed dimensions innermost in memory, and the order of its dimensions there: by
    falling stride, but the last of `dims` stays so. Results keep this layout."""
    def falling(several: Any) -> list[int]:
        return sorted(several, key=lambda d: -x.strides[d])
    order = falling([d for d in range(x.ndim) if d not in dims])
    order += [*falling(dims[:-1]), dims[-1]] if keep_last else falling(dims)
    x = x.transpose(order)
    return x if x.flags.c_contiguous else views.contiguous(x), order


def _transform_axes(x: np.ndarray, axes: Any, forward: bool, factor: float = 1.0) -> np.ndarray:
    for axis in axes:
        x, factor = fourier.c2c(x, axis, forward, factor), 1.0
    return x


@compiled("fft_c2c")
def _c2c_kernel(self: np.ndarray, dims: Any, normalization: int, forward: bool) -> np.ndarray:
    if not dims:
        return self.copy("K")
    x, order = _laid_out(self, dims, False)
    axes = range(x.ndim - 1, x.ndim - 1 - len(dims), -1)
    return views.in_order(_transform_axes(x, axes, forward,
                                          _scale_factor(self, dims, normalization)), order)


c2c = op("_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
         kernel=_c2c_kernel, kind="linear", some_dims="dim", method=False, node="FftC2CBackward0",
         d_self=lambda grad, dim, normalization, forward: c2c(
             grad, dim, normalization, not forward))


@compiled("fft_r2c")
def _r2c_kernel(self: np.ndarray, dims: Any, normalization: int, onesided: bool) -> np.ndarray:
    x, order = _laid_out(self, dims, onesided)
    found = fourier.r2c(x, _scale_factor(self, dims, normalization))
    if not onesided:
        n, have = x.shape[-1], found.shape[-1]
        whole = np.empty(x.shape, found.dtype)
        whole[..., :have] = found
        np.conjugate(found[..., n - have:0:-1], out=whole[..., have:])
        found = whole
    return views.in_order(_transform_axes(found, range(x.ndim - 2, x.ndim - 1 - len(dims), -1),
                                          True), order)


def _r2c_vjp(grad: Tensor, self_shape: Any, dim: Any, normalization: int, onesided: bool
             ) -> Tensor:
    if onesided and grad._array.shape != self_shape:
        grad = with_gradient_by_rows(resized(grad, dim[-1], self_shape[dim[-1]]))
    return real_part(c2c(grad, dim, normalization, False))


r2c = op("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
         kernel=_r2c_kernel, kind="linear", some_dims="dim", method=False, node="FftR2CBackward0",
         d_self=_r2c_vjp)


@compiled("fft_c2r")
def _c2r_kernel(self: np.ndarray, dims: Any, normalization: int, size: int) -> np.ndarray:
    factor = _scale_factor(self, dims, normalization, size)
    if len(dims) > 1:
        self = _c2c_kernel(self, dims[:-1], NONE, False)
    x, order = _laid_out(self, dims[-1:], False)
    return views.in_order(fourier.c2r(x, size, factor), order)


def _c2r_vjp(grad: Tensor, self_shape: Any, dim: Any, normalization: int, last_dim_size: int
             ) -> Tensor:
    """Elements that stand for themselves and their mirror image count twice."""
    n, last = self_shape[dim[-1]], dim[-1]
    twice = np.ones(n, grad._array.dtype)
    twice[1:(last_dim_size + 1) // 2] = 2
    weights = wrap(twice.reshape((n,) + (1,) * (len(self_shape) - 1 - last)))
    return mul(r2c(grad, dim, normalization, True), weights)


c2r = op("_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
         kernel=_c2r_kernel, kind="linear", some_dims="dim", method=False, node="FftC2RBackward0",
         d_self=_c2r_vjp)


# ---- arguments ----------------------------------------------------------------------------------


def resized(x: Tensor, dim: int, n: int) -> Tensor:
    """The first `n` slices along `dim`, or zeros after the last."""
    shape = x._array.shape
    have = shape[dim]
    if n == have:
        return x
    if n < have:
        return basic_view(x, (*(slice(None),) * dim, slice(0, n), Ellipsis))
    return constant_pad_nd(x, (0, 0) * (len(shape) - 1 - dim) + (0, n - have))


def _scale_of(norm: str | None, forward: bool) -> int:
    if norm is None or norm == "backward":
        return NONE if forward else BY_N
    if norm == "forward":
        return BY_N if forward else NONE
    if norm == "ortho":
        return BY_ROOT
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _floating(x: Tensor) -> Tensor:
    d = x._array.dtype
    if d.char in "fdFD":
        return x
    if d not in FLOATING:
        return cast(x, dtypes.default_float())
    if d.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {type_name(x.dtype)}")
    if d.kind == "W":
        raise RuntimeError("MKL FFT doesn't support tensors of type: Half")
    return x


def _complex(x: Tensor) -> Tensor:
    x = _floating(x)
    return x if x._array.dtype.kind in "cW" else cast(x, x.dtype.to_complex().numpy)


def _real(x: Tensor, name: str, what: str = "real") -> Tensor:
    if x._array.dtype.kind in "cW":
        raise RuntimeError(f"{name} expects a {what} input tensor, but got {type_name(x.dtype)}")
    return _floating(x)


def _conjugate(x: Tensor) -> Tensor:
    """The conjugate: where somebody looks on, the view that PyTorch records."""
    return x.conj() if differentiating(x) else conjugated(x)


def _one_dim(x: Tensor, n: int | None, dim: int, default: int | None = None) -> tuple[int, int]:
    dim = wrap_existing_dim(dim, x._array.ndim)
    n = (x._array.shape[dim] if default is None else default) if n is None else n
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dim, n


def _default_real_size(x: Tensor, dim: int) -> int:
    """How many real values a half spectrum stands for, by default."""
    return 2 * (x._array.shape[wrap_dim(dim, x._array.ndim)] - 1) if x._array.ndim else 0


def _many_dims(x: Tensor, s: Any, dim: Any, name: str) -> tuple[tuple[int, ...], list[int]]:
    shape = x._array.shape
    if dim is None:
        if s is not None and len(s) > len(shape):
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has "
                               f"{len(shape)} dimensions.")
        dims = tuple(range(len(shape) - (len(shape) if s is None else len(s)), len(shape)))
    else:
        dims = tuple([wrap_existing_dim(d, len(shape)) for d in dim])
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = [shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims)]
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, sizes


def _resize_dims(x: Tensor, dims: Any, sizes: Any) -> Tensor:
    missing = [0] * x._array.ndim
    for d, n in zip(dims, sizes):
        missing[d] = max(n - x._array.shape[d], 0)
        x = x if missing[d] else resized(x, d, n)
    return constant_pad_nd(x, [n for own in missing[::-1] for n in (0, own)]) if any(missing) else x


# ---- one dimension ------------------------------------------------------------------------------


def _full(x: Tensor, dims: Any, norm: str | None, forward: bool) -> Tensor:
    scale = _scale_of(norm, forward)
    if x._array.dtype.kind not in "cW":
        found = r2c(x, dims, scale, False)
        return found if forward else found.conj()
    return c2c(_complex(x), dims, scale, forward)


COMPLEX_OUT = "{} expects a complex output tensor, but got {{out}}"
REAL_OUT = "{} expects a floating point output tensor, but got {{out}}"


def _is_complex(input: Tensor, *rest: Any) -> bool:
    return input._array.dtype.kind in "cW"


def _conjugated_type(read: Any, out: Any, found: Any) -> str:
    """Of a real input the result is conjugated into `out`, which has to have its type."""
    return "" if _is_complex(*read) or not out.is_complex else FOUND_TYPE


def _declare_transform(name: str, out: str, kernel: Any, title: str = "") -> Any:
    """Declare a function of `flambeau.fft`, over one dimension or (of a `title`) several: what is
    said of an `out` of another type, and the map that refuses to differentiate it."""
    many = name[-1] in "n2"
    dims = "int[1] dim=[-2,-1]" if name[-1] == "2" else "int[1]? dim=None"
    given = f"int[1]? s=None, {dims}" if many else "int? n=None, int dim=-1"

    def declare(body: Any, doc: str = "") -> Any:
        conjugates = {"out_rows": _is_complex, "out_type": _conjugated_type} \
            if name in ("ifft", "ihfft") else {"out_rows": True}
        return op(f"fft_{name}(Tensor self, {given}, str? norm=None) -> Tensor", body=body,
                  autocast="full", out_reported_as=kernel, out_cast=out.format(title or name),
                  doc=doc or body.__doc__, **conjugates)
    return declare


@_declare_transform("fft", COMPLEX_OUT, lambda input, *_: (
    "_fft_c2c" if _is_complex(input) else "_fft_r2c"))
def fft_(input: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
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


@_declare_transform("ifft", COMPLEX_OUT, lambda input, *_: (
    "_fft_c2c" if _is_complex(input) else "aten::conj_physical"))
def ifft_(input: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    """The inverse of `fft`."""
    x = _floating(input)
    d, n = _one_dim(x, n, dim)
    return _full(resized(x, d, n), (d,), norm, False)


@_declare_transform("rfft", COMPLEX_OUT, "_fft_r2c")
def rfft_(input: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    """The first n//2 + 1 values of `fft` of real numbers: the rest mirrors them.

    >>> import flambeau
    >>> flambeau.fft.rfft(flambeau.ones(4))
    tensor([4.+0.j, 0.+0.j, 0.+0.j])
    """
    x = _real(input, "rfft")
    d, n = _one_dim(x, n, dim)
    return r2c(resized(x, d, n), (d,), _scale_of(norm, True), True)


@_declare_transform("irfft", REAL_OUT, "_fft_c2r")
def irfft_(input: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    """The inverse of `rfft`: `n` real values (by default an even number)."""
    x = _complex(input)
    d, n = _one_dim(x, n, dim, _default_real_size(x, dim))
    return c2r(resized(x, d, n // 2 + 1), (d,), _scale_of(norm, False), n)


@_declare_transform("hfft", REAL_OUT, "_fft_c2r")
def hfft_(input: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    """`fft` of a signal whose second half mirrors (conjugates) the first: real values."""
    x = _complex(input)
    d, n = _one_dim(x, n, dim, _default_real_size(x, dim))
    return c2r(_conjugate(resized(x, d, n // 2 + 1)), (d,), _scale_of(norm, True), n)


@_declare_transform("ihfft", COMPLEX_OUT, "aten::conj_physical")
def ihfft_(input: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    """The inverse of `hfft`."""
    x = _real(input, "ihfft")
    d, n = _one_dim(x, n, dim)
    return r2c(resized(x, d, n), (d,), _scale_of(norm, False), True).conj()


# ---- several dimensions -------------------------------------------------------------------------


def _fftn(input: Tensor, s: Any, dim: Any, norm: str | None, name: str) -> Tensor:
    x = _complex(input) if differentiating(input) else _floating(input)
    dims, sizes = _many_dims(x, s, dim, name)
    x = _resize_dims(x, dims, sizes)
    forward = name != "ifftn"
    if forward and dims and not differentiating(x):
        return _full(x, dims, norm, True)                   # half of the work for real numbers
    return c2c(_complex(x), dims, _scale_of(norm, forward), forward)


def _rfftn(input: Tensor, s: Any, dim: Any, norm: str | None, name: str) -> Tensor:
    if not _many_dims(input, s, dim, name)[0]:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = _real(input, name, "real-valued")
    dims, sizes = _many_dims(x, s, dim, name)
    return r2c(_resize_dims(x, dims, sizes), dims, _scale_of(norm, True), True)


def _from_half(x: Tensor, s: Any, dim: Any, name: str) -> tuple[Tensor, tuple[int, ...], int]:
    """The spectrum in the extents asked for, its dimensions, the extent of the last result."""
    dims, sizes = _many_dims(x, s, dim, name)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    last = 2 * (x._array.shape[dims[-1]] - 1) if s is None or s[-1] == -1 \
        else sizes[-1]
    if last < 1:
        raise RuntimeError(f"Invalid number of data points ({last}) specified")
    return _resize_dims(x, dims, [*sizes[:-1], last // 2 + 1]), dims, last


def _irfftn(input: Tensor, s: Any, dim: Any, norm: str | None, name: str) -> Tensor:
    x, dims, last = _from_half(_complex(input), s, dim, name)
    return c2r(x, dims, _scale_of(norm, False), last)


def _hfftn(input: Tensor, s: Any, dim: Any, norm: str | None, name: str) -> Tensor:
    x, dims, last = _from_half(_complex(input), s, dim, name)
    scale = _scale_of(norm, True)
    return c2r(_conjugate(c2c(x, dims[:-1], scale, True)), dims[-1:], scale, last)


def _ihfftn(input: Tensor, s: Any, dim: Any, norm: str | None, name: str) -> Tensor:
    if input._array.dtype.kind in "cW":
        raise RuntimeError("Only supports floating-point dtypes, but found: "
                           f"{type_name(input.dtype)}")
    x = _floating(input)
    dims, sizes = _many_dims(x, s, dim, name)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    scale = _scale_of(norm, False)
    half = r2c(_resize_dims(x, dims, sizes), dims[-1:], scale, True)
    return c2c(conj(half), dims[:-1], scale, False) if len(dims) > 1 else half.conj()


_MANY = {"fft": (_fftn, "`fft` over several dimensions (by default all), cut or padded to `s`"),
         "ifft": (_fftn, "The inverse of `fftn`"),
         "rfft": (_rfftn, "`fftn` of real numbers, without the mirrored half of the last one"),
         "irfft": (_irfftn, "The inverse of `rfftn`"),
         "hfft": (_hfftn, "`fftn` of signals that are Hermitian in the last one: real values"),
         "ihfft": (_ihfftn, "The inverse of `hfftn`")}


def _declare(stem: str) -> None:
    body, doc = _MANY[stem]

    def over(input: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
        return body(input, s, dim, norm, f"{stem}n")
    out = REAL_OUT if stem in ("irfft", "hfft") else COMPLEX_OUT
    kernel = {"rfft": "_fft_r2c", "irfft": "_fft_c2r", "hfft": "_fft_c2r"}.get(stem, "_fft_c2c")
    for suffix, end in (("n", "."), ("2", ", the last two.")):
        # what computes `fft2` is `fftn`, and that of `ifft2` and `ifftn` speaks as `fftn`
        title = "fftn" if stem == "ifft" else f"{stem}n"
        op_of = _declare_transform(stem + suffix, out, kernel, title)
        op_of(over, doc + end)


for _stem in _MANY:
    _declare(_stem)

# ---- frequencies and their order ----------------------------------------------------------------


def _frequencies(name: str, of: Any, doc: str) -> None:
    def kernel(n: int, d: float, target: np.dtype) -> np.ndarray:
        if target not in FLOATING:
            raise RuntimeError(f"{name} requires a floating point or complex dtype")
        if target.kind in "cW":
            raise no_kernel("arange_cpu", target)
        values = of(n).astype(target)
        return values * target.type(1 / (n * d)) if n else values * np.nan
    factory(f"fft_{name}(int n, float d=1.0, *, {OPTIONS}) -> Tensor", kernel=kernel, out=True,
            out_resized=other_count, doc=doc)


def _count_to(n: int) -> np.ndarray:
    refuse_negative((n,))
    return np.arange(n)


_frequencies("fftfreq", lambda n: (_count_to(n) + n // 2) % (n or 1) - n // 2,
             """The frequencies of `fft`'s values, for samples `d` apart: 0, 1, … then the negative.

    >>> import flambeau
    >>> flambeau.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """)
_frequencies("rfftfreq", lambda n: _count_to(n // 2 + 1), "The frequencies of `rfft`'s values.")


def _shift(name: str, sign: int, doc: str) -> None:
    @op(f"fft_{name}(Tensor self, int[1]? dim=None) -> Tensor", doc=doc, out=False)
    def function(input: Tensor, dim: Any) -> Tensor:
        n = input._array.ndim
        dims = range(n) if dim is None else dim
        sizes = [input.size(d) for d in dims]
        dims = tuple([wrap_dim(d, n) for d in dims])
        shifts = [m // 2 if sign > 0 else (m + 1) // 2 for m in sizes]
        return roll(input, shifts, dims)


_shift("fftshift", 1, """Values reordered so that frequency 0 stands in the middle.

    >>> import flambeau
    >>> flambeau.fft.fftshift(flambeau.arange(4))
    tensor([2, 3, 0, 1])
    """)
_shift("ifftshift", -1, "The inverse of `fftshift`.")
