"""A product added to something: beta · input + alpha · (a product of two further tensors).

One kernel and one set of rules for all: what differs is the product, and how far half precision
goes. As in torch, `input` broadcasts, and beta 0 leaves it out, NaN or not.
"""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core.dtypes import FLOATING, bool_
from flambeau.core.promotion import c_name, convert, is_half, result_type, type_name
from flambeau.core.shapes import is_expandable_to
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels._extension import compiled
from flambeau.ops.coercion import within
from flambeau.ops.linalg.matmul import (
    bmm,
    conj,
    conjugate_t,
    conjugate_transposes,
    fits,
    matmul,
    mv,
    product,
    product_in_single,
    same_as_mv,
    to_left,
    to_right,
    unlike_sizes,
    with_out_dtype,
)
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.pointwise.arithmetic import add, mul
from flambeau.ops.reduction.sums import sum
from flambeau.ops.view.conversion import cast
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import expand, movedim, t, unsqueeze

_SINGLE = np.dtype(np.float32)


def _weighted_sum(self: np.ndarray, product: np.ndarray, beta: Any, alpha: Any) -> np.ndarray:
    """beta · self + alpha · product, where `product` may be written to."""
    d = product.dtype
    beta, alpha = within(product, beta), within(product, alpha)
    if alpha != 1:
        product = kernels.multiply(product, np.asarray(alpha).astype(d))
    if beta == 0:
        return product
    if beta != 1:
        self = kernels.multiply(self, np.asarray(beta).astype(d))
    return kernels.add(self, product)


def _in_single(self: np.ndarray, a: np.ndarray, b: np.ndarray, beta: Any, alpha: Any,
               name: str = "addmm_impl_cpu_") -> Any:
    """Half types, and narrower ones, in single precision, rounded once."""
    if a.dtype.itemsize > 2 or a.dtype not in FLOATING:
        return _weighted_sum(self, product(a, b, name), beta, alpha)
    found = product_in_single(a, b, True)
    return convert(_weighted_sum(convert(self, _SINGLE), found, beta, alpha), a.dtype)


def _check_factors(self: np.ndarray, a: np.ndarray, b: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise Misfit unless the types agree, and `self` expands to the shape of the result."""
    fits(self.dtype == a.dtype == b.dtype and is_expandable_to(self.shape, shape))


@compiled("addmm")
def _addmm(self: np.ndarray, a: np.ndarray, b: np.ndarray, beta: Any, alpha: Any) -> Any:
    fits(a.ndim == 2 and b.ndim == 2 and a.shape[1] == b.shape[0])
    _check_factors(self, a, b, (a.shape[0], b.shape[1]))
    return _in_single(self, a, b, beta, alpha)


@compiled("baddbmm")
def _baddbmm(self: np.ndarray, a: np.ndarray, b: np.ndarray, beta: Any, alpha: Any) -> Any:
    fits(a.ndim == 3 and b.ndim == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1])
    _check_factors(self, a, b, (*a.shape[:2], b.shape[2]))
    return _in_single(self, a, b, beta, alpha, "baddbmm")


@compiled("addmv")
def _addmv(self: np.ndarray, a: np.ndarray, b: np.ndarray, beta: Any, alpha: Any) -> Any:
    """As `_in_single`, but beta · self is rounded to its half type, as are both factors."""
    fits(a.ndim == 2 and b.ndim == 1 and a.shape[1] == b.shape[0])
    _check_factors(self, a, b, a.shape[:1])
    d = a.dtype
    if is_half(d) and (beta != 1 or alpha != 1):
        beta, alpha = (float(np.asarray(x).astype(d)) for x in (beta, alpha))
        if beta not in (0, 1):
            self, beta = kernels.multiply(self, np.asarray(beta).astype(d)), 1
    return _in_single(self, a, b, beta, alpha, "addmv_impl_cpu")


@compiled("addbmm")
def _addbmm(self: np.ndarray, a: np.ndarray, b: np.ndarray, beta: Any, alpha: Any) -> Any:
    """One matrix after the other; half types, and narrower ones, are rounded after each."""
    fits(a.ndim == 3 and b.ndim == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1])
    _check_factors(self, a, b, (a.shape[1], b.shape[2]))
    if a.dtype.itemsize > 2 or a.dtype not in FLOATING or not len(a):
        return _weighted_sum(self, np.sum(product(a, b), 0, dtype=a.dtype), beta, alpha)
    for x, y in zip(a, b):
        self, beta = _in_single(self, x, y, beta, alpha), 1
    return self


@compiled("addr")
def _addr(self: np.ndarray, a: np.ndarray, b: np.ndarray, beta: Any, alpha: Any) -> Any:
    """Each step rounded; truth values are combined by "and" and "or"."""
    d = a.dtype
    fits(a.ndim == 1 and b.ndim == 1
         and (d.kind not in "bui" or (isinstance(beta, int) and isinstance(alpha, int))))
    _check_factors(self, a, b, a.shape + b.shape)
    if d.kind == "b":
        found = bool(alpha) & a[:, None] & b
        return found | self if beta else found
    scaled = a if alpha == 1 else kernels.multiply(a, np.asarray(within(a, alpha)).astype(d))
    return _weighted_sum(self, kernels.multiply(scaled[:, None], b), beta, 1)


def _scale_grad(grad: Tensor, factor: Any) -> Tensor:
    return grad if factor == 1 else mul(grad, factor.conjugate())


def _declare(name: str, kernel: Any, multiply: Any, factors: str, **declared: Any) -> Any:
    """Declare such an op: its kernel, its product over leading dimensions, its two factors."""

    def batched(size: int, dims: Any, self: Tensor, a: Tensor, b: Tensor, beta: Any,
                alpha: Any) -> Any:
        self, a, b = (x if d is None else movedim(x, d, 0) for x, d in zip((self, a, b), dims))
        found = multiply(a, b)
        if found.dtype is bool_:            # "and" and "or", to which numbers are true or false
            alpha, beta = bool(alpha), bool(beta)
        if alpha != 1:
            found = mul(found, alpha)
        if beta == 0:
            return expand(found, (size, *found._array.shape)) if dims[1] is dims[2] is None \
                else found, 0
        if dims[0] is not None:
            shape = self._array.shape
            rank = found._array.ndim + (dims[1] is dims[2] is None)
            self = reshape(self, (size, *(1,) * (rank - len(shape)), *shape[1:]))
        return add(self if beta == 1 else mul(self, beta), found), 0

    given = ", ".join([f"Tensor {factor}" for factor in factors.split()])
    return op(f"{name}(Tensor self, {given}, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
              deprecated=(f"{name}(Scalar beta, Tensor self, Scalar alpha, {given}) -> Tensor",
                          f"{name}(Scalar beta, Tensor self, {given}) -> Tensor"),
              kernel=kernel, kernel_checks=True, batch=batched, inplace=True, overlap="element",
              d_self=lambda grad, beta: _scale_grad(grad, beta), **declared)


def _check(input: Tensor, shape: tuple[int, ...]) -> None:
    if not is_expandable_to(input._array.shape, shape):
        expand(input, shape)                    # which says what is wrong


def _check_written(self: Tensor, shape: tuple[int, ...]) -> None:
    """Raise for a tensor that the in-place form would have to broadcast."""
    if self._array.shape != shape:
        raise RuntimeError(f"Bad in-place call: input tensor size {[*self._array.shape]} and "
                           f"output tensor size {[*shape]} should match")


def _same_types(input: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    names = [type_name(t.dtype) for t in (input, mat1, mat2)]
    for other, first in (("self", names[0]), ("mat1", names[1])):
        if first != names[2]:
            raise RuntimeError(f"{other} and mat2 must have the same dtype, but got {first} and "
                               f"{names[2]}")


def _check_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any,
                 check: Any = _check) -> Any:
    _same_types(self, mat1, mat2)
    a, b = mat1._array.shape, mat2._array.shape
    for name, shape in (("mat1", a), ("mat2", b)):
        if len(shape) != 2:
            raise RuntimeError(f"{name} must be a matrix, got {len(shape)}-D tensor")
    if a[1] != b[0]:
        raise unlike_sizes(mat1, mat2, a, b)
    check(self, (a[0], b[1]))
    return self, mat1, mat2, beta, alpha


addmm = _declare("addmm", _addmm, matmul, "mat1 mat2", canonical=_check_addmm,
                 inplace_first=partial(_check_addmm, check=_check_written),
                 refuses=("addmm_impl_cpu_", "bUW0"), autocast="lower", out_type=OUT_TYPE,
                 d_mat1=lambda grad, mat2, alpha, mat1_by_columns: _scale_grad(
                     to_left(grad, mat2, mat1_by_columns), alpha),
                 d_mat2=lambda grad, mat1, alpha, mat2_by_columns: _scale_grad(
                     to_right(grad, mat1, mat2_by_columns), alpha),
                 doc="""beta · input + alpha · mat1 @ mat2, where `input` broadcasts; beta 0
    ignores `input`.

    >>> import flambeau
    >>> flambeau.addmm(flambeau.ones(2), flambeau.ones(1, 3), flambeau.ones(3, 2), alpha=2)
    tensor([[7., 7.]])
    """)


def _product_mv(mat: Tensor, vec: Tensor) -> Tensor:
    return matmul(mat, unsqueeze(vec, -1)).squeeze(-1)


def _check_addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> Any:
    a, b, c = mat._array.shape, vec._array.shape, self._array.shape
    if len(a) != 2 or len(b) != 1 or len(c) > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {len(c)}, {len(a)}, {len(b)}")
    if a[1] != b[0] or (c and c[0] not in (a[0], 1)):
        raise RuntimeError(f"size mismatch, got input ({self.size(0)}), mat ({a[0]}x{a[1]}), "
                           f"vec ({b[0]})")
    same_as_mv(self, mat, vec)
    return self, mat, vec, beta, alpha


def _check_written_addmv(*given: Any) -> None:
    self, mat, *_ = _check_addmv(*given)
    _check_written(self, mat._array.shape[:1])


addmv = _declare("addmv", _addmv, _product_mv, "mat vec", canonical=_check_addmv,
                 inplace_first=_check_written_addmv,
                 refuses=("addmv_impl_cpu", "bUW8"), autocast="untouched", out_type=OUT_TYPE,
                 inplace_function=True,
                 d_mat=lambda grad, vec, alpha: mul(unsqueeze(_scale_grad(grad, alpha), -1),
                                                    conj(vec)),
                 d_vec=lambda grad, mat, alpha: mv(conjugate_t(mat), _scale_grad(grad, alpha)),
                 doc="""beta · input + alpha · mat @ vec.

    >>> import flambeau
    >>> flambeau.addmv(flambeau.ones(2), flambeau.ones(2, 3), flambeau.ones(3))
    tensor([4., 4.])
    """)


def _check_written_addr(self: Tensor, shape: tuple[int, ...]) -> None:
    if self._array.ndim != 2:
        raise RuntimeError(f"2D tensor expected, got {self._array.ndim}D tensor for input")
    if self._array.shape != shape:
        raise RuntimeError(f"size mismatch, input: {[*self._array.shape]}, v1: [{shape[0]}], "
                           f"v2: [{shape[1]}]")


def _check_addr(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any, alpha: Any,
                check: Any = _check) -> Any:
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector._array.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got "
                               f"{vector._array.ndim}-D")
    check(self, vec1._array.shape + vec2._array.shape)
    common = result_type([t._array for t in (self, vec1, vec2)]).numpy
    if common.kind in "bui":
        for name, factor in (("beta", beta), ("alpha", alpha)):
            if not isinstance(factor, int):
                raise RuntimeError(f"For integral input tensors, argument {name} must not be a "
                                   "floating point number.")
    return *[t if t._array.dtype == common else cast(t, common)
             for t in (self, vec1, vec2)], beta, alpha


addr = _declare("addr", _addr, lambda a, b: mul(unsqueeze(a, -1), unsqueeze(b, -2)),
                "vec1 vec2", canonical=_check_addr,
                inplace_first=partial(_check_addr, check=_check_written_addr),
                refuses=("addr_cpu", "UW8"), autocast="untouched",
                d_vec1=lambda grad, vec2, alpha: mv(_scale_grad(grad, alpha), conj(vec2)),
                d_vec2=lambda grad, vec1, alpha: mv(
                    t(_scale_grad(grad, alpha)), conj(vec1)),
                doc="""beta · input + alpha · outer(vec1, vec2).

    >>> import flambeau
    >>> flambeau.addr(flambeau.zeros(2, 2), flambeau.tensor([1., 2.]), flambeau.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """)


def _check_batches(input: Tensor, batch1: Tensor, batch2: Tensor, first: int,
                   check: Any = _check) -> None:
    """Raise unless the products can be made and `input` expands to their dimensions from `first`
    on."""
    a, b = batch1._array.shape, batch2._array.shape
    check(input, (*[batch1.size(i) for i in range(first, 2)], batch2.size(2)))
    for name, shape in (("batch1", a), ("batch2", b)):
        if len(shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if first and a[0] != b[0]:
        raise RuntimeError("batch1 and batch2 must have same number of batches, got "
                           f"{a[0]} and {b[0]}")
    if first and a[2] != b[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({a[1]}x{a[2]} and {b[1]}x{b[2]})")
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{a[0]}, {a[2]}] but got: [{b[0]}, {b[1]}].")


def _expand_over_batch(grad: Tensor, batch: Tensor, alpha: Any) -> Tensor:
    return expand(_scale_grad(grad, alpha), (batch._array.shape[0], *grad._array.shape))


def _check_addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Any:
    _check_batches(self, batch1, batch2, 1)
    _same_types(self, batch1, batch2)
    return self, batch1, batch2, beta, alpha


addbmm = _declare("addbmm", _addbmm, lambda a, b: sum(matmul(a, b), -3), "batch1 batch2",
                  canonical=_check_addbmm, inplace_resizes=True, out_resized=False,
                  refuses=("addmm_impl_cpu_", "bUW0"), autocast="lower",
                  out_type="self and mat2 must have the same dtype, but got {out} and {found}",
                  d_batch1=lambda grad, batch2, alpha: bmm(
                      _expand_over_batch(grad, batch2, alpha), conjugate_transposes(batch2)),
                  d_batch2=lambda grad, batch1, alpha: bmm(
                      conjugate_transposes(batch1), _expand_over_batch(grad, batch1, alpha)),
                  doc="""beta · input + alpha · Σ batch1[i] @ batch2[i].

    >>> import flambeau
    >>> flambeau.addbmm(flambeau.zeros(1), flambeau.ones(2, 1, 3), flambeau.ones(2, 3, 1))
    tensor([[6.]])
    """)


def _check_baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Any:
    _check_batches(self, batch1, batch2, 0)
    _equal_types(self, batch1, batch2)
    return self, batch1, batch2, beta, alpha


def _equal_types(*tensors: Tensor) -> None:
    names = [c_name(t.dtype) for t in tensors]
    if len(set(names)) > 1:
        raise RuntimeError("Input dtypes must be the same, got: input {}, batch1: {}, batch2: "
                           "{}".format(*names))


def _check_written_baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any,
                           alpha: Any) -> None:
    _check(self, (batch1.size(0), batch1.size(1), batch2.size(2)))
    if self.dtype is not batch1.dtype:
        _equal_types(self, batch1, batch2)
    _check_batches(self, batch1, batch2, 0, lambda *_: None)
    if self.dtype is not batch2.dtype:
        raise RuntimeError(f"Bad in-place call: input tensor dtype {c_name(self.dtype)} and output "
                           f"tensor dtype {c_name(batch2.dtype)} should match")
    _check_written(self, (*batch1._array.shape[:2], batch2._array.shape[2]))


baddbmm = _declare("baddbmm", _baddbmm, matmul, "batch1 batch2", canonical=_check_baddbmm,
                   inplace_first=_check_written_baddbmm,
                   refuses=("baddbmm", "bUW8"), autocast="lower", out_type=OUT_TYPE,
                   d_batch1=lambda grad, batch2, alpha: bmm(_scale_grad(grad, alpha),
                                                            conjugate_transposes(batch2)),
                   d_batch2=lambda grad, batch1, alpha: bmm(conjugate_transposes(batch1),
                                                            _scale_grad(grad, alpha)),
                   doc="""beta · input + alpha · batch1[i] @ batch2[i] for each i.

    >>> import flambeau
    >>> flambeau.baddbmm(flambeau.zeros(1), flambeau.ones(2, 1, 3), flambeau.ones(2, 3, 1)).shape
    torch.Size([2, 1, 1])
    """)

with_out_dtype("addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, "
               "Scalar beta=1, Scalar alpha=1) -> Tensor", addmm)
with_out_dtype("baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, "
               "Scalar beta=1, Scalar alpha=1) -> Tensor", baddbmm)
