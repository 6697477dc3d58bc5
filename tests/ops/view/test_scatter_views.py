"""Samples of the ops of `flambeau/ops/view/scatter_views.py`."""
import numpy as np
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

family = Samples()


def x(r, *shape):
    return np.asarray(r.rng.randn(*shape))


@family("select_scatter")
def _(r):
    return [call(x(r, 3, 4), x(r, 3), 1, 2), call(x(r, 3, 4), x(r, 4), -2, -1)]


@family("slice_scatter")
def _(r):
    return [call(x(r, 3, 4), x(r, 3, 2), 1, 1, 4, 2), call(x(r, 3, 4), x(r, 2, 4), start=1)]


@family("diagonal_scatter")
def _(r):
    return [call(x(r, 3, 4), x(r, 3)), call(x(r, 2, 3, 4), x(r, 3, 2), -1, 2, 0)]


class TestSamples(SampleTests):
    family = family


def test_copies_lie_as_the_tensor_does():
    """At the same offset in their memory, with the same strides; of expanded ones, dense."""
    for x in (flambeau.arange(12.0)[4:].view(2, 4), flambeau.arange(12.0).view(3, 4)[:, 1:3],
              flambeau.arange(12.0).view(4, 3).t()[1:]):
        for part, found in ((x[:1], x.slice_scatter(x[:1] * 2, 0, 0, 1)),
                            (x[0], x.select_scatter(x[0] * 2, 0, 0)),
                            (x.diagonal(), x.diagonal_scatter(x.diagonal() * 2))):
            assert (found.stride(), found.storage_offset()) == (x.stride(), x.storage_offset())
            assert found._base is None and found.sum() == x.sum() + part.sum()
    x = flambeau.ones(3).expand(2, 3)
    assert x.select_scatter(x[0], 0, 0).stride() == (3, 1)


@pytest.mark.parametrize("shape", [(), (1, 3), (2,)])
def test_a_diagonal_does_not_broadcast(shape):
    with pytest.raises(RuntimeError, match="expected src to have a size equal to the slice"):
        flambeau.diagonal_scatter(flambeau.zeros(3, 3), flambeau.ones(shape))
