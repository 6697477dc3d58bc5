"""NCCL joins CUDA devices: there are none."""
import flambeau as torch
from flambeau.cuda import nccl


def test_it_is_not_available():
    assert nccl.SUM == 0 and not nccl.is_available([torch.ones(1)])
