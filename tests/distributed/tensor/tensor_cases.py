"""Ops on distributed tensors against those on whole ones, forward and backward, however their
inputs lie; meshes of which one process is there."""
from __future__ import annotations

import contextlib
import itertools

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from flambeau.testing._internal.distributed.fake_pg import FakeStore

R, P = Replicate(), Partial()


def placed(tensor, mesh, placements):
    """`tensor` as a leaf that lies in some way; terms where a placement is `Partial`."""
    kept = [R if p.is_partial() else p for p in placements]
    whole = distribute_tensor(tensor, mesh, kept, src_data_rank=None)
    local = whole.to_local()
    for i, p in enumerate(placements):
        if p.is_partial():
            local = local / mesh.size(i) if p.reduce_op == "sum" else local
    found = DTensor.from_local(local, mesh, placements, shape=whole.shape, stride=whole.stride())
    return found.detach().requires_grad_(tensor.is_floating_point())


def check(function, tensors, mesh, placements):
    """`function` of distributed tensors against that of whole ones, and the gradients."""
    whole = [t.clone().requires_grad_(t.is_floating_point()) for t in tensors]
    wanted = function(*whole)
    given = [placed(t, mesh, p) for t, p in zip(tensors, placements)]
    found = function(*given)
    results, expected = [r if isinstance(r, (list, tuple)) else [r] for r in (found, wanted)]
    assert len(results) == len(expected)
    for r, e in zip(results, expected):
        assert r.shape == e.shape, (r, e)
        torch.testing.assert_close(r.full_tensor(), e, rtol=1e-5, atol=1e-5)
    if expected[0].requires_grad:
        weights = [torch.linspace(-1, 1, e.numel()).view(e.shape) for e in expected]
        sum((e * w).sum() for e, w in zip(expected, weights) if e.requires_grad).backward()
        sum((r.full_tensor() * w).sum() for r, w in zip(results, weights)
            if r.requires_grad).backward()
        for g, w in zip(given, whole):
            if w.grad is not None:
                torch.testing.assert_close(g.grad.full_tensor(), w.grad, rtol=1e-4, atol=1e-5)


def every_placement(function, *tensors, limit=2, partial=True):
    """`check` for cuts of all dimensions, replicated tensors and terms, on a line of processes;
    for two tensors or more, all cuts of one beside one placement of the others."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    kinds = [[Shard(d) for d in range(min(t.ndim, limit))] + [R]
             + [P] * (partial and t.is_floating_point()) for t in tensors]
    for chosen in itertools.product(*kinds):
        check(function, tensors, mesh, [(p,) for p in chosen])


def numbers(*shape):
    torch.manual_seed(sum(shape))
    return torch.randn(*shape)


@contextlib.contextmanager
def imagined(*shape, rank=1, names=None):
    """A mesh of which this is one process, the others imagined."""
    size = 1
    for n in shape:
        size *= n
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=size)
    try:
        yield init_device_mesh("cpu", shape, mesh_dim_names=names)
    finally:
        dist.destroy_process_group()


def put(tensor, mesh, *placements):
    """`tensor` as a distributed one that lies in some way; nothing is sent."""
    return placed(tensor, mesh, placements).detach()


def spec(mesh, shape, *placements, dtype=torch.float32):
    """How a tensor of this shape lies."""
    strides = torch.empty(shape, device="meta").stride()
    return DTensorSpec(mesh, placements, TensorMeta(torch.Size(shape), strides, dtype))
