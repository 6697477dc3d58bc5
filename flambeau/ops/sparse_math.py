"""The rules by which ops work on sparse tensors: arithmetic, products, sums, softmax, places.

Each rule takes what users pass to the op of its name; at least one tensor among it is sparse.
"""
from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

import flambeau
from flambeau.core.dtypes import as_numpy_dtype
from flambeau.core.modes import grad_enabled
from flambeau.core.op import class_name
from flambeau.core.promotion import convert, result_type
from flambeau.core.shapes import is_expandable_to, size_of, wrap_dim, wrap_dims
from flambeau.core.tensor import Tensor, basis, tensor_types, wrap
from flambeau.ops import sparse_compressed as forms
from flambeau.ops.sparse import (SparseTensor, as_form, bare, coalesced, coordinates, empty, empty_like, entries,
                                 form_of, grad_values, is_sparse, like, make, masked, rules,
                                 same_places, sparse_dim_of, sparse_op, stored_values, to_dense,
                                 unsupported, with_values)
from flambeau.ops.sparse_compressed import COO


def rule(*names: str) -> Any:
    """Enter a function as the rule of the ops of these names."""
    def enter(function: Any) -> Any:
        for name in names:
            rules[name] = function
        return function
    return enter


def tracked(*tensors: Any) -> bool:
    return grad_enabled() and any(type(t) in tensor_types and t.requires_grad for t in tensors)


def is_number(value: Any) -> bool:
    """A Python number or a tensor without dimensions."""
    return type(value) not in tensor_types or (not is_sparse(value) and not value._array.ndim)


# ---- copies -------------------------------------------------------------------------------------

@sparse_op("CloneBackward0", vjp=lambda grad: [grad])
def _clone(self: SparseTensor) -> SparseTensor:
    return make(self._layout, tuple(w.copy() for w in self._where), self._data.copy(),
                self._array.shape, self._coalesced)


@rule("clone")
def clone(input: Tensor, *_: Any, memory_format: Any = None) -> Tensor:
    return _clone(input)


@rule("detach")
def detach(input: Tensor) -> Tensor:
    result = bare(input)
    result._counter = input._counter
    return result


@rule("alias", "graph_alias")
def alias(input: Tensor) -> Tensor:
    return _identity(input)


@sparse_op("AliasBackward0", vjp=lambda grad: [grad])
def _identity(self: SparseTensor) -> SparseTensor:
    return bare(self)


@sparse_op("ToCopyBackward0", params="dtype",
           vjp=lambda grad, self_dtype: [basis.cast(grad, self_dtype)])
def _cast(self: SparseTensor, dtype: np.dtype) -> SparseTensor:
    return like(self, convert(self._data, dtype))


@rule("cast")
def cast(input: Tensor, dtype: np.dtype) -> Tensor:
    return input if input._array.dtype == dtype else _cast(input, dtype)


@rule("to")
def to(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    from flambeau.ops.copying import _parse_to
    device, dtype, copy, _ = _parse_to(*args, **kwargs)
    if device is not None and device.type == "meta":
        raise NotImplementedError("sparse tensors on device meta")
    result = input if dtype is None else cast(input, dtype)
    return _clone(input) if copy and result is input else result


@rule("zeros_like", "empty_like")
def zeros_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, **_: Any) -> Tensor:
    target = as_numpy_dtype(dtype) or input._array.dtype
    result = empty_like(input, target) if layout is None \
        or layout is input._layout else flambeau.zeros(input.shape, dtype=dtype or input.dtype)
    return result.requires_grad_() if requires_grad else result


@rule("zero_", "fill_number_")
def zero(input: Tensor, value: Any = 0) -> Tensor:
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

def _through_back(grad: Tensor, self: Tensor, function: Any) -> list[Tensor]:
    """The gradient by the values, found by differentiating `function` where it acts on them."""
    from flambeau.autograd import enable_grad
    from flambeau.autograd import grad as gradient
    pattern, again = bare(self), grad_enabled()
    weight = grad_values(grad, pattern)
    with enable_grad():
        x = stored_values(self)
        if not again or not x.requires_grad:
            x = x.detach().requires_grad_()
        y = function(x)
    if not y.requires_grad:
        return [with_values(basis.zeros_like(x), pattern)]
    return [with_values(gradient(y, x, weight, create_graph=again)[0], pattern)]


_through: dict[str, Any] = {}


def through_values(node: str, self: Tensor, function: Any) -> SparseTensor:
    """`function` of the values, at the same places."""
    op = _through.get(node)
    if op is None:
        @sparse_op(node, params="function", vjp=_through_back)
        def op(self: SparseTensor, function: Any) -> SparseTensor:
            return like(self, function(wrap(self._data))._array)
        _through[node] = op
    return op(self, function)


def _unary(name: str, linear: bool) -> None:
    def apply(input: Tensor, **kwargs: Any) -> Tensor:
        function = getattr(flambeau, name)
        made = getattr(function.op, "Backward", None)
        node = class_name(name) if made is None else made.__name__
        of = partial(function, **kwargs) if kwargs else function
        return through_values(node, input if linear and not tracked(input) else coalesced(input), of)
    rules[name] = apply


for _name in ("abs asin asinh atan atanh ceil erf erfinv expm1 floor frac isinf isnan isneginf "
              "isposinf log1p nan_to_num relu round sgn sign signbit sin sinh sqrt tan tanh "
              "trunc square").split():
    _unary(_name, False)
for _name in "deg2rad rad2deg positive conj real imag resolve_conj conj_physical".split():
    _unary(_name, True)


@sparse_op("NegBackward0", vjp=lambda grad: [basis.neg(grad)])
def _neg(self: SparseTensor) -> SparseTensor:
    return like(self, basis.neg(wrap(self._data))._array)


rules["neg"] = lambda input: _neg(input)


@rule("pow")
def pow(input: Tensor, exponent: Any) -> Tensor:
    if not is_sparse(input) or not is_number(exponent):
        raise unsupported("pow", input if is_sparse(input) else exponent)
    if float(exponent) <= 0:
        raise RuntimeError("pow(sparse) with an exponent that is not positive is dense")
    return through_values("PowBackward0", coalesced(input), lambda v: flambeau.pow(v, exponent))


# ---- sums and differences -----------------------------------------------------------------------

@sparse_op("AddBackward0", "self other", vjp=lambda grad: [grad, grad], kind="linear")
def _add(self: Tensor, other: Tensor) -> Tensor:
    return _sum_of(self, other, False)


@sparse_op("SubBackward0", "self other", vjp=lambda grad: [grad, basis.neg(grad)], kind="linear")
def _sub(self: Tensor, other: Tensor) -> Tensor:
    return _sum_of(self, other, True)


def _sum_of(a: Tensor, b: Tensor, negate: bool) -> Tensor:
    dtype = result_type([a._array, b._array]).numpy
    if not is_sparse(a) or not is_sparse(b):
        dense, other = (b, a) if is_sparse(a) else (a, b)
        shape = np.broadcast_shapes(a._array.shape, b._array.shape)
        if shape != other._array.shape:
            raise RuntimeError(f"add: Expected sparse tensor of size {list(shape)}, but got size "
                               f"{list(other._array.shape)}")
        indices, data = entries(other)
        result = np.broadcast_to(dense._array, shape).astype(dtype)
        if negate and dense is b:
            result = np.negative(result)
        sign = np.subtract if negate and dense is a else np.add
        where = tuple(indices) if len(indices) else Ellipsis
        result[where] = sign(result[where], data if len(indices) else data.sum(0))
        return wrap(result)
    if a._array.shape != b._array.shape:
        raise RuntimeError(f"{'sub' if negate else 'add'}: expected sizes of 'self' and 'other' to "
                           f"match, but {list(a._array.shape)} != {list(b._array.shape)}")
    first, second = a._data.astype(dtype, copy=False), b._data.astype(dtype, copy=False)
    if negate:
        second = np.negative(second)
    if same_places(a, b) or (a._layout is b._layout is COO and a._data.shape == b._data.shape
                             and np.array_equal(a._where[0], b._where[0])):
        return like(a, first + second)
    form = form_of(a)
    x, y = coordinates(a)[0], coordinates(b)[0]
    if a._layout is not COO or len(x) != len(y):
        both = [to_coo(t, sparse_dim_of(a)) for t in (like(a, first), like(b, second))]
        return as_form(_sum_of(*both, False), form)
    indices, data = np.concatenate([x, y], 1), np.concatenate([first, second])
    sorted_ = a._coalesced and b._coalesced
    if sorted_:
        indices, data = forms.coalesced(indices, data, a._array.shape)
    return make(COO, (indices,), data, a._array.shape, sorted_)


def to_coo(tensor: Tensor, sparse: int | None = None) -> Tensor:
    """`tensor` with coordinates of so many sparse dimensions."""
    sparse = sparse_dim_of(tensor) if sparse is None else sparse
    return as_form(tensor, (COO, sparse, None, tensor._array.ndim - sparse))


def _adder(op: Any, sign: int) -> Any:
    def apply(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
        if type(input) not in tensor_types or type(other) not in tensor_types:
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return op(input, other if alpha == 1 else basis.mul(other, alpha))
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
    return total(input) if not prod(target) - 1 and not len(target) else to_dense(
        input).sum_to_size(target)


# ---- products one by one ------------------------------------------------------------------------

def _mul_back(grad: Tensor, self: Any, other: Any, needs: list[bool]) -> list[Any]:
    return [basis.mul(grad, _conj(factor)) if need else None
            for factor, need in zip((other, self), needs)]


def _conj(value: Any) -> Any:
    if type(value) in tensor_types:
        return basis.conj(value) if value._array.dtype.kind == "c" else value
    return value.conjugate()


@sparse_op("MulBackward0", "self other", vjp=_mul_back)
def _mul(self: Any, other: Any) -> Tensor:
    if is_number(self):
        self, other = other, self
    if is_number(other):
        return like(self, basis.mul(wrap(self._data), other)._array)
    if not is_sparse(self):
        self, other = other, self
    if not is_sparse(other):
        return _mul_dense(self, other)
    if self._array.shape != other._array.shape:
        raise RuntimeError("mul operands have incompatible sizes: "
                           f"{list(self._array.shape)} and {list(other._array.shape)}")
    if same_places(self, other):
        return like(self, basis.mul(wrap(self._data), wrap(other._data))._array)
    if self._layout is COO and self._coalesced and not (other._layout is COO and other._coalesced):
        self, other = other, self
    form, n = form_of(self), sparse_dim_of(self)
    a, b = to_coo(self, n), to_coo(other, n)
    indices, data = a._where[0], a._data
    known, values = entries(b)
    place, hit = forms.found_at(known, indices, a._array.shape)
    product = basis.mul(wrap(data[hit]), wrap(values[place[hit]]))._array
    return as_form(make(COO, (indices[:, hit],), product, a._array.shape, a._coalesced), form)


def _mul_dense(self: SparseTensor, dense: Tensor) -> Tensor:
    shape = self._array.shape
    if not is_expandable_to(dense._array.shape, shape):
        raise RuntimeError(f"mul(sparse, dense): the dense operand of size "
                           f"{list(dense._array.shape)} does not broadcast to {list(shape)}")
    indices, data = coordinates(self)
    whole = np.broadcast_to(dense._array, shape)
    factor = whole[tuple(indices)] if len(indices) else whole[None]
    product = basis.mul(wrap(data), wrap(factor))._array
    return like(self, product.reshape(self._data.shape))


@rule("mul")
def mul(input: Any, other: Any) -> Tensor:
    return _mul(input, other)


def _div_back(grad: Tensor, self: Tensor, other: Any, needs: list[bool]) -> list[Any]:
    by = _conj(other)
    return [flambeau.div(grad, by) if needs[0] else None,
            basis.neg(total(flambeau.div(basis.mul(grad, _conj(self)), by * by)))
            if len(needs) > 1 and needs[1] else None]


@sparse_op("DivBackward0", "self other", vjp=_div_back)
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


# ---- matrix products ----------------------------------------------------------------------------

def _operand(tensor: Tensor) -> Any:
    """A matrix as SciPy's, in a type that it knows."""
    if not is_sparse(tensor):
        return _known(tensor._array)
    from scipy.sparse import coo_array
    indices, data = coordinates(tensor)
    return coo_array((_known(data), (indices[0], indices[1])), shape=tensor._array.shape).tocsr()


def _product_places(a: Tensor, b: Tensor) -> np.ndarray:
    """Where the product of two sparse matrices has terms."""
    ones = [_operand(like(t, np.ones(t._data.shape, np.float32))) for t in (a, b)]
    r = (ones[0] @ ones[1]).tocoo()
    places = np.stack([r.row, r.col]).astype(np.int64)
    return forms.coalesced(places, r.data, r.shape)[0]


def _known(array: np.ndarray) -> np.ndarray:
    kind = array.dtype
    return array if kind.kind in "biufc" and kind != np.float16 else array.astype(np.float32)


def _product(a: Tensor, b: Tensor) -> Tensor:
    x, y = a._array.shape, b._array.shape
    if x[-1] != y[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({x[0]}x{x[1]} and "
                           f"{y[0]}x{y[-1]})")
    if a._array.dtype != b._array.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a.dtype} != "
                           f"{b.dtype}")
    if is_sparse(a) and is_sparse(b):
        r = (_operand(a) @ _operand(b)).tocoo()
        known, data = forms.coalesced(np.stack([r.row, r.col]).astype(np.int64), r.data, r.shape)
        indices = _product_places(a, b)             # SciPy drops sums that happen to be zero
        data = forms.values_at(known, data.astype(a._array.dtype), indices, r.shape)
        result = make(COO, (indices,), data, r.shape, True)
        return result if COO in (a._layout, b._layout) else as_form(
            result, (forms.CSR, 2, None, 0))
    r = _operand(a) @ _operand(b) if is_sparse(a) else (_operand(b).T @ _operand(a).T).T
    return wrap(np.ascontiguousarray(r, a._array.dtype))


def _h(matrix: Tensor) -> Tensor:
    return _conj(flambeau.t(matrix))


def _mm_back(grad: Tensor, self: Tensor, other: Tensor, needs: list[bool]) -> list[Any]:
    return [flambeau.mm(grad, _h(other)) if needs[0] else None,
            flambeau.mm(_h(self), grad) if needs[1] else None]


_mm = sparse_op("MmBackward0", "self other", vjp=_mm_back)(_product)


@rule("mm")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    for name, matrix in (("self", input), ("mat2", mat2)):
        if matrix._array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    return _mm(input, mat2)


def _mv_back(grad: Tensor, self: Tensor, other: Tensor, needs: list[bool]) -> list[Any]:
    return [flambeau.outer(grad, _conj(other)) if needs[0] else None,
            flambeau.mv(_h(self), grad) if needs[1] else None]


_mv = sparse_op("MvBackward0", "self other", vjp=_mv_back)(_product)


@rule("mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    if not is_sparse(input) or is_sparse(vec):
        raise unsupported("mv", vec)
    return _mv(input, vec)


@rule("matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    m, n = input._array.ndim, other._array.ndim
    if (m, n) == (2, 2):
        return mm(input, other)
    if (m, n) == (2, 1):
        return mv(input, other)
    if (m, n) == (3, 3):
        return bmm(input, other)
    raise NotImplementedError(f"matmul of a sparse tensor: {m} and {n} dimensions")


@rule("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Pair by pair."""
    pairs = zip(unbind(input, 0) if is_sparse(input) else input.unbind(0),
                unbind(mat2, 0) if is_sparse(mat2) else mat2.unbind(0))
    return flambeau.stack([mm(a, b) for a, b in pairs])


def _masked_mm_back(grad: Tensor, self: Tensor, other: Tensor, needs: list[bool]) -> list[Any]:
    """As of `mm`, but of a sparse factor only at its own places."""
    grads: list[Any] = [None, None]
    if needs[0]:
        grads[0] = _at_places(self, grad, _h(other)) if is_sparse(self) \
            else flambeau.mm(grad, _h(other))
    if needs[1]:
        grads[1] = _at_places(other, _h(self), grad) if is_sparse(other) \
            else flambeau.mm(_h(self), grad)
    return grads


def _at_places(like_this: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The elements of a @ b where `like_this` has entries."""
    pattern = bare(coalesced(like_this))
    if is_sparse(a) or is_sparse(b):
        return masked(flambeau.mm(a, b), pattern)
    row, col = (wrap(i) for i in coordinates(pattern)[0])
    products = (a.index_select(0, row) * b.t().index_select(0, col)).sum(1)
    return with_values(products.reshape(pattern._data.shape), pattern)


_masked_mm = {node: sparse_op(node, "self other", vjp=_masked_mm_back)(_product)
              for node in ("SparseAddmmBackward0", "SparseSparseMatmulBackward0")}


@rule("sparse.mm")
def sparse_mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    if reduce is not None:
        return _reduced_mm(mat1, mat2, reduce)
    for matrix in (mat1, mat2):
        if matrix._array.ndim != 2:
            raise RuntimeError(f"sparse.mm: expected matrices, got {matrix.dim()} dimensions")
    if not is_sparse(mat1) and not is_sparse(mat2):
        return flambeau.mm(mat1, mat2)
    both = is_sparse(mat1) and is_sparse(mat2)
    if mat1._array.shape[1] != mat2._array.shape[0] and not both and is_sparse(mat1):
        raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size "
                           f"{mat1._array.shape[1]}, got {mat2._array.shape[0]}")
    node = "SparseSparseMatmulBackward0" if both else "SparseAddmmBackward0"
    return _masked_mm[node](mat1, mat2)


def _reduced_mm(mat1: Tensor, mat2: Tensor, reduce: str) -> Tensor:
    """sum, mean, amax or amin, over the entries of a row, of value times row of `mat2`."""
    if not is_sparse(mat1) or mat1._layout is not forms.CSR:
        raise RuntimeError("torch.sparse.mm: reduce expects a sparse csr matrix first")
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be one of sum, mean, amax, amin, got {reduce}")
    (row, col), _ = coordinates(mat1)
    terms = stored_values(mat1).unsqueeze(1) * mat2.index_select(0, wrap(col))
    start = flambeau.zeros(mat1._array.shape[0], mat2._array.shape[1], dtype=mat2.dtype)
    where = wrap(row).unsqueeze(1).expand(terms.shape)
    return start.scatter_reduce(0, where, terms, reduce, include_self=False)


def _added_mm(node: str, back: Any) -> Any:
    """beta · self + alpha · mat1 @ mat2, with the gradients that `back` gives of the product."""
    def vjp(grad: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any,
            needs: list[bool]) -> list[Any]:
        product = grad if alpha == 1 else basis.mul(grad, _conj(alpha))
        own = (grad if beta == 1 else basis.mul(grad, _conj(beta))) if needs[0] else None
        return [own, *back(product, mat1, mat2, needs[1:])]

    @sparse_op(node, "self mat1 mat2", "beta alpha", vjp=vjp)
    def op(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Tensor:
        product = _product(mat1, mat2)
        product = product if alpha == 1 else basis.mul(product, alpha)
        return product if beta == 0 else basis.add(
            self if beta == 1 else basis.mul(self, beta), product)
    return op


_addmm = _added_mm("AddmmBackward0", _mm_back)
_sparse_addmm = _added_mm("SparseAddmmBackward0", _masked_mm_back)


@rule("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _addmm(input, mat1, mat2, beta, alpha)


@rule("sparse.addmm")
def sparse_addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _sparse_addmm(mat, mat1, mat2, beta, alpha)


@rule("reshape", "view")
def reshape(input: Tensor, *shape: Any) -> Tensor:
    raise RuntimeError("reshape is not implemented for sparse tensors")


@rule("sparse.sampled_addmm")
def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1,
                  alpha: Any = 1) -> Tensor:
    """beta · input + alpha · (mat1 @ mat2) at the places of `input`."""
    if not is_sparse(input) or input._layout is not forms.CSR:
        raise RuntimeError("Expected input to have sparse csr layout, but got "
                           f"{forms.TITLES[input.layout]}")
    product = _at_places(input, mat1, mat2)
    return basis.add(basis.mul(input, beta), basis.mul(product, alpha))


@rule("dot", "vdot")
def dot(input: Tensor, other: Tensor) -> Tensor:
    if not is_sparse(input) or is_sparse(other):
        raise unsupported("dot", input if is_sparse(input) else other)
    return total(mul(input, other))


# ---- sums ---------------------------------------------------------------------------------------

@sparse_op("SumBackward0", vjp=lambda grad, self_shape: [flambeau.broadcast_to(grad, self_shape)])
def total(self: SparseTensor) -> Tensor:
    return flambeau.sum(wrap(self._data))


def _sum_back(grad: Tensor, dims: Any, pattern: SparseTensor, keepdim: bool) -> list[Tensor]:
    indices, data = coordinates(pattern)
    sparse, shape = len(indices), pattern._array.shape
    kept = [d for d in range(sparse) if d not in dims]
    flat = [n for d, n in enumerate(shape) if d in dims and d >= sparse]
    tail = tuple(1 if d in dims else n for d, n in enumerate(shape) if d >= sparse)
    rest = tuple(n for d, n in enumerate(shape) if d not in dims)
    if keepdim:
        grad = as_form(grad, None).reshape(rest)
    if kept:
        dense = tuple(n for d, n in enumerate(shape) if d >= sparse and d not in dims)
        places = make(COO, (indices[kept],), np.empty((len(data), *dense), data.dtype), rest)
        values = grad_values(grad, places)
    else:
        values = to_dense(grad).unsqueeze(0)
    if flat:
        values = values.reshape(len(data) if kept else 1, *tail)
    return [with_values(values.expand(data.shape).clone(), pattern)]


def _summed(self: SparseTensor, dims: Any, pattern: SparseTensor, keepdim: bool) -> Tensor:
    indices, data = coordinates(self)
    sparse, shape = len(indices), self._array.shape
    kept = [d for d in range(sparse) if d not in dims]
    inner = tuple(d - sparse + 1 for d in dims if d >= sparse)
    if inner:
        data = data.sum(inner, dtype=data.dtype)
    if not kept:
        result: Tensor = wrap(np.asarray(data.sum(0, dtype=data.dtype)))
        return result.reshape([1 if d in dims else n for d, n in enumerate(shape)]) if keepdim \
            else result
    rest = tuple(n for d, n in enumerate(shape) if d not in dims)
    indices, data = forms.coalesced(indices[kept], data, rest)
    result = make(COO, (indices,), data, rest, True)
    for dim in dims if keepdim else ():
        result = unsqueeze(result, dim)
    return result


_sum_dims = {node: sparse_op(node, params="dims pattern keepdim", vjp=_sum_back)(_summed)
             for node in ("SumBackward1", "SparseSumBackward0")}


def _sum(input: Tensor, dim: Any, keepdim: bool, dtype: Any, node: str) -> Tensor:
    if dtype is not None:
        input = input.to(dtype)
    elif input._array.dtype.kind in "bui":
        input = input.to(flambeau.tensor(0).dtype)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return total(input)
    dims = wrap_dims((dim,) if isinstance(dim, int) else tuple(dim), input._array.ndim)
    source = coalesced(input)
    result = _sum_dims[node](source, tuple(sorted(dims)), bare(source), keepdim)
    if is_sparse(result) and input._layout is not COO and keepdim:
        return as_form(result, form_of(input))
    return result


@rule("sum")
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return _sum(input, dim, keepdim, dtype, "SumBackward1")


@rule("sparse.sum")
def sparse_sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    if not is_sparse(input):
        raise unsupported("_sparse_sum", input)
    return _sum(input, dim, False, dtype, "SparseSumBackward0")


@rule("mean")
def mean(input: Tensor, dim: Any = None, *, dtype: Any = None) -> Tensor:
    if dim is not None:
        raise unsupported("mean", input)
    return total(input if dtype is None else input.to(dtype)) / input._array.size


@rule("norm")
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False,
         dtype: Any = None) -> Tensor:
    if dim not in (None, (), []) or keepdim:
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must "
                           "either be empty or contain all dimensions of the input")
    return flambeau.norm(stored_values(coalesced(input)), 2 if p == "fro" or p is None else p)


@rule("any")
def any_(input: Tensor, *_: Any) -> Tensor:
    return flambeau.any(wrap(coalesced(input.detach())._data))


# ---- softmax ------------------------------------------------------------------------------------

def _softmax_of(pattern: SparseTensor, dim: int, log: bool) -> Any:
    """Softmax of values over the entries that differ only in dimension `dim`."""
    indices, sparse = pattern._where[0], sparse_dim_of(pattern)
    if dim >= sparse:
        name = "log_softmax" if log else "softmax"
        return lambda v: getattr(flambeau, name)(v, dim - sparse + 1)
    others = [d for d in range(sparse) if d != dim]
    flat = forms.flat_index(indices[others], [pattern._array.shape[d] for d in others])
    groups, of = np.unique(flat, return_inverse=True)
    of = wrap(of.astype(np.int64))

    def function(v: Tensor) -> Tensor:
        top = np.full((len(groups), *v.shape[1:]), -np.inf, v._array.dtype)
        np.maximum.at(top, of._array, v._array)
        shifted = v - wrap(top)[of]
        sums = flambeau.zeros(len(groups), *v.shape[1:], dtype=v.dtype).index_add(
            0, of, shifted.exp())
        return shifted - sums.log()[of] if log else shifted.exp() / sums[of]
    return function


def _softmax_rule(name: str, node: str, log: bool) -> Any:
    def apply(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        if not is_sparse(input) or input._layout is not COO:
            raise unsupported(f"_sparse_{name}", input)
        source = coalesced(input if dtype is None else input.to(dtype))
        dim = wrap_dim(dim, source._array.ndim)
        return through_values(node, source, _softmax_of(bare(source), dim, log))
    return apply


rules["sparse.softmax"] = _softmax_rule("softmax", "SparseSoftmaxBackward0", False)
rules["sparse.log_softmax"] = _softmax_rule("log_softmax", "SparseLogSoftmaxBackward0", True)


# ---- places -------------------------------------------------------------------------------------

def _moved_back(grad: Tensor, take: Any, pattern: SparseTensor, source: SparseTensor) -> list[Any]:
    values = grad_values(grad, pattern)
    if take is not None:
        zeros = flambeau.zeros(source._data.shape, dtype=values.dtype)
        values = zeros.index_add(0, wrap(take), values)
    return [with_values(values.reshape(source._data.shape), source)]


_movers: dict[str, Any] = {}


def moved(node: str, self: SparseTensor, indices: np.ndarray, shape: Any, take: Any = None,
          sorted_: bool = False) -> SparseTensor:
    """The entries `take` of a tensor (None: all) at other places."""
    op = _movers.get(node)
    if op is None:
        @sparse_op(node, params="take pattern source", vjp=_moved_back)
        def op(self: SparseTensor, take: Any, pattern: Any, source: Any) -> SparseTensor:
            data = self._data if take is None else self._data[take]
            return like(pattern, data)
        _movers[node] = op
    data = self._data if take is None else self._data[take]
    pattern = make(COO, (indices,), data, shape, sorted_)
    return op(self, take, pattern, bare(self))


def _prepared(input: Tensor) -> Tensor:
    """Coordinates; coalesced where a gradient must know each place once."""
    tensor = to_coo(input)
    return coalesced(tensor) if tracked(tensor) else tensor


@rule("t")
def t(input: Tensor) -> Tensor:
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is "
                           f"{input._array.ndim}D")
    return input if input._array.ndim < 2 else _transposed(input, 0, 1, "TBackward0")


rules["numpy_T"] = t


@rule("transpose", "swapaxes", "swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    ndim = input._array.ndim
    return _transposed(input, wrap_dim(dim0, ndim), wrap_dim(dim1, ndim), "TransposeBackward0")


def _transposed(input: Tensor, dim0: int, dim1: int, node: str) -> Tensor:
    return _transposers[node](input, dim0, dim1)


_TURNED = {forms.CSR: forms.CSC, forms.CSC: forms.CSR, forms.BSR: forms.BSC, forms.BSC: forms.BSR}


def _transpose(self: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    shape, sparse = [*self._array.shape], sparse_dim_of(self)
    if max(dim0, dim1) >= sparse and dim0 != dim1:
        raise RuntimeError("sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
                           f"{sparse}, d0: {dim0}, d1: {dim1}")
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    if self._layout is COO:
        order = list(range(sparse))
        order[dim0], order[dim1] = dim1, dim0
        return make(COO, (self._where[0][order],), self._data, shape,
                    self._coalesced and dim0 == dim1)
    if {dim0, dim1} != {sparse - 2, sparse - 1}:
        raise NotImplementedError("transpose of a batch dimension of a compressed tensor")
    data = self._data
    if self._layout in forms.BLOCKED:
        at = self._where[1].ndim
        data = data.swapaxes(at, at + 1)
    return make(_TURNED[self._layout], self._where, data, shape)


_transposers = {
    "TransposeBackward0": sparse_op(
        "TransposeBackward0", params="dim0 dim1",
        vjp=lambda grad, dim0, dim1: [flambeau.transpose(grad, dim0, dim1)])(_transpose),
    "TBackward0": sparse_op("TBackward0", params="dim0 dim1",
                            vjp=lambda grad: [flambeau.t(grad)])(_transpose)}


@rule("permute", "permute_to")
def permute(input: Tensor, *dims: Any) -> Tensor:
    source = _prepared(input)
    dims = wrap_dims(tuple(size_of(dims)), source._array.ndim)
    sparse = sparse_dim_of(source)
    if len(dims) != source._array.ndim:
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not "
                           "match the length of the desired ordering of dimensions i.e. input.dim()"
                           f" = {source._array.ndim} is not equal to len(dims) = {len(dims)}")
    if tuple(dims[sparse:]) != tuple(range(sparse, len(dims))):
        raise NotImplementedError("permute of a sparse tensor: only its sparse dimensions may move")
    shape = [source._array.shape[d] for d in dims]
    order = list(dims[:sparse])
    return moved("PermuteBackward0", source, source._where[0][order], shape, None,
                 source._coalesced and order == sorted(order))


@rule("unsqueeze")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    source = _prepared(input)
    dim, shape = wrap_dim(dim, source._array.ndim + 1), [*source._array.shape]
    if dim > sparse_dim_of(source):
        raise NotImplementedError("unsqueeze of a sparse tensor among its dense dimensions")
    shape.insert(dim, 1)
    return moved("UnsqueezeBackward0", source, np.insert(source._where[0], dim, 0, axis=0), shape,
                 None, source._coalesced)


@rule("select")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    ndim = input._array.ndim
    dim, index = wrap_dim(dim, ndim), int(index)
    n = input._array.shape[dim]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size "
                         f"{list(input._array.shape)} at dimension {dim}")
    index += n if index < 0 else 0
    source, sparse = _prepared(input), sparse_dim_of(input)
    shape = [m for d, m in enumerate(source._array.shape) if d != dim]
    if dim >= sparse:
        values = stored_values(coalesced(source)).select(dim - sparse + 1, index)
        return with_values(values, make(COO, coalesced(source)._where, values._array, shape, True))
    take = np.flatnonzero(source._where[0][dim] == index)
    if sparse == 1:
        return stored_values(source).index_select(0, wrap(take)).sum(0)
    return moved("SelectBackward0", source, np.delete(source._where[0], dim, 0)[:, take], shape,
                 take, source._coalesced)


@rule("unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(select(input, dim, i) for i in range(input.size(dim)))


@rule("narrow_copy")
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    source = _prepared(input)
    dim, shape = wrap_dim(dim, source._array.ndim), [*source._array.shape]
    start = int(start) + (shape[dim] if start < 0 else 0)
    if not 0 <= start <= start + length <= shape[dim]:
        raise RuntimeError(f"narrow_copy: start ({start}) + length ({length}) exceeds dimension "
                           f"size ({shape[dim]}).")
    shape[dim] = length
    sparse = sparse_dim_of(source)
    if dim >= sparse:
        source = coalesced(source)
        values = stored_values(source).narrow(dim - sparse + 1, start, length)
        return with_values(values, make(COO, source._where, values._array, shape, True))
    along = source._where[0][dim]
    take = np.flatnonzero((along >= start) & (along < start + length))
    indices = source._where[0][:, take].copy()
    indices[dim] -= start
    return moved("NarrowCopyBackward0", source, indices, shape, take, source._coalesced)


@rule("index_select")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    source = _prepared(input)
    dim, shape = wrap_dim(dim, source._array.ndim), [*source._array.shape]
    wanted, sparse = index._array.reshape(-1), sparse_dim_of(source)
    if wanted.size and not -shape[dim] <= wanted.min() <= wanted.max() < shape[dim]:
        raise IndexError("index_select(): index contains an index that is out of range for tensor "
                         f"of size {list(shape)} at dimension {dim}")
    wanted = np.where(wanted < 0, wanted + shape[dim], wanted)
    shape[dim] = len(wanted)
    if dim >= sparse:
        source = coalesced(source)
        values = stored_values(source).index_select(dim - sparse + 1, wrap(wanted))
        return with_values(values, make(COO, source._where, values._array, shape, True))
    along = source._where[0][dim]
    order = np.argsort(wanted, kind="stable")
    first = np.searchsorted(wanted[order], along, "left")
    count = np.searchsorted(wanted[order], along, "right") - first
    take = np.repeat(np.arange(len(along)), count)
    within = np.arange(len(take)) - np.repeat(np.cumsum(count) - count, count)
    slot = order[np.repeat(first, count) + within]
    by_slot = np.argsort(slot, kind="stable")
    take, slot = take[by_slot], slot[by_slot]
    indices = source._where[0][:, take].copy()
    indices[dim] = slot
    return moved("IndexSelectBackward0", source, indices, shape, take)


@rule("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> Tensor:
    if not all(is_sparse(x) for x in tensors):
        raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found at position "
                           f"{[is_sparse(x) for x in tensors].index(False)}.")
    sources = [_prepared(x) for x in tensors]
    dim = wrap_dim(dim, sources[0]._array.ndim)
    shape, sparse = [*sources[0]._array.shape], sparse_dim_of(sources[0])
    if any(sparse_dim_of(s) != sparse for s in sources) or dim >= sparse:
        raise NotImplementedError("cat of sparse tensors along a dense dimension, or of different "
                                  "numbers of sparse dimensions")
    shape[dim] = int(np.sum([s._array.shape[dim] for s in sources]))
    parts, offset = [], 0
    for source in sources:
        indices = source._where[0].copy()
        indices[dim] += offset
        offset += source._array.shape[dim]
        parts.append(indices)
    values = flambeau.cat([stored_values(s) for s in sources])
    ordered = dim == 0 and all(s._coalesced for s in sources)
    return with_values(values, make(COO, (np.concatenate(parts, 1),), values._array, shape, ordered))


@rule("stack")
def stack(tensors: Any, dim: int = 0) -> Tensor:
    return cat([unsqueeze(x, dim) for x in tensors], dim)


@rule("getitem__", "getitem")
def getitem(input: Tensor, index: Any) -> Tensor:
    """Integers, whole slices, None and `...`; a slice with bounds copies."""
    items = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [i for i in items if not isinstance(i, Tensor)]:
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
        given = len([i for i in items if i is not None]) - 1
        items[at:at + 1] = [slice(None)] * (input._array.ndim - given)
    if len([i for i in items if i is not None]) > input._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim}")
    result, dim = input, 0
    for item in items:
        if item is None:
            result, dim = flambeau.unsqueeze(result, dim), dim + 1
        elif isinstance(item, slice):
            start, stop, step = item.indices(result._array.shape[dim])
            if step != 1:
                raise NotImplementedError("slices of a sparse tensor with a step")
            if (start, stop) != (0, result._array.shape[dim]):
                result = narrow_copy(result, dim, start, max(stop - start, 0)) if is_sparse(result) \
                    else result.narrow(dim, start, max(stop - start, 0))
            dim += 1
        elif isinstance(item, Tensor) and item._array.ndim:
            result, dim = flambeau.index_select(result, dim, item), dim + 1
        else:
            result = flambeau.select(result, dim, int(item))
    return result


@rule("resize_as_sparse_")
def resize_as_sparse(input: Tensor, template: Tensor) -> Tensor:
    return empty(template._array.shape, input._array.dtype, template._layout)


__all__ = ["rules"]
