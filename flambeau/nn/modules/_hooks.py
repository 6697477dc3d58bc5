"""Hooks of modules: who may look at a call, and the path a call takes when somebody does.

A call goes, in this order, through: forward pre-hooks, the backward pre-hook barrier on the
outputs and the backward hook barrier on the inputs (two identity nodes of the graph that fire
when gradients pass), `forward`, forward hooks. Hooks registered for all modules run first in
every group.
"""

import functools
import warnings
import weakref
from collections import OrderedDict
from typing import Any

import flambeau
from flambeau.utils.hooks import RemovableHandle

_global_forward_hooks: OrderedDict[int, Any] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, Any] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, Any] = OrderedDict()
_global_forward_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Any] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_is_full_backward_hook = None
_global_buffer_registration_hooks: OrderedDict[int, Any] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Any] = OrderedDict()
_global_parameter_registration_hooks: OrderedDict[int, Any] = OrderedDict()

# A module makes these dictionaries when they are first asked for: most modules never have a hook.
HOOK_DICTS = frozenset({"_forward_hooks", "_forward_hooks_with_kwargs",
                        "_forward_hooks_always_called", "_forward_pre_hooks",
                        "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks"})
STATE_HOOK_DICTS = frozenset({"_state_dict_hooks", "_state_dict_pre_hooks",
                              "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"})


def _register(hooks, hook, *, prepend=False, flags=()):
    """Add `hook` to an ordered dictionary, and its key to every dictionary of `flags`."""
    handle = RemovableHandle(hooks, extra_dict=list(flags))
    hooks[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class _WrappedHook:
    """A hook that is given the module it is registered on, held weakly, as first argument."""

    def __init__(self, hook, module=None):
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if self.with_module:
            self.module = weakref.ref(module)

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state):
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


_WrappedHook.__module__ = __name__.removesuffix("_hooks") + "module"      # as pickles name it


# ------------------------------------------------------------------ hooks on all modules

def register_module_buffer_registration_hook(hook):
    """Call ``hook(module, name, buffer)`` whenever a module registers a buffer.

    What the hook returns, unless None, is registered in the buffer's place.
    """
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call ``hook(module, name, submodule)`` whenever a module registers a child.

    What the hook returns, unless None, is registered in the child's place.
    """
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call ``hook(module, name, param)`` whenever a module registers a parameter.

    What the hook returns, unless None, is registered in the parameter's place.
    """
    return _register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Call ``hook(module, args)`` before the forward of every module; it may replace ``args``."""
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call ``hook(module, args, output)`` after the forward of every module.

    With `with_kwargs` the hook is ``hook(module, args, kwargs, output)``; with `always_call` it
    also runs when the forward raised. What it returns, unless None, becomes the output.
    """
    flags = []
    if with_kwargs:
        flags.append(_global_forward_hooks_with_kwargs)
    if always_call:
        flags.append(_global_forward_hooks_always_called)
    return _register(_global_forward_hooks, hook, flags=flags)


def _set_global_backward_kind(full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a "
                           "global Module hook. Please use only one of them.")
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook):
    """Register an old-style backward hook on all modules; prefer the full backward hook."""
    _set_global_backward_kind(full=False)
    return _register(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Call ``hook(module, grad_output)`` before gradients flow back through any module."""
    return _register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` after gradients flowed through any module."""
    _set_global_backward_kind(full=True)
    return _register(_global_backward_hooks, hook)


def _has_any_global_hook():
    return bool(_global_forward_hooks or _global_forward_pre_hooks
                or _global_backward_hooks or _global_backward_pre_hooks)


# ------------------------------------------------------------------ hooks on one module

class HookMixin:
    """Registration of hooks, and the call when there are some."""

    _has_hooks = False  # set with the first hook dictionary; a plain call looks at nothing else
    _is_full_backward_hook = None

    def _make_hook_dict(self, name):
        """The dictionary of hooks `name`, made now because nobody had asked for it before."""
        hooks = OrderedDict()
        object.__setattr__(self, name, hooks)
        if name in HOOK_DICTS:
            object.__setattr__(self, "_has_hooks", True)
        return hooks

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call ``hook(module, args)`` before `forward`.

        It may return new arguments: a tuple, or one value. With `with_kwargs` the hook is
        ``hook(module, args, kwargs)`` and returns a pair ``(args, kwargs)``.
        """
        flags = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _register(self._forward_pre_hooks, hook, prepend=prepend, flags=flags)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call ``hook(module, args, output)`` after `forward`; a result that is not None replaces
        the output.

        With `with_kwargs` the hook is ``hook(module, args, kwargs, output)``; with `always_call`
        it also runs when `forward` raised.

        Example:
            >>> layer = nn.Linear(2, 3)
            >>> handle = layer.register_forward_hook(lambda module, args, output: output.sum())
            >>> layer(flambeau.ones(2)).shape
            torch.Size([])
            >>> handle.remove()
        """
        flags = []
        if with_kwargs:
            flags.append(self._forward_hooks_with_kwargs)
        if always_call:
            flags.append(self._forward_hooks_always_called)
        return _register(self._forward_hooks, hook, prepend=prepend, flags=flags)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_output)`` before the gradient flows back through the module;
        it may return a new gradient of the outputs."""
        return _register(self._backward_pre_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """Register an old-style backward hook, which sees the gradient of the last operation of
        the forward only; prefer `register_full_backward_hook`."""
        self._set_backward_kind(full=False)
        return _register(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_input, grad_output)`` when the gradients with respect to the
        inputs are known; it may return a new ``grad_input``."""
        self._set_backward_kind(full=True)
        return _register(self._backward_hooks, hook, prepend=prepend)

    def _set_backward_kind(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them.")
        self._is_full_backward_hook = full

    def _get_backward_hooks(self):
        """All backward hooks of a call, as (full, old-style)."""
        full, regular = [], []
        if _global_is_full_backward_hook is not None:
            kind = full if _global_is_full_backward_hook else regular
            kind.extend(_global_backward_hooks.values())
        if self._is_full_backward_hook is not None:
            kind = full if self._is_full_backward_hook else regular
            kind.extend(self._backward_hooks.values())
        return full, regular

    def _get_backward_pre_hooks(self):
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _maybe_warn_non_full_backward_hook(self, inputs, result, grad_fn):
        """Say when an old-style backward hook cannot see all gradients of this call."""
        outputs = (result,) if isinstance(result, flambeau.Tensor) else result
        inputs = (inputs,) if isinstance(inputs, flambeau.Tensor) else inputs
        for values in (outputs, inputs):
            if not isinstance(values, tuple):
                return
            if not all(isinstance(value, flambeau.Tensor) for value in values):
                return
        outer_nodes = {out.grad_fn for out in outputs if out.grad_fn is not None}
        inner_nodes = {x.grad_fn for x in inputs if x.grad_fn is not None}
        feeding = {edge[0] for edge in grad_fn.next_functions}
        if len(outer_nodes) > 1 or (len(outer_nodes) == 1 and grad_fn not in outer_nodes):
            message = (
                "Using a non-full backward hook when outputs are generated by different "
                "autograd Nodes is deprecated and will be missing some grad_output. Please use "
                "register_full_backward_hook to get the documented behavior."
                if len(outer_nodes) > 1
                else "Using a non-full backward hook when outputs are views or are modified is "
                "deprecated. Please use register_full_backward_hook to get the documented behavior."
            )
        elif inner_nodes != feeding:
            message = (
                "Using a non-full backward hook when the forward contains multiple autograd Nodes "
                "is deprecated and will be removed in future versions. This hook will be missing "
                "some grad_input. Please use register_full_backward_hook to get the documented "
                "behavior.")
        else:
            return
        warnings.warn(message, FutureWarning, stacklevel=2)

    # -------------------------------------------------------------- the call with hooks

    def _run_forward_pre_hooks(self, args, kwargs):
        with_kwargs = self._forward_pre_hooks_with_kwargs
        for key, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if key in with_kwargs:
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError("forward pre-hook must return None or a tuple "
                                       f"of (new_args, new_kwargs), but got {result}.")
                args, kwargs = result
            else:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
        return args, kwargs

    def _forward_hook_calls(self):
        """(key, hook, takes kwargs, always called) of the forward hooks, in their order."""
        for key, hook in _global_forward_hooks.items():
            yield (key, hook, key in _global_forward_hooks_with_kwargs,
                   key in _global_forward_hooks_always_called)
        for key, hook in self._forward_hooks.items():
            yield (key, hook, key in self._forward_hooks_with_kwargs,
                   key in self._forward_hooks_always_called)

    def _call_with_hooks(self, args, kwargs):
        called = set()
        result = None
        try:
            full_hooks, regular_hooks = [], []
            if self._backward_hooks or _global_backward_hooks:
                full_hooks, regular_hooks = self._get_backward_hooks()
            pre_hooks = self._get_backward_pre_hooks()
            args, kwargs = self._run_forward_pre_hooks(args, kwargs)

            barrier = None
            if full_hooks or pre_hooks:
                from flambeau.utils.hooks import BackwardHook
                barrier = BackwardHook(self, full_hooks, pre_hooks)
                args = barrier.setup_input_hook(args)
            result = self.forward(*args, **kwargs)
            for key, hook, with_kwargs, _ in self._forward_hook_calls():
                called.add(key)
                inputs = (args, kwargs) if with_kwargs else (args,)
                replaced = hook(self, *inputs, result)
                if replaced is not None:
                    result = replaced
            if barrier is not None:
                if not isinstance(result, (flambeau.Tensor, tuple)):
                    warnings.warn(
                        "For backward hooks to be called, module output should be a Tensor or a "
                        f"tuple of Tensors but received {type(result)}", stacklevel=3)
                result = barrier.setup_output_hook(result)
            if regular_hooks:
                self._attach_regular_backward_hooks(regular_hooks, args, result)
            return result
        except Exception:
            self._run_always_called_hooks(called, args, kwargs, result)
            raise

    def _run_always_called_hooks(self, called, args, kwargs, result):
        """After a failure: the hooks registered with `always_call` that have not run yet."""
        for key, hook, with_kwargs, always in self._forward_hook_calls():
            if not always or key in called:
                continue
            inputs = (args, kwargs) if with_kwargs else (args,)
            try:
                replaced = hook(self, *inputs, result)
                if replaced is not None:
                    result = replaced
            except Exception as error:
                where = "global module" if key in _global_forward_hooks else "module"
                warnings.warn(
                    f"{where} forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}", stacklevel=4)

    def _attach_regular_backward_hooks(self, hooks, args, result):
        first = result
        while not isinstance(first, flambeau.Tensor):
            if isinstance(first, dict):
                first = next(v for v in first.values() if isinstance(v, flambeau.Tensor))
            else:
                first = first[0]
        node = first.grad_fn
        if node is None:
            return
        for hook in hooks:
            node.register_hook(functools.wraps(hook)(functools.partial(hook, self)))
        self._maybe_warn_non_full_backward_hook(args, result, node)


