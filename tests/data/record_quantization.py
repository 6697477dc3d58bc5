"""Writes quantization.json: what PyTorch gives for the programs in ao/quantization_cases.py.

Run by hand where PyTorch is installed, with an x86 processor that has VNNI (without, its kernels
saturate).
"""
import json
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ao"))


def run_all(torch):
    from quantization_cases import CASES, plain
    results = {}
    for name, function in CASES.items():
        torch.manual_seed(0)
        results[name] = plain(function(torch))
    return results


if __name__ == "__main__":
    import torch
    warnings.simplefilter("ignore")
    text = json.dumps(run_all(torch), separators=(",", ":"))
    (HERE / "quantization.json").write_text(text.replace('},"', '},\n"') + "\n")
