"""Forward mode: against closed forms, through writes and views, and over reverse mode."""
import pytest

import flambeau
from flambeau.autograd import forward_ad, grad
from flambeau.testing import assert_close


def tangent_of(f, x, t):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, t))).tangent


CASES = {
    "sin": (lambda x: x.sin(), lambda x: x.cos()),
    "power": (lambda x: x ** 3, lambda x: 3 * x ** 2),
    "product": (lambda x: x * x.exp(), lambda x: (1 + x) * x.exp()),
    "write": (lambda x: (x * 1).mul_(x), lambda x: 2 * x),
    "reciprocal": (lambda x: 1 / x, lambda x: -1 / x ** 2),
}


@pytest.mark.parametrize("name", CASES)
def test_closed_forms(name):
    f, slope = CASES[name]
    x = flambeau.linspace(0.5, 2, 5, dtype=flambeau.float64)
    t = flambeau.linspace(-1, 1, 5, dtype=flambeau.float64)
    assert_close(tangent_of(f, x, t), slope(x) * t)


@pytest.mark.parametrize("name", ["sin", "power", "product"])
def test_over_reverse(name):
    f, slope = CASES[name]
    x = flambeau.linspace(0.5, 2, 5, dtype=flambeau.float64)
    t = flambeau.ones(5, dtype=flambeau.float64)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone().requires_grad_(), t)
        first, = grad(f(dual).sum(), dual, create_graph=True)
        second = forward_ad.unpack_dual(first).tangent
    point = x.clone().requires_grad_()
    expected, = grad(slope(point).sum(), point)
    assert_close(second.detach(), expected)


def test_writes_to_views_reach_the_base():
    x, t = flambeau.zeros(3), flambeau.ones(1)
    with forward_ad.dual_level():
        y = x.clone()
        y[1:2].copy_(forward_ad.make_dual(flambeau.full((1,), 5.0), t))
        primal, tangent = forward_ad.unpack_dual(y)
    assert primal.tolist() == [0.0, 5.0, 0.0] and tangent.tolist() == [0.0, 1.0, 0.0]


def test_tangents_end_with_the_level():
    x = flambeau.ones(1)
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x, x) * 2
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(y).tangent is None


def test_an_unpacked_primal_has_no_tangent():
    x = flambeau.ones(3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, 2 * x)
        for tensor in (dual, dual[:2], dual + 0, (dual + 0)[:2]):
            primal, tangent = forward_ad.unpack_dual(tensor)
            assert tangent.tolist() == [2.0] * len(tensor)
            for made in (primal, primal * 3, primal.detach()):
                assert forward_ad.unpack_dual(made).tangent is None
        again = forward_ad.make_dual(primal, 5 * primal)
        assert forward_ad.unpack_dual(again).tangent.tolist() == [5.0, 5.0]


def test_misuse():
    x = flambeau.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(x, x)
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="different size"):
            forward_ad.make_dual(x, flambeau.ones(3))
        with pytest.raises(ValueError, match="floating point or complex"):
            forward_ad.make_dual(flambeau.ones(2, dtype=flambeau.int64), x)
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"), \
                forward_ad.dual_level():
            pass


def test_inference_mode_propagates_no_tangents():
    x = flambeau.ones(2)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        with flambeau.inference_mode():
            doubled = dual * 2
        assert forward_ad.unpack_dual(doubled).tangent is None
        assert forward_ad.unpack_dual(dual * 2).tangent.tolist() == [2, 2]


def _laid_out():
    z = flambeau.zeros
    return [(z(2, 2), z(2, 2), True), (z(2, 2).t(), z(2, 2), False), (z(5)[:4], z(4), False),
            (z(4), z(5)[:4], False), (z(5)[1:], z(5)[1:], True), (z(5)[1:], z(5)[:4], False),
            (z(2, dtype=flambeau.complex64).conj(), z(2, dtype=flambeau.complex64), False),
            (z(2, dtype=flambeau.complex64).conj(), z(2, dtype=flambeau.complex64).conj(), True)]


@pytest.mark.parametrize("primal, tangent, kept", _laid_out())
def test_tangents_lie_in_memory_as_their_tensors(primal, tangent, kept):
    tangent.copy_(flambeau.ones_like(tangent))
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(forward_ad.make_dual(primal, tangent)).tangent
        assert (found is tangent) == kept and flambeau.equal(found, tangent)
        assert (found.stride(), found.storage_offset(), found.is_conj()) == (
            primal.stride(), primal.storage_offset(), primal.is_conj())
        assert found.untyped_storage().nbytes() == primal.untyped_storage().nbytes()


def test_forward_mode_does_not_reach_outputs():
    with forward_ad.dual_level():
        x, y = forward_ad.make_dual(flambeau.ones(2), flambeau.ones(2)), flambeau.ones(2)
        for call in (lambda: flambeau.add(y, y, out=x), lambda: flambeau.add(x, y, out=y)):
            with pytest.raises(NotImplementedError, match="it is an out= function"):
                call()
        x.eq_(y)
        assert forward_ad.unpack_dual(x).tangent.tolist() == [0, 0]


def test_levels_are_set_aside():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(flambeau.ones(2), flambeau.ones(2))
        flambeau._C._set_fwd_grad_enabled(False)
        try:
            assert not forward_ad._is_fwd_grad_enabled()
            assert forward_ad.unpack_dual(x * 2).tangent is None
            with forward_ad._set_fwd_grad_enabled(True):
                assert forward_ad.unpack_dual(x * 2).tangent.tolist() == [2, 2]
        finally:
            flambeau._C._set_fwd_grad_enabled(True)
        assert forward_ad.unpack_dual(x * 2).tangent.tolist() == [2, 2]
