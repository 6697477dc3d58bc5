"""Options of `save` and `load`: the module `config`."""
from flambeau.utils.serialization import config

__all__ = ["config"]
