"""Record what PyTorch gives for the expressions of tests/ops/sparse_cases.py, in sparse.json:
``python record_sparse.py`` with PyTorch installed."""

import json
import sys
import warnings
from pathlib import Path

import torch

here = Path(__file__).parent
sys.path.insert(0, str(here.parent / "ops"))
from sparse_cases import EXPRESSIONS, outcome

warnings.simplefilter("ignore")
record = {expression: outcome(torch, expression) for expression in EXPRESSIONS}
(here / "sparse.json").write_text(json.dumps(record, indent=0) + "\n")
