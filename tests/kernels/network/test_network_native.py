"""The native version of each network kernel does what its twin does, for all dtypes and layouts."""

import ml_dtypes
import numpy as np
import pytest

from flambeau.kernels.declaration import native
from flambeau.kernels.moving import indexing
from flambeau.kernels.network import (
    attention,
    convolution,
    ctc,
    normalization,
    pooling,
    recurrent,
    resampling,
    softmax,
)
from flambeau.kernels.reduction import sorting

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [np.dtype(t) for t in (np.float32, np.float64, np.float16)] + [BFLOAT16]
pytestmark = pytest.mark.skipif(native("softmax") is None, reason="no native kernels here")


class Make:
    """Random arrays of one dtype; every second one is not contiguous."""

    def __init__(self, dtype, seed=0):
        self.dtype, self.random, self.odd = dtype, np.random.default_rng(seed), False

    def __call__(self, *shape):
        self.odd = not self.odd
        if self.odd and shape:
            array = self.random.standard_normal((*shape[:-1], 2 * shape[-1]))[..., ::2]
        else:
            array = self.random.standard_normal(shape)
        return array.astype(self.dtype) if not self.odd else _strided(array, self.dtype)

    def ints(self, high, *shape):
        return self.random.integers(0, high, shape)


def _strided(array, dtype):
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def _conv(make, shape, w_shape, *how):
    x, w = make(*shape), make(*w_shape)
    small = convolution.correlate.reference(x, w, *how)
    g = make(*small.shape)
    return [
        (convolution.correlate, x, w, *how),
        (convolution.spread, g, w, x.shape, *how),
        (convolution.weigh, x, g, w.shape, *how),
    ]


def _pool(make, shape, *how):
    x = make(*shape)
    kernel_size, stride, padding, _, ceil_mode = how
    values, where = pooling.max_pool.reference(x, *how)
    g, dims = make(*values.shape), len(kernel_size)
    mean = kernel_size, stride, padding, ceil_mode
    return [
        (pooling.max_pool, x, *how),
        (pooling.max_pool_backward, g, where, x.shape, dims),
        (pooling.max_unpool_backward, x, where, dims),
        (pooling.avg_pool, x, *mean, False, None),
        (pooling.avg_pool_backward, make(*_average_shape(x, mean)), x.shape, *mean, True, None),
        *[(pooling.max_pool_values, x, *how) for _ in range(dims == 1)],
        (pooling.adaptive_avg_pool, x, (2, 3)[:dims]),
        (pooling.adaptive_max_pool, x, (4, 5)[:dims]),
        (pooling.adaptive_max_pool, x[:0], (4, 5)[:dims]),
        (pooling.adaptive_avg_pool_backward, g, x.shape, dims),
    ]


def _average_shape(x, mean):
    return pooling.avg_pool.reference(x, *mean).shape


def _norm(make, shape):
    x, g, c = make(*shape), make(*shape), shape[1]
    w, b, v = make(c), make(c), make(shape[-1])
    layer = normalization.layer_norm.reference(x, 1, v, v, 1e-5)
    rms = normalization.rms_norm.reference(x, 1, v, 1e-5)
    batch = normalization.batch_norm.reference(x, w, b, 1e-5)
    group = normalization.group_norm.reference(x, 2, w, b, 1e-5)
    positive = (b.astype(np.float32) ** 2 + 0.5).astype(x.dtype)
    return [
        (normalization.layer_norm, x, 1, v, v, 1e-5),
        (normalization.layer_norm, x, 2, None, None, 1e-5),
        (normalization.layer_norm_backward, g, x, 1, layer[1], layer[2], v),
        (normalization.rms_norm, x, 1, v, None),
        (normalization.rms_norm_backward, g, x, 1, rms[1], v),
        (normalization.batch_norm, x, w, b, 1e-5),
        (normalization.batch_norm, x, None, None, 1e-5),
        (normalization.batch_norm_backward, g, x, batch[1], batch[3], w),
        (normalization.batch_norm_eval, x, w, positive, w, b, 1e-5),
        (normalization.batch_norm_eval_backward, g, x, w, positive, w, 1e-5),
        (normalization.group_norm, x, 2, w, b, 1e-5),
        (normalization.group_norm_backward, g, x, 2, group[1], group[2], w),
    ]


def _softmax(make, shape, axis):
    x, g = make(*shape), make(*shape)
    calls = [(softmax.logsumexp, x, axis, False), (softmax.logsumexp, x, axis, True)]
    for name in ("softmax", "log_softmax"):
        y = getattr(softmax, name).reference(x, axis)
        calls += [(getattr(softmax, name), x, axis)]
        calls += [(getattr(softmax, name + "_backward"), g, y, axis)]
    return calls


def _cross_entropy(make, rows, classes, smoothing, weighted):
    x, target = make(rows, classes), make.ints(classes, rows)
    target[::3] = -100
    weight = np.abs(make(classes)) if weighted else None
    _, stats = softmax.cross_entropy.reference(x, target, weight, -100, smoothing)
    back = softmax.cross_entropy_backward
    return [
        (softmax.cross_entropy, x, target, weight, -100, smoothing),
        (back, make(rows), x, target, stats, weight, -100, smoothing),
        (back, np.asarray(0.5, x.dtype), x, target, stats, weight, -100, smoothing),
    ]


def _attention(make, lead, queries, keys, width, depth, mask, causal):
    q, k, v = make(*lead, queries, width), make(*lead, keys, width), make(*lead, keys, depth)
    if mask == "bool":
        mask = make.random.random((queries, keys)) > 0.4
        mask[min(2, queries - 1)] = False
    elif mask == "added":
        mask = make(*lead, 1, keys)
    out, total = attention.scaled_dot_product_attention.reference(q, k, v, mask, causal)
    back = attention.scaled_dot_product_attention_backward
    return [
        (attention.scaled_dot_product_attention, q, k, v, mask, causal),
        (back, make(*out.shape), q, k, v, out, total, mask, causal),
    ]


def _indexing(make):
    x, src, flat = make(5, 4, 6), make(5, 6, 7), make(9)
    rows, few = make.ints(5, 8), make.ints(4, 3, 4, 5)
    calls = [(indexing.embedding, make(7, 3), make.ints(7, 2, 5)), (indexing.nonzero, x > 0),
             (indexing.masked, x, x > 0)]
    for axis in (0, 1, -1):
        calls += [
            (indexing.gather, x, axis, few),
            (indexing.scatter_add_, x, axis, few, src),
            (indexing.scatter_, x, axis, few, src, "amax", True),
            (indexing.scatter_, x, axis, few, src, "prod", True),
        ]
    calls += [
        (indexing.reduce_rows_, x, 0, rows, make(8, 4, 6), 2),
        (indexing.reduce_rows_, flat, 0, rows, make(8)),
        *[(indexing.reduce_rows_, x, 1, rows % 4, make(5, 8, 6), -1, reduce)
          for reduce in ("prod", "amax", "amin")],
        (indexing.reduce_rows_, x, 2, rows, make(5, 4, 8)),
    ]
    return calls


def _sorting(make):
    x, columns = make(4, 70), make(60, 5)
    x[0, 3] = x[0, 9] = np.nan
    x[1, 5:9] = x[1, 2]
    calls = []
    for array, axis in ((x, 1), (columns, 0)):
        for descending in (False, True):
            calls += [(sorting.sort, array, axis, descending, True)]
            calls += [(sorting.topk, array, k, axis, descending) for k in (3, 60)]
        calls += [(sorting.kthvalue, array, 7, axis), (sorting.median, array, axis)]
        calls += [(sorting.nanmedian, array, axis, True)]
    return calls


def _recurrent(make, t, n, h, reverse):
    gates, state, w = make(t, n, 4 * h), make(n, h), make(4 * h, h)
    _, cells, saved = recurrent.lstm_steps.reference(gates, state, state, w, reverse)
    g, w3, shares = make(t, n, h), make(3 * h, h), make(t, n, 3 * h)
    gru_y, gru_saved = recurrent.gru_steps.reference(shares, state, w3, None, reverse)
    cell = recurrent.lstm_cell.reference(gates[0], state)
    gru = recurrent.gru_cell.reference(shares[0], shares[0], state)
    last, w1 = g[0], make(h, h)
    plain = [(recurrent.rnn_steps, g, state, w1, relu, reverse) for relu in (False, True)]
    plain += [(recurrent.rnn_steps_backward, g, last, w1, kernel.reference(*given), *given[-2:])
              for kernel, *given in plain]
    return [
        *plain,
        (recurrent.lstm_steps, gates, state, state, w, reverse),
        (recurrent.lstm_steps_backward, g, last, last, state, w, cells, saved, reverse),
        (recurrent.gru_steps, shares, state, w3, make(3 * h), reverse),
        (recurrent.gru_steps_backward, g, last, state, w3, gru_y, gru_saved, reverse),
        (recurrent.lstm_cell, gates[0], state),
        (recurrent.lstm_cell_backward, last, last, cell[2], state, cell[1]),
        (recurrent.gru_cell, shares[0], shares[0], state),
        (recurrent.gru_cell_backward, last, gru[1], state),
    ]


def _resampling(make):
    x, g = make(2, 3, 6, 7), make(2, 3, 9, 4)
    grid = make(2, 5, 4, 2)
    calls = []
    for mode in ("nearest", "bilinear", "bicubic"):
        for axis, size, out in ((2, 6, 9), (3, 7, 4)):
            taps = resampling._taps(mode, size, out, False, None, False, x.dtype)
            calls += [(resampling.resample_axis, x, axis, *taps)]
            calls += [(resampling.resample_axis_transposed, g, axis, size, *taps)]
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for aligned in (False, True):
                how = mode, padding, aligned
                calls += [(resampling.grid_sample, x, grid, *how)]
                calls += [(resampling.grid_sample_backward, make(2, 3, 5, 4), x, grid, *how)]
    far = make(2, 5, 4, 2)
    far[0, 0, 0], far[1, 2, 3] = np.nan, 40
    cube, places, grad = make(2, 3, 4, 5, 6), make(2, 3, 4, 2, 3), make(2, 3, 3, 4, 2)
    for padding in ("zeros", "border", "reflection"):
        for aligned in (False, True):
            how = "bicubic", padding, aligned
            calls += [(resampling.grid_sample, x, far if padding == "zeros" else grid, *how)]
            calls += [(resampling.grid_sample_backward, make(2, 3, 5, 4), x, grid, *how)]
            for mode in ("bilinear", "nearest"):
                how = mode, padding, aligned
                calls += [(resampling.grid_sample, cube, places, *how)]
                calls += [(resampling.grid_sample_backward, grad, cube, places, *how)]
    return calls


def _alignments(make):
    scores = make(12, 5, 6).astype(np.float32)
    x = (scores - np.log(np.exp(scores).sum(2, keepdims=True))).astype(make.dtype)
    targets, grad, calls = 1 + make.ints(5, 5, 4), make(5), []
    targets[0] = 2
    grad[3] = 0
    for inputs, lengths in (
        ((12, 10, 0, 7, 3), (4, 3, 0, 2, 4)),
        ((12, 12, 0, 1, 12), (0, 4, 2, 3, 1)),
    ):
        given = targets, inputs, lengths, 0
        kept = ctc.ctc_loss.reference(x, *given)
        calls += [(ctc.ctc_loss, x, *given), (ctc.ctc_loss_backward, grad, x, *kept, *given)]
    return calls


FAMILIES = {
    "conv": lambda m: _conv(m, (2, 4, 9, 8), (6, 4, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "conv stride": lambda m: _conv(m, (2, 4, 9, 8), (6, 2, 3, 2), (2, 3), (1, 0), (1, 2), 2),
    "conv 1x1": lambda m: _conv(m, (3, 5, 6, 7), (4, 5, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "conv depthwise": lambda m: _conv(m, (2, 4, 9, 8), (4, 1, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    "conv depthwise stride": lambda m: _conv(
        m, (2, 4, 9, 8), (8, 1, 3, 3), (2, 2), (1, 1), (1, 1), 4
    ),
    "conv depthwise large": lambda m: _conv(
        m, (2, 3, 21, 37), (3, 1, 7, 5), (1, 1), (3, 2), (1, 1), 3
    ),
    "conv depthwise lines": lambda m: _conv(m, (2, 5, 70), (5, 1, 4), (1,), (3,), (1,), 5),
    "conv of one window": lambda m: _conv(
        m, (17, 6, 4, 5), (8, 3, 4, 5), (1, 1), (0, 0), (1, 1), 2
    ),
    "conv strided": lambda m: _conv(m, (2, 5, 9, 10), (6, 5, 4, 4), (2, 2), (1, 1), (1, 1), 1),
    "conv strided, groups": lambda m: _conv(
        m, (2, 8, 11, 10), (10, 4, 3, 5), (3, 2), (0, 2), (1, 1), 2
    ),
    "conv strided and dilated": lambda m: _conv(
        m, (2, 4, 9, 12), (5, 4, 3, 3), (1, 3), (2, 0), (2, 1), 1
    ),
    "conv strided line": lambda m: _conv(m, (2, 4, 23), (6, 4, 5), (4,), (2,), (1,), 1),
    "conv strided volume": lambda m: _conv(
        m, (2, 4, 5, 6, 7), (5, 4, 2, 3, 3), (2, 1, 2), (1, 1, 0), (1, 1, 1), 1
    ),
    "conv many": lambda m: _conv(m, (3, 20, 12, 11), (33, 20, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "conv deep, small": lambda m: _conv(m, (9, 70, 5, 4), (9, 70, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "conv 1d": lambda m: _conv(m, (2, 3, 30), (5, 3, 4), (3,), (2,), (1,), 1),
    "conv 3d": lambda m: _conv(
        m, (2, 2, 5, 6, 7), (4, 2, 2, 3, 2), (1, 2, 1), (1, 1, 0), (2, 1, 1), 1
    ),
    "pool": lambda m: _pool(m, (2, 3, 9, 8), (3, 2), (2, 2), (1, 1), (1, 1), False),
    "pool ceil": lambda m: _pool(m, (2, 3, 9, 8), (3, 3), (3, 2), (1, 0), (1, 2), True),
    "pool 1d": lambda m: _pool(m, (2, 3, 11), (2,), (2,), (0,), (1,), False),
    "pool 1d far": lambda m: _pool(m, (2, 3, 40), (5,), (3,), (2,), (2,), True),
    "pool 1d wide": lambda m: _pool(m, (2, 3, 90), (37,), (30,), (3,), (1,), False),
    "norm": lambda m: _norm(m, (3, 4, 5, 6)),
    "norm short": lambda m: _norm(m, (7, 6, 3)),
    "norm columns": lambda m: _norm(m, (40, 6)),
    "norm long": lambda m: _norm(m, (5, 4, 300)),
    "softmax": lambda m: _softmax(m, (5, 70), 1),
    "softmax columns": lambda m: _softmax(m, (3, 7, 70), 1),
    "cross entropy": lambda m: _cross_entropy(m, 10, 7, 0.0, False),
    "cross entropy smooth": lambda m: _cross_entropy(m, 10, 7, 0.2, True),
    "attention": lambda m: _attention(m, (2, 3), 40, 50, 8, 8, None, False),
    "attention causal": lambda m: _attention(m, (2,), 37, 37, 20, 33, None, True),
    "attention bool": lambda m: _attention(m, (2,), 9, 11, 4, 6, "bool", False),
    "attention added": lambda m: _attention(m, (2, 1), 9, 11, 4, 6, "added", False),
    "attention of one query": lambda m: _attention(m, (2, 3), 1, 70, 40, 70, None, False),
    "attention of few queries": lambda m: _attention(m, (2, 1), 3, 9, 5, 17, "bool", False),
    "attention of few, causal": lambda m: _attention(m, (2,), 3, 9, 17, 130, "added", True),
    "indexing": _indexing,
    "sorting": _sorting,
    "recurrent": lambda m: _recurrent(m, 4, 3, 5, False),
    "recurrent reverse": lambda m: _recurrent(m, 3, 17, 20, True),
    "resampling": _resampling,
    "alignments": _alignments,
}
TOLERANCE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-10, np.dtype(np.float16): 2e-2}


def _copied(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def _compare(found, expected, tolerance, name):
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(found) == len(expected)
    for got, want in zip(found, expected):
        assert type(got) is np.ndarray and got.dtype == want.dtype, name
        assert got.shape == want.shape, name
        if want.dtype.kind in "iub":
            np.testing.assert_array_equal(got, want, err_msg=name)
        else:
            got, want = got.astype(np.float64), want.astype(np.float64)
            scale = max(1.0, np.max(np.abs(want), initial=0, where=np.isfinite(want)))
            np.testing.assert_allclose(
                got, want, rtol=tolerance, atol=tolerance * scale, err_msg=name
            )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_native_does_what_its_twin_does(family, dtype):
    for kernel, *args in FAMILIES[family](Make(dtype)):
        assert getattr(kernel, "native", kernel) is not None, kernel.__name__
        expected = kernel.reference(*_copied(args))
        _compare(kernel(*_copied(args)), expected, TOLERANCE.get(dtype, 1e-1), kernel.__name__)


def test_maxima_of_lines_keep_nan():
    x = np.zeros((2, 80), np.float32)
    x[0, 3], x[0, 40], x[1, 70] = np.nan, 5, np.nan
    for how in (((3,), (2,), (1,)), ((40,), (40,), (0,)), ((80,), (1,), (0,))):
        args = x, *how, (1,), False
        found, expected = pooling.max_pool_values(*args), pooling.max_pool.reference(*args)[0]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_pixels_outside_are_not_infinite(mode):
    """A point at the border takes nothing from infinite pixels beside those outside."""
    x = np.ones((1, 2, 5, 5), np.float32)
    x[:, :, 0] = np.inf
    grid = np.random.default_rng(0).uniform(-1.6, 1.6, (1, 9, 30, 2)).astype(np.float32)
    for padding in ("zeros", "border", "reflection"):
        args = x, grid, mode, padding, False
        with np.errstate(invalid="ignore"):
            _compare(resampling.grid_sample(*args), resampling.grid_sample.reference(*args), 1e-4,
                     padding)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.int16, np.bool_, np.complex64])
def test_moving_and_sorting_of_other_dtypes(dtype):
    make = Make(np.float64)
    x, where = (make(6, 7) * 5).astype(dtype), make.ints(6, 4, 7)
    np.testing.assert_array_equal(
        indexing.gather(x, 0, where), indexing.gather.reference(x, 0, where)
    )
    for axis in (0, 1) if dtype is not np.complex64 else ():
        for found, expected in zip(sorting.sort(x, axis), sorting.sort.reference(x, axis)):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_complex_convolution():
    make = Make(np.complex64)
    for kernel, *args in FAMILIES["conv stride"](make):
        args = [a * (1 + 2j) if isinstance(a, np.ndarray) else a for a in args]
        expected = kernel.reference(*args)
        np.testing.assert_allclose(kernel(*args), expected, rtol=1e-4, atol=1e-3)


def test_threads_change_nothing_but_rounding():
    from flambeau import kernels

    make = Make(np.dtype(np.float32))
    calls = [
        *_conv(make, (4, 16, 30, 30), (16, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1),
        *_norm(make, (16, 8, 20, 20)),
        *_softmax(make, (100, 700), 1),
    ]
    before = kernels.get_num_threads()
    try:
        for kernel, *args in calls:
            kernels.set_num_threads(1)
            alone = kernel(*args)
            kernels.set_num_threads(3)
            _compare(kernel(*args), alone, 1e-4, kernel.__name__)
    finally:
        kernels.set_num_threads(before)
