"""Weights & Biases, offline: losses, histograms of gradients, a summary."""
# needs: wandb
import json
import os

os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}

import torch
import wandb
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
run = wandb.init(project="test", config={"rate": 0.1})
run.watch(model, log="all", log_freq=1)
optimizer = torch.optim.SGD(model.parameters(), lr=run.config["rate"])
x, losses = torch.randn(8, 3), []
for step in range(3):
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    run.log({"loss": loss, "weights": wandb.Histogram(model[0].weight.detach()),
             "image": wandb.Image(torch.rand(3, 4, 4))}, step=step)
    losses.append(loss.item())
summary = run.summary["loss"]
run.finish()
print(json.dumps({"losses": losses, "summary": float(summary)}))
