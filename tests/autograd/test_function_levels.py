"""Custom functions under transforms, and their tangents."""

import pytest

import flambeau
from flambeau.autograd import Function


def test_under_vmap_and_transforms():
    class Cube(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x ** 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return 3 * x ** 2 * g
    x = flambeau.tensor([1.0, 2.0, 3.0])
    slope = flambeau.func.vmap(flambeau.func.grad(Cube.apply))(x)
    flambeau.testing.assert_close(slope, 3 * x ** 2)
    curvature = flambeau.func.vmap(flambeau.func.grad(flambeau.func.grad(Cube.apply)))(x)
    flambeau.testing.assert_close(curvature, 6 * x)


@pytest.mark.parametrize("broken, view_of_view, message", [
    (lambda t: t.clone(), False, "but the jvp is not returning a view."),
    (lambda t: t.clone().view_as(t), False, "not returning a view of the given grad input."),
    (lambda t: t.clone().view_as(t), True, "a view of the same base as the given grad input."),
])
def test_tangents_of_views_must_be_views_too(broken, view_of_view, message):
    from flambeau.autograd import forward_ad

    class Front(Function):
        @staticmethod
        def forward(ctx, x):
            return x.narrow(0, 0, 2)

        @staticmethod
        def jvp(ctx, tangent):
            return broken(tangent.narrow(0, 0, 2))

    with forward_ad.dual_level():
        x = forward_ad.make_dual(flambeau.ones(4), flambeau.ones(4))
        with pytest.raises(RuntimeError, match=message):
            Front.apply(x.view_as(x) if view_of_view else x)


@pytest.mark.parametrize("tangent, message", [
    (lambda t: (t, t), r"invalid number of forward gradients \(expected 1 but got 2\)"),
    (lambda t: flambeau.ones(3), r"Tensor is of size \[2\] while the given forward gradient is of "
                                 r"size \[3\]")])
def test_tangents_of_functions_are_checked(tangent, message):
    class Doubled(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def jvp(ctx, t):
            return tangent(t)

    with pytest.raises(RuntimeError, match=message):
        flambeau.func.jvp(Doubled.apply, (flambeau.ones(2),), (flambeau.ones(2),))
