"""Embeddings: rows of a table by number, and one-hot vectors."""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau.core.autograd.grad_mode import no_grad
from flambeau.core.devices import cpu
from flambeau.core.op import public
from flambeau.core.tensor import Tensor, plain_types
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.declaration import checked
from flambeau.kernels.moving import indexing as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.pointwise.arithmetic import tensor_class_name
from flambeau.ops.view.shape import movedim

NETWORK = "nn.functional"


# ---- embedding -----------------------------------------------------------------------------------


def _embedding_batched(size: int, dims: Any, weight: Tensor, indices: Tensor, padding_idx: int,
                       scale: bool, sparse: bool) -> Any:
    if dims[0] is None:
        return embedding_op(weight, indices, padding_idx, scale), dims[1]
    w = movedim(weight, dims[0], 0)
    rows = w._array.shape[1]
    i = indices.unsqueeze(0) if dims[1] is None else movedim(indices, dims[1], 0)
    offset = flambeau.arange(size).reshape(size, *(1,) * (i._array.ndim - 1)) * rows
    flat = w.reshape(size * rows, w._array.shape[2])
    found = embedding_op(flat, i + offset, -1, scale)
    if padding_idx >= 0:                        # looked up, but not learnt
        found = flambeau.where((i == padding_idx).unsqueeze(-1), found.detach(), found)
    return found, 0


def _embedding_backward_batched(size: int, dims: Any, grad: Tensor, indices: Tensor, count: int,
                                padding_idx: int, scale: bool) -> Any:
    """The tables of all slices as one below the other."""
    grad, indices = (t.expand(size, *t.shape) if d is None else movedim(t, d, 0)
                     for t, d in zip((grad, indices), dims))
    if padding_idx >= 0:
        grad = grad.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    first = flambeau.arange(size).reshape(size, *(1,) * (indices.ndim - 1)) * count
    tables = embedding_dense_backward(grad, indices + first, size * count, -1, scale)
    return tables.reshape(size, count, -1), 0


embedding_dense_backward = op(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, "
    "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
    kernel=kernels.embedding_backward, kind="linear", batch=_embedding_backward_batched,
    function=False, method=False, out=False,
    d_grad_output=lambda grad, indices, padding_idx, scale_grad_by_freq: _rows_of(
        grad, indices, padding_idx, scale_grad_by_freq),
    doc="The gradient of an embedding's table: rows of gradients added up where `indices` say.")


@op("embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq, bool sparse) -> Tensor", function=False, method=False, out=False)
def embedding_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int,
                       scale_grad_by_freq: bool, sparse: bool) -> Tensor:
    """The gradient of an embedding's table, `sparse` or dense."""
    if not sparse:
        return embedding_dense_backward(grad, indices, num_weights, padding_idx,
                                        scale_grad_by_freq)
    from flambeau.ops.sparse.embedding import rows_of_table
    return rows_of_table(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


def _prepare_embedding(weight: Tensor, indices: Tensor, *rest: Any) -> tuple[Any, ...]:
    check(weight, indices, "embedding")
    return weight, indices, *rest


def _rows_of(grad: Tensor, indices: Tensor, padding_idx: int, scale: bool) -> Tensor:
    rows = embedding_op(grad, indices, -1, False)
    if padding_idx >= 0:
        rows = flambeau.where((indices == padding_idx).unsqueeze(-1), 0, rows)
    if scale:
        counts = flambeau.bincount(indices.reshape(-1), minlength=grad._array.shape[0])
        rows = rows / counts[indices].unsqueeze(-1)
    return rows


def check(weight: Any, indices: Any, name: str) -> None:
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices, 1, name)


def _check_indices(indices: Any, place: int, name: str) -> None:
    if indices._array.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"Expected tensor for argument #{place} 'indices' to have one of the "
                           "following scalar types: Long, Int; but got "
                           f"{tensor_class_name(indices)} "
                           f"instead (while checking arguments for {name})")


embedding_op = op(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, "
    "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    kernel=lambda weight, indices, padding_idx, scale, sparse: kernels.embedding(weight, indices),
    checked_kernel=checked("embedding"), canonical=_prepare_embedding, batch=_embedding_batched,
    out=False,
    method=False, d_weight=lambda grad, indices, weight_shape, padding_idx, scale_grad_by_freq,
    sparse: embedding_backward(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq,
                               sparse),
    jvp=lambda weight_t, indices: embedding_op(weight_t, indices),
    doc="`nn.functional.embedding` with its arguments in another order.")


@python_function(namespace=NETWORK)
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None,
              max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """The rows of `weight` that `input` names.

    The row `padding_idx` gets no gradient. With `max_norm`, rows that are looked up and longer are
    first shortened, in place. `scale_grad_by_freq` divides a row's gradient by its number of uses.

    >>> import flambeau
    >>> flambeau.nn.functional.embedding(flambeau.tensor([1, 0]), flambeau.eye(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        padding_idx = wrapped_padding(padding_idx, weight, "Padding_idx")
    if max_norm is not None:
        with no_grad():                 # what flows forward through `weight` is that before
            embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return embedding_op(weight, input, padding_idx, scale_grad_by_freq, sparse)


def wrapped_padding(padding_idx: int, weight: Tensor, name: str) -> int:
    if padding_idx > 0:
        fits = padding_idx < weight.size(0)
    else:
        fits = not padding_idx < 0 or padding_idx >= -weight.size(0)
    if not fits:
        raise AssertionError(f"{name} must be within num_embeddings")
    return padding_idx + weight.size(0) if padding_idx < 0 else padding_idx


@op("embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> "
    "Tensor(a!)", out=False, method=False)
def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shorten, in place, the rows of `input` that `indices` name to the norm `max_norm`."""
    if self._array.ndim != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got {self._array.ndim}-dimensional "
                           "tensor for argument #1 'self' (while checking arguments for "
                           "embedding_renorm_)")
    _check_indices(indices, 2, "embedding_renorm_")
    rows = indices.reshape(-1)
    refuse(self._array, "bBilU", "norm(): input dtype should be either floating point or complex. "
           "Got {} instead.")
    values = self.detach()[rows]
    length = values.norm(norm_type, 1, keepdim=True)
    scale = flambeau.where(length > max_norm, max_norm / (length + 1e-7), 1.0)
    with no_grad():                     # a row that is named twice is written twice, the same
        self.index_put_((rows,), values * scale)
    return self


# ---- one-hot -------------------------------------------------------------------------------------


def _prepare_one_hot(self: Tensor, num_classes: int) -> tuple[Tensor, int]:
    t = self._array
    if t.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not t.size:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return self, num_classes
    if self._device is cpu:
        if t.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = int(t.max()) + 1
        elif t.max() >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    elif num_classes == -1:
        raise RuntimeError("one_hot: num_classes must be given where the classes have no values.")
    return self, num_classes


def _one_hot_calls(self: Tensor, num_classes: int) -> Tensor:
    least, greatest = self.aminmax()
    least.item(), greatest.item()
    zeros = flambeau.zeros((*self.shape, num_classes), dtype=self.dtype, layout=self.layout,
                           device=self.device)
    return zeros.scatter_(-1, self.unsqueeze(-1), 1)


_one_hot = op("_one_hot(Tensor self, int num_classes) -> Tensor", canonical=_prepare_one_hot,
              kernel=lambda self, n: (self[..., None] == np.arange(n)).astype(np.int64, "C"),
              checked_kernel=checked("one_hot"), function=False, method=False, out=False,
              differentiable=False, aten_calls=_one_hot_calls)


@op("one_hot(Tensor self, int num_classes=-1) -> Tensor", out=False, method=False)
def one_hot(self: Tensor, num_classes: int) -> Tensor:
    """1 at the class, 0 elsewhere, along a new last dimension.

    >>> import flambeau
    >>> flambeau.nn.functional.one_hot(flambeau.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if type(self) in plain_types:
        return _one_hot(self, num_classes)
    if num_classes == -1 or not self._array.size:
        self, num_classes = _prepare_one_hot(self, num_classes)
    return (self.contiguous().unsqueeze(-1) == flambeau.arange(num_classes)).long()


public[NETWORK]["one_hot"] = public["torch"].pop("one_hot")


__all__ = ["embedding", "one_hot"]
