"""Loops, as one op for tracers."""
import flambeau as torch
from flambeau._higher_order_ops.while_loop import while_loop
from flambeau.fx.experimental.proxy_tensor import make_fx


def doubled(x):
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))


def test_values_and_graphs():
    x = torch.tensor([1.0, 2.0])
    count, found = doubled(x)
    assert count.item() == 3 and found.tolist() == [8, 16]
    graph = make_fx(doubled)(x)
    assert graph(torch.ones(2))[1].tolist() == [8, 8]
    assert "while_loop_cond_graph_0" in graph.code and "while_loop_body_graph_0" in graph.code


def test_loops_that_do_not_begin():
    x = torch.zeros(2)
    assert while_loop(lambda x: x.sum() > 1, lambda x: (x + 1,), (x,))[0].tolist() == [0, 0]


def test_containers():
    found, = while_loop(lambda d: d["a"] < 3, lambda d: ({"a": d["a"] + 1},),
                        ({"a": torch.zeros(())},))
    assert found["a"].item() == 3
