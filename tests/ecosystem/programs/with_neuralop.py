"""Neural operators: Fourier and tensorised Fourier layers, losses of functions."""
# needs: neuralop
# tolerance: 1e-3
import json
import warnings

import torch
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO, TFNO

warnings.simplefilter("ignore")
torch.manual_seed(0)
x = torch.rand(3, 1, 16, 16)
y = x.roll(1, 2) - x
result = {}
for name, model in {
        "fno": FNO(n_modes=(6, 6), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2),
        "tfno": TFNO(n_modes=(6, 6), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2,
                     factorization="cp", rank=0.5)}.items():
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = LpLoss(d=2, p=2)(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    result[name] = losses
result["h1"] = H1Loss(d=2)(x, y).item()
print(json.dumps(result))
