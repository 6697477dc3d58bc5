"""The rules by which ops work on sparse tensors: copies, functions of values, sums, products.

Each rule takes what users pass to the op of its name; at least one tensor among it is sparse.
"""
from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

import flambeau
from flambeau.core import devices, type_info
from flambeau.core.autograd import engine
from flambeau.core.autograd.grad_mode import enable_grad
from flambeau.core.dtypes import as_numpy_dtype
from flambeau.core.modes import grad_enabled
from flambeau.core.op import class_name
from flambeau.core.promotion import convert, result_type
from flambeau.core.shapes import broadcast_shapes, is_expandable_to, size_of
from flambeau.core.tensor import Tensor, as_leaf, gradient_edge, tensor_types, wrap
from flambeau.ops.factory import create
from flambeau.ops.pointwise import arithmetic
from flambeau.ops.pointwise.arithmetic import neg
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.calls import rule, rules
from flambeau.ops.sparse.compressed import COO
from flambeau.ops.sparse.tensors import (
    SparseTensor,
    blocksize_of,
    conjugate,
    coordinates,
    empty,
    empty_like,
    entries,
    is_number,
    is_recorded,
    is_sparse,
    like,
    make_sparse,
    on_meta,
    sparse_dim_of,
    to_meta,
    unsupported,
    without_history,
)
from flambeau.ops.sparse.values import (
    as_form,
    coalesced,
    form_of,
    grad_values,
    masked,
    same_places,
    sparse_op,
    stored_values,
    to_coo,
    to_dense,
    with_values,
)
from flambeau.ops.view import conversion
from flambeau.ops.view.conversion import arguments_of_to

# ---- copies -------------------------------------------------------------------------------------

@sparse_op("CloneBackward0", vjp=lambda grad: [grad])
def _clone(self: SparseTensor) -> SparseTensor:
    result = make_sparse(self._layout, tuple(w.copy() for w in self._where), self._data.copy(),
                         self._array.shape)
    result._coalesced = self._coalesced
    return result


@rule("clone")
def clone(input: SparseTensor, *_: Any, memory_format: Any = None) -> Tensor:
    if memory_format is not None and input._layout is COO:
        words = str(memory_format).removeprefix("torch.").removesuffix("_format").split("_")
        raise RuntimeError("unsupported memory format option "
                           f"{''.join(map(str.capitalize, words))}")
    return _clone(input)


@rule("detach")
def detach(input: SparseTensor) -> Tensor:
    result = without_history(input)
    result._counter = input._counter
    return result


@rule("alias", "graph_alias")
def alias(input: Tensor) -> Tensor:
    return _identity(input)


@sparse_op("AliasBackward0", vjp=lambda grad: [grad])
def _identity(self: SparseTensor) -> SparseTensor:
    return without_history(self)


@sparse_op("ToCopyBackward0", params="dtype",
           vjp=lambda grad, self_dtype: [conversion.cast(grad, self_dtype)])
def _cast(self: SparseTensor, dtype: np.dtype) -> SparseTensor:
    return like(self, convert(self._data, dtype))


@rule("_to_copy", "to_copy")
def cast(input: Tensor, dtype: Any, *_: Any) -> Tensor:
    dtype = dtype if isinstance(dtype, np.dtype) else as_numpy_dtype(dtype)
    return input if input._array.dtype == dtype else _cast(input, dtype)


@rule("to")
def to(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    wanted = arguments_of_to(input, args, kwargs)
    memory_format = wanted["memory_format"]
    if memory_format not in (None, type_info.preserve_format):
        given = {type_info.contiguous_format: "Contiguous", type_info.channels_last: "ChannelsLast",
                 type_info.channels_last_3d: "ChannelsLast3d"}[memory_format]
        kind = forms.TITLES[input.layout].removeprefix("Sparse") or "COO"
        raise RuntimeError(f"to(options): {kind} only supports memory format Preserve, but got "
                           f"{given} instead.")
    if wanted["device"] is not None and wanted["device"].type == "meta":
        source: Any = input if wanted["dtype"] is None else cast(input, wanted["dtype"])
        return to_meta(source)
    if wanted["device"] is not None and input._device is devices.meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    result = input if wanted["dtype"] is None else cast(input, wanted["dtype"])
    return _clone(input) if wanted["copy"] and result is input else result


@rule("new_empty", "new_zeros")
def new_empty(input: SparseTensor, *size: Any, dtype: Any = None, layout: Any = None,
              device: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    return flambeau.zeros(*size, dtype=dtype or input.dtype, device=device,
                          layout=layout or input._layout, requires_grad=requires_grad)


@rule("zeros_like", "empty_like")
def zeros_like(input: SparseTensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: Any = None, **_: Any) -> Tensor:
    target = as_numpy_dtype(dtype) or input._array.dtype
    if memory_format is not None and layout is not type_info.strided:
        raise RuntimeError("memory format option is only supported by strided tensors")
    if layout is None or layout is input._layout:
        result: Tensor = empty_like(input, target)
    elif layout is type_info.strided:
        result = flambeau.zeros(input.shape, dtype=dtype or input.dtype)
        if memory_format not in (None, type_info.preserve_format):
            result = result.contiguous(memory_format=memory_format)
    else:
        result = empty(input._array.shape, target, layout, sparse_dim_of(input),
                       blocksize_of(input))
    if devices.checked(input._device if device is None else device) is devices.meta:
        result = on_meta(result)
    return as_leaf(result) if requires_grad else result


def _filled_like(name: str, values: Any) -> None:
    """Other values at the same places, which only the compressed layouts allow."""
    def apply(input: SparseTensor, *given: Any, dtype: Any = None, requires_grad: bool = False,
              **_: Any) -> Tensor:
        if input._layout is COO:
            raise unsupported(name, input)
        made = values(input._data.shape, *given, dtype=dtype or input.dtype)
        result = like(input, made._array)
        return as_leaf(result) if requires_grad else result
    rules[name] = apply


for _name in ("ones", "full", "randn"):
    _filled_like(f"{_name}_like", getattr(flambeau, _name))


@rule("zero_", "fill_")
def zero(input: SparseTensor, value: Any = 0) -> Tensor:
    if value != 0:
        raise unsupported("fill_", input)
    return empty_like(input)


@rule("copy", "copy_")
def copy(input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    if not (is_sparse(input) and is_sparse(src)):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found "
                           f"self type = {input.layout} and src type = {src.layout}")
    return _clone(cast(src, input._array.dtype))


# ---- values one by one --------------------------------------------------------------------------

def _through_vjp(grad: Tensor, self: SparseTensor, function: Any) -> list[Tensor]:
    """The gradient by the values, found by differentiating `function` where it acts on them."""
    pattern, again = without_history(self), grad_enabled()
    weight = grad_values(grad, pattern)
    with enable_grad():
        x = stored_values(self)
        if not again or not x.requires_grad:
            x = x.detach().requires_grad_()
        y = function(x)
    if not y.requires_grad:
        return [with_values(create.zeros_like(x), pattern)]
    found: Any = engine.run([(gradient_edge(y), weight)], again, again, [gradient_edge(x)],
                            accumulate=False)
    return [with_values(found[0], pattern)]


_through: dict[str, Any] = {}


def through_values(node: str, self: Tensor, function: Any) -> SparseTensor:
    """`function` of the values, at the same places."""
    op = _through.get(node)
    if op is None:
        @sparse_op(node, params="function", vjp=_through_vjp)
        def op(self: SparseTensor, function: Any) -> SparseTensor:
            return like(self, function(wrap(self._data))._array)
        _through[node] = op
    return op(self, function)


def _unary(name: str, linear: bool) -> None:
    def apply(input: SparseTensor, **kwargs: Any) -> Tensor:
        function = getattr(flambeau, name)
        made = getattr(function.op, "Backward", None)
        node = class_name(name) if made is None else made.__name__
        of = partial(function, **kwargs) if kwargs else function
        source = input if linear and not is_recorded(input) else coalesced(input)
        return through_values(node, source, of)
    rules[name] = apply


for _name in ("abs asin asinh atan atanh ceil erf erfinv expm1 floor frac isinf isnan isneginf "
              "isposinf log1p nan_to_num relu round sgn sign signbit sin sinh sqrt tan tanh "
              "trunc square").split():
    _unary(_name, False)
for _name in "deg2rad rad2deg positive conj real imag resolve_conj conj_physical".split():
    _unary(_name, True)


def _of_complex(rule: Any) -> Any:
    """The rule, where a real tensor is its own conjugate."""
    return lambda input: rule(input) if input.is_complex() else input


for _name in ("conj", "resolve_conj", "conj_physical"):
    rules[_name] = _of_complex(rules[_name])


@sparse_op("NegBackward0", vjp=lambda grad: [neg(grad)])
def _neg(self: SparseTensor) -> SparseTensor:
    return like(self, neg(wrap(self._data))._array)


rules["neg"] = lambda input: _neg(input)
rules["nn.functional.relu"] = lambda input, inplace=False: (
    input.relu_() if inplace else rules["relu"](input))


@rule("angle")
def angle(input: SparseTensor) -> Tensor:
    if input._layout is COO:
        raise unsupported("angle", input)
    return through_values("AngleBackward0", input, flambeau.angle)


@rule("pow")
def pow(input: Tensor, exponent: Any) -> Tensor:
    if not is_sparse(input) or not is_number(exponent):
        return NotImplemented
    if float(exponent) <= 0:
        raise RuntimeError("pow(sparse) with an exponent that is not positive is dense")
    return through_values("PowBackward0", coalesced(input), lambda v: flambeau.pow(v, exponent))


# ---- sums and differences -----------------------------------------------------------------------

@sparse_op("AddBackward0", "self other", vjp=lambda grad: [grad, grad], kind="linear")
def _add(self: Tensor, other: Tensor) -> Tensor:
    return _sum_of(self, other, False)


@sparse_op("SubBackward0", "self other", vjp=lambda grad: [grad, neg(grad)], kind="linear")
def _sub(self: Tensor, other: Tensor) -> Tensor:
    return _sum_of(self, other, True)


def _sum_of(a: Tensor, b: Tensor, negate: bool) -> Tensor:
    dtype = result_type([a._array, b._array]).numpy
    if not is_sparse(a) or not is_sparse(b):
        other: Any
        dense, other = (b, a) if is_sparse(a) else (a, b)
        shape = dense._array.shape
        if shape != other._array.shape:
            raise RuntimeError(
                f"add: expected 'self' and 'other' to have same size, but self has size "
                f"{list(shape)} while other has size {list(other._array.shape)} (FYI: "
                f"{'dense' if other._layout is COO else 'op2'}-sparse addition does not currently "
                "support broadcasting)")
        indices, data = entries(other)
        result = dense._array.astype(dtype)
        if negate and dense is b:
            result = np.negative(result)
        sign = np.subtract if negate and dense is a else np.add
        where = tuple(indices) if len(indices) else Ellipsis
        result[where] = sign(result[where], data if len(indices) else data.sum(0))
        return wrap(result)
    if a._array.shape != b._array.shape:
        raise RuntimeError("add: expected sizes of 'self' and 'other' to match, but "
                           f"{list(a._array.shape)} != {list(b._array.shape)}")
    if a._layout is b._layout is COO and not (len(a._data) and len(b._data)):
        found = b if len(b._data) else a            # whatever its sparse dimensions are
        data = found._data.astype(dtype)
        return like(found, np.negative(data) if negate and found is b else data)
    first, second = a._data.astype(dtype, copy=False), b._data.astype(dtype, copy=False)
    if negate:
        second = np.negative(second)
    if same_places(a, b):
        return like(a, first + second)
    form = form_of(a)
    x, y = coordinates(a)[0], coordinates(b)[0]
    if a._layout is not COO or len(x) != len(y):
        n = sparse_dim_of(a)
        both = _sum_of(to_coo(like(a, first), n), to_coo(like(b, second), n), False)
        return as_form(both, form)
    shape = a._array.shape
    if first.flags.c_contiguous and second.flags.c_contiguous:
        indices, data = forms.merged(x, first, y, second, shape)
    else:                               # as of gradients that are one number, expanded
        indices, data = np.concatenate([x, y], 1), np.concatenate([first, second])
    result = make_sparse(COO, (indices,), data, shape)
    result._coalesced = a._coalesced and b._coalesced
    return result


def _check_density(a: SparseTensor, b: SparseTensor) -> None:
    """Have both as many sparse dimensions? Those without entries fit anyway."""
    n, m = sparse_dim_of(a), sparse_dim_of(b)
    if n != m and a._array.shape == b._array.shape and len(a._data) and len(b._data):
        raise RuntimeError("add: expected 'self' and 'other' to have same density, but 'self' has "
                           f"{n} sparse dimensions while 'other' has {m} sparse dimensions")


def _adder(op: Any, sign: int) -> Any:
    def apply(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
        if type(input) not in tensor_types or type(other) not in tensor_types:
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) "
                               "instead.")
        if is_sparse(input) and input._layout is COO and not is_sparse(other):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) "
                               "instead.")
        if is_sparse(input) and is_sparse(other) and input._layout is other._layout is COO:
            _check_density(input, other)
        return op(input, other if alpha == 1 else arithmetic.mul(other, alpha))
    return apply


rules["add"], rules["sub"] = _adder(_add, 1), _adder(_sub, -1)


@rule("rsub")
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    return rules["sub"](other, input, alpha=alpha)


@rule("sum_to_size")
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    target = tuple(size_of(size))
    if target == input._array.shape:
        return input
    return flambeau.sum(input) if not prod(target) - 1 and not len(target) else to_dense(
        input).sum_to_size(target)


# ---- products one by one ------------------------------------------------------------------------

def _mul_vjp(grad: Tensor, self: Any, other: Any, needs: list[bool]) -> list[Any]:
    return [_in_shape(arithmetic.mul(grad, conjugate(factor)), own) if need else None
            for own, factor, need in zip((self, other), (other, self), needs)]


def _in_shape(grad: Tensor, source: Any) -> Tensor:
    """The gradient of an operand that was broadcast."""
    if type(source) not in tensor_types or grad._array.shape == source._array.shape:
        return grad
    summed = to_dense(grad).sum_to_size(source._array.shape)
    return masked(summed, coalesced(source)) if is_sparse(source) else summed


@sparse_op("MulBackward0", "self other", vjp=_mul_vjp)
def _mul(self: Any, other: Any) -> Tensor:
    if is_number(self):
        self, other = other, self
    if is_number(other):
        return like(self, arithmetic.mul(wrap(self._data), other)._array)
    if not is_sparse(self):
        self, other = other, self
    if not is_sparse(other):
        return _mul_dense(self, other)
    n, shape = sparse_dim_of(self), self._array.shape
    if shape != other._array.shape:
        if (len(shape) != other._array.ndim or n != sparse_dim_of(other)
                or shape[:n] != other._array.shape[:n]):
            raise RuntimeError("sparse_binary_op_intersection_cpu(): expects sparse inputs with "
                               "equal dimensionality, number of sparse dimensions, and shape of "
                               "sparse dimensions")
        shape = broadcast_shapes(shape, other._array.shape)
    elif same_places(self, other):
        return like(self, arithmetic.mul(wrap(self._data), wrap(other._data))._array)
    if self._layout is COO and self._coalesced and not (other._layout is COO and other._coalesced):
        self, other = other, self
    form = form_of(self)
    a, b = to_coo(self, n), to_coo(other, n)
    indices, data = a._where[0], a._data
    known, values = entries(b)
    place, hit = forms.found_at(known, indices, a._array.shape)
    product = arithmetic.mul(wrap(data[hit]), wrap(values[place[hit]]))._array
    return as_form(make_sparse(COO, (indices[:, hit],), product, shape, a._coalesced), form)


def _mul_dense(self: SparseTensor, dense: Tensor) -> Tensor:
    shape = self._array.shape
    if not is_expandable_to(dense._array.shape, shape):
        raise RuntimeError(f"mul(sparse, dense): the dense operand of size "
                           f"{list(dense._array.shape)} does not broadcast to {list(shape)}")
    indices, data = coordinates(self)
    whole = np.broadcast_to(dense._array, shape)
    factor = whole[tuple(indices)] if len(indices) else whole[None]
    product = arithmetic.mul(wrap(data), wrap(factor))._array
    return like(self, product.reshape(self._data.shape))


@rule("mul")
def mul(input: Any, other: Any) -> Tensor:
    if is_sparse(input) and is_sparse(other) and input._array.ndim != other._array.ndim:
        input, other = (x if x._array.ndim else to_dense(x) for x in (input, other))
    for one, another in ((input, other), (other, input)):
        if is_sparse(one) and type(another) in tensor_types and not is_sparse(another):
            shape = broadcast_shapes(one._array.shape, another._array.shape)
            if shape != one._array.shape and one._layout is COO:
                wide = rules["sparse_broadcast_to"](one, shape)
                return _mul(wide, other) if one is input else _mul(input, wide)
    return _mul(input, other)


def _div_vjp(grad: Tensor, self: Tensor, other: Any, needs: list[bool]) -> list[Any]:
    by = conjugate(other)
    return [flambeau.div(grad, by) if needs[0] else None,
            neg(flambeau.sum(flambeau.div(arithmetic.mul(grad, conjugate(self)), by * by)))
            if len(needs) > 1 and needs[1] else None]


@sparse_op("DivBackward0", "self other", vjp=_div_vjp)
def _div(self: SparseTensor, other: Any) -> SparseTensor:
    return like(self, flambeau.div(wrap(self._data), other)._array)


@rule("div")
def div(input: Tensor, other: Any, *, rounding_mode: Any = None) -> Tensor:
    if not is_sparse(input) or not is_number(other):
        shape = list(other._array.shape) if type(other) in tensor_types else []
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor "
                           f"(got shape {shape} for divisor)")
    if rounding_mode is not None:
        return through_values("DivBackward0", coalesced(input),
                              lambda v: flambeau.div(v, other, rounding_mode=rounding_mode))
    return _div(input, other)


@rule("floor_divide")
def floor_divide(input: Tensor, other: Any) -> Tensor:
    if not is_sparse(input) or not is_number(other):
        shape = list(other._array.shape) if type(other) in tensor_types else []
        raise RuntimeError("Sparse floor division requires a scalar or zero-dim dense tensor "
                           f"divisor (got shape {shape} for divisor)")
    return div(input, other, rounding_mode="floor")
