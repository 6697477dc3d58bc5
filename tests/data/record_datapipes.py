"""Record what programs on data pipes give on PyTorch 2.13.

    python tests/data/record_datapipes.py
"""

import json
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "utils" / "data"))

from datapipe_cases import CASES, run

if __name__ == "__main__":
    recorded = {name: run(name, torch) for name in CASES}
    (HERE / "datapipes.json").write_text(json.dumps(recorded, indent=0) + "\n")
