"""The forward functions of remote modules: `instantiator`."""
from __future__ import annotations

from flambeau._support.lazy.modules import lazy_modules

__getattr__ = lazy_modules("flambeau.distributed.nn.jit", "instantiator", "templates")
