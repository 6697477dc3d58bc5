import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flambeau.kernels.reduction import sorting

floats = st.lists(
    st.sampled_from([0.0, -0.0, 1.0, -2.5, np.nan, np.inf, -np.inf, 1e-40]), min_size=1, max_size=80
)


def order(x, descending):
    """The stable order with NaN above all, by Python's sort."""
    key = [(1, 0.0) if v != v else (0, v) for v in x.tolist()]
    return sorted(range(len(x)), key=key.__getitem__) if not descending else sorted(
        range(len(x)), key=lambda i: (-key[i][0], -key[i][1]))  # fmt: skip


@given(floats, st.booleans(), st.sampled_from([np.float32, np.float64, np.float16]))
def test_order(values, descending, dtype):
    x = np.array(values, dtype)
    for version in (sorting.sort, sorting.sort.reference):
        found, where = version(x, 0, descending, True)
        assert where.tolist() == order(x, descending)
        np.testing.assert_array_equal(found, x[where])


@given(floats, st.booleans(), st.data())
def test_topk_is_the_head_of_the_sorted(values, largest, data):
    x = np.array(values, np.float32)
    k = data.draw(st.integers(0, len(x)))
    places = []
    for version in (sorting.topk, sorting.topk.reference):
        found, where = version(x, k, 0, largest)
        np.testing.assert_array_equal(found, x[order(x, largest)[:k]])
        np.testing.assert_array_equal(found, x[where])
        assert len(set(where.tolist())) == k
        places.append(where.tolist())
    assert places[0] == places[1]           # also of equal elements


@pytest.mark.parametrize("values", [2, 7, 1000])
@pytest.mark.parametrize("n", [1, 2, 5, 17, 64, 300, 1000])
def test_both_select_the_same_of_equal_elements(n, values):
    x = np.random.RandomState(n).randint(0, values, (2, n)).astype(np.float32)
    x[0, ::5] = np.nan
    for k in {1, 2, n // 64, n // 3, n - 1, n} & set(range(1, n + 1)):
        for largest, in_order in ((True, True), (False, True), (True, False)):
            ours, twins = (version(x, k, 1, largest, in_order)[1]
                           for version in (sorting.topk, sorting.topk.reference))
            np.testing.assert_array_equal(ours, twins)
        np.testing.assert_array_equal(sorting.kthvalue(x, k, 1)[1],
                                      sorting.kthvalue.reference(x, k, 1)[1])


@given(floats, st.data())
def test_ranks(values, data):
    x = np.array(values)
    k = data.draw(st.integers(1, len(x)))
    found, where = sorting.kthvalue(x, k, 0)
    np.testing.assert_array_equal(found, x[order(x, False)[k - 1]])
    np.testing.assert_array_equal(found, x[where])
    middle, where = sorting.median(x, 0)
    if np.isnan(x).any():
        assert np.isnan(middle) and where == np.flatnonzero(np.isnan(x))[0]
    else:
        assert where == order(x, False)[(len(x) - 1) // 2]
    numbers = x[~np.isnan(x)]
    if len(numbers):
        assert sorting.nanmedian(x, 0)[0] == np.sort(numbers)[(len(numbers) - 1) // 2]


def test_axes_and_shapes():
    x = np.random.default_rng(0).integers(0, 9, (4, 60, 3))
    for found, expected in zip(
        sorting.sort(x, 1), (np.sort(x, 1), np.argsort(x, 1, kind="stable"))
    ):
        np.testing.assert_array_equal(found, expected)
    assert sorting.topk(x, 2, 1)[0].shape == (4, 2, 3)
    assert sorting.median(x, 1)[0].shape == (4, 3)
    assert sorting.kthvalue(x, 2, -2, True)[1].shape == (4, 1, 3)
    assert sorting.sort(np.asarray(3.0), 0)[1] == 0
    assert sorting.sort(np.zeros((0, 3)), 0)[0].shape == (0, 3)


def test_mode():
    x = np.array([[3, 1, 1, 2, 2], [5, 5, 5, 0, 0]])
    values, where = sorting.mode(x, 1)
    assert values.tolist() == [1, 5] and where.tolist() == [2, 2]


def test_unique():
    values, inverse, counts = sorting.unique(np.array([[2, 1], [3, 1]]), True, True)
    assert values.tolist() == [1, 2, 3] and counts.tolist() == [2, 1, 1]
    assert inverse.tolist() == [[1, 0], [2, 0]]
    assert len(sorting.unique(np.array([np.nan, 1, np.nan]))[0]) == 3
    values, inverse, counts = sorting.unique_consecutive(np.array([1, 1, 2, 1]), None, True, True)
    assert values.tolist() == [1, 2, 1] and counts.tolist() == [2, 1, 1]
    assert inverse.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("axis", [0, 1])
def test_unique_rows(axis):
    x = np.random.default_rng(0).integers(0, 2, (12, 3))
    x = x if axis == 0 else x.T
    values, inverse, counts = sorting.unique_rows(x, axis, True, True)
    np.testing.assert_array_equal(values, np.unique(x, axis=axis))
    np.testing.assert_array_equal(np.take(values, inverse, axis), x)
    assert counts.sum() == 12
