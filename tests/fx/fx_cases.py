"""What several tests of fx trace."""
from __future__ import annotations

import flambeau
import flambeau as torch
from flambeau import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(flambeau.ones(2, 2))
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.register_buffer("shift", flambeau.ones(2))

    def forward(self, x):
        return self.inner(x @ self.weight) + self.shift


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x, y=1.0):
        h = self.a(x).relu()
        return self.b(h) * self.scale + y, h
