"""Branches and loops, as programs write them."""
import pytest

import flambeau as torch


def test_cond():
    x = torch.arange(3.0, requires_grad=True)
    for pred in (True, torch.tensor(True), torch.ones(1, 1) > 0):
        assert torch.equal(torch.cond(pred, lambda x: x + 1, lambda x: x - 1, (x,)), x + 1)
    y = torch.cond(x.sum() > 5, lambda x: x * 2, lambda x: x * 3, [x])
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]
    assert torch.cond(False, lambda: 1, lambda: 2) == 2
    with pytest.raises(RuntimeError, match="single-element"):
        torch.cond(torch.ones(2) > 0, torch.sin, torch.cos, (x,))
    with pytest.raises(TypeError, match="not callable"):
        torch.cond(True, 3, torch.cos, (x,))


def test_while_loop():
    count, x = torch.while_loop(lambda i, x: i.sum() < 3, lambda i, x: (i + 1, x * 2),
                                (torch.zeros(1), torch.ones(2)))
    assert count.tolist() == [3] and x.tolist() == [8, 8]
    assert torch.while_loop(lambda i: i < 3, lambda i: i + 1, (torch.tensor(0),)).item() == 3
    assert torch.while_loop(lambda i: i < 3, lambda i: (i + 1,), (5,)) == (5,)
    with pytest.raises(RuntimeError, match="callable"):
        torch.while_loop(3, lambda i: i, (1,))
    with pytest.raises(RuntimeError, match="same metadata"):
        torch.while_loop(lambda x: x.sum() < 3, lambda x: (x.repeat(2),), (torch.ones(1),))
