"""Record what PyTorch makes of the programs of `tests/ops/programs.txt`."""
import json
import sys
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ops"))

from program_answers import answer, programs

if __name__ == "__main__":
    torch.set_num_threads(1)
    lines = [f"{json.dumps(one)}: {json.dumps(answer(one, torch))}" for one in programs()]
    (HERE / "programs.json").write_text("{" + ",\n".join(lines) + "}\n")
    print(len(lines), "programs")
