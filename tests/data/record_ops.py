"""Record what PyTorch gives for the samples of ops: values, gradients, and result types.

    python tests/data/record_ops.py [pointwise/arithmetic …]

writes `tests/data/ops/<folder>_<module>.npz`: all numbers in one array, and an index in JSON.
Needs PyTorch, and what the tests need, because the samples stand in test files.
"""
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ops"))
from samples import as_tensors, dtype_row, families, flat_tensors, resolve, weights


class Recorder:
    """Arrays, put one after the other; what each is, in an index."""

    def __init__(self):
        self.index, self.parts, self.size = {}, [], 0

    def add(self, tensor):
        """Store a tensor; gives its dtype, shape and place."""
        array = tensor.detach()
        dtype = str(array.dtype).removeprefix("torch.")
        if array.dtype in (torch.float16, torch.bfloat16):
            array = array.float()
        array = array.numpy(force=True)
        flat = array.reshape(-1)
        flat = np.stack([flat.real, flat.imag], -1).reshape(-1) if array.dtype.kind == "c" else flat
        entry = [dtype, list(array.shape), self.size]
        self.parts.append(flat.astype(np.float64))
        self.size += flat.size
        return entry

    def save(self, path):
        np.savez_compressed(path, numbers=np.concatenate([np.zeros(0), *self.parts]),
                            index=np.frombuffer(json.dumps(self.index).encode(), np.uint8))


def record(family):
    recorder = Recorder()
    for name in family:
        if name in family.own:
            continue
        function = resolve(torch, name)
        entries = []
        for sample in family.calls(name):
            leaves = []
            args = as_tensors(torch, sample.args, leaves)
            kwargs = as_tensors(torch, sample.kwargs, leaves)
            try:
                results = flat_tensors(torch, function(*args, **kwargs))
            except Exception as error:
                entries.append({"error": type(error).__name__})
                continue
            entry = {"values": [recorder.add(r) for r in results]}
            gradients = gradients_of(function, sample)
            if gradients is not None:
                entry["gradients"] = [None if g is None else recorder.add(g) for g in gradients]
            entries.append(entry)
        recorder.index[name] = {"calls": entries}
        if name in family.pointwise:
            recorder.index[name]["dtypes"] = dtype_row(torch, name, family.pointwise[name])
    return recorder


def gradients_of(function, sample):
    """The gradients of the weighted sum of the results by all floating arguments."""
    leaves = []
    args, kwargs = (as_tensors(torch, x, leaves) for x in (sample.args, sample.kwargs))
    inputs = [t.requires_grad_() for i, t in enumerate(leaves)
              if (t.is_floating_point() or t.is_complex()) and i not in sample.constant]
    try:
        results = [r for r in flat_tensors(torch, function(*args, **kwargs)) if r.requires_grad]
        if not results:
            return None
        seeds = [torch.tensor(weights(tuple(r.shape), i, r.is_complex()), dtype=r.dtype)
                 for i, r in enumerate(results)]
        return torch.autograd.grad(results, inputs, seeds, allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = sys.argv[1:]
    for name, family in families().items():
        if not chosen or name in chosen:
            recorder = record(family)
            recorder.save(HERE / "ops" / f"{name.replace('/', '_')}.npz")
            print(f"{name}: {len(recorder.index)} ops, {recorder.size} numbers")
