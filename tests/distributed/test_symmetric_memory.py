from __future__ import annotations

import pytest

import flambeau
from flambeau import distributed as dist
from flambeau.distributed import _symmetric_memory as symm_mem

ops = flambeau.ops.symm_mem


def test_there_is_no_shared_memory_on_the_cpu(alone):
    group = dist.group.WORLD.group_name
    for call in (lambda: symm_mem.empty(2, 3), lambda: symm_mem.rendezvous(
            flambeau.ones(2), dist.group.WORLD)):
        with pytest.raises(RuntimeError, match="does not support device type cpu"):
            call()
    with pytest.raises(RuntimeError, match="does not find allocation backend NCCL"):
        symm_mem.set_backend("NCCL")
    with pytest.raises(RuntimeError, match="MemPool did not find backend for device type cpu"):
        symm_mem.get_mem_pool("cpu")
    assert symm_mem.get_backend("cpu") is None and not symm_mem.is_nvshmem_available()
    assert not symm_mem.is_symm_mem_tensor(flambeau.ones(2))
    x = flambeau.ones(2, 4)
    for op, args in ((ops.fused_all_gather_matmul, (x, [x.t()], 0, group)),
                     (ops.fused_matmul_reduce_scatter, (x, x.t(), "sum", 0, group)),
                     (ops.multimem_all_reduce_, (x, "sum", group))):
        with pytest.raises(NotImplementedError, match=r"Could not run 'symm_mem::\w+' with argu"):
            op(*args)
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        ops.nope


def test_groups(alone):
    group = dist.group.WORLD.group_name
    with symm_mem._test_mode({group}):
        assert symm_mem.is_symm_mem_enabled_for_group(group)
        assert not symm_mem.is_symm_mem_enabled_for_group("other")
    with pytest.warns(FutureWarning, match="deprecated"):
        symm_mem.enable_symm_mem_for_group(group)
    assert symm_mem.is_symm_mem_enabled_for_group(group)
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="Could not resolve"):
        symm_mem.enable_symm_mem_for_group("zz")
    symm_mem._group_name_to_store.clear()


def test_shapes_of_results(alone):
    group = dist.group.WORLD.group_name
    x, w = flambeau.ones(2, 4, 6, device="meta"), flambeau.ones(6, 5, device="meta")
    whole, (product,) = ops.fused_all_gather_matmul(x, [w], 0, group)
    assert whole.shape == (2, 4, 6) and product.shape == (2, 4, 5)
    assert ops.fused_all_gather_matmul(x, [w], 0, group, return_A=False)[0] is None
    assert ops.fused_matmul_reduce_scatter(x, w, "sum", 1, group).shape == (2, 4, 5)


def test_layouts():
    x = flambeau.randn(2, 4, 6)
    for function in (symm_mem.restride_A_for_fused_matmul_reduce_scatter,
                     symm_mem.restride_A_shard_for_fused_all_gather_matmul):
        assert function(x, 1).stride() == (6, 12, 1)
        assert flambeau.equal(function(x, 1), x)


def run_fallbacks(rank):
    group = dist.group.WORLD.group_name
    generator = flambeau.Generator().manual_seed(1)
    shards = [flambeau.randn(2, 4, generator=generator) for _ in range(2)]
    weights = [flambeau.randn(4, 3, generator=generator) for _ in range(2)]
    whole, products = symm_mem._fused_all_gather_matmul_fallback(
        shards[rank], weights, 0, group)
    flambeau.testing.assert_close(whole, flambeau.cat(shards))
    flambeau.testing.assert_close(products, [flambeau.cat(shards) @ w for w in weights])
    for reduce_op, scale in (("sum", 1), ("avg", 0.5)):
        found = symm_mem._fused_matmul_reduce_scatter_fallback(
            shards[rank], weights[rank], reduce_op, 0, group)
        total = sum(a @ b for a, b in zip(shards, weights)) * scale
        flambeau.testing.assert_close(found, total[rank:rank + 1])
    with pytest.raises(RuntimeError, match="Unrecognized reduce_op: max"):
        symm_mem._fused_matmul_reduce_scatter_fallback(shards[0], weights[0], "max", 0, group)
    with pytest.raises(ValueError, match="Invalid gather_dim"):
        symm_mem._fused_all_gather_matmul_fallback(shards[0], weights, 3, group)
    scale = flambeau.tensor(0.5)
    eight = [shard.to(flambeau.float8_e4m3fn) for shard in shards]
    _, (product,) = symm_mem._fused_all_gather_scaled_matmul_fallback(
        eight[rank], [weights[0].to(flambeau.float8_e4m3fn)], scale, [scale], 0, group, [None],
        [None], [flambeau.float32], [False])
    wanted = flambeau.cat([shard.float() for shard in eight]) @ weights[0].to(
        flambeau.float8_e4m3fn).float() * 0.25
    flambeau.testing.assert_close(product, wanted)


def test_products_by_ordinary_collectives(processes):
    processes(run_fallbacks, size=2)
