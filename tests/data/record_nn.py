"""Record what PyTorch's layers give, for the cases in tests/nn/modules, whose test files import
what the tests need. Needs PyTorch 2.13.

    python tests/data/record_nn.py

All numbers of all cases lie one after the other in two arrays; the index says which are whose.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "nn"))

from nn_cases import checksum, every_case, run

# PyTorch's own gradient of this one is not the derivative of its forward.
NO_GRADIENT = ("CrossMapLRN2d",)


def main():
    floats, ints, index = [], [], {}
    for case in every_case():
        module, result = run(torch, case)
        entry = {"repr": repr(module), "init": {}, "values": []}
        for name, array in result.items():
            kind, _, member = name.partition(".")
            if kind == "init":
                entry["init"][member] = checksum(array)
                continue
            if kind == "grad" and case.name.startswith(NO_GRADIENT):
                continue
            is_float = array.dtype.kind == "f"
            (floats if is_float else ints).append(array.ravel())
            entry["values"].append([name, "f" if is_float else "i", list(array.shape)])
        index[case.name] = entry
    text = json.dumps(index, separators=(",", ":")).encode()
    path = HERE / "nn_layers.npz"
    np.savez_compressed(
        path,
        floats=np.concatenate(floats).astype(np.float32),
        ints=np.concatenate(ints).astype(np.int64),
        index=np.frombuffer(text, np.uint8),
    )
    print(f"{len(index)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
