"""A module that tests of TorchScript's names share."""
from __future__ import annotations

from flambeau import jit, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.drop(self.linear(x))

    @jit.export
    def twice(self, x):
        return 2 * x
