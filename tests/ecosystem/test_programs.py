"""Programs on other people's packages print on flambeau what they print on PyTorch."""

import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest

import flambeau

sys.path.insert(0, str(Path(__file__).parent))
from programs import PROGRAMS

sys.path.pop(0)

PACKAGE = Path(flambeau.__file__).resolve().parent.parent


@pytest.mark.ecosystem
@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_what_it_prints_with_pytorch(name, tmp_path):
    program = PROGRAMS[name]
    for module in program.needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    printed = program.run(tmp_path, "-m", "flambeau", "run", search=[PACKAGE])
    expected = json.loads(program.recorded.read_text())["printed"]
    assert differences(printed, expected, program.tolerance) == []


def differences(found, expected, tolerance, place=""):
    """Where two printed values differ, as text."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        parts = [(found[k], expected[k], f"{place}.{k}".lstrip(".")) for k in expected]
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        parts = [(f, e, f"{place}[{i}]") for i, (f, e) in enumerate(zip(found, expected))]
    elif isinstance(expected, float) and isinstance(found, float):
        near = math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance / 10)
        both_nan = math.isnan(found) and math.isnan(expected)
        return [] if near or both_nan else [f"{place}: {found}, with PyTorch {expected}"]
    else:
        same = type(found) is type(expected) and found == expected
        return [] if same else [f"{place}: {found!r}, with PyTorch {expected!r}"]
    return [text for f, e, where in parts for text in differences(f, e, tolerance, where)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_recorded_and_says_what_it_needs(name):
    assert PROGRAMS[name].recorded.exists() and PROGRAMS[name].needs


def test_differences_are_found():
    expected = {"loss": 1.0, "shape": [2, 3], "text": "a", "none": None, "nan": math.nan}
    assert differences({**expected, "loss": 1.00005, "nan": math.nan}, expected, 1e-4) == []
    assert differences({**expected, "loss": 1.001}, expected, 1e-4) == [
        "loss: 1.001, with PyTorch 1.0"]
    assert differences({**expected, "shape": [2, 4]}, expected, 1e-4) == [
        "shape[1]: 4, with PyTorch 3"]
    assert len(differences({**expected, "text": "b", "none": 0}, expected, 1e-4)) == 2
    assert len(differences({"loss": 1.0}, expected, 1e-4)) == 1
