"""Convolution whose taps move: torchvision's `deform_conv2d`."""
from __future__ import annotations

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F


def deform_conv2d(input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor,
                  stride_h: int, stride_w: int, pad_h: int, pad_w: int, dilation_h: int,
                  dilation_w: int, groups: int, offset_groups: int, use_mask: bool) -> Tensor:
    """A convolution; `offset` says for each output how far each tap is moved, down and right.

    Between pixels the image is interpolated, outside it is zero. `mask` scales the taps.
    """
    stride, pad, dilation = (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w)
    _check_sizes(input, weight, stride, pad, dilation, groups, offset_groups)
    batch, taps = input.shape[0], tuple(weight.shape[2:])
    out = tuple((size + 2 * p - d * (tap - 1) - 1) // s + 1 for size, tap, s, p, d in zip(
        input.shape[2:], taps, stride, pad, dilation))
    _check_taps(offset, "offset", batch, 2 * offset_groups * taps[0] * taps[1], out)
    if use_mask:
        _check_taps(mask, "mask", batch, offset_groups * taps[0] * taps[1], out)
    if min(out) <= 0:
        raise RuntimeError(f"Calculated output size too small - out_h: {out[0]} out_w: {out[1]}")
    shifts = offset.view(batch, offset_groups, taps[0] * taps[1], 2, *out)
    grid = _places(taps, out, stride, pad, dilation)
    at = grid.to(offset.dtype) + shifts                    # (batch, groups, taps, 2, *out)
    factor = mask.view(batch, offset_groups, -1, *out) if use_mask else None
    columns = _sampled(input.unflatten(1, (offset_groups, -1)), at, factor)
    columns = columns.reshape(batch, groups, -1, out[0] * out[1])
    result = weight.view(groups, weight.shape[0] // groups, -1) @ columns
    return result.view(batch, -1, *out) + bias.view(-1, 1, 1)


def _places(taps: tuple[int, ...], out: tuple[int, ...], stride: tuple[int, int],
            pad: tuple[int, int], dilation: tuple[int, int]) -> Tensor:
    """Where the taps of each output are, unmoved: `(taps, 2, *out)`."""
    rows, columns = (
        (flambeau.arange(n)[:, None] * d + flambeau.arange(o) * s - p)
        for n, o, s, p, d in zip(taps, out, stride, pad, dilation))
    shape = (*taps, *out)
    return flambeau.stack([rows[:, None, :, None].expand(shape),
                           columns[None, :, None, :].expand(shape)], 2).flatten(0, 1)


def _sampled(images: Tensor, at: Tensor, factor: Tensor | None) -> Tensor:
    """Images `(batch, groups, channels, h, w)` at places: `(batch, groups, channels, taps, *out)`.

    The four pixels around a place are rows of a table, summed with weights that depend on it.
    """
    height, width = images.shape[3:]
    low = at.detach().floor()
    down, right = ((1 - part, part) for part in (at - low).unbind(3))
    places, weights = [], []
    for i in range(2):
        for j in range(2):
            row, column = low[:, :, :, 0] + i, low[:, :, :, 1] + j
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            weights.append((down[i] * right[j]).masked_fill(~inside, 0))
            places.append((row * width + column).long().masked_fill(~inside, 0))
    weight = flambeau.stack(weights, -1)
    if factor is not None:
        weight = weight * factor[..., None]
    first = flambeau.arange(images.shape[0] * images.shape[1]).view(images.shape[:2])
    place = flambeau.stack(places, -1) + (first * height * width)[:, :, None, None, None, None]
    table = images.permute(0, 1, 3, 4, 2).reshape(-1, images.shape[2])
    sums = F.embedding_bag(place.view(-1, 4), table, mode="sum",
                           per_sample_weights=weight.view(-1, 4))
    return sums.unflatten(0, weight.shape[:-1]).movedim(-1, 2)


def _check_sizes(input: Tensor, weight: Tensor, stride: tuple[int, int], pad: tuple[int, int],
                 dilation: tuple[int, int], groups: int, offset_groups: int) -> None:
    for name, tensor in (("input", input), ("weight", weight)):
        if tensor.ndim != 4:
            raise RuntimeError(f"Expected {name}.ndimension() == 4 to be true, but got false: "
                               f"{name} has {tensor.ndim} dimensions")
    if min(weight.shape[2:]) <= 0:
        raise RuntimeError(f"weight_h: {weight.shape[2]} weight_w: {weight.shape[3]}")
    for name, (down, right), least in (("stride", stride, 1), ("pad", pad, 0),
                                       ("dilation", dilation, 1)):
        if min(down, right) < least:
            raise RuntimeError(f"{name}_h: {down} {name}_w: {right}")
    channels = input.shape[1]
    if weight.shape[1] * groups != channels:
        raise RuntimeError("Expected weight.size(1) * n_weight_grps == input.size(1) to be true, "
                           f"but got false: {weight.shape[1]} * {groups} and {channels}")
    if weight.shape[0] % groups:
        raise RuntimeError("Expected weight.size(0) % n_weight_grps == 0 to be true, but got "
                           f"false: {weight.shape[0]} and {groups}")
    if channels % offset_groups:
        raise RuntimeError("Expected input.size(1) % n_offset_grps == 0 to be true, but got "
                           f"false: {channels} and {offset_groups}")


def _check_taps(tensor: Tensor, name: str, batch: int, channels: int, out: tuple[int, ...]
                ) -> None:
    """`tensor` has so many channels, and the size of the output."""
    if tensor.shape[0] != batch:
        raise RuntimeError(f"invalid batch size of {name}")
    if tensor.shape[1] != channels:
        raise RuntimeError(f"{name}.shape[1] is not valid: got: {tensor.shape[1]} expected: "
                           f"{channels}")
    if tuple(tensor.shape[2:]) != out:
        given = tuple(tensor.shape[2:])
        raise RuntimeError(f"{name} output dims: ({given[0]}, {given[1]}) - computed output dims: "
                           f"({out[0]}, {out[1]})")
