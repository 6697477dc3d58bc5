"""Products of matrices and vectors, and the affine map of a layer."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import kernels
from flambeau._call_guards import method as as_method
from flambeau.core.op import composite, multilinear, primitive
from flambeau.core.promotion import convert, type_name
from flambeau.core.tensor import Tensor, basis
from flambeau.ops.pointwise.arithmetic import add, mul
from flambeau.ops.view.reshaping import reshape, unsafe_view
from flambeau.ops.view.shape import expand, movedim, transpose, unsqueeze

_quiet_matmul = kernels.quiet(np.matmul)
_MANY = 1 << 14     # products of integers: from here on BLAS, where its sums in double are exact
_WIDE = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def product(x: np.ndarray, y: np.ndarray, name: str = "addmm_impl_cpu_") -> np.ndarray:
    """The matrix product of arrays, batched over leading dimensions; half types in float32."""
    d = x.dtype
    if d in _WIDE:
        return np.dot(x, y) if y.ndim <= 2 and x.ndim <= 2 else _quiet_matmul(x, y)
    if d.itemsize <= 2 and d.kind not in "bui":
        wide = np.dtype(np.float32)
        return convert(np.asarray(_quiet_matmul(convert(x, wide), convert(y, wide))), d)
    if d.kind == "b":
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")
    if d.kind in "iu" and x.size * y.shape[-1] > _MANY and _largest(x) * _largest(y) < \
            2 ** 53 // x.shape[-1]:
        return np.asarray(np.matmul(x.astype(np.float64), y.astype(np.float64))
                          ).astype(np.int64).astype(d, copy=False)
    return np.asarray(_quiet_matmul(x, y))


def _largest(x: np.ndarray) -> int:
    return max(int(kernels.max(x)), -int(kernels.min(x)))


def same_types(mat1: Tensor, mat2: Tensor) -> None:
    if mat1._array.dtype != mat2._array.dtype:
        raise RuntimeError("expected m1 and m2 to have the same dtype, but got: "
                           f"{c_name(mat1.dtype)} != {c_name(mat2.dtype)}")


def c_name(dtype: Any) -> str:
    """A type as messages call it that name C++'s."""
    name = type_name(dtype).lower()
    return {"long": "long int", "half": "c10::Half", "bfloat16": "c10::BFloat16",
            "complexfloat": "c10::complex<float>", "complexdouble": "c10::complex<double>",
            "byte": "unsigned char", "char": "signed char"}.get(name, name)


def same_as_mv(input: Tensor, mat: Tensor, vec: Tensor) -> None:
    if not input._array.dtype == mat._array.dtype == vec._array.dtype:
        names = [type_name(t.dtype) for t in (input, mat, vec)]
        raise RuntimeError("addmv input tensors must have the same dtype, but got {}, {}, and "
                           "{}".format(*names))


def adjoint(matrix: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    flipped = transpose(matrix, -2, -1)
    return basis.conj(flipped) if matrix._array.dtype.kind in "cW" else flipped


def conj(tensor: Tensor) -> Tensor:
    return basis.conj(tensor) if tensor._array.dtype.kind in "cW" else tensor


# ---- the primitive products ----------------------------------------------------------------------


@multilinear(lambda self, mat2: product(self, mat2), tensors=("self", "mat2"),
             core="(n,k),(k,m)->(n,m)",
             d_self=lambda grad, mat2: _by(grad, adjoint(mat2)),
             d_mat2=lambda grad, self: _by(adjoint(self), grad),
             batch=lambda size, dims, self, mat2: _batched_mm(dims, self, mat2))
def mm(input: Tensor, mat2: Tensor) -> Any:
    """The product of two matrices.

    >>> import flambeau
    >>> flambeau.mm(flambeau.ones(2, 3), flambeau.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    a, b = input._array.shape, mat2._array.shape
    if len(a) != 2 or len(b) != 2:
        raise RuntimeError(f"{'self' if len(a) != 2 else 'mat2'} must be a matrix")
    if a[1] != b[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and "
                           f"{b[0]}x{b[1]})")
    same_types(input, mat2)
    return input, mat2


def _by(a: Tensor, b: Tensor) -> Tensor:
    return mm(a, b)


def _batched_mm(dims: Any, self: Tensor, mat2: Tensor) -> Any:
    a = self if dims[0] is None else movedim(self, dims[0], 0)
    b = mat2 if dims[1] is None else movedim(mat2, dims[1], 0)
    return matmul(a, b), 0


@multilinear(lambda self, mat2: product(self, mat2, "bmm"), tensors=("self", "mat2"),
             core="(b,n,k),(b,k,m)->(b,n,m)",
             d_self=lambda grad, mat2: bmm(grad, adjoint(mat2)),
             d_mat2=lambda grad, self: bmm(adjoint(self), grad),
             batch=lambda size, dims, self, mat2: _batched_mm(dims, self, mat2))
def bmm(input: Tensor, mat2: Tensor) -> Any:
    """The products of two stacks of matrices, (b, n, k) and (b, k, m), pair by pair."""
    a, b = input._array.shape, mat2._array.shape
    if len(a) != 3 or len(b) != 3:
        raise RuntimeError(f"batch{'1' if len(a) != 3 else '2'} must be a 3D tensor")
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{a[0]}, {a[2]}] but got: [{b[0]}, {b[1]}].")
    if input._array.dtype != mat2._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(input.dtype)} but found "
                           f"{type_name(mat2.dtype)}")
    return input, mat2


@multilinear(lambda self, vec: product(self, vec, "addmv_impl_cpu"), tensors=("self", "vec"),
             core="(n,k),(k)->(n)",
             d_self=lambda grad, vec: mul(unsqueeze(grad, 1), conj(vec)),
             d_vec=lambda grad, self: mv(adjoint(self), grad),
             batch=lambda size, dims, self, vec: _batched_mv(dims, self, vec))
def mv(input: Tensor, vec: Tensor) -> Any:
    """The product of a matrix and a vector."""
    a, b = input._array.shape, vec._array.shape
    if len(a) != 2 or len(b) != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {len(a)}, {len(b)}")
    if a[1] != b[0]:
        raise RuntimeError(f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({b[0]})")
    same_as_mv(vec, input, vec)
    return input, vec


def _batched_mv(dims: Any, self: Tensor, vec: Tensor) -> Any:
    a = self if dims[0] is None else movedim(self, dims[0], 0)
    if dims[1] is None:
        return matmul(a, vec), 0
    b = movedim(vec, dims[1], 0)
    if dims[0] is None:
        return transpose(matmul(a, transpose(b, 0, 1)), 0, 1), 0
    return matmul(a, unsqueeze(b, 2)).squeeze(2), 0


@multilinear(lambda self, tensor: product(self, tensor, "dot"), tensors=("self", "tensor"),
             core="(n),(n)->()",
             d_self=lambda grad, tensor: mul(grad, conj(tensor)),
             d_tensor=lambda grad, self: mul(grad, conj(self)),
             batch=lambda size, dims, self, tensor: _batched_dot(dims, self, tensor))
def dot(input: Tensor, tensor: Tensor) -> Any:
    """The sum of the products of two vectors' elements."""
    a, b = input._array.shape, tensor._array.shape
    if len(a) != 1 or len(b) != 1:
        raise RuntimeError(f"1D tensors expected, but got {len(a)}D and {len(b)}D tensors")
    if input._array.dtype != tensor._array.dtype:
        raise RuntimeError("dot : expected both vectors to have same dtype, but found "
                           f"{type_name(input.dtype)} and {type_name(tensor.dtype)}")
    if a != b:
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] "
                           f"to have the same number of elements, but got {a[0]} and {b[0]} "
                           "elements respectively")
    return input, tensor


def _batched_dot(dims: Any, self: Tensor, tensor: Tensor) -> Any:
    a = self if dims[0] is None else movedim(self, dims[0], 0)
    b = tensor if dims[1] is None else movedim(tensor, dims[1], 0)
    return mul(a, b).sum(-1), 0


# ---- what users call -----------------------------------------------------------------------------


@composite(method=True, aliases=())
def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The matrix product; leading dimensions broadcast, a vector is a row or a column as needed.

    >>> import flambeau
    >>> flambeau.matmul(flambeau.ones(5, 2, 3), flambeau.ones(3)).shape
    torch.Size([5, 2])
    """
    if out is not None:
        return basis.into(out, matmul.op, matmul(input, other))
    if not isinstance(other, Tensor):
        raise TypeError(f"matmul(): argument 'other' (position 2) must be Tensor, not "
                        f"{type(other).__name__}")
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
        return mm(unsqueeze(input, 0), other).squeeze(0)
    return _batched_matmul(input, other)


def _batched_matmul(input: Tensor, other: Tensor) -> Tensor:
    a, b = input._array.shape, other._array.shape
    if len(b) == 1:
        other, b = unsqueeze(other, 1), (*b, 1)
        drop = -1
    elif len(a) == 1:
        input, a = unsqueeze(input, 0), (1, *a)
        drop = -2
    else:
        drop = 0
    if a[-1] != b[-2]:
        if drop == -1:
            rows = int(np.prod(a[:-1]))
            raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{a[-1]}), vec "
                               f"({b[-2]})")
        if len(b) == 2 or len(a) == 2:
            rows = int(np.prod(a[:-1]))
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and "
                               f"{b[-2]}x{b[-1]})")
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{int(np.prod(a[:-2]))}, {a[-1]}] but got: "
                           f"[{int(np.prod(b[:-2]))}, {b[-2]}].")
    if len(b) == 2 and len(a) > 2:
        # one matrix for all: a single product of the flattened rows
        flat = mm(reshape(input, (-1, a[-1])), other) if 0 not in a else mm(
            reshape(input, (int(np.prod(a[:-1])), a[-1])), other)
        result = unsafe_view(flat, (*a[:-1], b[-1]))
    else:
        from flambeau.core.shapes import broadcast_shapes
        lead = broadcast_shapes(a[:-2], b[:-2])
        left = reshape(input.expand(*lead, *a[-2:]), (-1 if 0 not in a else int(np.prod(lead)),
                                                      *a[-2:]))
        right = reshape(other.expand(*lead, *b[-2:]), (-1 if 0 not in b else int(np.prod(lead)),
                                                       *b[-2:]))
        result = unsafe_view(bmm(left, right), (*lead, a[-2], b[-1]))
    return result.squeeze(drop) if drop else result


Tensor.__matmul__ = as_method(matmul, True)
Tensor.__rmatmul__ = lambda self, other: matmul(other, self)


# ---- the affine map ------------------------------------------------------------------------------


def _affine(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    if bias is not None and input.dtype.itemsize <= 2 and input.dtype.kind not in "bui":
        wide = np.dtype(np.float32)     # half types are rounded once, after the bias
        return convert(np.asarray(_affine(convert(input, wide), convert(weight, wide),
                                          convert(bias, wide))), input.dtype)
    r = product(input, weight.T) if weight.ndim == 2 else product(input, weight)
    if bias is not None:
        if r.dtype is bias.dtype and type(r) is np.ndarray:
            kernels.add(r, bias, r)
        else:
            r = kernels.add(r, bias)
    return r


def _affine_kernel(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    if input.ndim > 2 and weight.ndim == 2:
        rows = input.reshape(-1, input.shape[-1]) if input.size else input.reshape(
            int(np.prod(input.shape[:-1])), input.shape[-1])
        return _affine(rows, weight, bias).reshape(*input.shape[:-1], weight.shape[0])
    return _affine(input, weight, bias)


def _to_weight(grad: Tensor, input: Tensor) -> Tensor:
    k, m = input._array.shape[-1], grad._array.shape[-1]
    if input._array.ndim == 1:
        return mul(unsqueeze(grad, 1), conj(input))
    rows = int(np.prod(input._array.shape[:-1]))
    return mm(transpose(reshape(grad, (rows, m)), 0, 1), conj(reshape(input, (rows, k))))


def _linear_batched(size: int, dims: Any, input: Tensor, weight: Tensor, bias: Any) -> Any:
    x = input if dims[0] is None else movedim(input, dims[0], 0)
    if dims[1] is None and (bias is None or dims[2] is None):
        return linear(x, weight, bias), 0
    w = weight if dims[1] is None else movedim(weight, dims[1], 0)
    one = input._array.ndim - (dims[0] is not None) == 1
    if one:
        x = unsqueeze(x, -2)
    lead = x._array.ndim - (dims[0] is not None) - 2
    if dims[1] is not None and lead > 0:
        w = reshape(w, (size, *(1,) * lead, *w._array.shape[1:]))
    r = matmul(x, transpose(w, -2, -1))
    if bias is not None:
        b = bias if dims[2] is None else movedim(bias, dims[2], 0)
        if dims[2] is not None:
            rank = r._array.ndim if dims[0] is not None or dims[1] is not None \
                else r._array.ndim + 1
            b = reshape(b, (size, *(1,) * (rank - 2), b._array.shape[-1]))
        r = add(r, b)
    return (r.squeeze(-2) if one else r), 0


def _no_tensor(*given: Any) -> TypeError:
    """What `linear` says of arguments that are not tensors."""
    i = next(i for i, x in enumerate(given) if not isinstance(x, Tensor))
    return TypeError(f"linear(): argument '{('input', 'weight')[i]}' (position {i + 1}) must be "
                     f"Tensor, not {type(given[i]).__name__}")


@primitive(_affine_kernel, tensors=("input", "weight", "bias"), namespace="nn.functional",
           core="(k),(m,k),(m)->(m)",
           method=False, node_name="AddmmBackward0",
           d_input=lambda grad, weight: matmul(grad, conj(weight)),
           d_weight=lambda grad, input: _to_weight(grad, input),
           d_bias=lambda grad: grad, batch=_linear_batched,
           jvp=lambda input, weight, bias, input_t, weight_t, bias_t: add(
               linear(input_t, weight, bias_t), linear(input, weight_t)))
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """y = x Wᵀ + b: `input` (…, k), `weight` (m, k), `bias` (m) give (…, m).

    >>> import flambeau
    >>> flambeau.nn.functional.linear(flambeau.ones(1, 2), flambeau.ones(3, 2))
    tensor([[2., 2., 2.]])
    """
    try:
        w, x = weight._array, input._array
    except AttributeError:
        raise _no_tensor(input, weight) from None
    if w.ndim != 2:
        if not w.ndim or not x.ndim:
            raise RuntimeError("both arguments to linear need to be at least 1D, but they are "
                               f"{x.ndim}D and {w.ndim}D")
        if w.ndim > 2:
            raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {w.ndim}D")
        w = unsqueeze(weight, 0)._array         # lazy parameters say that they are
        if bias is not None:
            raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    if not x.ndim:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are 0D and "
                           f"{w.ndim}D")
    if x.shape[-1] != w.shape[-1]:
        rows = int(np.prod(x.shape[:-1]))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x"
                           f"{x.shape[-1]} and {w.shape[-1]}x{w.shape[0]})")
    if x.dtype is not w.dtype and x.dtype != w.dtype:
        if bias is not None and x.ndim == 2:
            raise RuntimeError("mat1 and mat2 must have the same dtype, but got "
                               f"{type_name(input.dtype)} and {type_name(weight.dtype)}")
        same_types(input, weight)
    if bias is not None and (bias._array.shape != w.shape[:1] or bias._array.dtype != x.dtype):
        if bias._array.dtype != x.dtype:
            raise RuntimeError("self and mat2 must have the same dtype, but got "
                               f"{type_name(bias.dtype)} and {type_name(weight.dtype)}")
        if x.ndim < 3 or bias._array.ndim < 2:
            expand(bias, (int(np.prod(x.shape[:-1])), w.shape[0]))      # says what is wrong
    return input, weight, bias


basis.mm, basis.matmul = mm, matmul
