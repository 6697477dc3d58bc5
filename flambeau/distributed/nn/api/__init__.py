"""Modules in other processes: `remote_module`."""
from __future__ import annotations

from flambeau._support.lazy.modules import lazy_modules

__getattr__ = lazy_modules("flambeau.distributed.nn.api", "remote_module")
