"""Layers that learn their input size from the first input they see."""

from __future__ import annotations

from typing import Any, Protocol

from flambeau.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class _LazyProtocol(Protocol):
    """What a lazy module has of `Module`, for type checkers."""

    def _register_load_state_dict_pre_hook(self, hook): ...

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False): ...

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys,
                        unexpected_keys, error_msgs): ...

    def _get_name(self): ...

    def _infer_parameters(self, module, input): ...


class LazyModuleMixin:
    """Delay the shapes of parameters to the first call, and then become an ordinary layer.

    A lazy class stands before its eager class among the bases, makes `UninitializedParameter`s in
    its constructor, gives them shapes in `initialize_parameters`, and names in `cls_to_become`
    the class that it turns into.
    """

    cls_to_become: Any = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters,
                                                               with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # Lazy tensors are kept as they are: they have nothing that could be detached.
        for name, tensor in self._persistent_members():
            if tensor is not None:
                keep = is_lazy(tensor) or keep_vars
                destination[prefix + name] = tensor if keep else tensor.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys,
                        unexpected_keys, error_msgs):
        """Give lazy tensors the shapes of what is about to be copied into them."""
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            key = prefix + name
            if key in state_dict and tensor is not None:
                value = state_dict[key]
                if is_lazy(tensor) and not is_lazy(value):
                    tensor.materialize(value.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Give the parameters shapes, from the arguments of the first call; for subclasses."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer still has no shape."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None):
        """Before the first forward: fix the shapes and become the eager class."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        delattr(module, "_initialize_hook")
        delattr(module, "_load_hook")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. "
            "Run a dummy forward pass to correctly initialize the modules")
