"""The ops of torchvision's extension, as `torch.ops.torchvision.*`.

They are made of flambeau's ops, so that all derivatives, of any order, are there.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._extensions import boxes, deformable, regions
from flambeau.library import Library

_ROI = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_CONVOLVED = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask")


def _backward(forward: Callable[..., Any], parameters: int) -> Callable[..., Tensor]:
    """The gradient of `input`, from that of the (first) result.

    It is called as torchvision calls it: `parameters` arguments of `forward` after the regions,
    then the size of the input, then the other arguments of `forward`.
    """
    def backward(grad: Tensor, rois: Tensor, *args: Any) -> Tensor:
        end = parameters + 4
        shape, others = args[parameters:end], (*args[:parameters], *args[end:])
        return _transposed(lambda input: forward(input, rois, *others), shape, grad)
    return backward


def _transposed(function: Callable[[Tensor], Any], shape: Any, grad: Tensor) -> Tensor:
    """The gradient of an input of that shape through a function that is linear in it."""
    recording = flambeau.is_grad_enabled()
    with flambeau.enable_grad():
        input = flambeau.zeros(shape, dtype=grad.dtype, requires_grad=True)
        result = function(input)
    result = result[0] if isinstance(result, tuple) else result
    return flambeau.autograd.grad(result, input, grad, create_graph=recording)[0]


def _roi_pool_backward(grad: Tensor, rois: Tensor, argmax: Tensor, spatial_scale: float,
                       pooled_height: int, pooled_width: int, *shape: int) -> Tensor:
    """Each gradient goes to the pixel that was the largest."""
    _, channels, height, width = shape
    image = rois[:, 0].long().view(-1, 1, 1, 1)
    channel = flambeau.arange(channels).view(-1, 1, 1)
    first = (image * channels + channel) * (height * width)
    kept = grad.masked_fill(argmax < 0, 0)
    places = (first + argmax.clamp(min=0)).flatten()
    total = flambeau.zeros(shape, dtype=grad.dtype).flatten()
    return total.index_add(0, places, kept.flatten()).view(shape)


def _ps_backward(forward: Callable[..., Any], parameters: int) -> Callable[..., Tensor]:
    def backward(grad: Tensor, rois: Tensor, channel_mapping: Tensor, *args: Any) -> Tensor:
        # torchvision puts the number of points before the size.
        return _backward(forward, parameters)(grad, rois, *args)
    return backward


def _deform_conv2d_backward(grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor,
                            mask: Tensor, bias: Tensor, *args: Any) -> tuple[Tensor, ...]:
    recording = flambeau.is_grad_enabled()
    with flambeau.enable_grad():
        inputs: Any = [x if recording and x.requires_grad else x.detach().requires_grad_()
                       for x in (input, weight, offset, mask, bias)]
        result = deformable.deform_conv2d(*inputs, *args)
    return flambeau.autograd.grad(result, inputs, grad, create_graph=recording,
                                  materialize_grads=True)


# ---- quantized tensors --------------------------------------------------------------------------

def _qnms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """`nms` of the whole numbers that stand for corners and scores."""
    return boxes.nms(dets.float(), scores.float(), iou_threshold)


def _qroi_align(input: Tensor, rois: Tensor, input_scale: float, input_zero_point: int,
                rois_scale: float, rois_zero_point: int, spatial_scale: float, pooled_height: int,
                pooled_width: int, sampling_ratio: int, aligned: bool) -> Tensor:
    """`roi_align` of whole numbers that stand for others, rounded to such numbers again."""
    if len(input) > 1:
        raise RuntimeError("Only one image per batch is allowed in qroi_align.")
    values = (input.float() - input_zero_point) * input_scale
    corners = (rois.float() - rois_zero_point) * rois_scale
    result = regions.roi_align(values, corners, spatial_scale, pooled_height, pooled_width,
                               sampling_ratio, aligned)
    return (result / input_scale).round().add(input_zero_point).to(input.dtype)


_OPS: dict[str, Callable[..., Any]] = {
    "_cuda_version() -> int _0": lambda: -1,
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": boxes.nms,
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": _qnms,
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor": boxes.box_iou_rotated,
    f"roi_align({_ROI}, int sampling_ratio, bool aligned) -> Tensor": regions.roi_align,
    f"roi_pool({_ROI}) -> (Tensor, Tensor)": regions.roi_pool,
    f"ps_roi_align({_ROI}, int sampling_ratio) -> (Tensor, Tensor)": regions.ps_roi_align,
    f"ps_roi_pool({_ROI}) -> (Tensor, Tensor)": regions.ps_roi_pool,
    f"deform_conv2d({_CONVOLVED}) -> Tensor": deformable.deform_conv2d,
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, "
    "float rois_scale, int rois_zero_point, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor": _qroi_align,
    "_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, "
    f"SymInt pooled_width, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor":
        _backward(regions.roi_align, parameters=3),
    "_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, "
    f"SymInt pooled_height, SymInt pooled_width, {_SIZES}) -> Tensor": _roi_pool_backward,
    "_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, "
    f"SymInt pooled_height, SymInt pooled_width, int sampling_ratio, {_SIZES}) -> Tensor":
        _ps_backward(regions.ps_roi_align, parameters=4),
    "_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, "
    f"SymInt pooled_height, SymInt pooled_width, {_SIZES}) -> Tensor":
        _ps_backward(regions.ps_roi_pool, parameters=3),
    f"_deform_conv2d_backward(Tensor grad, {_CONVOLVED}) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)": _deform_conv2d_backward,
}

_library = Library("torchvision", "DEF")
for _schema, _function in _OPS.items():
    _library.impl(_library.define(_schema), _function, "CompositeImplicitAutograd")
