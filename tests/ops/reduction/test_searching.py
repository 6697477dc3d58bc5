"""Searching and counting: what the table of samples does not say."""
import numpy as np
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau
from flambeau import _VF

X = [2.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("find, node, name, expected", [
    (lambda x: flambeau.unique(x), "Unique2Backward0", "_unique2", [1, 2]),
    (lambda x: flambeau.unique(x, dim=0), "UniqueDimBackward0", "unique_dim", [1, 2]),
    (lambda x: flambeau.unique_consecutive(x, return_inverse=True, return_counts=True),
     "UniqueConsecutiveBackward0", "unique_consecutive", [2, 1, 2]),
    (lambda x: flambeau._unique(x), "UniqueBackward0", "_unique", [1, 2]),
    (lambda x: flambeau._unique2(x), "Unique2Backward0", "_unique2", [1, 2]),
    (lambda x: _VF.unique_dim(x, 0), "UniqueDimBackward0", "unique_dim", [1, 2]),


])


def test_distinct_elements_require_grad_but_have_no_derivative(find, node, name, expected):
    found = find(flambeau.tensor(X, requires_grad=True))
    values, *rest = found if isinstance(found, tuple) else (found,)
    assert values.tolist() == expected and not any(r.requires_grad for r in rest)
    assert values.grad_fn.name() == node
    with pytest.raises(NotImplementedError, match=f"the derivative for '{name}' is not implem"):
        values.sum().backward()


def test_the_forms_that_always_give_everything():
    x = flambeau.tensor(X)
    assert [t.tolist() for t in flambeau._unique2(x)] == [[1, 2], [], []]
    assert [t.tolist() for t in flambeau._unique2(x, True, True, True)] == [
        [1, 2], [1, 1, 0, 1], [1, 3]]
    assert [t.tolist() for t in flambeau._unique(x, return_inverse=True)] == [[1, 2], [1, 1, 0, 1]]
    assert [t.tolist() for t in _VF.unique_dim(x, 0)] == [[1, 2], [1, 1, 0, 1], [1, 3]]


@pytest.mark.parametrize("call", [
    lambda m: m[m > 0], lambda m: flambeau.ones(3, 4)[m > 0], lambda m: m.nonzero(),
    lambda m: flambeau.where(m > 0), flambeau.argwhere, flambeau.unique,
    lambda m: flambeau.unique(m, dim=0), flambeau.unique_consecutive,
    lambda m: flambeau.masked_select(m, m > 0), lambda m: flambeau.bincount(m[0].long())])


def test_meta_refuses_what_depends_on_values(call):
    with pytest.raises(NotImplementedError, match=r"with Meta tensors|register_meta"):
        call(flambeau.empty(3, 4, device="meta"))


def test_meta_has_the_shapes_that_are_known():
    m = flambeau.empty(3, 4, device="meta")
    counts = flambeau.empty(3, dtype=flambeau.int64, device="meta")
    mask = flambeau.tensor([True, False, True])
    assert m[mask].shape == (2, 4)
    assert m[counts].shape == (3, 4)
    assert flambeau.nonzero_static(m, size=5).shape == (5, 2)
    assert flambeau.repeat_interleave(m, 2, 0).shape == (6, 4)
    assert flambeau.repeat_interleave(m, counts, 0, output_size=7).shape == (7, 4)
    for args in ((counts,), (m, counts, 0)):
        with pytest.raises(RuntimeError, match="a meta tensor without output_size"):
            flambeau.repeat_interleave(*args)


POINTS = flambeau.tensor([[0.1, 0.9], [0.6, 0.2], [0.3, 0.4], [0.7, 0.8], [5.0, 0.1]]).double()
COUNTS = {
    "bincount": lambda w: flambeau.bincount(flambeau.tensor([0, 3, 3, 1, 0]), w, 6),
    "histogram": lambda w: flambeau.histogram(POINTS[:, 0], 3, range=(0.2, 0.9), weight=w).hist,
    "density": lambda w: flambeau.histogram(POINTS[:, 0], 3, weight=w, density=True).hist,
    "histogramdd": lambda w: flambeau.histogramdd(POINTS, [2, 3], weight=w).hist,
    "density of points": lambda w: flambeau.histogramdd(
        POINTS, [2, 3], range=(0, 1, 0, 1), weight=w, density=True).hist,
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_move_with_weights(name):
    weights = flambeau.tensor([0.3, 1.0, 0.7, 0.2, 0.5], dtype=flambeau.double, requires_grad=True)
    check = flambeau.autograd.gradcheck
    assert check(COUNTS[name], weights, check_forward_ad=True, check_batched_grad=True)
    assert flambeau.autograd.gradgradcheck(COUNTS[name], weights)


def test_where_nothing_is_chosen_gives_the_columns_of_nonzero():
    x = flambeau.tensor([[1, 0], [1, 1]])
    rows, columns = flambeau.where(x != 0)
    assert rows.tolist() == [0, 1, 1] and columns.tolist() == [0, 0, 1]
    assert rows.stride() == columns.stride() == (1,) and rows._base is columns._base is not None
    assert [part.tolist() for part in flambeau.where(flambeau.tensor(True))] == [[0]]


# ---- samples ------------------------------------------------------------------------------------

family = Samples()


@family("equal")
def _(r):
    x = r.real(5)
    return [call(x, x), call(x, x[:4]), call(x, x + 1)]


@family("nonzero")
def _(r):
    return [call(r.bools(2, 3)), call(r.bools(4), as_tuple=True), call(r.real()),
            call(r.real(), as_tuple=True)]


@family("argwhere")
def _(r):
    return [call(r.bools(2, 3))]


@family("unique")
def _(r):
    x = r.integers(0, 4, 2, 5)
    return [call(x), call(x, return_inverse=True), call(x, True, True, True),
            call(x[:, :2] % 2, dim=0, return_counts=True), call(x % 2, dim=1, return_inverse=True)]


@family("unique_consecutive")
def _(r):
    x = r.integers(0, 2, 2, 5)
    return [call(x), call(x, True, True), call(x, dim=1), call(x, dim=0, return_counts=True)]


SEQUENCE = np.array([[1.0, 3.0, 5.0], [2.0, 4.0, 4.0]])


@family("searchsorted")
def _(r):
    return [call(SEQUENCE, r.real(2, 4) * 2), call(SEQUENCE[0], 3.0),
            call(SEQUENCE[0], r.real(2, 2)),
            call(SEQUENCE, np.array([[3.0], [4.0]]), right=True),
            call(SEQUENCE[0], np.array([3.0]), side="right", out_int32=True),
            call(SEQUENCE[0][::-1].copy(), np.array([2.0]), sorter=np.array([2, 1, 0]))]


@family("bucketize")
def _(r):
    return [call(r.real(2, 3), SEQUENCE[0]), call(np.array([1.0, 3.0]), SEQUENCE[0], right=True),
            call(2, SEQUENCE[0])]


@family("isin")
def _(r):
    return [call(r.integers(0, 5, 2, 3), r.integers(0, 5, 2)), call(r.integers(0, 5, 4), 2),
            call(2, r.integers(0, 5, 4)),
            call(r.integers(0, 5, 4), r.integers(0, 5, 2), invert=True),
            call(r.integers(0, 300, 200), r.integers(0, 300, 100))]


@family("bincount")
def _(r):
    x = r.integers(0, 5, 8)
    return [call(x), call(x, minlength=9), call(x, r.real(8)), call(x, r.integers(0, 4, 8))]


@family("nonzero_static")
def _(r):
    return [call(r.bools(5), size=3), call(r.bools(2, 3), size=6, fill_value=9)]


@family("unravel_index")
def _(r):
    return [call(r.integers(0, 12, 5), (3, 4)), call(r.integers(0, 12, 2, 2), (2, 3, 2))]


family.unbatched = ("bincount", "unique", "nonzero", "unique_consecutive", "argwhere", "equal")


class TestSamples(SampleTests):
    family = family


def test_coordinates_of_places_on_meta():
    rows, columns = flambeau.unravel_index(flambeau.zeros(3, dtype=flambeau.int64, device="meta"),
                                           (2, 5))
    assert rows.is_meta and columns.is_meta
    assert rows.shape == columns.shape == (3,) and rows.dtype is flambeau.int64


def test_slices_that_cannot_be_compared():
    for find in (flambeau.unique, flambeau.unique_consecutive):
        for shape, error, said in (((), IndexError, "Dimension specified as 0 but tensor has no"),
                                   ((3, 0), RuntimeError, "There are 0 sized dimensions, and they"),
                                   ((0, 0), RuntimeError, "zero sized dimensions is more than on")):
            with pytest.raises(error, match=said):
                find(flambeau.ones(shape), dim=0)
        assert find(flambeau.ones(0, 3), dim=0).shape == (0, 3)


def test_sorters_lie_in_the_sequence():
    for sorter in ([0, 1, 3], [0, -1, 1]):
        with pytest.raises(RuntimeError, match="sorter index out of range"):
            flambeau.searchsorted(flambeau.ones(3), flambeau.ones(1),
                                  sorter=flambeau.tensor(sorter))
