"""Logs for TensorBoard. Needs the package `tensorboard`: `pip install flambeau[tensorboard]`."""
from __future__ import annotations

from flambeau.utils.tensorboard.writer import FileWriter, SummaryWriter


def __getattr__(name: str):
    if name == "RecordWriter":
        from flambeau.utils.tensorboard._package import load
        return load("tensorboard.summary.writer.record_writer").RecordWriter
    raise AttributeError(f"module 'flambeau.utils.tensorboard' has no attribute {name!r}")


__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
