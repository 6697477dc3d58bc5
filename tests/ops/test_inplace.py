"""In-place forms: the same numbers, one write counted, the history replaced."""
import pytest

import flambeau as torch


def test_the_tensor_has_the_history_of_the_result():
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * 1
    y.square_().mul_(3)
    assert y.grad_fn.name() == "MulBackward0" and y._version == 2
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]


def test_a_write_to_a_view_reaches_the_base_and_other_views():
    x = torch.ones(3, requires_grad=True)
    base = x * 1
    first, rest = base[0], base[1:]
    rest.mul_(5)
    (base.sum() + first).backward()
    assert x.grad.tolist() == [2.0, 5.0, 5.0] and first._version == 1


@pytest.mark.parametrize("write,said", [
    (lambda x: x.add_(1), "a leaf Variable that requires grad is being used in an in-place"),
    (lambda x: x[0].add_(1), "a view of a leaf Variable that requires grad is being used"),
    (lambda x: (x * 1).unbind()[0].add_(1), "one of the outputs|is a view and"),
    (lambda x: torch.ones(1).expand(3).add_(x.detach()), "unsupported operation"),
    (lambda x: torch.ones(2).add_(x.detach()), "doesn't match the broadcast shape|size"),
    (lambda x: torch.ones(3, dtype=torch.int32).mul_(x.detach()), "can't be cast")])
def test_writes_that_are_refused(write, said):
    with pytest.raises(RuntimeError, match=said):
        write(torch.ones(3, requires_grad=True))


def test_nothing_is_written_where_something_is_refused():
    x = torch.arange(3)
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.add_(torch.ones(3))
    assert x.tolist() == [0, 1, 2] and x._version == 0


def test_a_constant_written_to_a_tensor_ends_its_history():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
