"""Exported programs in files: `.pt2` archives, whose graph is JSON and whose tensors are bytes."""
from flambeau.export._archive.reader import read
from flambeau.export._archive.writer import write

__all__ = ["read", "write"]
