"""Differentially private training: gradients of single samples, clipping, noise, accounting."""
# needs: opacus
import json
import warnings

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.layers import DPLSTM, DPMultiheadAttention
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.validators import ModuleValidator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)
x, y = torch.randn(64, 1, 8, 8), torch.randint(0, 3, (64,))

model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                      nn.Linear(144, 3))
problems = len(ModuleValidator.validate(model, strict=False))
model = ModuleValidator.fix(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=DataLoader(TensorDataset(x, y), batch_size=16),
    noise_multiplier=1.1, max_grad_norm=1.0, poisson_sampling=True)
losses = []
for _ in range(2):
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8,
                            optimizer=optimizer) as batches:
        for a, b in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(a), b)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

torch.manual_seed(1)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 6)
        self.lstm = DPLSTM(6, 5, batch_first=True)
        self.attention = DPMultiheadAttention(5, 1)
        self.norm = nn.LayerNorm(5)
        self.out = nn.Linear(5, 1)

    def forward(self, words):
        h = self.lstm(self.embed(words))[0]
        h = self.norm(self.attention(h.transpose(0, 1), h.transpose(0, 1), h.transpose(0, 1))[0])
        return self.out(h.mean(0))


layers = Layers()
samples = GradSampleModule(layers)
samples(torch.randint(0, 10, (4, 7))).square().mean().backward()

functorch_model = GradSampleModule(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)),
                                   force_functorch=True)
functorch_model(torch.randn(5, 3)).sum().backward()

print(json.dumps({
    "problems": problems,
    "losses": losses,
    "epsilon": engine.get_epsilon(1e-5),
    "weights": [p.norm().item() for p in model.parameters()],
    "per_sample": [p.grad_sample.flatten(1).norm(dim=1).tolist() for p in layers.parameters()
                   if p.grad_sample is not None],
    "functorch": [p.grad_sample.flatten(1).norm(dim=1).tolist()
                  for p in functorch_model.parameters()],
}))
