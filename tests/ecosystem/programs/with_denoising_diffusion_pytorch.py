"""denoising-diffusion-pytorch: training and sampling in pixels and along a line."""
# needs: denoising_diffusion_pytorch
# tolerance: 5e-3
import json

import torch
from denoising_diffusion_pytorch import (
    GaussianDiffusion,
    GaussianDiffusion1D,
    Unet,
    Unet1D,
)


def trained(diffusion, make):
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(diffusion.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = diffusion(make())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


torch.manual_seed(0)
pixels = GaussianDiffusion(Unet(dim=8, dim_mults=(1, 2), flash_attn=False), image_size=16,
                           timesteps=20, sampling_timesteps=4, objective="pred_v")
line = GaussianDiffusion1D(Unet1D(dim=8, dim_mults=(1, 2), channels=2), seq_length=16,
                           timesteps=10, objective="pred_noise")
out = {"pixels": trained(pixels, lambda: torch.rand(2, 3, 16, 16)),
       "line": trained(line, lambda: torch.rand(2, 2, 16))}
torch.manual_seed(2)
images, waves = pixels.sample(batch_size=2), line.sample(batch_size=2)
out["samples"] = [images.mean().item(), images.std().item(), waves.mean().item(),
                  waves.std().item()]
print(json.dumps(out))
