"""Self-supervised learning: losses, heads, momentum encoders, masked autoencoders."""
# needs: lightly
import copy
import json
import warnings

warnings.simplefilter("ignore")

import torch
from lightly.loss import (
    BarlowTwinsLoss,
    DCLLoss,
    DINOLoss,
    NegativeCosineSimilarity,
    NTXentLoss,
    SwaVLoss,
    VICRegLoss,
)
from lightly.models.modules import SimCLRProjectionHead, SimSiamPredictionHead
from lightly.models.utils import deactivate_requires_grad, random_token_mask, update_momentum
from lightly.utils.scheduler import CosineWarmupScheduler, cosine_schedule
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Flatten(), nn.Linear(48, 16), nn.ReLU())
head = SimCLRProjectionHead(16, 16, 8)
teacher = copy.deepcopy(encoder)
deactivate_requires_grad(teacher)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)
schedule = CosineWarmupScheduler(optimizer, 2, 6)
a, b = torch.rand(8, 3, 4, 4), torch.rand(8, 3, 4, 4)
losses = []
for step in range(4):
    update_momentum(encoder, teacher, m=cosine_schedule(step, 4, 0.9, 1.0))
    loss = NTXentLoss(memory_bank_size=0)(head(encoder(a)), head(encoder(b)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
u, v = head(encoder(a)), head(encoder(b))
teacher_out, student_out = [torch.rand(4, 10)], [torch.rand(4, 10), torch.rand(4, 10)]
print(json.dumps({
    "losses": losses,
    "rate": optimizer.param_groups[0]["lr"],
    "teacher": sum(p.sum().item() for p in teacher.parameters()),
    "others": [BarlowTwinsLoss()(u, v).item(), VICRegLoss()(u, v).item(), DCLLoss()(u, v).item(),
               NegativeCosineSimilarity()(u, v).item(),
               SwaVLoss()([u[:, :4], v[:, :4]], [u[:, 4:]]).item(),
               DINOLoss(output_dim=10)(teacher_out, student_out, epoch=0).item()],
    "predicted": SimSiamPredictionHead(8, 4, 8)(u).sum().item(),
    "mask": [t.shape[1] for t in random_token_mask((2, 9), 0.5)],
}))
