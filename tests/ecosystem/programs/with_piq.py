"""Image quality: similarity of images and of sets of features."""
# needs: piq
# tolerance: 1e-3
import json

import piq
import torch

torch.manual_seed(0)
x = torch.rand(2, 3, 64, 64, dtype=torch.float64)
y = (x + 0.1 * torch.randn_like(x)).clamp(0, 1).requires_grad_()
result = {}
for name in ("psnr", "ssim", "vif_p", "fsim", "gmsd", "multi_scale_gmsd", "vsi", "haarpsi", "mdsi",
             "dss", "srsim"):
    function = getattr(piq, name)
    value = function(x, y, data_range=1.0)
    gradient, = torch.autograd.grad(value.sum(), y)
    result[name] = [value.sum().item(), gradient.norm().item()]
result["ms_ssim"] = piq.multi_scale_ssim(x, y, kernel_size=5, data_range=1.0,
                                         scale_weights=torch.tensor([0.5, 0.5])).item()
result["tv"] = piq.total_variation(x).item()
result["loss"] = piq.SSIMLoss()(x, y).item()
a, b = torch.rand(2, 20, 8)
for metric in (piq.FID(), piq.KID()):
    result[type(metric).__name__] = float(metric(a, b))
result["precision"] = [float(v) for v in piq.PR(nearest_k=2)(a, b)]
print(json.dumps(result))
