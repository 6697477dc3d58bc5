"""Tracing above autograd: public calls are written down as the overload that they are."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.core import modes
from flambeau.export._trace import overloads
from flambeau.export._trace.capture import Changed, _public_call, is_itself
from flambeau.fx.experimental._proxy_mode import disable_proxy_modes_tracing, proxy_call
from flambeau.overrides import TorchFunctionMode


class PreDispatchTorchFunctionMode(TorchFunctionMode):
    """Writes down the overloads that public calls are, of ops that are made of others too."""

    def __init__(self, tracer: Any, mode: Any):
        super().__init__()
        self.tracer, self._mode = tracer, mode
        self._bodies = _Bodies(self)

    def __enter__(self) -> Any:
        self._bodies.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        try:
            return super().__exit__(*error)
        finally:
            self._bodies.__exit__(*error)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is flambeau._C._set_grad_enabled:
            self.tracer.create_node("call_function", func, tuple(args), {})
            return func(*args)
        if is_itself(func, args, kwargs):
            return args[0]
        call = None if hasattr(func, "overloadpacket") else _public_call(func, tuple(args), kwargs)
        if call is None:
            return func(*args, **kwargs)
        target = overloads.target(call.name, call.overload)
        with disable_proxy_modes_tracing(), flambeau._C.DisableTorchFunction(), \
                Changed((vars(self._bodies), "inside", True)):
            return proxy_call(self._mode, target, True, tuple(call.args), dict(call.kwargs))


class _Bodies(modes.Level):
    """Lets the mode see the bodies of functions that PyTorch's dispatcher does not know."""

    observes = True

    def __init__(self, mode: PreDispatchTorchFunctionMode):
        self._mode, self.inside = mode, False       # inside a call that is written down?

    def composite(self, op: Any, run: Any, args: Any, kwargs: Any) -> Any:
        """A call of such a function."""
        if self.inside:
            return run(*args, **kwargs)
        with self._mode:
            return run(*args, **kwargs)

    def __call__(self, op: Any, args: tuple[Any, ...]) -> Any:
        return op.call(*args)


__all__ = ["PreDispatchTorchFunctionMode"]
