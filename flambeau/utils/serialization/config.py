"""Options of `torch.load` and `torch.save` that hold for the whole program.

>>> from flambeau.utils.serialization import config
>>> config.save.storage_alignment
64
>>> with config.patch("load.mmap", True):
...     config.load.mmap
True
"""
from flambeau._serialization.options import load, patch, save

__all__ = ["load", "patch", "save"]
