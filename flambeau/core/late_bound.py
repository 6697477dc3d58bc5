"""What modules of core call that stands above them, and what a few formulas need of families
above theirs.

Imports point one way: ops are built on core, and core knows none of them. It does need some: the
engine adds gradients, an in-place write to a view cuts its part out of the gradient of the base,
and an error about a graph reads what autograd keeps of it. These are all such names; each says its
type and the module that defines it, which is imported when the name is first read:

    late_bound.add(grad, other)

A name belongs here only if an import would make a circle; nothing is ever bound from outside.
"""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Annotated, Any

    import numpy as np

    from flambeau.core.autograd.graph import Node
    from flambeau.core.op import Op
    from flambeau.core.tensor import Tensor, View

    Gives = Callable[..., Tensor]               # an op, called with its arguments
    Geometry = tuple[tuple[int, ...], tuple[int, ...], int]     # shape, strides, offset

# ---- derivatives ---------------------------------------------------------------------------------

add: Annotated[Gives, "ops.pointwise.arithmetic"]
mul: Annotated[Gives, "ops.pointwise.arithmetic"]
div: Annotated[Gives, "ops.pointwise.arithmetic"]
neg: Annotated[Gives, "ops.pointwise.arithmetic"]
where: Annotated[Gives, "ops.pointwise.conditional"]
conjugated: Annotated[Callable[[Tensor], Tensor], "ops.pointwise.complex"]
real_part: Annotated[Callable[[Tensor], Tensor], "ops.pointwise.complex"]
zeros_like: Annotated[Gives, "ops.factory.create"]
cast: Annotated[Callable[[Tensor, np.dtype], Tensor], "ops.view.conversion"]
detach: Annotated[Callable[[Tensor], Tensor], "ops.view.conversion"]
copy_like: Annotated[Callable[[Tensor, Tensor], Tensor], "ops.view.copying"]
sum_over: Annotated[Callable[[Tensor, Sequence[int], bool], Tensor], "ops.reduction.sums"]
sum_to_size: Annotated[Callable[[Tensor, Sequence[int]], Tensor], "ops.view.shape"]
first_gradient: Annotated[Callable[[Tensor, Tensor, bool, bool], Tensor], "ops.leaf_gradients"]
later_gradient: Annotated[Callable[[Tensor, Tensor, bool], Tensor], "ops.leaf_gradients"]

# ---- views ---------------------------------------------------------------------------------------

regenerate: Annotated[Callable[[Tensor, View], Any], "core.views"]
as_strided: Annotated[Any, "ops.view.strided"]         # called, and its op
cut_out: Annotated[Callable[..., tuple[Tensor, Callable[[Tensor | None], Tensor]]],
                   "ops.view.strided"]
geometry: Annotated[Callable[[Tensor], Geometry], "ops.view.strided"]
same_part: Annotated[Callable[[Tensor, np.ndarray, np.ndarray], Tensor], "ops.view.strided"]
graph_alias: Annotated[Callable[[Tensor], Tensor], "ops.view.copying"]
memory_of: Annotated[Callable[[Tensor, Tensor], np.ndarray], "ops.inplace"]

# ---- calls ---------------------------------------------------------------------------------------

without_entries: Annotated[Gives, "ops.sparse.create"]
legacy_constructor: Annotated[Callable[[type, tuple[Any, ...], dict[str, Any]], Tensor],
                              "ops.factory.legacy_types"]
default_torch_function: Annotated[Callable[..., Any], "transforms.function_modes"]
has_meta: Annotated[Callable[[Sequence[Any]], bool], "transforms.meta"]
on_meta: Annotated[Callable[[Op, tuple[Any, ...]], Any], "transforms.meta"]
make_inplace: Annotated[Callable[[Op], Op], "ops.inplace"]
write_result: Annotated[Gives, "ops.inplace"]
store: Annotated[Callable[..., Any], "ops.coercion"]
refuse_out: Annotated[Callable[..., None], "ops.coercion"]
coerce_general: Annotated[Callable[..., Any], "ops.coercion"]
bound: Annotated[Callable[..., Any], "schema.arguments"]
too_large: Annotated[Callable[..., Exception | None], "dispatch.memory_errors"]

# ---- autograd ------------------------------------------------------------------------------------

backward: Annotated[Callable[..., None], "autograd.differentiate"]
pack_node: Annotated[Callable[[Node], None], "core.autograd.saved_hooks"]
Opened: Annotated[Callable[[Node], Node], "core.autograd.saved_hooks"]
saved_attribute: Annotated[Callable[[Node, str], Any], "core.autograd.saved_names"]
shown_names: Annotated[Callable[[Node], list[str]], "core.autograd.saved_names"]
close_whole: Annotated[Callable[[Node], None], "ops.node_names"]
known_as: Annotated[Callable[..., type], "ops.node_names"]
accumulate: Annotated[Callable[[Tensor, Any], None], "core.autograd.engine"]
see_formula: Annotated[Callable[[Node, Any, Any, int], None], "ops.node_names"]

# annotations are not evaluated: "Annotated[Gives, 'ops.pointwise.arithmetic']" is cut as text
HOMES = {name: "flambeau." + text.split("'")[-2] for name, text in __annotations__.items()}

if not TYPE_CHECKING:                       # to mypy, what is annotated is all that there is
    def __getattr__(name):
        if name not in HOMES:
            raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(HOMES[name]), name)
        return found
