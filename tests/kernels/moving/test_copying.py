"""Copies and reshapes of permuted, strided and repeated arrays, against NumPy's."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau.kernels.moving import views

EXTENTS = st.lists(st.sampled_from([1, 2, 3, 5, 31, 32, 33, 64, 70]), min_size=1,
                   max_size=4).filter(lambda shape: np.prod(shape) < 200_000)


@st.composite
def permuted(draw):
    """An array whose dimensions are permuted, some of them with gaps or repeated."""
    shape = draw(EXTENTS)
    dtype = draw(st.sampled_from([np.uint8, np.float16, np.float32, np.float64, np.complex128]))
    x = np.arange(np.prod(shape)).reshape(shape) % 251
    x = x.astype(dtype)
    x = x.transpose(draw(st.permutations(range(len(shape)))))
    x = x[tuple(slice(None, None, draw(st.sampled_from([1, 1, 2]))) for _ in shape)]
    return np.broadcast_to(x, (5, *x.shape)) if draw(st.booleans()) else x


@settings(deadline=None)
@given(permuted())
def test_contiguous(x):
    copy = views.contiguous(x)
    assert copy.flags.c_contiguous and copy.dtype == x.dtype
    np.testing.assert_array_equal(copy, x)


@settings(deadline=None)
@given(permuted(), st.data())
def test_copy_into(x, data):
    order = data.draw(st.permutations(range(x.ndim)))
    target = np.empty([x.shape[i] for i in order], x.dtype).transpose(np.argsort(order))
    views.copy_into(target, x)
    np.testing.assert_array_equal(target, x)


def test_copy_into_itself_transposed():
    x = np.arange(100 * 100).reshape(100, 100)
    expected = x.T.copy()
    views.copy_into(x, x.T)
    np.testing.assert_array_equal(x, expected)


@settings(deadline=None)
@given(permuted(), st.data())
def test_reshape(x, data):
    shape = list(x.shape)
    at = data.draw(st.integers(0, len(shape) - 1))
    if data.draw(st.booleans()) and at:
        shape[at - 1:at + 1] = [shape[at - 1] * shape[at]]
    else:
        shape[at:at + 1] = [1, 2, shape[at] // 2, 1] if shape[at] % 2 == 0 else [shape[at], 1]
    found = views.reshape(x, tuple(shape))
    if found is None:
        assert not np.may_share_memory(x.reshape(shape), x)
    else:
        assert np.may_share_memory(found, x)
        np.testing.assert_array_equal(found, x.reshape(shape))


def test_reshape_to_another_number_of_elements():
    with pytest.raises(ValueError):
        views.reshape(np.zeros((3, 4)).T, (5, 2))


@pytest.mark.parametrize("shapes,axis", [
    ([(900, 20), (900, 3), (900, 0), (900, 7)], 1), ([(100, 200), (3, 200)], 0),
    ([(10, 0, 300), (10, 5, 300), (10, 2, 300)], 1), ([(20000,), (5,)], 0),
    ([(0, 5000), (4, 5000)], 0), ([(700, 31, 3), (700, 1, 3)], 1)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.complex128])
def test_join(shapes, axis, dtype):
    arrays = [(np.arange(np.prod(s)).reshape(s) % 251).astype(dtype) for s in shapes]
    joined = views.join(arrays, axis)
    wanted = np.concatenate(arrays, axis)
    if joined is not None:          # without native kernels it leaves all to NumPy
        np.testing.assert_array_equal(joined, wanted)
        assert joined.dtype == dtype
    assert views.join([a.T for a in arrays], 0) is None or arrays[0].ndim == 1
    assert views.join([arrays[0], arrays[1].real.astype(np.int16)], axis) is None


def test_layout_of_what_is_like_another():
    x = np.zeros((3, 4, 5)).transpose(2, 0, 1)
    for like in (views.empty_like(x), views.full_like(x, 2), views.copy(x)):
        assert like.strides == x.strides and like.shape == x.shape
    assert (views.full_like(x, 2) == 2).all()
    expanded = np.broadcast_to(np.zeros((1, 4)), (3, 4))
    assert views.copy(expanded).flags.c_contiguous
