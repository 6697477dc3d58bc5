"""Samples of the ops of `flambeau/ops/pointwise/arithmetic.py`."""
import numpy as np
import pytest
from sample_tests import SampleTests
from samples import CORNERS, Samples, call, inf, nan

import flambeau

family = Samples()

family.unary("abs", "neg", "sgn", "square", more=CORNERS)
family.unary("positive")
family.unary("rsqrt", "reciprocal", domain="positive", more=CORNERS)
family.unary("sign", "relu", complex=False, more=CORNERS)
family.binary("mul", number=2.5)
family.binary("true_divide", domain="positive", number=2.5,
              more=[([1.0, -1.0, 0.0, 2.0], [0.0, 0.0, 0.0, inf])])
family.binary("float_power", domain="positive", number=2)
family.binary("hypot", complex=False, more=[([3.0, 0.0, inf, nan], [4.0, 2.0, nan, 0.0])])
family.binary("copysign", complex=False, number=-1.0, more=[([1.0, -0.0, 0.0], [-0.0, 0.0, -1.0])])
family.binary("nextafter", complex=False)


@family("pow")
def _(r):
    x = r.positive(2, 3)
    calls = [call(x, e) for e in (2, 3, 0.5, -0.5, -1, -2, 2.5, 0, 1, 1.5 + 0.5j)]
    calls += [call(2.5, r.real(3)), call(0.0, np.array([0.0, 1.0, 2.0])).but(smooth=False),
              call(2, r.complex(2)), call(x, r.real(2, 3)), call(r.positive(2, 1), r.real(3)),
              call(r.complex(3), 2), call(r.complex(3), r.complex(3)), call(r.complex(3), 0.3),
              call(r.integers(-3, 4, 4), 2), call(r.integers(-3, 4, 4), r.integers(-2, 4, 4)),
              call(r.integers(1, 4, 4), 0.5), call(r.integers(1, 4, 3), r.real(3))]
    for base, exponent in (([0.0, 0.0, 0.0, 2.0, -2.0, 0.0], [0.0, 1.0, 2.0, 0.0, 2.0, -1.0]),
                           ([-2.0, 3.0, 0.0], 2.0), ([-2.0, 3.0, 0.0], 0.0), ([2.0, 0.0], -1.0),
                           ([2.0, 0.0, -1.0, inf, -inf, nan], 0.5)):
        exponent = np.array(exponent) if isinstance(exponent, list) else exponent
        calls.append(call(np.array(base), exponent).but(smooth=False))
    return calls


@family("add")
def _(r):
    return [call(r.real(2, 3), r.real(3), alpha=2.5), call(r.real(2, 3), 2, alpha=3),
            call(r.integers(0, 5, 3), r.integers(0, 5, 3), alpha=2),
            call(r.integers(0, 5, 3), r.real(3)), call(r.bools(3), r.bools(3)),
            call(r.complex(2), r.real(2)), call(r.real(2, 3), r.real(2, 3)), call(r.real(), 1)]


@family("sub")
def _(r):
    return [call(r.real(2, 3), r.real(3), alpha=2.5), call(r.real(2, 3), 2, alpha=3),
            call(r.integers(0, 5, 3), r.integers(0, 5, 3)), call(r.complex(2), r.real(2), alpha=2)]


@family("rsub")
def _(r):
    return [call(r.real(2, 3), r.real(3), alpha=2.5), call(r.real(2, 3), 2)]


@family("div")
def _(r):
    calls = [call(r.positive(2, 3), r.positive(3)), call(r.real(2, 3), 4),
             call(r.complex(3), r.complex(3)), call(r.integers(1, 9, 3), r.integers(1, 4, 3))]
    for mode in ("floor", "trunc"):
        calls += [call(r.real(2, 3), r.positive(3), rounding_mode=mode),
                  call(r.real(2, 3), 0.7, rounding_mode=mode),
                  call(r.integers(-9, 9, 6), 4, rounding_mode=mode),
                  call(r.integers(-9, 9, 6), np.array([2, -2, 3, -3, 4, 5]), rounding_mode=mode)]
    return calls


@family("Tensor.div_")
def _(r):
    return [call(r.integers(-9, 9, 6), 4, rounding_mode="floor")]


@family("Tensor.__rtruediv__")
def _(r):
    return [call(r.positive(2, 3), 2), call(r.integers(1, 5, 3), 2)]


@family("Tensor.__rpow__")
def _(r):
    return [call(r.real(2, 3), 2), call(r.integers(0, 5, 3), 2)]


@family("Tensor.__rfloordiv__")
def _(r):
    return [call(r.real(2, 3), 2), call(r.integers(1, 5, 3), 7)]


@family("Tensor.__rmod__")
def _(r):
    return [call(r.real(2, 3), 2), call(r.integers(1, 5, 3), 7)]


for _name in ("addcmul", "addcdiv"):
    @family(_name)
    def _(r):
        return [call(r.real(2, 3), r.real(2, 3), r.positive(2, 3)),
                call(r.real(2, 3), r.real(3), r.positive(2, 1), value=-1.5),
                call(r.complex(2), r.complex(2), r.complex(2), value=2),
                call(r.real(), r.real(), r.positive())]


@family("lerp")
def _(r):
    return [call(r.real(2, 3), r.real(2, 3), 0.3), call(r.real(2, 3), r.real(3), 0.8),
            call(r.real(2, 3), r.real(3), r.probability(2, 1)),
            call(r.complex(3), r.complex(3), 0.2), call(r.real(), r.real(), r.real())]


@family("Tensor.__getitem__")
def _(r):
    x, y = r.real(2, 3, 4), np.array([1, 0, 1])
    return [call(x, 0), call(x, slice(1, 2)), call(x, (Ellipsis, 1)), call(x, None), call(x, y),
            call(x, (slice(None), y)), call(x, (y, y)), call(x, (0, slice(None), y)),
            call(x, (y, slice(None), np.array([[0], [1]]))), call(x, r.bools(2, 3)),
            call(x, (slice(None), slice(None, None, 2), -1))]


family.pointwise |= {"pow": 2, "add": 2, "sub": 2, "div": 2}


class TestSamples(SampleTests):
    family = family


def test_gradients_of_complex_exponents_of_negative_numbers():
    exponent = flambeau.tensor([0.5 - 1j, -1.5 + 2j], dtype=flambeau.complex128, requires_grad=True)
    base = -flambeau.ones(2, dtype=flambeau.float64)
    assert flambeau.autograd.gradcheck(lambda e: flambeau.pow(base, e), (exponent,))
    assert flambeau.autograd.gradcheck(lambda e: flambeau.pow(-1, e), (exponent,))


@pytest.mark.parametrize("form", [flambeau.lerp, lambda x, *rest: x.clone().lerp_(*rest)])
def test_lerp_compares_types_before_it_misses_a_kernel(form):
    whole, half = flambeau.ones(2, dtype=flambeau.int64), flambeau.ones(2)
    for rest in (half, 0.5), (half, half), (whole, half):
        with pytest.raises(RuntimeError, match="expected dtype long int for `"):
            form(whole, *rest)
    with pytest.raises(NotImplementedError, match=r"scalar. not implemented for 'Long'"):
        form(whole, whole, 0.5)


def test_reflected_operators_take_their_operand_by_name():
    x = flambeau.tensor([1.0, 4.0])
    assert x.__rpow__(other=2).tolist() == [2.0, 16.0]
    assert x.__rtruediv__(other=2).tolist() == [2.0, 0.5]
    assert x.__rpow__() is x.__rpow__(2, 3) is x.__rpow__(base=2) is NotImplemented


def test_weights_without_dimensions_have_any_type():
    """They take part in promotion as every tensor without dimensions does."""
    half = flambeau.tensor(0.5, dtype=flambeau.float64, requires_grad=True)
    for dtype, expected in ((flambeau.float32, flambeau.float32), (flambeau.float16,) * 2,
                            (flambeau.int64, flambeau.float64)):
        x, y = flambeau.zeros(3, dtype=dtype), flambeau.full((3,), 2, dtype=dtype)
        found = flambeau.lerp(x, y, half)
        assert found.dtype is expected and found.tolist() == [1.0] * 3
        slope, = flambeau.autograd.grad(found.sum(), half)
        assert slope.dtype is flambeau.float64 and slope.item() == 6
    with pytest.raises(RuntimeError, match="expected dtype float for `weight` but got dtype doubl"):
        flambeau.lerp(flambeau.zeros(3), flambeau.ones(3), half.expand(3))
    with pytest.raises(NotImplementedError, match="lerp_kernel_tensor"):
        flambeau.lerp(flambeau.tensor([1]), flambeau.tensor([2]), flambeau.tensor(1))


def test_the_type_of_a_power_in_place_comes_before_its_shape():
    with pytest.raises(RuntimeError, match="the base given to float_power_ has dtype Float"):
        flambeau.ones(2).float_power_(flambeau.ones(3))
