"""What a node saved, under PyTorch's names: the attributes `_saved_x` and `_raw_saved_x` of nodes.

Most are the names that the formulas use. Sizes follow from the shape or the tensor that was saved
(`self_sym_sizes`, `self_sym_numel`, `self_sym_argsize_minus_1`); the rest an op declares
in `saved_as`. All of it is looked up when somebody asks, and costs a call nothing.

>>> x = flambeau.ones(2, 3, requires_grad=True)
>>> x.sum().grad_fn._saved_self_sym_sizes
(2, 3)
>>> x[:, flambeau.tensor([0])].grad_fn._saved_indices
(None, tensor([0]))
"""
from __future__ import annotations

import math
import re
from typing import Any

from flambeau.core.graph import Node, unpack, user_value
from flambeau.core.op import parameters
from flambeau.core.tensor import Tensor, basis

SIZES = re.compile(r"(\w+)_sym_(?:(sizes)|(numel)|argsize_(minus_)?(\d+))")


def saved_attribute(node: Node, name: str) -> Any:
    """The value of `node._saved_<name>`."""
    names = node.saved_names
    if name in declared(node):
        formula = declared(node)[name]
        if not callable(formula):
            return formula
        return formula(*[unpack(node, names.index(n)) for n in parameters(formula)])
    if name in names:
        return user_value(unpack(node, names.index(name)))
    found = SIZES.fullmatch(name)
    shape = None if found is None else _shape(node, own_name(node, found[1]))
    if found is not None and shape is not None:
        if found[2]:
            return tuple(shape)
        return math.prod(shape) if found[3] else shape[-int(found[5]) if found[4]
                                                       else int(found[5])]
    if (own := own_name(node, name)) in names:
        return user_value(unpack(node, names.index(own)))
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '_saved_{name}'")


def declared(node: Node) -> dict[str, Any]:
    """What the node's op declares."""
    return {} if node.op is None else node.op.saved_as


def own_name(node: Node, name: str) -> str:
    """The first argument is `self` in PyTorch's formulas, whatever users call it."""
    tensors = () if node.op is None else node.op.tensors
    return "input" if name == "self" and tensors[:1] == ("input",) else name


def _shape(node: Node, name: str) -> Any:
    names = node.saved_names
    if f"{name}_shape" in names:
        return unpack(node, names.index(f"{name}_shape"))
    value = unpack(node, names.index(name)) if name in names else None
    return value._array.shape if isinstance(value, Tensor) else None


def listed(node: Node) -> list[str]:
    """The names that `dir` shows."""
    return [*(re.sub("_shape$", "_sym_sizes", n) for n in node.saved_names),
            *declared(node)]


basis.saved_attribute, basis.listed_saved = saved_attribute, listed
