"""What is known of a sharded tensor."""
import pickle

import pytest
from shard_cases import about

import flambeau as torch
from flambeau.distributed._shard.sharded_tensor.metadata import (
    MEM_FORMAT_ENCODING,
    ShardedTensorMetadata,
    TensorProperties,
)


def test_properties_of_tensors():
    given = torch.ones(2, dtype=torch.float64, requires_grad=True)
    made = TensorProperties.create_from_tensor(given)
    assert made == TensorProperties(dtype=torch.float64, requires_grad=True)
    assert TensorProperties() == TensorProperties(
        torch.float32, torch.strided, False, torch.contiguous_format, False)


@pytest.mark.parametrize(("form", "code"), [
    (torch.contiguous_format, MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT),
    (torch.channels_last, MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST),
    (torch.preserve_format, MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT)])
def test_memory_formats_have_numbers_in_pickles(form, code):
    made = TensorProperties(dtype=torch.int8, memory_format=form)
    assert made.__getstate__()[3] is code
    assert pickle.loads(pickle.dumps(made)) == made


def test_memory_formats_without_a_number():
    with pytest.raises(RuntimeError, match=r"Invalid torch.memory_format: 3"):
        TensorProperties(memory_format=3).__getstate__()


def test_metadata_of_pieces():
    made = ShardedTensorMetadata()
    assert made.shards_metadata == [] and made.size == torch.Size([])
    assert ShardedTensorMetadata().shards_metadata is not made.shards_metadata
    made = ShardedTensorMetadata([about((0,), (2,))], torch.Size([2]), TensorProperties())
    assert pickle.loads(pickle.dumps(made)) == made
