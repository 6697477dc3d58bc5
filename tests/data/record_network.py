"""Record what PyTorch gives for `tests/ops/network_cases.py`: python tests/data/record_network.py"""
import sys
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ops"))

from network_cases import CASES, Maker  # noqa: E402


def record(name):
    make = Maker(torch, name)
    result = CASES[name](torch, make)
    weights = torch.cos(torch.arange(result.numel(), dtype=result.dtype)).reshape(result.shape)
    grads = torch.autograd.grad((result * weights).sum(), make.inputs, allow_unused=True)
    flat = [g.flatten() if g is not None else torch.zeros(x.numel())
            for g, x in zip(grads, make.inputs)]
    return np.asarray(result.shape), result.detach().numpy(), torch.cat(flat).numpy()


if __name__ == "__main__":
    found = {}
    for name in CASES:
        try:
            shape, values, grads = record(name)
        except Exception as error:
            print(name, type(error).__name__, str(error)[:200])
            continue
        found[f"{name}/shape"] = shape.astype(np.int16)
        found[f"{name}/values"] = values.astype(np.float32).reshape(-1)
        found[f"{name}/grads"] = grads.astype(np.float32)
    np.savez_compressed(HERE / "network.npz", **found)
    print(len(CASES), "cases")
