"""What checkpoints and libraries take from `torch._tensor`."""
from __future__ import annotations

from typing import Any

from flambeau._serialization.checkpoint_names import rebuild_from_type as _rebuild_from_type_v2
from flambeau.core.tensor import Tensor
from flambeau.overrides import (
    get_default_nowrap_functions,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)


def _rebuild_from_type(func: Any, type: type, args: Any, dict: dict[str, Any]) -> Tensor:
    """The older form of `_rebuild_from_type_v2`."""
    return _rebuild_from_type_v2(func, type, args, dict)


def _convert(ret: Any, cls: type) -> Any:
    """Tensors, also in tuples and lists, as ones of a subclass."""
    if cls is Tensor:
        return ret
    if isinstance(ret, Tensor) and not isinstance(ret, cls):
        ret = ret.as_subclass(cls)
    if isinstance(ret, (tuple, list)):
        ret = type(ret)(_convert(r, cls) for r in ret)
    return ret


def _dtype_to_typestr(dtype: Any) -> str:
    """A dtype as NumPy's array interface writes it."""
    return dtype.numpy.str


__all__ = ["Tensor", "get_default_nowrap_functions", "handle_torch_function", "has_torch_function",
           "has_torch_function_unary", "has_torch_function_variadic"]
