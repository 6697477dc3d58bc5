"""Tensors of integers with a scale, and those in layouts that only some ops read."""
