"""Moving pixels to channels and back, and windows to columns and back."""
from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

import flambeau
from flambeau.core.op import public
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.declaration import checked
from flambeau.kernels.moving.layouts import preserve_channels_last
from flambeau.kernels.network import convolution as columns
from flambeau.kernels.refused import refuse
from flambeau.ops.out_types import SCALAR_TYPE
from flambeau.ops.spatial.resample import folded
from flambeau.ops.view.shape import batch_leading

NETWORK = "nn.functional"

# ---- pixels and channels -------------------------------------------------------------------------


@preserve_channels_last
def _pixel_shuffle_kernel(self: np.ndarray, r: int) -> np.ndarray:
    *lead, c, h, w = self.shape
    parts = self.reshape(prod(lead), c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    return np.array(parts, order="C").reshape(*lead, c // (r * r), h * r, w * r)


@preserve_channels_last
def _pixel_unshuffle_kernel(self: np.ndarray, r: int) -> np.ndarray:
    *lead, c, h, w = self.shape
    parts = self.reshape(prod(lead), c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return np.array(parts, order="C").reshape(*lead, c * r * r, h // r, w // r)


def _check_pixel_shuffle(input: Tensor, upscale_factor: int) -> tuple[Tensor, int]:
    shape = input._array.shape
    if len(shape) < 3:
        raise RuntimeError("pixel_shuffle expects input to have at least 3 dimensions, but got "
                           f"input with {len(shape)} dimension(s)")
    if upscale_factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got "
                           f"{upscale_factor}")
    if shape[-3] % upscale_factor ** 2:
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible "
                           "by the square of upscale_factor, but input.size(-3)="
                           f"{shape[-3]} is not divisible by {upscale_factor ** 2}")
    return input, upscale_factor


pixel_shuffle = op(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", kernel=_pixel_shuffle_kernel,
    kind="linear", canonical=_check_pixel_shuffle, checked_kernel=checked("pixel_shuffle"),
    refuses=("pixel_shuffle", "UW8"), out=False, method=False,
    d_self=lambda grad, upscale_factor: pixel_unshuffle(grad, upscale_factor),
    batch=batch_leading(lambda: pixel_shuffle.op.call),
    doc="""(..., c r², h, w) as (..., c, h r, w r): channels become pixels. Shi et al., 2016.

    >>> import flambeau
    >>> flambeau.pixel_shuffle(flambeau.zeros(1, 8, 2, 3), 2).shape
    torch.Size([1, 2, 4, 6])
    """)


def _check_pixel_unshuffle(input: Tensor, downscale_factor: int) -> tuple[Tensor, int]:
    shape = input._array.shape
    if len(shape) < 3:
        raise RuntimeError("pixel_unshuffle expects input to have at least 3 dimensions, but got "
                           f"input with {len(shape)} dimension(s)")
    if downscale_factor <= 0:
        raise RuntimeError("pixel_unshuffle expects a positive downscale_factor, but got "
                           f"{downscale_factor}")
    for name, at in (("height", -2), ("width", -1)):
        if shape[at] % downscale_factor:
            raise RuntimeError(f"pixel_unshuffle expects {name} to be divisible by "
                               f"downscale_factor, but input.size({at})={shape[at]} is not "
                               f"divisible by {downscale_factor}")
    return input, downscale_factor


pixel_unshuffle = op(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", kernel=_pixel_unshuffle_kernel,
    kind="linear", canonical=_check_pixel_unshuffle, checked_kernel=checked("pixel_unshuffle"),
    out=False, method=False,
    refuses=("pixel_unshuffle", "UW8"), batch=batch_leading(lambda: pixel_unshuffle.op.call),
    d_self=lambda grad, downscale_factor: pixel_shuffle(grad, downscale_factor),
    doc="(..., c, h r, w r) as (..., c r², h, w): pixels become channels.")


@preserve_channels_last
def _channel_shuffle_kernel(self: np.ndarray, groups: int) -> np.ndarray:
    shape = self.shape
    parts = self.reshape(shape[0], groups, shape[1] // groups, -1) if self.size else self
    return parts.swapaxes(1, 2).reshape(shape) if self.size else self.copy()


def _check_channel_shuffle(input: Tensor, groups: int) -> tuple[Tensor, int]:
    shape = input._array.shape
    if len(shape) < 3:
        raise RuntimeError("channel_shuffle expects input with > 2 dims, but got input with sizes "
                           f"{list(shape)}")
    if groups <= 0:
        raise RuntimeError("Number of groups to divide channels in must be positive. Value of "
                           f"groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {shape[1]} "
                           f"channels and {groups} groups.")
    return input, groups


channel_shuffle = op(
    "channel_shuffle(Tensor self, SymInt groups) -> Tensor", kernel=_channel_shuffle_kernel,
    kind="linear", canonical=_check_channel_shuffle, checked_kernel=checked("exchanged"),
    refuses=("channel_shuffle", "UW8"), out=False, method=False,
    aliases=("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor",),
    d_self=lambda grad, groups: channel_shuffle(grad, grad._array.shape[1] // groups),
    batch=folded(lambda: channel_shuffle.op.call),
    doc="The channels (dimension 1), seen as (groups, rest), reordered as (rest, groups).")

for _name in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"):
    public[NETWORK][_name] = public["torch"][_name]

# ---- windows as columns --------------------------------------------------------------------------

_WORDS = {"kernel_size": ("kernel", "kernel size"), "dilation": ("dilation", "dilation"),
          "padding": ("pad", "padding"), "stride": ("stride", "stride")}
_GEOMETRY = "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride"


def _check_pair(value: Any, name: str) -> tuple[int, int]:
    if name != "output_size" and len(value) == 1:
        value = (*value, *value)
    if len(value) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return tuple(value)


def _geometry(*given: Any) -> tuple[Any, ...]:
    found = []
    for name, value in zip(_WORDS, given):
        h, w = _check_pair(value, name)
        short, words = _WORDS[name]
        if min(h, w) < (0 if name == "padding" else 1):
            need = "non-negative" if name == "padding" else "greater than zero"
            raise RuntimeError(f"{words} should be {need}, but got {short}_height: {h} "
                               f"{short}_width: {w}")
        found.append((h, w))
    return tuple(found)


def _count_blocks(size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> list[int]:
    return [(s + 2 * p - d * (k - 1) - 1) // st + 1
            for s, k, d, p, st in zip(size, kernel, dilation, padding, stride)]


def _prepare_unfold(input: Tensor, *given: Any) -> tuple[Any, ...]:
    geometry = _geometry(*given)
    shape = input._array.shape
    if len(shape) not in (3, 4) or 0 in shape[len(shape) - 3:]:
        for dim in (1, 2):
            input.size(dim)
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and "
                           f"other non-zero dimensions for input, but got: {list(shape)}")
    refuse(input._array, "BilUW8", "im2col_out_cpu")
    blocks = _count_blocks(shape[-2:], *geometry)
    if min(blocks) < 1:
        kernel, dilation, padding, _ = geometry
        raise RuntimeError(f"Given input with spatial size {tuple(shape[-2:])}, "
                           f"kernel_size={kernel}, dilation={dilation}, padding={padding}, "
                           f"calculated shape of the array of sliding blocks as {tuple(blocks)}, "
                           "but its components must be at least one.")
    return input, *geometry


def _prepare_fold(input: Tensor, output_size: Any, *given: Any) -> tuple[Any, ...]:
    size = _check_pair(output_size, "output_size")
    geometry = _geometry(*given)
    shape, kernel = input._array.shape, geometry[0]
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch "
                           f"size and non-zero dimensions for input, but got: {list(shape)}")
    at = len(shape) - 2
    if shape[at] % (kernel[0] * kernel[1]):
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the "
                           f"product of kernel_size, but got input.size(1)={shape[at]} and "
                           f"kernel_size={kernel}.")
    rows, cols = _count_blocks(size, *geometry)
    if shape[at + 1] != rows * cols:
        _, dilation, padding, stride = geometry
        raise RuntimeError(f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, "
                           f"padding={padding}, stride={stride}, expected size of input's "
                           f"dimension 2 to match the calculated number of sliding blocks {rows} * "
                           f"{cols} = {rows * cols}, but got input.size(2)={shape[at + 1]}.")
    refuse(input._array, "BilUW8", "col2im_out_cpu")
    return input, size, *geometry


def _batched(kernel: Any, rank: int) -> Any:
    """The kernel, for an input of that rank, or of one less: then of no batch."""
    def run(self: np.ndarray, *rest: Any) -> np.ndarray:
        return kernel(self, *rest) if self.ndim == rank else kernel(self[None], *rest)[0]
    return run


def _unbatched_rule(call: Any, rank: int) -> Any:
    """The batching rule: slices without a batch of their own get one, others have a larger one."""
    with_batch, without = folded(call), batch_leading(call)

    def rule(size: int, dims: Any, input: Tensor, *rest: Any) -> Any:
        return (without if input._array.ndim == rank else with_batch)(size, dims, input, *rest)
    return rule


im2col = op(
    f"im2col(Tensor self, {_GEOMETRY}) -> Tensor", kernel=_batched(columns.im2col, 4),
    kind="linear", canonical=_prepare_unfold, checked_kernel=checked("im2col"), namespace="_nn",
    method=False,
    node="Im2ColBackward0", out_type=SCALAR_TYPE, batch=_unbatched_rule(lambda: im2col.op.call, 4),
    d_self=lambda grad, self_shape, kernel_size, dilation, padding, stride: col2im(
        grad, self_shape[-2:], kernel_size, dilation, padding, stride))
col2im = op(
    f"col2im(Tensor self, SymInt[2] output_size, {_GEOMETRY}) -> Tensor",
    kernel=_batched(columns.col2im, 3), kind="linear", canonical=_prepare_fold,
    checked_kernel=checked("col2im"),
    namespace="_nn", method=False, out_type=SCALAR_TYPE, node="Col2ImBackward0",
    batch=_unbatched_rule(lambda: col2im.op.call, 3),
    d_self=lambda grad, kernel_size, dilation, padding, stride: im2col(
        grad, kernel_size, dilation, padding, stride))


def _pair(value: Any) -> Any:
    return tuple(value) if isinstance(value, Iterable) else (value, value)


@python_function(namespace=NETWORK)
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
           stride: Any = 1) -> Tensor:
    """All windows of (n, c, h, w) as columns: (n, c · k · k, number of windows).

    >>> import flambeau
    >>> flambeau.nn.functional.unfold(flambeau.ones(1, 3, 4, 5), 2).shape
    torch.Size([1, 12, 12])
    """
    return im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


@python_function(namespace=NETWORK)
def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
         stride: Any = 1) -> Tensor:
    """The transpose of `unfold`: columns added up where their windows lie in images of
    `output_size`."""
    return col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding),
                  _pair(stride))


# ---- chunks side by side -------------------------------------------------------------------------


def _split_into_chunks(tensor: Tensor, dim: int, chunks: int) -> Tensor:
    """`tensor`, padded with zeros, with the chunks of `dim` in a dimension of their own, and what
    follows it as one."""
    shape = tensor.shape
    size = -(-shape[dim] // chunks)
    missing = size * chunks - shape[dim]
    if missing:
        tensor = flambeau.cat([tensor, tensor.new_zeros(*shape[:dim], missing, *shape[dim + 1:])],
                              dim)
    return tensor.reshape(*shape[:dim], chunks, size * prod(shape[dim + 1:]))


@op("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", method=False, explicit=True,
    out_cast="torch.cat(): input types can't be cast to the desired output type {out}",
    out_reported_as="aten::_chunk_cat")
def _chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Tensor:
    """Each tensor cut along `dim` into chunks, padded with zeros; chunks of one number side by
    side.

    >>> import flambeau
    >>> flambeau._chunk_cat([flambeau.tensor([1, 2, 3]), flambeau.tensor([4, 5])], 0, 2)
    tensor([[1, 2, 4],
            [3, 0, 5]])
    """
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    first = tensors[0]
    if dim < 0:
        if any(t.ndim != first.ndim for t in tensors):
            raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have "
                               "different ndims")
        dim = wrap_dim(dim, first.ndim)
    for t in tensors:
        if t.dtype is not first.dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
        if not t.numel():
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if dim >= t.ndim:
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if t.shape[:dim] != first.shape[:dim]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all "
                               "tensors")
    return flambeau.cat([_split_into_chunks(t, dim, num_chunks) for t in tensors], dim + 1)
