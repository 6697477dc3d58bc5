"""Without the package tensorboard."""

import sys

import pytest

from flambeau.utils.tensorboard import SummaryWriter


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.event_file_writer", None)
    with pytest.raises(ImportError, match=r"pip install flambeau\[tensorboard\]"):
        SummaryWriter(tmp_path)
