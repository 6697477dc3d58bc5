"""Answers and errors that PyTorch gives: `autograd.functional` and `testing.assert_close`."""
import importlib.util
import json
from pathlib import Path

import pytest

import flambeau

DATA = Path(__file__).parents[1] / "data"
RECORDED = json.loads((DATA / "autograd.json").read_text())
spec = importlib.util.spec_from_file_location("record_autograd", DATA / "record_autograd.py")
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)
NAMES = record.names_of(flambeau)


@pytest.mark.parametrize("expression", RECORDED)
def test_same_as_pytorch(expression):
    assert record.outcome(expression, NAMES) == RECORDED[expression]
