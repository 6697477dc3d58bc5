"""Collectives whose tensors travel in a smaller type."""
