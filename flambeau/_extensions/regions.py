"""Pooling of regions of images: torchvision's `roi_align`, `roi_pool` and their kin.

Each is linear in the image (or, for a maximum, in what it chose): every output is a weighted sum
of a few pixels. Which pixels and weights follows from the regions alone; the sums are one
`embedding_bag`, whose derivatives of any order are there.

A region is a row `(image, x1, y1, x2, y2)`; it is cut into `bins = (height, width)` cells.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F

HALVES = (flambeau.float16, flambeau.bfloat16)


class Axis(NamedTuple):
    """The pixels that each bin of each region looks at along one axis: `(regions, bins, n)`."""

    places: Tensor
    weights: Tensor


def roi_align(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int,
              pooled_width: int, sampling_ratio: int, aligned: bool) -> Tensor:
    """The mean of points in each cell, interpolated between pixels."""
    check(input, rois, "roi_align_forward_kernel")
    shift = 0.5 if aligned else 0.0
    return _aligned(input, rois, spatial_scale, (pooled_height, pooled_width), sampling_ratio,
                    shift, smallest=None if aligned else 1.0)


def ps_roi_align(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int,
                 pooled_width: int, sampling_ratio: int) -> tuple[Tensor, Tensor]:
    """As `roi_align`, where every cell has channels of its own."""
    check(input, rois, "ps_roi_align_forward_kernel", cells=pooled_height * pooled_width)
    bins = pooled_height, pooled_width
    result = _aligned(input, rois, spatial_scale, bins, sampling_ratio, 0.5, smallest=None,
                      own_channels=True)
    return result, channel_mapping(input, rois, bins)


def _aligned(input: Tensor, rois: Tensor, scale: float, bins: tuple[int, int], ratio: int,
             shift: float, smallest: float | None, own_channels: bool = False) -> Tensor:
    """`roi_align`; regions with equally many points in a cell are treated together."""
    exact = input.float() if input.dtype in HALVES else input
    image, starts, sizes = _corners(rois.detach(), scale, shift, smallest)
    if ratio > 0:
        counts = flambeau.full_like(sizes, ratio)
    else:
        counts = (sizes / sizes.new_tensor(bins)).ceil()
    pixels = _in_own_channel if own_channels else _in_every_channel
    channels = input.shape[1] // (bins[0] * bins[1] if own_channels else 1)
    result = exact.new_zeros((len(rois), channels, *bins))
    for count in counts.unique(dim=0).tolist():
        chosen = (counts == counts.new_tensor(count)).all(1).nonzero()[:, 0]
        if min(count) < 1:
            continue                            # a region without extent has no points: zero
        axes = [_points(starts[chosen, i], sizes[chosen, i], bins[i], int(count[i]),
                        input.shape[2 + i]) for i in range(2)]
        result = result.index_copy(0, chosen, pixels(exact, image[chosen], bins, axes))
    return result.to(input.dtype)


def _corners(rois: Tensor, scale: float, shift: float, smallest: float | None
             ) -> tuple[Tensor, Tensor, Tensor]:
    """Image, start (y, x) and size (height, width) of regions."""
    starts = rois[:, [2, 1]] * scale - shift
    sizes = rois[:, [4, 3]] * scale - shift - starts
    return rois[:, 0].long(), starts, sizes if smallest is None else sizes.clamp(min=smallest)


def _points(start: Tensor, size: Tensor, bins: int, count: int, extent: int) -> Axis:
    """`count` points in each bin, as pixels on both sides of each, with weights."""
    steps = (flambeau.arange(bins * count, dtype=start.dtype) + 0.5) / count
    at = (start[:, None] + steps * (size / bins)[:, None]).unflatten(1, (bins, count))
    outside = (at < -1) | (at > extent)
    at = at.clamp(0, extent - 1)
    low = at.floor()
    high = (low + 1).clamp(max=extent - 1)
    upper = at - low
    weights = flambeau.stack([1 - upper, upper], -1).masked_fill(outside[..., None], 0)
    places = flambeau.stack([low, high], -1).long()
    return Axis(places.flatten(2), weights.flatten(2) / count)


# ---- which pixels -------------------------------------------------------------------------------

def _in_every_channel(input: Tensor, image: Tensor, bins: tuple[int, int], axes: list[Axis]
                      ) -> Tensor:
    """Weighted sums of pixels of all channels: `(regions, channels, *bins)`."""
    channels, height, width = input.shape[1:]
    table = input.permute(0, 2, 3, 1).reshape(-1, channels)
    first = (image * height * width)[:, None, None]
    return _sums(table, first, axes, width)


def _in_own_channel(input: Tensor, image: Tensor, bins: tuple[int, int], axes: list[Axis]
                    ) -> Tensor:
    """The same, where the cell in row i and column j looks at the channels `(:, i, j)`."""
    height, width = input.shape[2:]
    cells = bins[0] * bins[1]
    table = input.unflatten(1, (-1, cells)).permute(0, 2, 3, 4, 1)
    cell = flambeau.arange(cells).view(bins)
    first = (image[:, None, None] * cells + cell) * (height * width)
    return _sums(table.reshape(-1, input.shape[1] // cells), first, axes, width)


def _sums(table: Tensor, first: Tensor, axes: list[Axis], width: int) -> Tensor:
    rows, columns = axes
    places = rows.places[:, :, None, :, None] * width + columns.places[:, None, :, None, :]
    weights = (rows.weights[:, :, None, :, None] * columns.weights[:, None, :, None, :]).to(
        table.dtype)
    places = places + first[..., None, None]
    sums = F.embedding_bag(places.flatten(3).flatten(0, 2), table, mode="sum",
                           per_sample_weights=weights.flatten(3).flatten(0, 2))
    return sums.unflatten(0, places.shape[:3]).permute(0, 3, 1, 2)


def channel_mapping(input: Tensor, rois: Tensor, bins: tuple[int, int]) -> Tensor:
    """Which channel each output comes from."""
    channels = flambeau.arange(input.shape[1], dtype=flambeau.int32).view(-1, *bins)
    return channels.expand(len(rois), -1, -1, -1).contiguous()


# ---- whole pixels -------------------------------------------------------------------------------

def roi_pool(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int,
             pooled_width: int) -> tuple[Tensor, Tensor]:
    """The largest pixel in each cell, and its place in the image; 0 and -1 where it has none."""
    check(input, rois, "roi_pool_forward_kernel")
    bins, extents = (pooled_height, pooled_width), input.shape[2:]
    image, edges = _whole_pixels(rois, spatial_scale, bins, extents, last=1)
    channels, (height, width) = input.shape[1], extents
    argmax = flambeau.full((len(rois), channels, *bins), -1, dtype=flambeau.int32)
    for k, (batch, rows, columns) in enumerate(zip(image, *edges)):
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                if bottom > top and right > left:
                    best = input.detach()[batch, :, top:bottom, left:right].flatten(1).argmax(1)
                    row, column = best // (right - left) + top, best % (right - left) + left
                    argmax[k, :, i, j] = row * width + column
    channel = flambeau.arange(channels).view(-1, 1, 1)
    batch = rois[:, 0].long().view(-1, 1, 1, 1)
    first = (batch * channels + channel) * (height * width)
    largest = input.reshape(-1)[first + argmax.clamp(min=0)]
    return largest.masked_fill(argmax < 0, 0), argmax


def ps_roi_pool(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int,
                pooled_width: int) -> tuple[Tensor, Tensor]:
    """The mean of the pixels in each cell, where every cell has channels of its own."""
    check(input, rois, "ps_roi_pool_forward_kernel", cells=pooled_height * pooled_width)
    bins, (height, width) = (pooled_height, pooled_width), input.shape[2:]
    image, edges = _whole_pixels(rois, spatial_scale, bins, input.shape[2:], last=0)
    pixels = flambeau.arange(height * width).view(height, width)
    chosen, cells = [], bins[0] * bins[1]
    for batch, rows, columns in zip(image, *edges):
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                first = (batch * cells + i * bins[1] + j) * height * width
                chosen.append(pixels[top:bottom, left:right].flatten() + first)
    lengths = [len(places) for places in chosen]
    offsets = flambeau.tensor([0, *lengths]).cumsum(0)[:-1]
    table = input.unflatten(1, (-1, cells)).permute(0, 2, 3, 4, 1).reshape(
        -1, input.shape[1] // cells)
    places = flambeau.cat(chosen) if chosen else flambeau.zeros(0, dtype=flambeau.int64)
    means = F.embedding_bag(places, table, offsets, mode="mean")
    result = means.unflatten(0, (len(rois), *bins)).permute(0, 3, 1, 2)
    return result, channel_mapping(input, rois, bins)


def _whole_pixels(rois: Tensor, scale: float, bins: tuple[int, int], extents: Any, last: int
                  ) -> tuple[list[int], list[Any]]:
    """The image of each region, and along each axis first pixel and end of each bin.

    `last` is 1 where the pixel in the far corner belongs to the region; torchvision leaves out
    the last row and column of the image where it does not.
    """
    corners = _rounded(rois.detach()[:, 1:].float() * scale)
    edges = []
    for i, (bin_count, extent) in enumerate(zip(bins, extents)):
        start, end = corners[:, 1 - i], corners[:, 3 - i]
        size = (end - start + last).clamp(min=1) / bin_count
        steps = flambeau.arange(bin_count + 1.0)
        at = size[:, None] * steps
        first = (at[:, :-1].floor() + start[:, None]).clamp(0, extent - 1 + last)
        ends = (at[:, 1:].ceil() + start[:, None]).clamp(0, extent - 1 + last)
        edges.append(flambeau.stack([first, ends], -1).long().tolist())
    return rois[:, 0].long().tolist(), edges


def _rounded(x: Tensor) -> Tensor:
    """To whole numbers, halves away from zero."""
    return x.sign() * (x.abs() + 0.5).floor()


def check(input: Tensor, rois: Tensor, kernel: str, cells: int = 1) -> None:
    """Raise what torchvision raises for other shapes and types."""
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise RuntimeError("rois must have shape as Tensor[K, 5]")
    if input.ndim != 4:
        raise IndexError(f"{kernel}: an image batch has 4 dimensions, but got {input.ndim}")
    if input.dtype != rois.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'input' to have the same type as tensor for argument "
            f"#2 'rois'; but type {input.type()} does not equal {rois.type()} (while checking "
            f"arguments for {kernel})")
    if input.shape[1] % cells:
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
