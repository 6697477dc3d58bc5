"""The modules of `flambeau.func` under the names that PyTorch's have."""
from flambeau._lazy import alias
from flambeau.func import batch as vmap

__all__ = ["vmap"]

alias("flambeau._functorch.vmap", "flambeau.func.batch")
