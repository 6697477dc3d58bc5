"""`FloatTensor` and its kind, of sparse tensors on CUDA: types of which nothing can be made."""
from __future__ import annotations

from typing import Any


def _refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
    raise TypeError(f"type torch.cuda.sparse.{cls.__name__} not available. Torch not compiled with "
                    "CUDA enabled.")


__all__ = [f"{kind}Tensor" for kind in (
    "BFloat16", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")]
globals().update({name: type(name, (), {"__new__": _refuse, "__module__": "torch.cuda.sparse"})
                  for name in __all__})
