"""Which boxes to keep among overlapping ones, and how rotated boxes overlap."""
from __future__ import annotations

import numpy as np

import flambeau
from flambeau import Tensor

_ROWS = 256         # boxes compared with all others at a time


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Non-maximum suppression: boxes by falling score, without those that overlap a kept one.

    Two boxes `(x1, y1, x2, y2)` overlap if their intersection over union exceeds the threshold.
    """
    _check(dets, scores)
    order = scores.detach().sort(descending=True, stable=True).indices
    boxes = dets.detach()[order]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = np.ones(len(boxes), bool)
    for first in range(0, len(boxes), _ROWS):
        rows = slice(first, first + _ROWS)
        over = _overlap(boxes, areas, rows, iou_threshold).numpy()
        for i, others in enumerate(over, first):
            if kept[i]:
                kept[i + 1:] &= ~others[i + 1 - first:]
    return order[flambeau.from_numpy(kept)]


def _overlap(boxes: Tensor, areas: Tensor, rows: slice, threshold: float) -> Tensor:
    """Which boxes from the first of `rows` on overlap each of `rows`."""
    mine, others = boxes[rows, None], boxes[None, rows.start:]
    corners = flambeau.minimum(mine[..., 2:], others[..., 2:]) \
        - flambeau.maximum(mine[..., :2], others[..., :2])
    common = corners.clamp(min=0).prod(-1)
    return common / (areas[rows, None] + areas[rows.start:] - common) > threshold


def _check(dets: Tensor, scores: Tensor) -> None:
    if dets.ndim != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.ndim}D")
    if dets.shape[1] != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.shape[1]}")
    if scores.ndim != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.ndim}D")
    if len(dets) != len(scores):
        raise RuntimeError("boxes and scores should have same number of elements in dimension 0, "
                           f"got {len(dets)} and {len(scores)}")
    if dets.dtype != scores.dtype:
        raise RuntimeError("dets should have the same type as scores")


# ---- rotated boxes ------------------------------------------------------------------------------

def box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Intersection over union of all pairs of rotated boxes `(x, y, width, height, degrees)`.

    The intersection of two boxes is convex. Its corners are corners of one box inside the other,
    and places where edges cross.
    """
    first, second = boxes1[:, None].double(), boxes2[None].double()
    a, b = _corners(first), _corners(second)
    crossings, crossed = _crossings(a, b)
    shape = (*crossings.shape[:2], 4)
    points = flambeau.cat([crossings, a.expand(*shape, 2), b.expand(*shape, 2)], 2)
    valid = flambeau.cat([crossed, _inside(a, b).expand(shape), _inside(b, a).expand(shape)], 2)
    common = _convex_area(points, valid)
    areas = [box[..., 2] * box[..., 3] for box in (first, second)]
    small = flambeau.minimum(*areas) < _TINY
    union = areas[0] + areas[1] - common
    return (common / union).masked_fill(small, 0).float()


_TINY = 1e-14
_NEAR = 1e-9        # how far outside an edge a corner may be, relative to the edge's length


def _corners(boxes: Tensor) -> Tensor:
    """The corners of rotated boxes, in order: `(…, 4, 2)`."""
    angle = boxes[..., 4].deg2rad()
    along = flambeau.stack([angle.cos(), -angle.sin()], -1) * boxes[..., 2:3] / 2
    across = flambeau.stack([angle.sin(), angle.cos()], -1) * boxes[..., 3:4] / 2
    centre = boxes[..., :2]
    return flambeau.stack([centre + along + across, centre + along - across,
                           centre - along - across, centre - along + across], -2)


def _cross(u: Tensor, v: Tensor) -> Tensor:
    return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]


def _crossings(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Where each edge of `a` meets each of `b`, and whether it does: `(…, 16, 2)`, `(…, 16)`."""
    start, other = a[..., :, None, :], b[..., None, :, :]
    edge = a.roll(-1, -2)[..., :, None, :] - start
    other_edge = b.roll(-1, -2)[..., None, :, :] - other
    turn = _cross(edge, other_edge)
    parallel = turn.abs() < _TINY
    turn = turn.masked_fill(parallel, 1)
    t = _cross(other - start, other_edge) / turn
    u = _cross(other - start, edge) / turn
    meets = (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1) & ~parallel
    return (start + t[..., None] * edge).flatten(-3, -2), meets.flatten(-2)


def _inside(points: Tensor, box: Tensor) -> Tensor:
    """Which points are in a rotated box."""
    origin = box[..., None, 0, :]
    inside = None
    for corner in (1, 3):
        edge = box[..., None, corner, :] - origin
        length = (edge * edge).sum(-1)
        at = ((points - origin) * edge).sum(-1)
        within = (at >= -_NEAR * length) & (at <= (1 + _NEAR) * length)
        inside = within if inside is None else inside & within
    return inside


def _convex_area(points: Tensor, valid: Tensor) -> Tensor:
    """The area of the convex polygon of the valid points, in whatever order they are."""
    count = valid.sum(-1)
    kept = points.masked_fill(~valid[..., None], 0)
    centre = kept.sum(-2) / count.clamp(min=1)[..., None]
    arms = points - centre[..., None, :]
    angle = flambeau.atan2(arms[..., 1], arms[..., 0]).masked_fill(~valid, flambeau.inf)
    order = angle.argsort(-1)
    arms = arms.gather(-2, order[..., None].expand(arms.shape))
    # Points that do not count come last; they stand at the first one and add nothing.
    places = flambeau.arange(points.shape[-2]) < count[..., None]
    arms = arms.where(places[..., None], arms[..., :1, :])
    area = _cross(arms, arms.roll(-1, -2)).sum(-1).abs() / 2
    return area.masked_fill(count < 3, 0)
