"""Kernels that treat each element by itself."""
