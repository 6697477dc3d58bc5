"""`functionalize`: a function without visible writes."""
import pytest

import flambeau as torch
from flambeau.func import functionalize, grad, vmap
from flambeau.fx.experimental.proxy_tensor import make_fx


def doubled(x):
    y = x.clone()
    y[0].mul_(2)
    return y.view(-1)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_values_stay(remove):
    x = torch.arange(4.0).reshape(2, 2) + 1
    assert torch.equal(functionalize(doubled, remove=remove)(x), doubled(x))


def test_arguments_are_written_to():
    x = torch.ones(3)
    result = functionalize(lambda t: t.add_(1))(x)
    assert x.tolist() == [2, 2, 2] and result.tolist() == [2, 2, 2]


def test_inside_of_other_transforms():
    x = torch.tensor([1.0, 2.0])
    square = functionalize(lambda t: t.clone().mul_(t).sum())
    assert grad(square)(x).tolist() == [2, 4]
    assert vmap(square)(torch.stack([x, 2 * x])).tolist() == [5, 20]


def test_what_can_be_removed():
    with pytest.raises(RuntimeError, match="received invalid argument for remove=views"):
        functionalize(doubled, remove="views")(torch.ones(1))


# ---- traced: the graph has no writes -------------------------------------------------------------

def _writes_to_views(x):
    y = x.clone()
    y[0].add_(1)
    y.view(-1)[2:].mul_(2)
    y.t()[1].copy_(y[:, 0])
    y.split(1)[1].fill_(7)
    y.diagonal().sub_(1)
    return y.unsqueeze(0).squeeze(0) + 1, y


def _turns(x):
    w = x.clone()
    w.t_()
    w[0] = 5
    w.unsqueeze_(1)
    w.mul_(2)
    return w


def _writes_to_its_argument(x):
    x.add_(1)
    return x.as_strided((3,), (1,)).mul_(3).sum() + x


@pytest.mark.parametrize("function", [_writes_to_views, _turns, _writes_to_its_argument])
@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_graphs_have_no_writes(function, remove):
    x = torch.arange(6.0).reshape(2, 3)
    graph = make_fx(torch.func.functionalize(function, remove=remove))(x.clone())
    calls = [n.target for n in graph.graph.nodes if n.op == "call_function"
             and isinstance(n.target, torch._ops.OpOverload)]
    written = [c for c in calls if c._schema.is_mutable]
    assert all(c is torch.ops.aten.copy_.default for c in written) and len(written) <= 1
    if remove == "mutations_and_views":
        assert not any(c.is_view for c in calls)
    wanted, given = x.clone(), x.clone()
    torch.testing.assert_close(graph(given), function(wanted))
    assert torch.equal(given, wanted)


def test_views_are_taken_again_after_a_write():
    """Those that nobody reads are there, too, as in PyTorch's graphs."""
    def function(x):
        y = x.clone()
        y[0].add_(1)
        return y
    graph = make_fx(torch.func.functionalize(function))(torch.ones(2, 3))
    names = [n.name for n in graph.graph.nodes if n.op == "call_function"]
    assert names == ["clone", "select", "add", "select_scatter", "select_1"]
