"""Datasets made of small steps that are chained: `IterableWrapper(words).map(len).batch(2)`."""

from flambeau.utils.data.datapipes import iter, map

__all__ = ["iter", "map"]
