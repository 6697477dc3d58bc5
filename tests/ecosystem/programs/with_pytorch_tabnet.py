"""TabNet: classify and regress tables, pretrain, explain, save."""
# needs: pytorch_tabnet
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from pytorch_tabnet.pretraining import TabNetPretrainer
from pytorch_tabnet.tab_model import TabNetClassifier, TabNetRegressor

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
x = rng.normal(size=(96, 5)).astype("float32")
x[:, 4] = rng.integers(0, 3, 96)
y = (x[:, 0] + x[:, 1] > 0).astype(int)
small = {"n_d": 4, "n_a": 4, "n_steps": 2, "seed": 3, "verbose": 0, "cat_idxs": [4],
         "cat_dims": [3], "cat_emb_dim": 2, "optimizer_fn": torch.optim.SGD,
         "optimizer_params": {"lr": 0.02}, "device_name": "cpu"}
fit = {"max_epochs": 3, "batch_size": 32, "virtual_batch_size": 16}
pretrained = TabNetPretrainer(**small)
pretrained.fit(x, eval_set=[x], **fit)
classifier = TabNetClassifier(**small)
classifier.fit(x, y, eval_set=[(x, y)], eval_metric=["auc", "logloss"], **fit,
               from_unsupervised=pretrained)
importance, masks = classifier.explain(x[:4])
with tempfile.TemporaryDirectory() as folder:
    path = classifier.save_model(str(Path(folder) / "model"))
    again = TabNetClassifier()
    again.load_model(path)
regressor = TabNetRegressor(**small, mask_type="entmax")
regressor.fit(x, x[:, :1], eval_set=[(x, x[:, :1])], **fit)
print(json.dumps({
    "pretrained": pretrained.history["loss"],
    "classifier": classifier.history["loss"],
    "auc": [float(v) for v in classifier.history["val_0_auc"]],
    "importance": classifier.feature_importances_.tolist(),
    "explained": importance.sum(0).tolist(),
    "masks": [float(m.sum()) for m in masks.values()],
    "probabilities": classifier.predict_proba(x[:3]).ravel().tolist(),
    "again": again.predict_proba(x[:3]).ravel().tolist(),
    "regressor": regressor.history["loss"],
}))
