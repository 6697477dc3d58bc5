"""Public calls with nested tensors: each layout has rules by the name of the op, in `strided` and
in `jagged`, and an answer for all others."""
from __future__ import annotations

from typing import Any

from flambeau.dispatch.backend_errors import has_no_kernel_of
from flambeau.nested import jagged, strided
from flambeau.nested.rules import BACKEND, FACTS, Call, common, each, elements, registered
from flambeau.nested.tensors import NestedTensor


def dispatch(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A public call with a nested argument."""
    call = Call(func, args, kwargs)
    x = call.tensors[0]
    if registered and (own := registered.get(call.name)) is not None:
        return own(func, args, kwargs)
    if call.name in FACTS:
        return func(*each(elements, args), **kwargs)
    layout = strided if x._ragged is None else jagged
    chosen = layout.rules.get(call.name) or common.get(call.name)
    if chosen is None and x._ragged is None and call.fit is not None \
            and has_no_kernel_of(call.fit, BACKEND):
        return call.refuse("")
    return layout.otherwise(call, x) if chosen is None else chosen(call, x)


def _torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    return dispatch(func, args, kwargs or {})


NestedTensor.__torch_function__ = classmethod(_torch_function)      # type: ignore[assignment]


__all__ = ["dispatch"]
