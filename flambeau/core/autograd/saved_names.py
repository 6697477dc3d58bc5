"""What a node saved, under PyTorch's names: the attributes `_saved_x` and `_raw_saved_x` of nodes.

Most are the names that the formulas use. Sizes follow from the shape or the tensor that was saved
(`self_sym_sizes`, `self_sym_numel`, `self_sym_argsize_minus_1`), results from the names of what the
op returns (`indices`); the rest an op declares in `saved_as`. Which of them `dir` shows of a node
stands in `nodes.txt`, what each class of PyTorch's nodes saves. All of it is looked up when
somebody asks, and costs a call nothing.

>>> x = flambeau.ones(2, 3, requires_grad=True)
>>> x.sum().grad_fn._saved_self_sym_sizes
(2, 3)
>>> x[:, flambeau.tensor([0])].grad_fn._saved_indices
(None, tensor([0]))
"""
from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau.core.autograd.backward_errors import freed_error
from flambeau.core.autograd.formulas import parameters
from flambeau.core.autograd.graph import Node, unpack
from flambeau.core.autograd.saved_hooks import SavedTensor
from flambeau.core.dtypes import from_numpy_dtype
from flambeau.core.tensor import Tensor

SIZES = re.compile(r"(\w+)_sym_(?:(sizes)(_opt)?|(numel)|argsize_(minus_)?(\d+))")
ABSENT = object()
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
RESULTS = (lambda result0: result0, lambda result1: result1, lambda result2: result2,
           lambda result3: result3)
Read = Callable[[Node, int], Any]


def _scale_at(place: int) -> Any:
    return lambda scales: None if scales is None else scales[place]


# PyTorch's names of what several ops save under their own.
ALSO: dict[str, Any] = {
    "output_size": lambda size: tuple(size), "padding": lambda pad: tuple(pad),
    "dimension": lambda dim: dim, "scales_w": _scale_at(-1), "scales_h": _scale_at(-2),
    "scales_d": _scale_at(-3)}


def _user_value(value: Any) -> Any:
    """A saved value as users see it: shapes as plain tuples, dtypes as torch's."""
    if isinstance(value, np.dtype):
        return from_numpy_dtype(value)
    return tuple(value) if type(value) is list else value


def saved_attribute(node: Node, name: str) -> Any:
    """The value of `node._saved_x`, or, of `node._raw_saved_x`, handles on the saved tensors."""
    if name.startswith("_saved_"):
        if node.part_of is not None and node.part_of[0].saved is None:
            raise freed_error(node.part_of[0])
        return _find(node, name[7:], lambda node, i: _user_value(unpack(node, i)), "_saved_")
    found = _find(node, name[11:], SavedTensor.handle, "_raw_saved_")
    if isinstance(found, list | tuple):
        found = tuple([SavedTensor.of(node, None) if f is None else f for f in found])
    if not isinstance(found[0] if isinstance(found, tuple) and found else found, SavedTensor):
        raise _no_attribute(node, name)
    return found


def _no_attribute(node: Node, name: str) -> AttributeError:
    return AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")


def _find(node: Node, name: str, read: Read, prefix: str) -> Any:
    names = node.saved_names
    formula = _find_declared(node, name)
    if formula is not ABSENT:
        return _apply(node, formula, read) if callable(formula) else formula
    own = name if name in names else own_name(node, name)
    if own in names:
        value = read(node, names.index(own))
        if name == "reduction" and value in REDUCTIONS:
            return REDUCTIONS[value]
        return value[0] if name == "scales" and type(value) is tuple and len(value) == 1 else value
    found = SIZES.fullmatch(name)
    shape = None if found is None else _saved_shape(node, own_name(node, found[1]))
    if found is not None and shape is not None:
        if found[2]:
            return tuple(shape) or ((0,) if found[3] else ())
        return math.prod(shape) if found[4] else shape[-int(found[6]) if found[5]
                                                       else int(found[6])]
    rest = getattr(node, "rest", None)          # of a fused op: what its body is given
    if rest is not None and node.op is not None and name in node.op.params:
        return rest[node.op.params.index(name)]
    raise _no_attribute(node, prefix + name)


def _apply(node: Node, formula: Any, read: Read) -> Any:
    return formula(*[read(node, node.saved_names.index(n)) for n in parameters(formula)])


def _find_declared(node: Node, name: str) -> Any:
    """What gives the value of that name, of what the op declares or results are called."""
    if name in declared_by_op(node):
        return declared_by_op(node)[name]
    fields = getattr(node.op and node.op.returns, "__match_args__", ())
    if name in fields and f"result{fields.index(name)}" in node.saved_names:
        return RESULTS[fields.index(name)]
    formula = ALSO.get(name)
    if formula is not None and all(n in node.saved_names for n in parameters(formula)):
        return formula
    return ABSENT


def declared_by_op(node: Node) -> dict[str, Any]:
    """What the node's op declares."""
    return {} if node.op is None else node.op.saved_as


def own_name(node: Node, name: str) -> str:
    """The first argument is `self` in PyTorch's formulas, whatever users call it."""
    tensors = () if node.op is None else node.op.tensors
    return "input" if name == "self" and tensors[:1] == ("input",) else name


def _saved_shape(node: Node, name: str) -> Any:
    names = node.saved_names
    if f"{name}_shape" in names:
        return unpack(node, names.index(f"{name}_shape"))
    value = unpack(node, names.index(name)) if name in names else None
    return value._array.shape if isinstance(value, Tensor) else None


@functools.cache
def names_by_class() -> dict[str, tuple[str, ...]]:
    """What each class of PyTorch's nodes saves."""
    with open(os.path.join(os.path.dirname(__file__), "nodes.txt"), encoding="utf-8") as file:
        return {name: tuple(names) for name, *names in map(str.split, file)}


def shown_names(node: Node) -> list[str]:
    """The names that `dir` shows: PyTorch's, for its classes of nodes, as far as they are known."""
    names = names_by_class().get(type(node).__name__)
    if names is not None:
        return [name for name in names if has_saved(node, name)]
    return [*(re.sub("_shape$", "_sym_sizes", n) for n in node.saved_names),
            *declared_by_op(node)]


def has_saved(node: Node, name: str) -> bool:
    """Is there a saved value of that name? It is not read."""
    if f"_saved_{name}" in node.__dict__ or name in node.saved_names \
            or own_name(node, name) in node.saved_names or _find_declared(node, name) is not ABSENT:
        return True
    found = SIZES.fullmatch(name)
    if found is not None:
        stem = own_name(node, found[1])
        return stem in node.saved_names or f"{stem}_shape" in node.saved_names
    return hasattr(node, "rest") and node.op is not None and name in node.op.params



def is_node_name(name: str) -> bool:
    """Is this the name of one of PyTorch's classes of nodes?"""
    return name in names_by_class()
