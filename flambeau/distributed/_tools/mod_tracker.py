"""`ModTracker`: the modules that run, and functions that are called as they begin and end."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.autograd.graph import register_multi_grad_hook
from flambeau.core.autograd.engine import current_pass
from flambeau.utils.module_tracker import ModuleTracker, recorded

__all__ = ["ModTracker"]

_HOOKS = ("pre_fw_hook", "post_fw_hook", "pre_bw_hook", "post_bw_hook")


class ModTracker(ModuleTracker):
    """A `ModuleTracker` that calls functions when a module begins and ends, forward and backward.

    >>> tracker = ModTracker()
    >>> tracker.register_user_hooks(lambda module, inputs: print(tracker.get_known_fqn(module)))
    >>> with tracker:
    ...     y = nn.Sequential(nn.Linear(2, 2))(flambeau.ones(2))
    Sequential
    Sequential.0
    """

    def __init__(self) -> None:
        super().__init__()
        self._user: dict[str, Callable[..., Any]] = {}

    def register_user_hooks(self, pre_fw_hook: Callable[..., Any] | None = None,
                            post_fw_hook: Callable[..., Any] | None = None,
                            pre_bw_hook: Callable[..., Any] | None = None,
                            post_bw_hook: Callable[..., Any] | None = None) -> None:
        """Call `pre_fw_hook(module, inputs)`, `post_fw_hook(module, inputs, outputs)`,
        `pre_bw_hook(module, gradients)` and `post_bw_hook(module, gradients)`, one of each."""
        for name, hook in zip(_HOOKS, (pre_fw_hook, post_fw_hook, pre_bw_hook, post_bw_hook)):
            if hook is None:
                continue
            if name in self._user:
                raise AssertionError(
                    f"Only one {name} can be registered at a time Clear the existing hook by "
                    "calling ``clear_user_hooks`` before registering a new one")
            self._user[name] = hook

    def clear_user_hooks(self) -> None:
        """Call nothing any more."""
        self._user = {}

    def get_known_fqn(self, mod: Any) -> str | None:
        """The name of a module that has been met."""
        return self._known_modules.get(mod)

    def _call(self, name: str, *args: Any) -> None:
        hook = self._user.get(name)
        if hook is not None:
            hook(*args)

    def _enter_module(self, module: Any, inputs: Any) -> None:
        name = self._get_mod_name(module)
        self._append(name, False)
        self._call("pre_fw_hook", module, inputs)
        tensors = recorded(inputs)
        if tensors and current_pass.get() is None:
            def end(grads: Any) -> None:
                self._call("post_bw_hook", module, tuple(grads))
                self._pop(name, True)
            register_multi_grad_hook(tensors, end)

    def _leave_module(self, module: Any, inputs: Any, outputs: Any) -> None:
        name = self._get_mod_name(module)
        self._call("post_fw_hook", module, inputs, outputs)
        self._pop(name, False)
        tensors = recorded(outputs)
        if tensors and current_pass.get() is None:
            def begin(grad: Any) -> None:
                self._append(name, True)
                self._call("pre_bw_hook", module, (grad,))
            register_multi_grad_hook(tensors, begin, mode="any")
