"""Wrong calls of all kinds are refused as PyTorch refuses them: with its types and texts."""
import importlib
import json
import warnings
from pathlib import Path

import numpy

import flambeau

DATA = Path(__file__).parent / "data"


def test_wrong_calls_are_refused_in_pytorch_s_words():
    for name in ("masked", "nested", "nn.utils.parametrizations", "nn.utils.parametrize",
                 "nn.utils.prune", "nn.utils.stateless", "overrides", "signal",
                 "utils.checkpoint"):
        importlib.import_module(f"flambeau.{name}")
    calls = (DATA / "wrong_calls.txt").read_text().splitlines()
    answers = json.loads((DATA / "wrong_calls.json").read_text())
    different = []
    for call, expected in zip(calls, answers, strict=True):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                eval(call, {"torch": flambeau, "numpy": numpy})
            found = ["", ""]
        except Exception as error:
            found = [type(error).__name__, str(error).split("\n")[0]]
        if found != expected:
            different.append(f"{call}\n  expected {expected}\n  found    {found}")
    assert not different, "\n".join(different)
