"""Canonical arguments: the same for all ways to spell a call."""
import numpy as np
import pytest

import flambeau as torch
from flambeau.dispatch import canonical
from flambeau.dispatch.canonical import canonical_value


@pytest.mark.parametrize("role,value,ndim,size,found", [
    (canonical.DIM, -1, 3, 0, 2), (canonical.DIM, 0, 0, 0, 0), (canonical.NEW_DIM, -1, 3, 0, 3),
    (canonical.DIMS, [0, -1], 3, 0, (0, 2)), (canonical.DIMS, (), 3, 0, None),
    (canonical.SOME_DIMS, (), 3, 0, ()), (canonical.INTS, 2, 3, 2, (2, 2)),
    (canonical.INTS, [1, 2], 3, 2, (1, 2)), (canonical.FLOAT, 2, 1, 0, 2.0),
    (canonical.DTYPE, torch.int8, 1, 0, np.dtype("int8")), (canonical.DTYPE, float, 1, 0,
                                                            np.dtype("float64"))])
def test_roles(role, value, ndim, size, found):
    given = canonical_value(role, value, ndim, size)
    assert given == found and type(given) is type(found)


@pytest.mark.parametrize("role", range(13))
def test_none_stays_none(role):
    assert canonical_value(role, None, 2) is None


def test_dimensions_that_are_not_there():
    with pytest.raises(IndexError, match=r"range of \[-2, 1\], but got 2"):
        canonical_value(canonical.DIM, 2, 2)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        canonical_value(canonical.DIMS, (0, 0), 2)


@pytest.mark.parametrize("first,second", [
    (lambda x: x.sum(-1), lambda x: x.sum(dim=(1,))),
    (lambda x: x.transpose(0, 1), lambda x: x.transpose(dim0=-2, dim1=-1)),
    (lambda x: torch.cumsum(x, axis=0), lambda x: x.cumsum(-2))])
def test_one_node_for_all_spellings(first, second):
    x = torch.ones(2, 3, requires_grad=True)
    one, two = first(x).grad_fn, second(x).grad_fn
    saved = [n for n in dir(one) if n.startswith("_saved_")]
    assert type(one) is type(two) and saved == [n for n in dir(two) if n.startswith("_saved_")]
    assert all(getattr(one, n) == getattr(two, n) for n in saved)


def twin_of(function):
    return getattr(function, "twin", function)


def test_instances_of_subclasses_are_bound_at_once():
    """Also of those that are defined after the function was first called."""
    twin = twin_of(torch.add)
    quick, *_ = twin.quick[0]
    one = torch.ones(2)
    assert quick((one, one), {}) is not None

    class Own(torch.Tensor):
        pass
    own = one.as_subclass(Own)
    assert quick((own, 2.0), {})[:2] == [own, 2.0] and quick((own, own), {})[1] is own
    assert quick((own, "2"), {}) is None


def test_overloads_that_cannot_take_as_many_arguments_are_not_tried():
    """Python's binding of a call that can't fit costs an exception."""
    twin = twin_of(torch.add)
    two = [takes for _, takes, _ in twin.quick if 2 in takes]
    assert two and all(1 not in takes for _, takes, _ in twin.quick)
    reduced = twin_of(torch.sparse.mm).quick
    assert sorted(min(takes) for _, takes, _ in reduced) == [2, 3]


def test_arguments_that_need_no_canonical_form_are_passed_on_as_they_are():
    short, whole = twin_of(torch.sparse.mm).overloads
    values = [object(), object(), "sum"]
    assert whole.unchanged and whole.canonical(values) == tuple(values)
    assert not short.unchanged and short.canonical(values[:2]) == (*values[:2], None)
    assert not twin_of(torch.cumsum).overloads[0].unchanged        # a dimension counts from the end
