"""Record what PyTorch's distributions give, for tests/distributions. Needs PyTorch 2.13.

    python tests/data/record_distributions.py
"""

import json
import sys
import warnings
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "distributions"))

from distribution_cases import cases, divergences, facts


def rounded(value):
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return float(f"{value:.9g}") if isinstance(value, float) else value


def main():
    warnings.simplefilter("ignore")
    values = {name: facts(torch, make) for name, make in cases(torch).items()}
    values["KL"] = divergences(torch)
    rows = [f"{json.dumps(key)}: {json.dumps(rounded(value))}" for key, value in values.items()]
    (HERE / "distributions.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
