"""torchvision's detectors: a step of training and predictions of three kinds of model."""
# needs: torchvision
# tolerance: 5e-3
import json

import torch
import torchvision
from torchvision import ops
from torchvision.models import detection

torch.manual_seed(0)
images = [torch.rand(3, 96, 120), torch.rand(3, 110, 90)]
targets = [
    {"boxes": torch.tensor([[10.0, 12, 60, 80], [50, 20, 110, 90]]),
     "labels": torch.tensor([1, 2]), "masks": torch.ones(2, 96, 120, dtype=torch.uint8)},
    {"boxes": torch.tensor([[5.0, 30, 70, 100]]), "labels": torch.tensor([2]),
     "masks": torch.ones(1, 110, 90, dtype=torch.uint8)},
]


def fitted(model):
    torch.manual_seed(1)
    model.train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    losses = model(images, targets)
    sum(losses.values()).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    model.eval()
    with torch.no_grad():
        found = model(images[:1])[0]
    return {"losses": {name: loss.item() for name, loss in losses.items()},
            "norm": norm.item(), "keys": sorted(found), "boxes": list(found["boxes"].shape[1:])}


def small(make, **options):
    torch.manual_seed(0)
    return make(weights=None, weights_backbone=None, num_classes=3, min_size=96, max_size=128,
                **options)


torch.manual_seed(2)
features = torch.randn(1, 8, 16, 16, requires_grad=True)
corners = torch.rand(30, 2) * 40
boxes = torch.cat([corners, corners + 4 + 20 * torch.rand(30, 2)], 1)
scores = torch.rand(30)
regions = torch.cat([torch.zeros(5, 1), boxes[:5] / 4], 1)
pooled = {
    "roi_align": ops.roi_align(features, regions, 3, 1.0, 2, True),
    "roi_pool": ops.roi_pool(features, regions, 2),
    "ps_roi_align": ops.ps_roi_align(features, regions, 2, 1.0, 2),
    "ps_roi_pool": ops.ps_roi_pool(features, regions, 2),
    "deform_conv2d": ops.DeformConv2d(8, 4, 3, padding=1)(
        features, torch.randn(1, 18, 16, 16), torch.rand(1, 9, 16, 16)),
}
operations = {}
for name, result in pooled.items():
    gradient, = torch.autograd.grad(result.square().sum(), features)
    operations[name] = [result.mean().item(), gradient.abs().sum().item()]
# The gradient that torchvision gives of this one is not that of what it computes.
operations["ps_roi_pool"].pop()

print(json.dumps({
    "nms": ops.nms(boxes, scores, 0.4).tolist(),
    "batched_nms": ops.batched_nms(boxes, scores, torch.arange(30) % 3, 0.4).tolist(),
    "iou": ops.box_iou(boxes[:3], boxes[3:6]).tolist(),
    "giou": ops.generalized_box_iou_loss(boxes[:6], boxes[6:12], "mean").item(),
    "focal": ops.sigmoid_focal_loss(scores, (scores > 0.5).float(), reduction="mean").item(),
    "operations": operations,
    "faster_rcnn": fitted(small(detection.fasterrcnn_mobilenet_v3_large_320_fpn)),
    "mask_rcnn": fitted(small(detection.maskrcnn_resnet50_fpn, trainable_backbone_layers=1)),
    "retinanet": fitted(small(detection.retinanet_resnet50_fpn, trainable_backbone_layers=1)),
    "version": torchvision.__version__.split("+")[0],
}))
