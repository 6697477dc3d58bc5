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
