"""Orders in which collectives and computations overlap."""
from __future__ import annotations

from typing import Any

from flambeau._dynamo._absent import COMPILER, absent_class, absent_function
from flambeau.fx import Node


def get_group_name(n: Node) -> str:
    """The name of the group of processes that a collective is for."""
    target: Any = n.target
    schema = target._schema
    given = dict(zip([a.name for a in schema.arguments], n.args)) | dict(n.kwargs)
    return given["group_name"]


def is_compute_node(n: Node) -> bool:
    """Is a node a product or a convolution?"""
    return n.op == "call_function" and getattr(n.target, "_opname", "") in (
        "mm", "bmm", "addmm", "baddbmm", "convolution", "convolution_backward", "_scaled_mm",
        "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention")


OverlapScheduler = absent_class(__name__, "OverlapScheduler", COMPILER)
schedule_overlap_bucketing = absent_function(__name__, "schedule_overlap_bucketing", COMPILER)
schedule_overlap_bucketing_from_inductor_configs = absent_function(
    __name__, "schedule_overlap_bucketing_from_inductor_configs", COMPILER)
__all__ = ["OverlapScheduler", "get_group_name", "is_compute_node", "schedule_overlap_bucketing",
           "schedule_overlap_bucketing_from_inductor_configs"]
