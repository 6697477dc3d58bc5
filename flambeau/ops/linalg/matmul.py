"""Products of matrices and vectors."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core.promotion import c_name, convert, type_name
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels._extension import Misfit, compiled
from flambeau.kernels.refused import characters, refuse
from flambeau.ops.out_types import OF_ROWS, OF_VECTORS, OUT_TYPE
from flambeau.ops.pointwise.arithmetic import mul, reversed_operator
from flambeau.ops.pointwise.complex import conjugated
from flambeau.ops.view.conversion import cast
from flambeau.ops.view.reshaping import reshape, unsafe_view
from flambeau.ops.view.shape import movedim, t, transpose, unsqueeze

_quiet_matmul, _quiet_dot = kernels.quiet(np.matmul), kernels.quiet(np.dot)
_MANY = 1 << 14     # products of integers: from here on BLAS, where its sums in double are exact
_WIDE = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


@compiled("brain_product")
def product_in_single(x: np.ndarray, y: np.ndarray, wide: bool) -> np.ndarray:
    """The product of half types, summed in float32; `wide`: and not rounded to theirs."""
    single = np.dtype(np.float32)
    found = np.asarray(_quiet_matmul(convert(x, single), convert(y, single)))
    return found if wide else convert(found, x.dtype)


def product(x: np.ndarray, y: np.ndarray, name: str = "addmm_impl_cpu_") -> np.ndarray:
    """The matrix product of arrays, batched over leading dimensions; half types in float32."""
    d = x.dtype
    if d in _WIDE:
        return (_quiet_dot if y.ndim <= 2 and x.ndim <= 2 else _quiet_matmul)(x, y)
    if d.kind in "bW" and not (x.size and y.size):      # of nothing no kernel is asked
        return np.matmul(np.zeros(x.shape), np.zeros(y.shape)).astype(d)
    if d.itemsize <= 2 and d.kind not in "bui":
        return product_in_single(x, y, False)
    if d.kind == "b":
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")
    if d.kind in "iu" and x.size * y.shape[-1] > _MANY:
        largest = [max(int(kernels.max(a)), -int(kernels.min(a))) for a in (x, y)]
        if prod(largest) < 2 ** 53 // x.shape[-1]:
            exact = np.matmul(x.astype(np.float64), y.astype(np.float64))
            return exact.astype(np.int64).astype(d, copy=False)
    return np.asarray(_quiet_matmul(x, y))


def same_types(mat1: Tensor, mat2: Tensor) -> None:
    if mat1._array.dtype != mat2._array.dtype:
        raise RuntimeError("expected m1 and m2 to have the same dtype, but got: "
                           f"{c_name(mat1.dtype)} != {c_name(mat2.dtype)}")


def same_as_mv(input: Tensor, mat: Tensor, vec: Tensor) -> None:
    if not input._array.dtype == mat._array.dtype == vec._array.dtype:
        raise RuntimeError("addmv input tensors must have the same dtype, but got {}, {}, and "
                           "{}".format(*[type_name(t.dtype) for t in (input, mat, vec)]))


def adjoint(matrix: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    return conj(transpose(matrix, -2, -1))


def conjugate_t(matrix: Tensor) -> Tensor:
    return conj(t(matrix))


def conjugate_transposes(stack: Tensor) -> Tensor:
    return conj(transpose(stack, 1, 2))


def conj(tensor: Tensor) -> Tensor:
    return conjugated(tensor) if tensor._array.dtype.kind in "cW" else tensor


# ---- the primitive products ----------------------------------------------------------------------

def fits(answer: bool) -> None:
    """Raise Misfit unless the arguments of a kernel fit: its declaration says what is wrong."""
    if not answer:
        raise Misfit


def with_out_dtype(schema: str, of: Any) -> None:
    """Declare the overload of a product whose result is of another type than its factors: PyTorch
    has kernels of it on accelerators alone."""
    def body(*_: Any) -> Any:
        raise NotImplementedError(f"Could not run 'aten::{schema.partition('(')[0]}' with "
                                  "arguments from the 'CPU' backend.")
    op(schema, overload_of=of, body=body, method=False)


def _with_batch_in_front(dims: Any, *tensors: Tensor) -> list[Tensor]:
    """Of a batch: the tensors with its dimension, if they have it, in front."""
    return [t if d is None else movedim(t, d, 0) for t, d in zip(tensors, dims)]


@compiled("mm")
def _mm_kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    fits(x.ndim == 2 and y.ndim == 2 and x.shape[1] == y.shape[0] and x.dtype == y.dtype)
    return product(x, y)


def unlike_sizes(mat1: Tensor, mat2: Tensor, a: Any, b: Any) -> RuntimeError:
    """What is said of matrices of these shapes, which have no product."""
    if mat1.is_meta or mat2.is_meta:
        return RuntimeError(f"a and b must have same reduction dim, but got {list(a)} X {list(b)}.")
    return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and "
                        f"{b[0]}x{b[1]})")


def _check_mm(self: Tensor, mat2: Tensor) -> Any:
    a, b = self._array.shape, mat2._array.shape
    if len(a) != 2 or len(b) != 2:
        if self.is_meta or mat2.is_meta:
            raise RuntimeError(f"{'a' if len(a) != 2 else 'b'} must be 2D")
        raise RuntimeError(f"{'self' if len(a) != 2 else 'mat2'} must be a matrix")
    if a[1] != b[0]:
        raise unlike_sizes(self, mat2, a, b)
    same_types(self, mat2)
    return self, mat2


def to_left(grad: Tensor, right: Tensor, by_columns: bool) -> Tensor:
    """The gradient of the left factor of a product, laid out in memory as that is."""
    if by_columns:
        return t(mm(conj(right), t(grad)))
    return mm(grad, conjugate_t(right))


def to_right(grad: Tensor, left: Tensor, by_columns: bool) -> Tensor:
    """The gradient of the right factor of a product, laid out in memory as that is."""
    if by_columns:
        return t(mm(t(grad), conj(left)))
    return mm(conjugate_t(left), grad)


mm = op("mm(Tensor self, Tensor mat2) -> Tensor", kernel=_mm_kernel, kernel_checks=True,
        canonical=_check_mm, kind="multilinear", core="(n,k),(k,m)->(n,m)",
        refuses=("addmm_impl_cpu_", "bUW0"), autocast="lower", out_type=OUT_TYPE,
        d_self=lambda grad, mat2, self_by_columns: to_left(grad, mat2, self_by_columns),
        d_mat2=lambda grad, self, mat2_by_columns: to_right(grad, self, mat2_by_columns),
        batch=lambda size, dims, self, mat2: (matmul(*_with_batch_in_front(dims, self, mat2)), 0),
        doc="""The product of two matrices.

    >>> import flambeau
    >>> flambeau.mm(flambeau.ones(2, 3), flambeau.ones(3, 1))
    tensor([[3.],
            [3.]])
    """)
with_out_dtype("mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", mm)


@compiled("bmm")
def _bmm_kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    fits(x.ndim == 3 and y.ndim == 3 and x.shape[0] == y.shape[0] and x.shape[2] == y.shape[1]
         and x.dtype == y.dtype)
    return product(x, y, "bmm")


def _check_bmm(self: Tensor, mat2: Tensor) -> Any:
    a, b = self._array.shape, mat2._array.shape
    if len(a) != 3 or len(b) != 3:
        raise RuntimeError(f"batch{'1' if len(a) != 3 else '2'} must be a 3D tensor")
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{a[0]}, {a[2]}] but got: [{b[0]}, {b[1]}].")
    if self._array.dtype != mat2._array.dtype:
        if self._array.size and mat2._array.size:
            raise RuntimeError(f"expected scalar type {type_name(self.dtype)} but found "
                               f"{type_name(mat2.dtype)}")
        self = cast(self, mat2._array.dtype)    # nothing to multiply: nobody looks at the types
    return self, mat2


def _bmm_name(self: np.ndarray, mat2: np.ndarray) -> str:
    """What multiplies small matrices, and larger ones."""
    if self.shape[1] * self.shape[2] * mat2.shape[2] < 400:
        return "bmm"
    return "addmm_impl_cpu_" if self.dtype.char in characters("bU") else "baddbmm_with_gemm"


bmm = op("bmm(Tensor self, Tensor mat2) -> Tensor", kernel=_bmm_kernel, kernel_checks=True,
         canonical=_check_bmm, kind="multilinear", core="(b,n,k),(b,k,m)->(b,n,m)",
         refuses=(_bmm_name, "bUW8"), autocast="lower", out_type=OUT_TYPE, overlap="anywhere",
         d_self=lambda grad, mat2: bmm(grad, conjugate_transposes(mat2)),
         d_mat2=lambda grad, self: bmm(conjugate_transposes(self), grad),
         batch=lambda size, dims, self, mat2: (matmul(*_with_batch_in_front(dims, self, mat2)), 0),
         doc="The products of two stacks of matrices, (b, n, k) and (b, k, m), pair by pair.")
with_out_dtype("bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", bmm)


@compiled("mv")
def _mv_kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    fits(x.ndim == 2 and y.ndim == 1 and x.shape[1] == y.shape[0] and x.dtype == y.dtype)
    return product(x, y, "addmv_impl_cpu")


def _check_mv(self: Tensor, vec: Tensor) -> Any:
    a, b = self._array.shape, vec._array.shape
    if len(a) != 2 or len(b) != 1:
        self.size(0)                            # the result is made first
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {len(a)}, {len(b)}")
    if a[1] != b[0]:
        raise RuntimeError(f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({b[0]})")
    same_as_mv(vec, self, vec)
    return self, vec


def _mv_batched(size: int, dims: Any, self: Tensor, vec: Tensor) -> Any:
    a, b = _with_batch_in_front(dims, self, vec)
    if dims[1] is None:
        return matmul(a, b), 0
    if dims[0] is None:
        return transpose(matmul(a, transpose(b, 0, 1)), 0, 1), 0
    return matmul(a, unsqueeze(b, 2)).squeeze(2), 0


mv = op("mv(Tensor self, Tensor vec) -> Tensor", kernel=_mv_kernel, kernel_checks=True,
        canonical=_check_mv, kind="multilinear", core="(n,k),(k)->(n)",
        refuses=("addmv_impl_cpu", "bUW8"), overlap="anywhere", batch=_mv_batched,
        out_type=OF_ROWS,
        d_self=lambda grad, vec: mul(reshape(grad, (grad._array.shape[0], 1)), conj(vec)),
        d_vec=lambda grad, self: mv(conjugate_t(self), grad),
        doc="The product of a matrix and a vector.")


def _check_vectors(self: Tensor, tensor: Tensor) -> Any:
    a, b = self._array.shape, tensor._array.shape
    if len(a) != 1 or len(b) != 1:
        raise RuntimeError(f"1D tensors expected, but got {len(a)}D and {len(b)}D tensors")
    if self._array.dtype != tensor._array.dtype:
        raise RuntimeError("dot : expected both vectors to have same dtype, but found "
                           f"{type_name(self.dtype)} and {type_name(tensor.dtype)}")
    if a != b:
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] "
                           f"to have the same number of elements, but got {a[0]} and {b[0]} "
                           "elements respectively")
    return self, tensor


@compiled("dot")
def dot_kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    fits(x.ndim == 1 and x.shape == y.shape and x.dtype == y.dtype)
    refuse(x, "bUW8", "dot")
    return product(x, y, "dot")


def batched_dot(turn: Any) -> Any:
    def rule(size: int, dims: Any, self: Tensor, tensor: Tensor) -> Any:
        a, b = _with_batch_in_front(dims, self, tensor)
        return mul(turn(a), b).sum(-1), 0
    return rule


VECTORS: dict[str, Any] = {
    "kernel_checks": True, "canonical": _check_vectors, "core": "(n),(n)->()",
    "out_type": OF_VECTORS, "out_first": True}

dot = op("dot(Tensor self, Tensor tensor) -> Tensor", kernel=dot_kernel, kind="multilinear",
         refuses=("dot", "bUW8"), batch=batched_dot(lambda a: a), **VECTORS,
         d_self=lambda grad, tensor: mul(grad, conj(tensor)),
         d_tensor=lambda grad, self: mul(grad, conj(self)),
         doc="The sum of the products of two vectors' elements.")


# ---- what users call -----------------------------------------------------------------------------


@op("matmul(Tensor self, Tensor other) -> Tensor", autocast="lower",
    out_type=lambda read, out, found: {(1, 1): OF_VECTORS, (2, 1): OF_ROWS}.get(
        (read[0].ndim, read[1].ndim), OUT_TYPE),
    out_reported_as="matmul", operators="__matmul__",
    aliases=("linalg_matmul(Tensor self, Tensor other) -> Tensor",))
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product; leading dimensions broadcast, a vector is a row or a column as needed.

    >>> import flambeau
    >>> flambeau.matmul(flambeau.ones(5, 2, 3), flambeau.ones(3)).shape
    torch.Size([5, 2])
    """
    m, n = input._array.ndim, other._array.ndim
    if m == 2 and n == 2:
        return mm(input, other)
    if m == 0 or n == 0:
        raise RuntimeError("both arguments to matmul need to be at least 1D, but they are "
                           f"{m}D and {n}D")
    if m == 1 and n == 1:
        return dot(input, other)
    if m == 2 and n == 1:
        return mv(input, other)
    if m == 1 and n == 2:
        row = mm(unsqueeze(input, 0), other)
        return row.squeeze_(0) if type(row) is Tensor else row.squeeze(0)
    return _batched_matmul(input, other)


def _rows_of(stack: Tensor, other: Tensor) -> bool:
    """Can the stack be seen as one matrix of all its rows, or is a copy of it cheaper than the
    stack of copies that the gradient of the other factor would be?"""
    array = stack._array
    if other.requires_grad or array.flags.c_contiguous or not array.size:
        return True
    steps, shape = array.strides, array.shape
    return all(steps[i] == steps[i + 1] * shape[i + 1] for i in range(array.ndim - 2))


def _times_one(stack: Tensor, other: Tensor) -> Tensor:
    """A single product of all the rows of a stack of matrices with a matrix or a vector."""
    *rows, width = stack._array.shape
    flat = reshape(stack, (prod(rows), width))
    if other._array.ndim == 1:
        return unsafe_view(mv(flat, other), rows)
    return unsafe_view(mm(flat, other), (*rows, other._array.shape[1]))


def _batched_matmul(input: Tensor, other: Tensor) -> Tensor:
    a, b = input._array.shape, other._array.shape
    if len(a) == len(b) == 3 and a[0] != b[0]:      # what there is only one of is a matrix
        if a[0] == 1 and input.requires_grad:
            input, a = input.squeeze(0), a[1:]
        elif b[0] == 1 and other.requires_grad:
            other, b = other.squeeze(0), b[1:]
    if len(b) <= 2 and _rows_of(input, other):
        return _times_one(input, other)
    if len(a) <= 2 and (len(a) == 1 or input.requires_grad):
        turned = transpose(other, -2, -1)
        if len(a) == 2:
            return transpose(_times_one(turned, t(input)), -2, -1).contiguous()
        if _rows_of(turned, input):
            return _times_one(turned, input)
    lead = broadcast_shapes(a[:-2], b[:-2])
    row, column = len(a) == 1, len(b) == 1
    height, width = (1, *a)[-2], (*b, 1)[-2] if column else b[-2]
    left = reshape(input.expand(*lead, height, a[-1]), (prod(lead), height, a[-1]))
    if column:
        right = unsqueeze(reshape(other.expand(*lead, width), (prod(lead), width)), 2)
        return unsafe_view(bmm(left, right).squeeze(-1), (*lead, height))
    right = reshape(other.expand(*lead, *b[-2:]), (prod(lead), *b[-2:]))
    shape = (*lead, b[-1]) if row else (*lead, height, b[-1])
    return unsafe_view(bmm(left, right), shape)


reversed_operator("__rmatmul__", matmul)
