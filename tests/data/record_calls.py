"""Record what PyTorch answers to `tests/ops/*_calls.txt`."""
import json
import sys
import warnings
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ops"))

from network_answers import answer, calls, in_digits, in_full, names, shape_and_type

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)            # PyTorch has other kernels for several
    for family, describe in (("network", shape_and_type), ("tensor", in_full),
                             ("library", in_full), ("half", in_digits), ("dtype", in_digits)):
        found = {call: answer(call, names(torch), describe) for call in calls(family)}
        lines = [f"{json.dumps(call)}: {json.dumps(said)}" for call, said in found.items()]
        (HERE / f"{family}_calls.json").write_text("{" + ",\n".join(lines) + "}\n")
        print(len(found), "calls")
