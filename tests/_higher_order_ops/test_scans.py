"""Scans and maps: what they compute and their gradients."""

import pytest

import flambeau as torch
from flambeau._higher_order_ops import associative_scan, map, scan


def linear(left, right):
    """The composition of two maps `x -> a x + b`."""
    return left[0] * right[0], right[0] * left[1] + right[1]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_an_associative_scan_is_the_loop(count, reverse):
    torch.manual_seed(0)
    a, b = torch.randn(2, count, 3).double(), torch.randn(2, count, 3).double()
    order = range(count - 1, -1, -1) if reverse else range(count)
    rows, carry = {}, None
    for i in order:
        step = a[:, i], b[:, i]
        carry = step if carry is None else linear(carry, step)
        rows[i] = carry
    found = associative_scan(linear, (a, b), 1, reverse, "generic")
    for part, result in enumerate(found):
        torch.testing.assert_close(result, torch.stack(
            [rows[i][part] for i in range(count)], 1))


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


def test_a_map_is_stacked():
    x = torch.arange(4.0).view(2, 2)
    found = map(lambda r, y: {"sum": r["k"].sum(), "product": r["k"] * y}, {"k": x},
                torch.tensor(2.0))
    assert found["sum"].tolist() == [1.0, 5.0]
    assert found["product"].tolist() == [[0.0, 2.0], [4.0, 6.0]]
