"""The scripts print, raise and warn on flambeau as they do on PyTorch."""

import json
from pathlib import Path

import pytest
from nn_scripts import differences, normalized, run_script, scripts

import flambeau
import flambeau.nn.utils.prune

RECORDED = json.loads((Path(__file__).parent.parent / "data" / "nn_scripts.json").read_text())
CASES = [
    pytest.param(code, id=f"{topic}-{i}")
    for topic, codes in scripts().items()
    for i, code in enumerate(codes)
]


@pytest.mark.parametrize("code", CASES)
def test_like_pytorch(code):
    ours, theirs = run_script(code, flambeau), normalized(RECORDED[code])
    difference = differences(ours, theirs)
    assert difference is None, f"{difference}\n{code}\n--- ours\n{ours}\n--- PyTorch's\n{theirs}"
