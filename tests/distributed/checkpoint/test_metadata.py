"""What is known of a checkpoint."""
from __future__ import annotations

import pickle

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)


def test_names_of_pieces():
    index = MetadataIndex("w", [0, 2], 1)
    assert index == MetadataIndex("w", torch.Size([0, 2])) != MetadataIndex("w", [0, 3])
    assert hash(index) == hash(MetadataIndex("w", (0, 2), 7))
    assert isinstance(index.offset, torch.Size) and index.index == 1
    assert MetadataIndex("w").offset is None and MetadataIndex("w") != index
    assert pickle.loads(pickle.dumps(index)) == index
    with pytest.raises(AttributeError):
        index.fqn = "v"


def test_properties():
    found = TensorProperties.create_from_tensor(
        torch.zeros(2, dtype=torch.float64, requires_grad=True))
    assert found == TensorProperties(torch.float64, torch.strided, True)
    assert found.memory_format is torch.contiguous_format and found.pin_memory is False
    assert TensorProperties().dtype is torch.get_default_dtype()


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last,
                                  torch.preserve_format])
def test_properties_are_pickled(form):
    found = TensorProperties(torch.bfloat16, memory_format=form)
    assert pickle.loads(pickle.dumps(found)) == found


def test_descriptions():
    chunk = ChunkStorageMetadata(torch.Size([0]), torch.Size([2]))
    tensor = TensorStorageMetadata(TensorProperties(), torch.Size([2]), [chunk])
    about = Metadata({"w": tensor, "b": BytesStorageMetadata()},
                     storage_meta=StorageMeta("place", modules=["m"]))
    assert about.planner_data is about.storage_data is about.version is None
    assert pickle.loads(pickle.dumps(about)) == about
    assert StorageMeta().modules == [] and StorageMeta().save_id is None
