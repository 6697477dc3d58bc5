"""Nodes: what they keep alive, what they refuse, and what their edges point at."""
import gc
import weakref

import pytest

import flambeau as torch


def test_newer_nodes_run_first():
    x = torch.ones(2, requires_grad=True)
    a = x * 2
    b = a + x
    assert b.grad_fn.order < a.grad_fn.order                # a min-heap gives the newest first
    assert b.grad_fn.next_functions[0][0] is a.grad_fn
    assert b.grad_fn.next_functions[1][0].variable is x


def test_what_a_formula_does_not_name_is_not_kept_alive():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    alive = weakref.ref(y)
    z = y.sum()
    del y
    gc.collect()
    assert alive() is None
    z.backward()
    assert x.grad.tolist() == [2.0] * 3


def test_a_saved_result_makes_no_cycle():
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        node, alive = weakref.ref(y.grad_fn), weakref.ref(y)
        assert y.grad_fn._saved_result is not None
        del y
        assert alive() is None and node() is None           # no collector needed
    finally:
        gc.enable()


def test_a_write_to_a_saved_input_is_found():
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2)
    y = x * w
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _ = y.grad_fn._saved_other


def test_a_pass_frees_what_was_saved():
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_nodes_are_functions_of_gradients():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    node = (x * x).grad_fn
    first, second = node(torch.tensor([1.0, 10.0]))
    assert first.tolist() == second.tolist() == [1.0, 20.0]
    with pytest.raises(TypeError, match="expected 1 arguments, got 2"):
        node(first, second)


def test_outputs_have_numbers():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    first, second = x.unbind(0)
    assert first.grad_fn is second.grad_fn and (first.output_nr, second.output_nr) == (0, 1)
    assert (second * 2).grad_fn.next_functions[0] == (second.grad_fn, 1)


def test_results_without_gradients_are_no_outputs():
    values, indices = torch.ones(2, 3, requires_grad=True).max(1)
    assert not indices.requires_grad and indices.grad_fn is None
    gradient = values.grad_fn(torch.tensor([1.0, 2.0]))         # one gradient is enough
    assert gradient.tolist() == [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]] and indices.tolist() == [0, 0]


@pytest.mark.parametrize("make", [
    lambda x: torch.nn.functional.layer_norm(x, (3,)),
    lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1])),
    lambda x: torch.softmax(x, 1) @ x.T])
def test_looking_at_the_graph_changes_no_gradient(make):
    gradients = []
    for look in (False, True):
        x = torch.arange(6.0).reshape(2, 3).sin().requires_grad_()
        y = make(x).sum()
        names = []
        todo = [y.grad_fn] if look else []
        while todo:
            node = todo.pop()
            names.append(node.name())
            todo += [n for n, _ in node.next_functions if n is not None]
        y.backward()
        gradients.append(x.grad.tolist())
        assert not look or "AccumulateGrad" in "".join(names)
    assert gradients[0] == gradients[1]


@pytest.mark.parametrize("run", [
    lambda x: (y := x.exp(), y),                        # the result
    lambda x: (y := x.exp(), y.detach()),               # … by what shares its memory
    lambda x: (y := x.exp(), y[:1]),                    # … by a view
    lambda x: x.sort(),                                 # one of several results
    lambda x: (y := x * 1, y.exp_()),                   # the result of a write
    lambda x: (y := x * 1, y[:1].exp_()),
])
def test_a_saved_result_that_was_written_to_is_refused(run):
    total, written = run(torch.tensor([0.5, 0.6], requires_grad=True))
    written.zero_() if written.is_floating_point() else written.add_(1).sub_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.sum().backward()
