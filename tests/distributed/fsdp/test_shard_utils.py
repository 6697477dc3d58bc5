"""Tensors of which each process has some rows."""
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.fsdp import _shard_utils as shards
from flambeau.distributed.tensor import DTensor, Replicate, Shard
from flambeau.testing._internal.distributed.fake_pg import FakeStore

pytestmark = pytest.mark.filterwarnings("ignore:Please use DTensor instead:FutureWarning")


@pytest.fixture
def third():
    """Process 2 of 4, the others imagined."""
    dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize(("args", "place"), [
    ((1, "cpu", 4), "rank:1/cpu"), ((5, "cuda", 4), "rank:5/cuda:1"),
    ((0, "CPU", 1), "rank:0/CPU")])
def test_places(args, place):
    assert shards._get_remote_device_str(*args) == place


@pytest.mark.parametrize(("rows", "mine"), [(8, [4, 5]), (6, [4, 5]), (5, [4]), (3, [2])])
def test_rows_of_a_sharded_tensor(third, rows, mine):
    whole = torch.arange(2 * rows).view(rows, 2)
    made = shards._create_chunk_sharded_tensor(whole, 2, 4, 1, dist.group.WORLD)
    local = made.local_shards()[0]
    assert local.tensor.tolist() == whole[mine].tolist()
    assert local.metadata.shard_offsets == [mine[0], 0] and made.size() == (rows, 2)
    local.tensor.zero_()
    assert whole[mine].any()                        # a copy


def test_fewer_rows_than_processes(third):
    made = shards._create_chunk_sharded_tensor(torch.ones(2, 2), 2, 4, 1, dist.group.WORLD)
    assert made.local_shards() == [] and len(made.metadata().shards_metadata) == 2


def test_rows_of_a_distributed_tensor(third):
    mesh = init_device_mesh("cpu", (2, 2))
    made = shards._create_chunk_dtensor(torch.arange(8.0).view(4, 2), 2, mesh)
    assert made.placements == (Replicate(), Shard(0)) and made.to_local().tolist() == [[0, 1],
                                                                                       [2, 3]]


def test_the_whole_again(alone):
    mesh = init_device_mesh("cpu", (1,))
    given = torch.arange(4.0).view(2, 2)
    made = shards._create_chunk_dtensor(given, 0, mesh)
    assert isinstance(made, DTensor)
    assert torch.equal(shards._all_gather_dtensor(made, mesh), given)
