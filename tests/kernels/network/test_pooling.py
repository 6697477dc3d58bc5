import numpy as np
import pytest

from flambeau.kernels.network import pooling


def test_maxima_of_an_example():
    x = np.array([[[1.0, 5, 2, 0], [3, 4, 8, 1], [0, 0, 9, 9], [7, 6, 0, 0]]])
    values, where = pooling.max_pool(x, (2, 2), (2, 2), (0, 0), (1, 1), False)
    np.testing.assert_array_equal(values, [[[5, 8], [7, 9]]])
    np.testing.assert_array_equal(where, [[[1, 6], [12, 10]]])
    back = pooling.max_pool_backward(np.ones_like(values), where, x.shape)
    assert back.sum() == 4 and back[0, 0, 1] == back[0, 2, 2] == 1
    np.testing.assert_array_equal(pooling.max_unpool(values, where, (4, 4)), back * x)
    np.testing.assert_array_equal(pooling.max_unpool_backward(x, where), values)


@pytest.mark.parametrize("how", [((2, 2), (2, 2), (0, 0)), ((3, 2), (2, 1), (1, 1))])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("rest", [(True, None), (False, None), (True, 5)])
def test_average_is_linear(normal, how, ceil_mode, rest):
    x = normal((2, 3, 7, 6))
    y = pooling.avg_pool(x, *how, ceil_mode, *rest)
    g = normal(y.shape)
    back = pooling.avg_pool_backward(g, x.shape, *how, ceil_mode, *rest)
    np.testing.assert_allclose(np.sum(back * x), np.sum(g * y))


def test_averages_count_padding_or_not():
    x = np.ones((1, 1, 4))
    with_padding = pooling.avg_pool(x, (3,), (2,), (1,), False, True)
    np.testing.assert_allclose(with_padding, [[[2 / 3, 1]]])
    np.testing.assert_allclose(pooling.avg_pool(x, (3,), (2,), (1,), False, False), [[[1, 1]]])


@pytest.mark.parametrize("out", [(1, 1), (3, 2), (5, 9)])
def test_adaptive(normal, out):
    x = normal((2, 7, 6))
    y = pooling.adaptive_avg_pool(x, out)
    values, where = pooling.adaptive_max_pool(x, out)
    for i in range(out[0]):
        for j in range(out[1]):
            rows = slice(i * 7 // out[0], -(-(i + 1) * 7 // out[0]))
            columns = slice(j * 6 // out[1], -(-(j + 1) * 6 // out[1]))
            window = x[:, rows, columns]
            np.testing.assert_allclose(y[:, i, j], window.mean(axis=(1, 2)))
            np.testing.assert_array_equal(values[:, i, j], window.max(axis=(1, 2)))
    np.testing.assert_array_equal(pooling.max_unpool_backward(x, where), values)
    g = normal(y.shape)
    back = pooling.adaptive_avg_pool_backward(g, x.shape)
    np.testing.assert_allclose(np.sum(back * x), np.sum(g * y))


def test_integers():
    x = np.array([[[-7, 2], [3, -3]]])
    values, where = pooling.max_pool(x, (2, 2), (2, 2), (0, 0), (1, 1), False)
    assert values.dtype == np.int64 and values.item() == 3 and where.item() == 2
    assert pooling.avg_pool(x, (2, 2), (2, 2), (0, 0)).item() == -1


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_bad_index(dtype):
    where = np.array([[[0, 99]]])
    with pytest.raises(RuntimeError, match=r"Found an invalid max index: 99 .* size 2x2"):
        pooling.max_unpool(np.ones((1, 1, 2), dtype), where, (2, 2))
