"""How much distributed code checks and logs."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist


@pytest.fixture(autouse=True)
def level():
    kept = dist.get_debug_level()
    yield
    dist.set_debug_level(kept)


@pytest.mark.parametrize(("name", "level"), [
    ("OFF", "OFF"), ("info", "INFO"), ("Detail", "DETAIL"), (None, "OFF")])
def test_the_variable(name, level, monkeypatch):
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG", raising=False)
    if name:
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", name)
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() == getattr(dist.DebugLevel, level)


def test_other_words(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "loud")
    with pytest.raises(ValueError, match="The value of TORCH_DISTRIBUTED_DEBUG must be OFF, "
                                         "INFO, or DETAIL"):
        dist.set_debug_level_from_env()


def test_levels():
    dist.set_debug_level(dist.DebugLevel.INFO)
    assert dist.get_debug_level() == dist.DebugLevel.INFO
    assert [int(getattr(dist.DebugLevel, name).value) for name in ("OFF", "INFO", "DETAIL")] == [
        0, 1, 2]
