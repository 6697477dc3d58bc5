"""Resampling images: interpolation to another size, and sampling at given points, with gradients.

Interpolation is separable. Along each axis, result[i] = sum over k of weight[i, k] * x[index[i,
k]]; `_taps` makes the two tables, and the gradient is the same sum with the roles of the images
exchanged.
"""

import functools

import numpy as np

from flambeau.kernels.declaration import kernel, kernel_with_narrow, stepwise
from flambeau.kernels.dtypes import float_astype
from flambeau.kernels.network import pooling

_LINEAR = {"linear", "bilinear", "trilinear"}


def _narrow_interpolate(x, size, mode, align_corners=False, scales=None, antialias=False):
    """The sums are of float32, but of weights that were rounded, except for "bilinear"."""
    if mode == "area":
        return pooling.adaptive_avg_pool(x, tuple(size))
    weights = None if mode == "bilinear" or antialias else x.dtype
    wide = float_astype(x, np.float32)
    result = _resized(wide, size, mode, align_corners, scales, antialias, weights)
    return float_astype(result, x.dtype)


@kernel_with_narrow(_narrow_interpolate)
def interpolate(x, size, mode, align_corners=False, scales=None, antialias=False):
    """`x` (n, c, *in) resized to (n, c, *size); `scales` are the factors asked for, or None."""
    if mode == "area":
        return pooling.adaptive_avg_pool(x, tuple(size))
    return _resized(x, size, mode, align_corners, scales, antialias)


def _resized(x, size, mode, align_corners, scales, antialias, narrow=None):
    result, mixes = x, not mode.startswith("nearest")
    bytes_ = mixes and x.dtype == np.uint8
    for axis in range(x.ndim - 1, 1, -1):
        scale = None if scales is None else scales[axis - 2]
        taps = _taps(mode, x.shape[axis], size[axis - 2], bool(align_corners), scale,
                     bool(antialias), np.dtype(np.float64) if bytes_ else x.dtype, narrow)
        if taps:
            result = (_resample_bytes if bytes_ else resample_axis)(result, axis, *taps)
    return result.copy() if result is x else result


def _resample_bytes(x, axis, indices, weights):
    """`resample_axis` in integers: weights are multiples of a power of two that bring the largest
    just below 2¹⁵; each axis is rounded to bytes."""
    same = indices[:, :, None] == indices[:, None, :]
    first = same.argmax(2) == np.arange(indices.shape[1])  # an element that counts twice, at edges
    weights = np.where(first, (same * weights[:, None, :]).sum(2), 0)
    bits = 0
    while bits < 22 and int(0.5 + weights.max() * 2 ** (bits + 1)) < 2**15:
        bits += 1
    scaled = weights * 2**bits
    whole = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int32)
    total = resample_axis(x.astype(np.int32), axis, indices, whole)
    return np.clip((total + (1 << bits >> 1)) >> bits, 0, 255).astype(np.uint8)


@kernel
def interpolate_backward(g, x_shape, mode, align_corners=False, scales=None, antialias=False):
    """Gradient of `interpolate` in an input of shape `x_shape`."""
    if mode == "area":
        return pooling.adaptive_avg_pool_backward(g, tuple(x_shape), g.ndim - 2)
    for axis in range(2, g.ndim):
        scale = None if scales is None else scales[axis - 2]
        taps = _taps(mode, x_shape[axis], g.shape[axis], bool(align_corners), scale,
                     bool(antialias), g.dtype)
        if taps:
            g = resample_axis_transposed(g, axis, x_shape[axis], *taps)
    return g


@kernel
def resample_axis(x, axis, indices, weights):
    """The weighted sum of elements of x along `axis` that row i of the tables names for place i."""
    if weights is None:
        return np.take(x, indices[:, 0], axis=axis)
    column = (-1, *(1,) * (x.ndim - axis - 1))
    total = np.take(x, indices[:, 0], axis=axis) * weights[:, 0].reshape(column)
    for k in range(1, indices.shape[1]):
        total += np.take(x, indices[:, k], axis=axis) * weights[:, k].reshape(column)
    return total


@kernel
def resample_axis_transposed(g, axis, size, indices, weights):
    """The transpose of `resample_axis`; along the tables' columns indices ascend."""
    result = np.zeros((size, *g.shape[:axis], *g.shape[axis + 1 :]), g.dtype)
    moved = np.moveaxis(g, axis, 0)
    for k in range(indices.shape[1]):
        values = (
            moved if weights is None else moved * weights[:, k].reshape(-1, *(1,) * (g.ndim - 1)))
        at = indices[:, k]
        starts = np.flatnonzero(np.concatenate(([True], at[1:] != at[:-1])))
        result[at[starts]] += np.add.reduceat(values, starts, axis=0)
    return np.ascontiguousarray(np.moveaxis(result, 0, axis))


@functools.lru_cache(64)
def _taps(mode, size, out, align_corners, scale, antialias, dtype, narrow=None):
    """Which elements count how much for each place of the result.

    Indices and weights, (out, taps) both. Weights are None where one element is taken as it is;
    there are no tables where nothing changes. Weights are rounded to the dtype `narrow`, if given.
    """
    if mode.startswith("nearest"):
        return _nearest(mode, size, out, scale)[:, None], None
    kind = dtype.type
    if align_corners:
        step = kind(size - 1) / kind(out - 1) if out > 1 else kind(0)
    else:
        step = kind(1 / scale) if scale is not None and scale > 0 else kind(size) / kind(out)
    i = np.arange(out).astype(dtype)
    if antialias:
        return _antialiased(mode, size, step, i, dtype)
    place = i * step if align_corners else (i + kind(0.5)) * step - kind(0.5)
    if mode in _LINEAR:
        if size == out:
            return None
        place = np.maximum(place, 0)
        low = np.minimum(place.astype(np.int64), size - 1)
        t = _rounded(np.clip(place - low, 0, 1).astype(dtype), narrow)
        weights = _rounded(np.stack([1 - t, t], 1), narrow)
        return np.stack([low, np.minimum(low + 1, size - 1)], 1), weights
    if mode != "bicubic":
        raise NotImplementedError(f"interpolate: mode {mode!r}")
    low = np.floor(place).astype(np.int64)
    t = (place - low).astype(dtype)
    indices = np.clip(low[:, None] + np.arange(-1, 3), 0, size - 1)
    return indices, _rounded(cubic_weights(t), narrow)


def _rounded(weights, dtype):
    """`weights` as numbers of `dtype`, in an array of their own type."""
    return weights if dtype is None else weights.astype(dtype).astype(weights.dtype)


def cubic_weights(t, a=-0.75):
    """Weights of the four neighbours of a point a fraction `t` past the second (R. Keys, 1981)."""
    a = t.dtype.type(a)

    def near(d):
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d):
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)], axis=-1).astype(t.dtype)


def _nearest(mode, size, out, scale):
    kind = np.float32
    step = kind(1 / scale) if scale is not None and scale > 0 else kind(size) / kind(out)
    i = np.arange(out).astype(kind)
    if mode == "nearest-exact":
        i = i + kind(0.5)
    return np.minimum(np.floor(i * step).astype(np.int64), size - 1)


def _antialiased(mode, size, step, i, dtype):
    """Triangle or cubic filter, stretched over as many elements as one result stands for."""
    kind = dtype.type
    reach = 1 if mode in _LINEAR else 2
    stretch = max(step, kind(1))
    support = kind(reach) * stretch
    half = kind(0.5)
    center = step * (i + half)
    first = np.maximum((center - support + half).astype(np.int64), 0)
    last = np.minimum((center + support + half).astype(np.int64), size)
    width = int(np.ceil(support)) * 2 + 1
    indices = first[:, None] + np.arange(width)
    distance = np.abs((indices.astype(dtype) - center[:, None] + half) / stretch)
    if mode in _LINEAR:
        weights = np.maximum(1 - distance, 0)
    else:
        a = kind(-0.5)
        near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        weights = np.where(distance < 1, near, np.where(distance < 2, far, 0))
    weights = np.where(indices < last[:, None], weights, 0)
    weights = (weights / weights.sum(axis=1, keepdims=True)).astype(dtype)
    return np.minimum(indices, size - 1), weights


@stepwise
def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """`x` (n, c, *in) at points of `grid` (n, *out, dims) from -1 to 1, x's last axis first."""
    n, c = x.shape[:2]
    flat = x.reshape(n, c, -1)
    shape, zero = (n, c, *grid.shape[1:-1]), x.dtype.type(0)

    def mixed(corners):
        total = np.zeros(shape, x.dtype)
        for position, weight, inside in corners:
            values = np.take_along_axis(flat, position.reshape(n, 1, -1), 2).reshape(shape)
            total += np.where(inside[:, None], values * weight[:, None], zero)
        return total

    tables, _ = _tables(x.shape[2:], grid, mode, padding_mode, align_corners)
    if mode != "bicubic":
        return mixed(corner[:3] for corner in _corners(x.shape[2:], tables))
    result = np.zeros(shape, x.dtype)           # in two dimensions, and row by row
    for row in tables[0]:
        index, weight, slope = row
        whole = [(index, np.ones_like(weight), slope)]
        line = mixed(corner[:3] for corner in _corners(x.shape[2:], [whole, tables[1]]))
        result += line * weight[:, None]
    return result


@kernel
def grid_sample_backward(g, x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """Gradients of `grid_sample` in x and in the grid."""
    tables, slope = _tables(x.shape[2:], grid, mode, padding_mode, align_corners)
    corners = _corners(x.shape[2:], tables)
    n, c = x.shape[:2]
    flat = x.reshape(n, c, -1)
    gx = np.zeros((n * c, flat.shape[2]), x.dtype)
    planes = np.arange(n * c).reshape(n, c, *(1,) * (grid.ndim - 2))
    g_grid = np.zeros(grid.shape, grid.dtype)
    for position, weight, inside, derivatives in corners:
        share = np.where(inside[:, None], g * weight[:, None], 0)
        np.add.at(gx,
                  (np.broadcast_to(planes, g.shape), np.broadcast_to(position[:, None], g.shape)),
                  share)
        values = np.take_along_axis(flat, position.reshape(n, 1, -1), 2).reshape(g.shape)
        inner = np.where(inside, (g * values).sum(axis=1), 0)
        for axis, derivative in enumerate(derivatives):
            g_grid[..., -1 - axis] += inner * derivative
    for axis, s in enumerate(slope):
        g_grid[..., -1 - axis] *= s
    return gx.reshape(x.shape), g_grid


def _tables(size, grid, mode, padding_mode, align_corners):
    """For each axis its taps, and the derivative of its pixel coordinate in its grid coordinate.

    Axes are in image order.
    """
    dims = len(size)
    tables, slopes = [], []
    for axis in range(dims):
        coordinate = grid[..., dims - 1 - axis]
        place, slope = _unnormalize(coordinate, size[axis], align_corners)
        if mode != "bicubic":
            place, more = _pad_coordinate(place, size[axis], padding_mode, align_corners)
            slope = slope * more
        tables.append(_axis_taps(place, size[axis], mode, padding_mode, align_corners, dims))
        slopes.append(slope)
    return tables, slopes


def _corners(size, tables):
    """The elements that each point mixes.

    For each: flat position, weight, whether it counts, and the weight's derivatives.
    """
    dims = len(size)
    corners = []
    for choice in np.ndindex(*(len(t) for t in tables)):
        chosen = [t[k] for t, k in zip(tables, choice)]
        position, inside, weight = 0, True, 1
        for (index, _, _), s in zip(chosen, size):
            inside = inside & (index >= 0) & (index < s)
            position = position * s + np.clip(index, 0, s - 1)
        for _, w, _ in reversed(chosen):
            weight = weight * w
        derivatives = []
        for axis in range(dims):
            d = chosen[axis][2]
            for other in range(dims):
                if other != axis:
                    d = d * chosen[other][1]
            derivatives.append(d)
        corners.append((position, weight, inside, derivatives))
    return corners


def _axis_taps(place, size, mode, padding_mode, align_corners, dims):
    """Along one axis: (index, weight, derivative of the weight) of each neighbour."""
    one, zero = np.ones_like(place), np.zeros_like(place)
    if mode == "nearest":
        return [(np.rint(place).astype(np.int64), one, zero)]
    low = np.floor(place)
    t = place - low
    rest = low + 1 - place if dims == 3 else 1 - t      # not the same in narrow types
    low = low.astype(np.int64)
    if mode == "bilinear":
        return [(low, rest, -one), (low + 1, t, one)]
    taps, a = [], -0.75
    weights = cubic_weights(t)
    slopes = [3 * a * (t + 1) ** 2 - 10 * a * (t + 1) + 8 * a, 3 * (a + 2) * t**2 - 2 * (a + 3) * t,
              -(3 * (a + 2) * (1 - t) ** 2 - 2 * (a + 3) * (1 - t)),
              -(3 * a * (2 - t) ** 2 - 10 * a * (2 - t) + 8 * a)]
    for k in range(4):
        index = (low + (k - 1)).astype(place.dtype)
        index, _ = _pad_coordinate(index, size, padding_mode, align_corners)
        taps.append((index.astype(np.int64), weights[..., k], slopes[k].astype(place.dtype)))
    return taps


def _unnormalize(coordinate, size, align_corners):
    kind = coordinate.dtype.type
    if align_corners:
        return (coordinate + 1) / 2 * kind(size - 1), kind((size - 1) / 2)
    return ((coordinate + 1) * kind(size) - 1) / 2, kind(size / 2)


def _pad_coordinate(place, size, padding_mode, align_corners):
    """A coordinate brought into the image, and the derivative of that."""
    if padding_mode == "zeros":
        limit = place.dtype.type(1e9)
        place = np.where(place == place, place, -limit)
        return np.minimum(np.maximum(place, -limit), limit), np.ones_like(place)
    slope = np.ones_like(place)
    if padding_mode == "reflection":
        low, span = (0, size - 1) if align_corners else (-0.5, size)
        if span <= 0:
            return np.zeros_like(place), np.zeros_like(place)
        low = place.dtype.type(low)
        offset = place - low
        slope = np.where(offset < 0, -slope, slope)
        offset = np.abs(offset)
        extra = np.fmod(offset, span)
        odd = np.floor(offset / span).astype(np.int64) % 2 == 1
        place = np.where(odd, span - extra + low, extra + low).astype(place.dtype)
        slope = np.where(odd, -slope, slope)
    outside = (place <= 0) | (place >= size - 1)
    place = np.where(place == place, place, np.zeros_like(place))
    place = np.minimum(np.maximum(place, 0), size - 1)
    return place, np.where(outside, 0, slope).astype(place.dtype)
