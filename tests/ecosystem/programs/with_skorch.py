"""A network as a scikit-learn estimator: grid search, pipeline, callbacks, saved parameters."""
# needs: skorch, sklearn
import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EarlyStopping, EpochScoring, LRScheduler
from torch import nn


class Classifier(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(0.1),
                                    nn.Linear(hidden, 10))

    def forward(self, x):
        return self.layers(x)


x, y = load_digits(return_X_y=True)
x, y = x[:300].astype(np.float32), y[:300].astype(np.int64)
torch.manual_seed(0)
net = NeuralNetClassifier(Classifier, criterion=nn.CrossEntropyLoss, max_epochs=3, lr=0.1,
                          verbose=0, iterator_train__shuffle=True)
search = GridSearchCV(make_pipeline(StandardScaler(), net),
                      {"neuralnetclassifier__module__hidden": [4, 16],
                       "neuralnetclassifier__lr": [0.05, 0.2]}, cv=3, scoring="accuracy")
search.fit(x, y)

torch.manual_seed(1)
net = NeuralNetClassifier(
    Classifier, criterion=nn.CrossEntropyLoss, max_epochs=6, lr=0.02, optimizer=torch.optim.Adam,
    verbose=0,
    callbacks=[EarlyStopping(patience=3), LRScheduler(policy="StepLR", step_size=2, gamma=0.5),
               EpochScoring("accuracy", lower_is_better=False, on_train=True, name="train_acc")])
net.fit(x / 16, y)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "weights.pt"
    net.save_params(f_params=path)
    again = NeuralNetClassifier(Classifier).initialize()
    again.load_params(f_params=path)
difference = (torch.as_tensor(net.module_.layers[0].weight) - again.module_.layers[0].weight)

torch.manual_seed(2)
regressor = NeuralNetRegressor(nn.Linear, module__in_features=64, module__out_features=1,
                               max_epochs=4, lr=0.001, verbose=0)
fold = cross_val_predict(regressor, x / 16, y[:, None].astype(np.float32), cv=3)

print(json.dumps({
    "grid": search.cv_results_["mean_test_score"].tolist(),
    "best": search.best_score_,
    "train": net.history[:, "train_loss"],
    "valid": net.history[:, "valid_loss"],
    "accuracy": net.history[:, "train_acc"],
    "rate": net.history[:, "event_lr"],
    "probabilities": net.predict_proba(x[:2] / 16).ravel().tolist(),
    "reloaded": float(difference.detach().abs().max()),
    "folds": [float(fold.mean()), float(fold.std())],
}))
