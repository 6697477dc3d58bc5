"""Views of arrays: the same memory with another shape."""
import numpy as np
import pytest

from flambeau.kernels.moving import views

X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("found, expected", [
    (lambda x: views.expand(x[:, :1], (5, 2, 3, 4)), lambda x: np.broadcast_to(
        x[:, :1], (5, 2, 3, 4))),
    (lambda x: views.select(x, 1, -1), lambda x: x[:, -1]),
    (lambda x: views.permute(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    (lambda x: views.slices(x, 2, 1, 2), lambda x: x[:, :, 1:3]),
    (lambda x: views.slice_(x, 2, -3, 99, 2), lambda x: x[:, :, 1::2]),
    (lambda x: views.diagonal(x, 1, 1, 2), lambda x: np.diagonal(x, 1, 1, 2)),
    (lambda x: views.windows(x, 2, 2, 2), lambda x: np.lib.stride_tricks.sliding_window_view(
        x, 2, 2)[:, :, ::2]),
    (lambda x: views.unsqueeze(x, 1), lambda x: x[:, None]),
    (lambda x: views.squeeze(x[:1], 0), lambda x: x[0]),
], ids=["expand", "select", "permute", "slices", "slice", "diagonal", "windows", "unsqueeze",
        "squeeze"])
def test_same_memory_and_values(found, expected):
    made = found(X)
    np.testing.assert_array_equal(made, expected(X))
    assert np.shares_memory(made, X)


def test_parts():
    assert [p.shape[2] for p in views.split(X, 3, 2)] == [3, 1]
    assert [p.shape[1] for p in views.split_with_sizes(X, (0, 2, 1), 1)] == [0, 2, 1]
    assert len(views.unbind(X, 1)) == 3


def test_shapes_that_need_a_copy():
    assert views.reshape(X.T, (24,)) is None
    with pytest.raises(RuntimeError):
        views.view(X.T, (24,))
    with pytest.raises(ValueError):
        views.expand(X, (2, 3, 5))
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 1 with size 3"):
        views.select(X, 1, 3)


def test_layouts_are_kept():
    turned = X.transpose(2, 0, 1)
    assert views.empty_like(turned).strides == turned.strides
    assert views.is_dense(turned) and not views.is_dense(X[:, ::2])
    assert views.is_row_major(X) and not views.is_row_major(turned)
    assert views.memory_order(turned) == [1, 2, 0] or tuple(views.memory_order(turned)) == (1, 2, 0)
    assert views.empty_like(X[:, :, ::2]).flags.c_contiguous


def test_strides_as_pytorch_counts_them():
    assert tuple(views.contiguous_strides((2, 0, 3))) == (3, 3, 1)
    assert tuple(views.array_strides(X[:, ::2])) == (12, 8, 1)
    assert views.array_offset(X[1:]) == 96 and views.array_root(X[1:][0]) is views.array_root(X)


def test_views_of_empty_arrays_step_as_those_of_others():
    """An extent of 0 counts as 1 in the strides of a new array; views follow from those."""
    for make in (lambda x: views.permute(x, (2, 0, 1)), lambda x: views.transpose(x, 0, 1),
                 lambda x: views.unsqueeze(x, 2), lambda x: views.select(x, 2, 1),
                 lambda x: views.expand(x, (5, *x.shape)), lambda x: views.slice_(x, 0, 0, 2, 2),
                 lambda x: views.diagonal(x, 0, 0, 2), lambda x: views.windows(x, 2, 2, 1),
                 lambda x: views.split(x, 2, 2)[1], lambda x: views.unbind(x, 0)[1],
                 lambda x: views.part(x.astype("D") if x.size else np.zeros(x.shape, "D"), "imag")):
        empty, one = [views.array_strides(make(np.zeros((2, n, 3)))) for n in (0, 1)]
        assert empty == one
    turned = views.permute(np.zeros((2, 0, 3)), (2, 1, 0))
    assert views.array_strides(views.copy(turned)) == views.array_strides(turned) == (1, 3, 3)
    assert views.array_strides(views.view(turned, (3, 0, 2))) == (1, 3, 3)
    assert views.array_strides(views.reshape(turned, (0, 5))) == (5, 1)
    assert views.array_strides(views.expand(np.zeros(()), (2, 0))) == (0, 0)
    assert not views.is_row_major(turned) and views.is_row_major(np.zeros((2, 0, 3)).T)
