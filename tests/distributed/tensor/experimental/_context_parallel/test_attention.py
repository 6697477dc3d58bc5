"""Attention over sequences that processes share is attention in one process, gradients too; orders
of sequences are PyTorch's."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Shard, distribute_tensor
from flambeau.distributed.tensor.experimental import _attention as attention
from flambeau.distributed.tensor.experimental import context_parallel
from flambeau.distributed.tensor.experimental._context_parallel import flex_cp_allgather
from flambeau.nn import functional as F
from flambeau.nn.attention.flex_attention import create_block_mask, flex_attention
from flambeau.testing._internal.distributed.fake_pg import FakeStore

flash = torch.nn.functional.scaled_dot_product_attention


def inputs(length, heads=2, dtype=torch.float32):
    torch.manual_seed(0)
    return [torch.randn(2, heads, length, 4, dtype=dtype) for _ in range(4)]


def in_one_process(values, **options):
    q, k, v = (t.clone().requires_grad_() for t in values[:3])
    found = flash(q, k, v, **options)
    found.backward(values[3])
    return [found.detach(), q.grad, k.grad, v.grad]


def exact_attention(rank):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for rotation in ("allgather", "alltoall"):
        attention.set_rotate_method(rotation)
        for length, options in ((12, {"is_causal": True}), (12, {}), (6, {"is_causal": True}),
                                (12, {"is_causal": True, "scale": 0.3})):
            if length % mesh.size():
                continue
            values = inputs(length)
            expected = in_one_process(values, **options)
            parts = [t.clone() for t in values]
            with context_parallel(mesh, buffers=parts, buffer_seq_dims=[2] * 4,
                                  no_restore_buffers=set(parts[:1])):
                assert parts[1].shape[2] == length // mesh.size()
                q, k, v = (t.detach().clone().requires_grad_() for t in parts[:3])
                found = F.scaled_dot_product_attention(q, k, v, **options)
                found.backward(parts[3])
            whole = attention.context_parallel_unshard(
                mesh, [found.detach(), q.grad, k.grad, v.grad], [2] * 4)
            for w, e in zip(whole, expected):
                torch.testing.assert_close(w, e, rtol=1e-5, atol=1e-6)
            assert torch.equal(parts[1], values[1]) and parts[0].shape[2] < length
            assert F.scaled_dot_product_attention is flash
    attention.set_rotate_method("allgather")
    values = inputs(8 * mesh.size(), dtype=torch.bfloat16)
    expected = in_one_process(values, is_causal=True)
    with context_parallel(mesh, buffers=values[:1], buffer_seq_dims=[2]), pytest.raises(
            NotImplementedError, match="with a mask"):
        F.scaled_dot_product_attention(*[values[0]] * 3, attn_mask=torch.ones(1, dtype=torch.bool))
    with context_parallel(mesh, buffers=values, buffer_seq_dims=[2] * 4,
                          no_restore_buffers=set(values)):
        found = F.scaled_dot_product_attention(*values[:3], is_causal=True)
    (whole,) = attention.context_parallel_unshard(mesh, [found], [2])
    torch.testing.assert_close(whole, expected[0], rtol=2e-2, atol=2e-2)


def beside_other_cuts(rank):
    """A mesh that cuts heads, too; distributed tensors; without balancing."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("sequence", "heads"))
    values = inputs(8)
    expected = in_one_process(values, is_causal=True)
    balanced = attention._cp_options.enable_load_balance
    attention._cp_options.enable_load_balance = False
    attention._enable_context_parallel_dispatcher()
    q, k, v = (distribute_tensor(t, mesh, [Shard(2), Shard(1)]).requires_grad_()
               for t in values[:3])
    found = flash(q, k, v, is_causal=True)
    assert found.placements == (Shard(2), Shard(1))
    found.backward(distribute_tensor(values[3], mesh, [Shard(2), Shard(1)]))
    attention._disable_context_parallel_dispatcher()
    attention._cp_options.enable_load_balance = balanced
    for f, e in zip((found, q.grad, k.grad, v.grad), expected):
        torch.testing.assert_close(f.full_tensor(), e, rtol=1e-5, atol=1e-6)
    whole = flash(q.detach(), k.detach(), v.detach(), is_causal=True)
    torch.testing.assert_close(whole.full_tensor(), expected[0])


def modules_and_masks(rank):
    """Modules that prepare their arguments; flexible attention over all keys."""
    mesh = init_device_mesh("cpu", (2,))

    class Attention(torch.nn.Module):
        def forward(self, query, key, value, **options):
            return flash(query, key, value, **options)
    module = attention._ContextParallel(2, attention._ContextParallel.AttentionType.SDPA)._apply(
        Attention(), mesh)
    values = inputs(8)
    expected = in_one_process(values, is_causal=True)
    parts = attention._context_parallel_shard(
        mesh, values, [2] * 4, attention._HeadTailLoadBalancer(8, 2, "cpu"))
    attention._enable_context_parallel_dispatcher()
    found = module(*parts[:2], value=parts[2], is_causal=True)
    attention._disable_context_parallel_dispatcher()
    assert not isinstance(found, DTensor)
    torch.testing.assert_close(attention.context_parallel_unshard(mesh, [found], [2])[0],
                               expected[0], rtol=1e-5, atol=1e-6)

    torch.manual_seed(0)
    values = [torch.randn(1, 1, 256, 4) for _ in range(4)]
    mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 256, 256, device="cpu")
    q, k, v = (t.clone().requires_grad_() for t in values[:3])
    expected = flex_attention(q, k, v, block_mask=mask)
    expected.backward(values[3])
    balancer = attention._HeadTailLoadBalancer(256, 2, "cpu")
    *parts, grad, own = attention._context_parallel_shard(mesh, [*values, mask], [2] * 5, balancer)
    parts = [p.requires_grad_() for p in parts]
    flexible = attention._ContextParallel(2, attention._ContextParallel.AttentionType.FLEX)
    args, _ = flexible.flex_input_fn(None, parts, {}, mesh)
    found = flex_attention(*args, block_mask=own)
    found.backward(grad)
    whole = attention.context_parallel_unshard(
        mesh, [found.detach(), *[p.grad for p in parts]], [2] * 4, balancer)
    for w, e in zip(whole, (expected, q.grad, k.grad, v.grad)):
        torch.testing.assert_close(w, e, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("work, size", [(exact_attention, 2), (exact_attention, 3),
                                        (beside_other_cuts, 4), (modules_and_masks, 2)])
def test_several_processes(processes, work, size):
    processes(work, size=size)


# ---- without communication ----------------------------------------------------------------------

@pytest.fixture
def mesh():
    """Process 1 of 4, the others imagined."""
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    yield init_device_mesh("cpu", (4,))
    dist.destroy_process_group()


def test_buffers(mesh):
    def parts(buffer, **options):
        with context_parallel(mesh, buffers=[buffer], buffer_seq_dims=[0], **options):
            return buffer.tolist()
    x = torch.arange(16)
    assert parts(x) == [2, 3, 12, 13] and x.tolist() == list(range(16))
    assert parts(torch.arange(12)) == [3, 4, 5]             # no multiple of twice four
    assert parts(x, no_restore_buffers={x}) == x.tolist() == [2, 3, 12, 13]
    assert attention._cp_options.enable_load_balance
    mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 1024, 1024, device="cpu")
    (part,) = attention._context_parallel_shard(mesh, [mask], [2])
    assert part.seq_lengths == (256, 1024) and part.kv_num_blocks.tolist() == [[[1, 1]]]
    assert part.kv_indices[0, 0, :, 0].tolist() == [2, 3]
    assert [attention._is_causal_behavior(1, 4, i, True).name for i in range(2)] == [
        "IS_CAUSAL", "NOT_IS_CAUSAL"]
    k = torch.ones(1, 1, 2, 3)
    assert flex_cp_allgather(k, k, 2, mesh.get_group().group_name)[0].shape == (1, 1, 8, 3)


@pytest.mark.parametrize("call, error, text", [
    (lambda m: context_parallel(m, buffers=[torch.ones(8)], buffer_seq_dims=[0, 1]), ValueError,
     "same number of elements as `buffers`"),
    (lambda m: context_parallel(m, no_restore_buffers={torch.ones(8)}), ValueError,
     "must be a subset of `buffers`"),
    (lambda m: context_parallel(m, buffers=[torch.ones(8, requires_grad=True)],
                                buffer_seq_dims=[0]), RuntimeError, "resize variables that req"),
    (lambda m: attention.set_rotate_method("zz"), NotImplementedError, "does not support using zz"),
    (lambda m: attention._PTRRLoadBalancer.ptrr_scheduling(torch.arange(7), 4),
     NotImplementedError, "num_tasks 7 must be divisible by group_size 4"),
])
def test_errors(mesh, call, error, text):
    with pytest.raises(error, match=text), call(mesh):
        pass
