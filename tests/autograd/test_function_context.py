"""What custom functions get as their context."""

import pytest

import flambeau
from flambeau.autograd import Function
from flambeau.autograd.function import FunctionCtx


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


def test_gradients_come_as_one_list_where_the_class_says_so():
    class Twice(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grads):
            assert type(grads) is list
            return 2 * grads.pop(0) + 3 * grads.pop()
    x = flambeau.ones(2, requires_grad=True)
    first, second = Twice.apply(x)
    (first + 10 * second).sum().backward()
    assert x.grad.tolist() == [32.0, 32.0]


def test_what_was_saved_can_be_let_go_of_as_it_is_looked_at():
    class Once(Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="can only be accessed once when clear_saved"):
                ctx.saved_tensors
            return 2 * x * grad
    x = flambeau.ones(2, requires_grad=True)
    Once.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_the_class_shows_the_methods_of_its_context():
    assert Function.save_for_backward is FunctionCtx.save_for_backward
    assert issubclass(Function, FunctionCtx)
