"""Lightning Fabric by hand, and the Trainer with a lightning.pytorch module."""
# needs: lightning
import json
import logging
import tempfile
import warnings
from pathlib import Path

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(3, verbose=False)
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True).sin()), 16, shuffle=True)

fabric = L.Fabric(accelerator="cpu", devices=1)
fabric.launch()
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model, optimizer = fabric.setup(model, optimizer)
batches = fabric.setup_dataloaders(loader)
losses = []
for _ in range(3):
    for a, b in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(a), b)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        losses.append(loss.item())
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "state.ckpt"
    fabric.save(path, {"model": model, "optimizer": optimizer, "step": len(losses)})
    other = fabric.setup_module(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)))
    state = {"model": other, "step": 0}
    fabric.load(path, state, strict=False)


class Autoencoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 2), nn.Linear(2, 4)

    def training_step(self, batch, index):
        loss = nn.functional.mse_loss(self.decoder(self.encoder(batch[0])), batch[0])
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)]


trainer = L.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
module = Autoencoder()
trainer.fit(module, loader)
print(json.dumps({
    "losses": losses,
    "reloaded": [(a - b).abs().max().item()
                 for a, b in zip(model.parameters(), other.parameters(), strict=True)],
    "step": state["step"],
    "trained": trainer.callback_metrics["loss"].item(),
    "rate": trainer.optimizers[0].param_groups[0]["lr"],
    "weights": [p.norm().item() for p in module.parameters()],
}))
