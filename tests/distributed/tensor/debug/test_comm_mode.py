"""What a program sends is counted, by kind and module."""
from __future__ import annotations

import json

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed import _functional_collectives as functional
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.fsdp import fully_shard
from flambeau.distributed.tensor import Shard, distribute_tensor
from flambeau.distributed.tensor.debug import CommDebugMode
from flambeau.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)
from flambeau.testing._internal.distributed.fake_pg import FakeStore

c10d, functional_ops = torch.ops.c10d, torch.ops.c10d_functional


@pytest.fixture(params=[1])
def mesh(request):
    """Process 1 (or 0) of 4, the others imagined."""
    dist.init_process_group("fake", store=FakeStore(), rank=request.param, world_size=4)
    yield init_device_mesh("cpu", (4,))
    dist.destroy_process_group()


def test_collectives_are_counted(mesh):
    x = torch.ones(4)
    with CommDebugMode() as mode:
        dist.all_reduce(x)
        dist.broadcast(x, 0)
        dist.all_gather_into_tensor(torch.empty(16), x)
        dist.reduce_scatter_tensor(torch.empty(1), x)
        dist.all_gather([torch.empty(4) for _ in range(4)], x)
        dist.all_to_all_single(torch.empty(4), x)
        functional.all_reduce(x, "sum", mesh)
    assert mode.get_total_counts() == 7 and mode.get_comm_counts() == dict.fromkeys([
        c10d.allreduce_, c10d.broadcast_, c10d._allgather_base_, c10d._reduce_scatter_base_,
        c10d.allgather_, c10d.alltoall_base_, functional_ops.all_reduce], 1)
    with mode:
        distribute_tensor(x, mesh, [Shard(0)]).full_tensor()
    assert mode.get_comm_counts() == {c10d.scatter_: 1, functional_ops.all_gather_into_tensor: 1}


def test_what_layers_and_losses_send(mesh):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
    with CommDebugMode() as mode:
        model(torch.ones(2, 4)).sum().backward()
    assert mode.get_comm_counts() == {functional_ops.all_reduce: 1}
    assert mode.get_sharding_info()["Sequential.1.weight"] == (Shard(1),)
    assert list(mode.get_parameter_info()["Sequential.0"]) == ["weight", "bias"]
    scores = distribute_tensor(torch.ones(2, 8), mesh, [Shard(1)],
                               src_data_rank=None).requires_grad_()
    with loss_parallel():
        with CommDebugMode() as mode:
            loss = nn.functional.cross_entropy(scores, torch.tensor([0, 1]))
        assert mode.get_comm_counts() == {functional_ops.all_reduce: 3}
        with CommDebugMode() as mode:
            loss.backward()
        assert mode.get_total_counts() == 0
    sharded = fully_shard(nn.Linear(4, 4), reshard_after_forward=True)
    with CommDebugMode() as mode:
        sharded(torch.ones(1, 4)).sum().backward()
    assert mode.get_comm_counts() == {c10d._allgather_base_: 2, c10d._reduce_scatter_base_: 1}


def test_tables_and_files(mesh, tmp_path):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
    with CommDebugMode() as mode:
        model(torch.ones(2, 4)).sum().backward()
    mode.log_comm_debug_tracing_table_to_file(tmp_path / "table.txt", noise_level=0)
    assert (tmp_path / "table.txt").read_text() == """\
Global
  FORWARD PASS
    *c10d_functional.all_reduce: 1
    Sequential
      FORWARD PASS
        *c10d_functional.all_reduce: 1
        Sequential.0
        Sequential.1
          FORWARD PASS
            *c10d_functional.all_reduce: 1
"""
    table = mode.generate_comm_debug_tracing_table(1)
    assert "*module type: class" in table and " *bias: (Replicate(),)" in table
    assert "**aten.addmm.default" in table and "aten.ones.default" not in table
    assert "aten.ones.default" in mode.generate_comm_debug_tracing_table(2)
    assert "aten.t.default" in mode.generate_comm_debug_tracing_table(3)
    mode.generate_json_dump(tmp_path / "log.json", noise_level=1)
    found = json.loads((tmp_path / "log.json").read_text())
    assert found["fqn"] == "Global" and found["children"][0]["fqn"] == "Sequential"
    assert found["collectives_forward"] == [["c10d_functional.all_reduce", 1]]
