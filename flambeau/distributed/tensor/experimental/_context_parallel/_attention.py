"""`context_parallel`: attention over sequences of which each process has a part."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._ops import aten
from flambeau.distributed import _functional_collectives as funcol
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.tensor._api import DTensor, distribute_tensor
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from flambeau.distributed.tensor.experimental._context_parallel import _options
from flambeau.distributed.tensor.experimental._context_parallel._cp_custom_ops import (
    flex_cp_allgather,
)
from flambeau.distributed.tensor.experimental._context_parallel._load_balancer import (
    _create_default_load_balancer,
    _LoadBalancer,
)
from flambeau.distributed.tensor.experimental._context_parallel._options import (
    _CausalBehavior,
    _ContextParallelOptions,
    _cp_options,
    _DispatchMode,
    _is_causal_behavior,
    _RotateMethod,
    set_rotate_method,
)
from flambeau.distributed.tensor.experimental._context_parallel._ring import (
    _AllGatherRotater,
    _AllToAllRotater,
    _AttentionOp,
    _create_rotater,
    _maybe_wait,
    _partial_update,
    _RingRotater,
    _SDPAMerger,
    _templated_ring_attention,
    _templated_ring_attention_backward,
)
from flambeau.distributed.tensor.parallel.style import ParallelStyle
from flambeau.distributed.tensor.placement_types import Shard
from flambeau.nn import functional as F

__all__ = ["_CausalBehavior", "_ContextParallel", "_RotateMethod", "_context_parallel_shard",
           "_cp_options", "_disable_context_parallel_dispatcher",
           "_enable_context_parallel_dispatcher", "_is_causal_behavior", "context_parallel",
           "context_parallel_unshard", "set_rotate_method"]

SEQ_DIM = 2
_dispatch_mode = _DispatchMode.MONKEY_PATCH


# ---- attention on distributed tensors -----------------------------------------------------------

_FLASH = aten._scaled_dot_product_flash_attention_for_cpu.default
_FLASH_BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def _sequence_mesh_dim(spec: DTensorSpec) -> int | None:
    """Which dimension of the mesh cuts the sequence."""
    found = [i for i, p in enumerate(spec.placements) if p.is_shard(SEQ_DIM)]
    if len(found) > 1:
        raise NotImplementedError("attention over a sequence that several dimensions of a mesh "
                                  f"cut: {spec.placements}")
    return found[0] if found else None


def _sdpa_handler(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Attention, forward or backward, on distributed tensors: over a ring where the sequence is
    cut, by the op's own rule where it is not."""
    backward = op_call is _FLASH_BACKWARD
    names = [a.name for a in op_call._schema.arguments]
    given = {**{a.name: a.default_value for a in op_call._schema.arguments},
             **dict(zip(names, args)), **kwargs}
    query = given["query"]
    mesh_dim = _sequence_mesh_dim(query._spec) if isinstance(query, DTensor) else None
    if mesh_dim is None:
        return DTensor._op_dispatcher.dispatch_by_rule(op_call, args, kwargs)
    if given["attn_mask"] is not None:
        raise NotImplementedError("context parallel scaled_dot_product_attention with a mask: "
                                  "use is_causal, or flex_attention")
    if given["dropout_p"]:
        raise NotImplementedError("context parallel scaled_dot_product_attention with dropout")
    group = query._spec.mesh.get_group(mesh_dim)
    options = {"dropout_p": 0.0, "scale": given["scale"]}
    local = {name: _lies_as(given[name], query._spec) for name in (
        "query", "key", "value", "grad_out", "out", "logsumexp") if name in given}
    if not backward:
        found = _templated_ring_attention(group, SEQ_DIM, op_call, **local,
                                          is_causal=given["is_causal"], **options)
    else:
        found = _templated_ring_attention_backward(
            group, SEQ_DIM, op_call, local.pop("grad_out"), "grad_out", **local,
            is_causal=given["is_causal"], **options)
    like = [given[n] for n in ("query", "key", "value")] if backward else [query] * 2
    return tuple(_wrapped(f, query._spec, t) for f, t in zip(found, like))


def _lies_as(tensor: Any, spec: DTensorSpec) -> Tensor:
    if not isinstance(tensor, DTensor):
        raise RuntimeError("attention got mixed torch.Tensor and DTensor")
    if tensor.placements != spec.placements:
        tensor = tensor.redistribute(placements=spec.placements)
    return tensor._local_tensor


def _wrapped(local: Tensor, spec: DTensorSpec, like: DTensor) -> DTensor:
    shape = list(like.shape)[:local.ndim]
    if local.ndim == like.ndim:
        shape[-1] = local.shape[-1]
    meta = TensorMeta(flambeau.Size(shape), flambeau.empty(shape, device="meta").stride(),
                      local.dtype)
    return DTensor(local, DTensorSpec(spec.mesh, spec.placements, meta), requires_grad=False)


custom_ops: dict[Any, Callable[..., Any]] = {_FLASH: _sdpa_handler, _FLASH_BACKWARD: _sdpa_handler}
existing_custom_ops: dict[Any, Callable[..., Any]] = {}


def _enable_cp_dtensor_dispatcher() -> None:
    """Let attention on distributed tensors go over a ring."""
    handlers = DTensor._op_dispatcher._custom_op_handlers
    existing_custom_ops.clear()
    existing_custom_ops.update({op: handlers[op] for op in custom_ops if op in handlers
                                and handlers[op] is not _sdpa_handler})
    handlers.update(custom_ops)


def _disable_cp_dtensor_dispatcher() -> None:
    """Let it go by the rules of its ops again."""
    handlers = DTensor._op_dispatcher._custom_op_handlers
    for op in custom_ops:
        handlers.pop(op, None)
    handlers.update(existing_custom_ops)


# ---- attention on local tensors -----------------------------------------------------------------

_replaced_functions: dict[Any, tuple[str, Callable[..., Any]]] = {}


def _distribute_function(fn: Callable[..., Any], fn_module: Any, device_mesh: DeviceMesh,
                         input_fn: Callable[..., Any], output_fn: Callable[..., Any]) -> None:
    """Replace a function of a module by one that prepares what goes in and comes out."""
    if fn in _replaced_functions:
        return

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = input_fn(None, args, kwargs, device_mesh)
        return output_fn(None, (args, kwargs), fn(*args, **kwargs), device_mesh)
    _replaced_functions[wrapper] = (fn.__name__, fn)
    setattr(fn_module, fn.__name__, wrapper)


def _restore_function(fn: Callable[..., Any], fn_module: Any) -> None:
    """Take the replacement away."""
    if fn in _replaced_functions:
        name, original = _replaced_functions.pop(fn)
        setattr(fn_module, name, original)


def _enable_context_parallel_dispatcher_impl(seq_dim: int, mesh: DeviceMesh) -> None:
    if _dispatch_mode is _DispatchMode.MONKEY_PATCH:
        style = _ContextParallel(seq_dim, _ContextParallel.AttentionType.SDPA)
        _distribute_function(F.scaled_dot_product_attention, F, mesh, style.sdpa_input_fn,
                             style.sdpa_output_fn)
    elif _dispatch_mode is not _DispatchMode.MODULE_WRAPPER:
        raise NotImplementedError(f"Unknown dispatch mode: {_dispatch_mode}")
    _enable_cp_dtensor_dispatcher()


def _disable_context_parallel_dispatcher_impl() -> None:
    if _dispatch_mode is _DispatchMode.MONKEY_PATCH:
        _restore_function(F.scaled_dot_product_attention, F)
    elif _dispatch_mode is not _DispatchMode.MODULE_WRAPPER:
        raise NotImplementedError(f"Unknown dispatch mode: {_dispatch_mode}")
    _disable_cp_dtensor_dispatcher()


def _enable_context_parallel_dispatcher() -> None:
    """Let modules that `_ContextParallel` prepares go over a ring."""
    _enable_cp_dtensor_dispatcher()


def _disable_context_parallel_dispatcher() -> None:
    """Undo `_enable_context_parallel_dispatcher`."""
    _disable_cp_dtensor_dispatcher()


class _ContextParallel(ParallelStyle):
    """A module that computes attention (its first arguments are query, key and value) on parts of
    a sequence."""

    class AttentionType(Enum):
        """Which function the module calls."""
        FLEX = "flex_attention"
        SDPA = "scaled_dot_product_attention"

    def __init__(self, seq_dim: int, attention_type: AttentionType) -> None:
        super().__init__()
        self.seq_dim, self.attention_type = seq_dim, attention_type

    def _apply(self, module: nn.Module, mesh: DeviceMesh) -> nn.Module:
        if self.attention_type is self.AttentionType.FLEX:
            module.register_forward_pre_hook(partial(self.flex_input_fn, mesh=mesh),
                                             with_kwargs=True)
            return module
        if self.attention_type is self.AttentionType.SDPA:
            module.register_forward_pre_hook(partial(self.sdpa_input_fn, mesh=mesh),
                                             with_kwargs=True)
            module.register_forward_hook(partial(self.sdpa_output_fn, mesh=mesh))
            return module
        raise ValueError(f"Unknown attention type: {self.attention_type}")

    def flex_input_fn(self, module: nn.Module | None, args: tuple[Any, ...],
                      kwargs: dict[str, Any], mesh: DeviceMesh) -> Any:
        """All keys and values in place of this process's part."""
        names = ("query", "key", "value")
        given = [*args[:3], *(None,) * (3 - len(args[:3]))]
        for i, name in enumerate(names):
            if i >= len(args):
                given[i] = kwargs.pop(name)
        _, key, value = given
        given[1:] = flex_cp_allgather(key, value, self.seq_dim, mesh.get_group().group_name)
        return (*given, *args[3:]), kwargs

    def sdpa_input_fn(self, module: nn.Module | None, args: tuple[Any, ...],
                      kwargs: dict[str, Any], mesh: DeviceMesh) -> Any:
        """Distributed tensors of the parts of query, key and value."""
        def placed(value: Any) -> Any:
            if isinstance(value, Tensor) and not isinstance(value, DTensor):
                return DTensor.from_local(value, mesh, [Shard(self.seq_dim)], run_check=False)
            return value
        kwargs = {name: placed(value) if name in ("query", "key", "value") else value
                  for name, value in kwargs.items()}
        return (*map(placed, args[:3]), *args[3:]), kwargs

    def sdpa_output_fn(self, module: nn.Module | None, inputs: Any, outputs: Any,
                       mesh: DeviceMesh) -> Any:
        """The part of the result."""
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(o.to_local() if isinstance(o, DTensor) else o for o in outputs)
        return outputs.to_local() if isinstance(outputs, DTensor) else outputs


# ---- parts of sequences -------------------------------------------------------------------------

def _places(load_balancer: _LoadBalancer | None, restore: bool = False) -> Tensor | None:
    found = None if load_balancer is None else load_balancer._generate_indices(restore)
    return None if found is None else found.to(flambeau.int64)


def _arranged(buffer: Tensor, seq_dim: int, places: Tensor | None) -> Tensor:
    """A sequence in another order, each of a batch maybe in its own."""
    if places is None:
        return buffer
    if places.shape[0] == 1:
        return buffer.index_select(seq_dim, places[0])
    if places.shape[0] != buffer.shape[0]:
        raise ValueError(f"Cannot rearrange buffer: expected batch size {places.shape[0]} of the "
                         f"load balancer, but got a buffer of shape {tuple(buffer.shape)}")
    return flambeau.stack([b.index_select(seq_dim - 1, row) for b, row in zip(buffer, places)])


def _context_parallel_buffers(mesh: DeviceMesh, buffers: list[Any], buffer_seq_dims: list[int],
                              load_balancer: _LoadBalancer | None = None) -> list[Any]:
    """This process's parts."""
    places = _places(load_balancer)
    found = []
    for buffer, dim in zip(buffers, buffer_seq_dims):
        if not isinstance(buffer, Tensor):
            found.append(_create_cp_block_mask(  # type: ignore[call-arg]
                buffer.mask_mod, buffer.kv_num_blocks.shape[0], buffer.kv_num_blocks.shape[1],
                *buffer.seq_lengths, mesh, load_balancer))
            continue
        arranged = _arranged(buffer.detach(), dim, places)
        found.append(distribute_tensor(arranged, mesh, [Shard(dim)],
                                       src_data_rank=None).to_local())
    return found


def _create_cp_block_mask(mask_mod: Any, B: int, H: int, Q_LEN: int, KV_LEN: int,
                          device_mesh: DeviceMesh, load_balancer: _LoadBalancer | None = None
                          ) -> Any:
    """The mask of `flex_attention` for this process's queries, and all keys, which come in the
    order of the processes."""
    from flambeau.nn.attention.flex_attention import _DEFAULT_SPARSE_BLOCK_SIZE, create_block_mask
    block, size, rank = _DEFAULT_SPARSE_BLOCK_SIZE, device_mesh.size(), device_mesh.get_local_rank()
    if Q_LEN % (size * block):
        raise NotImplementedError(f"Q_LEN {Q_LEN} is not divisible by CP mesh world size {size} * "
                                  f"BLOCK_SIZE {block}. This is not supported yet. ")
    places = _places(load_balancer)
    mine = Q_LEN // size

    def of_part(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        q = q + rank * mine
        if places is None:
            return mask_mod(b, h, q, kv)
        row = places[0] if places.shape[0] == 1 else places[b]
        return mask_mod(b, h, row[q], row[kv])
    return create_block_mask(of_part, B, H, mine, KV_LEN, device=device_mesh.device_type)


def _context_parallel_shard(mesh: DeviceMesh, buffers: Any, seq_dims: Any,
                            load_balancer: _LoadBalancer | None = None) -> Any:
    """This process's parts of tensors along their dimensions `seq_dims`, in the order of a load
    balancer; masks of `flex_attention` for its queries."""
    if len(buffers) != len(seq_dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    named = isinstance(buffers, dict)
    found = _context_parallel_buffers(
        mesh, list(buffers.values()) if named else list(buffers),
        [seq_dims[k] for k in buffers] if named else list(seq_dims), load_balancer)
    return dict(zip(buffers, found)) if named else found


def context_parallel_unshard(mesh: DeviceMesh, buffers: list[Tensor], seq_dims: list[int],
                             load_balancer: _LoadBalancer | None = None) -> list[Tensor]:
    """The whole sequences of this process's parts, for all; in their own order."""
    whole = [_maybe_wait(funcol.all_gather_tensor(b.contiguous(), dim, mesh))
             for b, dim in zip(buffers, seq_dims)]
    if load_balancer is None and whole:
        load_balancer = _create_default_load_balancer(whole[0].shape[seq_dims[0]], mesh.size(),
                                                      whole[0].device)
    places = _places(load_balancer, restore=True)
    return [_arranged(w, dim, places) for w, dim in zip(whole, seq_dims)]


@contextlib.contextmanager
@flambeau.no_grad()
def context_parallel(mesh: DeviceMesh, *, buffers: list[Tensor] | None = None,
                     buffer_seq_dims: list[int] | None = None,
                     no_restore_buffers: set[Tensor] | None = None) -> Iterator[None]:
    """Inside, each of `buffers` (inputs, targets, positions: all that has the dimension of the
    sequence, `buffer_seq_dims`) is this process's part of it, and `scaled_dot_product_attention`
    lets these parts attend to all of the sequence.

    Afterwards they are whole again, but for those of `no_restore_buffers`.

    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh, x = dist.init_device_mesh("cpu", (1,)), flambeau.ones(1, 1, 4, 2)
    >>> with context_parallel(mesh, buffers=[x], buffer_seq_dims=[2]):
    ...     F.scaled_dot_product_attention(x, x, x, is_causal=True).shape
    torch.Size([1, 1, 4, 2])
    >>> dist.destroy_process_group()
    """
    given, dims = buffers or [], buffer_seq_dims or []
    kept = no_restore_buffers or set()
    if len(given) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    if any(all(b is not buffer for buffer in given) for b in kept):
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    balancer = None
    if given:
        balancer = _create_default_load_balancer(given[0].shape[dims[0]], mesh.size(),
                                                 given[0].device)
    before = [None if any(b is k for k in kept) else b.clone() for b in given]
    balanced = _cp_options.enable_load_balance
    for buffer, part in zip(given, _context_parallel_buffers(mesh, given, dims, balancer)):
        buffer.resize_(part.shape)
        buffer.copy_(part)
    if given:
        _cp_options.enable_load_balance = balancer is not None
    _enable_context_parallel_dispatcher_impl(seq_dim=SEQ_DIM, mesh=mesh)
    try:
        with flambeau.enable_grad():
            yield
    finally:
        _disable_context_parallel_dispatcher_impl()
        _cp_options.enable_load_balance = balanced
        for buffer, whole in zip(given, before):
            if whole is not None:
                buffer.resize_(whole.shape)
                buffer.copy_(whole)


_PARTS = (_AllGatherRotater, _AllToAllRotater, _AttentionOp, _ContextParallelOptions, _RingRotater,
          _SDPAMerger, _create_rotater, _options, _partial_update)  # by their names here, too
