"""The agent of a machine: `server`."""
from __future__ import annotations

from flambeau._support.lazy.modules import lazy_modules

__getattr__ = lazy_modules("flambeau.distributed.elastic.agent", "server")
