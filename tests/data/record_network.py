"""Record what PyTorch gives for the layers in `tests/ops/*/test_*.py`, whose test files import what
the tests need."""
import json
import sys
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ops"))

from layers import Maker, every_case

CASES = every_case()


def record(name):
    make = Maker(torch, name)
    result = CASES[name](torch, make)
    weights = torch.cos(torch.arange(result.numel(), dtype=result.dtype)).reshape(result.shape)
    grads = torch.autograd.grad((result * weights).sum(), make.inputs, allow_unused=True)
    flat = [g.flatten() if g is not None else torch.zeros(x.numel())
            for g, x in zip(grads, make.inputs)]
    return np.asarray(result.shape), result.detach().numpy(), torch.cat(flat).numpy()


if __name__ == "__main__":
    shapes, values, grads, sizes = [], [], [], []
    for name in CASES:
        shape, value, grad = record(name)
        shapes.append(list(map(int, shape)))
        values.append(value.astype(np.float32).reshape(-1))
        grads.append(grad.astype(np.float32))
        sizes.append((value.size, grad.size))
    np.savez_compressed(HERE / "network.npz", names=list(CASES), shapes=json.dumps(shapes),
                        values=np.concatenate(values), grads=np.concatenate(grads),
                        sizes=np.asarray(sizes))
    print(len(CASES), "cases")
