"""Pooling: the largest or the average element of each window, with gradients.

Windows slide over the last axes, as many as the kernel has; all axes before them are batch. The
indices of maxima are positions in the flattened image of those axes. NaN counts as the largest
number.
"""

import math

import numpy as np

from flambeau.kernels.declaration import is_narrow, kernel, kernel_with_narrow, mover


def pooled_size(size, kernel_size, stride, padding, dilation, ceil_mode):
    """Number of windows along an axis; in ceil mode the last may overhang, if it starts inside."""
    span = size + 2 * padding - dilation * (kernel_size - 1) - 1
    if not ceil_mode:
        return span // stride + 1
    count = -(-span // stride) + 1
    return count - 1 if (count - 1) * stride >= size + padding else count


@kernel
def max_pool(x, kernel_size, stride, padding, dilation, ceil_mode):
    """The largest element of each window, and where it lies."""
    dims = len(kernel_size)
    size = x.shape[x.ndim - dims :]
    out = tuple(
        pooled_size(*a, ceil_mode) for a in zip(size, kernel_size, stride, padding, dilation))
    lowest = _lowest(x.dtype)
    reach = [(o - 1) * st + d * (k - 1) + 1 for o, st, d,
             k in zip(out, stride, dilation, kernel_size)]
    widths = [(p, max(0, r - s - p)) for p, r, s in zip(padding, reach, size)]
    padded = np.pad(x, [(0, 0)] * (x.ndim - dims) + widths, constant_values=lowest)
    starts = [np.arange(o) * st - p for o, st, p in zip(out, stride, padding)]
    first = [np.where(s < 0, s + -(s // d) * d, s) for s, d in zip(starts, dilation)]
    values = np.full((*x.shape[: x.ndim - dims], *out), lowest, x.dtype)
    indices = np.broadcast_to(_flatten(first, size), values.shape).copy()
    for offset in np.ndindex(*kernel_size):
        window = tuple(slice(k * d, k * d + (o - 1) * st + 1, st) for k, d, o,
                       st in zip(offset, dilation, out, stride))
        candidate = padded[(..., *window)]
        better = (candidate > values) | (candidate != candidate)
        positions = _flatten([s + k * d for s, k, d in zip(starts, offset, dilation)], size)
        np.copyto(values, candidate, where=better)
        np.copyto(indices, positions, where=better)
    return values, indices


@kernel
def max_pool_values(x, kernel_size, stride, padding, dilation, ceil_mode):
    """The largest element of each window."""
    return max_pool.reference(x, kernel_size, stride, padding, dilation, ceil_mode)[0]


@kernel
def max_pool_backward(g, indices, x_shape, dims=2):
    """Each gradient goes to the element that was the maximum; serves every kind of max pooling."""
    plane = math.prod(x_shape[len(x_shape) - dims :])
    result = np.zeros(math.prod(x_shape), g.dtype)
    if result.size:
        np.add.at(result, _absolute(indices, plane, dims).reshape(-1), g.reshape(-1))
    return result.reshape(x_shape)


@kernel
def max_unpool(x, indices, output_size):
    """Put the elements of `x` at `indices` of images of `output_size`, and zeros elsewhere."""
    dims = len(output_size)
    plane = math.prod(output_size)
    wrong = (indices < 0) | (indices >= plane)
    if wrong.any():
        sizes = "x".join(map(str, output_size))
        raise RuntimeError(
            f"Found an invalid max index: {indices[wrong][0]} (output volumes are of size {sizes})")
    shape = (*x.shape[: x.ndim - dims], *output_size)
    result = np.zeros(math.prod(shape), x.dtype)
    result[_absolute(indices, plane, dims)] = x
    return result.reshape(shape)


@kernel
def max_unpool_backward(g, indices, dims=2):
    """The gradient's elements at `indices`. Also the forward derivative of max pooling."""
    plane = math.prod(g.shape[g.ndim - dims :])
    return g.reshape(-1)[_absolute(indices, plane, dims)]


@kernel
def avg_pool(x, kernel_size, stride, padding, ceil_mode=False, count_include_pad=True,
             divisor_override=None):
    """The mean of each window: its sum over the number of its elements, padding counted or not."""
    dims = len(kernel_size)
    size = x.shape[x.ndim - dims :]
    out, widths, divisor = _avg_geometry(size, kernel_size, stride, padding, ceil_mode,
                                         count_include_pad, divisor_override)
    padded = np.pad(x, [(0, 0)] * (x.ndim - dims) + widths)
    total = np.zeros((*x.shape[: x.ndim - dims], *out), x.dtype)
    for offset in np.ndindex(*kernel_size):
        total += padded[(..., *_strided(offset, out, stride))]
    return _divide(total, divisor)


@kernel
def avg_pool_backward(g, x_shape, kernel_size, stride, padding, ceil_mode=False,
                      count_include_pad=True, divisor_override=None):
    """Each window's gradient, divided as its sum was, is added to all its elements."""
    dims = len(kernel_size)
    size = tuple(x_shape)[len(x_shape) - dims :]
    out, widths, divisor = _avg_geometry(size, kernel_size, stride, padding, ceil_mode,
                                         count_include_pad, divisor_override)
    lead = tuple(x_shape)[: len(x_shape) - dims]
    padded = np.zeros((*lead, *(s + a + b for s, (a, b) in zip(size, widths))), g.dtype)
    share = _divide(g, divisor)
    for offset in np.ndindex(*kernel_size):
        padded[(..., *_strided(offset, out, stride))] += share
    return np.ascontiguousarray(
        padded[(..., *(slice(a, a + s) for s, (a, _) in zip(size, widths)))])


def _narrow_adaptive_avg_pool(x, output_size):
    """In three dimensions PyTorch rounds the sum after every element, and every division."""
    dims = len(output_size)
    if dims < 3:
        return adaptive_avg_pool(x.astype(np.float32), output_size).astype(x.dtype)
    size = x.shape[x.ndim - dims :]
    windows = [adaptive_windows(*sizes) for sizes in zip(size, output_size)]
    longest = [int((ends - starts).max(initial=0)) for starts, ends in windows]
    total = np.zeros((*x.shape[: x.ndim - dims], *output_size), x.dtype)
    for offset in np.ndindex(*longest):
        inside, at = True, []
        for axis, ((starts, ends), k) in enumerate(zip(windows, offset)):
            place = (starts + k).reshape(-1, *(1,) * (dims - axis - 1))
            inside = inside & (place < ends.reshape(place.shape))
            at.append(np.minimum(place, size[axis] - 1))
        np.copyto(total, total + x[(..., *at)], where=inside)
    for axis, (starts, ends) in enumerate(windows):
        total = total / (ends - starts).reshape(-1, *(1,) * (dims - axis - 1)).astype(x.dtype)
    return total


@kernel_with_narrow(_narrow_adaptive_avg_pool)
def adaptive_avg_pool(x, output_size):
    """Means over windows that divide each axis into `output_size` nearly equal parts."""
    dims = len(output_size)
    count = 1
    for axis, out in zip(range(x.ndim - dims, x.ndim), output_size):
        starts, ends = adaptive_windows(x.shape[axis], out)
        lengths = (ends - starts).reshape(-1, *(1,) * (x.ndim - axis - 1))
        x = _window_sums(x, starts, ends, axis)
        count = count * lengths
    return _divide(x, count)


@kernel
def adaptive_avg_pool_backward(g, x_shape, dims=2):
    """Gradient of `adaptive_avg_pool` in an input of this shape."""
    for axis in range(g.ndim - dims, g.ndim):
        starts, ends = adaptive_windows(x_shape[axis], g.shape[axis])
        share = _divide(g, (ends - starts).reshape(-1, *(1,) * (g.ndim - axis - 1)))
        lead = (slice(None),) * axis
        spread = np.zeros((*g.shape[:axis], x_shape[axis], *g.shape[axis + 1 :]), g.dtype)
        for i, (start, end) in enumerate(zip(starts, ends)):
            spread[(*lead, slice(start, end))] += share[(*lead, slice(i, i + 1))]
        g = spread
    return g


@kernel
def adaptive_max_pool(x, output_size):
    """Maxima, and where they lie, over windows that divide each axis into nearly equal parts."""
    dims = len(output_size)
    size = x.shape[x.ndim - dims :]
    windows = [list(zip(*adaptive_windows(s, o))) for s, o in zip(size, output_size)]
    return _pool_windows(x, size, output_size,
                         lambda at: [slice(*windows[a][i]) for a, i in enumerate(at)])


@mover
def fractional_max_pool(x, kernel_size, output_size, samples):
    """Maxima, and where they lie, over windows at pseudo-random steps.

    The steps come from `samples` (n, c, dims), uniform on [0, 1). B. Graham, Fractional
    max-pooling, 2014. The steps are computed in the type of `x`, a narrow one too.
    """
    dims = len(output_size)
    size = x.shape[x.ndim - dims :]
    lead = x.shape[: x.ndim - dims]
    values = np.empty((*lead, *output_size), x.dtype)
    indices = np.empty(values.shape, np.int64)
    if not values.size:
        return values, indices
    samples = samples.reshape(*lead, dims).astype(x.dtype, copy=False)
    elements = x.astype(np.float32) if is_narrow(x.dtype) else x
    order = range(dims) if dims == 3 else range(dims - 1, -1, -1)
    strides = [math.prod(size[a + 1 :]) for a in range(dims)]
    for place in np.ndindex(*lead):
        positions = 0       # in the image, of each element of each window
        for a, (j, s, o, k) in enumerate(zip(order, size, output_size, kernel_size)):
            starts = _fractional_starts(samples[place][j], s, o, k)
            shape = [1] * (2 * dims)
            shape[a], shape[dims + a] = o, k
            positions = positions + (starts[:, None] + np.arange(k)).reshape(shape) * strides[a]
        positions = positions.reshape(*output_size, -1)
        part = elements[place].reshape(-1)[positions]
        best = _argmax_last(part)[..., None]
        values[place] = np.take_along_axis(part, best, -1)[..., 0]
        indices[place] = np.take_along_axis(positions, best, -1)[..., 0]
    return values, indices


def adaptive_windows(size, out):
    """Starts and ends of the `out` windows along an axis of `size` elements."""
    i = np.arange(out)
    return i * size // max(out, 1), -(-(i + 1) * size // max(out, 1))


def _fractional_starts(sample, size, out, kernel_size):
    last = size - kernel_size
    if out == 1:
        return np.array([last])
    kind = sample.dtype.type
    alpha = kind(last) / kind(out - 1)
    base = int(sample * alpha)
    steps = (np.arange(out - 1).astype(kind) + sample) * alpha
    return np.append(steps.astype(np.int64) - base, last)


def _pool_windows(x, size, output_size, window):
    """Maxima over one window an output, and where they are."""
    lead = x.shape[: x.ndim - len(size)]
    values = np.empty((*lead, *output_size), x.dtype)
    indices = np.empty(values.shape, np.int64)
    for at in np.ndindex(*output_size):
        slices = window(at)
        part = x[(..., *slices)]
        part = part.reshape(*lead, math.prod(part.shape[len(lead) :]))
        best = _argmax_last(part)
        values[(..., *at)] = np.take_along_axis(part, best[..., None], -1)[..., 0]
        positions = _flatten([np.arange(s.start, s.stop) for s in slices], size).reshape(-1)
        indices[(..., *at)] = positions[best]
    return values, indices


def _lowest(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _flatten(coordinates, size):
    """Flat positions of the grid that these coordinates, one array an axis, span."""
    flat = 0
    for axis, (c, s) in enumerate(zip(coordinates, size)):
        flat = flat * s + c.reshape(-1, *(1,) * (len(size) - axis - 1))
    return flat


def _absolute(indices, plane, dims):
    lead = indices.shape[: indices.ndim - dims]
    return indices + (np.arange(math.prod(lead)) * plane).reshape(*lead, *(1,) * dims)


def _strided(offset, out, stride):
    return tuple(slice(k, k + (o - 1) * st + 1, st) for k, o, st in zip(offset, out, stride))


def _avg_geometry(size, kernel_size, stride, padding, ceil_mode, count_include_pad,
                  divisor_override):
    out = tuple(pooled_size(*a, 1, ceil_mode) for a in zip(size, kernel_size, stride, padding))
    widths, divisor = [], 1
    for axis, (s, k, st, p, o) in enumerate(zip(size, kernel_size, stride, padding, out)):
        widths.append((p, max(0, (o - 1) * st + k - s - p)))
        start = np.arange(o) * st - p
        end = np.minimum(start + k, s + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, s)
        divisor = divisor * (end - start).reshape(-1, *(1,) * (len(size) - axis - 1))
    return out, widths, divisor if divisor_override is None else divisor_override


def _divide(total, divisor):
    if total.dtype.kind in "iu":
        return np.trunc(total / divisor).astype(total.dtype)
    return total / np.asarray(divisor, total.dtype)


def _window_sums(x, starts, ends, axis):
    if not x.size or not len(starts):
        return np.zeros((*x.shape[:axis], len(starts), *x.shape[axis + 1 :]), x.dtype)
    padded = np.concatenate([x, np.zeros_like(x[(slice(None),) * axis + (slice(1),)])], axis=axis)
    bounds = np.stack([starts, ends], axis=1).reshape(-1)
    return np.add.reduceat(padded, bounds, axis=axis)[
        (slice(None),) * axis + (slice(None, None, 2),)]


def _argmax_last(part):
    """Where the maximum is along the last axis: at the last NaN, else at the first maximum."""
    best = part.argmax(axis=-1)
    if part.dtype.kind in "fV":
        nan = part != part
        last = part.shape[-1] - 1 - nan[..., ::-1].argmax(axis=-1)
        best = np.where(nan.any(axis=-1), last, best)
    return best
