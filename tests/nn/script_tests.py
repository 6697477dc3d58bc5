"""Scripts that print, raise and warn on flambeau as they do on PyTorch.

A test file gets those of its path, or of several topics:

    class TestScripts(ScriptTests):
        topics = ("modules/rnn",)
"""

import functools
import json
from pathlib import Path

import pytest
from nn_scripts import differences, normalized, run_script, scripts

import flambeau
import flambeau.nn.utils.prune

DATA = Path(__file__).resolve().parent.parent / "data" / "nn_scripts.json"


@functools.cache
def recorded():
    return json.loads(DATA.read_text())


class ScriptTests:
    topics: tuple[str, ...]

    def pytest_generate_tests(self, metafunc):
        if "code" in metafunc.fixturenames:
            metafunc.parametrize("code", [
                pytest.param(code, id=f"{topic}-{i}")
                for topic in self.topics for i, code in enumerate(scripts()[topic])])

    def test_like_pytorch(self, code):
        ours, theirs = run_script(code, flambeau), normalized(recorded()[code])
        difference = differences(ours, theirs)
        assert difference is None, (
            f"{difference}\n{code}\n--- ours\n{ours}\n--- PyTorch's\n{theirs}")
