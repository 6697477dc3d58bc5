"""`Module`: a function with state, and the tree that such functions form."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import flambeau
from flambeau.__future__ import (
    get_overwrite_module_params_on_conversion,
    get_swap_module_params_on_conversion,
)
from flambeau._support.own_methods import adopt, of_class, shown_as
from flambeau.nn.parameter import Parameter, is_lazy
from flambeau.ops.python.list_updates import clear_grads

from . import _hooks
from ._hooks import (
    HookMixin,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,  # noqa: F401
    _global_forward_hooks,
    _global_forward_hooks_always_called,  # noqa: F401
    _global_forward_hooks_with_kwargs,  # noqa: F401
    _global_forward_pre_hooks,
    _global_module_registration_hooks,  # noqa: F401
    _global_parameter_registration_hooks,  # noqa: F401
    _has_any_global_hook,
    _WrappedHook,  # noqa: F401
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._parse import parse_to
from ._registry import Registry
from ._state import EXTRA_STATE_KEY as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401
from ._state import StateMixin, _IncompatibleKeys  # noqa: F401

__all__ = ["Module", "register_module_backward_hook", "register_module_buffer_registration_hook",
           "register_module_forward_hook", "register_module_forward_pre_hook",
           "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
           "register_module_module_registration_hook",
           "register_module_parameter_registration_hook"]


def _addindent(text: str, spaces: int) -> str:
    """`text` with all lines but the first indented."""
    return text.replace("\n", "\n" + " " * spaces)


def _forward_unimplemented(self, *input: Any) -> None:
    """What the module computes; for subclasses to define."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function')


of_class("Module", Registry, StateMixin, HookMixin)


class Module(Registry, StateMixin, HookMixin):
    """A function with parameters: the base class of all layers and networks.

    A subclass calls ``super().__init__()``, assigns its parameters and submodules to attributes
    and defines `forward`. Calling the module runs `forward` and the hooks.

    Example:
        >>> class Affine(nn.Module):
        ...     def __init__(self, size):
        ...         super().__init__()
        ...         self.scale = nn.Parameter(flambeau.ones(size))
        ...         self.inner = nn.Linear(size, size)
        ...
        ...     def forward(self, x):
        ...         return self.scale * self.inner(x)
        >>> Affine(2)
        Affine(
          (inner): Linear(in_features=2, out_features=2, bias=True)
        )
    """

    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    dump_patches = False
    _version = 1
    training: bool
    call_super_init = False
    _compiled_call_impl = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but "
                                f"{len(args) + 1} were given")
        store = object.__setattr__  # these names need no sorting into registries
        store(self, "training", True)
        store(self, "_parameters", {})
        store(self, "_buffers", {})
        store(self, "_non_persistent_buffers_set", set())
        store(self, "_modules", {})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    # -------------------------------------------------------------- the call

    @shown_as("Module._wrapped_call_impl")
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (self._has_hooks or _global_forward_hooks or _global_forward_pre_hooks
            or _global_backward_hooks or _global_backward_pre_hooks):
            return self._wrapped_call_impl(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        if _has_any_global_hook() or any(self.__dict__.get(name) for name in _hooks.HOOK_DICTS):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Run this module's calls through `flambeau.compile` from now on."""
        self._compiled_call_impl = flambeau.compile(self._call_impl, *args, **kwargs)
        self._has_hooks = True

    # -------------------------------------------------------------- the tree

    def apply(self, fn):
        """Call ``fn(module)`` on all submodules, innermost first, and on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True):
        """Set training mode, which dropout and normalisation layers look at, here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Set evaluation mode: the same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True):
        """Set `requires_grad` of all parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. "
                "The parameters are copied (in a differentiable manner) from the original module. "
                "This means they are not leaf nodes in autograd and so don't accumulate "
                "gradients. If you need gradients in your forward method, consider using "
                "autograd.grad instead.", stacklevel=2)
        clear_grads(self.parameters(), set_to_none)

    def share_memory(self):
        """Move parameters and buffers to shared memory."""
        return self._apply(lambda tensor: tensor.share_memory_())

    # -------------------------------------------------------------- dtype and device

    def _apply(self, fn, recurse=True):
        """Replace every parameter, its gradient and every buffer by ``fn(tensor)``."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._parameters[name] = self._apply_to_parameter(fn, param)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                new = fn(buffer)
                self._buffers[name] = new.as_subclass(type(buffer)) if is_lazy(buffer) else new
        return self

    @staticmethod
    def _apply_to_parameter(fn, param):
        with flambeau.no_grad():
            new = fn(param)
            grad = param.grad
            if grad is not None:
                grad = fn(grad).requires_grad_(grad.requires_grad)
        # The values of a wrapper are in other tensors.
        if get_swap_module_params_on_conversion() or hasattr(type(new), "__tensor_flatten__"):
            from flambeau.utils import swap_tensors
            param.grad = None
            swap_tensors(param, Parameter(new, param.requires_grad))
        elif new.device == param.device and not get_overwrite_module_params_on_conversion():
            # The same object gets other data, so that optimizers keep what they hold.
            param.grad = None
            param.data = new
        else:
            param = Parameter(new, param.requires_grad)
        param.grad = grad
        return param

    def to(self, *args: Any, **kwargs: Any):
        """Change device, floating point dtype or memory format of parameters and buffers.

        Called as ``to(device, dtype, non_blocking)``, ``to(dtype)``, ``to(tensor)`` or
        ``to(memory_format=...)``. Integer tensors keep their dtype.

        Example:
            >>> nn.Linear(2, 3).to(flambeau.float64).weight.dtype
            torch.float64
        """
        device, dtype, non_blocking, memory_format = parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                    f"dtype={dtype}")
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may "
                    "change, and some modules might not work as expected when using complex "
                    "tensors as parameters or buffers. Please file an issue at "
                    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
                    "if a complex module does not work as expected.", stacklevel=2)

        def convert(tensor):
            number = tensor.is_floating_point() or tensor.is_complex()
            new_dtype = dtype if number else None
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device, new_dtype, non_blocking, memory_format=memory_format)
            if tensor.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty()"
                    " instead of torch.nn.Module.to() when moving module from meta to a different "
                    "device.")
            return tensor.to(device, new_dtype, non_blocking)

        return self._apply(convert)

    def _apply_to_floating(self, convert):
        return self._apply(lambda t: convert(t) if t.is_floating_point() else t)

    def float(self):
        """Cast all floating point parameters and buffers to float32."""
        return self._apply_to_floating(lambda tensor: tensor.float())

    def double(self):
        """Cast all floating point parameters and buffers to float64."""
        return self._apply_to_floating(lambda tensor: tensor.double())

    def half(self):
        """Cast all floating point parameters and buffers to float16."""
        return self._apply_to_floating(lambda tensor: tensor.half())

    def bfloat16(self):
        """Cast all floating point parameters and buffers to bfloat16."""
        return self._apply_to_floating(lambda tensor: tensor.bfloat16())

    def type(self, dst_type):
        """Cast all parameters and buffers to `dst_type`."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def cpu(self):
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device=None):
        """Move all parameters and buffers to a CUDA device."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def xpu(self, device=None):
        """Move all parameters and buffers to an XPU device."""
        return self._apply(lambda tensor: tensor.xpu(device))

    def ipu(self, device=None):
        """Move all parameters and buffers to an IPU device."""
        return self._apply(lambda tensor: tensor.ipu(device))

    def mtia(self, device=None):
        """Move all parameters and buffers to an MTIA device."""
        return self._apply(lambda tensor: tensor.mtia(device))

    def to_empty(self, *, device, recurse: bool = True):
        """Move to a device without copying values: what is there afterwards is undefined."""
        return self._apply(lambda tensor: flambeau.empty_like(tensor, device=device),
                           recurse=recurse)

    # -------------------------------------------------------------- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What `repr` shows between the brackets besides the submodules."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {_addindent(repr(module), 2)}" for name,
                       module in self._modules.items()]
        if not child_lines and len(extra_lines) <= 1:
            return f"{self._get_name()}({extra})"
        body = "\n  ".join(extra_lines + child_lines)
        return f"{self._get_name()}(\n  {body}\n)"

    # -------------------------------------------------------------- copying

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        if "_non_persistent_buffers_set" not in self.__dict__:
            self.__dict__["_non_persistent_buffers_set"] = set()
        if any(state.get(name) for name in _hooks.HOOK_DICTS):
            self.__dict__["_has_hooks"] = True

    def _replicate_for_data_parallel(self):
        """A shallow copy with registries of its own."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}  # replicas get tensors that are not leaves, hence no parameters
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


adopt(globals(), "nn.modules._")
