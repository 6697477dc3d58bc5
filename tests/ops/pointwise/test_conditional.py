"""Samples of the ops of `flambeau/ops/pointwise/conditional.py`."""
import numpy as np
import pytest
from sample_tests import SampleTests
from samples import CORNERS, Samples, call, nan

import flambeau as torch

family = Samples()


@family("nan_to_num")
def _(r):
    return [call(r.real(2, 3)), call(np.array(CORNERS[0])).but(smooth=False),
            call(np.array(CORNERS[0]), 1.0, 2.0, -3.0).but(smooth=False), call(r.complex(3)),
            call(r.integers(0, 5, 3))]


@family("where")
def _(r):
    return [call(r.bools(2, 3), r.real(2, 3), r.real(2, 3)),
            call(r.bools(3), r.real(2, 1), r.real()), call(r.bools(3), r.real(3), 2.0),
            call(r.bools(3), 1, r.real(3)), call(r.bools(4)), call(r.bools(3), 1, 2),
            call(r.bools(3), r.complex(3), r.real(3)), call(r.bools(3), r.integers(0, 5, 3), 1.5)]


@family("Tensor.where")
def _(r):
    return [call(r.real(3), r.bools(3), 0), call(r.real(3), r.bools(2, 3), r.real(2, 1))]


@family("Tensor.masked_fill")
def _(r):
    return [call(r.real(2, 3), r.bools(2, 3), 1.5), call(r.real(3), r.bools(2, 3), 1),
            call(r.real(2, 3), r.bools(3), r.real()), call(r.integers(0, 5, 3), r.bools(3), 2)]


@family("Tensor.masked_fill_")
def _(r):
    return [call(r.integers(0, 5, 3), r.bools(3), 2)]


@family("clamp")
def _(r):
    x, edge = r.distinct(2, 3), np.array([0.0, 1.0, 0.5, -1.0, 2.0, nan])
    return [call(x, -0.31, 0.47), call(x, min=-0.31), call(x, max=0.47), call(x, 0.5, -0.5),
            call(x, r.distinct(3), r.distinct(2, 1) + 1), call(x, min=r.distinct(2, 3)),
            call(x, max=r.distinct(3)), call(x, -0.31, r.distinct(3)),
            call(edge, 0, 1).but(smooth=False),
            call(edge, edge * 0, edge * 0 + 1).but(smooth=False),
            call(r.integers(-5, 5, 6), -2, 3), call(r.integers(-5, 5, 6), 0.5)]


@family("clamp_min")
def _(r):
    return [call(r.distinct(2, 3), 0.05), call(r.distinct(2, 3), r.distinct(3))]


@family("clamp_max")
def _(r):
    return [call(r.distinct(2, 3), 0.05), call(r.distinct(2, 3), r.distinct(3))]


@family("fill")
def _(r):
    return [call(r.real(2, 3), 2.5), call(r.real(2, 3), r.real()), call(r.integers(0, 5, 3), 2)]


class TestSamples(SampleTests):
    family = family


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float16", "bfloat16"])
def test_clamp_of_narrow_types(dtype):
    dtype = getattr(torch, dtype)
    values = [0, 3, 7, 100]
    x = torch.tensor(values * 50).to(dtype).reshape(40, 5)
    for low, high in ((2, 7), (None, 7), (2, None), (9, 1)):
        expected = [v if low is None else max(v, low) for v in values]
        expected = [v if high is None else min(v, high) for v in expected]
        expected = torch.tensor(expected * 50).to(dtype).reshape(40, 5)
        assert x.clamp(low, high).dtype is dtype
        assert torch.equal(x.clamp(low, high), expected)
        assert torch.equal(x.t().clamp(low, high), expected.t())
        assert torch.equal(x.clone().clamp_(low, high), x.clamp(low, high))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_bounds_of_halves_are_rounded(dtype):
    x = torch.tensor([-1.0, 0.05, 0.1, 1.0, float("inf"), float("-inf")], dtype=dtype)
    bound = torch.tensor(0.1, dtype=dtype).item()
    assert x.clamp(min=0.1).tolist() == [max(v, bound) for v in x.tolist()]
    assert x.clamp(max=0.1).tolist() == [min(v, bound) for v in x.tolist()]
    assert x.new_tensor(float("nan")).clamp(0, 1).isnan()
    with pytest.raises(RuntimeError, match="without overflow"):
        x.clamp(max=1e39)
