"""MLflow keeps parameters, metrics and a model, and loads it again."""
# needs: mlflow
import json
import logging
import os
import warnings

warnings.simplefilter("ignore")
os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "GIT_PYTHON_REFRESH": "quiet"}

import mlflow
import torch
from torch import nn

logging.disable(logging.CRITICAL)
torch.manual_seed(0)
mlflow.set_tracking_uri("sqlite:///runs.db")
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(8, 3), []
with mlflow.start_run() as run:
    mlflow.log_param("rate", 0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        mlflow.log_metric("loss", loss.item(), step=step)
        losses.append(loss.item())
history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
mlflow.pytorch.save_model(model, "model", serialization_format="pickle",
                          pip_requirements=["numpy"])
again = mlflow.pytorch.load_model("model")
print(json.dumps({"losses": losses, "history": [m.value for m in history],
                  "again": again(x).flatten().tolist()}))
