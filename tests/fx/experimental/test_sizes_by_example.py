"""Graphs for inputs of any size."""
import pytest

import flambeau as torch
from flambeau.fx.experimental.proxy_tensor import make_fx


@pytest.mark.parametrize(("function", "example", "others"), [
    (lambda x: x.view(x.shape[0] * x.shape[1]), (3, 4), [(2, 5), (7, 1)]),
    (lambda x: x.new_zeros(x.shape[0] + 1, 2 * x.shape[1] - 1), (3, 4), [(5, 6), (2, 2)]),
    (lambda x: x.reshape(x.shape[1], -1).flatten() / x.shape[0], (4, 3), [(6, 5)]),
    (lambda x: x.mean(0).expand(x.shape[0], -1) - x, (3, 4), [(2, 2), (8, 3)]),
    (lambda x: x[1:, :-1].sum(), (3, 4), [(5, 5)]),
    (lambda x: torch.arange(x.numel()).view(x.shape), (3, 4), [(5, 2)]),
])
def test_other_sizes(function, example, others):
    graph = make_fx(function, tracing_mode="symbolic")(torch.rand(example))
    for size in (example, *others):
        x = torch.rand(size)
        torch.testing.assert_close(graph(x), function(x))


def test_several_inputs_and_numbers():
    def program(x, d):
        return x @ d["w"] + d["n"]
    graph = make_fx(program, tracing_mode="symbolic")(
        torch.rand(3, 4), {"w": torch.rand(4, 5), "n": 7})
    given = torch.rand(2, 6), {"w": torch.rand(6, 8), "n": 11}
    torch.testing.assert_close(graph(*given), program(*given))


def test_sizes_of_one_stay():
    graph = make_fx(lambda x: x.expand(3, 4) * 2, tracing_mode="symbolic")(torch.rand(1, 4))
    x = torch.rand(1, 4)
    torch.testing.assert_close(graph(x), x.expand(3, 4) * 2)


@pytest.mark.parametrize("index, count", [
    ((slice(None), 0), 1), ((Ellipsis, 1), 0), ((slice(None), None), 1), ((slice(None),) * 2, 2),
    ((slice(None), slice(1, None)), 2), ((slice(None, -1),), 1), ((None, 0), 0)])
def test_slices_of_all_elements_are_slices_where_sizes_are_symbols(index, count):
    """In the other modes they are not seen."""
    x = torch.arange(12.0).reshape(3, 4)
    graph = make_fx(lambda a: a[index], tracing_mode="symbolic")(x)
    shown = graph.graph.find_nodes(op="call_function", target=torch.ops.aten.slice.Tensor)
    assert len(shown) == count
    for n in (3, 5):
        given = torch.randn(n, 4)
        assert torch.equal(graph(given), given[index])


def test_what_grad_looks_at_is_the_tensor_itself():
    for mode in ("real", "symbolic"):
        graph = make_fx(torch.func.grad(lambda t: (t.sin() * t).sum()), tracing_mode=mode)(
            torch.ones(2, 3))
        assert "graph_alias" not in graph.code
