"""The largest and the smallest: max, min, amax, amin, aminmax, argmax, argmin."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core.op import table
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.refused import characters
from flambeau.ops.indexing.gather import gather, scatter_add
from flambeau.ops.indexing.index import new_zeros
from flambeau.ops.out_types import OUT_DEVICE, OUT_TYPE
from flambeau.ops.pointwise.comparison import isnan, maximum, minimum
from flambeau.ops.reduction.sums import restore
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_as_rows, squeeze, unsqueeze

# ---- what they share ----------------------------------------------------------------------------


def share_ties(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The gradient of a chosen value, shared among all elements that equal it."""
    shape = self._array.shape
    value = restore(result, shape, dim, keepdim)
    chosen = value == self
    if result._array.dtype.kind == "f":
        chosen = chosen | (isnan(self) & isnan(value))
    times = chosen.sum(dim, keepdim=True)
    return restore(grad, shape, dim, keepdim) * chosen / times


def scatter_grad(grad: Tensor, indices: Tensor, self_shape: Any, dim: int, keepdim: bool) -> Tensor:
    """The gradient of elements taken along `dim` at `indices`, zero elsewhere."""
    if not self_shape:
        return grad
    if not keepdim:
        grad, indices = unsqueeze(grad, dim), unsqueeze(indices, dim)
    return put_along(grad, indices, self_shape, dim)


def put_along(grad: Tensor, indices: Tensor, shape: Any, dim: int) -> Tensor:
    """Zeros of `shape` to which `grad` is added at `indices` along `dim`."""
    return scatter_add(new_zeros(grad, shape), dim, indices, grad)


def take_along(tangent: Tensor, indices: Tensor, dim: int, keepdim: bool) -> Tensor:
    """The forward rule that belongs to `scatter_grad`."""
    if not tangent._array.ndim:
        return tangent
    if keepdim:
        return gather(tangent, dim, indices)
    return squeeze(gather(tangent, dim, unsqueeze(indices, dim)), dim)


# ---- over all elements or several dimensions ----------------------------------------------------


def _check_extents(name: str) -> Any:
    """Dimensions are said as they are given."""
    def check(self: Tensor, dim: Any, *_: Any) -> None:
        for d in () if self._array.size or not self.ndim or dim is None else (
                (dim,) if isinstance(dim, int) else dim):
            if not self.size(d):
                raise IndexError(f"{name}: Expected reduction dim {d} to have non-zero size.")
    return check


def _declare_amax(name: str, which: str) -> Any:
    """`amax` or `amin`."""
    return op(
        f"{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        kernel=getattr(kernels, name), dims="dim", first=_check_extents(f"{name}()"),
        refuses=(f"{name[1:]}_values_cpu", "UcW8"),
        out_type="Expected the dtype for input and out to match, but got {found} for input's dtype "
        "and {out} for out's dtype.", out_first=True, overlap="anywhere",
        d_self=share_ties, doc=f"""The {which} element of all, or along `dim` (one or several).
    Equal elements share the gradient evenly.""")


amax, amin = _declare_amax("amax", "largest"), _declare_amax("amin", "smallest")


_NOT_CASTABLE = (
    "Expected canCast( typeMetaToScalarType(self.dtype()), typeMetaToScalarType(out.dtype())) to "
    "be true, but got false.  (Could this error message be improved?  If so, please report an "
    "enhancement request to PyTorch.)")


def _declare(name: str, other: Any, doc: str) -> Any:
    """`max` or `min`: of all, along a dimension, and of each pair."""
    title = name.capitalize()
    function = op(
        f"{name}(Tensor self) -> Tensor", kernel=getattr(kernels, f"{name}_all"),
        refuses=(f"{name}_all", "UcW8"), node=f"{title}Backward1", doc=doc,
        out_cast=_NOT_CASTABLE, out_device=OUT_DEVICE, overlap="element",
        batch=lambda size, dims, self: (
            table[f"a{name}"].call(batch_as_rows(self, dims[0], size), 1, False), 0),
        d_self=lambda grad, self, result: share_ties(grad, self, result, None, False))
    op(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       overload_of=function, kernel=getattr(kernels, f"{name}_along"), dims="dim",
       out_type=OUT_TYPE, out_device=OUT_DEVICE, overlap="element", refuses=(
           lambda self, dim, *_: f"{name}(): does not support complex input"
                if self.dtype.kind in "cW" else f"{name}_cpu" if self.ndim else "", "UcW8"),
       node=f"{title}Backward0", d_self=scatter_grad,
       jvp=lambda self_t, indices, dim, keepdim: (take_along(self_t, indices, dim, keepdim), None))
    op(f"{name}.other(Tensor self, Tensor other) -> Tensor", overload_of=function, body=other,
       out_device=OUT_DEVICE, out_reported_as=f"{name}imum", overlap="element")
    return function


max = _declare("max", maximum, """The largest element; `max(input, dim)` gives (values, indices)
    along a dimension, and `max(input, other)` the larger of each pair.

    >>> import flambeau
    >>> x = flambeau.tensor([[1.0, 3.0], [2.0, 0.0]])
    >>> x.max(), x.max(dim=0).indices
    (tensor(3.), tensor([1, 0]))
    """)
min = _declare("min", minimum, """The smallest element; `min(input, dim)` gives (values, indices)
    along a dimension, and `min(input, other)` the smaller of each pair.""")


def _aminmax_vjp(grad: Any, self: Tensor, min: Tensor, max: Tensor, dim: Any, keepdim: bool
                 ) -> Any:
    dims = None if dim is None else (dim,)
    found = [share_ties(g, self, result, dims, keepdim) for g, result in zip(grad, (min, max))
             if g is not None]
    return (found[0] if len(found) == 1 else found[0] + found[1],)


def _aminmax_name(self: np.ndarray, dim: Any, keepdim: bool) -> str:
    """Along a dimension of a single number no kernel is asked, but complex ones are refused."""
    if self.ndim or dim is None:
        return "aminmax_cpu"
    return "aminmax not implemented for {}" if self.dtype.kind in "cW" else ""


aminmax = op(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    kernel=kernels.aminmax, dims="dim", vjp=_aminmax_vjp,
    refuses=(_aminmax_name, "UcW8"),
    out_type=OUT_TYPE, overlap="element",
    doc="""The smallest and the largest element, of all or along `dim`.

    >>> import flambeau
    >>> flambeau.aminmax(flambeau.tensor([3.0, 1.0, 2.0]))
    torch.return_types.aminmax(
    min=tensor(1.),
    max=tensor(3.))
    """)


# ---- their places -------------------------------------------------------------------------------


def _declare_arg(name: str, doc: str) -> Any:
    def of_rows(size: int, dims: Any, self: Tensor, dim: Any, keepdim: bool) -> Any:
        if dim is not None:
            return NotImplemented
        found = table[name].call(batch_as_rows(self, dims[0], size), 1, False)
        ones = (1,) * (self._array.ndim - 1) if keepdim else ()
        return reshape(found, (size, *ones)), 0

    return op(f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
              kernel=getattr(kernels, name), dims="dim", batch=of_rows, doc=doc,
              out_type=OUT_TYPE, out_device=OUT_DEVICE, overlap="anywhere",
              refuses=(lambda self, *_: f"{name}_cpu" if self.dtype.char in characters("U8") else
                       f"{name}(): does not support "
                       f"{'bool' if self.dtype.kind == 'b' else 'complex'} input", "bcUW8"))


argmax = _declare_arg("argmax",
                      """The position of the first largest element: in the flattened input, or
    along `dim`.

    >>> import flambeau
    >>> flambeau.tensor([1.0, 3.0, 2.0]).argmax()
    tensor(1)
    """)
argmin = _declare_arg("argmin",
                      """The position of the first smallest element: in the flattened input, or
    along `dim`.""")

__all__ = ["amax", "amin", "argmax", "argmin", "max", "min", "scatter_grad"]
