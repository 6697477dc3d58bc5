"""Samples of the ops of `flambeau/ops/reduction/sort.py`."""
import numpy as np
import pytest
from sample_tests import SampleTests
from samples import TIES, WITH_NAN, Samples, call

import flambeau

family = Samples()


@family("sort")
def _(r):
    return [call(r.distinct(2, 4)), call(r.distinct(3, 2), 0, True), call(r.real()),
            call(TIES, stable=True).but(smooth=False), call(WITH_NAN, 1).but(smooth=False),
            call(r.distinct(2, 3), stable=True, dim=0), call(r.distinct(5), 0, True),
            call(r.integers(0, 100, 6)), call(r.real(0, 2))]


@family("argsort")
def _(r):
    return [call(r.distinct(2, 4)), call(r.distinct(3, 2), 0, True), call(TIES, stable=True)]


@family("msort")
def _(r):
    return [call(r.distinct(3, 2))]


@family("topk")
def _(r):
    return [call(r.distinct(2, 4), 2), call(r.distinct(4, 2), 3, 0), call(r.real(), 1),
            call(r.distinct(2, 4), 2, largest=False), call(r.distinct(5), 0),
            call(r.distinct(5), 6)]


@family("kthvalue")
def _(r):
    return [call(r.distinct(2, 4), 2), call(r.distinct(4, 2), 3, 0, True), call(r.real(), 1)]


for _name in ("median", "nanmedian"):
    @family(_name)
    def _(r):
        return [call(r.distinct(2, 4)), call(r.distinct(2, 3), 1), call(r.distinct(4, 2), 0, True),
                call(WITH_NAN).but(smooth=False), call(WITH_NAN, 0).but(smooth=False),
                call(r.integers(0, 100, 5)), call(r.real()), call(r.real(), 0)]


@family("mode")
def _(r):
    return [call(r.distinct(2, 3)), call(np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 1.0]]))
            .but(smooth=False), call(r.distinct(3, 2), 0, True), call(r.real())]


class TestSamples(SampleTests):
    family = family


def test_k_is_refused_before_the_type():
    for x in (flambeau.tensor([True, False]), flambeau.tensor([1j, 2j])):
        for choose in (flambeau.topk, flambeau.kthvalue):
            with pytest.raises(RuntimeError, match=r"selected (index k|number k) out of range"):
                choose(x, 3)
        with pytest.raises(RuntimeError, match="topk does not support"):
            flambeau.topk(x, 1)
