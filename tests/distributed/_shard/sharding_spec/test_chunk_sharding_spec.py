"""Equal pieces along one dimension."""
import pytest
from shard_cases import columns, deprecated, whole

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._shard.sharded_tensor.metadata import TensorProperties
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec


@pytest.mark.parametrize(("shape", "dim", "parts"), [
    ((5, 2), 0, 2), ((5, 2), -2, 3), ((2, 3), 1, 4), ((0, 2), 0, 2), ((4, 2), -1, 2)])
def test_pieces_are_those_of_chunk(shape, dim, parts):
    spec = ChunkShardingSpec(dim, [f"rank:{r}/cpu" for r in range(parts)])
    about = spec.build_metadata(torch.Size(shape), TensorProperties())
    chunks = torch.zeros(shape).chunk(parts, dim)
    sizes = [tuple(piece.shard_sizes) for piece in about.shards_metadata]
    assert len(sizes) == parts and about.size == torch.Size(shape)
    assert [s for s in sizes if 0 not in s] == [tuple(c.shape) for c in chunks if c.numel()]
    ends = [piece.shard_offsets[dim] + piece.shard_sizes[dim] for piece in about.shards_metadata]
    assert [piece.shard_offsets[dim] for piece in about.shards_metadata] == [0, *ends[:-1]]
    assert [piece.placement for piece in about.shards_metadata] == spec.placements


def test_places_may_be_in_any_order():
    spec = columns(1, 0)
    assert repr(spec) == "ChunkShardingSpec(dim=1, placements=[rank:1/cpu, rank:0/cpu])"
    assert spec == columns(1, 0) != columns(0, 1)
    assert [p.shard_offsets for p in spec.build_metadata(
        torch.Size([2, 2]), TensorProperties()).shards_metadata] == [[0, 0], [0, 1]]


@pytest.mark.parametrize(("dim", "kind", "message"), [
    ("N", NotImplementedError, "does not support named dimension yet"),
    (0.5, ValueError, "Sharding dim needs to be an integer, found: 0.5"),
    (None, ValueError, "found: None")])
def test_dimensions_that_are_refused(dim, kind, message):
    with pytest.raises(kind, match=message):
        ChunkShardingSpec(dim, ["rank:0/cpu"])


@pytest.mark.parametrize(("shape", "dim"), [((2,), 1), ((2,), -2), ((), 0)])
def test_dimensions_that_a_tensor_does_not_have(shape, dim):
    with pytest.raises(ValueError, match=f"Invalid sharding dim: {dim}"):
        ChunkShardingSpec(dim, ["rank:0/cpu"]).build_metadata(torch.Size(shape),
                                                              TensorProperties())


@deprecated
def test_sharding_copies(alone):
    given = torch.arange(4.0, requires_grad=True)
    made = whole().shard(given, process_group=dist.group.WORLD)
    local = made.local_tensor()
    assert torch.equal(local, given) and local.data_ptr() != given.data_ptr()
    assert local.is_leaf and local.requires_grad
    assert not whole().shard(given.detach(), process_group=dist.group.WORLD) \
        .local_tensor().requires_grad


def scattered(rank):
    # The tensor of process 1 counts, and its second piece lies at process 0.
    given = torch.arange(6.0).view(2, 3) * rank
    local = columns(1, 0).shard(given, src_rank=1, process_group=dist.group.WORLD).local_tensor()
    assert local.tolist() == ([[2.0], [5.0]], [[0.0, 1.0], [3.0, 4.0]])[rank]


def test_two_processes(processes):
    processes(scattered)
