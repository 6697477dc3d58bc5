"""Samples of the ops of `flambeau/ops/reduction/sums.py`."""
import numpy as np
import pytest
from matrices import products
from sample_tests import SampleTests
from samples import Samples, call, inf, nan

import flambeau

family = Samples()

products(family, (3, 4))("trace")
for _name in ("sum", "mean", "nansum", "nanmean"):
    @family(_name)
    def _(r, name=_name):
        x = r.real(2, 3)
        with_nan = np.where(r.bools(2, 3), nan, r.real(2, 3))
        calls = [call(x), call(x, 1), call(x, (0, 1), True), call(x, -1, keepdim=True), call(x, ()),
                 call(r.real()), call(r.real(0, 2), 1), call(r.real(0, 2), 0),
                 call(r.real(2, 3, 2), (0, 2))]
        if not name.startswith("nan"):
            calls += [call(r.complex(2, 3), 0), call(x, 0, dtype=np.dtype("float32"))]
        else:
            calls += [call(with_nan).but(smooth=False), call(with_nan, 0).but(smooth=False)]
        if name.endswith("sum"):
            calls += [call(r.integers(0, 5, 3)), call(r.bools(2, 3), 0)]
        return calls


@family("prod")
def _(r):
    x = r.real(2, 3)
    calls = [call(x), call(x, 1), call(x, 0, True), call(r.real()), call(r.real(0, 2), 0),
             call(r.complex(2, 3), 1), call(r.integers(1, 5, 3)), call(r.bools(3)),
             call(r.integers(1, 5, 3), dtype=np.dtype("float32"))]
    for zeros in ([0], [0, 1], [0, 1, 2]):
        y = x.copy()
        y[1, zeros] = 0
        calls += [call(y), call(y, 1), call(y, 0)]
    return calls


for _name in ("all", "any", "count_nonzero"):
    @family(_name)
    def _(r, name=_name):
        x = r.real(2, 3) * r.bools(2, 3)
        calls = [call(x), call(x, 1), call(r.bools(2, 3), 0), call(r.bools(2, 3), (0, 1)),
                 call(r.real(0, 2), 0), call(np.array([1, 0], np.uint8)), call(r.real())]
        return calls + ([] if name == "count_nonzero" else [call(x, 1, True)])


@family("logsumexp")
def _(r):
    return [call(r.real(2, 3), 1), call(r.real(2, 3), (0, 1)), call(r.real(2, 3), 0, True),
            call(r.real(), 0),
            call(np.array([[inf, 1.0], [-inf, -inf], [nan, 0.0]]), 1).but(smooth=False),
            call(r.integers(0, 5, 3), 0), call(r.real(0, 2), 0)]


class TestSamples(SampleTests):
    family = family


def test_out_has_the_type_that_is_asked_for():
    x, out = flambeau.ones(2, 3), flambeau.ones(3)
    for name in ("sum", "prod", "mean", "nansum", "nanmean"):
        reduce = getattr(flambeau, name)
        with pytest.raises(RuntimeError, match=r"out tensor to have dtype double, but got float|"
                           r"dtype must match dtype of result. Got Float and Double"):
            reduce(x, 0, dtype=flambeau.float64, out=out)
        assert reduce(x, 0, dtype=flambeau.float32, out=out) is out


def test_logsumexp_of_no_dimensions():
    """All are summed over, none of which the result of the maximum loses, as in PyTorch."""
    x = flambeau.zeros(2, 3)
    with pytest.raises(RuntimeError, match=r"output with shape \[\] doesn't match .* \[1, 1\]"):
        x.logsumexp(())
    assert flambeau.allclose(x.logsumexp((), True), flambeau.tensor([[6.0]]).log())
