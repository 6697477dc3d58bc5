"""The modules of `flambeau.func` under the names that PyTorch's have, and what stands below
`torch.compile`: graphs of forward and backward."""
from flambeau._support.lazy.modules import alias, lazy_package
from flambeau.func import batch as vmap

__getattr__ = lazy_package(__name__)
__all__ = ["vmap"]

alias("flambeau._functorch.vmap", "flambeau.func.batch")
for _name in ("functional_call", "batch_norm_replacement"):
    alias(f"flambeau._functorch.{_name}", "flambeau.func.modules")
for _name in ("apis", "eager_transforms"):
    alias(f"flambeau._functorch.{_name}", "flambeau.func")
for _name in ("make_functional", "deprecated"):
    alias(f"flambeau._functorch.{_name}", "flambeau.functorch")
