"""Lightning's Trainer: the same training in one process and, by torchrun, in two."""
# needs: lightning
# tolerance: 1e-3
import json
import logging
import os
import subprocess
import sys
import warnings

if len(sys.argv) == 1:
    printed = []
    for start in ([], ["-m", "torch.distributed.run", "--nproc-per-node", "2"]):
        done = subprocess.run([sys.executable, *start, __file__, "train"], check=True, text=True,
                              stdout=subprocess.PIPE)
        printed.append(json.loads(done.stdout.splitlines()[-1]))
    print(json.dumps(printed))
    sys.exit()

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
        self.losses = []

    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def on_train_epoch_end(self):
        self.losses.append(self.trainer.callback_metrics["loss"].item())

    def validation_step(self, batch, index):
        right = self.net(batch[0]).argmax(1) == batch[1]
        self.log("accuracy", right.float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.01)


L.seed_everything(0, verbose=False)
x = torch.randn(256, 10)
data = TensorDataset(x, (x[:, :3].sum(1) > 0).long())
size, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
loader = DataLoader(data, 32 // size, sampler=DistributedSampler(data, size, rank, shuffle=False))
trainer = L.Trainer(
    max_epochs=3, accelerator="cpu", devices=size, strategy="ddp" if size > 1 else "auto",
    use_distributed_sampler=False, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0)
model = Classifier()
trainer.fit(model, loader, loader)
if trainer.is_global_zero:
    print(json.dumps({"strategy": type(trainer.strategy).__name__, "processes": trainer.world_size,
                      "losses": model.losses,
                      "accuracy": trainer.callback_metrics["accuracy"].item(),
                      "norms": [p.norm().item() for p in model.parameters()]}), flush=True)
