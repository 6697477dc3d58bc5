"""Quantised networks, made module by module or as graphs, against what PyTorch gives."""
import json
import re
import warnings
from pathlib import Path

import pytest
from quantization_cases import CASES, plain

import flambeau

EXPECTED = json.loads((Path(__file__).parents[1] / "data" / "quantization.json").read_text())


def alike(found, expected, path=""):
    """Texts equal but for the last digits of numbers, numbers close."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), path
        for key, value in expected.items():
            alike(found[key], value, f"{path}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for n, value in enumerate(expected):
            alike(found[n], value, f"{path}[{n}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=3e-5, abs=3e-6), path
    elif isinstance(expected, str):
        def short(text):
            text = text.replace("flambeau", "torch")
            return re.sub(r"-?\d+\.\d+(e-\d+)?", lambda m: f"{float(m.group()):.4g}", text)
        assert short(found) == short(expected), path
    else:
        assert found == expected, path


@pytest.mark.parametrize("name", CASES)
def test_as_in_pytorch(name):
    flambeau.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = plain(CASES[name](flambeau))
    alike(json.loads(json.dumps(found)), EXPECTED[name])
