"""x[...] and x[...] = value: C and its twin in Python say the same, which is what NumPy says."""
import operator
import random

import numpy as np
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau
import flambeau.kernels
from flambeau.ops.indexing.index import _getitem, _setitem

SHAPE = (3, 4, 5)


def an_index(rng, advanced=True):
    """An index of a tensor of SHAPE."""
    items, dim = [], 0
    while dim < 3 and rng.random() < 0.85:
        n, kind = SHAPE[dim], rng.randrange(10 if advanced else 6)
        if kind == 0:
            items.append(None)
            continue
        if kind in (1, 2):
            items.append(rng.randrange(-n, n))
        elif kind in (3, 4):
            start, stop = (rng.choice([None, rng.randrange(-7, 7)]) for _ in range(2))
            items.append(slice(start, stop, rng.choice([None, 1, 2, 3])))
        elif kind == 5:
            items.append(slice(None))
        elif kind in (6, 7):
            items.append(flambeau.tensor([rng.randrange(-n, n) for _ in range(2)]))
        elif kind == 8:
            items.append([rng.randrange(-n, n) for _ in range(2)])
        else:
            items.append(flambeau.tensor([rng.random() < 0.5 for _ in range(n)]))
        dim += 1
    if rng.random() < 0.3:
        items.insert(rng.randrange(len(items) + 1), Ellipsis)
        tail = items[items.index(Ellipsis) + 1:]
        items = [i for i in items if i is Ellipsis] if tail else items
    return items[0] if len(items) == 1 and rng.random() < 0.5 else tuple(items)


def as_numpy(index):
    if isinstance(index, tuple):
        return tuple(as_numpy(i) for i in index)
    return index.numpy() if isinstance(index, flambeau.Tensor) else index


def outcome(function, *args):
    try:
        return function(*args)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        return type(error), str(error)


def described(found):
    if isinstance(found, tuple):
        return found
    node = found.grad_fn
    return (found.tolist(), found.shape, found.stride(), found.storage_offset(),
            found._base is None, node and node.name())


@pytest.mark.parametrize("tracked", [False, True])
def test_reading_is_that_of_the_twin_and_of_numpy(tracked):
    rng = random.Random(0)
    x = flambeau.arange(60.0).view(SHAPE).requires_grad_(tracked)
    for source in (x, x.transpose(0, 1).transpose(0, 1) if tracked else x):
        for _ in range(600):
            index = an_index(rng)
            found, expected = (outcome(get, source, index) for get in (operator.getitem, _getitem))
            assert described(found) == described(expected), index
            # beside arrays, an integer is to NumPy an array too
            mixed = {type(i) for i in index} if isinstance(index, tuple) else set()
            if isinstance(found, flambeau.Tensor) and not (int in mixed and mixed & {
                    flambeau.Tensor, list}):
                there = x.detach().numpy()[as_numpy(index)]
                assert np.array_equal(found.detach().numpy(), there), index


def test_writing_is_that_of_the_twin():
    rng = random.Random(1)
    for _ in range(1200):
        index = an_index(rng)
        a, b = (flambeau.arange(60.0).view(SHAPE) for _ in range(2))
        part = outcome(operator.getitem, a, index)
        value = rng.choice([7.0, 3, True, flambeau.tensor(5.0), flambeau.arange(5.0),
                            -part if isinstance(part, flambeau.Tensor) else 1])
        found, expected = (outcome(set_, t, index, value) for set_, t in (
            (flambeau.Tensor.__setitem__, a), (_setitem, b)))
        assert found == expected, index
        assert a.tolist() == b.tolist(), (index, value)
        assert a._version == b._version


def test_a_write_to_a_view_is_one_to_its_base():
    x = flambeau.zeros(3, 4)
    row = x[1]
    row[2:] = 1
    x[0][flambeau.tensor([0, 3])] = flambeau.tensor([5.0, 6.0])
    assert x.tolist() == [[5, 0, 0, 6], [0, 0, 1, 1], [0, 0, 0, 0]]
    assert x._version == row._version == 2


def test_a_write_that_overlaps_what_it_reads():
    x = flambeau.arange(5)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:] = x[:-1]
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_what_autograd_forbids():
    w = flambeau.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        w[0] = 1
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        w[:2][0] = 1
    with flambeau.no_grad():
        w[0] = 4
    assert w.tolist() == [4, 1, 1]
    x = flambeau.zeros(3)
    x[:2][0] = w[0]
    assert x.requires_grad


def test_whole_slices_change_nothing():
    x = flambeau.zeros(3, 4, requires_grad=True)
    names = {"Select": x[0, :], "Slice": x[:], "Alias": x[:, 0:9], "Unsqueeze": x[:, None]}
    for name, found in names.items():
        assert found.grad_fn.name() == f"{name}Backward0"
    if flambeau.kernels.native_available:       # NumPy forgets where what is empty begins
        assert x[3:].storage_offset() == 12


def test_gradients_of_places_add_up():
    w = flambeau.arange(4.0, requires_grad=True)
    w[flambeau.tensor([0, 0, 3])].sum().backward()
    assert w.grad.tolist() == [2, 0, 0, 1]


# ---- samples ------------------------------------------------------------------------------------

family = Samples()


@family("index_put")
def _(r):
    where = (np.array([0, 1]), np.array([2, 0]))
    return [call(r.real(2, 3), where, r.real(2)), call(r.real(2, 3), where[:1], r.real(2, 3), True)]

family.unbatched = ("Tensor.__getitem__",)


class TestSamples(SampleTests):
    family = family
