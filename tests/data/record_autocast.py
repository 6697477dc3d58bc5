"""Writes autocast.json: result types under autocast, from real PyTorch on a CPU."""
import json
import sys
import warnings
from pathlib import Path

import torch

here = Path(__file__).parent
sys.path.insert(0, str(here.parent / "amp"))
import autocast_cases

warnings.simplefilter("ignore")
found = autocast_cases.result_types(torch)
lines = ",\n".join(f" {json.dumps(call)}: {json.dumps(types)}" for call, types in found.items())
(here / "autocast.json").write_text("{\n" + lines + "\n}\n")
