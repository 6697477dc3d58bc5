"""lpips: the distance of two pictures with random weights, and its gradient."""
# needs: lpips
# tolerance: 1e-3
import json

import lpips
import torch

out = {}
first, second = (torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(i)) * 2 - 1
                 for i in range(2))
for net in ("alex", "squeeze", "vgg"):
    torch.manual_seed(0)
    metric = lpips.LPIPS(net=net, pretrained=True, pnet_rand=True, verbose=False)
    picture = first.clone().requires_grad_()
    distance = metric(picture, second)
    distance.sum().backward()
    out[net] = [distance.flatten().tolist(), picture.grad.norm().item()]
out["l2"] = lpips.L2(use_gpu=False)(first[:1], second[:1]).flatten().tolist()
print(json.dumps(out))
