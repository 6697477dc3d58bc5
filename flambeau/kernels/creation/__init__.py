"""Kernels that fill arrays with random numbers."""
