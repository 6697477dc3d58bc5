"""Record what PyTorch says of wrong calls: `python record_wrong_calls.py`, with PyTorch installed.

Each line of `wrong_calls.txt` is a call, as an expression of `torch` and `numpy`. What is recorded
is the type of the exception and the first line of its text.
"""
import json
import warnings
from pathlib import Path

import numpy
import torch
import torch.export
import torch.masked
import torch.nested
import torch.nn.utils.parametrizations
import torch.nn.utils.parametrize
import torch.nn.utils.prune
import torch.nn.utils.stateless
import torch.overrides
import torch.package
import torch.signal
import torch.utils.benchmark
import torch.utils.checkpoint

HERE = Path(__file__).parent


def said(call):
    try:
        eval(call, {"torch": torch, "numpy": numpy})
    except Exception as error:
        return [type(error).__name__, str(error).split("\n")[0]]
    finally:
        torch.set_autocast_enabled("cpu", False)        # which a wrong context leaves on
    raise AssertionError(f"{call} is right")


def main():
    warnings.simplefilter("ignore")
    calls = (HERE / "wrong_calls.txt").read_text().splitlines()
    answers = [said(call) for call in calls]
    text = ",\n".join(json.dumps(answer) for answer in answers)
    (HERE / "wrong_calls.json").write_text(f"[{text}]\n")


if __name__ == "__main__":
    main()
