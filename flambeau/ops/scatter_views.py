"""Views as copies (`*_copy`), and new tensors with a part of them replaced (`*_scatter`)."""
from __future__ import annotations

from typing import Any

from flambeau.core.graph import next_order
from flambeau.core.op import composite, linear
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor, basis
from flambeau.ops import complex as complex_views
from flambeau.ops import copying, join, shape, strided
from flambeau.ops.index import basic_view, slice_backward
from flambeau.ops.join import diagonal, diagonal_backward, split, split_with_sizes, unbind
from flambeau.ops.linalg_support import composed
from flambeau.ops.node_names import edge_of, one_node, rename
from flambeau.ops.shape import select, select_backward
from flambeau.type_info import contiguous_format


@composed
def slice_inverse(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None,
                  end: int | None = None, step: int = 1) -> Tensor:
    """The whole of which `input` is a slice: its memory, seen with the form of `src`."""
    return basis.as_strided(input, src.shape, src.stride(), src.storage_offset())


# ---- views as copies ----------------------------------------------------------------------------


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
           step: int = 1) -> Tensor:
    dim = wrap_dim(dim, input._array.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return basic_view(input, (*(slice(None),) * dim, slice(start, end, step), Ellipsis))


composite(_slice, namespace=None, name="slice")     # `torch.ops.aten.slice`


def _dtype_or_shape(input: Tensor, size: Any) -> Tensor:
    return shape.view(input, size)


def _narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`narrow` with what the copying form says of wrong dimensions and lengths."""
    if dim >= input.ndim > 0:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but "
                           "got false.  (Could this error message be improved?  If so, please "
                           "report an enhancement request to PyTorch.)")
    if length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size "
                           f"({input.shape[dim]}).")
    return join.narrow(input, dim, start, length)


def _copied(view: Tensor) -> Tensor:
    return basis.clone(view, memory_format=contiguous_format)


_VIEWS = {"alias": copying.alias, "as_strided": strided.as_strided, "detach": basis.detach,
          "diagonal": diagonal, "expand": shape.expand, "permute": shape.permute,
          "select": select, "slice": _slice, "squeeze": shape.squeeze, "t": shape.t,
          "transpose": shape.transpose, "unfold": join.unfold, "unsqueeze": shape.unsqueeze,
          "view": _dtype_or_shape, "view_as_complex": complex_views.view_as_complex,
          "view_as_real": complex_views.view_as_real, "narrow": _narrow}


def _declare_copy(name: str, view: Any) -> None:
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        since = next_order()
        seen = view(input, *args, **kwargs)
        result = _copied(seen)
        if seen.grad_fn is not None:
            rename(result, "NarrowCopyBackward0" if name == "narrow"
                   else f"{seen.grad_fn.name()}_copy", since, whole=(edge_of(input),))
        return result
    function.__doc__ = f"A copy of what `{name}` shows."
    composed(function, name=f"{name}_copy", method=name == "narrow")


for _name, _view in _VIEWS.items():
    _declare_copy(_name, _view)


def _declare_parts(name: str, view: Any) -> None:
    def function(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        since = next_order()
        parts = view(input, *args, **kwargs)
        results = tuple([_copied(part) for part in parts])
        for part, result in zip(parts, results):
            if part.grad_fn is not None:
                rename(result, f"{part.grad_fn.name()}_copy", since)
        return results
    function.__doc__ = f"Copies of the parts that `{name}` gives."
    composed(function, name=f"{name}_copy")


for _name, _view in (("split", split), ("split_with_sizes", split_with_sizes),
                     ("unbind", unbind)):
    _declare_parts(_name, _view)


def _declare_unsafe(name: str, sizes_of: Any, node_name: str) -> None:
    """Parts on the same memory that don't count as views, so that they may be written to."""
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return sizes_of(input, *args, **kwargs)
    function.__doc__ = f"`{name}`, but the parts may be written to in place."
    linear(join.split_kernel, returns=tuple, dims="dim", name=f"unsafe_{name}",
           vjp=join.split_back, node_name=node_name)(function)


for _name, _sizes, _node in (
        ("split", join.split_arguments, "UnsafeSplitBackward0"),
        ("split_with_sizes", split_with_sizes.op.arguments, "UnsafeSplitWithSizesBackward0"),
        ("chunk", join.chunk_arguments, "UnsafeSplitBackward0")):
    _declare_unsafe(_name, _sizes, _node)

# ---- writes as new tensors ----------------------------------------------------------------------


def _check_part(src: Tensor, part: Tensor) -> None:
    if src._array.shape != part._array.shape:
        raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                           f"{list(src._array.shape)}, slice size = {list(part._array.shape)}")


def _typed(src: Tensor, like: Tensor) -> Tensor:
    d = like._array.dtype
    return src if src._array.dtype == d else basis.cast(src, d)


@composed(method=True)
@one_node
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` as slice `index` of dimension `dim`.

    >>> import flambeau
    >>> flambeau.select_scatter(flambeau.zeros(2, 2), flambeau.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    part = select(input, dim, index)
    _check_part(src, part)
    at = wrap_dim(dim, input._array.ndim)
    return _replaced(input, part, src, lambda x: select_backward(x, input._array.shape, at, index))


def _replaced(input: Tensor, part: Tensor, src: Tensor, spread: Any) -> Tensor:
    """`input` where `spread` does not reach, `src` where it does: a choice, so that infinities in
    what is replaced leave no trace."""
    there = spread(basis.ones_like(part)) != 0
    return basis.where(there, spread(_typed(src, input)), input)


@composed(method=True)
@one_node
def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None,
                  end: int | None = None, step: int = 1) -> Tensor:
    """A copy of `input` with `src` as slices `start:end:step` of dimension `dim`."""
    at = wrap_dim(dim, input._array.ndim)
    part = _slice(input, at, start, end, step)
    _check_part(src, part)
    index = (*(slice(None),) * at, slice(start, end, step), Ellipsis)
    return _replaced(input, part, src, lambda x: slice_backward(x, input._array.shape, index))


@composed(method=True)
@one_node
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0,
                     dim2: int = 1) -> Tensor:
    """A copy of `input` with `src` as a diagonal."""
    part = diagonal(input, offset, dim1, dim2)
    _check_part(src, part)
    a, b = wrap_dim(dim1, input._array.ndim), wrap_dim(dim2, input._array.ndim)
    return _replaced(input, part, src,
                     lambda x: diagonal_backward(x, input._array.shape, offset, a, b))


