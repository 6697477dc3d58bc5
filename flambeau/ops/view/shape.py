"""Views by dimensions: permuting, adding and removing them, expanding, selecting.

Views look at their argument's memory; the reverse rule of each is the way back.
"""
from __future__ import annotations

from math import prod
from typing import Any

from flambeau._support.settings import warn_once
from flambeau.core import late_bound
from flambeau.core.promotion import type_label
from flambeau.core.shapes import is_expandable_to, size_of, wrap_dim
from flambeau.core.tensor import Tensor, add_members, plain_types
from flambeau.dispatch.declaration import op
from flambeau.kernels._extension import compiled
from flambeau.kernels.moving import views
from flambeau.kernels.moving.rearranging import embedded_slices
from flambeau.ops.view.reshaping import reshape, view

# ---- permuting -----------------------------------------------------------------------------------


def inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    back = [0] * len(permutation)
    for position, axis in enumerate(permutation):
        back[axis] = position
    return tuple(back)


def _prepare_permute(input: Tensor, dims: Any) -> tuple[Tensor, tuple[int, ...]]:
    if len(dims) != input.ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does "
                           f"not match the length of the desired ordering of dimensions i.e. "
                           f"input.dim() = {input.ndim} is not equal to len(dims) = {len(dims)}")
    wrapped = tuple([wrap_dim(d, input.ndim) for d in dims])
    if len(set(wrapped)) < len(wrapped):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return input, wrapped


permute = op(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    kernel=views.permute, kind="linear", all_dims="dims", canonical=_prepare_permute,
    batch=lambda size, where, self, dims: (permute_to(self, (
        where[0], *[d + (d >= where[0]) for d in dims])), 0),
    d_self=lambda grad, dims: permute_to(grad, inverse(dims)),
    doc="""The dimensions in another order, as a view.

    >>> import flambeau
    >>> flambeau.zeros(2, 3, 5).permute(2, 0, 1).shape
    torch.Size([5, 2, 3])
    """)
permute_to = permute.op.call

transpose = op(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    kernel=views.transpose, kind="linear", dims="dim0 dim1", as_given=True,
    aliases=("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
             "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"),
    d_self=lambda grad, dim0, dim1: transpose(grad, dim0, dim1),
    doc="""Two dimensions exchanged, as a view.

    >>> import flambeau
    >>> flambeau.zeros(2, 3).transpose(0, 1).shape
    torch.Size([3, 2])
    """)


def _prepare_t(input: Tensor) -> tuple[Tensor]:
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is "
                           f"{input._array.ndim}D")
    return (input,)


t = op(
    "t(Tensor(a) self) -> Tensor(a)",
    kernel=views.t, kind="linear", canonical=_prepare_t, kernel_checks=True,
    d_self=lambda grad: t(grad),
    batch=lambda size, dims, self: (_t_batched(self, dims[0]), 0),
    doc="The transpose of a matrix, as a view; vectors and numbers as they are.")


def _t_batched(self: Tensor, dim: int) -> Tensor:
    self = movedim(self, dim, 0)
    return transpose(self, 1, 2) if self._array.ndim == 3 else self


def _reversed_dims(self: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    if self._array.ndim != 2:
        warn_once("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
                  "deprecated and it will throw an error in a future release. Consider `x.mT` to "
                  "transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` "
                  "to reverse the dimensions of a tensor." if self._array.ndim else
                  "Tensor.T is deprecated on 0-D tensors. This function is the identity in these "
                  "cases.")
    dims = tuple(range(self._array.ndim))[::-1]
    return permute_to(self, dims) if type(self) in plain_types else permute(self, dims)


def _matrix_transpose(self: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    if not self._array.ndim:
        warn_once("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these "
                  "cases.")
        return self
    if self._array.ndim < 2:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got "
                           f"{self._array.ndim}-D tensor.")
    return transpose(self, -2, -1)


add_members(T=property(_reversed_dims), mT=property(_matrix_transpose))


@compiled("moved")
def _moved_order(n: int, source: Any, destination: Any) -> tuple[int, ...]:
    """The order of n dimensions that takes some to other places."""
    source = [source] if isinstance(source, int) else [*source]
    destination = [destination] if isinstance(destination, int) else [*destination]
    if len(source) != len(destination):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({source} dims) "
                           f"should contain the same number of dims as destination "
                           f"({destination} dims)")
    source, destination = _wrap_moved_dims("source", source, n), _wrap_moved_dims("destination",
                                                                                  destination, n)
    order = [d for d in range(n) if d not in source]
    for to, at in sorted(zip(destination, source)):
        order.insert(to, at)
    return tuple(order[:n])


movedim = op(
    "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    aliases=("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
             "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)"),
    body=lambda input, source, destination: permute_to(
        input, _moved_order(input._array.ndim, source, destination)),
    doc="Dimensions moved to other places; the rest keep their order.")


def _wrap_moved_dims(what: str, dims: list[int], n: int) -> tuple[int, ...]:
    found = tuple([wrap_dim(d, n) for d in dims])
    if len(set(found)) != len(found):
        raise RuntimeError(f"movedim: repeated dim in `{what}` ({dims})")
    return found


# ---- adding and removing dimensions of 1 ---------------------------------------------------------


unsqueeze = op(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    kernel=views.unsqueeze, kind="linear", new_dims="dim", as_given=True,
    d_self=lambda grad, dim: squeeze_dims(grad, (dim,)),
    doc="A new dimension of extent 1 at position `dim`, as a view.")


def unsqueeze_dims(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Dimensions of 1 at these places of the result."""
    for dim in sorted(dims):
        input = unsqueeze(input, dim)
    return input


def _dims_to_squeeze(shape: tuple[int, ...], dim: Any) -> tuple[int, ...]:
    """The dimensions that `squeeze` leaves out."""
    named = range(len(shape)) if dim is None else (dim,) if isinstance(dim, int) else dim
    return tuple([d for d in named if shape and shape[d] == 1])


def _squeeze_batched(self: Tensor, at: int, dim: Any) -> Tensor:
    self = movedim(self, at, 0)
    return squeeze_dims(self, tuple([d + 1 for d in _dims_to_squeeze(self._array.shape[1:], dim)]))


squeeze = op(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    kernel=views.squeeze, kind="linear", some_dims="dim",
    d_self=lambda grad, self_shape, dim: unsqueeze_dims(grad, _dims_to_squeeze(self_shape, dim)),
    batch=lambda size, dims, self, dim: (_squeeze_batched(self, dims[0], dim), 0),
    doc="Without dimensions of extent 1 (all, or those of `dim` that have it), as a view.")


def squeeze_dims(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Without these dimensions, all of extent 1."""
    return squeeze(input, dims[0] if len(dims) == 1 else dims)


# ---- expanding -----------------------------------------------------------------------------------


def _expand_batched(self: Tensor, dim: int, shape: tuple[int, ...]) -> Tensor:
    self = movedim(self, dim, 0) if dim else self
    own = self._array.shape
    self = reshape(self, (own[0], *(1,) * (len(shape) + 1 - len(own)), *own[1:]))
    return expand_to(self, (own[0], *shape))


def _prepare_expand(input: Tensor, size: Any) -> tuple[Tensor, tuple[int, ...]]:
    """The shape that sizes ask for, of which -1 keeps an extent."""
    sizes, shape = size_of(size), input._array.shape
    extra = len(sizes) - len(shape)
    if extra < 0:
        label = type_label(input.dtype, input.is_meta)
        raise RuntimeError(f"expand({label}{{{list(shape)}}}, size={list(sizes)}): the "
                           f"number of sizes provided ({len(sizes)}) must be greater or equal to "
                           f"the number of dimensions in the tensor ({len(shape)})")
    target = [*sizes]
    for i, n in reversed([*enumerate(sizes)]):
        own = shape[i - extra] if i >= extra else None
        if n == -1:
            if own is None:
                raise RuntimeError(f"The expanded size of the tensor (-1) isn't allowed in a "
                                   f"leading, non-existing dimension {i}")
            target[i] = own
        elif own is not None and own not in (1, n):
            raise RuntimeError(f"The expanded size of the tensor ({n}) must match the existing "
                               f"size ({own}) at non-singleton dimension {i}.  Target sizes: "
                               f"{list(sizes)}.  Tensor sizes: {list(shape)}")
    if min(target, default=0) < 0:
        raise RuntimeError("numel: integer multiplication overflow")
    return input, tuple(target)


expand = op(
    "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    kernel=views.expand, kind="linear", sizes="size", unused="implicit", canonical=_prepare_expand,
    function=False, d_self=lambda grad, self_shape: sum_to_size(grad, self_shape),
    batch=lambda count, dims, self, size: (_expand_batched(self, dims[0], size), 0),
    doc="""Dimensions of extent 1 repeated to `size` without copying (stride 0); -1 keeps an extent.

    >>> import flambeau
    >>> flambeau.ones(3, 1).expand(-1, 2).shape
    torch.Size([3, 2])
    """)
expand_to = expand.op.call


def _sum_to_size(input: Tensor, size: Any) -> Tensor:
    target, shape = size_of((size,)), input._array.shape
    if target == shape and shape:
        return input
    if not is_expandable_to(target, shape):
        raise RuntimeError(f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}.")
    lead = len(shape) - len(target)
    if not shape or not target:
        return input.sum()                  # of a number, too
    dims = tuple(range(lead)) + tuple([i + lead for i, n in enumerate(target)
                                       if n == 1 and shape[i + lead] != 1])
    summed = late_bound.sum_over(input, dims, True)
    return view(summed, target) if lead else summed


sum_to_size = op(
    "sum_to_size(Tensor self, SymInt[] size) -> Tensor", body=_sum_to_size, function=False,
    out=False,
    doc="The sum over the dimensions that broadcasting from `size` would have added or repeated.")
expand_as = op("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", function=False,
               body=lambda input, other: expand(input, other._array.shape),
               doc="`expand` to the shape of `other`.")
broadcast_to = op("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
                  body=lambda input, size: expand(input, size), doc="`expand` to `size`.")


# ---- selecting -----------------------------------------------------------------------------------


def _prepare_select(input: Tensor, dim: int, index: int) -> tuple[Tensor, int, int]:
    shape = input._array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim, index = wrap_dim(dim, len(shape)), int(index)
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size "
                         f"{list(shape)} at dimension {dim}")
    return input, dim, index


select = op(
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    kernel=views.select, kind="linear", dims="dim", canonical=_prepare_select, kernel_checks=True,
    d_self=lambda grad, self_shape, dim, index: select_backward(grad, self_shape, dim, index),
    doc="The slice at `index` of dimension `dim`, without that dimension, as a view.")


def _prepare_select_backward(grad: Tensor, shape: Any, dim: int, index: int) -> tuple[Any, ...]:
    shape = size_of((shape,))
    dim = wrap_dim(dim, len(shape))
    return grad, shape, dim, index % shape[dim] if shape[dim] else index


select_backward = op(
    "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
    kernel=lambda x, shape, dim, index: embedded_slices(x, shape, dim, index % shape[dim], 1),
    kind="linear", canonical=_prepare_select_backward, method=False, out=False,
    batch=lambda size, dims, self, shape, dim, index: (
        select_backward(movedim(self, dims[0], 0), (size, *shape), dim + 1, index), 0),
    d_grad_output=lambda grad, dim, index: select(grad, dim, index),
    doc="Zeros of a shape with `grad_output` as one slice.")


# ---- batching ------------------------------------------------------------------------------------


def batch_first(tensor: Tensor, at: int | None, size: int) -> Tensor:
    """`tensor` with its slices in front; one that is the same for all is expanded."""
    if at is None:
        return expand_to(tensor, (size, *tensor._array.shape))
    return tensor if at == 0 else movedim(tensor, at, 0)


def batch_leading(call: Any) -> Any:
    """The batching rule of ops whose tensors all take the batch as one more leading dimension;
    `call()` gives what calls the op when the rule runs."""
    def rule(size: int, dims: Any, *canonical: Any) -> Any:
        tensors = [t if t is None else batch_first(t, d, size) for t, d in zip(canonical, dims)]
        found = call()(*tensors, *canonical[len(dims):])
        return found, 0 if isinstance(found, Tensor) else [0] * len(found)
    return rule


def batch_as_rows(tensor: Tensor, at: int | None, size: int) -> Tensor:
    """The slices of `tensor` in front, each one as a row."""
    front = batch_first(tensor, at, size)
    return reshape(front, (size, prod(front._array.shape[1:])))


