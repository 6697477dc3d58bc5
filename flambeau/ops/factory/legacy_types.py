"""The historical constructors: `Tensor(2, 3)`, `FloatTensor`, `x.type()`."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.devices.backends import no_cuda_library
from flambeau._support.settings import filled_if_deterministic
from flambeau.core import devices, dtypes
from flambeau.core.op import public
from flambeau.core.promotion import type_name
from flambeau.core.shapes import Size, extents_of
from flambeau.core.tensor import Tensor, add_members, alias
from flambeau.dispatch.declaration import Declaration
from flambeau.dispatch.function import Function
from flambeau.dispatch.members import member
from flambeau.ops.factory.from_data import array_of, is_sequence
from flambeau.ops.view.copying import graph_alias
from flambeau.schema.errors import type_name as type_name_of


def legacy_constructor(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Tensor()`, `Tensor(2, 3)`, `Tensor([1, 2])`, `Tensor(other)`."""
    if len(args) + len(kwargs) == 1:
        other = args[0] if args else kwargs.get("other")
        if isinstance(other, Tensor):
            return _alias_as(other, cls)
    return _construct_legacy(cls, dtypes.get_default_dtype(), args, kwargs)


def _alias_as(source: Tensor, cls: type) -> Tensor:
    """Another tensor with the same memory, which is a view of the first."""
    if source._edge is not None or source._device is not devices.cpu:
        return graph_alias(source) if cls is Tensor else source.as_subclass(cls)
    if source._conjugated or source._negated:
        return alias(source.resolve_conj().resolve_neg()._array, cls)
    result = alias(source._array, cls)
    result._counter = source._counter
    return result


_new = Function(Declaration(texts=(
    "new(Tensor self, *, Device? device=None) -> Tensor",
    "new.storage(Tensor self, Storage source) -> Tensor",
    "new.tensor(Tensor self, Tensor other) -> Tensor",
    "new.size(Tensor self, SymInt[] size, *, Device? device=None) -> Tensor",
    "new.data(Tensor self, object data, *, Device? device=None) -> Tensor"),
    body=lambda *values: values), bound=True)


def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The historical constructor, with this tensor's dtype: of sizes, data, or nothing."""
    if not isinstance(self, Tensor):
        raise TypeError(f"descriptor 'new' for 'torch._C.TensorBase' objects doesn't apply to a "
                        f"'{type(self).__name__}' object")
    return _construct_legacy(Tensor, self.dtype, args, kwargs)


add_members(new=new)


def _construct_legacy(cls: type, target: dtypes.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]
                      ) -> Any:
    plain = not kwargs and (all(type(a) is int for a in args) or (
        len(args) == 1 and type(args[0]) in (list, tuple, np.ndarray)))
    if not plain:
        _new.choose((alias(np.empty(0, target.numpy), Tensor), *args), kwargs)
    device = kwargs.get("device")
    if device is not None and devices.device(device).type != "cpu":
        raise RuntimeError("legacy constructor expects device type: cpu but device type: "
                           f"{devices.device(device).type} was passed")
    if "size" in kwargs:
        args = (Size(kwargs["size"]),)
    data = next(iter((*args, *[kwargs[k] for k in ("other", "data") if k in kwargs])), ())
    if isinstance(data, Tensor):
        if data.dtype is not target:
            raise TypeError(
                f"expected {_describe_options(target)} (got {_describe_options(data.dtype)})")
        return _alias_as(data, cls)
    if isinstance(data, (int, Size)) and type(data) is not bool:
        return alias(filled_if_deterministic(np.empty(extents_of(*args), target.numpy)), cls)
    if hasattr(data, "untyped"):
        _check_storage(data, target)
        return alias(array_of(data, target), cls)
    if not args and not kwargs:
        return alias(np.empty(0, target.numpy), cls)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not isinstance(data, np.ndarray) and not is_sequence(data):
        raise TypeError(f"new(): data must be a sequence (got {type_name_of(data)})")
    return alias(array_of(data, target), cls)


def _check_storage(storage: Any, target: dtypes.dtype) -> None:
    found = getattr(storage, "dtype", target)
    if found is not target:
        raise RuntimeError(f"Expected a Storage of type {type_name(target)} or an UntypedStorage, "
                           f"but got type {type_name(found)} for argument 1 'storage'")


def _describe_options(d: dtypes.dtype) -> str:
    """What PyTorch prints of a tensor's type, layout and place."""
    name = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int",
            "int16": "short int", "int8": "signed char", "uint8": "unsigned char",
            "float16": "c10::Half", "bfloat16": "c10::BFloat16"}.get(d.name, d.name)
    return (f"TensorOptions(dtype={name}, device=cpu, layout=Strided, requires_grad=false "
            "(default), pinned_memory=false (default), memory_format=(nullopt))")


def typed_constructor(name: str, target: dtypes.dtype) -> type:
    """`FloatTensor` and its kind: makes tensors of one type, and knows its instances."""
    class Meta(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, Tensor) and instance.dtype is target

        def __new__(mcs, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> Any:
            if bases:
                raise TypeError(f"type '{bases[0].__module__}.{bases[0].__name__}' is not an "
                                "acceptable base type")
            return super().__new__(mcs, name, bases, members)

        def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
            return _construct_legacy(Tensor, target, args, kwargs)

        def __getattr__(cls, name: str) -> Any:
            return getattr(Tensor, name)

        def __dir__(cls) -> list[str]:
            return dir(Tensor)

    made = Meta(name, (), {"__module__": "torch", "dtype": target,
                           "__doc__": f"Makes tensors of type {target.name}."})
    public["torch"][name] = made
    return made


_CONSTRUCTED = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.uint8,
                dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.bool_)
for _target in _CONSTRUCTED:
    typed_constructor(f"{type_name(_target)}Tensor", _target)


@member("type(Tensor self, object dtype=None, bool non_blocking=False, *, "
        "MemoryFormat? memory_format=None) -> object", function=False,
        deprecated=("type(Tensor self, object dtype=None, bool async=False, *, "
                    "MemoryFormat? memory_format=None) -> object",))
def type_(self: Tensor, dtype: Any, non_blocking: bool, memory_format: Any) -> Any:
    """The historical name of the tensor's type, or the tensor as another type."""
    if dtype is None:
        place = "meta." * self.is_meta + "sparse." * self.is_sparse
        return f"torch.{place}{type_name(self.dtype)}Tensor"
    if isinstance(dtype, type) and not isinstance(getattr(dtype, "dtype", None), dtypes.dtype):
        static = not dtype.__flags__ & 1 << 9               # C knows such a class by a longer name
        dtype = f"{dtype.__module__}." * (dtype.__module__ != "builtins" and (
            static or dtype.__module__.startswith("torch"))) + dtype.__name__
    if isinstance(dtype, str):
        names = {f"torch.{place}{type_name(target)}Tensor": target for place in ("", "sparse.")
                 for target in (*_CONSTRUCTED, dtypes.complex32, dtypes.complex64,
                                dtypes.complex128)}
        if dtype not in names and dtype.replace("cuda.", "", 1) in names:
            raise no_cuda_library("initialize CUDA")
        if dtype not in names:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = names[dtype]
    elif isinstance(dtype, type):
        dtype = getattr(dtype, "dtype")  # noqa: B009
    elif not isinstance(dtype, dtypes.dtype):
        raise TypeError("dtype must be a type, str, or dtype object")
    return self.to(dtype)


