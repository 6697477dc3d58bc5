"""One parameter: the piece that this process keeps, and the whole while a module needs it."""
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.fsdp import MixedPrecisionPolicy, OffloadPolicy
from flambeau.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo
from flambeau.distributed.fsdp._fully_shard._fsdp_param import (
    FSDPParam,
    ParamModuleInfo,
    ShardedState,
    unsafe_setattr_param,
)
from flambeau.distributed.tensor import DTensor, Shard
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def info():
    """Process 1 of 4, the others imagined."""
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    yield FSDPMeshInfo(init_device_mesh("cpu", (4,)), shard_mesh_dim=0)
    dist.destroy_process_group()


def param_of(module, info, placement=None, policy=None):
    return FSDPParam(module.weight, ParamModuleInfo(module, "weight"), info, info,
                     torch.device("cpu"), placement, policy or MixedPrecisionPolicy(),
                     OffloadPolicy())


def numbered(rows, columns):
    module = nn.Linear(columns, rows, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.arange(float(rows * columns)).view(rows, columns))
    return module


@pytest.mark.parametrize(("rows", "mine"), [(8, [2, 3]), (7, [2, 3]), (6, [2, 3]), (2, [1])])
def test_pieces_are_those_of_chunk(info, rows, mine):
    module = numbered(rows, 2)
    whole = module.weight.detach().clone()
    param = param_of(module, info)
    assert isinstance(module.weight, DTensor) and module.weight is param.sharded_param
    assert module.weight.shape == (rows, 2) and module.weight.placements == (Shard(0),)
    assert torch.equal(module.weight.to_local(), whole[mine])


@pytest.mark.parametrize("placement", [Shard(0), Shard(1), Shard(-1), None])
def test_from_rows_of_all_to_the_whole(info, placement):
    module = numbered(6, 4)
    whole = module.weight.detach().clone()
    param = param_of(module, info, lambda p: placement)
    dim = 0 if placement is None else placement.dim % 2
    pieces = [p.flatten() for p in whole.chunk(4, dim)]
    pieces += [whole.new_empty(0)] * (4 - len(pieces))
    length = param.all_gather_input().numel()
    rows = torch.stack([nn.functional.pad(p, (0, length - p.numel())) for p in pieces])
    param.take_all_gather_output(rows)
    assert torch.equal(param.unsharded_local(), whole)
    param.to_unsharded(param.unsharded_local())
    assert param.sharded_state is ShardedState.UNSHARDED and not isinstance(module.weight, DTensor)
    param.to_sharded()
    assert module.weight is param.sharded_param


def test_rows_of_a_gradient(info):
    param = param_of(numbered(6, 2), info)
    grad = torch.arange(12.0).view(6, 2)
    rows = param.reduce_scatter_input(grad, 4)
    assert rows.shape == (4, 4) and rows[:3].flatten().tolist() == grad.flatten().tolist()
    assert not rows[3].any() and param.sharded_numel(4) == 4
    found = param.take_reduced(rows[1])
    assert found.to_local().tolist() == [[4, 5], [6, 7]] and found.shape == (6, 2)


def test_gradients_that_wait(info):
    param = param_of(numbered(4, 1), info)
    param.keep(torch.ones(4, 1), torch.float64)
    param.keep(torch.ones(4, 1), torch.float64)
    assert param.unsharded_accumulated_grad.dtype is torch.float64
    total = param.accumulate(torch.ones(4, 1))
    assert total.flatten().tolist() == [3] * 4 and param.unsharded_accumulated_grad is None
    assert param.accumulate(None) is None


def test_types(info):
    param = param_of(numbered(4, 2), info, policy=MixedPrecisionPolicy(torch.float16))
    assert param.param_dtype is param.all_gather_input().dtype is torch.float16
    assert param.take_reduced(torch.ones(2, dtype=torch.float16)).dtype is torch.float32


def test_what_is_refused(info):
    turned = nn.Linear(2, 2)
    turned.weight = nn.Parameter(torch.ones(2, 3).t())
    with pytest.raises(NotImplementedError, match="FSDP does not support non-contiguous parameters "
                                                  "yet"):
        param_of(turned, info)
    with pytest.raises(NotImplementedError, match="uneven sharding on dim 1"):
        param_of(numbered(4, 6), info, lambda p: Shard(1))
    with pytest.raises(ValueError, match="Invalid shard_placement_fn result: 3"):
        param_of(numbered(4, 4), info, lambda p: 3)


def test_any_tensor_may_take_the_place():
    module, x = nn.Linear(2, 2), torch.ones(2)
    unsafe_setattr_param(module, "weight", x)
    assert module.weight is x and module._parameters["weight"] is x
