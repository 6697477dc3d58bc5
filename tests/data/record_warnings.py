"""Record what PyTorch warns of: `python record_warnings.py`, with PyTorch installed.

Each line of `warned_calls.txt` is a call, as an expression of `torch` and `numpy`. What is recorded
are the categories and texts of its warnings, without the places in PyTorch's sources.
"""
import json
import warnings
from pathlib import Path

import numpy
import torch
import torch.ao.quantization
import torch.masked
import torch.nested
import torch.utils.checkpoint

HERE = Path(__file__).parent


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eval(call, {"torch": torch, "numpy": numpy})
    return sorted([each.category.__name__, str(each.message).partition(" (Triggered internally")[0]]
                  for each in caught)


def main():
    torch.set_warn_always(True)
    calls = (HERE / "warned_calls.txt").read_text().splitlines()
    text = ",\n".join(json.dumps(warned(call)) for call in calls)
    (HERE / "warned_calls.json").write_text(f"[{text}]\n")


if __name__ == "__main__":
    main()
