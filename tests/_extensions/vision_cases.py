"""Calls of torchvision's ops, for `test_vision.py` and for what records PyTorch's answers."""

CALLS = [
    *(f"ops.roi_align(x, rois, {scale}, 2, 3, {ratio}, {aligned})"
      for scale in (1.0, 0.5) for ratio in (-1, 1, 2) for aligned in (True, False)),
    *(f"ops.ps_roi_align(x, rois[:4], {scale}, 2, 3, {ratio})"
      for scale in (1.0, 0.5) for ratio in (-1, 2)),
    *(f"ops.roi_pool(x, rois, {scale}, 2, 3)" for scale in (1.0, 0.5)),
    "ops.ps_roi_pool(x, inner, 1.0, 2, 3)",
    "ops.deform_conv2d(x, weight, offset, mask, bias, 2, 1, 1, 2, 1, 2, 1, 3, True)",
    "ops.deform_conv2d(x, weight, offset[:, :12], mask[:, :6], bias, 2, 1, 1, 2, 1, 2, 1, 1, True)",
    "ops.deform_conv2d(x, weight[:, :6], offset, mask, bias, 2, 1, 1, 2, 1, 2, 2, 3, False)",
    *(f"ops.nms(boxes, scores, {threshold})" for threshold in (0.0, 0.2, 0.5, 1.0)),
    "ops.nms(boxes[:0], scores[:0], 0.5)",
    "ops.box_iou_rotated(rotated, rotated)",
    "ops.qnms(boxes.byte(), (scores * 9).byte(), 0.3)",
    "ops.qroi_align((9 * x[:1]).byte(), (2 * inner[:1]).byte(), 1, 3, .5, 0, 1, 2, 2, 2, True)",
    # what is wrong
    "ops.qroi_align((x * 9 + 20).byte(), (inner * 2).byte(), 1, 3, .5, 0, 1, 2, 2, 2, True)",
    "ops.nms(boxes[0], scores, 0.5)",
    "ops.nms(boxes[:, :3], scores, 0.5)",
    "ops.nms(boxes, scores[:, None], 0.5)",
    "ops.nms(boxes, scores[:3], 0.5)",
    "ops.nms(boxes, scores.float(), 0.5)",
    "ops.roi_align(x, rois[:, 1:], 1.0, 2, 3, 2, True)",
    "ops.roi_align(x, rois.float(), 1.0, 2, 3, 2, True)",
    "ops.ps_roi_align(x, rois, 1.0, 5, 3, 2)",
    "ops.ps_roi_pool(x, rois, 1.0, 5, 3)",
    "ops.deform_conv2d(x, weight, offset[:, :5], mask, bias, 2, 1, 1, 2, 1, 2, 1, 3, True)",
    "ops.deform_conv2d(x, weight, offset, mask[:, :5], bias, 2, 1, 1, 2, 1, 2, 1, 3, True)",
    "ops.deform_conv2d(x, weight, offset[:1], mask, bias, 2, 1, 1, 2, 1, 2, 1, 3, True)",
    "ops.deform_conv2d(x, weight, offset, mask, bias, 1, 1, 1, 2, 1, 2, 1, 3, True)",
    "ops.deform_conv2d(x, weight, offset, mask, bias, 2, 1, -1, 2, 1, 2, 1, 3, True)",
    "ops.deform_conv2d(x, weight, offset, mask, bias, 2, 1, 1, 2, 0, 2, 1, 3, True)",
]


def inputs(torch):
    """The names in the calls."""
    def wave(*shape):
        n = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
        return (n * n * 0.37 + n).cos().view(shape)

    corners = torch.tensor([[1., 2], [0, 1], [4, 3], [1.5, 2], [7, 0], [4.5, 2.5]]).double()
    boxes = torch.cat([corners, corners + torch.tensor([4., 3]) + wave(6, 2)], 1)
    return {
        "x": wave(2, 12, 6, 7),
        "rois": torch.tensor([[0, 0, 0, 5.5, 4.2], [1, -3, -2, 4, 9], [0, 2.5, 2.5, 2.6, 2.6],
                              [1, 3, 4.7, 30, 5.9], [0, 6, 5, 2, 1], [1, 3, 3, 3, 3]]).double(),
        "inner": torch.tensor([[0, 1, 0, 4, 3.], [1, 0, 2, 5, 4]]).double(),
        "weight": wave(4, 12, 3, 2), "bias": wave(4),
        "offset": 2 * wave(2, 36, 3, 9), "mask": wave(2, 18, 3, 9) ** 2,
        "boxes": boxes, "scores": wave(6) ** 2,
        "rotated": torch.cat([corners, 2 + wave(6, 2), 100 * wave(6, 1)], 1),
    }


def evaluate(torch, call, given):
    """Values and gradients of a call as lists, or the error's type and its first line."""
    wanted = ("x", "weight", "offset", "mask", "bias")
    given = {k: v.requires_grad_() if k in wanted else v for k, v in given.items()}
    try:
        result = eval(call, {"ops": torch.ops.torchvision, **given})
    except Exception as error:
        return {"raises": [type(error).__name__, str(error).splitlines()[0]]}
    results = result if isinstance(result, tuple) else (result,)
    first = results[0]
    found = {"values": [[str(r.dtype), list(r.shape), _rounded(r)] for r in results]}
    if first.requires_grad:
        cotangent = torch.arange(first.numel(), dtype=first.dtype).sin().view(first.shape)
        grads = torch.autograd.grad(first, list(map(given.get, wanted)), cotangent,
                                    allow_unused=True)
        found["gradients"] = {name: _rounded(g)[::7] for name, g in zip(wanted, grads)
                              if g is not None and f"{name}," in call + ","}
    return found


def _rounded(tensor):
    return [float(f"{value:.10g}") for value in tensor.flatten().tolist()]
