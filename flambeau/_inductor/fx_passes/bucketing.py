"""Collectives in graphs: which nodes are some, and joining several to one."""
from __future__ import annotations

from typing import Any, Literal

import flambeau
from flambeau import Tensor
from flambeau._dynamo._absent import COMPILER, absent_function
from flambeau.fx import Node
from flambeau.library import Library

BucketMode = Literal["default", "custom_ops", "custom_ops_multidtype"]


def _calls(node: Node, name: str) -> bool:
    return node.op == "call_function" and getattr(node.target, "_qualified_op_name", str(
        node.target)).replace("::", ".").removesuffix(".default") == f"_c10d_functional.{name}"


def is_all_gather_into_tensor(node: Node) -> bool:
    """Does a node gather the parts of a tensor from all processes?"""
    return _calls(node, "all_gather_into_tensor") or _calls(node, "all_gather_into_tensor_out")


def is_reduce_scatter_tensor(node: Node) -> bool:
    """Does a node sum a tensor over all processes, and give each a part?"""
    return _calls(node, "reduce_scatter_tensor")


def is_all_reduce_tensor(node: Node) -> bool:
    """Does a node sum a tensor over all processes?"""
    return _calls(node, "all_reduce")


def is_all_to_all_tensor(node: Node) -> bool:
    """Does a node exchange parts of tensors between processes?"""
    return _calls(node, "all_to_all_single")


def is_wait_tensor(node: Node) -> bool:
    """Does a node wait for a collective?"""
    return _calls(node, "wait_tensor")


bucket_all_gather = absent_function(__name__, "bucket_all_gather", COMPILER)
bucket_reduce_scatter = absent_function(__name__, "bucket_reduce_scatter", COMPILER)
bucket_all_reduce = absent_function(__name__, "bucket_all_reduce", COMPILER)


# Types by number, as the op has them.
_ALL_DTYPES = tuple(value for _, value in sorted(vars(flambeau).items())
                    if isinstance(value, flambeau.dtype))


def _pre_bucket_all_gather(ag_ins: list[Tensor], group_size: int, dtype: Any,
                           out_dtype_ints: list[int], rank: int,
                           foreach_group_indices: list[int] | None = None) -> Tensor:
    """Room for what all processes give, with what this one gives in its place, each tensor in a
    type of its own. Groups of copies (`foreach_group_indices`) make no difference."""
    parts = [t.flatten().to(_ALL_DTYPES[n]).view(dtype) for t, n in zip(ag_ins, out_dtype_ints)]
    mine = flambeau.cat(parts)
    out = flambeau.empty(mine.numel() * group_size, dtype=dtype)
    out.narrow(0, rank * mine.numel(), mine.numel()).copy_(mine)
    return out


def _pre_bucket_reduce_scatter(rs_ins: list[Tensor], group_size: int) -> Tensor:
    """Tensors side by side, so that each process' parts are together."""
    return flambeau.cat([x.view(group_size, -1) for x in rs_ins], dim=1).flatten()


_library = Library("bucketing", "FRAGMENT")
_library.define("_pre_bucket_all_gather(Tensor[] ag_ins, SymInt group_size, "
                "ScalarType dtype, SymInt[] out_dtype_ints, SymInt rank, "
                "SymInt[]? foreach_group_indices=None) -> Tensor")
_library.impl("_pre_bucket_all_gather", _pre_bucket_all_gather, "CompositeExplicitAutograd")
_library.define("_pre_bucket_reduce_scatter(Tensor[] rs_ins, SymInt group_size) -> Tensor")
_library.impl("_pre_bucket_reduce_scatter", _pre_bucket_reduce_scatter,
              "CompositeExplicitAutograd")

__all__ = ["BucketMode", "is_all_gather_into_tensor", "is_all_reduce_tensor",
           "is_all_to_all_tensor", "is_reduce_scatter_tensor", "is_wait_tensor"]
