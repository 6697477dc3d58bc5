"""Tensors that a module owns: parameters, buffers, and those whose shape is not known yet."""

from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.core.calling import overrides
from flambeau.core.calling.overrides import disabled_torch_function
from flambeau.core.tensor import TensorMeta, plain_types, set_class
from flambeau.ops.python.methods import as_instance
from flambeau.transforms.function_modes import DisableTorchFunctionSubclass
from flambeau.transforms.meta import MetaTensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter",
           "UninitializedTensorMixin", "is_lazy"]


class _ParameterMeta(TensorMeta):
    """Tensors of other classes count as parameters when they carry the mark `_is_param`."""

    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return (self is Parameter and isinstance(instance, Tensor)
                and getattr(instance, "_is_param", False))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a module learns: assigned to an attribute of a `Module`, it is registered.

    `data` holds the values, which are shared, not copied. A tensor of a class of its own keeps
    that class and is marked as a parameter.

    Example:
        >>> nn.Parameter(flambeau.ones(2))
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True):
        if data is None:
            data = flambeau.empty(0)
        if type(data) is MetaParameter:
            data = data.detach()
        if type(data) is Tensor or type(data) is Parameter:
            make = as_instance if type(requires_grad) is bool else Tensor._make_subclass
            return make(cls, data, requires_grad)
        tensor = data.detach().requires_grad_(requires_grad)
        if type(tensor) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires "
                "that detach() returns an instance of the same type, but return type "
                f"{type(tensor).__name__} was found instead. To use the type as a Parameter, "
                "please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation.")
        if not isinstance(tensor, cls):
            tensor._is_param = True
        if type(tensor) is MetaTensor and cls is Parameter:
            tensor.__class__ = MetaParameter
        return tensor

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            values = self.data.clone(memory_format=flambeau.preserve_format)
            memo[id(self)] = type(self)(values, self.requires_grad)
        return memo[id(self)]

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        from flambeau._serialization.checkpoint_names import reduce_parameter
        return reduce_parameter(self)

    __torch_function__ = disabled_torch_function


class MetaParameter(MetaTensor, metaclass=_ParameterMeta):
    """A parameter on `meta`, which has no values. Users see it as `Parameter`: its type makes
    parameters of whatever it is given."""

    def __new__(cls, data: Any = None, requires_grad: bool = True):
        return Parameter(data, requires_grad)

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    __class__ = property(lambda self: Parameter,
                         set_class)
    __deepcopy__ = Parameter.__deepcopy__
    __reduce_ex__ = Parameter.__reduce_ex__
    __torch_function__ = disabled_torch_function


plain_types.discard(MetaParameter)
overrides.internal_types.add(MetaParameter)
MetaParameter.__name__ = MetaParameter.__qualname__ = "Parameter"
Parameter.__module__ = "torch.nn.parameter"     # as it prints; pickles name the function below
MetaParameter.__module__ = Parameter.__module__


class _BufferMeta(TensorMeta):
    """A buffer is any tensor that carries the mark `_is_buffer`."""

    def __instancecheck__(self, instance):
        if self is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        return type.__instancecheck__(self, instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that is state of a module but is not learned, such as a running mean.

    Assigned to an attribute of a `Module` it is registered as a buffer; with `persistent` it is
    part of the `state_dict`. The object made is a plain tensor with a mark.
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True):
        if data is None:
            data = flambeau.empty(0)
        tensor = data.detach().requires_grad_(data.requires_grad)
        tensor.persistent = persistent
        tensor._is_buffer = True
        return tensor

    __torch_function__ = disabled_torch_function


# ------------------------------------------------------------------ not initialized yet

_SHAPELESS = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens "
    "in `load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
    "Call `forward` to initialize the parameters before accessing their attributes.")
# Which attributes and methods mean something without a shape.
_ALLOWED = ("__hash__", "__get__", "__set__", "size", "copy_", "is_complex", "is_floating_point",
            "half", "float", "double", "char", "short", "int", "long", "cuda", "cpu", "to",
            "get_device", "_has_compatible_shallow_copy_type")


class UninitializedTensorMixin:
    """A tensor that has a dtype and a device but waits for its shape."""

    cls_to_become: Any = Tensor
    cls_on_meta: Any = MetaTensor

    @classmethod
    def _holding(cls, data, requires_grad):
        tensor = Tensor._make_subclass(cls, data, requires_grad)
        tensor._device = data._device
        return tensor

    def materialize(self, shape, device=None, dtype=None):
        """Give the tensor its shape, and values that are still to be drawn."""
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = flambeau.empty(shape, device=device, dtype=dtype)
        on_meta = type(self.data) is MetaTensor
        self.__class__ = self.cls_on_meta if on_meta else self.cls_to_become
        if type(self) is MetaParameter:
            self._is_param = True

    @property
    def data(self):
        """The tensor as one that autograd does not know."""
        with DisableTorchFunctionSubclass():
            return Tensor.data.__get__(self)

    @data.setter
    def data(self, value):
        Tensor.data.__set__(self, value)

    @property
    def shape(self):
        """Raises RuntimeError: the first call of `forward` decides it."""
        raise RuntimeError(_SHAPELESS)

    def share_memory_(self):
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`.")

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto):
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in _ALLOWED or name.strip("_") in _ALLOWED:
            with DisableTorchFunctionSubclass():
                result = func(*args, **(kwargs or {}))
                if not isinstance(result, Tensor) or isinstance(result, cls) \
                        or issubclass(cls, Parameter):
                    return result
                return cls._holding(result, result.requires_grad)
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you "
            "are using a `LazyModule` or explicitly manipulating `torch.nn.parameter."
            f"{cls.__name__}` objects. When using LazyModules Call `forward` with a dummy batch "
            "to initialize the parameters before calling torch functions")


def is_lazy(param) -> bool:
    """Whether `param` still waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter without a shape; the first call of its lazy module gives it one.

    Example:
        >>> weight = nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> weight.shape
        torch.Size([2, 3])
    """

    cls_to_become = Parameter
    cls_on_meta = MetaParameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return cls._holding(flambeau.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer without a shape; the first call of its lazy module gives it one."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        buffer = cls._holding(flambeau.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
