"""Calls that PyTorch warns of give the same warnings: categories and texts."""
import importlib
import json
import warnings
from pathlib import Path

import numpy
import pytest

import flambeau

DATA = Path(__file__).parent / "data"
CALLS = (DATA / "warned_calls.txt").read_text().splitlines()
RECORDED = json.loads((DATA / "warned_calls.json").read_text())


@pytest.fixture
def every_time():
    before = flambeau.is_warn_always_enabled()
    flambeau.set_warn_always(True)
    yield
    flambeau.set_warn_always(before)


@pytest.mark.parametrize("call, expected", zip(CALLS, RECORDED, strict=True))
def test_warnings_are_pytorch_s(call, expected, every_time):
    for name in ("nested", "utils.checkpoint"):
        importlib.import_module(f"flambeau.{name}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eval(call, {"torch": flambeau, "numpy": numpy})
    assert sorted([each.category.__name__, str(each.message).replace("flambeau", "torch")]
                  for each in caught) == expected
