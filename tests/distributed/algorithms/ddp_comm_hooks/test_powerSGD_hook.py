"""Factors of gradients: orthogonal columns."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power


def test_orthogonalization():
    for columns in (2, 3):                      # Gram and Schmidt; QR
        matrices = torch.randn(2, 5, columns)
        power._orthogonalize(matrices)
        torch.testing.assert_close(matrices.mT @ matrices,
                                   torch.eye(columns).expand(2, columns, columns))
    assert power._should_compress(10, 10, 1, 2) == (True, 100, 20)
    with pytest.raises(ValueError, match="Expect `start_powerSGD_iter` > 1"):
        power.PowerSGDState(None, start_powerSGD_iter=1)
