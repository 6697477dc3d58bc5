"""GluonTS forecasts with PyTorch models: DeepAR and a feed-forward network."""
# needs: gluonts, lightning, pandas
# tolerance: 1e-2
import json
import logging
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

import numpy as np
import pandas as pd
import torch
from gluonts.dataset.common import ListDataset
from gluonts.torch import DeepAREstimator, SimpleFeedForwardEstimator

series = [{"start": pd.Period("2024-01-01", "D"), "target": np.sin(np.arange(60) / 4 + s) + 2}
          for s in range(3)]
data = ListDataset(series, freq="D")
trainer = {"max_epochs": 1, "accelerator": "cpu", "enable_progress_bar": False, "logger": False,
           "enable_model_summary": False, "enable_checkpointing": True}
result = {}
for name, estimator in {
        "feed forward": SimpleFeedForwardEstimator(
            prediction_length=4, context_length=8, hidden_dimensions=[8], batch_size=8,
            num_batches_per_epoch=4, trainer_kwargs=trainer),
        "deepar": DeepAREstimator(
            freq="D", prediction_length=4, context_length=8, hidden_size=8, num_layers=1,
            batch_size=8, num_batches_per_epoch=4, num_parallel_samples=10,
            trainer_kwargs=trainer)}.items():
    np.random.seed(0)
    torch.manual_seed(0)
    predictor = estimator.train(data)
    torch.manual_seed(1)
    forecast = next(iter(predictor.predict(data)))
    result[name] = np.asarray(forecast.mean, dtype=float).tolist()
print(json.dumps(result))
