"""A Lightning module: fit with callbacks, checkpoint, resume, test, predict, by hand too."""
# needs: pytorch_lightning
import json
import logging
import tempfile
import warnings
from pathlib import Path

import torch
from pytorch_lightning import LightningDataModule, LightningModule, Trainer, seed_everything
from pytorch_lightning.callbacks import (
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
    StochasticWeightAveraging,
)
from pytorch_lightning.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.simplefilter("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Data(LightningDataModule):
    def setup(self, stage=None):
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(96, 5, generator=generator)
        data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
        self.parts = random_split(data, [64, 32], generator=generator)

    def train_dataloader(self):
        return DataLoader(self.parts[0], batch_size=16, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.parts[1], batch_size=16)

    test_dataloader = predict_dataloader = val_dataloader


class Model(LightningModule):
    def __init__(self, hidden=16, rate=0.02):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(nn.Linear(5, hidden, bias=False),
                                    nn.BatchNorm1d(hidden), nn.ReLU(),
                                    nn.Linear(hidden, 2))

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("train", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        out = self(batch[0])
        self.log_dict({"valid": nn.functional.cross_entropy(out, batch[1]),
                       "accuracy": (out.argmax(1) == batch[1]).float().mean()})

    test_step = validation_step

    def predict_step(self, batch, index):
        return self(batch[0]).softmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.rate)
        return {"optimizer": optimizer,
                "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)}


class Manual(LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.layer = nn.Linear(5, 2)

    def training_step(self, batch, index):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.manual_backward(loss)
        self.clip_gradients(optimizer, 0.1, "norm")
        optimizer.step()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)


seed_everything(7, verbose=False)
quiet = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
with tempfile.TemporaryDirectory() as folder:
    best = ModelCheckpoint(folder, monitor="valid", save_last=True)
    trainer = Trainer(max_epochs=4, logger=CSVLogger(folder), log_every_n_steps=1,
                      callbacks=[best, EarlyStopping("valid", patience=3), LearningRateMonitor()],
                      gradient_clip_val=0.5, accumulate_grad_batches=2, **quiet)
    model = Model()
    trainer.fit(model, datamodule=Data())
    fitted = {k: v.item() for k, v in trainer.callback_metrics.items()}
    tested = trainer.test(model, datamodule=Data(), verbose=False)
    again = Model.load_from_checkpoint(best.best_model_path)
    guesses = torch.cat(trainer.predict(again, datamodule=Data()))
    resumed = Model()
    trainer = Trainer(max_epochs=6, logger=False, callbacks=[StochasticWeightAveraging(0.01, 0.7)],
                      enable_checkpointing=False, **quiet)
    trainer.fit(resumed, datamodule=Data(), ckpt_path=str(Path(folder) / "last.ckpt"))
    manual = Manual()
    Trainer(max_epochs=2, logger=False, enable_checkpointing=False, precision="bf16-mixed",
            **quiet).fit(manual, datamodule=Data())
    Trainer(fast_dev_run=1, detect_anomaly=True, precision="64-true", **quiet).fit(
        Model(), datamodule=Data())

print(json.dumps({
    "fitted": fitted,
    "tested": tested[0],
    "best": best.best_model_score.item(),
    "hidden": again.hparams.hidden,
    "guesses": guesses[:4].ravel().tolist(),
    "resumed": [p.norm().item() for p in resumed.parameters()],
    "step": trainer.global_step,
    "manual": [p.norm().item() for p in manual.parameters()],
}))
