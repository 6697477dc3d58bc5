"""Views of distributed tensors are those of whole ones."""
from __future__ import annotations

from tensor_cases import every_placement, numbers

import flambeau as torch
from flambeau.nn import functional as F


def views(rank):
    x = numbers(8, 6)
    for function in (torch.t, lambda x: x.view(48), lambda x: x.view(4, 2, 6), lambda x:
                     x.permute(1, 0), lambda x: x.unsqueeze(1), lambda x: x[2:5], lambda x: x[:, 1],
                     lambda x: x[:], lambda x: x.unsqueeze(0).expand(3, 8, 6), torch.flatten,
                     lambda x: x.split(3, 1), lambda x: x.chunk(2), lambda x: x.reshape(16, 3),
                     lambda x: x.repeat(2, 1), lambda x: x.flip(0), lambda x: x.roll(1, 1),
                     lambda x: x.tril(), lambda x: F.pad(x, (1, 2)), lambda x: x.diagonal(),
                     lambda x: x.unsqueeze(1).squeeze(1) * 2, lambda x: x.t().contiguous().view(-1),
                     lambda x: x.unfold(1, 2, 2)):
        every_placement(function, x)
    short = numbers(4, 6)                                       # pieces of one row
    for function in (lambda x: x.squeeze(), lambda x: x.unsqueeze(0).squeeze()):
        every_placement(function, short)


def test_several_processes(processes):
    processes(views, size=2)
