"""Switches of `flambeau.distributed`."""
import sys

from flambeau.utils._config_module import install_config_module

__all__ = ["compile_on_one_rank", "use_torchcomms"]

# Nothing is compiled, and there is no other transport: they are for programs that look at them.
compile_on_one_rank: bool = False
use_torchcomms: bool = False

install_config_module(sys.modules[__name__])
