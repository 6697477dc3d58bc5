"""What the metadata of pieces says of a tensor."""
from __future__ import annotations

import pickle

import pytest

import flambeau as torch
from flambeau.distributed._shard.sharded_tensor import TensorProperties


def test_of_a_tensor():
    found = TensorProperties.create_from_tensor(torch.ones(2, dtype=torch.int8))
    assert found == TensorProperties(torch.int8)
    assert (found.layout, found.requires_grad, found.pin_memory) == (torch.strided, False, False)


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last,
                                  torch.preserve_format])
def test_pickles(form):
    found = TensorProperties(torch.float64, memory_format=form, requires_grad=True)
    assert pickle.loads(pickle.dumps(found)) == found


def test_what_cannot_be_pickled():
    with pytest.raises(RuntimeError, match=r"Invalid torch\.memory_format"):
        pickle.dumps(TensorProperties(memory_format=torch.channels_last_3d))
