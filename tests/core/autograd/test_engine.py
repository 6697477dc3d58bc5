"""The backward pass: sums, orders, several passes, threads, failures, and what is freed."""
import gc
import threading
import weakref

import pytest

import flambeau
from flambeau.autograd import Function, grad
from flambeau.core.autograd import engine
from flambeau.testing import assert_close


@pytest.fixture
def no_gc():
    gc.disable()
    yield
    gc.enable()


def leaf(*values, dtype=flambeau.float64):
    return flambeau.tensor(values, dtype=dtype, requires_grad=True)


def test_paths_are_summed():
    x = leaf(0.3, 0.7)
    y = x.sin()
    (y * y + y * x + x).sum().backward()
    s, c = x.detach().sin(), x.detach().cos()
    assert_close(x.grad, 2 * s * c + c * x.detach() + s + 1)


def test_gradients_accumulate_over_passes():
    x = leaf(2.0)
    for n in (1, 2, 3):
        (x * x).backward(flambeau.ones(1, dtype=x.dtype))
        assert_close(x.grad, flambeau.tensor([4.0 * n], dtype=x.dtype))


def test_freed_graph():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    z = (x + 1).sum()          # saves nothing: may run twice
    z.backward()
    z.backward()


def test_higher_orders():
    x = leaf(0.4)
    y = x.sin()
    for expected in ("cos", "-sin", "-cos", "sin"):
        y, = grad(y.sum(), x, create_graph=True)
        value = getattr(x.detach(), expected.lstrip("-"))()
        assert_close(y.detach(), -value if expected[0] == "-" else value)


def test_unused_inputs():
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        grad(x.sum(), y)
    assert grad(x.sum(), y, allow_unused=True) == (None,)
    assert grad((x * 1).sum(), y, materialize_grads=True)[0].tolist() == [0.0]


def test_inputs_limits_what_runs():
    ran = []

    class Seen(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            ran.append(1)
            return g
    x, y = leaf(1.0), leaf(2.0)
    (x * 2 + Seen.apply(y)).sum().backward(inputs=[x])
    assert x.grad.tolist() == [2.0] and y.grad is None and ran == []


def test_gradient_of_an_intermediate_result():
    x = leaf(3.0)
    y = x * x
    z = (y * 2).sum()
    assert grad(z, (y, x))[0].tolist() == [2.0]
    assert grad((y * y).sum(), y)[0].tolist() == [18.0]


def test_million_nodes_without_recursion_and_gc(no_gc):
    x = leaf(1.0)
    y = x
    for _ in range(10 ** 6):
        y = y + 0.0
    reference = weakref.ref(y.grad_fn)
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    del y
    assert reference() is None


def test_deep_saved_graph_is_freed_without_recursion(no_gc):
    x = leaf(1.0)
    y = x
    for _ in range(10 ** 5):
        y = y * 1.0000001
    reference = weakref.ref(y.grad_fn)
    del y
    assert reference() is None


def test_graphs_are_no_cycles(no_gc):
    x = leaf(1.0, 2.0)
    y = (x.exp() * x).softmax(0)
    node, result = weakref.ref(y.grad_fn), weakref.ref(y)
    y.sum().backward()
    del y
    assert node() is None and result() is None


def test_a_failing_backward_leaves_a_usable_state():
    class Fails(Function):
        armed = True

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if Fails.armed:
                raise ValueError("on purpose")
            return g
    x, y = leaf(2.0), leaf(3.0)
    out = (Fails.apply(x * x) + y * y).sum()
    for _ in range(2):
        with pytest.raises(ValueError, match="on purpose"):
            out.backward(retain_graph=True)
    assert flambeau.is_grad_enabled()
    Fails.armed = False
    x.grad = y.grad = None
    out.backward()
    assert (x.grad.item(), y.grad.item()) == (4.0, 6.0)
    assert grad((x ** 3).sum(), x)[0].item() == 12.0


def test_passes_inside_passes():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 2

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            with flambeau.enable_grad():
                point = x.detach().requires_grad_()
                slope, = grad((point ** 2).sum(), point)
            return g * slope
    x = leaf(3.0)
    Inner.apply(Inner.apply(x)).sum().backward()
    assert x.grad.item() == pytest.approx(4 * 27)


def test_queued_callbacks_run_with_the_pass_that_queued_them():
    order = []

    class Queue(Function):
        @staticmethod
        def forward(ctx, x, name, inside):
            ctx.name, ctx.inside = name, inside
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            order.append(ctx.name)
            queue(lambda: order.append(f"callback of {ctx.name}"))
            if ctx.inside:
                with flambeau.enable_grad():
                    Queue.apply(leaf(1.0), "inner", False).backward()
            queue(lambda: queue(lambda: order.append(f"callback's callback of {ctx.name}")))
            return grad, None, None

    queue = flambeau.autograd.Variable._execution_engine.queue_callback
    Queue.apply(Queue.apply(leaf(1.0), "older", False), "newer", True).backward()
    assert order == ["newer", "inner", "callback of inner", "callback's callback of inner", "older",
                     "callback of newer", "callback of older", "callback's callback of newer",
                     "callback's callback of older"]


def test_threads_share_leaves():
    x = leaf(1.0)

    def work():
        for _ in range(50):
            (x * 2).sum().backward()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.item() == 800.0


def test_grad_mode_is_a_threads_own():
    seen = []
    with flambeau.no_grad():
        thread = threading.Thread(target=lambda: seen.append((leaf(1.0) * 2).requires_grad))
        thread.start()
        thread.join()
        assert not (leaf(1.0) * 2).requires_grad
    assert seen == [True]


def test_gradients_of_other_types_and_shapes():
    x = flambeau.ones(3, requires_grad=True)
    (x.double() * flambeau.ones(2, 3, dtype=flambeau.float64)).sum().backward()
    assert x.grad.dtype is flambeau.float32 and x.grad.tolist() == [2.0] * 3
    z = flambeau.ones(2, dtype=flambeau.complex128, requires_grad=True)
    (z.real * 2).sum().backward()
    assert z.grad.tolist() == [2 + 0j] * 2


def test_bad_root_gradients():
    x = flambeau.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(flambeau.ones(3))
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        flambeau.ones(1).backward()


def test_layouts_of_first_gradients():
    def strides():
        leaf = flambeau.ones(3, 2).t().requires_grad_()
        (leaf * flambeau.ones(2, 3)).backward(flambeau.ones(2, 3))
        return leaf.grad.stride()
    assert strides() == (1, 2)
    with flambeau.autograd.enforce_grad_layout_policy(False):
        assert strides() == (3, 1)
    assert flambeau.autograd.enforce_grad_layout_policy(False)(strides)() == (3, 1)
    assert strides() == (1, 2)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_an_explicit_dim_is_another_overload(reduce):
    x = flambeau.ones(2, requires_grad=True)
    nodes = [type(getattr(x, reduce)(*dim).grad_fn).__name__ for dim in ((), (None,), (0,))]
    assert nodes == [f"{reduce.title()}Backward{i}" for i in (0, 1, 1)]


def test_random_ops_in_batches_of_gradients():
    x = flambeau.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g + flambeau.randn(()))
    with pytest.raises(RuntimeError, match="do not yet support calling random operations inside"):
        flambeau.autograd.grad(y, x, flambeau.eye(2), is_grads_batched=True)


def graph_of(node):
    """The names of nodes, each with those before it."""
    if node is None:
        return None
    before = [graph_of(n) for n, _ in node.next_functions]
    name = node.name().removeprefix("torch::autograd::")
    return name if not before else [name, *before]


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (2, 2, 3, 4), (4,)])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("wanted", [True, False], ids=["of the input", "not of the input"])
def test_the_graph_of_the_affine_map_is_that_of_its_parts(shape, biased, wanted):
    """Views around a product of matrices; the same gradients, twice, as those of one node."""
    leaf = "AccumulateGrad"
    input = None if not wanted else leaf if len(shape) == 2 else ["ViewBackward0", leaf]
    product = ["AddmmBackward0", leaf, input, ["TBackward0", leaf]] if biased else \
        ["MmBackward0", input, ["TBackward0", leaf]]
    around = "ViewBackward0" if biased else "UnsafeViewBackward0"
    expected = product if len(shape) == 2 else [around, product]
    answers = []
    for look in (True, False):
        flambeau.manual_seed(0)
        x, w = flambeau.randn(shape, dtype=flambeau.float64), flambeau.randn(5, 4).double()
        b = flambeau.randn(5).double().requires_grad_() if biased else None
        x.requires_grad_(wanted), w.requires_grad_()
        y = flambeau.nn.functional.linear(x, w, b)
        if look:
            assert graph_of(y.grad_fn) == expected
        inputs = [t for t in (x, w, b) if t is not None and t.requires_grad]
        first = flambeau.autograd.grad((y ** 3).sum(), inputs, create_graph=True)
        if look:
            graph_of(first[0].grad_fn)
        second = flambeau.autograd.grad(sum((g ** 2).sum() for g in first), inputs)
        answers.append((*first, *second))
    for one, other in zip(*answers):
        assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_looking_at_the_affine_map_keeps_what_was_saved():
    x, w = (flambeau.ones(2, 3, 4, requires_grad=True), flambeau.ones(5, 4, requires_grad=True))
    y = flambeau.nn.functional.linear(x * 1, w * 1)
    product = y.grad_fn.next_functions[0][0]
    assert product._saved_self.shape == product._saved_self_sym_sizes == (6, 4)
    assert product._saved_mat2_sym_strides == (1, 4)
    assert product._saved_mat2.grad_fn.name() == "TBackward0"
    y.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()
    z = x * 1
    y = flambeau.nn.functional.linear(z, w)
    graph_of(y.grad_fn)
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    assert (x @ w.mT).grad_fn.name() == "UnsafeViewBackward0" and (x @ w.mT)._base is None


def test_the_affine_map_shows_the_nodes_of_its_parts():
    """A look at the graph changes neither the gradients nor the order of the nodes."""
    def gradients(look):
        flambeau.manual_seed(0)
        x, w, b = (flambeau.rand(s, requires_grad=True) for s in ((2, 3), (4, 3), (4,)))
        y = flambeau.nn.functional.linear(x * 1, w * 1, b)
        if look:
            (bias, _), (input, _), (weight, _) = y.grad_fn.next_functions
            names = [n.name() for n in (y.grad_fn, bias, input, weight)]
            assert names == ["AddmmBackward0", "torch::autograd::AccumulateGrad", "MulBackward0",
                             "TBackward0"]
            assert weight.next_functions[0][0].name() == "MulBackward0"
            shapes = []
            weight.register_hook(lambda inputs, outputs: shapes.append(
                [tuple(t.shape) for t in (*outputs, *inputs)]))
        (y * y).sum().backward()
        assert not look or shapes == [[(3, 4), (4, 3)]]
        return x.grad, w.grad, b.grad

    for one, other in zip(gradients(False), gradients(True)):
        assert_close(one, other)


@pytest.mark.filterwarnings("error")
def test_gradients_that_are_infinite_are_added_without_a_word():
    x = leaf(0.0, 1.0)
    for sign in (1, -1):
        x.backward(flambeau.tensor([sign * float("inf"), 1.0], dtype=flambeau.float64))
    assert x.grad.isnan().tolist() == [True, False] and x.grad[1] == 2


def test_the_pass_says_which_node_runs():
    """The node whose formula or hooks run, the accumulator of a leaf that is added to, and that of
    the inner pass while passes nest; nothing outside."""
    x = flambeau.ones(2, requires_grad=True)
    seen = []

    def note(*_):
        seen.append(engine.current_autograd_node())
    y = x.exp()
    z = y.sin()
    accumulator = flambeau.autograd.graph.get_gradient_edge(x).node
    z.register_hook(note)
    y.grad_fn.register_prehook(lambda grads: inner())
    y.grad_fn.register_hook(note)
    x.register_post_accumulate_grad_hook(note)

    @flambeau.enable_grad()
    def inner():
        w = flambeau.ones(1, requires_grad=True)
        v = w * 2
        v.register_hook(note)
        seen.append(v.grad_fn)
        v.backward()
    z.sum().backward()
    assert seen == [z.grad_fn, seen[1], seen[1], y.grad_fn, accumulator]
    assert engine.current_autograd_node() is None
