"""Memory that the processes of a group share on GPUs with direct links, and the ops on it.

There is no such memory on the CPU, and what needs it says so, as PyTorch's CPU build does. The
`…_fallback` functions compute the same by ordinary collectives.
"""
from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from enum import Enum
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import _functional_collectives as funcol
from flambeau.distributed import distributed_c10d as c10d

__all__ = ["empty", "get_backend", "get_mem_pool", "get_signal_pad_size", "is_nvshmem_available",
           "is_symm_mem_tensor", "reduce_scatter_offset", "rendezvous", "set_backend",
           "set_signal_pad_size"]

_group_name_to_store: dict[str, Any] = {}
_group_name_to_workspace_tensor: dict[str, Tensor | None] = {}
_mocked_group_names: set[str] | None = None
_is_test_mode = False
_signal_pad_size = 9216

_SCHEMAS = """
_async_input_mm(Tensor a, Tensor b, Tensor a_chunk_signals, int a_chunk_pivot) -> Tensor
_barrier(__torch__.torch.classes.c10d.SymmetricMemory symm) -> ()
_low_contention_all_gather(Tensor tensor, str group_name) -> Tensor
_low_contention_reduce_scatter(Tensor tensor, str reduce_op, str group_name) -> Tensor
_rendezvous(Tensor tensor, str? group_name=None) -> __torch__.torch.classes.c10d.SymmetricMemory
all_to_all_vdev(Tensor input, Tensor(a!) out, Tensor in_splits, Tensor(a!) out_splits_offsets, \
str group_name) -> ()
all_to_all_vdev_2d(Tensor input, Tensor(a!) out, Tensor in_splits, Tensor(a!) out_splits_offsets, \
str group_name, int? major_align=None) -> ()
all_to_all_vdev_2d_offset(Tensor input, Tensor(a!) out, Tensor in_splits_offsets, \
Tensor(a!) out_splits_offsets, str group_name) -> ()
fused_all_gather_matmul(Tensor A, Tensor[] Bs, int gather_dim, str group_name, *, \
bool return_A=True) -> (Tensor?, Tensor[])
fused_all_gather_scaled_matmul(Tensor A, Tensor[] Bs, Tensor A_scale, Tensor[] B_scales, \
int gather_dim, str group_name, Tensor?[] biases, Tensor?[] result_scales, \
ScalarType?[] out_dtypes, bool[] use_fast_accum) -> (Tensor, Tensor[])
fused_matmul_reduce_scatter(Tensor A, Tensor B, str reduce_op, int scatter_dim, \
str group_name) -> Tensor
fused_scaled_matmul_reduce_scatter(Tensor A, Tensor B, Tensor A_scale, Tensor B_scale, \
str reduce_op, int orig_scatter_dim, int scatter_dim_after_maybe_reshape, str group_name, \
SymInt[]? output_shape, Tensor? bias=None, Tensor? result_scale=None, ScalarType? out_dtype=None, \
bool use_fast_accum=False) -> Tensor
get_remote_tensors(Tensor x, str group_name) -> Tensor[]
memset32_(Tensor(a!) input, int offset, int val, int count) -> Tensor(a!)
multi_root_tile_reduce(Tensor[] in_tiles, Tensor(a!) out_tile, int[] roots, str group_name, \
str reduce_op="sum") -> ()
multimem_all_gather_out(Tensor input, str group_name, Tensor(a!) out) -> Tensor(a!)
multimem_all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)
multimem_one_shot_all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor
multimem_one_shot_all_reduce_out(Tensor input, str reduce_op, str group_name, Tensor(a!) out) \
-> Tensor(a!)
multimem_one_shot_reduce_out(Tensor input, str reduce_op, int root, str group_name, \
Tensor(a!) out) -> Tensor(a!)
nccl_get(Tensor(a!) tensor, int peer) -> ()
nccl_put(Tensor(a!) tensor, int peer) -> ()
nccl_put_signal(Tensor src, __torch__.torch.classes.c10d.SymmetricMemory hdl, int peer) -> ()
nccl_put_with_signal(Tensor(a) tensor, int signal, int peer) -> ()
nccl_reduce_scatter_offset(Tensor input, Tensor(a!)[] out, str group_name, int dim, \
int[]? offsets=None, int[]? dst_ranks=None, str red_op="sum") -> ()
nccl_wait_for_signal(Tensor sigpad, int signal) -> ()
nccl_wait_signal(__torch__.torch.classes.c10d.SymmetricMemory hdl, int peer) -> ()
nvshmem_all_to_all(Tensor input, Tensor(a!) out, str group_name) -> Tensor(a!)
nvshmem_broadcast(Tensor(a!) input, int root, str group_name) -> Tensor(a!)
nvshmem_get(Tensor(a!) tensor, int peer) -> ()
nvshmem_put(Tensor(a!) tensor, int peer) -> ()
nvshmem_put_with_signal(Tensor(a) tensor, Tensor(a) sigpad, int signal, int peer) -> ()
nvshmem_wait_for_signal(Tensor sigpad, int signal, int peer) -> ()
one_shot_all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor
one_shot_all_reduce_copy(Tensor symm_buffer, Tensor local_input, str reduce_op, str group_name) \
-> Tensor
one_shot_all_reduce_copy_out(Tensor symm_buffer, Tensor local_input, str reduce_op, \
str group_name, Tensor(a!) out) -> Tensor(a!)
one_shot_all_reduce_out(Tensor input, str reduce_op, str group_name, Tensor(a!) out) -> Tensor(a!)
reduce_scatter_out(Tensor(a!) input, str group_name, bool split_last_dim, Tensor(b!) output) \
-> Tensor(b!)
stream_write_value32_(Tensor(a!) input, int offset, int val) -> Tensor(a!)
tile_reduce(Tensor in_tile, Tensor(a!) out_tile, int root, str group_name, \
str reduce_op="sum") -> ()
two_shot_all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)
two_shot_all_reduce_out(Tensor(a!) input, str reduce_op, str group_name, Tensor(b!) output) \
-> Tensor(b!)
"""


class _ScaleMode(Enum):
    """How the scale of a float8 operand is given."""

    UNSCALED = "unscaled"
    TENSOR_WISE = "tensor-wise"
    ROW_WISE_SHARDED = "row-wise-sharded"
    ROW_WISE_REPLICATED = "row-wise-replicated"


# ---- memory -------------------------------------------------------------------------------------

def _refuse(device: Any) -> RuntimeError:
    kind = flambeau.device("cpu" if device is None else device).type
    return RuntimeError(f"SymmetricMemory does not support device type {kind}")


def empty(*size: Any, dtype: flambeau.dtype | None = None, device: Any = None) -> Tensor:
    """Memory for a tensor that the processes of a group can share."""
    raise _refuse(device)


def rendezvous(tensor: Tensor, group: Any) -> Any:
    """Exchange with the processes of a group where their memory is."""
    raise _refuse(tensor.device)


def is_symm_mem_tensor(tensor: Tensor) -> bool:
    """Is it in memory that `empty` gave?"""
    return False


def is_nvshmem_available() -> bool:
    """Can memory be shared by NVSHMEM?"""
    return False


def set_backend(name: str) -> None:
    """Choose what shares memory."""
    raise RuntimeError(f"SymmetricMemory does not find allocation backend {name}")


def get_backend(device: Any) -> str | None:
    """What shares memory of a device; None if nothing does."""
    flambeau.device(device)
    return None


def get_mem_pool(device: Any) -> Any:
    """A pool of memory that can be shared."""
    return get_mempool_allocator(device)


def get_mempool_allocator(device: Any) -> Any:
    kind = flambeau.device(device).type
    raise RuntimeError(f"SymmetricMemory MemPool did not find backend for device type {kind}")


def set_signal_pad_size(size: int) -> None:
    """How many bytes of a block are for signals."""
    global _signal_pad_size
    if not isinstance(size, int) or size < 0:
        raise TypeError(f"signal pad size must be a non-negative int, got {size}")
    _signal_pad_size = size


def get_signal_pad_size() -> int:
    return _signal_pad_size


def get_symm_mem_workspace(group_name: str, min_size: int) -> Any:
    """Shared memory of a group for intermediate results."""
    raise _refuse("cpu")


def put_signal(src: Tensor, hdl: Any, peer: int) -> None:
    """Write to a peer, and signal it."""
    raise _refuse(src.device)


def wait_signal(hdl: Any, peer: int) -> None:
    """Wait for a peer's signal."""
    raise _refuse("cpu")


def reduce_scatter_offset(input: Tensor, out: list[Tensor], group: str, *, dim: int,
                          offsets: list[int] | None = None, dst_ranks: list[int] | None = None,
                          red_op: str = "sum") -> None:
    """Reduce parts of a shared tensor, each onto one rank."""
    flambeau.ops.symm_mem.nccl_reduce_scatter_offset(input, out, group, dim, offsets, dst_ranks,
                                                     red_op)


# ---- groups -------------------------------------------------------------------------------------

def enable_symm_mem_for_group(group_name: str) -> None:
    """Once needed before a group shares memory."""
    warnings.warn("`enable_symm_mem_for_group` is deprecated. There is no need to call this "
                  "function anymore.", FutureWarning, stacklevel=2)
    if group_name not in _group_name_to_store:
        group = c10d._resolve_process_group(group_name)
        _group_name_to_store[group_name] = c10d.PrefixStore(
            f"symmetric_memory-{group_name}", c10d._get_process_group_store(group))


def is_symm_mem_enabled_for_group(group_name: str) -> bool:
    if _is_test_mode:
        return _mocked_group_names is None or group_name in _mocked_group_names
    return group_name in _group_name_to_store


@contextlib.contextmanager
def _test_mode(group_names: set[str] | None = None) -> Iterator[None]:
    """Inside, groups (of these names) count as enabled."""
    global _is_test_mode, _mocked_group_names
    before = _is_test_mode, _mocked_group_names
    _is_test_mode, _mocked_group_names = True, group_names
    try:
        yield
    finally:
        _is_test_mode, _mocked_group_names = before


# ---- products with a collective -----------------------------------------------------------------

def make_contiguous_for_perm(t: Tensor, perm: list[int]) -> Tensor:
    """The same tensor, laid out so that it is contiguous when permuted."""
    inverse = [perm.index(dim) for dim in range(len(perm))]
    return t.permute(perm).contiguous().permute(inverse)


def _first(t: Tensor, dim: int) -> list[int]:
    dims = list(range(t.dim()))
    return [dims.pop(dim), *dims]


def restride_A_shard_for_fused_all_gather_matmul(t: Tensor, gather_dim: int) -> Tensor:
    """Laid out as `fused_all_gather_matmul` reads it."""
    return make_contiguous_for_perm(t, _first(t, gather_dim))


def restride_A_for_fused_matmul_reduce_scatter(t: Tensor, scatter_dim: int) -> Tensor:
    """Laid out as `fused_matmul_reduce_scatter` reads it."""
    return make_contiguous_for_perm(t, _first(t, scatter_dim))


def _gathered(shard: Tensor, dim: int, group_name: str) -> Tensor:
    return funcol.wait_tensor(funcol.all_gather_tensor(shard.contiguous(), dim, group_name))


def _scattered(whole: Tensor, reduce_op: str, dim: int, group_name: str) -> Tensor:
    if reduce_op not in ("sum", "avg"):
        raise RuntimeError(f"Unrecognized reduce_op: {reduce_op}")
    return funcol.wait_tensor(
        funcol.reduce_scatter_tensor(whole, reduce_op, dim, group_name))


def _check_gather(shard: Tensor, dim: int) -> None:
    if shard.dim() < 2:
        raise ValueError("A_shard must be a matrix")
    if not 0 <= dim < shard.dim():
        raise ValueError("Invalid gather_dim")


def _fused_all_gather_matmul_fallback(A_shard: Tensor, Bs: list[Tensor], gather_dim: int,
                                      group_name: str, *, return_A: bool = True
                                      ) -> tuple[Tensor | None, list[Tensor]]:
    """Gather `A_shard` from all processes, and multiply it with each of `Bs`."""
    _check_gather(A_shard, gather_dim)
    whole = _gathered(A_shard, gather_dim, group_name)
    return whole if return_A else None, [whole @ B for B in Bs]


def _fused_matmul_reduce_scatter_fallback(A: Tensor, B: Tensor, reduce_op: str, scatter_dim: int,
                                          group_name: str) -> Tensor:
    """Multiply, and reduce the products of all processes; each gets a part."""
    if not 0 <= scatter_dim < A.dim():
        raise ValueError("Invalid scatter_dim")
    return _scattered(A @ B, reduce_op, scatter_dim, group_name)


def _scaled_product(A: Tensor, B: Tensor, A_scale: Tensor, B_scale: Tensor, bias: Tensor | None,
                    result_scale: Tensor | None, out_dtype: flambeau.dtype | None) -> Tensor:
    """The product of two scaled float8 matrices."""
    product = (A.float() * A_scale) @ (B.float() * B_scale)
    if bias is not None:
        product = product + bias.float()
    if result_scale is not None:
        product = product * result_scale
    return product.to(out_dtype or A.dtype)


def _fused_all_gather_scaled_matmul_fallback(
        A_shard: Tensor, Bs: list[Tensor], A_scale: Tensor, B_scales: list[Tensor],
        gather_dim: int, group_name: str, biases: list[Tensor | None],
        result_scales: list[Tensor | None], out_dtypes: list[flambeau.dtype | None],
        use_fast_accum: list[bool]) -> tuple[Tensor, list[Tensor]]:
    """`_fused_all_gather_matmul_fallback` of scaled float8 tensors."""
    _check_gather(A_shard, gather_dim)
    # float8 has no collectives: its bytes have
    whole = _gathered(A_shard.view(flambeau.uint8), gather_dim, group_name).view(A_shard.dtype)
    if A_scale.numel() > 1 and A_scale.shape[:-1] == A_shard.shape[:-1]:
        A_scale = _gathered(A_scale, gather_dim, group_name)
    rows = zip(Bs, B_scales, biases, result_scales, out_dtypes, strict=True)
    return whole, [_scaled_product(whole, B, A_scale, B_scale, bias, scale, dtype)
                   for B, B_scale, bias, scale, dtype in rows]


def _fused_scaled_matmul_reduce_scatter_fallback(
        A: Tensor, B: Tensor, A_scale: Tensor, B_scale: Tensor, reduce_op: str,
        orig_scatter_dim: int, scatter_dim_after_maybe_reshape: int, group_name: str,
        output_shape: list[int], bias: Tensor | None = None, result_scale: Tensor | None = None,
        out_dtype: flambeau.dtype | None = None, use_fast_accum: bool = False) -> Tensor:
    """`_fused_matmul_reduce_scatter_fallback` of scaled float8 tensors."""
    product = _scaled_product(A, B, A_scale, B_scale, bias, result_scale, out_dtype)
    return _scattered(product.view(*output_shape[:-1], B.shape[1]), reduce_op, orig_scatter_dim,
                      group_name)


# ---- the ops ------------------------------------------------------------------------------------

def _gathered_meta(A_shard: Tensor, Bs: list[Tensor], gather_dim: int, group_name: str, *,
                   return_A: bool = True) -> tuple[Tensor | None, list[Tensor]]:
    _check_gather(A_shard, gather_dim)
    whole = flambeau.cat([A_shard] * c10d._get_group_size_by_name(group_name), gather_dim)
    return whole if return_A else None, [whole @ B for B in Bs]


def _low_contention_all_gather_meta(tensor: Tensor, group_name: str) -> Tensor:
    return flambeau.cat([tensor] * c10d._get_group_size_by_name(group_name))


def _low_contention_reduce_scatter_meta(tensor: Tensor, reduce_op: str, group_name: str) -> Tensor:
    return tensor.chunk(c10d._get_group_size_by_name(group_name))[0].clone()


def _low_contention_all_gather(tensor: Tensor, group_name: str) -> Tensor:
    """Gather by the copy engines, which leaves the processors to others."""
    raise _refuse(tensor.device)


def _low_contention_reduce_scatter(tensor: Tensor, reduce_op: str, group_name: str) -> Tensor:
    """Reduce and scatter by the copy engines."""
    raise _refuse(tensor.device)


def _matmul_scattered_meta(A: Tensor, B: Tensor, reduce_op: str, scatter_dim: int,
                           group_name: str) -> Tensor:
    size = c10d._get_group_size_by_name(group_name)
    return (A @ B).chunk(size, scatter_dim)[0].clone()


def _define_ops() -> flambeau.library.Library:
    library = flambeau.library.Library("symm_mem", "DEF")
    for schema in _SCHEMAS.strip().split("\n"):
        library.define(schema)
    metas: dict[str, Any] = {
        "fused_all_gather_matmul": _gathered_meta,
        "fused_matmul_reduce_scatter": _matmul_scattered_meta,
        "_low_contention_all_gather": _low_contention_all_gather_meta,
        "_low_contention_reduce_scatter": _low_contention_reduce_scatter_meta,
        "one_shot_all_reduce": lambda input, reduce_op, group_name: flambeau.empty_like(input),
        "one_shot_all_reduce_copy": lambda symm_buffer, local_input, reduce_op, group_name:
            flambeau.empty_like(local_input),
        "get_remote_tensors": lambda x, group_name: [
            flambeau.empty_like(x) for _ in range(c10d._get_group_size_by_name(group_name))]}
    for name, function in metas.items():
        library.impl(name, function, "Meta")
    return library


_lib = _define_ops()
