"""Decompositions of low rank, under the name of PyTorch's module."""
from flambeau import pca_lowrank, svd_lowrank

__all__ = ["pca_lowrank", "svd_lowrank"]
