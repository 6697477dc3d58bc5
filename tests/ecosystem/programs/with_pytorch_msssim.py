"""Structural similarity of images as a loss."""
# needs: pytorch_msssim
import json

import torch
from pytorch_msssim import MS_SSIM, SSIM, ms_ssim, ssim

torch.manual_seed(0)
truth = torch.rand(1, 3, 176, 176)
image = torch.full_like(truth, 0.5).requires_grad_()
loss = SSIM(data_range=1.0, channel=3, win_size=7)
optimizer = torch.optim.Adam([image], lr=0.1)
losses = []
for _ in range(4):
    optimizer.zero_grad()
    value = 1 - loss(image, truth)
    value.backward()
    optimizer.step()
    losses.append(value.item())
noisy = (truth + 0.2 * torch.randn_like(truth)).clamp(0, 1)
volume = torch.rand(1, 1, 12, 12, 12)
print(json.dumps({
    "losses": losses,
    "ssim": ssim(truth, noisy, data_range=1.0, size_average=False, nonnegative_ssim=True).tolist(),
    "ms_ssim": ms_ssim(truth, noisy, data_range=1.0).item(),
    "module": MS_SSIM(data_range=1.0, channel=3)(truth, noisy).item(),
    "volume": ssim(volume, volume.flip(2), data_range=1.0).item(),
}))
