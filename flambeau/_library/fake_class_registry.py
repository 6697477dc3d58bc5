"""Classes that stand for TorchScript classes while a program is traced.

>>> @register_fake_class("doc::Queue")
... class FakeQueue:
...     @classmethod
...     def __obj_unflatten__(cls, flat):
...         return cls()
>>> find_fake_class("__torch__.torch.classes.doc.Queue") is FakeQueue
True
>>> deregister_fake_class("doc::Queue") is FakeQueue
True
"""
from __future__ import annotations

from typing import Any

from flambeau._library.operators import check_qualname

_registered: dict[str, Any] = {}


def _full_name(qualname: str) -> str:
    space, name = check_qualname(qualname)
    return f"__torch__.torch.classes.{space}.{name}"


def register_fake_class(qualname: str, fake_class: Any = None) -> Any:
    """Let a class stand for the TorchScript class `namespace::name`; also as a decorator."""
    full = _full_name(qualname)

    def register(fake: Any) -> Any:
        if getattr(fake, "__obj_unflatten__", None) is None:
            raise RuntimeError(f"{fake} does not define a classmethod __obj_unflatten__")
        _registered[full] = fake
        return fake
    return register if fake_class is None else register(fake_class)


def deregister_fake_class(qualname: str) -> Any:
    """Forget the class that stands for `namespace::name`, and answer it."""
    return _registered.pop(_full_name(qualname), None)


def has_fake_class(full_qualname: str) -> bool:
    return full_qualname in _registered


def find_fake_class(full_qualname: str) -> Any | None:
    return _registered.get(full_qualname)


class FakeScriptObject:
    """An object of a registered class, in place of `x`."""

    def __init__(self, wrapped_obj: Any, script_class_name: str, x: Any = None):
        self.wrapped_obj, self.script_class_name, self.real_obj = wrapped_obj, script_class_name, x
