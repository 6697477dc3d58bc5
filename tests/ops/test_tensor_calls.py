"""Single calls: types, shapes, strides, values and errors are those that PyTorch gave."""
import builtins
import json
import sys
import warnings
from pathlib import Path

import pytest

import flambeau

sys.path.insert(0, str(Path(__file__).parent))

from network_answers import answer, calls, in_digits, in_full, names

DATA = Path(__file__).parents[1] / "data"
ANSWERS = {call: said for family in ("tensor", "library", "half", "dtype")
           for call, said in json.loads((DATA / f"{family}_calls.json").read_text()).items()}


@pytest.mark.parametrize("call", [*calls("half"), *calls("dtype")])
def test_digits(call):
    assert answer(call, names(flambeau), in_digits) == ANSWERS[call]


def check(found, expected):
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        check(*[next(iter(said.values())) for said in (found, expected)])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            check(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6, nan_ok=True)
    else:
        assert found == expected


@pytest.mark.parametrize("call", [*calls("tensor"), *calls("library")])
def test_answer(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = json.loads(json.dumps(answer(call, names(flambeau), in_full)))
    expected = ANSWERS[call]
    if isinstance(expected, list) and expected and str(expected[0]).endswith("Error"):
        assert issubclass(getattr(builtins, found[0]), getattr(builtins, expected[0])), found
        assert found[1].startswith(expected[1][:60]), found
    else:
        check(found, expected)
