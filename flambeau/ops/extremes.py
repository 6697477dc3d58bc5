"""The largest and the smallest: max, min, amax, amin, aminmax, argmax, argmin."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import kernels, return_types
from flambeau.core.op import composite, primitive
from flambeau.core.promotion import type_name
from flambeau.core.shapes import wrap_dim, wrap_dims
from flambeau.core.tensor import Tensor, basis
from flambeau.kernels.refused import refuse
from flambeau.ops.coercion import wrong_types
from flambeau.ops.comparison import isnan, maximum, minimum
from flambeau.ops.conditional import where
from flambeau.ops.gather import gather, scatter_add
from flambeau.ops.index import new_zeros
from flambeau.ops.node_names import one_node
from flambeau.ops.pointwise import c_name
from flambeau.ops.reduce import restore
from flambeau.ops.shape import squeeze, unsqueeze

# ---- what they share ----------------------------------------------------------------------------


def check_extent(name: str, input: Tensor, dim: int) -> None:
    """Raise unless there is an element along `dim`."""
    shape = input._array.shape
    if shape and shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def evenly(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The gradient of a chosen value, shared among all elements that equal it."""
    shape = self._array.shape
    value = restore(result, shape, dim, keepdim)
    chosen = self == value
    if result._array.dtype.kind == "f":
        chosen = chosen | (isnan(self) & isnan(value))
    times = chosen.sum(dim, keepdim=True)
    return where(chosen, restore(grad, shape, dim, keepdim) / times, 0)


def at_index(grad: Tensor, indices: Tensor, self_shape: Any, dim: int, keepdim: bool) -> Tensor:
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
    """The forward rule that belongs to `at_index`."""
    if not tangent._array.ndim:
        return tangent
    if keepdim:
        return gather(tangent, dim, indices)
    return squeeze(gather(tangent, dim, unsqueeze(indices, dim)), dim)


# ---- over all elements or several dimensions ----------------------------------------------------


def _declare(name: str, kernel: Any, which: str) -> tuple[Any, Any, Any]:
    """amax, max of all, and max along a dimension."""
    def reduced(self: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
        return kernel(self, dim if self.ndim else None, keepdim)

    @primitive(reduced, dims="dim", d_self=evenly, name=f"a{name}_along", method=False,
               namespace=None, node_name=f"A{name}Backward0")
    def along(input: Tensor, dim: Any, keepdim: bool) -> Any:
        return input, dim, keepdim

    def amax(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
        if out is not None and out.dtype is not input.dtype:
            raise RuntimeError("Expected the dtype for input and out to match, but got "
                               f"{type_name(input.dtype)} for input's dtype and "
                               f"{type_name(out.dtype)} for out's dtype.")
        result = along(input, checked_dims(f"a{name}", input, dim), keepdim)
        return result if out is None else basis.into(out, amax.op, result)

    amax.__name__ = f"a{name}"
    amax.__doc__ = f"""The {which} element of all, or along `dim` (one or several). Equal elements
    share the gradient evenly."""
    amax = composite(amax, method=True)

    @primitive(reduced, dims="dim", d_self=evenly, name=f"{name}_all", method=False, namespace=None,
               node_name=f"{name.capitalize()}Backward1")
    def max_all(input: Tensor) -> Any:
        checked_dims(name, input, ())
        return input, None, False

    @primitive(_with_index(kernel, getattr(kernels, f"arg{name}")), dims="dim",
               returns=getattr(return_types, name), differentiable=(True, False),
               vjp=lambda grad, result1, self_shape, dim, keepdim: (
                   at_index(grad[0], result1, self_shape, dim, keepdim),),
               jvp=lambda self_t, result1, dim, keepdim: (
                   take_along(self_t, result1, dim, keepdim), None),
               name=f"{name}_dim", method=False, namespace=None,
               node_name=f"{name.capitalize()}Backward0")
    def max_dim(input: Tensor, dim: int, keepdim: bool) -> Any:
        dim = wrap_dim(dim, input._array.ndim)
        check_extent(name, input, dim)
        return input, dim, keepdim

    max_dim.op.saved_as = {"indices": lambda result1: result1}
    return amax, max_all, max_dim


def _with_index(kernel: Any, where: Any) -> Any:
    def reduced(self: np.ndarray, dim: int, keepdim: bool) -> tuple[np.ndarray, np.ndarray]:
        if not self.ndim:
            return self.copy(), np.zeros((), np.int64)
        return kernel(self, dim, keepdim), where(self, dim, keepdim)
    return reduced


def checked_dims(name: str, input: Tensor, dim: Any) -> tuple[int, ...] | None:
    """The dimensions to reduce, None for all; raises where there is nothing to choose from."""
    refuse(input._array, "cW", f"{name[1:]}_values_cpu" if name.startswith("a") else f"{name}_all")
    if dim is None or dim == () or dim == []:
        if not input._array.size:
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for "
                               "input.numel() == 0. Specify the reduction dim with the 'dim' "
                               "argument.")
        return None
    dims = wrap_dims(dim, input._array.ndim)
    for d in dims:
        check_extent(name, input, d)
    return dims


amax, _max_all, _max_dim = _declare("max", kernels.max, "largest")
amin, _min_all, _min_dim = _declare("min", kernels.min, "smallest")


def _overloaded(input: Tensor, dim: Any, keepdim: bool, out: Any, op: Any, both: Any, whole: Any,
                along: Any) -> Any:
    if not isinstance(input, Tensor) or not (dim is None or isinstance(dim, (int, Tensor))):
        raise wrong_types(op.name, (input, *(() if dim is None else (dim,))),
                          "(Tensor input); (Tensor input, Tensor other); (Tensor input, int dim, "
                          "bool keepdim)")
    if isinstance(dim, Tensor):
        return both(input, dim, out=out)
    if dim is None:
        result = whole(input)
    else:
        if input._array.dtype.kind in "cW":
            raise RuntimeError(f"{op.name}(): does not support complex input")
        result = along(input, dim, keepdim)
    return result if out is None else basis.into(out, op if dim is not None else whole.op, result,
                                                 (input,))


@composite(method=True)
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None,
        out: Any = None) -> Any:
    """The largest element; `max(input, dim)` gives (values, indices) along a dimension, and
    `max(input, other)` the larger of each pair.

    >>> import flambeau
    >>> x = flambeau.tensor([[1.0, 3.0], [2.0, 0.0]])
    >>> x.max(), x.max(dim=0).indices
    (tensor(3.), tensor([1, 0]))
    """
    return _overloaded(input, other if dim is None else dim, keepdim, out, max.op, maximum,
                       _max_all, _max_dim)


@composite(method=True)
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None,
        out: Any = None) -> Any:
    """The smallest element; `min(input, dim)` gives (values, indices) along a dimension, and
    `min(input, other)` the smaller of each pair."""
    return _overloaded(input, other if dim is None else dim, keepdim, out, min.op, minimum,
                       _min_all, _min_dim)


@composite(method=True)
@one_node
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False,
            out: Any = None) -> Any:
    """The smallest and the largest element, of all or along `dim`.

    >>> import flambeau
    >>> flambeau.aminmax(flambeau.tensor([3.0, 1.0, 2.0]))
    torch.return_types.aminmax(
    min=tensor(1.),
    max=tensor(3.))
    """
    if dim is None and not input._array.size:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the "
                           "operation has no identity.")
    refuse(input._array, "UcW8", "aminmax_cpu")
    for each in () if out is None else out:
        if each.dtype is not input.dtype:
            raise RuntimeError(f"Expected out tensor to have dtype {c_name(input)}, but got "
                               f"{c_name(each)} instead")
    dims = () if dim is None else dim
    result = return_types.aminmax(amin(input, dims, keepdim), amax(input, dims, keepdim))
    return result if out is None else basis.into(out, aminmax.op, result, (input,))


# ---- their places -------------------------------------------------------------------------------


def _place(name: str, kernel: Any, doc: str) -> Any:
    @primitive(lambda self, dim, keepdim: kernel(self, dim, keepdim) if self.ndim
               else np.zeros((), np.int64), dims="dim", name=f"{name}_dim", method=False,
               namespace=None)
    def along(input: Tensor, dim: int, keepdim: bool) -> Any:
        return input, dim, keepdim

    @primitive(lambda self: kernel(self, None, False), name=f"{name}_all", method=False,
               namespace=None, batch=lambda size, dims, self: (
                   along(basis.rows(self, dims[0], size), 1, False), 0))
    def of_all(input: Tensor) -> Any:
        if not input._array.size:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for "
                             "input.numel() == 0.")
        return (input,)

    def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *,
               out: Any = None) -> Tensor:
        if isinstance(out, Tensor) and out._array.dtype != np.int64:
            raise RuntimeError("Expected out tensor to have dtype long int, but got "
                               f"{c_name(out)} instead")
        if input._array.dtype.kind in "bcW":
            kind = "bool" if input._array.dtype.kind == "b" else "complex"
            raise RuntimeError(f"{name}(): does not support {kind} input")
        if dim is None:
            result = of_all(input)
            if keepdim:
                result = basis.reshape(result, (1,) * input._array.ndim)
        else:
            dim = wrap_dim(dim, input._array.ndim)
            check_extent(name, input, dim)
            result = along(input, dim, keepdim)
        return result if out is None else basis.into(out, argmax.op, result)

    argmax.__name__, argmax.__doc__ = name, doc
    argmax = composite(argmax, method=True)
    return argmax


argmax = _place("argmax", kernels.argmax, """The position of the first largest element: in the
    flattened input, or along `dim`.

    >>> import flambeau
    >>> flambeau.tensor([1.0, 3.0, 2.0]).argmax()
    tensor(1)
    """)
argmin = _place("argmin", kernels.argmin, """The position of the first smallest element: in the
    flattened input, or along `dim`.""")

__all__ = ["amax", "amin", "argmax", "argmin", "at_index", "max", "min"]
