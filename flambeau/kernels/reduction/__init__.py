"""Kernels that sum, search, sort and count along dimensions."""
