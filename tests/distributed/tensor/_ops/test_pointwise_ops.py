"""Element by element, and losses, give what they give on whole tensors."""
from __future__ import annotations

from tensor_cases import every_placement, numbers

import flambeau as torch
from flambeau.nn import functional as F


def elementwise(rank):
    x, y = numbers(6, 5), numbers(6, 5)
    for function in (torch.relu, torch.neg, lambda x: x * 2 + 1, lambda x: 3 - x, torch.sigmoid,
                     F.gelu, lambda x: x.to(torch.float64).exp().float(), torch.tanh,
                     lambda x: x.clamp(-0.5, 0.5), lambda x: torch.where(x > 0, x, x * 2),
                     lambda x: x.masked_fill(x > 0, 1.0), lambda x: x ** 2, F.silu):
        every_placement(function, x)
    for function in (torch.add, torch.mul, torch.maximum, lambda a, b: a - 2 * b,
                     lambda a, b: torch.lerp(a, b, 0.3)):
        every_placement(function, x, y)
    every_placement(torch.add, x, numbers(5))
    every_placement(torch.mul, x, numbers(6, 1))


def test_several_processes(processes):
    processes(elementwise, size=2)
