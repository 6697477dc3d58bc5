"""Tracing above autograd: public calls are written down as the overload that they are."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.export._trace import overloads
from flambeau.overrides import TorchFunctionMode


class PreDispatchTorchFunctionMode(TorchFunctionMode):
    """Writes down the overloads that public calls are, of ops that are made of others too."""

    def __init__(self, tracer: Any, mode: Any):
        super().__init__()
        self.tracer, self._mode = tracer, mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from flambeau.export._trace.capture import _public_call
        from flambeau.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, proxy_call
        kwargs = kwargs or {}
        call = None if hasattr(func, "overloadpacket") else _public_call(func, tuple(args), kwargs)
        if call is None:
            return func(*args, **kwargs)
        target = overloads.target(call.name, call.overload)
        with disable_proxy_modes_tracing(), flambeau._C.DisableTorchFunction():
            return proxy_call(self._mode, target, True, tuple(call.args), dict(call.kwargs))


__all__ = ["PreDispatchTorchFunctionMode"]
