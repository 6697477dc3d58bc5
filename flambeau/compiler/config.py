"""Switches of compiling. Nothing is compiled, so they are kept and read only."""
import sys

from flambeau.utils._config_module import install_config_module

job_id: str | None = None
pgo_extra_read_key: str | None = None
pgo_extra_write_key: str | None = None
cache_key_tag = ""
force_disable_caches = False
dynamic_sources = ""
unbacked_sources = ""

install_config_module(sys.modules[__name__])

__all__ = ["force_disable_caches", "job_id"]
