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


@pytest.mark.parametrize("name", ["shape", "dtype", "order", "edges", "saved", "outputs", "node",
                                  "hooks", "results", "index", "op", "simple"])
def test_contexts_keep_any_attribute(name):
    """Names that nodes use themselves are the user's on a context."""
    class Sum(Function):
        @staticmethod
        def forward(ctx, x):
            setattr(ctx, name, x.shape)
            ctx.save_for_backward(x)
            return x.sum()

        @staticmethod
        def backward(ctx, grad):
            assert getattr(ctx, name) == ctx.saved_tensors[0].shape
            return grad.expand(getattr(ctx, name))

    x = flambeau.ones(2, 3, requires_grad=True)
    y = Sum.apply(x)
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.backward()
    assert x.grad.shape == (2, 3)


def test_attributes_of_contexts_are_seen_on_the_node():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            assert isinstance(ctx, flambeau.autograd.graph.Node) and "SameBackward" in repr(ctx)
            ctx.mine = 3
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            assert ctx.later == 4 and ctx.name() == "SameBackward"
            return grad

    y = Same.apply(flambeau.ones(1, requires_grad=True))
    assert y.grad_fn.mine == 3 and not hasattr(y.grad_fn, "other")
    y.grad_fn.later = 4
    y.backward()


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


def test_saved_results_beside_what_is_no_tensor():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            first, second = x * 2, x * 3
            ctx.save_for_backward(first, second)
            return first, None, "text", second

        @staticmethod
        def backward(ctx, first, nothing, text, second):
            saved = ctx.saved_tensors
            assert all(s.requires_grad for s in saved) and nothing is text is None
            return first * 2 + second * 3

    x = flambeau.ones(2, requires_grad=True)
    first, _, _, second = Twice.apply(x)
    (first + second).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_metadata_of_outputs_without_derivatives():
    """A node knows no shape of what was marked, is of integers, or is no tensor."""
    class Several(Function):
        @staticmethod
        def forward(ctx, x):
            marked = x + 1
            ctx.mark_non_differentiable(marked)
            return x * 2, marked, flambeau.ones(3, dtype=flambeau.int64), None

        @staticmethod
        def backward(ctx, *grads):
            seen.append([g if g is None else (tuple(g.shape), g.dtype) for g in grads])
            return grads[0] * 2

    seen = []
    x = flambeau.ones(2, requires_grad=True)
    y, marked, _, nothing = Several.apply(x)
    assert marked.grad_fn is None and not marked.requires_grad and nothing is None
    assert [tuple(m.shape) for m in y.grad_fn._input_metadata] == [(2,), (), (), ()]
    y.sum().backward()
    assert seen == [[((2,), flambeau.float32), ((2,), flambeau.float32), ((3,), flambeau.int64),
                     None]]
