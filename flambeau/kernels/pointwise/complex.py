"""Complex numbers of their parts, and as pairs of them."""

import numpy as np

from flambeau.kernels._extension import Misfit, compiled
from flambeau.kernels._quiet import quiet
from flambeau.kernels.moving import views

_PARTS = {np.dtype(np.complex64): np.dtype(np.float32),
          np.dtype(np.complex128): np.dtype(np.float64)}
_WHOLE = {part: whole for whole, part in _PARTS.items()}


def complex_of(part):
    """The dtype of complex numbers whose parts are of the dtype `part`; Misfit if there is none."""
    if part.char == "e":
        from flambeau.core.dtypes import complex32
        return complex32.numpy              # from now on a floating type that is known
    if part not in _WHOLE:
        raise Misfit
    return _WHOLE[part]


@compiled("complex")
def from_parts(real, imag):
    """real + i · imag, of arrays of one type."""
    wanted = complex_of(real.dtype)
    r = views.empty_like(real, wanted) if real.shape == imag.shape \
        else np.empty(np.broadcast_shapes(real.shape, imag.shape), wanted)
    views.part(r, "real")[...], views.part(r, "imag")[...] = real, imag
    return r


@compiled("polar")
@quiet
def polar(size, angle):
    """size · (cos angle + i sin angle)."""
    return from_parts(size * np.cos(angle), size * np.sin(angle))


def with_zeros(part, imaginary):
    """Complex numbers with that real part, or `imaginary` one, and zeros beside it."""
    r = np.zeros(part.shape, complex_of(part.dtype))
    views.part(r, "imag" if imaginary else "real")[...] = part
    return r


@compiled("view_as_real")
def view_as_real(x):
    """The parts of complex numbers along one more dimension, at the end."""
    if x.dtype.kind not in "cW":
        raise Misfit
    return x[..., np.newaxis].view(_PARTS.get(x.dtype, np.float16))


@compiled("view_as_complex")
def view_as_complex(x):
    """Pairs of parts, the last dimension, as complex numbers."""
    return np.ndarray(x.shape[:-1], complex_of(x.dtype), *views.buffer(x), x.strides[:-1])


def reinterpreted(x, dtype):
    """The same bytes as another type; the last dimension grows or shrinks with the size of one."""
    x = views.settled(x)
    old, new = x.itemsize, dtype.itemsize
    if old == new or not x.ndim:
        return views.strided(x, x.shape, x.strides, 0).view(dtype)
    if old > new:
        shape = (*x.shape[:-1], x.shape[-1] * (old // new))
        strides = (*x.strides[:-1], new)
    else:
        shape = (*x.shape[:-1], x.shape[-1] // (new // old))
        strides = (*x.strides[:-1], new)
    return np.ndarray(shape, dtype, *views.buffer(x), strides)
