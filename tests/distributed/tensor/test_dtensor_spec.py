"""The mesh, the placements, and what the whole tensor is like."""
import pickle

import pytest
from tensor_cases import P, R, imagined, spec

import flambeau as torch
from flambeau.distributed.tensor import Shard
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry


@pytest.fixture
def grid():
    with imagined(2, 4) as mesh:
        yield mesh


@pytest.mark.parametrize(("placements", "dims", "sums", "text"), [
    ((Shard(0), R), [0, -1], [], "S(0)R"), ((R, R), [-1, -1], [], "RR"),
    ((P, Shard(1)), [-1, 1], [0], "P(sum)S(1)"), ((Shard(1), Shard(0)), [1, 0], [], "S(1)S(0)")])
def test_dimensions(grid, placements, dims, sums, text):
    made = spec(grid, (8, 8), *placements)
    assert made.dim_map == dims and made.sums == sums
    assert str(made) == f"Spec(f32[8, 8]({text}))"
    again = DTensorSpec.from_dim_map(grid, dims, sums, made.tensor_meta)
    assert again == made and hash(again) == hash(made)


def test_what_it_is(grid):
    made = spec(grid, (8, 6), Shard(0), Shard(0))
    assert made.num_shards == 8 and made.num_shards_map == [8, 1]
    assert (made.shape, made.stride, made.ndim) == ((8, 6), (6, 1), 2)
    assert made.is_sharded() and not made.is_replicated()
    assert made.shard_order == (ShardOrderEntry(0, (0, 1)),)
    assert made.device_mesh is made.mesh is grid
    with pytest.raises(ValueError, match="Tensor dim 0 is already sharded on mesh dim 0"):
        made.dim_map
    with pytest.raises(ValueError, match="tensor_meta is not set"):
        DTensorSpec(grid, (R, R)).shape


def test_equality(grid):
    first, second = spec(grid, (8, 8), Shard(0), R), spec(grid, (8, 8), Shard(0), R)
    assert first == second and hash(first) == hash(second)
    other = spec(grid, (8, 4), Shard(0), R)
    assert first != other and first._check_equals(other, skip_shapes=True)
    assert first != spec(grid, (8, 8), R, Shard(0))
    assert first != spec(grid, (8, 8), Shard(0), R, dtype=torch.float64)
    copied = first.shallow_copy_with_tensor_meta(other.tensor_meta)
    assert copied == other
    assert pickle.loads(pickle.dumps(first.placements)) == first.placements


@pytest.mark.parametrize(("dims", "sums", "message"), [
    ([0, 0], [], "can't be mapped to two dimension of the same tensor"),
    ([0, -1], [0], "cannot be both shard and partial")])
def test_contradictions(grid, dims, sums, message):
    with pytest.raises(RuntimeError, match=message):
        DTensorSpec.from_dim_map(grid, dims, sums)
