r"""Tensors of a module as functions of others.

After ``register_parametrization(module, "weight", f)`` the attribute `module.weight` is
:math:`f(\mathtt{original})`, recomputed at every access; `original` is the parameter that is
learned and lives in `module.parametrizations.weight`. The module gets a class of its own, on which
the attribute is a property.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.__future__ import get_swap_module_params_on_conversion  # noqa: F401
from flambeau._library.opaque_object import is_opaque_reference_type  # noqa: F401
from flambeau.core.autograd.grad_mode import ContextDecorator
from flambeau.nn.modules.container import ModuleDict, ModuleList
from flambeau.nn.modules.module import Module  # noqa: F401
from flambeau.nn.parameter import Parameter
from flambeau.utils._python_dispatch import is_traceable_wrapper_subclass  # noqa: F401

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization",
           "remove_parametrizations", "transfer_parametrizations_and_params",
           "type_before_parametrizations"]

_caching: list = []             # the contexts that are entered
_cache: dict[tuple[int, str], Tensor | None] = {}


class cached(ContextDecorator):
    """Within, every parametrized tensor is computed once, and then remembered.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
        >>> with nn.utils.parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """

    def _changes(self):
        return (_caching, self),

    def _has_left(self):
        if not _caching:
            _cache.clear()


def _register_parameter_or_buffer(module, name, X):
    if isinstance(X, Parameter):
        module.register_parameter(name, X)
    else:
        module.register_buffer(name, X)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, first to last, and the originals they start from.

    The original is `original`, or `original0`, `original1`, … where the first parametrization's
    `right_inverse` gives several tensors.
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules, original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        start = self._inverted(original)
        self.is_tensor = isinstance(start, Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        if self.is_tensor:
            self._check_start(start, original)
            original.data = start.detach()
            _register_parameter_or_buffer(self, "original", original)
        else:
            self._register_several(start, original)
        if not unsafe:
            self._check_result(shape, dtype)

    def _inverted(self, value):
        """What the right inverses, last to first, make of the tensor that is there."""
        with flambeau.no_grad():
            for module in reversed(list(self)):
                # One without an inverse takes the tensor as it is.
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        value = module.right_inverse(value)
        if not isinstance(value, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(value).__name__}")
        return value

    @staticmethod
    def _check_start(start, original):
        for what in ("dtype", "device"):
            old, new = getattr(original, what), getattr(start, what)
            if old != new:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                    f"original.{what}: {old}\nright_inverse(original).{what}: {new}")

    def _register_several(self, start, original):
        for i, tensor in enumerate(start):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors "
                    "(list, tuple...). "
                    f"Got element {i} of the sequence with type {type(tensor).__name__}.")
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            _register_parameter_or_buffer(self, f"original{i}", tensor)

    def _check_result(self, shape, dtype):
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(
                f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what, old, new in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
            if old != new:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, "
                    f"unless `unsafe` flag is enabled.\nunparametrized {what}: {old}\nparametrized "
                    f"{what}: {new}")

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrized tensor becomes `value`."""
        with flambeau.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement "
                        "right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                self._set_original(value)
            else:
                self._set_originals(value)

    def _set_original(self, value):
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(f"The tensor returned by `right_inverse` has dtype {value.dtype} "
                             f"while `original` has dtype {self.original.dtype}")
        self.original.data = value.detach()

    def _set_originals(self, values):
        if not isinstance(values, Sequence):
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors. Got {type(values).__name__}.")
        if len(values) != self.ntensors:
            raise ValueError("'right_inverse' must return a sequence of tensors of length "
                             f"{self.ntensors}. Got a sequence of length {len(values)}.")
        for i, tensor in enumerate(values):
            original = getattr(self, f"original{i}")
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    f"`right_inverse` must return a sequence of tensors. Got element {i} of type "
                    f"{type(tensor).__name__}")
            if original.dtype != tensor.dtype:
                raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} "
                                 f"while `original{i}` has dtype {original.dtype}")
            original.data = tensor.detach()

    def forward(self) -> Tensor:
        first, *others = self._modules.values()
        if self.is_tensor:
            value = first(self.original)
        else:
            value = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in others:
            value = module(value)
        return value


# ------------------------------------------------------------------ the class of its own

def _deepcopy_parametrized(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    replica = self.__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__ = deepcopy(self.__dict__, memo)
    return replica


def _refuse_to_pickle(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training")


def _inject_new_class(module) -> None:
    cls = type(module)
    members: dict[str, Any] = {"__getstate__": _refuse_to_pickle}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy_parametrized
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module, tensor_name: str) -> None:
    def get(self) -> Tensor:
        parametrization = self.parametrizations[tensor_name]
        if not _caching:
            return parametrization()
        key = (id(self), tensor_name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def set_(self, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get, set_))


# ------------------------------------------------------------------ the functions

def register_parametrization(module, tensor_name: str, parametrization, *, unsafe: bool = False):
    """Make a parameter or buffer of `module` the result of `parametrization`.

    A `right_inverse` of the parametrization makes the attribute assignable, and sets the original
    now so that the value stays. Unless `unsafe`, shape and dtype must stay too. Several
    parametrizations of a tensor are applied in the order of registration.

    Example:
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = nn.Linear(3, 3)
        >>> _ = nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> flambeau.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(module, tensor_name, parametrization)
        chain = module.parametrizations[tensor_name]
        chain.append(parametrization)
        chain.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        chain = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = chain
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a "
                         f"parametrized element with name '{tensor_name}'")
    return module


def _check_next(module, name, parametrization):
    """Complain if another parametrization changes shape or dtype."""
    value = getattr(module, name)
    result = parametrization(value)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what in ("dtype", "shape"):
        old, new = getattr(value, what), getattr(result, what)
        if old != new:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless "
                f"the `unsafe` flag is enabled.\nmodule.{name}.{what}: {old}\n"
                f"parametrization(module.{name}).{what}: {new}")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        old, new = getattr(value, what), getattr(back, what)
        if old != new:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} "
                f"as module.{name}, unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: "
                f"{old}\nreturned {what}: {new}")


def is_parametrized(module, tensor_name: str | None = None) -> bool:
    """Whether a module, or one tensor of it, is parametrized."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    if tensor_name is None:
        return len(parametrizations) > 0
    return tensor_name in parametrizations


def remove_parametrizations(module, tensor_name: str, leave_parametrized: bool = True):
    """Make a tensor ordinary again, with its present value, or the original's unless
    `leave_parametrized`."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with flambeau.no_grad():
                original.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor "
                         "that is parametrized in terms of a sequence of tensors.")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module) -> type:
    """The class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name: str | None = None):
    """Give `to_module` the parametrizations and originals of `from_module`, of all tensors or of
    one, and the tensors themselves where they are not parametrized."""
    if not is_parametrized(from_module):
        return to_module
    chains = from_module.parametrizations
    names = list(chains) if tensor_name is None else [tensor_name]
    for name in names:
        chain = chains[name]
        if not is_parametrized(to_module, name):
            value = getattr(from_module, name)
            if not hasattr(to_module, name):
                _register_parameter_or_buffer(to_module, name, Parameter(value.detach().clone()))
            else:
                getattr(to_module, name).data = value.detach().clone()
        for parametrization in chain:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        originals = ["original"] if chain.is_tensor else [
            f"original{i}" for i in range(chain.ntensors)]
        for original in originals:
            setattr(target, original, getattr(chain, original))
    return to_module
