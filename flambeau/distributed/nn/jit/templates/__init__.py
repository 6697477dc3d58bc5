"""Functions that remote modules are given: `remote_module_template`."""
from __future__ import annotations

from flambeau._support.lazy.modules import lazy_modules

__getattr__ = lazy_modules("flambeau.distributed.nn.jit.templates", "remote_module_template")
