"""Ops that take functions: branches, loops, scans, attention with functions of scores."""
from flambeau._higher_order_ops.associative_scan import associative_scan, associative_scan_op
from flambeau._higher_order_ops.cond import cond, cond_op
from flambeau._higher_order_ops.flex_attention import flex_attention, flex_attention_backward
from flambeau._higher_order_ops.map import map, map_impl
from flambeau._higher_order_ops.out_dtype import out_dtype
from flambeau._higher_order_ops.scan import scan, scan_op
from flambeau._higher_order_ops.while_loop import while_loop, while_loop_op
from flambeau._higher_order_ops.wrap import (
    hints_wrapper,
    invoke_subgraph,
    tag_activation_checkpoint,
    wrap_activation_checkpoint,
    wrap_with_autocast,
    wrap_with_set_grad_enabled,
)
from flambeau._support.lazy.modules import lazy_package

__getattr__ = lazy_package(__name__)
__all__ = ["associative_scan", "cond", "flex_attention", "flex_attention_backward",
           "hints_wrapper", "invoke_subgraph", "map", "out_dtype", "scan",
           "tag_activation_checkpoint", "while_loop", "wrap_activation_checkpoint",
           "wrap_with_autocast", "wrap_with_set_grad_enabled"]
