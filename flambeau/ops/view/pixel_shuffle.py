"""Moving pixels to channels and back, and windows to columns and back."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import flambeau
from flambeau.core.op import composite, linear, public
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.kernels import convolution as columns
from flambeau.kernels.refused import refuse
from flambeau.ops.linalg.support import composed
from flambeau.ops.nn.pool import leading
from flambeau.ops.nn.resample import folded

NETWORK = "nn.functional"
BOTH = (NETWORK, "torch")

# ---- pixels and channels -------------------------------------------------------------------------


def _shuffled(self: np.ndarray, r: int) -> np.ndarray:
    *lead, c, h, w = self.shape
    parts = self.reshape(prod(lead), c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(*lead, c // (r * r), h * r, w * r)


def _unshuffled(self: np.ndarray, r: int) -> np.ndarray:
    *lead, c, h, w = self.shape
    parts = self.reshape(prod(lead), c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return parts.reshape(*lead, c * r * r, h // r, w // r)


@linear(lambda self, upscale_factor: _shuffled(self, upscale_factor), namespace=BOTH, method=False,
        d_self=lambda grad, upscale_factor: pixel_unshuffle(grad, upscale_factor),
        batch=leading(lambda: pixel_shuffle))
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Any:
    """(..., c r², h, w) as (..., c, h r, w r): channels become pixels. Shi et al., 2016.

    >>> import flambeau
    >>> flambeau.pixel_shuffle(flambeau.zeros(1, 8, 2, 3), 2).shape
    torch.Size([1, 2, 4, 6])
    """
    shape = input._array.shape
    if len(shape) < 3:
        raise RuntimeError("pixel_shuffle expects input to have at least 3 dimensions, but got "
                           "input "
                           f"with {len(shape)} dimension(s)")
    if upscale_factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got "
                           f"{upscale_factor}")
    if shape[-3] % upscale_factor ** 2:
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible "
                           "by "
                           f"the square of upscale_factor, but input.size(-3)={shape[-3]} is not "
                           f"divisible by {upscale_factor ** 2}")
    return input, upscale_factor


@linear(lambda self, downscale_factor: _unshuffled(self, downscale_factor), namespace=BOTH,
        method=False, batch=leading(lambda: pixel_unshuffle),
        d_self=lambda grad, downscale_factor: pixel_shuffle(grad, downscale_factor))
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Any:
    """(..., c, h r, w r) as (..., c r², h, w): pixels become channels."""
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
                               "downscale_factor, "
                               f"but input.size({at})={shape[at]} is not divisible by "
                               f"{downscale_factor}")
    return input, downscale_factor


def _exchanged(self: np.ndarray, groups: int) -> np.ndarray:
    shape = self.shape
    parts = self.reshape(shape[0], groups, shape[1] // groups, -1) if self.size else self
    return parts.swapaxes(1, 2).reshape(shape) if self.size else self.copy()


@linear(lambda self, groups: _exchanged(self, groups), namespace=BOTH, method=False,
        d_self=lambda grad, groups: channel_shuffle(grad, grad._array.shape[1] // groups),
        batch=folded(lambda: channel_shuffle))
def channel_shuffle(input: Tensor, groups: int) -> Any:
    """The channels (dimension 1), seen as (groups, rest), reordered as (rest, groups)."""
    shape = input._array.shape
    if len(shape) < 3:
        raise RuntimeError("channel_shuffle expects input with > 2 dims, but got input with sizes "
                           f"{list(shape)}")
    if groups <= 0:
        raise RuntimeError("Number of groups to divide channels in must be positive. Value of "
                           f"groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {shape[1]} "
                           "channels "
                           f"and {groups} groups.")
    return input, groups


public["torch"]["native_channel_shuffle"] = public[NETWORK]["native_channel_shuffle"] = \
    channel_shuffle

# ---- windows as columns --------------------------------------------------------------------------


@linear(lambda self, kernel_size, dilation, padding, stride: columns.im2col(
            self, kernel_size, dilation, padding, stride),
        method=False, namespace=None, node_name="Im2ColBackward0", batch=folded(lambda: _im2col),
        d_self=lambda grad, self_shape, kernel_size, dilation, padding, stride: _col2im(
            grad, self_shape[2:], kernel_size, dilation, padding, stride))
def _im2col(input: Tensor, *geometry: Any) -> Any:
    return input, *geometry


@linear(lambda self, size, kernel_size, dilation, padding, stride: columns.col2im(
            self, size, kernel_size, dilation, padding, stride),
        method=False, namespace=None, node_name="Col2ImBackward0", batch=folded(lambda: _col2im),
        d_self=lambda grad, kernel_size, dilation, padding, stride: _im2col(
            grad, kernel_size, dilation, padding, stride))
def _col2im(input: Tensor, size: Any, *geometry: Any) -> Any:
    return input, size, *geometry


def _two(value: Any, name: str) -> tuple[int, int]:
    if hasattr(value, "__index__"):
        return int(value), int(value)
    value = tuple([int(v) for v in value])
    if name != "output_size" and len(value) == 1:
        return value * 2
    if len(value) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return value


_WORDS = {"kernel_size": ("kernel", "kernel size"), "dilation": ("dilation", "dilation"),
          "padding": ("pad", "padding"), "stride": ("stride", "stride")}


def _geometry(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Any, ...]:
    found = []
    for name, value in zip(_WORDS, (kernel_size, dilation, padding, stride)):
        h, w = _two(value, name)
        short, words = _WORDS[name]
        if min(h, w) < (0 if name == "padding" else 1):
            need = "non-negative" if name == "padding" else "greater than zero"
            raise RuntimeError(f"{words} should be {need}, but got {short}_height: {h} "
                               f"{short}_width: {w}")
        found.append((h, w))
    return tuple(found)


def _blocks(size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> list[int]:
    return [(s + 2 * p - d * (k - 1) - 1) // st + 1
            for s, k, d, p, st in zip(size, kernel, dilation, padding, stride)]


@composite(namespace=NETWORK)
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
           stride: Any = 1) -> Tensor:
    """All windows of (n, c, h, w) as columns: (n, c · k · k, number of windows).

    >>> import flambeau
    >>> flambeau.nn.functional.unfold(flambeau.ones(1, 3, 4, 5), 2).shape
    torch.Size([1, 12, 12])
    """
    geometry = _geometry(kernel_size, dilation, padding, stride)
    shape = input._array.shape
    if len(shape) not in (3, 4) or 0 in shape[len(shape) - 3:]:
        if len(shape) < 3:
            raise IndexError("Dimension out of range (expected to be in range of "
                             f"[{-len(shape)}, {len(shape) - 1}], but got 2)")
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and "
                           f"other non-zero dimensions for input, but got: {list(shape)}")
    refuse(input._array, "BilUW8", "im2col_out_cpu")
    blocks = _blocks(shape[-2:], *geometry)
    if min(blocks) < 1:
        kernel, dilation, padding, _ = geometry
        raise RuntimeError(f"Given input with spatial size {tuple(shape[-2:])}, "
                           f"kernel_size={kernel}, "
                           f"dilation={dilation}, padding={padding}, calculated shape of the array "
                           f"of sliding blocks as {tuple(blocks)}, but its components must be at "
                           "least one.")
    if len(shape) == 3:
        return _im2col(input.unsqueeze(0), *geometry).squeeze(0)
    return _im2col(input, *geometry)


@composite(namespace=NETWORK)
def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
         stride: Any = 1) -> Tensor:
    """The transpose of `unfold`: columns added up where their windows lie in images of
    `output_size`."""
    size = _two(output_size, "output_size")
    geometry = _geometry(kernel_size, dilation, padding, stride)
    shape, kernel = input._array.shape, geometry[0]
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch "
                           f"size and non-zero dimensions for input, but got: {list(shape)}")
    at = len(shape) - 2
    if shape[at] % (kernel[0] * kernel[1]):
        raise RuntimeError(f"Expected size of input's dimension {at} to be divisible by the "
                           "product "
                           f"of kernel_size, but got input.size({at})={shape[at]} and "
                           f"kernel_size={kernel}.")
    rows, cols = _blocks(size, *geometry)
    if shape[at + 1] != rows * cols:
        _, dilation, padding, stride = geometry
        raise RuntimeError(f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, "
                           f"padding={padding}, stride={stride}, expected size of input's "
                           "dimension "
                           f"{at + 1} to match the calculated number of sliding blocks {rows} * "
                           f"{cols} = {rows * cols}, but got input.size({at + 1})={shape[at + 1]}.")
    refuse(input._array, "BilUW8", "col2im_out_cpu")
    if len(shape) == 2:
        return _col2im(input.unsqueeze(0), size, *geometry).squeeze(0)
    return _col2im(input, size, *geometry)


# ---- chunks side by side -------------------------------------------------------------------------


def _chunked(tensor: Tensor, dim: int, chunks: int) -> Tensor:
    """`tensor`, padded with zeros, with the chunks of `dim` in a dimension of their own, and what
    follows it as one."""
    shape = tensor.shape
    size = -(-shape[dim] // chunks)
    missing = size * chunks - shape[dim]
    if missing:
        tensor = flambeau.cat([tensor, tensor.new_zeros(*shape[:dim], missing, *shape[dim + 1:])],
                              dim)
    return tensor.reshape(*shape[:dim], chunks, size * prod(shape[dim + 1:]))


@composed
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
    return flambeau.cat([_chunked(t, dim, num_chunks) for t in tensors], dim + 1)
