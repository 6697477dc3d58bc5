"""Eigenvalues at one end of the spectrum, under the name of PyTorch's module."""
from flambeau import lobpcg

__all__ = ["lobpcg"]
