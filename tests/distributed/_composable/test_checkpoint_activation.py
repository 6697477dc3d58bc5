"""Activations are computed again, without a wrapper."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed._composable import checkpoint


def test_activations_are_computed_again():
    class Counted(nn.Linear):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return super().forward(x).tanh()
    layer = checkpoint(Counted(2, 1))
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.calls == 2 and layer.weight.grad is not None
    with pytest.raises(NotImplementedError, match="use_reentrant=True"):
        checkpoint(nn.Linear(1, 1), use_reentrant=True)
