"""Tensors that keep only some of their elements, and the ops on them."""
