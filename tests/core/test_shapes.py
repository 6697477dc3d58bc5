"""Sizes, dimensions and broadcasting: against NumPy, and in PyTorch's words."""
import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flambeau.core import shapes
from flambeau.core.shapes import Size

extents = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(st.lists(st.lists(st.sampled_from([1, 1, 2, 3]), max_size=4).map(tuple), max_size=3))
def test_broadcasting_is_numpys(given_shapes):
    try:
        wanted = np.broadcast_shapes(*given_shapes)
    except ValueError:
        with pytest.raises(RuntimeError, match="must match the size of tensor"):
            shapes.broadcast_shapes(*given_shapes)
    else:
        assert shapes.broadcast_shapes(*given_shapes) == wanted


def test_the_twin_in_python_broadcasts_alike():
    twin = getattr(shapes.broadcast_shapes, "__wrapped__", shapes.broadcast_shapes)
    assert twin((2, 1), (3,)) == (2, 3)
    with pytest.raises(RuntimeError, match=r"tensor a \(2\) must match the size of tensor b \(3\)"):
        twin((2,), (3,))


@given(extents)
def test_sizes_are_tuples_that_count(shape):
    size = Size(shape)
    assert size == shape and size.numel() == int(np.prod(shape))
    assert type(size[1:]) is type(size + (1,)) is type((1,) + size) is type(size * 2) is Size
    assert type(copy.copy(size)) is type(pickle.loads(pickle.dumps(size))) is Size


def test_what_a_size_takes():
    assert repr(Size([np.int64(2), 3])) == "torch.Size([2, 3])"
    with pytest.raises(TypeError, match=r"iterable of 'int' \(item 1 is 'float'\)"):
        Size([1, 2.0])


@pytest.mark.parametrize("dim,ndim,found", [(0, 0, 0), (-1, 0, 0), (-1, 3, 2), (2, 3, 2)])
def test_dimensions_count_from_either_end(dim, ndim, found):
    assert shapes.wrap_dim(dim, ndim) == found


@pytest.mark.parametrize("dim,ndim", [(1, 0), (-2, 0), (3, 3), (-4, 3)])
def test_there_is_no_such_dimension(dim, ndim):
    n = max(ndim, 1)
    with pytest.raises(IndexError, match=rf"range of \[{-n}, {n - 1}\], but got {dim}"):
        shapes.wrap_dim(dim, ndim)


def test_several_dimensions_are_distinct():
    assert shapes.wrap_dims((0, -1), 3) == (0, 2)
    with pytest.raises(RuntimeError, match="dim 2 appears multiple times"):
        shapes.wrap_dims((2, -1), 3)


@pytest.mark.parametrize("spelled", [(2, 3), ((2, 3),), ([2, 3],), (Size([2, 3]),)])
def test_ways_to_spell_a_size(spelled):
    assert shapes.size_of(spelled) == (2, 3)


def test_sizes_that_no_tensor_has():
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        shapes.extents_of(2, -1)
    with pytest.raises(RuntimeError, match="overflowed"):
        shapes.extents_of(2 ** 40, 2 ** 40)


@given(extents, extents)
def test_what_expands_broadcasts_to_the_target(shape, target):
    if shapes.is_expandable_to(shape, target):
        assert np.broadcast_to(np.zeros(shape), target).shape == target
