"""Hooks: what they see, in which order they run, and what they replace."""
import pytest

import flambeau
from flambeau import nn
from flambeau.autograd.graph import (
    get_gradient_edge,
    register_multi_grad_hook,
)


def leaf(*values):
    return flambeau.tensor(values, requires_grad=True)


def test_order():
    """Of each kind in order of registration: hooks of the tensor, prehooks of its node, the node,
    its posthooks; then those of the leaf, with accumulation between the last two kinds."""
    order, note = [], lambda name: lambda *grads: order.append(name)
    x = leaf(1.0)
    y = x * 2
    accumulator = y.grad_fn.next_functions[0][0]
    for n in "123":
        accumulator.register_hook(note("accumulator post " + n))
        x.register_post_accumulate_grad_hook(
            lambda t, n=n: order.append(f"accumulated {n} {t.grad.item()}"))
        accumulator.register_prehook(note("accumulator pre " + n))
        x.register_hook(note("leaf " + n))
        y.grad_fn.register_hook(note("post " + n))
        y.grad_fn.register_prehook(note("pre " + n))
        y.register_hook(note("tensor " + n))
    y.sum().backward()
    kinds = ["tensor {}", "pre {}", "post {}", "leaf {}", "accumulator pre {}",
             "accumulated {} 2.0", "accumulator post {}"]
    assert order == [kind.format(n) for kind in kinds for n in "123"]


def test_replacing_gradients():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 3)
    y.grad_fn.register_prehook(lambda g: (g[0] * 5,))
    y.grad_fn.register_hook(lambda i, o: (i[0] * 7, None))
    x.register_hook(lambda g: g * 11)
    y.sum().backward()
    assert x.grad.item() == 2 * 3 * 5 * 7 * 11


def test_replacements_are_checked():
    for bad, error in ((lambda g: g[:1], RuntimeError), (lambda g: g.double(), RuntimeError),
                       (lambda g: 3, TypeError)):
        x = leaf(1.0, 2.0)
        x.register_hook(bad)
        with pytest.raises(error):
            (x * 2).sum().backward()


def test_leaf_hooks_see_the_sum():
    seen = []
    x = leaf(3.0)
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 2 + x * x).sum().backward()
    assert seen == [8.0]


def test_removing():
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 100)
    with x.register_hook(lambda g: g * 10):
        (x * 1).sum().backward()
    handle.remove()
    (x * 1).sum().backward()
    assert x.grad.item() == 1001.0


def test_retain_grad_sees_what_hooks_made():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    (y * 5).sum().backward()
    assert y.grad.item() == 15.0


def test_hooks_follow_a_tensor_through_writes():
    seen = []
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: seen.append(("before", g.item())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.item())))
    y.sum().backward()
    assert seen == [("after", 1.0), ("before", 3.0)]


def test_hooks_that_run_a_pass():
    x = leaf(2.0)
    inner = []

    def hook(g):
        with flambeau.enable_grad():
            z = leaf(5.0)
            inner.append(flambeau.autograd.grad((z * z).sum(), z)[0].item())
    y = x * 3
    y.register_hook(hook)
    y.sum().backward()
    assert inner == [10.0] and x.grad.item() == 3.0


@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_on_several_tensors(mode):
    seen = []
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    register_multi_grad_hook((a, b, c), seen.append, mode=mode)
    (a * b).sum().backward()
    if mode == "all":
        assert [g if g is None else g.item() for g in seen[0]] == [2.0, 1.0, None]
    assert len(seen) == 1


def test_graph_of_nodes():
    x = leaf(1.0)
    y = (x * 2).sum()
    assert y.grad_fn.name() == "SumBackward0"
    node = y.grad_fn.next_functions[0][0]
    assert node.name() == "MulBackward0"
    assert node.next_functions[0][0].variable is x
    edge = get_gradient_edge(x)
    assert flambeau.autograd.grad(y, edge)[0].item() == 2.0


def test_the_running_node_is_known_without_anomaly_mode():
    from flambeau._C import _current_autograd_node
    names = []

    class Ask(flambeau.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            names.append(ctx == _current_autograd_node())
            return grad

    x = flambeau.ones(2, requires_grad=True)
    y = Ask.apply(x)
    y.register_hook(lambda grad: names.append(_current_autograd_node().name()))
    y.sum().backward()
    assert names == ["AskBackward", True] and _current_autograd_node() is None


def test_post_hooks_registered_while_a_node_runs():
    """They see no gradients of outputs: these were given away before anybody wanted them."""
    seen = []

    def unpack(tensor):
        from flambeau._C import _current_autograd_node
        _current_autograd_node().register_hook(lambda inputs, outputs: (
            seen.append(outputs), tuple(i and i / 2 for i in inputs))[1])
        return tensor

    x = flambeau.ones((), requires_grad=True)
    with flambeau.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    y.backward()
    assert seen == [(None,)] and abs(x.grad.item() - 2.718281828 / 2) < 1e-6


def test_the_documented_interface_of_nodes_is_that_of_their_class():
    from flambeau.autograd.graph import Node

    node = (flambeau.ones(2, requires_grad=True) * 2).grad_fn
    assert isinstance(node, Node) and Node.name(node) == "MulBackward0"
    assert Node.next_functions.fget(node) == node.next_functions


def test_set_gives_a_leaf_a_new_accumulator():
    x = flambeau.rand(2, requires_grad=True)
    before = flambeau.autograd.graph.get_gradient_edge(x)
    out = x.clone().sum()
    with flambeau.no_grad():
        x.set_(flambeau.rand(2))
    with pytest.raises(RuntimeError, match="to not have been used in the graph"):
        flambeau.autograd.grad(out, x, retain_graph=True)
    assert flambeau.autograd.grad(out, before)[0].tolist() == [1, 1]
    assert flambeau.autograd.graph.get_gradient_edge(x) != before
    assert flambeau.autograd.grad((x * 2).sum(), x)[0].tolist() == [2, 2]
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3] and x.is_leaf


def test_metadata_of_a_nested_tensor():
    nested = flambeau.nested.nested_tensor([flambeau.ones(3, 2), flambeau.ones(2, 2)],
                                           layout=flambeau.jagged, requires_grad=True)
    metadata = nested.clone().grad_fn._input_metadata[0]
    assert metadata.shape == nested.shape and isinstance(metadata.shape[1], flambeau.SymInt)
    assert metadata.is_nested_tensor and not metadata.is_cpp_nested_tensor
    plain = (flambeau.ones(2, requires_grad=True) * 2).grad_fn._input_metadata[0]
    assert plain.shape == [2] and not plain.is_nested_tensor


@pytest.mark.parametrize("place, value, error, message", [
    ("tensor", 3, TypeError, "expected Variable, but hook returned 'int'"),
    ("tensor", flambeau.ones(3), RuntimeError, "hook '<lambda>' has changed the size of value"),
    ("tensor", flambeau.ones(2).double(), RuntimeError, "hook '<lambda>' has changed the type of "
     "value (was torch.FloatTensor got torch.DoubleTensor)"),
    ("pre", 3, TypeError, "expected tuple, but hook returned 'int'"),
    ("pre", flambeau.ones(2), TypeError, "expected tuple, but hook returned 'Tensor'"),
    ("pre", (flambeau.ones(2),) * 2, RuntimeError,
     "hook '<lambda>' has returned an incorrect number of values (got 2, but expected 1)"),
    ("pre", (3,), TypeError, "expected Variable, but hook returned 'int'"),
    ("pre", (flambeau.ones(3),), RuntimeError, "hook '<lambda>' has changed the size of value"),
    ("post", flambeau.ones(2), TypeError, "expected tuple, but hook returned 'Tensor'"),
    ("post", (flambeau.ones(2),), RuntimeError,
     "hook '<lambda>' has returned an incorrect number of values (got 1, but expected 2)"),
    ("post", (flambeau.ones(2),) * 2, RuntimeError,
     "can't replace a None gradient with a non-None value"),
])
def test_what_hooks_may_return(place, value, error, message):
    x = leaf(1.0, 2.0)
    y = x * 2
    register = {"tensor": x.register_hook, "pre": y.grad_fn.register_prehook,
                "post": y.grad_fn.register_hook}[place]
    register(lambda *grads: value)
    with pytest.raises(error) as caught:
        y.sum().backward()
    assert message in str(caught.value)


def test_mutation_contexts_end_and_do_not_nest():
    allow = flambeau.autograd.graph.allow_mutation_on_saved_tensors
    with allow():
        y = (leaf(1.0).clone() ** 2).sum()
        with pytest.raises(RuntimeError, match="contexts cannot be nested"), allow():
            pass
    with pytest.raises(AssertionError, match="Trying to backward outside of the"):
        y.backward()


NAMED = [
    (lambda x: 1 - x, "RsubBackward1"), (lambda x: flambeau.rsub(x, x), "RsubBackward0"),
    (lambda x: x % 2, "RemainderBackward0"), (lambda x: x % x, "RemainderBackward1"),
    (lambda x: x.fmod(2), "FmodBackward0"), (lambda x: x.copysign(1.0), "CopysignBackward1"),
    (lambda x: flambeau.xlogy(x, 2.0), "XlogyBackward2"),
    (lambda x: flambeau.xlogy(2.0, x), "XlogyBackward1"), (lambda x: x.T, "PermuteBackward0"),
    (lambda x: x.squeeze(), "SqueezeBackward0"), (lambda x: x.squeeze(0), "SqueezeBackward1"),
    (lambda x: x.squeeze((0, 1)), "SqueezeBackward2"), (lambda x: x.trace(), "TraceBackward0"),
    (lambda x: x.repeat(2, 1), "RepeatBackward0"), (lambda x: x.roll(1, 0), "RollBackward0"),
    (lambda x: x.masked_select(x > 0), "MaskedSelectBackward0"),
    (lambda x: flambeau.dist(x, x + 1), "DistBackward0"), (lambda x: x.nansum(), "NansumBackward0"),
    (lambda x: x.aminmax().min, "AminmaxBackward0"),
    (lambda x: flambeau.vdot(x[0], x[0]), "VdotBackward0"),
    (lambda x: flambeau.expand_copy(x, (2, 2, 2)), "ExpandBackward0_copy"),
    (lambda x: flambeau.narrow_copy(x, 0, 0, 1), "NarrowCopyBackward0"),
    (lambda x: flambeau.unbind_copy(x)[0], "UnbindBackward0_copy"),
    (lambda x: x.index_fill(0, flambeau.tensor([0]), flambeau.tensor(2.0)), "IndexFillBackward1"),
    (lambda x: x.clone().zero_(), "ZeroBackward0"), (lambda x: x.clone().fill_(2), "FillBackward2"),
    (lambda x: x.clone().fill_(flambeau.tensor(2.0)), "FillBackward3"),
    (lambda x: x.clone().normal_(), "NormalBackward0"),
    (lambda x: nn.functional.linear(x, x, x[0]), "AddmmBackward0"),
    (lambda x: nn.functional.linear(x, x), "MmBackward0"),
    (lambda x: nn.functional.linear(x[None], x, x[0]), "ViewBackward0"),
    (lambda x: nn.functional.linear(x[None], x), "UnsafeViewBackward0"),
    (lambda x: flambeau._foreach_exp([x])[0], "ForeachExpBackward0"),
    (lambda x: flambeau._foreach_add([x], 2)[0], "ForeachAddBackward1Scalar"),
    (lambda x: flambeau._foreach_add([x], [x])[0], "ForeachAddBackward0List"),
    (lambda x: flambeau._foreach_pow(2.0, [x])[0], "ForeachPowBackward2"),
]


@pytest.mark.parametrize("call, name", NAMED, ids=[f"{i}-{n}" for i, (_, n) in enumerate(NAMED)])
def test_nodes_have_the_names_of_pytorch(call, name):
    x = leaf([1.5, 2.0], [0.5, 3.0])
    result = call(x)
    assert type(result.grad_fn).__name__ == result.grad_fn.name() == name
    assert f"grad_fn=<{name}>" in repr(result)
    flambeau.autograd.grad(result.sum(), x)


def test_a_name_is_not_given_to_the_node_of_an_input():
    x = leaf(1.0, 2.0).exp()
    assert flambeau.ldexp(x, flambeau.tensor(0)).grad_fn is not x.grad_fn
    x.detach().zero_()
    assert x.grad_fn.name() == "ExpBackward0" and x.repeat(1).grad_fn.name() == "RepeatBackward0"


_INDEX, _MASK = flambeau.tensor([0, 2]), flambeau.tensor([True, False, True])
_F = flambeau.nn.functional


@pytest.mark.parametrize("call, edges", [
    (lambda x: x.gather(0, _INDEX), 1),
    (lambda x: x.index_select(0, _INDEX), 1),
    (lambda x: x[_INDEX], 1),
    (lambda x: x.index_put((_INDEX,), x[:2]), 2),
    (lambda x: x.masked_fill(_MASK, 2.0), 1),
    (lambda x: flambeau.where(_MASK, x, x * 2), 2),
    (lambda x: x.scatter_reduce(0, _INDEX, x[:2], "prod"), 2),
    (lambda x: x.clamp_max(x.detach()), 2),
    (lambda x: _F.nll_loss(x.expand(3, 3), flambeau.tensor([0, 1, 2]), flambeau.ones(3)), 1),
    (lambda x: _F.binary_cross_entropy(x, x.detach(), flambeau.ones(3)), 2),
])
def test_nodes_have_edges_for_what_is_differentiable(call, edges):
    """As PyTorch's: not for indices, masks, weights of classes."""
    x = flambeau.tensor([0.25, 0.5, 0.75], requires_grad=True)
    result = call(x)
    node, grads = result.grad_fn, result.grad_fn(flambeau.ones_like(result).detach())
    assert len(node.next_functions) == edges
    assert len(grads if isinstance(grads, tuple) else (grads,)) == edges


def test_nodes_take_gradients_of_what_has_one():
    x = flambeau.tensor([[0.5, 0.25]], requires_grad=True)
    assert x.max(1).values.grad_fn(flambeau.ones(1)).tolist() == [[1.0, 0.0]]
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        x.max(1).values.grad_fn(flambeau.ones(1), flambeau.ones(1))
    values, _ = flambeau.linalg.eigh(flambeau.eye(2, requires_grad=True))
    with pytest.raises(TypeError, match="expected 2 arguments, got 1 instead"):
        values.grad_fn(flambeau.ones(2))


def test_a_hooks_replacement_goes_past_the_mask():
    x, y = (flambeau.ones(3, requires_grad=True) for _ in range(2))
    result = flambeau.where(_MASK, x, y)
    seen = []

    def doubled(grads, outputs):
        seen.append(len(grads))
        return tuple([2 * g for g in grads])
    result.grad_fn.register_hook(doubled)
    result.sum().backward()
    assert seen == [2]
    assert x.grad.tolist() == [2, 0, 2] and y.grad.tolist() == [0, 2, 0]
