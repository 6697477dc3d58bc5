"""Record what the scripts of tests/nn/scripts give on PyTorch 2.13.

    python tests/data/record_nn_scripts.py
"""

import json
import sys
from pathlib import Path

import torch
import torch.nn.attention.bias
import torch.nn.grad
import torch.nn.utils.prune
import torch.nn.utils.stateless

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "nn"))

from nn_scripts import run_script, scripts

if __name__ == "__main__":
    recorded = {code: run_script(code, torch) for codes in scripts().values() for code in codes}
    text = json.dumps(recorded, indent=0, ensure_ascii=False) + "\n"
    (HERE / "nn_scripts.json").write_text(text)
    print(len(recorded), "scripts,", len(text), "characters")
