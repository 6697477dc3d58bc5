"""Plain tensors that count as replicated."""
import pytest
from tensor_cases import imagined, put

import flambeau as torch
from flambeau.distributed.tensor import DTensor, Shard
from flambeau.distributed.tensor.experimental import implicit_replication


def test_only_inside():
    with imagined(2) as mesh:
        x, plain = put(torch.ones(4, 2), mesh, Shard(0)), torch.ones(4, 2)
        with implicit_replication():
            found = x + plain
            assert isinstance(found, DTensor) and found.placements == (Shard(0),)
            assert (plain * x).to_local().shape == (2, 2)
        with pytest.raises(RuntimeError, match=r"got mixed torch\.Tensor and DTensor"):
            x + plain


def test_errors_end_it_as_well():
    with imagined(2) as mesh:
        x = put(torch.ones(4, 2), mesh, Shard(0))
        with pytest.raises(ZeroDivisionError), implicit_replication():
            raise ZeroDivisionError
        with pytest.raises(RuntimeError, match=r"got mixed torch\.Tensor and DTensor"):
            x * torch.ones(4, 2)
