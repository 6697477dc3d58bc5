"""What all transforms share: caches, inverses, equality, pickles."""

import pickle

import pytest

import flambeau as torch
from flambeau.distributions import transforms


def test_cache():
    t = transforms.TanhTransform().with_cache()
    x = torch.tensor(20.0)   # its tanh is 1 in single precision
    y = t(x)
    assert t.inv(y) is x and t(x) is y
    assert transforms.TanhTransform().inv(torch.tanh(x)).isinf()
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        transforms.ExpTransform(cache_size=2)


def test_cache_holds_the_last_pair_only():
    t = transforms.ExpTransform(cache_size=1)
    x, other = torch.ones(1), torch.zeros(1)
    y = t(x)
    t(other)
    assert t(x) is not y
    assert t.with_cache(1) is t and t.with_cache(0)._cache_size == 0


def test_a_transform_of_ones_own():
    class Double(transforms.Transform):
        domain = codomain = torch.distributions.constraints.real
        bijective = True
        sign = +1

        def _call(self, x):
            return 2 * x

        def _inverse(self, y):
            return y / 2

    t = Double()
    assert t(torch.tensor(3.0)).item() == 6.0 and t.inv(torch.tensor(3.0)).item() == 1.5
    assert t.event_dim == 0 and t.inv.sign == 1 and repr(t) == "Double()"
    assert t != Double() and t == t
    with pytest.raises(NotImplementedError):
        t.log_abs_det_jacobian(torch.tensor(1.0), torch.tensor(2.0))
    assert t.with_cache()._cache_size == 1

    class Scaled(Double):
        def __init__(self, factor, cache_size=0):
            super().__init__(cache_size)

    with pytest.raises(NotImplementedError, match="with_cache is not implemented"):
        Scaled(3).with_cache()


def test_inverse():
    t = transforms.ExpTransform()
    assert t.inv.inv is t and t.inv is t.inv
    assert t.inv == transforms.ExpTransform().inv and t.inv != t
    assert repr(t.inv) == "_InverseTransform(ExpTransform())"
    assert t.inv.domain is t.codomain and t.inv.codomain is t.domain
    assert t.inv.with_cache().inv._cache_size == 1


def test_event_dim_of_a_transform_that_changes_it():
    with pytest.raises(ValueError, match=r"use either .domain.event_dim or .codomain.event_dim"):
        transforms.ReshapeTransform((4,), (2, 2)).event_dim


def test_pickling():
    t = transforms.ExpTransform()
    assert t.inv.inv is t
    assert pickle.loads(pickle.dumps(t)) == t
