import sys

import pytest

import flambeau
from flambeau.autograd import Function, gradcheck, gradgradcheck
from flambeau.autograd.gradcheck import GradcheckError


def leaf(*shape, dtype=flambeau.float64):
    return flambeau.rand(*shape, dtype=dtype).add(0.5).requires_grad_()


def wrong(factor):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * factor
    return Wrong.apply


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("dtype", [flambeau.float64, flambeau.complex128])
def test_right_derivatives_pass_in_all_modes(fast_mode, dtype):
    x, y = leaf(2, 3, dtype=dtype), leaf(3, dtype=dtype)

    def f(x, y):
        return (x * y).sin(), x.sum() * 2
    assert gradcheck(f, (x, y), fast_mode=fast_mode, check_forward_ad=True,
                     check_batched_grad=True, check_batched_forward_grad=True)
    assert gradgradcheck(f, (x, y), fast_mode=fast_mode, check_fwd_over_rev=True)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("dtype", [flambeau.float64, flambeau.complex128])
def test_wrong_factor_is_found(fast_mode, dtype):
    x = leaf(2, dtype=dtype)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to inp"):
        gradcheck(wrong(3), (x,), fast_mode=fast_mode)
    assert not gradcheck(wrong(3), (x,), fast_mode=fast_mode, raise_exception=False)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_wrong_second_derivative_is_found(fast_mode):
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * 3 * x.detach() ** 2
    x = leaf(2)
    assert gradcheck(Cube.apply, (x,), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(Cube.apply, (x,), fast_mode=fast_mode)


def test_inputs_that_cannot_be_checked():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (flambeau.ones(2),), raise_exception=False)
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda x: x, (leaf(1).expand(2, 2),))
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double"):
        gradcheck(lambda x: x, (leaf(1, dtype=flambeau.float32),), atol=1e-1)
    with pytest.raises(AssertionError, match="Expected at least one of"):
        gradcheck(lambda x: x, (leaf(1),), check_backward_ad=False)


def test_constant_function():
    x = leaf(1)
    assert gradcheck(lambda x: flambeau.ones(2), (x,))
    assert gradcheck(lambda x: (), (x,))
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, (x,))


def test_shape_that_depends_on_values():
    x = flambeau.ones(1, dtype=flambeau.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="same shape when inputs are perturbed"):
        gradcheck(lambda x: flambeau.cat([x, x]) if bool((x >= 1).all()) else x, (x,))


def test_inputs_are_left_as_they_were():
    x = leaf(3)
    before, version = x.detach().clone(), x._version
    gradcheck(lambda x: x.exp(), (x,))
    assert bool((x == before).all()) and x._version == version and x.grad is None


def test_importing_the_module_does_not_hide_the_function():
    assert flambeau.autograd.gradcheck(flambeau.exp, (leaf(2),))
    module = sys.modules["flambeau.autograd.gradcheck"]
    assert module(flambeau.exp, (leaf(2),)) and module.GradcheckError is GradcheckError


@pytest.mark.parametrize("fast_mode", [False, True])    # fast, PyTorch loses count of the outputs
def test_outputs_without_a_derivative_are_not_asked_for_one_in_forward_mode(fast_mode):
    def f(x):
        return x.sin(), x.detach().cos()
    assert gradcheck(f, leaf(3), check_forward_ad=True, fast_mode=fast_mode)
