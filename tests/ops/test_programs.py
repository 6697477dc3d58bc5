"""Short programs: values, strides, nodes, bases, versions and errors are PyTorch's."""
import json
import sys
from pathlib import Path

import pytest

import flambeau

sys.path.insert(0, str(Path(__file__).parent))

from program_answers import answer, programs

ANSWERS = json.loads((Path(__file__).parents[1] / "data" / "programs.json").read_text())


@pytest.mark.parametrize("program", programs())
def test_program(program):
    found, expected = answer(program, flambeau), ANSWERS[program]
    if isinstance(expected, list):
        assert isinstance(found, list), found
        assert found[0] == expected[0]
        assert found[1].replace("flambeau", "torch").startswith(expected[1])
        return
    assert isinstance(found, dict), found
    assert list(found) == list(expected)
    for name, (said, values) in expected.items():
        assert found[name][0].replace("flambeau", "torch") == said, name
        assert found[name][1] == pytest.approx(values, rel=1e-5, abs=1e-6, nan_ok=True), name
