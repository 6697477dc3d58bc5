"""What each mode of gradcheck finds."""

import pytest

import flambeau
from flambeau.autograd import Function, gradcheck
from flambeau.autograd.gradcheck import GradcheckError


def leaf(*shape, dtype=flambeau.float64):
    return flambeau.rand(*shape, dtype=dtype).add(0.5).requires_grad_()


def test_wrong_tangent_is_found():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t * 3
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch"):
        gradcheck(Double.apply, (leaf(2),), check_forward_ad=True)
    assert gradcheck(Double.apply, (leaf(2),))


def test_backward_that_changes_between_runs():
    class Jitter(Function):
        runs = 0

        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            Jitter.runs += 1
            return g * (1 + 1e-7 * (Jitter.runs % 2))
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Jitter.apply, (leaf(1),))
    assert gradcheck(Jitter.apply, (leaf(1),), nondet_tol=1e-5)


def test_gradient_that_ignores_the_incoming_one():
    def f(x):
        y = x.clone()
        y.register_hook(lambda g: g + 1e-2)
        return y
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(f, (leaf(1),), atol=1e-1)


def test_undefined_gradient_that_is_not_zero():
    class Ones(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return flambeau.ones(2, dtype=flambeau.float64) if g is None else g * 2
    with pytest.warns(UserWarning, match="undefined gradient"), \
            pytest.raises(GradcheckError, match="undefined or zero"):
        gradcheck(Ones.apply, (leaf(2),))
    assert gradcheck(Ones.apply, (leaf(2),), check_undefined_grad=False)


def test_batched_gradient_that_reads_values():
    class Reads(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            g.sum().item()
            return g * 2
    with pytest.raises(GradcheckError, match="failed while testing batched gradient"):
        gradcheck(Reads.apply, (leaf(2),), check_batched_grad=True)
