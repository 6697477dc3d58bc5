"""Wrong calls of all kinds are refused as PyTorch refuses them: with its types and texts."""
import importlib
import json
import warnings
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau

DATA = Path(__file__).parent / "data"


def test_wrong_calls_are_refused_in_pytorch_s_words():
    for name in ("export", "masked", "nested", "nn.utils.parametrizations", "nn.utils.parametrize",
                 "nn.utils.prune", "nn.utils.stateless", "overrides", "package", "signal",
                 "utils.benchmark", "utils.checkpoint"):
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


BEYOND = st.one_of(st.integers(2 ** 64, 2 ** 90), st.integers(-2 ** 90, -2 ** 63 - 1))
X = flambeau.ones(1, 2, 3, 4)


@given(BEYOND)
@settings(max_examples=15, deadline=None)
def test_an_integer_of_more_than_64_bits_is_refused_by_what_it_was_given_to(n):
    F = flambeau.nn.functional
    for call in (lambda: X.cumsum(n), lambda: X.narrow(0, n, 1), lambda: X.flatten(n),
                 lambda: F.max_pool2d(X, n), lambda: F.adaptive_avg_pool2d(X, n),
                 lambda: F.conv2d(X, X, None, n), lambda: flambeau.trapezoid(X, X, dim=n)):
        with pytest.raises(ValueError, match=r"^Overflow when unpacking long long$"):
            call()
    for name, call in (("max_pool2d", lambda: F.max_pool2d(X, (2, n))),
                       ("adaptive_avg_pool2d", lambda: F.adaptive_avg_pool2d(X, (1, n))),
                       ("pad", lambda: F.pad(X, (1, n)))):
        with pytest.raises(TypeError, match=r"failed to unpack the object at pos 2") as caught:
            call()
        assert name in str(caught.value)
    for call in (lambda: F.leaky_relu(X, n), lambda: flambeau.threshold(X, n, 1),
                 lambda: X + n):
        with pytest.raises(OverflowError):
            call()
