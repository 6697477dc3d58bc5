"""The graph of `linear` as PyTorch shows it.

`linear` records one node. In PyTorch a matrix times a weight plus a bias is
`addmm(bias, input, weight.t())`, without a bias `mm(input, weight.t())`, and an input of more
dimensions is seen as a matrix before and the result as more dimensions after. Those nodes are made
when somebody looks at the graph; until then one does it all.

    >>> import flambeau
    >>> x, w = flambeau.ones(2, 3, requires_grad=True), flambeau.ones(4, 3, requires_grad=True)
    >>> y = flambeau.nn.functional.linear(x, w)
    >>> y.grad_fn.name(), [node.name() for node, _ in y.grad_fn.next_functions]
    ('MmBackward0', ['torch::autograd::AccumulateGrad', 'TBackward0'])
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau._support.source_locations import counter_of
from flambeau.core.engine import current_pass
from flambeau.core.graph import Node, Packed
from flambeau.core.tensor import alias, tensor_types
from flambeau.ops.linalg.added_products import addmm
from flambeau.ops.linalg.matmul import linear, mm
from flambeau.ops.pointwise.arithmetic import add
from flambeau.ops.view.conversion import clone
from flambeau.ops.view.reshaping import unsafe_view, view
from flambeau.ops.view.shape import t

# How the factors of the product lie in memory: the second is the weight, transposed.
LAID_OUT = {"self_by_columns": False, "mat1_by_columns": False, "mat2_by_columns": True}


def unfold(node: Node) -> Node:
    """Let a node of `linear` become the last of PyTorch's nodes, and make those before it."""
    input, weight, bias = node.edges
    saved = (None, None) if node.saved is None else node.saved
    if current_pass.get() is not None or any(type(entry) is Packed for entry in saved):
        return node
    weight_entry, input_entry = saved
    if bias is not None and len(shape_of(bias)) != 1:
        return node
    if len(node.shape) > 2 and input_entry and not input_entry[0]._array.flags.c_contiguous:
        return apart(node, weight_entry, input_entry)
    rows, columns = prod(node.shape[:-1]), node.shape[-1]
    matrix, last = (rows, columns), node
    if len(node.shape) != 2:
        last = made(node, mm, 1, (), matrix)
        if input is not None:
            shape = shape_of(input) if input_entry is None else input_entry[0]._array.shape
            input = made(node, view, 3, (input,), (rows, shape[-1]), (shape,))
    if weight is not None:
        weight = made(node, t, 2, (weight,), shape_of(weight)[::-1])
    values = {"self": seen(input_entry, (rows, -1), input), "beta": 1, "alpha": 1,
              "mat2": seen(weight_entry, None, weight), **LAID_OUT}
    values["mat1"] = values["self"]
    op = (mm if bias is None else addmm).op
    last.__class__ = op.Backward
    last.edges = (input, weight) if bias is None else (bias, input, weight)
    last.saved = None if node.saved is None else tuple([values[name] for name in op.saved])
    if last is not node:
        node.__class__ = (unsafe_view if bias is None else view).op.Backward
        node.edges, node.saved = (last,), (matrix,)
    return node


def apart(node: Node, weight_entry: Any, input_entry: Any) -> Node:
    """The same for an input whose elements do not lie as those of a matrix: it is copied, and the
    bias is added in the end."""
    input, weight, bias = node.edges
    rows, columns, size = prod(node.shape[:-1]), node.shape[-1], input_entry[0]._array.shape
    if input is not None:
        input = made(node, clone, 5, (input,), size)
        input = made(node, unsafe_view, 4, (input,), (rows, size[-1]), (size,))
    if weight is not None:
        weight = made(node, t, 3, (weight,), shape_of(weight)[::-1])
    values = {"self": seen(input_entry, (rows, -1), input),
              "mat2": seen(weight_entry, None, weight), **LAID_OUT}
    product = made(node, mm, 2, (input, weight), (rows, columns),
                   tuple([values[name] for name in mm.op.saved]))
    if bias is None:
        last = node
    else:
        last = made(node, unsafe_view, 1, (), node.shape)
        node.__class__, node.saved = add.op.Backward, (1,) * len(add.op.saved)
        node.edges = (last, bias)
    last.__class__, last.edges, last.saved = unsafe_view.op.Backward, (product,), ((rows, columns),)
    return node


def made(whole: Node, function: Any, place: int, edges: tuple[Any, ...], shape: Any,
         saved: tuple[Any, ...] = ()) -> Node:
    """A node of `function` between `whole` and what comes before it, the `place`-th from there."""
    node: Node = function.op.Backward(whole)        # at the same place in the program
    node.edges, node.saved, node.shape, node.dtype = edges, saved, shape, whole.dtype
    node.order = whole.order + place / 8        # type: ignore[assignment]  # older than the whole
    return node


def seen(entry: Any, shape: Any, edge: Any) -> Any:
    """A saved matrix in another shape, or transposed, with the history `edge`."""
    if entry is None:
        return None
    tensor, version = entry
    array: np.ndarray = tensor._array
    if shape is not None and array.ndim == 2:
        return entry
    result = alias(array.T if shape is None else array.reshape(prod(array.shape[:-1]),
                                                               array.shape[-1]), type(tensor))
    result._counter, result._edge = counter_of(tensor), edge
    return result, version


def shape_of(edge: Any) -> tuple[int, ...]:
    """The shape of what a gradient edge stands for."""
    return tuple(edge._array.shape if type(edge) in tensor_types else edge.shape)


linear.op.Backward.unfold = unfold


def _of(tensor: Any, read: Any) -> Any:
    return None if tensor is None else read(tensor)


def _geometry(read: Any, name: str) -> Any:
    """A formula of a factor that is kept only where the gradient of the other is asked for."""
    return {"self": lambda self: _of(self, read), "mat1": lambda mat1: _of(mat1, read),
               "mat2": lambda mat2: _of(mat2, read)}[name]


for _op, _factors in ((mm.op, ("self", "mat2")), (addmm.op, ("mat1", "mat2"))):
    _op.saved_as = {f"{n}_sym_sizes": _geometry(lambda t: tuple(t.shape), n) for n in _factors} \
        | {f"{n}_sym_strides": _geometry(lambda t: t.stride(), n) for n in _factors}
