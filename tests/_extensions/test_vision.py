"""torchvision's ops: recorded values, closed forms, and derivatives by finite differences."""

import json
import sys
from pathlib import Path

import pytest

import flambeau as torch
from flambeau._extensions import vision  # noqa: F401 - registers the ops
from flambeau._extensions.regions import roi_align

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from vision_cases import CALLS, evaluate, inputs

sys.path.pop(0)
RECORDED = json.loads((HERE.parent / "data" / "vision_ops.json").read_text())
ops = torch.ops.torchvision


@pytest.mark.parametrize("call", CALLS)
def test_values_and_gradients_are_torchvisions(call):
    expected, found = RECORDED[call], evaluate(torch, call, inputs(torch))
    assert found.keys() == expected.keys(), found
    assert found.get("raises") == expected.get("raises")
    for mine, theirs in zip(found.get("values", []), expected.get("values", [])):
        assert mine[:2] == theirs[:2]
        assert mine[2] == pytest.approx(theirs[2], abs=1e-9)
    for name, gradient in expected.get("gradients", {}).items():
        if "ps_roi_pool" not in call:       # whose gradient in torchvision is not its derivative
            mine = found["gradients"].get(name, [0.0] * len(gradient))
            assert mine == pytest.approx(gradient, abs=1e-9), name


def small(*shape):
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


ROIS = torch.tensor([[0, 0.2, 0.3, 3.1, 2.9], [1, 1, -1, 3, 4]]).double()


@pytest.mark.parametrize("function", [
    lambda x: ops.roi_align(x, ROIS, 1.0, 2, 2, 2, True),
    lambda x: ops.ps_roi_align(x, ROIS, 1.0, 2, 2, -1)[0],
    lambda x: ops.roi_pool(x, ROIS, 1.0, 2, 2)[0],
    lambda x: ops.ps_roi_pool(x, ROIS, 1.0, 2, 2)[0],
])
def test_derivatives_of_pooling(function):
    torch.manual_seed(0)
    x = small(2, 4, 3, 4)
    assert torch.autograd.gradcheck(function, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, x)


def test_derivatives_of_deform_conv2d():
    torch.manual_seed(0)
    args = small(1, 2, 4, 4), small(2, 2, 2, 2), small(1, 8, 3, 3), small(1, 4, 3, 3), small(2)

    def function(*tensors):
        return ops.deform_conv2d(*tensors, 1, 1, 0, 0, 1, 1, 1, 1, True)
    assert torch.autograd.gradcheck(function, args)
    assert torch.autograd.gradgradcheck(function, args)


def test_the_backward_ops_are_the_gradients():
    torch.manual_seed(0)
    x = small(2, 4, 3, 4)
    for forward, backward in [
            (lambda: ops.roi_align(x, ROIS, 1.0, 2, 2, 2, False),
             lambda g: ops._roi_align_backward(g, ROIS, 1.0, 2, 2, *x.shape, 2, False)),
            (lambda: ops.roi_pool(x, ROIS, 1.0, 2, 2),
             lambda g, at: ops._roi_pool_backward(g, ROIS, at, 1.0, 2, 2, *x.shape)),
            (lambda: ops.ps_roi_align(x, ROIS, 1.0, 2, 2, 2),
             lambda g, at: ops._ps_roi_align_backward(g, ROIS, at, 1.0, 2, 2, 2, *x.shape)),
            (lambda: ops.ps_roi_pool(x, ROIS, 1.0, 2, 2),
             lambda g, at: ops._ps_roi_pool_backward(g, ROIS, at, 1.0, 2, 2, *x.shape))]:
        result = forward()
        first, *rest = result if isinstance(result, tuple) else (result,)
        grad = torch.randn_like(first)
        expected, = torch.autograd.grad(first, x, grad)
        torch.testing.assert_close(backward(grad, *rest), expected)


def test_without_offsets_deform_conv2d_is_a_convolution():
    torch.manual_seed(0)
    x, weight, bias = small(2, 4, 6, 7), small(6, 2, 3, 3), small(6)
    offset, mask = torch.zeros(2, 36, 3, 4).double(), torch.ones(2, 18, 3, 4).double()
    found = ops.deform_conv2d(x, weight, offset, mask, bias, 2, 2, 1, 1, 1, 1, 2, 2, True)
    expected = torch.nn.functional.conv2d(x, weight, bias, 2, 1, 1, 2)
    torch.testing.assert_close(found, expected)
    grad = torch.randn_like(found)
    mine = ops._deform_conv2d_backward(grad, x, weight, offset, mask, bias,
                                       2, 2, 1, 1, 1, 1, 2, 2, True)
    for a, b in zip((mine[0], mine[1], mine[4]),
                    torch.autograd.grad(expected, (x, weight, bias), grad)):
        torch.testing.assert_close(a, b)


def test_roi_align_of_a_plane_reads_the_plane():
    row, column = torch.meshgrid(torch.arange(8.0), torch.arange(9.0), indexing="ij")
    plane = (2 * row + 3 * column)[None, None]
    found = ops.roi_align(plane, torch.tensor([[0, 1.0, 2.0, 5.0, 6.0]]), 1.0, 2, 2, 3, True)[0, 0]
    # Centres of the cells, half a pixel less: rows 2.5 and 4.5, columns 1.5 and 3.5.
    torch.testing.assert_close(found, torch.tensor([[9.5, 15.5], [13.5, 19.5]]))


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


def test_half_precision_is_computed_in_single():
    torch.manual_seed(0)
    x, rois = torch.randn(1, 2, 5, 5).half(), torch.tensor([[0, 0, 0, 4.0, 4.0]]).half()
    found = ops.roi_align(x, rois, 1.0, 2, 2, 2, True)
    assert found.dtype == torch.float16
    expected = ops.roi_align(x.float(), rois.float(), 1.0, 2, 2, 2, True)
    assert torch.equal(found, expected.half())


def test_pooling_no_regions():
    x, none = torch.ones(1, 4, 3, 3), torch.zeros(0, 5)
    assert ops.roi_align(x, none, 1.0, 2, 2, 2, True).shape == (0, 4, 2, 2)
    assert ops.roi_pool(x, none, 1.0, 2, 2)[1].shape == (0, 4, 2, 2)
    assert ops.ps_roi_pool(x, none, 1.0, 2, 2)[0].shape == (0, 1, 2, 2)


def test_regions_are_batched():
    x = torch.randn(3, 1, 2, 5, 5)
    rois = torch.tensor([[0, 0, 0, 4.0, 4.0]])

    def pooled(image):
        return roi_align(image, rois, 1.0, 2, 2, 2, True)
    torch.testing.assert_close(torch.vmap(pooled)(x), torch.stack([pooled(i) for i in x]))


def test_the_ops_have_torchvisions_schemas():
    assert str(ops.nms.default) == "torchvision.nms.default"
    assert str(ops.nms.default._schema) == (
        "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    assert ops._cuda_version() == -1
