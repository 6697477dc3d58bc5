"""The older torchrun."""
from __future__ import annotations

import pytest

from flambeau.distributed import launch


def test_options():
    found = launch.parse_args(["--nproc-per-node", "2", "script.py", "--x", "1"])
    assert (found.nproc_per_node, found.use_env, found.training_script) == (
        "2", False, "script.py")
    assert found.training_script_args == ["--x", "1"]
    assert launch.parse_args(["--use_env", "script.py"]).use_env
    assert launch.parse_args(["--use-env", "script.py"]).use_env


def test_programs_do_not_take_the_argument():
    with pytest.raises(ValueError, match="When using the '--no-python' flag, you must also set"):
        launch.launch(launch.parse_args(["--no-python", "program"]))


def test_it_is_old(monkeypatch):
    seen = []
    monkeypatch.setattr(launch, "launch", seen.append)
    with pytest.warns(FutureWarning, match="torch.distributed.launch is deprecated"):
        launch.main(["script.py"])
    assert seen[0].training_script == "script.py"
