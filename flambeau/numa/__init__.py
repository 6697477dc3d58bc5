"""Keeping processes on the processors near their device: `binding`."""
from __future__ import annotations

from flambeau._support.lazy.modules import lazy_modules

__getattr__ = lazy_modules("flambeau.numa", "binding")
