"""`ModuleTracker`: the modules inside which the program is, forward or backward."""
from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from flambeau.autograd.differentiate import queue_callback
from flambeau.autograd.graph import register_multi_grad_hook
from flambeau.core.autograd import engine
from flambeau.core.tensor import Tensor
from flambeau.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from flambeau.utils._pytree import tree_leaves

logger = logging.getLogger(__name__)


class ModuleTracker:
    """While entered, `parents` holds the names of the modules that are running.

    A module that is met first is named by its class, those below it by their path. During the
    backward pass a module counts as running from the gradient of its outputs to that of its inputs.

    >>> net = nn.Sequential(nn.Linear(2, 2))
    >>> with ModuleTracker() as tracker:
    ...     handle = net[0].register_forward_pre_hook(lambda *_: print(sorted(tracker.parents)))
    ...     y = net(flambeau.ones(2))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._known_modules: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._seen_modules: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
        self._has_callback = False

    @property
    def is_bw(self) -> bool:
        """Does a backward pass run?"""
        return engine.current_pass.get() is not None

    def _get_mod_name(self, mod: Any) -> str:
        if mod not in self._known_modules:
            self._known_modules[mod] = type(mod).__name__
        name = self._known_modules[mod]
        if mod not in self._seen_modules:
            self._seen_modules[mod] = True
            for path, child in mod.named_children():
                self._known_modules[child] = f"{name}.{path}"
        return name

    def _append(self, name: str, backward: bool) -> None:
        if backward and not self._has_callback:
            self._has_callback = True
            queue_callback(self._after_backward)
        if name in self.parents:
            logger.info("The module hierarchy tracking seems to be broken as this Module was "
                        "already entered. %s during %s", name,
                        "backward" if backward else "forward")
        self.parents.add(name)

    def _pop(self, name: str, backward: bool) -> None:
        if name in self.parents:
            self.parents.remove(name)
        elif not backward:
            raise RuntimeError("The Module hierarchy tracking is wrong. Report a bug to PyTorch")

    def _after_backward(self) -> None:
        self.parents, self._has_callback = {"Global"}, False

    def _get_append_fn(self, name: str, is_bw: bool) -> Callable[..., None]:
        return lambda *args: self._append(name, is_bw)

    def _get_pop_fn(self, name: str, is_bw: bool) -> Callable[..., None]:
        return lambda *args: self._pop(name, is_bw)

    def _enter_module(self, module: Any, inputs: Any) -> None:
        name = self._get_mod_name(module)
        self._append(name, False)
        tensors = recorded(inputs)
        if tensors and not self.is_bw:
            register_multi_grad_hook(tensors, self._get_pop_fn(name, True))

    def _leave_module(self, module: Any, inputs: Any, outputs: Any) -> None:
        name = self._get_mod_name(module)
        self._pop(name, False)
        tensors = recorded(outputs)
        if tensors and not self.is_bw:
            register_multi_grad_hook(tensors, self._get_append_fn(name, True), mode="any")

    def __enter__(self) -> ModuleTracker:
        self._module_hooks = (register_module_forward_pre_hook(self._enter_module),
                              register_module_forward_hook(self._leave_module, always_call=True))
        return self

    def __exit__(self, *args: Any) -> None:
        for handle in self._module_hooks:
            handle.remove()


def recorded(values: Any) -> list[Tensor]:
    """The tensors among some values through which gradients flow."""
    return [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]


__all__ = ["ModuleTracker"]
