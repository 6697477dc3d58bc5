"""Logs for TensorBoard. Needs the package `tensorboard`: `pip install flambeau[tensorboard]`."""
from flambeau.utils.tensorboard.records import RecordWriter
from flambeau.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
