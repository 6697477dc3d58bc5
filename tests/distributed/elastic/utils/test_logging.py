"""Loggers of torchelastic."""
import logging

import pytest

from flambeau.distributed.elastic.utils.logging import get_logger


@pytest.mark.parametrize("level", ["DEBUG", "ERROR"])
def test_levels(level, monkeypatch):
    monkeypatch.setenv("LOGLEVEL", level)
    assert get_logger("torch.distributed.mine").level == getattr(logging, level)
    monkeypatch.delenv("LOGLEVEL")
    assert get_logger("torch.distributed.mine").level == logging.WARNING


def test_names():
    assert get_logger("some.module").name == "some.module"
    assert get_logger().name == __name__
    assert get_logger("torch.distributed.mine") is logging.getLogger("torch.distributed.mine")
