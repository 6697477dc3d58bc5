"""Ops around the call of a function: plain, without gradients, under autocast, recomputed."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau._library.higher_order import HigherOrderOperator
from flambeau.dispatch.aten.keys import DispatchKey


class Wrap(HigherOrderOperator):
    """`wrap(f, *args)`: `f(*args)`."""

    def __init__(self, name: str = "wrap"):
        super().__init__(name)
        self.py_impl(DispatchKey.CompositeImplicitAutograd)(self._run)

    def __call__(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(func, *args, **kwargs)

    def _run(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)


class WrapWithSetGradEnabled(Wrap):
    """`f(*args)` with grad mode on or off."""

    def __init__(self) -> None:
        super().__init__("wrap_with_set_grad_enabled")

    def __call__(self, enable_grad: bool, wrapped_func: Callable[..., Any], *args: Any,
                 **kwargs: Any) -> Any:
        return super().__call__(enable_grad, wrapped_func, *args, **kwargs)

    def _run(self, enable_grad: Any, wrapped_func: Any, *args: Any, **kwargs: Any) -> Any:
        with flambeau.set_grad_enabled(enable_grad):
            return wrapped_func(*args, **kwargs)


class WrapWithAutocast(Wrap):
    """`f(*args)` under autocast."""

    def __init__(self) -> None:
        super().__init__("wrap_with_autocast")

    def __call__(self, device_type: str, dtype: Any, enabled: bool, cache_enabled: bool | None,
                 wrapped_func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return super().__call__(device_type, dtype, enabled, cache_enabled, wrapped_func, *args,
                                **kwargs)

    def _run(self, device_type: Any, dtype: Any, enabled: Any, cache_enabled: Any,
             wrapped_func: Any, *args: Any, **kwargs: Any) -> Any:
        with flambeau.autocast(device_type, dtype, enabled, cache_enabled):
            return wrapped_func(*args, **kwargs)


class WrapActivationCheckpoint(Wrap):
    """`f(*args)`, computed again for the gradients."""

    def __init__(self) -> None:
        super().__init__("wrap_activation_checkpoint")

    def _run(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        from flambeau.utils.checkpoint import checkpoint
        kwargs.setdefault("use_reentrant", False)
        return checkpoint(func, *args, **kwargs)


class TagActivationCheckpoint(Wrap):
    """`f(*args)`, marked to be computed again for the gradients."""

    def __init__(self) -> None:
        super().__init__("tag_activation_checkpoint")

    @staticmethod
    def divide_kwargs(kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those of `checkpoint`, and those of the function."""
        names = {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"}
        return ({k: v for k, v in kwargs.items() if k in names},
                {k: v for k, v in kwargs.items() if k not in names})


class HintsWrapper(Wrap):
    """`f(*args, **kwargs)`, with hints for a compiler."""

    def __init__(self) -> None:
        super().__init__("hints_wrapper")

    def __call__(self, body_fn: Any, args: Any, kwargs: Any, hints: Any) -> Any:
        return super().__call__(body_fn, args, kwargs, hints)

    def _run(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        positional, keywords, _ = args
        return func(*positional, **keywords)


class InvokeSubgraphHOP(Wrap):
    """`subgraph(*operands)`, with a name under which it can be found again."""

    def __init__(self) -> None:
        super().__init__("invoke_subgraph")

    def __call__(self, subgraph: Any, identifier: str | None, *operands: Any) -> Any:
        return super().__call__(subgraph, identifier, *operands)

    def _run(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        return func(*args[1:])


wrap = Wrap()
wrap_with_set_grad_enabled = WrapWithSetGradEnabled()
wrap_with_autocast = WrapWithAutocast()
wrap_activation_checkpoint = WrapActivationCheckpoint()
tag_activation_checkpoint = TagActivationCheckpoint()
hints_wrapper = HintsWrapper()
invoke_subgraph = InvokeSubgraphHOP()

__all__ = ["Wrap", "hints_wrapper", "invoke_subgraph", "tag_activation_checkpoint", "wrap",
           "wrap_activation_checkpoint", "wrap_with_autocast", "wrap_with_set_grad_enabled"]
