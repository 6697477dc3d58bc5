"""Collectives that give new tensors, through which gradients flow.

A `group` is a process group or its name, a list of ranks, a mesh of one dimension, or a pair of a
mesh and a dimension.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import flambeau
from flambeau._utils import _chunk_or_narrow_cat, _maybe_view_chunk_cat
from flambeau.core.tensor import Tensor
from flambeau.distributed import distributed_c10d as c10d
from flambeau.distributed._c10d.ops import functional as functional_ops
from flambeau.distributed._c10d.reduce_op import RedOpType
from flambeau.distributed._c10d.world import resolve_name
from flambeau.distributed.device_mesh import DeviceMesh

REDUCE_OP_TO_STR: dict[RedOpType, str] = {
    kind: name for name, kind in functional_ops.REDUCTIONS.items()}


class AsyncCollectiveTensor(Tensor):
    """A tensor that a collective writes still: the first op that uses it waits. Collectives here
    are over when they return, so that they give plain tensors; libraries may make instances."""

    __slots__ = ["completed", "elem"]
    __torch_function__ = flambeau._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, elem: Tensor) -> AsyncCollectiveTensor:
        return Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(),
            dtype=elem.dtype, layout=elem.layout, device=elem.device,
            requires_grad=elem.requires_grad)

    def __init__(self, elem: Tensor):
        self.elem, self.completed = elem, False

    def trigger_wait(self) -> Tensor:
        """Wait; gives the tensor."""
        if not self.completed:
            self.elem, self.completed = wait_tensor(self.elem), True
        return self.elem

    def wait(self) -> Tensor:
        """Wait; gives the tensor."""
        return self.trigger_wait()

    def _get_acs_underlying_tensor(self) -> Tensor:
        return self.elem

    def tolist(self) -> Any:
        """The values, in lists."""
        return self.trigger_wait().tolist()

    def numpy(self) -> Any:
        """The values, as an array."""
        return self.trigger_wait().numpy()

    def __repr__(self) -> str:
        return f"AsyncCollectiveTensor({self.trigger_wait()})"

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict[str, Tensor], meta: None, outer_size: Any,
                             outer_stride: Any) -> AsyncCollectiveTensor:
        return AsyncCollectiveTensor(inner_tensors["elem"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from flambeau.utils._pytree import tree_map_only
        args, kwargs = tree_map_only(AsyncCollectiveTensor, lambda t: t.trigger_wait(),
                                     (args, kwargs or {}))
        return func(*args, **kwargs)


# ---- groups -------------------------------------------------------------------------------------

def _expand_group(group: Any, tag: str = "") -> tuple[str, list[int], int]:
    """The tag, the ranks and the size of a group."""
    if isinstance(group, list):
        if group and isinstance(group[0], list):
            if len({len(part) for part in group}) > 1:
                raise ValueError("group sizes must be identical found "
                                 f"{len(group[0])} and {len(group[-1])}")
            return tag, [rank for part in group for rank in part], len(group[0])
        return tag, list(group), len(group)
    found = _resolve_group(group, tag) if not isinstance(group, str) else None
    if found is None:
        raise ValueError("Invalid type for group, must be one of List, Processgroup, DeviceMesh or "
                         "(DeviceMesh, int).")
    ranks = c10d.get_process_group_ranks(found)
    return tag or c10d._get_group_tag(found), ranks, len(ranks)


def _resolve_group(group: Any, tag: str = "") -> Any:
    """The process group."""
    if isinstance(group, c10d.ProcessGroup):
        return group
    if isinstance(group, str):
        return resolve_name(group)
    if isinstance(group, DeviceMesh):
        assert group.ndim == 1, (
            "Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return group.get_group()
    if isinstance(group, tuple):
        if len(group) == 2 and isinstance(group[0], DeviceMesh) and isinstance(group[1], int):
            return group[0].get_group(group[1])
        raise ValueError("Invalid tuple for group must be (DeviceMesh, int)")
    if isinstance(group, list):
        ranks = [rank for part in group for rank in part] if isinstance(group[0], list) else group
        found = c10d._find_pg_by_ranks_and_tag(tag, ranks)
        return found or c10d._find_or_create_pg_by_ranks_and_tag(tag, ranks, len(ranks))
    raise ValueError(f"Unsupported group type: {type(group)}, {group}")


def _resolve_group_name(group: Any, tag: str = "") -> Any:
    """The name of the process group."""
    return _resolve_group(group, tag).group_name


def _group_or_group_name(group: Any) -> Any:
    return group


def _sized(group: Any, tag: str) -> tuple[int, Any]:
    found = _resolve_group(group, tag)
    return found.size(), found.group_name


def _ops() -> Any:
    return flambeau.ops._c10d_functional


def _maybe_wrap_tensor(self: Tensor) -> Tensor:
    """The tensor, which is there already."""
    return wait_tensor(self)


def _are_we_tracing() -> bool:
    return False


# ---- collectives --------------------------------------------------------------------------------

def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, once it is there: it always is."""
    return _ops().wait_tensor(tensor)


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """What process `src` of the group has."""
    return _ops().broadcast(self, src, _resolve_group_name(group, tag))


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The sum, mean, … over the processes."""
    return _ops().all_reduce(self, reduceOp.lower(), _resolve_group_name(group, tag))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, one behind another along `gather_dim`."""
    size, name = _sized(group, tag)
    found = _ops().all_gather_into_tensor(self.contiguous(), size, name)
    return _maybe_view_chunk_cat(found, size, gather_dim)


def all_gather_tensor_autograd(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """`all_gather_tensor`, whose gradient is the sum of all processes' gradients."""
    return all_gather_tensor(self, gather_dim, group, tag)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any,
                          tag: str = "") -> Tensor:
    """This process's piece along `scatter_dim` of the sum over the processes."""
    size, name = _sized(group, tag)
    _check_pieces(self, scatter_dim, size)
    self = _chunk_or_narrow_cat(self, size, scatter_dim)
    return _ops().reduce_scatter_tensor(self.contiguous(), reduceOp.lower(), size, name)


def _check_pieces(tensor: Tensor, dim: int, size: int) -> None:
    assert tensor.shape[dim] % size == 0, (
        f"input dimension {dim} ({tensor.shape[dim]} must be a multiple of group_size {size})")


def reduce_scatter_tensor_autograd(self: Tensor, reduceOp: str, scatter_dim: int, group: Any,
                                   tag: str = "") -> Tensor:
    """`reduce_scatter_tensor`, whose gradient is that of all pieces."""
    return reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag)


def all_reduce_coalesced(self: list[Tensor], reduceOp: str, group: Any, tag: str = ""
                         ) -> list[Tensor]:
    """`all_reduce` of several tensors."""
    return _ops().all_reduce_coalesced(self, reduceOp.lower(), _resolve_group_name(group, tag))


def all_gather_into_tensor_coalesced(self: list[Tensor], group: Any, tag: str = ""
                                     ) -> list[Tensor]:
    """`all_gather_tensor` of several tensors, along their first dimension."""
    size, name = _sized(group, tag)
    return _ops().all_gather_into_tensor_coalesced(self, size, name)


def reduce_scatter_tensor_coalesced(inputs: list[Tensor], reduceOp: str, scatter_dim: list[int],
                                    group: Any, tag: str = "") -> list[Tensor]:
    """`reduce_scatter_tensor` of several tensors."""
    size, name = _sized(group, tag)
    assert len(scatter_dim) == len(inputs)
    pieces = []
    for tensor, dim in zip(inputs, scatter_dim):
        _check_pieces(tensor, dim, size)
        pieces.append(_chunk_or_narrow_cat(tensor, size, dim))
    return _ops().reduce_scatter_tensor_coalesced(pieces, reduceOp.lower(), size, name)


def all_to_all_single(self: Tensor, output_split_sizes: list[int] | None,
                      input_split_sizes: list[int] | None, group: Any, tag: str = "") -> Tensor:
    """The pieces that all processes have for this one."""
    size, name = _sized(group, tag)
    if (output_split_sizes is None) != (input_split_sizes is None):
        raise AssertionError("output_split_sizes and input_split_sizes must either be specified "
                             "together or both set to None")
    if output_split_sizes is None:
        output_split_sizes = input_split_sizes = [self.shape[0] // size] * size
    return _ops().all_to_all_single(self, list(output_split_sizes), list(input_split_sizes or ()),
                                    name)


def all_to_all_single_autograd(self: Tensor, output_split_sizes: list[int] | None,
                               input_split_sizes: list[int] | None, group: Any, tag: str = ""
                               ) -> Tensor:
    """`all_to_all_single`, whose gradients take the same way back."""
    return all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag)


def permute_tensor(self: Tensor, src_dst: list[int], group: Any, tag: str = "") -> Tensor:
    """What the process whose entry of `src_dst` is this one has."""
    found = _resolve_group(group, tag)
    size, rank = found.size(), found.rank()
    assert sorted(src_dst) == list(range(size)), f"{src_dst} is no permutation of {size} ranks"
    sends, receives = [0] * size, [0] * size
    sends[src_dst[rank]] = self.numel()
    receives[src_dst.index(rank)] = self.numel()
    return all_to_all_single(self.reshape(-1), receives, sends, group, tag).view(self.shape)


all_gather_single, all_gather_single_autograd = all_gather_tensor, all_gather_tensor_autograd
all_gather_single_coalesced = all_gather_into_tensor_coalesced
reduce_scatter_single = reduce_scatter_tensor
reduce_scatter_single_autograd = reduce_scatter_tensor_autograd
reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced


# ---- in place, as those of torch.distributed ----------------------------------------------------

def _reduction_name(op: Any) -> str:
    return op.lower() if isinstance(op, str) else REDUCE_OP_TO_STR[RedOpType(
        getattr(op, "op", op))]


def _only_sync(async_op: bool) -> None:
    assert not async_op, (
        "Can't remap async version of inplace op to functional collective")


def all_gather_tensor_inplace(output_tensor: Tensor, input_tensor: Tensor, group: Any = None,
                              async_op: bool = False, tag: str = "", gather_dim: int = 0
                              ) -> Tensor:
    """Write `all_gather_tensor` into `output_tensor`."""
    _only_sync(async_op)
    return output_tensor.copy_(all_gather_tensor(input_tensor, gather_dim,
                                                 group or c10d.group.WORLD, tag))


def reduce_scatter_tensor_inplace(output: Tensor, input: Tensor, op: Any = "sum",
                                  group: Any = None, async_op: bool = False, scatter_dim: int = 0,
                                  tag: str = "") -> Tensor:
    """Write `reduce_scatter_tensor` into `output`."""
    _only_sync(async_op)
    return output.copy_(reduce_scatter_tensor(input, _reduction_name(op), scatter_dim,
                                              group or c10d.group.WORLD, tag))


def all_reduce_inplace(tensor: Tensor, op: Any = "sum", group: Any = None, async_op: bool = False,
                       tag: str = "") -> Tensor:
    """Write `all_reduce` into `tensor`."""
    _only_sync(async_op)
    return tensor.copy_(all_reduce(tensor, _reduction_name(op), group or c10d.group.WORLD, tag))


def all_to_all_inplace(output: Tensor, input: Tensor, output_split_sizes: Any = None,
                       input_split_sizes: Any = None, group: Any = None, async_op: bool = False,
                       tag: str = "") -> Tensor:
    """Write `all_to_all_single` into `output`."""
    _only_sync(async_op)
    return output.copy_(all_to_all_single(input, output_split_sizes, input_split_sizes,
                                          group or c10d.group.WORLD, tag))


def all_gather_inplace(tensor_list: list[Tensor], tensor: Tensor, group: Any = None,
                       async_op: bool = False, tag: str = "") -> list[Tensor]:
    """Write the tensors of all processes into those of `tensor_list`."""
    _only_sync(async_op)
    whole = all_gather_tensor(tensor, 0, group or c10d.group.WORLD, tag)
    parts = whole.split([t.shape[0] for t in tensor_list]) if tensor.ndim else whole.unbind()
    for output, part in zip(tensor_list, parts):
        output.copy_(part)
    return tensor_list


def isend_inplace(tensor: Tensor, dst: int, tag: int = 0, group: Any = None, group_dst: int = -1
                  ) -> Tensor:
    """Send a tensor to another process."""
    found = group or c10d.group.WORLD
    to = group_dst if group_dst != -1 else c10d.get_group_rank(found, dst)
    return _ops().isend(tensor, to, tag, found.group_name)


def irecv_inplace(tensor: Tensor, src: int, tag: int = 0, group: Any = None, group_src: int = -1
                  ) -> Tensor:
    """Receive a tensor from another process."""
    found = group or c10d.group.WORLD
    source = group_src if group_src != -1 else c10d.get_group_rank(found, src)
    return _ops().irecv(tensor, source, tag, found.group_name)


def batch_p2p_ops_inplace(op_list: list[str], peer_list: list[int], tag_list: list[int],
                          tensors: list[Tensor], group_name: Any) -> list[Tensor]:
    """Several messages at once."""
    return _ops().batch_p2p_ops(op_list, peer_list, tag_list, tensors,
                                _resolve_group_name(group_name))


def _batch_of_messages(p2p_op_list: list[Any]) -> list[Tensor]:
    """`batch_isend_irecv`, as one op."""
    c10d._check_p2p_op_list(p2p_op_list)
    return batch_p2p_ops_inplace(
        ["isend" if message.op is c10d.isend else "irecv" for message in p2p_op_list],
        [message.group_peer for message in p2p_op_list],
        [message.tag for message in p2p_op_list], [message.tensor for message in p2p_op_list],
        p2p_op_list[0].group)


# What a compiler puts in the place of each collective that writes its arguments.
traceable_collective_remaps: dict[Callable[..., Any], Callable[..., Any]] = {
    **dict.fromkeys((c10d.all_gather_into_tensor, c10d.all_gather_single, c10d._all_gather_base),
                    all_gather_tensor_inplace),
    **dict.fromkeys((c10d.reduce_scatter_tensor, c10d.reduce_scatter_single,
                     c10d._reduce_scatter_base), reduce_scatter_tensor_inplace),
    c10d.all_reduce: all_reduce_inplace, c10d.all_to_all_single: all_to_all_inplace,
    c10d.all_gather: all_gather_inplace, c10d.isend: isend_inplace, c10d.irecv: irecv_inplace,
    c10d.batch_isend_irecv: _batch_of_messages}


@contextlib.contextmanager
def allow_inflight_collective_as_graph_input_ctx(value: bool = True) -> Iterator[None]:
    """Inside, compiled functions may (or may not) take tensors that a collective writes still."""
    from flambeau._C import _distributed_c10d as state
    before = state._allow_inflight_collective_as_graph_input()
    state._set_allow_inflight_collective_as_graph_input(value)
    try:
        yield
    finally:
        state._set_allow_inflight_collective_as_graph_input(before)
