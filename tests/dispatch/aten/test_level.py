"""Ops as modes below autograd are asked for them, and the nodes that record the answers."""

import pytest

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    """Notes the names of the ops, and lets `change` make other results."""

    def __init__(self, change=None):
        super().__init__()
        self.names, self.change = [], change

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        if self.change is not None:
            return self.change(func, args, kwargs or {})
        return func(*args, **kwargs or {})


def test_forward_and_backward_are_shown_op_by_op():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with Log() as log:
        y = (x * x).sum()
        forward = list(log.names)
        y.backward()
    assert forward == ["aten.mul.Tensor", "aten.sum.default"]
    assert "aten.expand.default" in log.names and x.grad.tolist() == [2.0, 4.0]


def test_what_a_mode_answers_has_the_gradient_of_the_op():
    def doubled(func, args, kwargs):
        return func(*args, **kwargs) * 2 if str(func) == "aten.exp.default" else func(
            *args, **kwargs)
    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    with Log(doubled):
        y = x.exp()
    y.backward()
    torch.testing.assert_close(y.detach(), 2 * x.detach().exp())
    torch.testing.assert_close(x.grad, y.detach())          # exp saves its result


def test_writes_are_shown_as_writes_and_keep_their_history():
    x = torch.ones(2, requires_grad=True)
    with Log() as log:
        y = x * 3
        y.mul_(2)
        y.sum().backward()
    assert log.names[:2] == ["aten.mul.Tensor", "aten.mul_.Tensor"]
    assert x.grad.tolist() == [6.0, 6.0] and y._version == 1


def test_views_stay_views():
    x = torch.zeros(2, 3)
    with Log() as log:
        row = x[1]
        row.fill_(5)
    assert log.names == ["aten.select.int", "aten.fill_.Scalar"]
    assert row._base is x and x[1].tolist() == [5.0, 5.0, 5.0]


def test_a_view_of_what_requires_grad_is_written_through():
    x = torch.ones(2, 2, requires_grad=True)
    with Log():
        y = x * 1
        y[0].mul_(4)
        y.sum().backward()
    assert x.grad.tolist() == [[4.0, 4.0], [1.0, 1.0]]


def test_second_derivatives():
    x = torch.tensor(2.0, requires_grad=True)
    with Log():
        first, = torch.autograd.grad(x ** 3, x, create_graph=True)
        second, = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_errors_of_a_mode_reach_the_program():
    def refuse(func, args, kwargs):
        raise LookupError(str(func))
    x = torch.ones(1)
    with pytest.raises(LookupError, match=r"aten\.neg\.default"), Log(refuse):
        x.neg()
    assert x.neg().item() == -1.0


def test_reading_a_number_is_shown():
    class Names(TorchDispatchMode):
        def __init__(self):
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))
    x = torch.tensor([3.0])
    for read in (torch.Tensor.item, bool, float, int, torch.Tensor.is_nonzero):
        with Names() as names:
            assert read(x) == read(3.0) if isinstance(read, type) else read(x)
        assert names.seen == ["aten._local_scalar_dense.default"]
