"""Which function computes a divergence."""

import math
import pickle

import pytest

import flambeau as torch
from flambeau.distributions import Normal, kl_divergence, register_kl


def test_register_kl_finds_the_most_specific():
    class A(Normal):
        pass

    class B(A):
        pass

    @register_kl(A, Normal)
    def first(p, q):
        return "A, Normal"

    @register_kl(Normal, B)
    def second(p, q):
        return "Normal, B"

    assert kl_divergence(A(0.0, 1.0), Normal(0.0, 1.0)) == "A, Normal"
    with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
        kl_divergence(A(0.0, 1.0), B(0.0, 1.0))
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type"):
        kl_divergence(torch.distributions.StudentT(3.0), Normal(0.0, 1.0))


def test_subclasses_inherit():
    class Mine(Normal):
        pass

    assert kl_divergence(Mine(0.0, 1.0), Normal(0.0, 2.0)).item() == pytest.approx(
        math.log(2) + 1 / 8 - 1 / 2)


def test_a_later_registration_wins():
    class Own(Normal):
        pass

    register_kl(Own, Own)(lambda p, q: 1)
    assert kl_divergence(Own(0.0, 1.0), Own(0.0, 1.0)) == 1
    register_kl(Own, Own)(lambda p, q: 2)
    assert kl_divergence(Own(0.0, 1.0), Own(0.0, 1.0)) == 2


def test_functions_can_be_pickled():
    assert pickle.loads(pickle.dumps(kl_divergence)) is kl_divergence
