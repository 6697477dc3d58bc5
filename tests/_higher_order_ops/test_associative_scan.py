"""Scans by pairs."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._higher_order_ops import associative_scan, scan


@pytest.mark.parametrize("length", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_against_loops(length, reverse):
    torch.manual_seed(length)
    x, y = torch.rand(2, length, dtype=torch.float64), torch.rand(2, length, dtype=torch.float64)
    found = associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, y), 1,
                             reverse=reverse, combine_mode="generic")[1]
    state, expected = torch.zeros(2, dtype=torch.float64), []
    for i in reversed(range(length)) if reverse else range(length):
        state = state * x[:, i] + y[:, i] if expected else y[:, i]
        expected.append(state)
    expected = torch.stack(expected[::-1] if reverse else expected, 1)
    torch.testing.assert_close(found, expected)
    final, each = scan(lambda c, xy: (c * xy[0] + xy[1], c), torch.zeros(2).double(), (x, y),
                       dim=1, reverse=reverse)
    torch.testing.assert_close(final, expected[:, 0 if reverse else -1])
    assert each.shape == (2, length)


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
