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
