"""Convolutions in any number of dimensions, their two gradients, and im2col with its transpose.

Three bilinear maps do all the work. With a large image `(n, c, *size)`, a small one `(n, o, *out)`
and weights `(o, c / groups, *kernel)`:

    correlate: large, weights -> small
        small[o, p] = sum over c, k of large[c, p * stride + k * dilation - padding] * w[o, c, k]
    spread: small, weights -> large; its transpose in the image
    weigh: large, small -> weights; its transpose in the weights

A convolution correlates; its input gradient spreads. A transposed convolution is the same with the
two images' roles exchanged. Nothing here conjugates: for complex numbers the caller conjugates what
the chain rule asks for.
"""

import math

import numpy as np

from flambeau.kernels.declaration import is_narrow, kernel, kernel_with_narrow

# A block of columns is kept near this many elements, so that it stays in the cache and memory stays
# small.
_BLOCK = 1 << 20


def output_size(size, kernel_size, stride, padding, dilation):
    """Number of positions of a window along one axis of `size` elements."""
    return (size + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1


def output_shape(x_shape, w_shape, stride, padding, dilation, transposed, output_padding, groups):
    """Shape of the result of `convolution`."""
    sizes, kernels = x_shape[2:], w_shape[2:]
    if transposed:
        out = [(s - 1) * st - 2 * p + d * (k - 1) + op + 1 for s, k, st, p, d,
               op in zip(sizes, kernels, stride, padding, dilation, output_padding)]
        return (x_shape[0], w_shape[1] * groups, *out)
    return (x_shape[0], w_shape[0],
            *(output_size(*a) for a in zip(sizes, kernels, stride, padding, dilation)))


def convolution(x, w, stride, padding, dilation, transposed, output_padding, groups):
    """`x` (n, c, *size) with weights (o, c / groups, *kernel); (c, o / groups, …) if transposed."""
    if not transposed:
        return correlate(x, w, stride, padding, dilation, groups)
    shape = output_shape(x.shape, w.shape, stride, padding, dilation, True, output_padding, groups)
    return spread(x, w, shape, stride, padding, dilation, groups)


def convolution_input_grad(g, w, x_shape, stride, padding, dilation, transposed, output_padding,
                           groups):
    """Gradient of `convolution` in `x`, for the gradient `g` of its result."""
    if transposed:                          # a large output padding gives windows of its own
        result = correlate(g, w, stride, padding, dilation, groups)
        return np.ascontiguousarray(result[tuple(map(slice, x_shape))]) \
            if result.shape != tuple(x_shape) else result
    return spread(g, w, tuple(x_shape), stride, padding, dilation, groups)


def convolution_weight_grad(g, x, w_shape, stride, padding, dilation, transposed, output_padding,
                            groups):
    """Gradient of `convolution` in `w`, for the gradient `g` of its result."""
    large, small = (g, x) if transposed else (x, g)
    return weigh(large, small, tuple(w_shape), stride, padding, dilation, groups)


@kernel
def correlate(large, w, stride, padding, dilation, groups):
    """The windows of `large` times the weights."""
    if large.dtype.kind == "c" and w.dtype.kind == "c" and _has_native():
        return _complex_product(correlate, large, w, stride, padding, dilation, groups)
    n, o, kernel_size = len(large), w.shape[0], w.shape[2:]
    padded = _pad(large, padding)
    windows = _windows(padded, kernel_size, stride, dilation)
    out = windows.shape[2 + len(kernel_size) :]
    result = np.empty((n, o, *out), np.result_type(large, w))
    weights = w.reshape(groups, o // groups, -1)
    flat = result.reshape(n, groups, o // groups, math.prod(out))
    for block in _blocks(windows):
        np.matmul(weights, _columns(windows[block], groups), out=flat[block])
    return result


def rounds_intermediates(dtype, output_padding, stride):
    """Does a transposed convolution round the products with the weights, and each addition of them?
    For float16 PyTorch does, for bfloat16 only where the output has whole steps of padding."""
    whole = any(extra >= step for extra, step in zip(output_padding, stride))
    return dtype == np.float16 or (whole and is_narrow(dtype))


def _narrow_spread(small, w, large_shape, stride, padding, dilation, groups):
    geometry = stride, padding, dilation, groups
    wide = [a.astype(np.float32) for a in (small, w)]
    covered = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d,
               k in zip(small.shape[2:], stride, padding, dilation, w.shape[2:])]
    extra = [n - c for n, c in zip(large_shape[2:], covered)]
    if rounds_intermediates(small.dtype, extra, stride):
        return _spread(*wide, large_shape, *geometry, small.dtype)
    return spread(*wide, large_shape, *geometry).astype(small.dtype)


@kernel_with_narrow(_narrow_spread)
def spread(small, w, large_shape, stride, padding, dilation, groups):
    """The transpose of `correlate` in the image: each element adds its weights to a window."""
    if small.dtype.kind == "c" and w.dtype.kind == "c" and _has_native():
        return _complex_product(spread, small, w, large_shape, stride, padding, dilation, groups)
    dtype = np.result_type(small, w)
    return _spread(small, w, large_shape, stride, padding, dilation, groups, dtype)


def _spread(small, w, large_shape, stride, padding, dilation, groups, dtype):
    n, o, kernel_size, out = len(small), w.shape[0], w.shape[2:], small.shape[2:]
    padded = np.zeros((n, large_shape[1], *(s + 2 * p for s, p in zip(large_shape[2:], padding))),
                      dtype)
    windows = _windows(padded, kernel_size, stride, dilation, writeable=True, out=out)
    weights = np.ascontiguousarray(w.reshape(groups, o // groups, -1).swapaxes(1, 2))
    flat = small.reshape(n, groups, o // groups, -1) if small.size else None
    for block in _blocks(windows) if small.size else ():
        columns = np.matmul(weights, flat[block]).astype(dtype, copy=False)
        _add_windows(windows[block], columns.reshape(windows[block].shape))
    return np.ascontiguousarray(_crop(padded, padding))


@kernel
def weigh(large, small, w_shape, stride, padding, dilation, groups):
    """The transpose of `correlate` in the weights: the windows of `large` times `small`, summed."""
    if large.dtype.kind == "c" and small.dtype.kind == "c" and _has_native():
        return _complex_product(weigh, large, small, w_shape, stride, padding, dilation, groups)
    n, o, kernel_size, out = len(large), w_shape[0], w_shape[2:], small.shape[2:]
    result = np.zeros((groups, o // groups, math.prod(w_shape[1:])), np.result_type(large, small))
    if small.size:
        windows = _windows(_pad(large, padding), kernel_size, stride, dilation, out=out)
        flat = small.reshape(n, groups, o // groups, -1)
        for block in _blocks(windows):
            columns = _columns(windows[block], groups)
            result += np.matmul(flat[block], columns.swapaxes(-1, -2)).sum(axis=0)
    return result.reshape(w_shape)


@kernel
def im2col(x, kernel_size, dilation, padding, stride):
    """All windows of `x` (n, c, *size) as columns: (n, c * prod(kernel), number of windows)."""
    windows = _windows(_pad(x, padding), kernel_size, stride, dilation)
    n, c = x.shape[:2]
    return windows.reshape(n, c * math.prod(kernel_size),
                           math.prod(windows.shape[2 + len(kernel_size) :]))


@kernel
def col2im(columns, size, kernel_size, dilation, padding, stride):
    """The transpose of `im2col`: columns added up where their windows lie in an image of `size`."""
    n, c = len(columns), columns.shape[1] // math.prod(kernel_size)
    padded = np.zeros((n, c, *(s + 2 * p for s, p in zip(size, padding))), columns.dtype)
    windows = _windows(padded, kernel_size, stride, dilation, writeable=True)
    _add_windows(windows, columns.reshape(windows.shape))
    return np.ascontiguousarray(_crop(padded, padding))


def _has_native():
    return correlate.native is not None


def _complex_product(product, a, b, *rest):
    """A bilinear map of complex arrays by three of real ones, where the fast ones are real."""
    ar, ai, br, bi = a.real, a.imag, b.real, b.imag
    rr, ii = product(ar, br, *rest), product(ai, bi, *rest)
    cross = product(ar + ai, br + bi, *rest)
    result = np.empty(rr.shape, np.result_type(a, b))
    result.real, result.imag = rr - ii, cross - rr - ii
    return result


def _pad(x, padding):
    if not any(padding):
        return x
    padded = np.zeros((*x.shape[:2], *(s + 2 * p for s, p in zip(x.shape[2:], padding))), x.dtype)
    _crop(padded, padding)[...] = x
    return padded


def _crop(padded, padding):
    return padded[(..., *(slice(p, s - p) for s, p in zip(padded.shape[2:], padding)))]


def _windows(padded, kernel_size, stride, dilation, writeable=False, out=None):
    """A view (n, c, *kernel, *out) of the padded image: windows without a copy."""
    strides = padded.strides
    if out is None:
        out = tuple(output_size(s, k, st, 0, d) for s, k, st,
                    d in zip(padded.shape[2:], kernel_size, stride, dilation))
    return np.lib.stride_tricks.as_strided(
        padded,
        (*padded.shape[:2], *kernel_size, *out),
        (*strides[:2], *(s * d for s, d in zip(strides[2:], dilation)),
         *(s * st for s, st in zip(strides[2:], stride))),
        writeable=writeable,
    )


def _blocks(windows):
    """Slices of the batch whose columns fit a block."""
    n, each = len(windows), max(1, math.prod(windows.shape[1:]))
    step = max(1, _BLOCK // each)
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def _columns(windows, groups):
    """Windows (n, c, *kernel, *out) as (n, groups, c / groups * kernel, out)."""
    n, c, spatial = len(windows), windows.shape[1], windows.shape[2:]
    half = len(spatial) // 2
    return windows.reshape(n, groups, c // groups * math.prod(spatial[:half]),
                           math.prod(spatial[half:]))


def _add_windows(windows, values):
    """Add to overlapping windows one kernel position at a time, within which nothing overlaps."""
    half = (windows.ndim - 2) // 2
    for position in np.ndindex(*windows.shape[2 : 2 + half]):
        place = (slice(None), slice(None), *position)
        windows[place] += values[place]
