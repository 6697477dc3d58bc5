"""Scans with a state."""
import flambeau as torch
from flambeau._higher_order_ops import associative_scan, scan


def test_scans_have_gradients():
    torch.manual_seed(0)
    x = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x: associative_scan(torch.mul, x, -1, combine_mode="generic"), x)
    assert torch.autograd.gradcheck(
        lambda x: scan(lambda c, r: ((c + r).sin(), c * r), torch.zeros(5).double(), x)[1], x)


def test_a_scan_keeps_what_its_steps_give():
    x = torch.arange(6.0).view(2, 3) + 1
    carry, kept = scan(lambda c, r: (c + r, c * r), torch.zeros(2), x, dim=1, reverse=True)
    assert carry.tolist() == [6.0, 15.0]
    assert kept.tolist() == [[5.0, 6.0, 0.0], [44.0, 30.0, 0.0]]
    carry, kept = scan(lambda c, r: (c + r["a"], {"y": 2 * c}), torch.zeros(3), {"a": x})
    assert carry.tolist() == [5.0, 7.0, 9.0] and kept["y"].tolist()[1] == [2.0, 4.0, 6.0]
    assert scan(lambda c, r: (c, r), torch.zeros(1), []) == (torch.zeros(1), [])
