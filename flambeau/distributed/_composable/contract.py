"""`contract`: functions that change modules in place, each once, and keep a state with them."""
from __future__ import annotations

import functools
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from flambeau import nn
from flambeau.distributed._composable_state import _State
from flambeau.distributed.utils import _get_root_modules


def generate_state_key(string: str = "__composable_api_state_key") -> str:
    """A name that nobody else uses."""
    return f"{string}_{uuid.uuid4()!s}"


STATE_KEY = generate_state_key()
REGISTRY_KEY = generate_state_key()


class RegistryItem:
    """That a function has been applied to a module."""


def contract(state_cls: type = _State) -> Callable[[Callable[..., Any]], Any]:
    """A decorator of functions of a module, or of a list of modules, which they change in place
    and give back. Each is applied to a module once, may not change the names of parameters,
    buffers and modules, and has a state with each module, a `state_cls`: `function.state(module)`.

    >>> @contract()
    ... def mark(module, value):
    ...     mark.state(module).value = value
    ...     return module
    >>> layer = mark(nn.Linear(1, 1), 3)
    >>> mark.state(layer).value
    3
    """
    def inner(func: Callable[..., Any]) -> Any:
        @functools.wraps(func)
        def wrapper(module: Any, *args: Any, **kwargs: Any) -> Any:
            modules = _get_root_modules([module] if isinstance(module, nn.Module)
                                        else list(module))
            state, item = state_cls(), RegistryItem()
            for one in modules:
                states = one.__dict__.setdefault(STATE_KEY, OrderedDict())
                registry = one.__dict__.setdefault(REGISTRY_KEY, OrderedDict())
                assert func not in states and func.__name__ not in registry, (
                    "Each distinct composable distributed API can only be applied to a module "
                    f"once. {func.__name__} has already been applied to the following module:\n"
                    f"{one}")
                states[func], registry[func.__name__] = state, item
            before = [_names(one) for one in modules]
            updated = func(modules[0] if isinstance(module, nn.Module) else module, *args,
                           **kwargs)
            after = [updated] if isinstance(updated, nn.Module) else modules
            for old, one in zip(before, after):
                _check_names(old, _names(one))
            return updated

        def state(module: nn.Module) -> Any:
            """What the function knows of a module; None if it has not been applied."""
            return module.__dict__.setdefault(STATE_KEY, {}).get(func)
        wrapper.state = state                                   # type: ignore[attr-defined]
        return wrapper
    return inner


def _names(module: nn.Module) -> dict[str, list[str]]:
    return {"parameters": [name for name, _ in module.named_parameters()],
            "buffers": [name for name, _ in module.named_buffers()],
            "modules": [name for name, _ in module.named_modules()]}


def _check_names(before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    for kind, old in before.items():
        if old != after[kind]:
            raise RuntimeError(f"Checking {kind}: Composable distributed API implementations "
                               "cannot modify FQNs.\nFQNs only in original: "
                               f"{set(old) - set(after[kind])}\nFQNs only in new: "
                               f"{set(after[kind]) - set(old)}")


def _get_registry(module: nn.Module) -> dict[str, RegistryItem] | None:
    """The functions that have been applied to a module, by name."""
    return getattr(module, REGISTRY_KEY, None)
