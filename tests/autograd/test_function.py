"""Custom functions: what they save, what they mark, and how they fail."""
import pytest

import flambeau
from flambeau.autograd import Function, grad, gradcheck, gradgradcheck
from flambeau.autograd.function import once_differentiable


def leaf(*shape):
    return flambeau.rand(*shape, dtype=flambeau.float64).add(0.5).requires_grad_()


class MulAdd(Function):
    """x * y + z, with both rules of derivatives."""

    @staticmethod
    def forward(ctx, x, y, z):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        return x * y + z

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x, g

    @staticmethod
    def jvp(ctx, x_t, y_t, z_t):
        x, y = ctx.saved_tensors
        total = 0
        for t, factor in ((x_t, y), (y_t, x), (z_t, 1)):
            total = total if t is None else total + t * factor
        return total


def test_all_derivatives():
    arguments = leaf(3), leaf(3), leaf(3)
    assert gradcheck(MulAdd.apply, arguments, check_forward_ad=True)
    assert gradgradcheck(MulAdd.apply, arguments)


def test_several_outputs_and_undefined_gradients():
    class SplitSign(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x.clamp(min=0), x.clamp(max=0)

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a is None, b is None))
            return a if b is None else b if a is None else a + b
    seen = []
    x = flambeau.tensor([1.0, -1.0], requires_grad=True)
    up, down = SplitSign.apply(x)
    up.sum().backward(retain_graph=True)
    down.sum().backward(retain_graph=True)
    (up + down).sum().backward()
    assert seen == [(False, True), (True, False), (False, False)]


def test_setup_context_and_other_arguments():
    class Scale(Function):
        @staticmethod
        def forward(x, factor, name):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]
            assert inputs[2] == "name"

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs_input_grad == (True, False, False)
            return g * ctx.factor, None, None
    x = leaf(2)
    Scale.apply(x, 3.0, "name").sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_written_inputs():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2
    x = leaf(2)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.grad_fn.name() == "DoubleBackward"
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_outputs_without_derivative():
    class WithIndex(Function):
        @staticmethod
        def forward(ctx, x):
            index = x.argmax()
            ctx.mark_non_differentiable(index)
            ctx.save_for_backward(index)
            return x.max(), index

        @staticmethod
        def backward(ctx, g, _):
            index, = ctx.saved_tensors
            return flambeau.zeros(3, dtype=g.dtype).index_fill(0, index, 1) * g
    x = flambeau.tensor([1.0, 3.0, 2.0], requires_grad=True)
    value, index = WithIndex.apply(x)
    assert value.requires_grad and not index.requires_grad
    value.backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_saved_tensors_are_checked():
    x, y = leaf(2), flambeau.ones(2, dtype=flambeau.float64)
    z = MulAdd.apply(x, y, x)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_once_differentiable():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return 2 * x * g
    x = leaf(1)
    first, = grad(Square.apply(x), x, leaf(1), create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_wrong_numbers_of_gradients():
    def bad(answer):
        class Bad(Function):
            @staticmethod
            def forward(ctx, x, y):
                return x + y

            @staticmethod
            def backward(ctx, g):
                return answer(g)
        return Bad.apply
    x = leaf(2)
    with pytest.raises(RuntimeError, match="returned an incorrect number of gradients"):
        bad(lambda g: g)(x, x).sum().backward()
    with pytest.raises(RuntimeError, match="returned a gradient different than None at position 2"):
        bad(lambda g: (g, g))(x, 3.0).sum().backward()
    with pytest.raises(RuntimeError, match="returned an invalid gradient at index 0"):
        bad(lambda g: (g[:1].expand(5), g))(x, x).sum().backward()
    bad(lambda g: (g, g, None))(x, x).sum().backward()


class Scaled(Function):
    """x · y + z, some of whose arguments may be left out or named."""

    @staticmethod
    def forward(ctx, x, y=2.0, z=1.0):
        ctx.count = len(ctx.needs_input_grad)
        return x * y + z

    @staticmethod
    def backward(ctx, g):
        return tuple([g * (3 if needed else 0) for needed in ctx.needs_input_grad])


class Prepared(Function):
    """The same with a context that is set up afterwards."""

    @staticmethod
    def forward(x, y=2.0, z=1.0):
        return x * y + z

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.count = len(inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.count, None, None


def test_arguments_by_name():
    x, y = leaf(2), leaf(2)
    assert Scaled.apply(x=x).equal(x * 2 + 1) and Scaled.apply(x, z=3).equal(x * 2 + 3)
    assert Scaled.apply(x).grad_fn.count == 1 and Scaled.apply(y=y, x=x).grad_fn.count == 2
    assert Scaled.apply(x, z=y).grad_fn.needs_input_grad == (True, False, True)
    found = grad(Scaled.apply(x, y=y).sum(), (x, y))
    assert [g.tolist() for g in found] == [[3, 3]] * 2
    # `setup_context` is shown the arguments that were left out too
    assert grad(Prepared.apply(x).sum(), x)[0].tolist() == [3, 3]
    assert Prepared.apply(x, z=y).equal(x * 2 + y)
    for function in (Scaled, Prepared):
        with pytest.raises(TypeError, match="unexpected keyword argument 'q'"):
            function.apply(x, q=1)


def test_nodes_of_functions_are_shown_as_pytorch_shows_them():
    node = Scaled.apply(leaf(2)).grad_fn
    assert repr(node).startswith("<torch.autograd.function.ScaledBackward object at 0x")
    kinds = []

    class Named(Scaled):
        @staticmethod
        def backward(ctx, g):
            kinds.append((type(ctx).__name__, ctx.name()))
            return g

    Named.apply(leaf(2)).sum().backward()
    assert kinds == [("NamedBackward", "NamedBackward")]


def test_several_views_of_an_input_cannot_be_written_to():
    class Views(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1), x.view(-1)

        @staticmethod
        def backward(ctx, g, h):
            return (g + h).view(2, 2)

    first, _ = Views.apply(leaf(2, 2).clone())
    with pytest.raises(RuntimeError, match=r"Output 0 of Views is a view and is being modified "
                       r"inplace\. This view is the output of a function that returns multiple"):
        first.add_(1)
