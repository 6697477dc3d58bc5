"""Record what PyTorch answers to `tests/ops/network_calls.txt`."""
import json
import sys
import warnings
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ops"))

from network_answers import answer, calls, names

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {call: answer(call, names(torch)) for call in calls()}
    (HERE / "network_calls.json").write_text(json.dumps(found, indent=0) + "\n")
    print(len(found), "calls")
