"""Switches of `flambeau.distributed`."""
from __future__ import annotations

from flambeau._support.settings_modules import install

__all__ = ["compile_on_one_rank", "use_torchcomms"]

# Nothing is compiled, and there is no other transport: they are for programs that look at them.
compile_on_one_rank: bool = False
use_torchcomms: bool = False

install(__name__)
