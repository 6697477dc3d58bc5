"""segmentation-models-pytorch: decoders of several kinds, losses and metrics."""
# needs: segmentation_models_pytorch
# tolerance: 2e-3
import json

import segmentation_models_pytorch as smp
import torch

torch.manual_seed(0)
images, masks = torch.randn(2, 3, 64, 64), torch.randint(0, 3, (2, 64, 64))
out = {}
for name in ("Unet", "UnetPlusPlus", "FPN", "PSPNet", "DeepLabV3Plus", "Linknet", "MAnet",
             "Segformer"):
    torch.manual_seed(1)
    model = getattr(smp, name)("resnet18", encoder_weights=None, classes=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    torch.manual_seed(2)
    loss = smp.losses.DiceLoss("multiclass")(model(images), masks)
    loss.backward()
    optimizer.step()
    out[name] = [loss.item(), model.segmentation_head[0].weight.grad.norm().item()]
torch.manual_seed(3)
logits = torch.randn(2, 3, 64, 64, requires_grad=True)
for loss in (smp.losses.JaccardLoss("multiclass"), smp.losses.FocalLoss("multiclass"),
             smp.losses.TverskyLoss("multiclass"), smp.losses.LovaszLoss("multiclass"),
             smp.losses.SoftCrossEntropyLoss(smooth_factor=0.1)):
    value = loss(logits, masks)
    gradient, = torch.autograd.grad(value, logits)
    out[type(loss).__name__] = [value.item(), gradient.norm().item()]
counts = smp.metrics.get_stats(logits.argmax(1), masks, mode="multiclass", num_classes=3)
out["iou"] = smp.metrics.iou_score(*counts, reduction="micro").item()
out["f1"] = smp.metrics.f1_score(*counts, reduction="macro").item()
print(json.dumps(out))
