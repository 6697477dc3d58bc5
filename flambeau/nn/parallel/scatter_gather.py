"""Batches in pieces, and back, under the name of their module."""

from .data_parallel import gather, scatter

__all__ = ["gather", "scatter"]
