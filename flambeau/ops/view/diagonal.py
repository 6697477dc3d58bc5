"""Diagonals, and matrices on one side of them."""
from __future__ import annotations

from typing import Any

from flambeau.core.shapes import size_of, wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.moving import rearranging, views
from flambeau.ops.out_types import OUT_TYPE, can_cast
from flambeau.ops.view.conversion import contiguous
from flambeau.ops.view.copies import exact_copies
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import movedim


def _prepare_diagonal_backward(grad: Tensor, shape: Any, offset: int, dim1: int,
                               dim2: int) -> tuple[Any, ...]:
    shape = size_of((shape,))
    return grad, shape, offset, wrap_dim(dim1, len(shape)), wrap_dim(dim2, len(shape))


diagonal_backward = op(
    "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) "
    "-> Tensor",
    kernel=rearranging.embedded_diagonal, kind="linear", canonical=_prepare_diagonal_backward,
    method=False,
    out=False, batch=lambda size, dims, grad, shape, offset, dim1, dim2: (diagonal_backward(
        movedim(grad, dims[0], 0), (size, *shape), offset, dim1 + 1, dim2 + 1), 0),
    d_grad_output=lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2),
    doc="Zeros of a shape with `grad_output` as a diagonal.")


def _prepare_diagonal(input: Tensor, offset: int = 0, dim1: int = 0,
                      dim2: int = 1) -> tuple[Tensor, int, int, int]:
    n = input._array.ndim
    a, b = wrap_dim(dim1, n), wrap_dim(dim2, n)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return input, offset, a, b


diagonal = op(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    kernel=views.diagonal, kind="linear", dims="dim1 dim2", canonical=_prepare_diagonal,
    kernel_checks=True, d_self=lambda grad, self_shape, offset, dim1, dim2: diagonal_backward(
        grad, self_shape, offset, dim1, dim2),
    doc="The diagonal of two dimensions as a last one, a view; `offset` > 0 is above the main one.")


def _prepare_diag_embed(input: Tensor, offset: int, dim1: int, dim2: int) -> tuple[Tensor, int, int,
                                                                                   int]:
    n = input._array.ndim + 1
    a, b = wrap_dim(dim1, n), wrap_dim(dim2, n)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return input, offset, a, b


diag_embed = op(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    kernel=rearranging.diagonal_embedding, kind="linear", new_dims="dim1 dim2",
    as_given=True, canonical=_prepare_diag_embed, kernel_checks=True, out=False,
    d_self=lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2),
    doc="The last dimension as the diagonal of two new ones, zeros elsewhere.")


def _diag_by_rank(input: Tensor, diagonal: int) -> Tensor:
    if input._array.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return diag_embed(input, diagonal) if input._array.ndim == 1 else diagonal_copy(
        input, diagonal)


diagonal_copy = exact_copies(diagonal)
diag = op("diag(Tensor self, int diagonal=0) -> Tensor", body=_diag_by_rank,
          out_type=lambda read, out, found:
          OUT_TYPE if read[0].ndim == 2 or can_cast(found, out) else "",
          out_cast="diag: result type {found} can't be cast to the desired out= type {out}",
          out_reported_as=lambda input, diagonal:
          f"aten::{'diag_embed' if input.ndim == 1 else 'diagonal_copy'}",
          doc="A matrix with a vector on its diagonal, or the diagonal of a matrix.")


diagflat = op("diagflat(Tensor self, int offset=0) -> Tensor", out=False,
              body=lambda input, offset: diag(reshape(contiguous(input), (-1,)), offset),
              doc="A matrix with all elements of `input` on a diagonal.")


def _declare_triangle(name: str, kernel: Any, side: str) -> Any:
    def arguments(input: Tensor, diagonal: int) -> tuple[Tensor, int]:
        if input._array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return input, diagonal

    function = op(
        f"{name}(Tensor self, SymInt diagonal=0) -> Tensor", kernel=kernel, kind="linear",
        inplace=True, canonical=arguments, kernel_checks=True,
        d_self=lambda grad, diagonal: function(grad, diagonal),
        batch=lambda size, dims, self, diagonal: (
            function(movedim(self, dims[0], 0), diagonal), 0),
        overlap="anywhere", out_type=OUT_TYPE, refuses=(name, "U8"),
        doc=f"Zeros {side} a diagonal of the last two dimensions.")
    return function


tril = _declare_triangle("tril", rearranging.tril, "above")
triu = _declare_triangle("triu", rearranging.triu, "below")
