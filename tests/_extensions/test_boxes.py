"""Boxes that overlap."""
import pytest

import flambeau as torch
from flambeau._extensions import vision  # noqa: F401 - registers the ops

ops = torch.ops.torchvision


def test_nms_of_many_boxes_is_the_plain_loop():
    torch.manual_seed(0)
    corners = 40 * torch.rand(600, 2)
    boxes = torch.cat([corners, corners + 6 * torch.rand(600, 2)], 1)
    scores = torch.rand(600)
    kept = []
    for i in scores.argsort(descending=True).tolist():
        corners = torch.minimum(boxes[i, 2:], boxes[kept, 2:]) - torch.maximum(
            boxes[i, :2], boxes[kept, :2])
        common = corners.clamp(min=0).prod(1)
        areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        if not (common / (areas[i] + areas[kept] - common) > 0.3).any():
            kept.append(i)
    assert ops.nms(boxes, scores, 0.3).tolist() == kept


def test_equal_scores_keep_their_order():
    boxes = torch.tensor([[0.0, 0, 1, 1], [5, 5, 6, 6], [0, 0, 1, 1]])
    assert ops.nms(boxes, torch.ones(3), 0.5).tolist() == [0, 1]
    assert ops.nms(boxes, torch.ones(3), 1.0).tolist() == [0, 1, 2]


@pytest.mark.parametrize("angle", [0.0, 30.0, 90.0, -137.0])
def test_rotated_boxes_overlap_as_straight_ones_do(angle):
    turn = torch.tensor([0, 0, 0, 0, angle])
    a = torch.tensor([[0.0, 0, 4, 2, 0]]) + turn
    rad = torch.tensor(angle).deg2rad()
    along = torch.stack([rad.cos(), -rad.sin()])
    b = torch.cat([2 * along, torch.tensor([4.0, 2.0, angle])])[None]
    torch.testing.assert_close(ops.box_iou_rotated(a, torch.cat([a, b])),
                               torch.tensor([[1.0, 1 / 3]]), atol=1e-5, rtol=0)


def test_a_square_and_the_same_turned():
    square = torch.tensor([[0.0, 0, 2, 2, 0]])
    turned = torch.tensor([[0.0, 0, 2, 2, 45]])
    common = 8 * (2 ** 0.5 - 1)                     # a regular octagon
    torch.testing.assert_close(ops.box_iou_rotated(square, turned).item(),
                               common / (8 - common), atol=1e-5, rtol=0)
    assert ops.box_iou_rotated(square, torch.tensor([[9.0, 9, 1, 1, 3]])).item() == 0
    assert ops.box_iou_rotated(square, square[:0]).shape == (1, 0)
