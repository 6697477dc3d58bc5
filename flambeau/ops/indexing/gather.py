"""Gathering and scattering: elements along one dimension, by an index for each."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels._extension import Misfit, compiled
from flambeau.kernels.moving import indexing
from flambeau.kernels.refused import characters, refuse
from flambeau.ops.coercion import as_element
from flambeau.ops.factory.create import full, ones_like, zeros_like
from flambeau.ops.indexing.basic import slice_backward
from flambeau.ops.indexing.index import new_zeros
from flambeau.ops.out_types import OUT_DEVICE, OUT_TYPE
from flambeau.ops.pointwise.conditional import where

# ---- gather and scatter --------------------------------------------------------------------------


def _check_index(name: str, input: Tensor, dim: int, index: Tensor) -> int:
    d, dim = index._array.dtype, wrap_dim(dim, input._array.ndim)
    if (d.kind != "i" or d.itemsize < 4) and index._array.size:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    return dim


def _check_gather(name: str, input: Tensor, dim: int, index: Tensor) -> None:
    a, b = input._array, index._array
    if max(a.ndim, 1) != max(b.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as "
                           f"{'self' if name != 'gather' else 'input'} tensor")
    for d in range(min(a.ndim, b.ndim)):
        if d != dim and b.shape[d] > a.shape[d]:
            raise RuntimeError(f"Size does not match at dimension {d} expected index "
                               f"{list(b.shape)} to be no larger than self {list(a.shape)} apart "
                               f"from dimension {dim}")


@compiled("gather")
def _gather_kernel(self: np.ndarray, index: np.ndarray, dim: int, sparse_grad: bool) -> np.ndarray:
    if not index.size:
        return np.empty(index.shape, self.dtype)
    return indexing.gather(self, dim, index)


def _gather_vjp(grad: Tensor, self_shape: Any, index: Tensor, dim: int, sparse: bool) -> Tensor:
    if sparse:
        from flambeau.ops.sparse.embedding import scattered
        return scattered(grad, self_shape, index, dim)
    return scatter_add(new_zeros(grad, self_shape), dim, index, grad)


def _prepare_gather(input: Tensor, index: Tensor, dim: int, sparse_grad: bool) -> tuple[Any, ...]:
    dim = _check_index("gather", input, dim, index)
    if index._array.size:
        _check_gather("gather", input, dim, index)
    return input, index, dim, sparse_grad


gather = op(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    kernel=_gather_kernel, kind="linear", refuses=("scatter_gather_tensor_cpu", "UW8"),
    dims="dim", canonical=_prepare_gather, kernel_checks=True,
    d_self=lambda grad, self_shape, index, dim, sparse_grad: _gather_vjp(
        grad, self_shape, index, dim, sparse_grad),
    overlap="index", out_type=OUT_TYPE, out_device=OUT_DEVICE,
    doc="""result[i][j][k] = input[index[i][j][k]][j][k] for `dim` 0, and likewise for others.

    >>> import flambeau
    >>> flambeau.gather(flambeau.tensor([[1, 2], [3, 4]]), 1, flambeau.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """)


@compiled("scatter")
def _scatter_kernel(self: np.ndarray, index: np.ndarray, source: Any, dim: int, reduce: str | None,
                    include_self: bool) -> np.ndarray:
    if reduce not in (None, "sum", "prod") and self.dtype.char in characters(
            "b" if reduce == "mean" else "c"):
        raise Misfit
    if type(source) is complex and self.dtype.kind not in "cW":
        raise Misfit
    if isinstance(source, np.ndarray):
        source = _indexed_part(source, index)
    return indexing.scatter(self, dim, index, source, reduce, include_self)


def _prepare_scatter(input: Tensor, index: Tensor, src: Tensor, dim: int) -> tuple[Any, ...]:
    dim = _check_index("scatter", input, dim, index)
    _check_scatter(input, dim, index, src)
    return input, index, src, dim


scatter_add = op(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    kernel=lambda self, index, src, dim: _scatter_kernel(self, index, src, dim, "sum", True),
    kind="linear", dims="dim", canonical=_prepare_scatter, kernel_checks=True, inplace=True,
    refuses=("scatter_gather_tensor_cpu", "UW8"),
    d_self=lambda grad: grad,
    d_src=lambda grad, index, src_shape, dim: padded(gather(grad, dim, index), src_shape),
    overlap="index", out_type=OUT_TYPE, out_device=OUT_DEVICE,
    doc="`input` with `src` added where `index` says along `dim`.")


def _check_scatter(input: Tensor, dim: int, index: Tensor, src: Tensor | None) -> None:
    """Does each index have a place, and an element of `src` if that is a tensor?"""
    if src is not None and src._array.dtype != input._array.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not index._array.size:
        return
    a, b, c = (max(t._array.ndim, 1) for t in (input, index, index if src is None else src))
    if not a == b == c:
        raise RuntimeError("Index tensor must have the same number of dimensions as "
                           f"{'self' if a != b else 'src'} tensor")
    own, given = input._array.shape or (1,), index._array.shape or (1,)
    source = None if src is None else src._array.shape or (1,)
    if any((d != dim and n > own[d]) or (source is not None and n > source[d])
           for d, n in enumerate(given)):
        larger = "" if src is None else (
            f" and to be no larger size than src {list(src._array.shape)}")
        raise RuntimeError(f"Expected index {list(index._array.shape)} to be no larger than self "
                           f"{list(input._array.shape)} apart from dimension {dim}{larger}")


def _indexed_part(src: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The part of `src` that has an index."""
    if src.shape == index.shape or not src.ndim or not index.ndim:
        return src
    return src[tuple([slice(n) for n in index.shape])]


def padded(part: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`part` at the beginning of zeros of `shape`."""
    if part._array.shape == shape:
        return part
    index = tuple([slice(n) for n in part._array.shape])
    return slice_backward(part, shape, index)


def _prepare_scatter_value(input: Tensor, index: Tensor, dim: int, value: Any) -> tuple[Any, ...]:
    dim = _check_index("scatter", input, dim, index)
    _check_scatter(input, dim, index, None)
    as_element(value, input._array.dtype)               # raises if it cannot be
    return input, index, dim, value


def _scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Any, reduce: str, value: Any
                    ) -> Tensor:
    if src is not None:
        warn_once("The reduce argument of torch.scatter with Tensor src is deprecated and will "
                  "be removed in a future PyTorch release. Use torch.scatter_reduce instead "
                  "for more reduction options.")
    dim = _check_index("scatter", input, dim, index)
    _check_scatter(input, dim, index, src)
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if src is None:
        src = full(index.shape, value, dtype=input.dtype)
    return scatter_reduce(input, dim, index, src, "sum" if reduce == "add" else "prod",
                          include_self=True)


_WRITES = {"inplace": True, "overlap": "index", "out_type": OUT_TYPE, "out_device": OUT_DEVICE}
scatter = op(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    kernel=lambda self, index, src, dim: _scatter_kernel(self, index, src, dim, None, True),
    kind="linear", dims="dim", canonical=_prepare_scatter, kernel_checks=True,
    refuses=("scatter_gather_tensor_cpu", "UW8"), **_WRITES,
    d_self=lambda grad, index, dim: scatter(grad, dim, index, 0),
    d_src=lambda grad, index, src_shape, dim: padded(gather(grad, dim, index), src_shape),
    doc="""`input` with `src` (a tensor or a number) where `index` says along `dim`.

    `reduce="add"` or `"multiply"` combines with what is there instead of replacing it.
    """)
op("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", overload_of=scatter,
   kernel=lambda self, index, dim, value: _scatter_kernel(self, index, value, dim, None, True),
   dims="dim", canonical=_prepare_scatter_value, kernel_checks=True,
   refuses=("scatter_gather_scalar_cpu", "UW8"), **_WRITES, node="ScatterBackward1",
   d_self=lambda grad, index, dim: scatter(grad, dim, index, 0),
   jvp=lambda self_t, index, dim: scatter(self_t, dim, index, 0))
op("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
   "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> "
   "Tensor", overload_of=scatter, body=_scatter_reduce, out_reported_as="aten::scatter", **_WRITES)


def scatter_src(input: Tensor, index: Tensor, src: Tensor, dim: int) -> Tensor:
    return scatter(input, dim, index, src)


def scatter_value(input: Tensor, index: Tensor, value: Any, dim: int) -> Tensor:
    return scatter(input, dim, index, value)


def scatter_reduce_vjp(grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int,
                      reduce: str, include_self: bool, needs: Any, *, clear: Any = None
                      ) -> list[Any]:
    """By kind: sums and means share the gradient; amax and amin split it between the extremes;
    products leave one factor out. `clear` zeroes what is written to, if not by `scatter`."""
    clear = clear or (lambda grad: scatter_value(grad, index, 0, dim))
    to_self = to_src = None
    if reduce == "sum":
        to_self, to_src = grad, gather(grad, dim, index)
    elif reduce == "mean":
        ones = ones_like(self) if include_self else zeros_like(self)
        counts = scatter_add(ones, dim, index, ones_like(src)).clamp(min=1)
        shared = grad / counts
        to_self, to_src = shared, gather(shared, dim, index)
    elif reduce in ("amax", "amin"):
        mine = (self == result).to(self.dtype)
        if not include_self:
            mine = clear(mine)
        theirs = (src == gather(result, dim, index)).to(self.dtype)
        ties = scatter_add(mine, dim, index, theirs)
        shared = grad / ties
        to_self, to_src = mine * shared, theirs * gather(shared, dim, index)
    elif reduce == "prod":
        to_self, to_src = _product_gradients(grad, self, index, src, dim, include_self)
    if not include_self and to_self is not None:
        to_self = clear(to_self)
    if to_src is not None:
        to_src = padded(to_src, src._array.shape)
    return [to_self if needs[0] else None, None, to_src if needs[2] else None]


def _product_gradients(grad: Any, self: Any, index: Any, src: Any, dim: int,
                       include_self: bool) -> tuple[Any, Any]:
    """`grad` times the product of all other factors, differentiable also where some are zero: zeros
    are counted, and a product that has but one of them is that one (so its derivative is 1) times
    the factors that are not zero."""
    if not include_self:
        self = ones_like(self)
    zero_self, zero_src = self == 0, src == 0
    rest = scatter_reduce(ones_like(self), dim, index, src.masked_fill(zero_src, 1), "prod")
    whole = rest * self.masked_fill(zero_self, 1)
    count_self, count_src = zero_self.to(self.dtype), zero_src.to(self.dtype)
    value_self, value_src = (x.masked_fill(~z, 0) for x, z in ((self, zero_self), (src, zero_src)))
    count_src_here = scatter_add(zeros_like(self), dim, index, count_src)
    value_src_here = scatter_add(zeros_like(self), dim, index, value_src)

    def zeros_as_factor(count: Any, value: Any) -> Any:
        return where(count == 0, ones_like(value), value.masked_fill(count > 1, 0))

    to_self = grad * rest * zeros_as_factor(count_src_here, value_src_here)
    others = (gather(here, dim, index) - own for here, own in (
        (count_self + count_src_here, count_src), (value_self + value_src_here, value_src)))
    to_src = gather(grad * whole, dim, index) / src.masked_fill(zero_src, 1) * zeros_as_factor(
        *others)
    return to_self, to_src


def _prepare_scatter_reduce(input: Tensor, index: Tensor, src: Tensor, dim: int, reduce: str,
                            include_self: bool) -> tuple[Any, ...]:
    dim = _check_index("scatter", input, dim, index)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got "
                           f"{reduce}")
    _check_scatter(input, dim, index, src)
    if reduce not in ("sum", "prod"):
        refuse(input._array, "b" if reduce == "mean" else "c",
               f"scatter_gather_tensor_cpu_reduce_{reduce}")
    return input, index, src, dim, reduce, include_self


def _reduce_kernel_name(self: np.ndarray, index: Any = None, src: Any = None, dim: int = 0,
                        reduce: str = "sum", include_self: bool = True) -> str:
    if not include_self:
        return "scatter_reduce_exclude_input_init"
    return "scatter_gather_tensor_cpu" + ("" if reduce in ("sum", "prod") else f"_reduce_{reduce}")


scatter_reduce = op(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
    "bool include_self=True) -> Tensor",
    kernel=_scatter_kernel, dims="dim", canonical=_prepare_scatter_reduce, kernel_checks=True,
    **_WRITES, refuses=(_reduce_kernel_name, "UW8"), vjp=scatter_reduce_vjp, nondiff="index",
    doc="""`input` combined with `src` where `index` says along `dim`.

    `reduce` is "sum", "prod", "mean", "amax" or "amin"; without `include_self` the values of
    `input` at those places are left out.
    """)
