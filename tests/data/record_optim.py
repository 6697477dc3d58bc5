"""Record runs of PyTorch's optimisers and schedulers, for tests/optim. Needs PyTorch 2.13.

    python tests/data/record_optim.py
"""

import json
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "optim"))

from optim_cases import (
    optimizer_cases,
    schedule,
    scheduler_cases,
    trajectory,
)


def write(name, values):
    rows = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
    (HERE / name).write_text("{\n" + ",\n".join(rows) + "\n}\n")


def rounded(value, digits):
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    return float(f"{value:.{digits}g}")


def main():
    write("optim_trajectories.json", {
        key: rounded(trajectory(torch, name, options, dtype), 8 if dtype == "float32" else 13)
        for key, name, options, dtype in optimizer_cases()})
    write("optim_schedules.json", {
        key: rounded(schedule(torch, name, way), 12) for key, name, way in scheduler_cases()})


if __name__ == "__main__":
    main()
