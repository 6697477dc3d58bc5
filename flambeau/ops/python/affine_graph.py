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
from flambeau.core.autograd.graph import Node, Packed, next_order
from flambeau.core.tensor import alias, tensor_types
from flambeau.ops.linalg.added_products import addmm
from flambeau.ops.linalg.matmul import dot, mm, mv
from flambeau.ops.nn.affine import linear
from flambeau.ops.pointwise.arithmetic import add
from flambeau.ops.view.conversion import clone
from flambeau.ops.view.reshaping import unsafe_view, view
from flambeau.ops.view.shape import t


def unfold(node: Node) -> Node:
    """PyTorch's nodes in place of one of `linear`: gives the last of them."""
    input, weight, bias = node.edges
    weight_entry, input_by_columns, input_entry, weight_by_columns = node.saved
    if any(type(entry) is Packed for entry in node.saved) or (
            bias is not None and len(shape_of(bias)) != 1):
        return node
    if (weight is not None and len(shape_of(weight)) == 1) or (
            weight_entry and weight_entry[0]._array.ndim == 1):
        return _by_vector(node)
    shape, matrix = node.shape, (prod(node.shape[:-1]), node.shape[-1])
    as_matrix, is_apart = view, False
    if len(shape) > 2 and input_entry and not input_entry[0]._array.flags.c_contiguous:
        as_matrix, is_apart = unsafe_view, True     # it is copied; the bias is added in the end
    if len(shape) != 2 and input is not None:
        size = shape_of(input) if input_entry is None else input_entry[0]._array.shape
        if is_apart:
            input = made(node, clone, (input,), size)
        input = made(node, as_matrix, (input,), (matrix[0], size[-1]), (size,))
    if weight is not None:
        weight = made(node, t, (weight,), shape_of(weight)[::-1])
    values = {"self": seen(input_entry, (matrix[0], -1), input), "beta": 1, "alpha": 1,
              "mat2": seen(weight_entry, None, weight), "mat2_by_columns": not weight_by_columns,
              "self_by_columns": input_by_columns, "mat1_by_columns": input_by_columns}
    values["mat1"] = values["self"]
    adds = bias is not None and not is_apart
    product = addmm if adds else mm
    last = made(node, product, (bias, input, weight) if adds else (input, weight), matrix,
                tuple([values[name] for name in product.op.saved]))
    if len(shape) != 2:
        last = made(node, view if adds else unsafe_view, (last,), shape, (matrix,))
    if is_apart and bias is not None:
        last = made(node, add, (last, bias), shape, (1,) * len(add.op.saved))
    return last


def _by_vector(node: Node) -> Node:
    """The node of the product with a weight that is one row."""
    if len(node.shape) > 1:
        return node
    input, weight, _ = node.edges
    product, names = (mv, ("vec", "self")) if node.shape else (dot, ("tensor", "self"))
    if weight is not None:
        weight = made(node, t, (weight,), shape_of(weight))
    values = dict(zip(names, node.saved[::2]))
    return made(node, product, (input, weight), node.shape,
                tuple([values[name] for name in product.op.saved]))


def made(whole: Node, function: Any, edges: tuple[Any, ...], shape: Any,
         saved: tuple[Any, ...] = ()) -> Node:
    """A node of `function`, newer than those that were made before it."""
    node: Node = function.op.Backward(whole)        # at the same place in the program
    node.edges, node.saved, node.shape, node.dtype = edges, saved, shape, whole.dtype
    node.order = next_order()
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


def _read_optional(tensor: Any, read: Any) -> Any:
    return None if tensor is None else read(tensor)


def _geometry(read: Any, name: str) -> Any:
    """A formula of a factor that is kept only where the gradient of the other is asked for."""
    return {"self": lambda self: _read_optional(self, read),
            "mat1": lambda mat1: _read_optional(mat1, read),
               "mat2": lambda mat2: _read_optional(mat2, read)}[name]


for _op, _factors in ((mm.op, ("self", "mat2")), (addmm.op, ("mat1", "mat2"))):
    _op.saved_as = {f"{n}_sym_sizes": _geometry(lambda t: tuple(t.shape), n) for n in _factors} \
        | {f"{n}_sym_strides": _geometry(lambda t: t.stride(), n) for n in _factors}
