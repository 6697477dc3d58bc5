"""Forecasting: a data set of series, N-BEATS and the temporal fusion transformer."""
# needs: pytorch_forecasting, lightning, pandas
# tolerance: 1e-3
import json
import logging
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import torch
from pytorch_forecasting import NBeats, TemporalFusionTransformer, TimeSeriesDataSet
from pytorch_forecasting.metrics import SMAPE, QuantileLoss

pl.seed_everything(0, verbose=False)
rows = [{"t": t, "series": s, "y": float(np.sin(t / 3 + int(s)) + 0.1 * t), "week": str(t % 7)}
        for s in ("0", "1", "2") for t in range(30)]
data = pd.DataFrame(rows)
trainer = {"max_epochs": 1, "accelerator": "cpu", "enable_progress_bar": False, "logger": False,
           "enable_model_summary": False, "enable_checkpointing": False,
           "gradient_clip_val": 0.1}
result = {}
common = {"time_idx": "t", "target": "y", "group_ids": ["series"], "max_encoder_length": 8,
          "max_prediction_length": 3}
plain = TimeSeriesDataSet(data, **common, time_varying_unknown_reals=["y"])
model = NBeats.from_dataset(plain, learning_rate=0.01, widths=[8, 16], optimizer="sgd",
                            backcast_loss_ratio=0.1, num_blocks=[1, 1], num_block_layers=[1, 1])
loader = plain.to_dataloader(train=True, batch_size=16, num_workers=0)
pl.Trainer(**trainer).fit(model, loader)
batch = next(iter(plain.to_dataloader(train=False, batch_size=4, num_workers=0)))
with torch.no_grad():
    guess = model(batch[0])["prediction"]
result["nbeats"] = guess.flatten().tolist()
result["smape"] = SMAPE()(guess, batch[1]).item()
rich = TimeSeriesDataSet(data, **common, time_varying_unknown_reals=["y"],
                         static_categoricals=["series"], time_varying_known_categoricals=["week"],
                         time_varying_known_reals=["t"], add_relative_time_idx=True,
                         add_target_scales=True, add_encoder_length=True)
torch.manual_seed(1)
model = TemporalFusionTransformer.from_dataset(
    rich, learning_rate=0.01, hidden_size=4, attention_head_size=2, hidden_continuous_size=4,
    dropout=0.1, loss=QuantileLoss([0.1, 0.5, 0.9]), output_size=3, optimizer="sgd")
pl.Trainer(**trainer).fit(model, rich.to_dataloader(train=True, batch_size=16, num_workers=0))
model.eval()
batch = next(iter(rich.to_dataloader(train=False, batch_size=4, num_workers=0)))
with torch.no_grad():
    result["fusion"] = model(batch[0])["prediction"].flatten().tolist()
print(json.dumps(result))
