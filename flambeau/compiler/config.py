"""Switches of compiling. Nothing is compiled, so they are kept and read only."""
from __future__ import annotations

from flambeau._support.settings_modules import install

job_id: str | None = None
pgo_extra_read_key: str | None = None
pgo_extra_write_key: str | None = None
cache_key_tag = ""
force_disable_caches = False
dynamic_sources = ""
unbacked_sources = ""

install(__name__)
