"""Tensors of integers with a scale, and those in layouts that only some ops read."""


def __getattr__(name: str) -> object:
    """The ops of the namespace `torch.ops.quantized`."""
    from importlib import import_module
    return getattr(import_module("flambeau.ops.quantized.library"), name)
