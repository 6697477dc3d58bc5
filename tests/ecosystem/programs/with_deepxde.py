"""A physics-informed network solves a Poisson equation."""
# needs: deepxde
import json
import os

os.environ["DDE_BACKEND"] = "pytorch"

import contextlib
import io

import numpy as np

with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    import deepxde as dde
    import torch

    dde.config.set_random_seed(0)
    torch.manual_seed(0)

    def equation(x, y):
        return -dde.grad.hessian(y, x) - np.pi**2 * torch.sin(np.pi * x)

    geometry = dde.geometry.Interval(-1, 1)
    boundary = dde.icbc.DirichletBC(geometry, lambda x: np.sin(np.pi * x),
                                    lambda _, on_boundary: on_boundary)
    data = dde.data.PDE(geometry, equation, boundary, 16, 2,
                        solution=lambda x: np.sin(np.pi * x), num_test=20)
    model = dde.Model(data, dde.nn.FNN([1, 20, 20, 1], "tanh", "Glorot uniform"))
    model.compile("adam", lr=0.005, metrics=["l2 relative error"])
    history, state = model.train(iterations=60, display_every=20, verbose=0)
    guess = model.predict(np.linspace(-1, 1, 5)[:, None])
print(json.dumps({
    "train": np.array(history.loss_train).astype(float).tolist(),
    "metrics": np.array(history.metrics_test).astype(float).tolist(),
    "guess": guess.ravel().astype(float).tolist(),
}))
