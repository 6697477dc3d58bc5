"""Sorting, and what sorting finds: top-k, k-th value, median, mode."""
from __future__ import annotations

from typing import Any

from flambeau.core.op import table
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.reduction import sorting
from flambeau.kernels.refused import characters
from flambeau.ops.out_types import OUT_DEVICE, OUT_TYPE
from flambeau.ops.reduction.minmax import scatter_grad, share_ties, take_along
from flambeau.ops.view.shape import batch_as_rows

_BOTH = "(Tensor values, Tensor indices)"


def _declare_choice(*schemas: str, keepdim: bool = False, **declared: Any) -> Any:
    """Declare an op that gives elements and their positions along `dim`; is the dimension always
    kept, or only if its parameter `keepdim` says so?"""
    if keepdim:
        back: Any = lambda grad, indices, self_shape, dim: scatter_grad(
            grad, indices, self_shape, dim, True)
        forward: Any = lambda self_t, indices, dim: (take_along(self_t, indices, dim, True), None)
    else:
        back = scatter_grad
        forward = lambda self_t, indices, dim, keepdim: (
            take_along(self_t, indices, dim, keepdim), None)
    return op(*schemas, dims="dim", d_self=back, jvp=forward, **declared)


# ---- sorted whole -------------------------------------------------------------------------------

sort = _declare_choice(
    f"sort(Tensor self, int dim=-1, bool descending=False) -> {_BOTH}",
    f"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> {_BOTH}",
    kernel=sorting.sort, order="dim descending stable", keepdim=True, out_type=OUT_TYPE,
    overlap="element",
    refuses=(lambda self, *_: "sorting_kernel_method_name" if self.dtype.char in characters("8")
             else " Sort does not support complex dtypes on CPU", "cW8"),
    doc="""The elements in ascending (or descending) order along `dim`, and their old positions.

    NaN counts as the greatest. Equal elements keep their order.

    >>> import flambeau
    >>> flambeau.tensor([3.0, 1.0, 2.0]).sort()
    torch.return_types.sort(
    values=tensor([1., 2., 3.]),
    indices=tensor([1, 2, 0]))
    """)


def _argsort(self: Tensor, dim: int, descending: bool, stable: Any) -> Tensor:
    return sort(self, dim, descending)[1]


argsort = op(
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    body=_argsort, order="dim descending stable", out="stable", out_type=OUT_TYPE,
    doc="""The positions that sort the input along `dim`.

    >>> import flambeau
    >>> flambeau.tensor([3.0, 1.0, 2.0]).argsort()
    tensor([1, 2, 0])
    """)
msort = op("msort(Tensor self) -> Tensor", body=lambda self: sort(self, 0)[0], out_type=OUT_TYPE,
           out_reported_as="sort", overlap="element",
           doc="The input sorted along its first dimension.")

# ---- some of the elements -----------------------------------------------------------------------


def _out_types(values: str, indices: str) -> Any:
    """What is said of an `out` of another type, for the values and for their positions."""
    def said(read: Any, out: Any, found: Any) -> str:
        return values if found is read[0].dtype else indices
    return said

def _refused(name: Any, least: int) -> Any:
    """What is said of types that a choice of the k-th elements does not take: after k itself."""
    def said(self: Any, k: int, dim: int, *_: Any) -> str:
        return name(self) if least <= k <= (self.shape[dim] if self.ndim else 1) else ""
    return said


topk = _declare_choice(
    f"topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> {_BOTH}",
    kernel=sorting.topk, keepdim=True, out_type=OUT_TYPE, out_device=OUT_DEVICE,
    overlap="element", refuses=(_refused(lambda self: (
        "topk does not support bool dtypes on CPU" if self.dtype.kind == "b" else
        " topk does not support complex dtypes on CPU" if self.dtype.kind in "cW" else
        "topk_cpu" if self.ndim else ""), 0), "bcUW8"),
    doc="""The `k` largest (or smallest) elements along `dim`, and their positions.

    >>> import flambeau
    >>> flambeau.tensor([3.0, 1.0, 2.0]).topk(2)
    torch.return_types.topk(
    values=tensor([3., 2.]),
    indices=tensor([0, 2]))
    """)
kthvalue = _declare_choice(
    f"kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> {_BOTH}",
    kernel=sorting.kthvalue, out_type=_out_types("output values must be of same type as input",
                                                 "output indices must be of scalar type Long"),
    overlap="index",
    refuses=(_refused(lambda self: "kthvalue_cpu" if self.ndim else "", 1), "bUcW8"),
    doc="The k-th smallest element along `dim`, counted from 1, and its position.")


def _declare(name: str, doc: str) -> Any:
    """`median` or `nanmedian`: of everything, and along a dimension."""
    def of_rows(size: int, dims: Any, self: Tensor) -> Any:
        if not self._array.size:
            return NotImplemented
        return table[f"{name}.dim"].call(batch_as_rows(self, dims[0], size), 1, False)[0], 0

    function = op(
        f"{name}(Tensor self) -> Tensor", kernel=getattr(sorting, f"{name}_all"), batch=of_rows,
        out=False, refuses=("median_cpu", "bUcW8"), doc=doc,
        d_self=lambda grad, self, result: share_ties(grad, self, result, None, False))
    _declare_choice(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> {_BOTH}",
                    overload_of=function, kernel=getattr(sorting, name),
                    node=f"{name.capitalize()}Backward1", refuses=("median_out", "bUcW8"),
                    out_type=_out_types(
                "Expected tensor for 'values' to have the same type as tensor for argument #2 "
                "'self'; but type torch.{out}Tensor does not equal torch.{found}Tensor (while "
                "checking arguments for median)",
                "Expected tensor for argument #1 'indices' to have scalar type Long; but got "
                "torch.{out}Tensor instead (while checking arguments for median)"))
    return function


median = _declare("median", """The median of all elements, or (values, indices) along `dim`; of an
    even number of elements the lower one. NaN if there is one.

    >>> import flambeau
    >>> flambeau.tensor([3.0, 1.0, 2.0, 4.0]).median()
    tensor(2.)
    """)
nanmedian = _declare("nanmedian", """The median of the elements that are not NaN, of all or (values,
    indices) along `dim`.""")
mode = _declare_choice(
    f"mode(Tensor self, int dim=-1, bool keepdim=False) -> {_BOTH}",
    kernel=sorting.mode,
    out_type=_out_types("expected scalar type '{found}' but got '{out}' for values output",
                        "expected scalar type 'Long' but got '{out}' for indices output"),
    overlap="element",
    refuses=(lambda self, *_: "mode_cpu" if self.ndim or self.dtype.kind in "cW" else "", "UcW8"),
    doc="The most frequent element along `dim`, the smallest of equally frequent ones, and a "
        "position of it.")

__all__ = ["argsort", "kthvalue", "median", "mode", "msort", "sort", "topk"]
