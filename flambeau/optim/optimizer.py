"""What all optimisers share: parameter groups, state, hooks, and saving and loading them."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, Self

import flambeau
from flambeau import Tensor
from flambeau.core.modes import interceptors
from flambeau.ops.python.list_updates import clear_grads
from flambeau.optim._support import *  # noqa: F403
from flambeau.optim._support import ParamsT
from flambeau.utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]


class _RequiredParameter:
    """Type of `required`, the default of an option that every parameter group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()

_global_optimizer_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Any] = OrderedDict()


def _named_block(optimizer: Optimizer, method: str) -> Any:
    """The name of a call in profiles, and for modes."""
    return flambeau.autograd.profiler.record_function(
        f"Optimizer.{method}#{type(optimizer).__name__}.{method}")


def _register(hooks: OrderedDict[int, Any], hook: Callable[..., Any],
              prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each `step` of every optimiser."""
    return _register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each `step` of every optimiser."""
    return _register(_global_optimizer_post_hooks, hook)


class Optimizer:
    r"""Base of all optimisers: parameters in groups, each with its options, and their state.

    A subclass calls this `__init__` with its options' defaults and implements `step`.

    Args:
        params: Tensors, or `(name, tensor)` pairs, or dicts that each describe a group: `params`
            and any options that differ from the defaults.
        defaults: the value of each option that a group does not give.

    Example::

        >>> import flambeau as torch
        >>> class Descent(torch.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...     @torch.no_grad()
        ...     def step(self):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 p -= group["lr"] * p.grad
        >>> w = torch.ones(2, requires_grad=True)
        >>> (w * w).sum().backward()
        >>> Descent([w], lr=0.25).step()
        >>> w
        tensor([0.5000, 0.5000], requires_grad=True)
    """

    OptimizerPreHook = Callable[
        [Self, tuple[Any, ...], dict[str, Any]],  # type: ignore[misc]
        tuple[tuple[Any, ...], dict[str, Any]] | None]
    OptimizerPostHook = Callable[
        [Self, tuple[Any, ...], dict[str, Any]], None]  # type: ignore[misc]

    defaults: dict[str, Any]
    state: dict[Any, Any]
    param_groups: list[dict[str, Any]]
    _optimizer_step_pre_hooks: OrderedDict[int, Any]
    _optimizer_step_post_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Any]

    _HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks",
              "_optimizer_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks",
              "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks")

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {flambeau.typename(params)}")
        self.state = defaultdict(dict)
        self.param_groups = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        for name in self._HOOKS:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())

    def _patch_step_function(self) -> None:
        """Let the class's `step` call the step hooks. An optimiser that never comes here, because
        it wraps another and does not call this class's `__init__`, has none."""
        if not getattr(type(self).step, "hooked", False):
            type(self).step = self.profile_hook_step(type(self).step)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        groups = ["\n".join([f"Parameter Group {i}"] + [f"    {key}: {group[key]}"
                                                       for key in sorted(group) if key != "params"])
                  for i, group in enumerate(self.param_groups)]
        return f"{type(self).__name__} (\n" + "\n\n".join(groups) + "\n)"

    # ---- steps -----------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step. `closure`, if given, computes the loss anew and returns it."""
        raise NotImplementedError

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a `step` so that it calls the step hooks."""

        @functools.wraps(func)
        def step(*args: Any, **kwargs: Any) -> Any:
            if interceptors:
                with _named_block(args[0], "step"):
                    return run(*args, **kwargs)
            return run(*args, **kwargs)

        def run(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            if _global_optimizer_pre_hooks or self._optimizer_step_pre_hooks:
                hooks = chain(_global_optimizer_pre_hooks.values(),
                              self._optimizer_step_pre_hooks.values())
                for hook in hooks:
                    changed = hook(self, args, kwargs)
                    if changed is None:
                        continue
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(f"{func} must return None or a tuple of (new_args, "
                                           f"new_kwargs), but got {changed}.")
                    args, kwargs = changed
            result = func(*args, **kwargs)
            if self._optimizer_step_post_hooks or _global_optimizer_post_hooks:
                for hook in chain(self._optimizer_step_post_hooks.values(),
                                  _global_optimizer_post_hooks.values()):
                    hook(self, args, kwargs)
            return result

        step.hooked = True                                          # type: ignore[attr-defined]
        return step

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        if interceptors:
            with _named_block(self, "zero_grad"):
                self._clear_grads(set_to_none)
        else:
            self._clear_grads(set_to_none)

    def _clear_grads(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            clear_grads(group["params"], set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimise more parameters, with options of their own: a dict with the key `params`.

        Useful to fine-tune: layers that were frozen at first can be added later.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params, names = _params_and_names(param_group["params"])
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is "
                                + flambeau.typename(p))
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError("parameter group didn't specify a value of required "
                                 f"optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information", stacklevel=3)
        self._check_group(param_group)
        self.param_groups.append(param_group)

    def _check_group(self, new: dict[str, Any]) -> None:
        known = set()
        for group in self.param_groups:
            known.update(group["params"])
            if ("param_names" in new) != ("param_names" in group):
                kind = "with" if "param_names" in new else "without"
                raise ValueError("all optimizer param groups should be with/without names. cannot "
                                 f"add param group {kind} names to the optimizer")
        if not known.isdisjoint(new["params"]):
            raise ValueError("some parameters appear in more than one parameter group")

    # ---- saving and loading ----------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State and groups, with each parameter replaced by its number.

        The result has two entries: `state` maps the number of a parameter to its state, and
        `param_groups` lists the options of each group and the numbers of its parameters.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value
                 for key, value in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of an optimiser over like parameters gave.

        Floating-point state is cast to its parameter's dtype and device; `step` is not.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups = self.param_groups
        saved = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the "
                             "size of optimizer's group")
        numbers = chain.from_iterable(group["params"] for group in saved)
        params = chain.from_iterable(group["params"] for group in groups)
        param_of = dict(zip(numbers, params, strict=True))

        state: dict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                param = param_of[key]
                state[param] = _cast_state(param, value, key, state_dict["param_groups"])
            else:
                state[key] = value
        for old, new in zip(groups, saved, strict=True):
            new["params"] = old["params"]
            if "param_names" in old and "param_names" not in new:
                new["param_names"] = old["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- hooks -----------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new ones."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any],
                                     prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any],
                                      prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another dict."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any],
                                          prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return another dict."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any],
                                           prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def _params_and_names(params: Any) -> tuple[list[Any], list[str] | None]:
    """The parameters of a group as a list, and their names, or None if they have none."""
    if isinstance(params, Tensor):
        return [params], None
    if isinstance(params, set):
        raise TypeError("optimizer parameters need to be organized in ordered collections, but "
                        "the ordering of tensors in sets will change between runs. Please use a "
                        "list instead.")
    params = list(params)
    named = [isinstance(p, tuple) for p in params]
    if not any(named):
        return params, None
    if not all(named):
        raise ValueError("all optimizer params should be with/without names. Some param names are "
                         "missing")
    return [p for _, p in params], [name for name, _ in params]


def _cast_state(param: Tensor, value: Any, number: int, groups: list[dict[str, Any]],
                key: Any = None) -> Any:
    """Loaded state, with the tensors in it moved to the dtype and device of the parameter."""
    if isinstance(value, Tensor):
        if key == "step":
            group = next((g for g in groups if number in g["params"]), {})
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=flambeau.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _cast_state(param, v, number, groups, k if isinstance(k, Hashable) else None)
                for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        kind: Any = type(value)
        return kind(_cast_state(param, v, number, groups) for v in value)
    return value
