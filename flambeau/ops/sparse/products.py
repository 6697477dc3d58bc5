"""Products of matrices, of which some are sparse.

The gradient of a sparse factor is dense for `mm`; `sparse.mm` computes it only at
the places of the factor.
"""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau.core.modes import interceptors
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, wrap
from flambeau.kernels.linalg import sparse_products as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.pointwise.arithmetic import add, mul
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.calls import rule
from flambeau.ops.sparse.compressed import COO
from flambeau.ops.sparse.tensors import (
    SparseTensor,
    conjugate,
    coordinates,
    is_recorded,
    is_sparse,
    like,
    make_sparse,
    without_history,
)
from flambeau.ops.sparse.values import (
    as_form,
    coalesced,
    masked,
    sparse_op,
    stored_values,
    with_values,
)

# ---- matrix products ----------------------------------------------------------------------------

def operand(tensor: SparseTensor) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """A sparse matrix as its places, elements and shape."""
    return (*coordinates(tensor), tensor._array.shape)


def _product_places(a: SparseTensor, b: SparseTensor) -> np.ndarray:
    """Where the product of two sparse matrices has terms."""
    ones = [operand(like(t, np.ones(t._data.shape, np.float32))) for t in (a, b)]
    places, data = kernels.multiply_sparse(*ones[0], *ones[1])
    return forms.coalesced(places, data, (a._array.shape[0], b._array.shape[1]))[0]


def _product(a: Tensor, b: Tensor) -> Tensor:
    x, y = a._array.shape, b._array.shape
    if x[-1] != y[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({x[0]}x{x[1]} and "
                           f"{y[0]}x{y[-1]})")
    if a._array.dtype != b._array.dtype:
        if is_sparse(a) and is_sparse(b):
            raise RuntimeError(f"mat1 dtype {type_name(a.dtype)} does not match mat2 dtype "
                               f"{type_name(b.dtype)}")
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a.dtype} != "
                           f"{b.dtype}")
    if is_sparse(a) and is_sparse(b):
        shape = (x[0], y[1])
        left, right = operand(a), operand(b)
        indices, data = kernels.multiply_sparse(*left, *right)
        if not kernels.in_order(left[1], right[1]):
            known, data = forms.coalesced(indices, data, shape)
            indices = _product_places(a, b)         # SciPy drops sums that happen to be zero
            data = forms.values_at(known, data.astype(a._array.dtype), indices, shape)
        result = make_sparse(COO, (indices,), data, shape, True)
        return result if COO in (a._layout, b._layout) else as_form(
            result, (forms.CSR, 2, None, 0))
    if is_sparse(a):
        d = b._array
        if a._layout is forms.CSR and d.dtype.char in "fd" and a._data.ndim == 1 and d.ndim < 3:
            outer, inner = a._where
            r = kernels.reduced(outer, inner, a._data, d if d.ndim == 2 else d[:, None], "sum")
            return wrap(r if d.ndim == 2 else r[:, 0])
        r = kernels.multiply(*operand(a), d)
    else:
        assert is_sparse(b)
        places, data, size = operand(b)
        r = kernels.multiply(places[::-1], data, size[::-1], a._array.T).T
    return wrap(np.ascontiguousarray(r, a._array.dtype))


def _adjoint(matrix: Tensor) -> Tensor:
    return conjugate(flambeau.t(matrix))


def _mm_vjp(grad: Tensor, self: Tensor, other: Tensor, needs: list[bool]) -> list[Any]:
    return [flambeau.mm(grad, _adjoint(other)) if needs[0] else None,
            flambeau.mm(_adjoint(self), grad) if needs[1] else None]


_mm = sparse_op("MmBackward0", "self other", vjp=_mm_vjp)(_product)


@rule("mm")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    for name, matrix in (("self", input), ("mat2", mat2)):
        if matrix._array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    return _mm(input, mat2)


def _mv_vjp(grad: Tensor, self: Tensor, other: Tensor, needs: list[bool]) -> list[Any]:
    return [flambeau.outer(grad, conjugate(other)) if needs[0] else None,
            flambeau.mv(_adjoint(self), grad) if needs[1] else None]


_mv = sparse_op("MvBackward0", "self other", vjp=_mv_vjp)(_product)


@rule("mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    if not is_sparse(input):
        return NotImplemented
    if input._array.ndim != 2 or vec._array.ndim != 1:
        kinds = ["SparseTensor" if is_sparse(x) else "Tensor" for x in (input, vec)]
        raise RuntimeError("mv: two tensor dim should be 2 and 1, but got "
                           f"{kinds[0]} Dim: {input._array.ndim}Tensor Dim: {vec._array.ndim}")
    if is_sparse(vec):
        return NotImplemented
    if input._array.shape[-1] != vec._array.shape[-1]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
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
    if (m, n) == (1, 2) and is_sparse(other) and not is_sparse(input):
        return mv(other.t(), input)
    raise NotImplementedError(f"matmul of a sparse tensor: {m} and {n} dimensions")


@rule("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Pair by pair."""
    pairs = zip(input.unbind(0), mat2.unbind(0))
    return flambeau.stack([mm(a, b) for a, b in pairs])


def _masked_mm_vjp(grad: Tensor, self: Tensor, other: Tensor, needs: list[bool]) -> list[Any]:
    """As of `mm`, but of a sparse factor only at its own places."""
    grads: list[Any] = [None, None]
    if needs[0]:
        grads[0] = at_places(self, grad, _adjoint(other)) if is_sparse(self) \
            else flambeau.mm(grad, _adjoint(other))
    if needs[1]:
        grads[1] = at_places(other, _adjoint(self), grad) if is_sparse(other) \
            else flambeau.mm(_adjoint(self), grad)
    return grads


def at_places(like_this: SparseTensor, a: Tensor, b: Tensor) -> Tensor:
    """The elements of a @ b where `like_this` has entries."""
    pattern = without_history(coalesced(like_this))
    if is_sparse(a) or is_sparse(b):
        return masked(flambeau.mm(a, b), pattern)
    row, col = (wrap(i) for i in coordinates(pattern)[0])
    products = (a.index_select(0, row) * b.t().index_select(0, col)).sum(1)
    return with_values(products.reshape(pattern._data.shape), pattern)


_masked_mm = {node: sparse_op(node, "self other", vjp=_masked_mm_vjp)(_product)
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


def _fits_kernel(sparse: SparseTensor, *dense: Tensor) -> bool:
    """Are these a compressed matrix and dense ones of its type, float32 or float64, which nobody
    watches or differentiates by?"""
    kind = sparse._data.dtype
    if interceptors or kind.char not in "fd" or sparse._array.ndim != 2:
        return False
    for t in dense:
        if type(t) is not Tensor or t._array.ndim != 2 or t._array.dtype != kind:
            return False
    return sparse._array.shape[1] == dense[-1]._array.shape[len(dense) - 1] \
        and not is_recorded(sparse, *dense)


_REDUCTIONS = frozenset({"sum", "mean", "amax", "amin"})
_SAME_REDUCTION = {"max": "amax", "min": "amin"}


def _reduced_mm(mat1: Tensor, mat2: Tensor, reduce: str) -> Tensor:
    """sum, mean, amax or amin, over the entries of a row, of value times row of `mat2`."""
    if not is_sparse(mat1) or mat1._layout is not forms.CSR:
        raise RuntimeError("torch.sparse.mm: reduce expects a sparse csr matrix first")
    reduce = _SAME_REDUCTION.get(reduce, reduce)
    if reduce in _REDUCTIONS and _fits_kernel(mat1, mat2):
        outer, inner = mat1._where
        return wrap(kernels.reduced(outer, inner, mat1._data, mat2._array, reduce))
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    if reduce not in _REDUCTIONS:
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got "
                           f"{reduce}")
    refuse(mat1._array, "bBilUcW8", "spmm_reduce_kernel")
    (row, col), _ = coordinates(mat1)
    terms = stored_values(mat1).unsqueeze(1) * mat2.index_select(0, wrap(col))
    start = flambeau.zeros(mat1._array.shape[0], mat2._array.shape[1], dtype=mat2.dtype)
    where = wrap(row).unsqueeze(1).expand(terms.shape)
    return start.scatter_reduce(0, where, terms, reduce, include_self=False)


def _added_mm(node: str, back: Any) -> Any:
    """beta · self + alpha · mat1 @ mat2, with the gradients that `back` gives of the product."""
    def vjp(grad: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any,
            needs: list[bool]) -> list[Any]:
        product = grad if alpha == 1 else mul(grad, conjugate(alpha))
        own = (grad if beta == 1 else mul(grad, conjugate(beta))) if needs[0] else None
        return [own, *back(product, mat1, mat2, needs[1:])]

    @sparse_op(node, "self mat1 mat2", "beta alpha", vjp=vjp)
    def op(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Tensor:
        product = _product(mat1, mat2)
        product = product if alpha == 1 else mul(product, alpha)
        return product if beta == 0 else add(
            self if beta == 1 else mul(self, beta), product)
    return op


_addmm = _added_mm("AddmmBackward0", _mm_vjp)


@rule("nn.functional.linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    turned = weight.t()
    return flambeau.mm(input, turned) if bias is None else flambeau.addmm(bias, input, turned)


_sparse_addmm = _added_mm("SparseAddmmBackward0", _masked_mm_vjp)


@rule("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _addmm(input, mat1, mat2, beta, alpha)


@rule("sparse.addmm")
def sparse_addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    if not any(is_sparse(t) for t in (mat, mat1, mat2)):
        return flambeau.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)
    return _sparse_addmm(mat, mat1, mat2, beta, alpha)


@rule("reshape")
def reshape(input: SparseTensor, *shape: Any) -> Tensor:
    if input._layout is not forms.COO:
        raise RuntimeError("Sparse CSR tensors do not have is_contiguous")
    raise RuntimeError("reshape is not implemented for sparse tensors")


@rule("sparse.sampled_addmm")
def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1,
                  alpha: Any = 1) -> Tensor:
    """beta · input + alpha · (mat1 @ mat2) at the places of `input`."""
    if not is_sparse(input) or input._layout is not forms.CSR:
        raise RuntimeError("Expected input to have sparse csr layout, but got "
                           f"{forms.TITLES[input.layout]}")
    refuse(input._array, "bBilUeW8", "sparse_sampled_addmm: Expected self to be a floating-point "
           "or complex tensor, but got {}")
    if _fits_kernel(input, mat1, mat2) and mat1._array.shape == (
            input._array.shape[0], mat2._array.shape[0]):
        outer, inner = input._where
        found = alpha * kernels.sampled(outer, inner, mat1._array, mat2._array)
        data = found if beta == 0 else beta * input._data + found
        return with_values(wrap(data.astype(input._data.dtype, copy=False)), without_history(input))
    product = at_places(input, mat1, mat2)
    return add(mul(input, beta), mul(product, alpha))


@rule("dot", "vdot")
def dot(input: Tensor, other: Tensor) -> Tensor:
    if not is_sparse(input) or is_sparse(other):
        return NotImplemented
    return mul(input, other).sum()
