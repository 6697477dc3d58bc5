"""Pooling of regions of images: closed forms, derivatives by finite differences."""
import pytest

import flambeau as torch
from flambeau._extensions import vision  # noqa: F401 - registers the ops
from flambeau._extensions.regions import roi_align

ops = torch.ops.torchvision


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


def test_roi_align_of_a_plane_reads_the_plane():
    row, column = torch.meshgrid(torch.arange(8.0), torch.arange(9.0), indexing="ij")
    plane = (2 * row + 3 * column)[None, None]
    found = ops.roi_align(plane, torch.tensor([[0, 1.0, 2.0, 5.0, 6.0]]), 1.0, 2, 2, 3, True)[0, 0]
    # Centres of the cells, half a pixel less: rows 2.5 and 4.5, columns 1.5 and 3.5.
    torch.testing.assert_close(found, torch.tensor([[9.5, 15.5], [13.5, 19.5]]))


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
