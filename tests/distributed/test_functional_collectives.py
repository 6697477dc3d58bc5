"""Collectives that give new tensors, as functions and as ops, with gradients."""
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import _functional_collectives as f
from flambeau.distributed.device_mesh import init_device_mesh


def values(rank):
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("a",))
    x = torch.arange(4.0).view(2, 2) + 10 * rank
    for group in (dist.group.WORLD, "0", mesh, (mesh, 0), [0, 1]):
        assert f.all_reduce(x, "sum", group).tolist() == [[10.0, 12.0], [14.0, 16.0]]
    group = dist.group.WORLD
    assert x[0, 0].item() == 10.0 * rank                        # not in place
    assert f.all_gather_tensor(x, 1, group).tolist() == [[0.0, 1.0, 10.0, 11.0],
                                                         [2.0, 3.0, 12.0, 13.0]]
    assert f.reduce_scatter_tensor(x, "avg", 1, group).tolist() == [
        [[5.0], [7.0]], [[6.0], [8.0]]][rank]
    assert f.broadcast(x, 1, group)[0, 0].item() == 10.0
    assert f.all_to_all_single(x, None, None, group).tolist() == [
        [[0.0, 1.0], [10.0, 11.0]], [[2.0, 3.0], [12.0, 13.0]]][rank]
    assert f.permute_tensor(x, [1, 0], group)[0, 0].item() == 10.0 * (1 - rank)
    both = f.all_reduce_coalesced([x, torch.ones(1)], "max", group)
    assert both[0][0, 0].item() == 10.0 and both[1].item() == 1.0
    pieces = f.reduce_scatter_tensor_coalesced([x, x], "sum", [0, 1], group)
    assert [p.shape for p in pieces] == [(1, 2), (2, 1)]
    assert [t.shape[0] for t in f.all_gather_into_tensor_coalesced([x, x[0]], group)] == [4, 4]
    ops = torch.ops._c10d_functional
    out = torch.empty(4, 2)
    assert ops.all_gather_into_tensor_out(x, 2, "0", out=out) is out and out[2, 0].item() == 10.0
    y = x.clone()
    assert ops.all_reduce_(y, "min", "0") is y and y[0, 0].item() == 0.0
    assert torch.ops.c10d_functional.all_reduce(x, "sum", "", [0, 1], 2)[0, 0].item() == 10.0
    assert torch.ops.c10d_functional.broadcast(x, 1, "", [0, 1], 2)[0, 0].item() == 10.0
    f.all_reduce_inplace(y, dist.ReduceOp.SUM)
    assert y[0, 0].item() == 0.0 and y[1, 1].item() == 6.0
    parts = [torch.empty(2, 2), torch.empty(2, 2)]
    f.all_gather_inplace(parts, x)
    assert parts[1][0, 0].item() == 10.0
    z = torch.zeros(2)
    (f.irecv_inplace(z, 0) if rank else f.isend_inplace(z + 3, 1))
    assert z.sum().item() == 6.0 * rank
    f.batch_p2p_ops_inplace(["isend", "irecv"], [1 - rank] * 2, [0, 0],
                            [torch.full((2,), float(rank)), z], group)
    assert z.tolist() == [1.0 - rank] * 2


def ops_by_name(rank):
    group = dist.group.WORLD
    x = torch.arange(4.0).view(2, 2) + 4 * rank
    found = torch.ops._dtensor.shard_dim_alltoall(x, 0, 1, group.group_name)
    assert found.tolist() == [[[0.0], [2.0], [4.0], [6.0]], [[1.0], [3.0], [5.0], [7.0]]][rank]
    c10d, legacy, z = torch.ops.c10d, torch.ops.c10d_functional, torch.zeros(2)
    c10d.barrier(torch.ones(1), group, [], True, 5000).wait()
    c10d.monitored_barrier_(torch.ones(1), group, [], 5000, False)
    if rank:
        c10d.recv_([z], group, 0, 3).wait()
        assert z.tolist() == [7.0, 7.0]
        c10d.recv_any_source_([z], group, 4).wait()
        assert legacy.irecv(z, 0, 5, group.group_name).tolist() == [9.0, 9.0]
        assert legacy.batch_p2p_ops(["irecv"], [0], [6], [z], "0")[0].tolist() == [10.0, 10.0]
    else:
        c10d.send([z + 7], group, 1, 3).wait()
        c10d.send([z + 8], group, 1, 4).wait()
        legacy.isend(z + 9, 1, 5, group.group_name)
        legacy.batch_p2p_ops(["isend"], [1], [6], [z + 10], "0")
    remaps = f.traceable_collective_remaps
    messages = [dist.P2POp(dist.isend, z + rank, 1 - rank),
                dist.P2POp(dist.irecv, z, 1 - rank)]
    remaps[dist.batch_isend_irecv](messages)
    remaps[dist.all_reduce](x)
    assert x[0, 0].item() == 4.0


def gradients(rank):
    group = dist.group.WORLD
    weight = torch.arange(1.0, 5.0).view(2, 2) * (rank + 1)

    def grad(function):
        x = torch.ones(2, 2, requires_grad=True)
        y = function(x)
        (y * weight.reshape(-1)[:y.numel()].view(y.shape) if y.numel() <= 4
         else y * torch.cat([weight, weight + 1])).sum().backward()
        return x.grad.tolist()
    assert grad(lambda x: f.all_reduce(x, "sum", group)) == [[3.0, 6.0], [9.0, 12.0]]
    assert grad(lambda x: f.all_gather_tensor(x, 0, group)) == [
        [[3.0, 6.0], [9.0, 12.0]], [[5.0, 8.0], [11.0, 14.0]]][rank]
    assert grad(lambda x: f.reduce_scatter_tensor(x, "sum", 0, group)) == [[1.0, 2.0], [2.0, 4.0]]
    assert grad(lambda x: f.all_to_all_single(x, None, None, group)) == [
        [[1.0, 2.0], [2.0, 4.0]], [[3.0, 4.0], [6.0, 8.0]]][rank]
    with pytest.raises(RuntimeError, match="all_reduce backward only supports 'sum' reduction"):
        grad(lambda x: f.all_reduce(x, "max", group))
    x = torch.ones(2, requires_grad=True)
    once, = torch.autograd.grad(f.all_reduce(x * x, "sum", group).sum(), x, create_graph=True)
    twice, = torch.autograd.grad(once.sum(), x)
    assert once.tolist() == [4.0, 4.0] and twice.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("check", [values, ops_by_name, gradients])
def test_two_processes(processes, check):
    processes(check)


def test_shapes_and_async_tensors(alone):
    x = torch.ones(4, 2, device="meta")
    ops = torch.ops._c10d_functional
    assert ops.all_gather_into_tensor(x, 3, "0").shape == (12, 2)
    assert ops.reduce_scatter_tensor(x, "sum", 2, "0").shape == (2, 2)
    assert ops.all_to_all_single(x, [3], [4], "0").shape == (3, 2)
    assert str(ops.all_reduce.default._schema) == (
        "_c10d_functional::all_reduce(Tensor input, str reduce_op, Any group_name) -> Tensor")
    waiting = f.AsyncCollectiveTensor(torch.ones(2))
    assert not waiting.completed and type(waiting + 1) is torch.Tensor
    assert (waiting + 1).tolist() == [2.0, 2.0] and waiting.completed
    assert waiting.wait().tolist() == waiting.tolist() == [1.0, 1.0]
    assert f._expand_group(dist.group.WORLD) == ("ptd:0", [0], 1)
    assert f._expand_group([[0, 1], [2, 3]]) == ("", [0, 1, 2, 3], 2)


def test_a_wrapped_result_keeps_its_gradient(alone):
    ops = torch.ops._c10d_functional
    x = torch.ones(3, requires_grad=True)
    found = ops._wrap_tensor_autograd(ops.all_reduce(x, "sum", "0"))
    assert type(found) is f.AsyncCollectiveTensor and found.requires_grad
    assert torch.autograd.grad((found * 2).sum(), x)[0].tolist() == [2.0] * 3
    assert str(ops._wrap_tensor_autograd.default._schema) == (
        "_c10d_functional::_wrap_tensor_autograd(Tensor input) -> Tensor")
    torch.ops.c10d.check_for_nan(x)
    with pytest.raises(RuntimeError, match="NaN found in input tensor"):
        torch.ops.c10d.check_for_nan(x * float("nan"))


@pytest.mark.parametrize("call, error, text", [
    (lambda x: f.all_reduce(x, "zz", dist.group.WORLD), RuntimeError, "Unrecognized reduce_op: zz"),
    (lambda x: f.all_reduce(x, "sum", 3), ValueError, "Unsupported group type"),
    (lambda x: f.all_reduce(x, "sum", "zz"), RuntimeError, "under the name zz"),
    (lambda x: f._expand_group("0"), ValueError, "must be one of List, Processgroup"),
    (lambda x: f.all_reduce_inplace(x, async_op=True), AssertionError, "async version"),
    (lambda x: f.all_reduce(x, "sum", init_device_mesh("cpu", (1, 1))), AssertionError,
     "Only 1D mesh is supported"),
])
def test_refusals(alone, call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(2))


def test_collectives_of_one_process_keep_gradients(alone):
    x = torch.ones(2, requires_grad=True)
    y = f.wait_tensor(f.all_reduce(x, "sum", [0]))
    y.sum().backward()
    assert y is not x and torch.equal(x.grad, torch.ones(2))
