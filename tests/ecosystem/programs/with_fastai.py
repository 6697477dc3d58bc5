"""fastai: learners for tensors and tables, one-cycle training, pictures from folders."""
# needs: fastai
# tolerance: 5e-3
import json
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from fastai.tabular.all import (
    Categorify,
    CategoryBlock,
    DataLoaders,
    FillMissing,
    Learner,
    Normalize,
    TabularDataLoaders,
    accuracy,
    mse,
    set_seed,
    tabular_learner,
)
from fastai.vision.all import ImageDataLoaders, Resize, vision_learner  # noqa: F401
from PIL import Image
from torch.utils.data import TensorDataset

out = {}
set_seed(1)
x = torch.randn(64, 5)
y = (x @ torch.randn(5, 1)) + 0.1
train = torch.utils.data.DataLoader(TensorDataset(x[:48], y[:48]), batch_size=8)
valid = torch.utils.data.DataLoader(TensorDataset(x[48:], y[48:]), batch_size=8)
learner = Learner(DataLoaders(train, valid), torch.nn.Linear(5, 1), loss_func=mse, lr=0.1,
                  path=Path("."))
with learner.no_bar(), learner.no_logging():
    learner.fit_one_cycle(2)
    out["plain"] = [*map(float, learner.recorder.values[-1]), learner.model.weight.tolist()]
    learner.save("plain")
    learner.load("plain")

random = np.random.default_rng(0)
table = pd.DataFrame({"kind": random.choice(["a", "b", "c"], 80), "size": random.normal(size=80)})
table.loc[::9, "size"] = np.nan
table["label"] = np.where((table["kind"] == "a") | (table["size"] > 0.5), "yes", "no")
set_seed(2)
loaders = TabularDataLoaders.from_df(
    table, procs=[Categorify, FillMissing, Normalize], cat_names=["kind"], cont_names=["size"],
    y_names="label", y_block=CategoryBlock(), valid_idx=list(range(60, 80)), bs=20, num_workers=0)
set_seed(3)
learner = tabular_learner(loaders, layers=[16, 8], metrics=accuracy)
with learner.no_bar(), learner.no_logging():
    learner.fit(2, 1e-2)
    out["table"] = list(map(float, learner.recorder.values[-1]))
    out["shapes"] = [list(p.shape) for p in learner.model.parameters()]

for label in ("x", "y"):
    for part in ("train", "valid"):
        Path("images", part, label).mkdir(parents=True)
        for i in range(4):
            Image.fromarray(random.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(
                f"images/{part}/{label}/{i}.png")
set_seed(4)
pictures = ImageDataLoaders.from_folder("images", item_tfms=Resize(32), bs=4, num_workers=0)
batch = pictures.valid.one_batch()
out["pictures"] = [list(batch[0].shape), batch[1].tolist(), pictures.vocab.o2i["y"]]
print(json.dumps(out))
