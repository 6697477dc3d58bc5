"""Backends of `torch.compile`."""
from flambeau._lazy import lazy_package

__getattr__ = lazy_package(__name__)
