"""Products of vectors and tensors: outer, inner, Kronecker, cross, and contractions."""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core.promotion import c_name, type_name
from flambeau.core.shapes import broadcast_shapes, wrap_dim
from flambeau.core.tensor import Tensor, add_members, wrap
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels._extension import compiled
from flambeau.kernels.refused import refuse
from flambeau.ops.linalg.matmul import VECTORS, batched_dot, conj, dot, dot_kernel, fits, mm
from flambeau.ops.linalg.support import check_same_type, differentiating
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.pointwise.arithmetic import add, mul
from flambeau.ops.reduction.sums import sum
from flambeau.ops.view import conjugate_views
from flambeau.ops.view.conversion import contiguous
from flambeau.ops.view.diagonal import diagonal
from flambeau.ops.view.reshaping import reshape, unsafe_view, view
from flambeau.ops.view.shape import permute, transpose, unsqueeze

# ---- of vectors ---------------------------------------------------------------------------------


@compiled("vdot")
def _vdot_kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    refuse(x, "W", "vdot")
    return dot_kernel(np.conjugate(x) if x.dtype.kind == "c" else x, y)


vdot = op("vdot(Tensor self, Tensor other) -> Tensor", kernel=_vdot_kernel,
          refuses=(lambda self, *_: "vdot" if self.dtype.kind == "W" else "dot", "bUW8"),
          d_self=lambda grad, other: mul(conj(grad), other),
          d_other=lambda grad, self: mul(grad, self), batch=batched_dot(conj), **VECTORS,
          jvp=lambda self, other, self_t, other_t: add(vdot(self_t, other), vdot(self, other_t)),
          doc="The sum of conj(self) · other over the elements of two vectors.")


@op("outer(Tensor self, Tensor vec2) -> Tensor", overlap="element", out_reported_as="mul",
    autocast="untouched", aliases=("ger(Tensor self, Tensor vec2) -> Tensor",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of an element of one vector and one of another, (n) and (m) to (n, m).

    >>> import flambeau
    >>> flambeau.outer(flambeau.tensor([1, 2]), flambeau.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    for name, vector in (("self", input), ("vec2", vec2)):
        if vector._array.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got "
                               f"{vector._array.ndim}-D")
    return mul(reshape(input, (-1, 1)), vec2)


_OF_SUMS = "tensordot: Expected the output tensor to have dtype {found}, but got an output " \
    "tensor with dtype {out}"


def _multiplies(input: Tensor, other: Tensor) -> bool:
    return not input._array.ndim or not other._array.ndim


@op("inner(Tensor self, Tensor other) -> Tensor",
    out_type=lambda read, out, found: "" if _multiplies(*read) else _OF_SUMS,
    out_reported_as=lambda input, other: "mul" if _multiplies(input, other) else None)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of products along the last dimensions; a number multiplies.

    >>> import flambeau
    >>> flambeau.inner(flambeau.tensor([1, 2, 3]), flambeau.tensor([0, 2, 1]))
    tensor(7)
    """
    a, b = input._array.shape, other._array.shape
    if not a or not b:
        return mul(input, other)
    if a[-1] == b[-1] and input._array.dtype.char in "fd" and not differentiating(input, other) \
            and input._array.dtype == other._array.dtype:
        return wrap(np.asarray(np.inner(input._array, other._array)))
    if a[-1] != b[-1]:
        raise RuntimeError("inner() the last dimension must match on both input tensors but got "
                           f"shapes {list(a)} and {list(b)}")
    if input._array.dtype != other._array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    return _contract(input, other, [-1], [-1])


@op("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", autocast="lower",
    out_type="{name}: Expected out of dtype{found} but found {out}",
    out_reported_as=lambda x, y, dim: "vdot" if x.ndim == y.ndim == 1 else "sum")
def vecdot(x: Tensor, y: Tensor, dim: int) -> Tensor:
    """The sums of conj(x) · y along `dim`; other dimensions broadcast.

    >>> import flambeau
    >>> flambeau.linalg.vecdot(flambeau.ones(2, 3), flambeau.tensor([1.0, 2.0, 3.0]))
    tensor([6., 6.])
    """
    refuse(x._array, "bBilU", "linalg.vecdot: Expected a floating point or complex tensor as "
           "input. Got {}")
    check_same_type(x, y, "linalg.vecdot", "x", "y")
    if x._array.ndim == y._array.ndim == 1:
        return vdot(x, y)
    return sum(mul(conj(x), y), dim)


# ---- of matrices and tensors --------------------------------------------------------------------


@op("kron(Tensor self, Tensor other) -> Tensor", overlap="element", out_reported_as="mul",
    autocast="untouched")
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: each element of `input` times all of `other`, as a block.

    >>> import flambeau
    >>> flambeau.kron(flambeau.eye(2), flambeau.ones(1, 2))
    tensor([[1., 1., 0., 0.],
            [0., 0., 1., 1.]])
    """
    a, b = input._array.shape, other._array.shape
    if len(a) == len(b) == 2:
        left, right = reshape(input, (a[0], 1, a[1], 1)), reshape(other, (1, b[0], 1, b[1]))
        return _view_of_blocks(mul(left, right), (a[0] * b[0], a[1] * b[1]))
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    left = reshape(input, [n for size in a for n in (size, 1)])
    right = reshape(other, [n for size in b for n in (1, size)])
    return _view_of_blocks(mul(left, right), tuple([m * n for m, n in zip(a, b)]))


def _view_of_blocks(products: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Products in the layout of strided factors have no view of that shape."""
    by_rows = products._array.flags.c_contiguous
    return unsafe_view(products if by_rows else contiguous(products), shape)


def _contract_dims(a: Tensor, b: Tensor, dims: Any) -> Any:
    if not (isinstance(dims, (tuple, list, Tensor)) or hasattr(type(dims), "__index__")):
        raise RuntimeError("tensordot expects dims to be int or tuple[list[int], list[int]] or "
                           f"list[list[int]] containing two lists, but got dims={dims}")
    if isinstance(dims, Tensor) and dims.numel() < 2:
        dims = int(dims.item())
    elif isinstance(dims, Tensor):
        if dims.shape[0] != 2:
            raise AssertionError("dims tensor must have size 2 in first dimension, got "
                                 f"{dims.shape[0]}")
        dims = dims.tolist()
    if isinstance(dims, (tuple, list)):
        first, second = dims
        return first, second
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a.dim(), b.dim()):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
    return list(range(-dims, 0)), list(range(dims))


@op("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    method=False, function=False, out_type=_OF_SUMS, out_reported_as=None)
def _tensordot(a: Tensor, b: Tensor, first: Any, second: Any) -> Tensor:
    if a._array.dtype != b._array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    return _contract(a, b, first, second)


@python_function(of=_tensordot)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums of products over dimensions of `a` paired with ones of `b`: a number of last and first
    dimensions, or a list for each.

    >>> import flambeau
    >>> flambeau.tensordot(flambeau.ones(3, 4, 5), flambeau.ones(4, 3, 2),
    ...                    dims=([1, 0], [0, 1])).shape
    torch.Size([5, 2])
    """
    return _tensordot(a, b, *_contract_dims(a, b, dims), out=out)


def _contract(a: Tensor, b: Tensor, first: Any, second: Any) -> Tensor:
    m, n = a._array.shape, b._array.shape
    for i, j in zip(first, second):
        p, q = m[wrap_dim(i, len(m))], n[wrap_dim(j, len(n))]
        if p != q and 1 not in (p, q):
            raise RuntimeError(f"contracted dimensions need to match, but first has size {p} in "
                               f"dim {i} and second has size {q} in dim {j}")
        if q == 1:
            a = sum(a, i, True, dtype=a.dtype)
        elif p == 1:
            b = sum(b, j, True, dtype=b.dtype)
    m, n = a._array.shape, b._array.shape
    first = [wrap_dim(i, len(m)) for i in first]
    second = [wrap_dim(j, len(n)) for j in second]
    kept = [i for i in range(len(m)) if i not in first]
    other = [j for j in range(len(n)) if j not in second]
    rows, inside = [m[i] for i in kept], prod([m[i] for i in first])
    columns = [n[j] for j in other]
    height, width = prod(rows), prod(columns)
    if height == width == 1:
        product = _sum_of_products(_arrange(a, [*kept, *first]), _arrange(b, [*second, *other]),
                                   inside)
    else:
        left = _arrange(a, [*kept, *first], (height, inside))
        right = _arrange(b, [*second, *other], (inside, width))
        outer = not first and left._array.dtype.kind == "b"     # of truth values there are no sums
        product = mul(left, right) if outer else mm(left, right)
    return view(product, (*rows, *columns))


def _sum_of_products(a: Tensor, b: Tensor, count: int) -> Tensor:
    """The sum of all products. Where they do not lie in one row, the factors are not copied."""
    if a._array.flags.c_contiguous and b._array.flags.c_contiguous:
        return dot(_arrange(a, None, (count,)), _arrange(b, None, (count,)))
    return sum(mul(a.squeeze(), b.squeeze()), dtype=a.dtype)


def _arrange(x: Tensor, order: list[int] | None, shape: tuple[int, ...] | None = None) -> Tensor:
    """A view with the dimensions in this order, as a matrix or a vector. Nobody sees one that
    changes nothing but in the graph."""
    if order is not None and (x._edge is not None or order != [*range(len(order))]):
        x = permute(x, order)
    if shape is None or (x._array.shape == shape and (x._edge is None or len(shape) == 1)):
        return x
    return reshape(x, shape)


@op("linalg_multi_dot(Tensor[] tensors) -> Tensor", autocast="lower", out_reported_as="mm",
    out_type="multi_dot(): expected out tensor to have dtype {c_found} but got {c_out}")
def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications; the
    first and the last may be vectors (Cormen et al., Introduction to Algorithms, 15.2).

    >>> import flambeau
    >>> flambeau.linalg.multi_dot([flambeau.ones(2, 3), flambeau.ones(3, 1), flambeau.ones(1)])
    tensor([3., 3.])
    """
    tensors = list(tensors)
    count = len(tensors)
    if count == 2 and tensors[0]._array.ndim == tensors[1]._array.ndim == 2:
        shapes = [t._array.shape for t in tensors]
        if shapes[0][1] == shapes[1][0]:
            return view(mm(*tensors), (shapes[0][0], shapes[1][1]))
    if count < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {count}")
    for i, t in enumerate(tensors):
        if t._array.ndim == 2:
            continue
        end = i in (0, count - 1)
        if not (end and t._array.ndim == 1):
            which = "the first" if i == 0 else "the last"
            raise RuntimeError(f"multi_dot(): {which} tensor must be 1D or 2D but got "
                               f"{t._array.ndim}D" if end else
                               f"multi_dot(): tensor {i} must be 2D but got {t._array.ndim}D")
    dtype, device = tensors[0].dtype, tensors[0].device
    for i, t in enumerate(tensors[1:], 1):
        if t.dtype is not dtype:
            raise RuntimeError("multi_dot(): all tensors must have be the same dtype but tensor 0 "
                               f"is {c_name(dtype)} and tensor {i} {c_name(t.dtype)}")
        if t.device is not device and t.device != device:
            raise RuntimeError("multi_dot(): all tensors must be on the same device but tensor 0 "
                               f"is on {device} and tensor {i} on {t.device}")
    row, column = tensors[0]._array.ndim == 1, tensors[-1]._array.ndim == 1
    tensors[0] = unsqueeze(tensors[0], 0) if row else tensors[0]
    tensors[-1] = unsqueeze(tensors[-1], 1) if column else tensors[-1]
    shapes = [t._array.shape for t in tensors]
    for i in range(count - 1):
        if shapes[i][1] != shapes[i + 1][0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes "
                               f"{list(shapes[i])} and {list(shapes[i + 1])} cannot be multiplied")
    sizes = [shapes[0][0], *[shape[1] for shape in shapes]]
    if count == 3:
        p, q, r, s = sizes
        a, b, c = tensors
        result = mm(mm(a, b), c) if p * r * (q + s) <= q * s * (p + r) else mm(a, mm(b, c))
    else:
        result = _multiply_chain(tensors, _best_splits(tuple(sizes)), 0, count - 1)
    shape = result._array.shape
    return view(result, shape[int(row):2 - int(column)])


@lru_cache(64)
def _best_splits(sizes: tuple[int, ...]) -> list[list[int]]:
    """For each stretch of the chain, after which matrix to cut it."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            row, ends = cost[i], sizes[i] * sizes[j + 1]
            best, where = -1, i
            for k in range(i, j):
                price = row[k] + cost[k + 1][j] + ends * sizes[k + 1]
                if price < best or best < 0:
                    best, where = price, k
            row[j], split[i][j] = best, where
    return split


def _multiply_chain(tensors: list[Tensor], split: list[list[int]], i: int, j: int) -> Tensor:
    if i == j:
        return tensors[i]
    k = split[i][j]
    return mm(_multiply_chain(tensors, split, i, k), _multiply_chain(tensors, split, k + 1, j))


@op("chain_matmul(Tensor[] matrices) -> Tensor", method=False, function=False, autocast="lower")
def _chain_matmul(matrices: Any) -> Tensor:
    for matrix in matrices:
        if matrix._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix._array.ndim}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)


@python_function(of=_chain_matmul)
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """`linalg.multi_dot` of matrices given one by one."""
    warn_once("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. "
              "Use torch.linalg.multi_dot instead, which accepts a list of two or more tensors "
              "rather than multiple parameters.")
    return _chain_matmul(matrices, out=out)


# ---- cross products -----------------------------------------------------------------------------


@compiled("cross")
def _cross_kernel(self: np.ndarray, other: np.ndarray, dim: int) -> np.ndarray:
    fits(self.ndim == other.ndim and self.shape[dim] == other.shape[dim] == 3
         and self.dtype == other.dtype and self.dtype.kind != "b")
    a, b = (np.moveaxis(x, dim, 0) for x in np.broadcast_arrays(self, other))
    r = np.empty(np.broadcast_shapes(self.shape, other.shape), self.dtype)
    turned = np.moveaxis(r, dim, 0)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        turned[i] = a[j] * b[k] - a[k] * b[j]
    return r


def _check_cross(self: Tensor, other: Tensor, dim: int) -> Any:
    a, b = self._array, other._array
    if a.ndim != b.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    at = wrap_dim(dim, a.ndim)
    if a.shape[at:at + 1] != (3,) or b.shape[at:at + 1] != (3,):
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got "
                           f"{self.size(dim)} and {other.size(dim)}")
    broadcast_shapes(a.shape, b.shape)
    refuse(a, "bUW8", "cross")
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {type_name(self.dtype)} but found "
                           f"{type_name(other.dtype)}")
    return self, other, at


linalg_cross = op(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", kernel=_cross_kernel,
    kernel_checks=True, canonical=_check_cross, kind="multilinear", dims="dim", overlap="index",
    refuses=("cross", "bUW8"),
    autocast="untouched", out_type=OUT_TYPE,
    d_self=lambda grad, other, dim: linalg_cross(conj(other), grad, dim=dim),
    d_other=lambda grad, self, dim: linalg_cross(grad, conj(self), dim=dim),
    doc="""The cross product of vectors of three elements along `dim`; other dimensions broadcast.

    >>> import flambeau
    >>> flambeau.linalg.cross(flambeau.tensor([1., 0, 0]), flambeau.tensor([0., 1, 0]))
    tensor([0., 0., 1.])
    """)


@op("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", overlap="index",
    autocast="untouched", out_type=OUT_TYPE, out_reported_as="linalg_cross")
def cross(self: Tensor, other: Tensor, dim: int | None) -> Tensor:
    """The cross product along `dim`, or along the first dimension of extent 3."""
    if dim is None:
        warn_once("Using torch.cross without specifying the dim arg is deprecated.\nPlease either "
                  "pass the dim explicitly or simply use torch.linalg.cross.\nThe default value of "
                  "dim will change to agree with that of linalg.cross in a future release.")
        dim = next((i for i, n in enumerate(self._array.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(self, other, dim=dim)


# ---- of one matrix ------------------------------------------------------------------------------


def _conjugate_transpose(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if not self.ndim:
        warn_once("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().")
    if self.ndim not in (0, 2):
        raise RuntimeError("tensor.H is only supported on matrices (2-D tensors). Got "
                           f"{self.ndim}-D tensor." + " For batches of matrices, consider "
                           "using tensor.mH" * (self.ndim > 2))
    return _adjoint_view(self)


def _checked_adjoint(self: Tensor, name: str) -> Tensor:
    n = self.ndim
    if n == 0:
        said = name if name.endswith(")") else f"Tensor.{name}"
        warn_once(f"{said} is deprecated on 0-D tensors. Consider using x.conj().")
    if n == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. "
                           f"Got {n}-D tensor.")
    return _adjoint_view(self)


def _adjoint_view(self: Tensor) -> Tensor:
    return conjugate_views.conj(transpose(self, -2, -1) if self.ndim else self)


@op("adjoint(Tensor(a) self) -> Tensor(a)")
def conjugate_transposed(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions, as a view."""
    return _checked_adjoint(input, "adjoint()")


add_members(H=property(_conjugate_transpose),
            mH=property(lambda self: _checked_adjoint(self, "mH"), doc="`adjoint()`"))


@op("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)")
def linalg_diagonal(A: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """The diagonals of matrices, as a view."""
    return diagonal(A, offset, dim1, dim2)
