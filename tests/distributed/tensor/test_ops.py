"""Ops on distributed tensors give what they give on whole ones, forward and backward, however their
inputs lie; and the placements that PyTorch gives them."""
from __future__ import annotations

import itertools

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from flambeau.nn import functional as F

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


def elementwise(rank):
    x, y = numbers(6, 5), numbers(6, 5)
    for function in (torch.relu, torch.neg, lambda x: x * 2 + 1, lambda x: 3 - x, torch.sigmoid,
                     F.gelu, lambda x: x.to(torch.float64).exp().float(), torch.tanh,
                     lambda x: x.clamp(-0.5, 0.5), lambda x: torch.where(x > 0, x, x * 2),
                     lambda x: x.masked_fill(x > 0, 1.0), lambda x: x ** 2, F.silu):
        every_placement(function, x)
    for function in (torch.add, torch.mul, torch.maximum, lambda a, b: a - 2 * b,
                     lambda a, b: torch.lerp(a, b, 0.3)):
        every_placement(function, x, y)
    every_placement(torch.add, x, numbers(5))
    every_placement(torch.mul, x, numbers(6, 1))


def reductions(rank):
    x = numbers(8, 5)
    for function in (torch.sum, lambda x: x.sum(0), lambda x: x.sum(1, keepdim=True), torch.mean,
                     lambda x: x.mean(0), torch.max, lambda x: x.amax(1), lambda x: x.min(0)[0],
                     lambda x: x.var(0), torch.std, lambda x: x.argmax(1), torch.linalg.vector_norm,
                     lambda x: torch.linalg.vector_norm(x, 1, dim=0), lambda x: x.softmax(0),
                     lambda x: x.log_softmax(1), lambda x: x.logsumexp(1), lambda x: (x > 0).all(),
                     lambda x: (x > 1).any(0), lambda x: x.cumsum(0), lambda x: x.prod(1),
                     lambda x: torch.linalg.vector_norm(x, float("inf"))):
        every_placement(function, x)


def views(rank):
    x = numbers(8, 6)
    for function in (torch.t, lambda x: x.view(48), lambda x: x.view(4, 2, 6), lambda x:
                     x.permute(1, 0), lambda x: x.unsqueeze(1), lambda x: x[2:5], lambda x: x[:, 1],
                     lambda x: x[:], lambda x: x.unsqueeze(0).expand(3, 8, 6), torch.flatten,
                     lambda x: x.split(3, 1), lambda x: x.chunk(2), lambda x: x.reshape(16, 3),
                     lambda x: x.repeat(2, 1), lambda x: x.flip(0), lambda x: x.roll(1, 1),
                     lambda x: x.tril(), lambda x: F.pad(x, (1, 2)), lambda x: x.diagonal(),
                     lambda x: x.unsqueeze(1).squeeze(1) * 2, lambda x: x.t().contiguous().view(-1),
                     lambda x: x.unfold(1, 2, 2)):
        every_placement(function, x)
    short = numbers(4, 6)                                       # pieces of one row
    for function in (lambda x: x.squeeze(), lambda x: x.unsqueeze(0).squeeze()):
        every_placement(function, short)


def products(rank):
    a, b = numbers(6, 5), numbers(5, 8)
    every_placement(torch.mm, a, b)
    every_placement(lambda x, w: F.linear(x, w), numbers(4, 6, 5), numbers(7, 5))
    every_placement(torch.bmm, numbers(4, 3, 5), numbers(4, 5, 4), limit=3)
    every_placement(lambda m, v: m @ v, a, numbers(5))
    every_placement(lambda x, w: torch.einsum("bij,jk->bik", x, w), numbers(4, 3, 5), b)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for p in ([Shard(0)], [R], [P]):
        for q in ([Shard(0)], [Shard(1)], [R]):
            check(F.linear, [numbers(6, 5), numbers(8, 5), numbers(8)], mesh,
                  [p, q, [R] if q[0] == Shard(1) else q])
    heads = numbers(2, 4, 5, 3)
    for p in (Shard(0), Shard(1), R, P):
        check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
              [heads, heads + 1, heads - 1], mesh, [[p]] * 3)


def layers(rank):
    x = numbers(8, 4, 6)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for p in (Shard(0), Shard(1), Shard(2), R, P):
        check(lambda x, w, b: F.layer_norm(x, (6,), w, b), [x, numbers(6), numbers(6)], mesh,
              [[p], [R], [R]])
        check(lambda x, w: F.rms_norm(x, (6,), w), [x, numbers(6)], mesh,
              [[p if p != P and p != Shard(2) else R], [R]])
        if p != Shard(2):
            check(lambda x, w: F.group_norm(x, 2, w), [x, numbers(4)], mesh, [[p], [R]])
    for p, q in ((R, Shard(0)), (R, Shard(1)), (Shard(0), R), (R, R)):
        check(F.embedding, [torch.tensor([[0, 3], [9, 1], [2, 5], [8, 8]]), numbers(10, 8)], mesh,
              [[p], [q]])
    targets = torch.arange(8) % 6
    targets[:3] = -100                                          # ignored
    for p, q in ((Shard(0), R), (Shard(0), Shard(0)), (Shard(1), R), (R, R), (P, R)):
        for reduction in ("mean", "sum", "none"):
            check(lambda s, t, r=reduction: F.cross_entropy(s, t, reduction=r),
                  [numbers(8, 6), targets], mesh, [[p], [q]])
    for p in (Shard(0), Shard(1), R, P):
        for loss in (F.mse_loss, F.l1_loss, F.binary_cross_entropy_with_logits, F.smooth_l1_loss):
            check(loss, [numbers(8, 4), numbers(8, 4) + 1], mesh, [[p], [Shard(0)]])
    check(lambda x, w, b: F.conv2d(x, w, b, padding=1), [numbers(4, 2, 5, 5), numbers(3, 2, 3, 3),
                                                        numbers(3)], mesh, [[Shard(0)], [R], [R]])
    check(lambda x: F.max_pool2d(x, 2), [numbers(4, 2, 6, 6)], mesh, [[Shard(0)]])


def joining_and_indexing(rank):
    x, y = numbers(8, 5), numbers(8, 5) + 1
    every_placement(lambda a, b: torch.cat([a, b]), x, y)
    every_placement(lambda a, b: torch.stack([a, b], 1), x, y)
    places = torch.tensor([1, 0, 7])
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for p in (Shard(0), Shard(1), R, P):
        check(lambda x, i: x[i], [x, places], mesh, [[p], [R]])
        check(lambda x, i: x.index_select(0, i), [x, places], mesh, [[p], [R]])
        check(lambda x, i: x.gather(1, i), [x, torch.arange(8).view(8, 1) % 5], mesh, [[p], [R]])
        check(lambda x: x.sort(1), [x], mesh, [[p]])
        check(lambda x: x.topk(2, 0), [x], mesh, [[p]])
        check(lambda x: x[x.argmax(0)], [x], mesh, [[p]])
        check(lambda x, i, v: x.index_fill(0, i, v), [x, places, torch.tensor(3.0)], mesh,
              [[p], [R], [R]])
        check(lambda x, i, v: x.index_add(0, i, v), [x, places, numbers(3, 5)], mesh,
              [[p], [R], [R]])


def tensors_that_ops_make_on_the_way(rank):
    """What a composite or a derivative makes is as good as a distributed tensor."""
    x, square = numbers(6, 4), numbers(4, 4)
    for function in (lambda x: x[[0, 2]], lambda x: x[x.shape[0] - 1, [1, 0]],
                     lambda x: torch.combinations(x[:, 0]), lambda x: x.logcumsumexp(0),
                     lambda x: x.renorm(2, 0, 0.5), lambda x: x.renorm(2, 1, 0.5),
                     lambda x: torch.fft.fft(x, 3, 0).abs(), lambda x: torch.fft.irfft(x, 5)):
        every_placement(function, x, partial=False)
    for function in (torch.trace, torch.logdet, lambda x: torch.linalg.pinv(x, torch.tensor(0.1))):
        every_placement(function, square @ square.t() + torch.eye(4), partial=False)
    every_placement(lambda x: torch.view_as_complex(x).abs(), numbers(4, 2))
    every_placement(lambda x: x.squeeze(()), numbers(2, 1))
    every_placement(lambda x: x.squeeze(-1), torch.tensor(2.))
    unbatched = numbers(2, 8, 6)
    for function in (lambda x: F.adaptive_avg_pool2d(x, 3), lambda x: F.max_pool2d(x, 2)):
        every_placement(function, unbatched, limit=3, partial=False)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    with pytest.raises(RuntimeError, match=r"got mixed torch.Tensor and DTensor"):
        torch.mul(distribute_tensor(x, mesh, [R]), x)
    limit = distribute_tensor(torch.tensor(9.), mesh, [R])
    assert torch.linalg.matrix_rank(distribute_tensor(square, mesh, [R]), atol=limit).item() == 0


def meshes_of_two_dimensions(rank):
    mesh = init_device_mesh("cpu", (2, 2))
    x, y = numbers(8, 6), numbers(6, 8)
    kinds = [Shard(0), Shard(1), R, P]
    for p in itertools.product(kinds, kinds):
        for function in (torch.relu, lambda x: x.sum(0), lambda x: x.softmax(1), lambda x: x * 2,
                         lambda x: x.view(4, 2, 6), lambda x: x.mean()):
            check(function, [x], mesh, [p])
        if p != (Shard(1), P) and p != (P, Shard(1)):
            check(lambda x: x.reshape(48), [x], mesh, [p])
        check(torch.mm, [x, y], mesh, [p, (R, Shard(1))])
        check(torch.add, [x, y.t()], mesh, [p, (Shard(0), R)])


@pytest.mark.parametrize("work, size", [
    (elementwise, 2), (reductions, 3), (views, 2), (products, 2), (layers, 2),
    (joining_and_indexing, 2), (tensors_that_ops_make_on_the_way, 2),
    (meshes_of_two_dimensions, 4)])
def test_several_processes(processes, work, size):
    processes(work, size=size)
