"""Hooks: their order, what they may change, and when they are gone."""
import gc
import weakref

import pytest

import flambeau as torch


def test_the_order_of_hooks_on_one_node():
    x, log = torch.ones(2, requires_grad=True), []
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: log.append("before the node"))
    y.register_hook(lambda grad: log.append("on the tensor"))
    y.grad_fn.register_hook(lambda inputs, outputs: log.append("after the node"))
    y.sum().backward()
    assert log == ["on the tensor", "before the node", "after the node"]


def test_a_hook_may_give_another_gradient():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]
    y = torch.ones(2, requires_grad=True) * 1
    y.register_hook(lambda grad: torch.ones(3))
    with pytest.raises(RuntimeError, match=r"size|shape"):
        y.sum().backward()


def test_hooks_end_when_their_handle_says_so():
    x, log = torch.ones(1, requires_grad=True), []
    handle = x.register_hook(lambda grad: log.append(1))
    with handle:
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert log == [1]


def test_a_gradient_is_kept_where_it_was_asked_for():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [4.0, 4.0] and y.retains_grad


def test_after_accumulation():
    x, seen = torch.ones(1, requires_grad=True), []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.item()))
    for _ in range(2):
        (x * 3).sum().backward()
    assert seen == [3.0, 6.0]


def test_hooks_keep_no_tensor_alive():
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: None)
    alive = weakref.ref(y)
    del y
    gc.collect()
    assert alive() is None


def test_hooks_need_a_gradient():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_hook(print)


def shapes(grads):
    return [None if g is None else tuple(g.shape) for g in grads]


@pytest.mark.parametrize(("op", "before"), [
    (lambda x: x.max(1)[0], [(3,)]),
    (lambda x: torch.linalg.lu(x)[2], [None, (3, 3)]),              # no gradient of P
    (lambda x: torch.nn.functional.layer_norm(x, (3,)), [(3, 3)]),
    (lambda x: torch.linalg.qr(x)[1], [None, (3, 3)]),
])
def test_hooks_of_nodes_see_outputs_that_have_a_derivative(op, before):
    x, seen = (torch.rand(3, 3) + torch.eye(3)).requires_grad_(), []
    y = op(x)
    assert len(y.grad_fn._input_metadata) == len(before) and before[y.output_nr] == tuple(y.shape)
    y.grad_fn.register_prehook(lambda grads: seen.append(shapes(grads)))
    y.grad_fn.register_prehook(lambda grads: tuple(g if g is None else g * 3 for g in grads))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(shapes(outputs)))
    once, = torch.autograd.grad(op(x).square().sum(), x)
    y.square().sum().backward()
    torch.testing.assert_close(x.grad, 3 * once)
    assert seen == [before, before]


def test_the_numbers_of_outputs_are_those_of_edges():
    _, lower, upper = torch.linalg.lu(torch.rand(2, 2, requires_grad=True))
    edge = torch.autograd.graph.get_gradient_edge(upper)
    assert (lower.output_nr, upper.output_nr, edge.output_nr) == (0, 1, 1)
    assert torch.autograd.grad((upper * 2).sum(), edge)[0].tolist() == [[2, 2], [2, 2]]
    assert upper.mul(2).grad_fn.next_functions[0] == (upper.grad_fn, 1)


@pytest.mark.parametrize("op", [
    lambda x, w: x + w, lambda x, w: x * w, lambda x, w: torch.lerp(x, w, 0.5),
    lambda x, w: torch.where(x > 0.5, x, w), lambda x, w: torch.addmm(w, torch.ones(3, 3), x)])
def test_hooks_after_a_node_see_gradients_that_fit_its_inputs(op):
    x, w, seen = torch.rand(3, 3, requires_grad=True), torch.rand(3, requires_grad=True), []
    plain, = torch.autograd.grad(op(x, w).sum(), w)
    double, y = (lambda g: None if g is None else 2 * g), op(x, w)
    y.grad_fn.register_hook(lambda inputs, outputs: seen.extend(filter(None, shapes(inputs))))
    y.grad_fn.register_hook(lambda inputs, outputs: tuple([double(g) for g in inputs]))
    y.sum().backward()
    assert sorted(seen) == [(3,), (3, 3)]
    torch.testing.assert_close(w.grad, 2 * plain)


def test_the_type_of_a_gradient_fits_before_hooks_see_it():
    x, seen = torch.rand(2, requires_grad=True), []
    y = x * torch.rand(2, dtype=torch.float64)
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs[0].dtype))
    y.sum().backward()
    assert seen == [torch.float32]


@pytest.mark.parametrize(("answer", "error", "text"), [
    (lambda t: torch.ones(3).double(), RuntimeError, "has changed the type of value"),
    (lambda t: torch.ones(3), RuntimeError, "has changed the size of value"),
    (lambda t: 3, TypeError, "expected Variable, but hook returned 'int'")])
def test_what_hooks_give_is_checked_by_type_first(answer, error, text):
    x = torch.ones(2, requires_grad=True)
    for register in (x.register_post_accumulate_grad_hook, x.register_hook):
        with register(answer), pytest.raises(error, match=text):
            (x * 2).sum().backward()
    with x.register_post_accumulate_grad_hook(lambda t: torch.ones(2)), \
            pytest.raises(RuntimeError, match="should return None"):
        x.sum().backward()
