"""The types of TorchScript: what annotations and schemas say, as objects.

>>> ListType(OptionalType(IntType.get()))
List[Optional[int]]
>>> IntType.get().isSubtypeOf(NumberType.get())
True
"""
from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from flambeau._support.c_functions import bound_in_c, matched
from flambeau.core.shapes import contiguous_strides


@bound_in_c
class Type:
    """A type of TorchScript. Types are equal if they say the same."""

    _name = _schema_name = _kind = ""
    _parts: tuple[Type, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any):
        raise TypeError(f"torch._C.{type(self).__name__}: No constructor defined!")

    @classmethod
    def _new(cls, *parts: Type, **facts: Any) -> Any:
        made = object.__new__(cls)
        made._parts = parts
        made.__dict__.update(facts)
        return made

    def kind(self) -> str:
        """The name of the kind of type, such as `ListType`."""
        return self._kind or type(self).__name__

    @property
    def annotation_str(self) -> builtins.str:
        """The type as Python annotates it: `List[int]`."""
        return self._name

    def str(self) -> builtins.str:
        """The type as schemas write it: `int[]`."""
        return self._schema_name or self._name

    def __repr__(self) -> builtins.str:
        return self.annotation_str

    def containedTypes(self) -> list[Type]:
        """The types of which this one is made."""
        return list(self._parts)

    def is_interface_type(self) -> bool:
        """False: there are no interfaces."""
        return False

    def isSubtypeOf(self, other: Type) -> bool:
        """Is a value of this type one of the other?"""
        if not isinstance(other, Type):
            raise TypeError(f"isSubtypeOf(): expected a torch._C.Type, but got {other!r}")
        if isinstance(other, AnyType) or self == other:
            return True
        if isinstance(other, (UnionType, NumberType)) and not isinstance(self, UnionType):
            return any(self.isSubtypeOf(part) for part in _members(other))
        return self._is_kind_of(other)

    def _is_kind_of(self, other: Type) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def _key(self) -> Any:
        return self._name, self._parts


class _Single(Type):
    """A type of which there is one."""

    @classmethod
    def get(cls) -> Any:
        """The type."""
        if "_only" not in cls.__dict__:
            cls._only = cls._new()                                  # type: ignore[attr-defined]
        return cls.__dict__["_only"]


def _single(name: str, text: str, schema: str = "", kind: str = "") -> Any:
    return type(name, (_Single,), {"_name": text, "_schema_name": schema, "_kind": kind,
                                   "__module__": "torch", "__doc__": f"The type {text}."})


AnyType = _single("AnyType", "Any")
NoneType = _single("NoneType", "NoneType")
IntType = _single("IntType", "int")
FloatType = _single("FloatType", "float")
ComplexType = _single("ComplexType", "complex")
BoolType = _single("BoolType", "bool")
StringType = _single("StringType", "str")
NumberType = _single("NumberType", "number", "Scalar")
DeviceObjType = _single("DeviceObjType", "Device")
StreamObjType = _single("StreamObjType", "Stream")
PyObjectType = _single("PyObjectType", "PyObject")
SymIntType = _single("SymIntType", "int", "SymInt")
SymBoolType = _single("SymBoolType", "bool", "SymBool")
_GeneratorType = _single("_GeneratorType", "Generator", kind="GeneratorType")


class TensorType(Type):
    """The type of tensors, of all or of those with these facts."""

    _name = "Tensor"
    _facts: dict[str, Any] = {}     # replaced, never changed

    @classmethod
    def get(cls) -> TensorType:
        """The type of all tensors."""
        return cls._new()

    getInferred = get

    @classmethod
    def create_from_tensor(cls, tensor: Any) -> TensorType:
        """The type of tensors like this one."""
        return cls._new(_facts={
            "sizes": list(tensor.shape), "strides": list(tensor.stride()), "dtype": tensor.dtype,
            "device": tensor.device, "requires_grad": tensor.requires_grad})

    def sizes(self) -> list[int] | None:
        """The sizes, if the type says."""
        return self._facts.get("sizes")

    varyingSizes = symbolic_sizes = sizes

    def strides(self) -> list[int] | None:
        """The strides, if the type says."""
        return self._facts.get("strides")

    def dim(self) -> int | None:
        """The number of dimensions, if the type says."""
        sizes = self.sizes()
        return None if sizes is None else len(sizes)

    def dtype(self) -> Any:
        """The dtype, if the type says."""
        return self._facts.get("dtype")

    def device(self) -> Any:
        """The device, if the type says."""
        return self._facts.get("device")

    def requires_grad(self) -> bool:
        """False if the type says that tensors of it don't require grad."""
        return self._facts.get("requires_grad", True)

    def undefined(self) -> bool:
        """False: tensors are defined."""
        return False

    def scalarType(self) -> Any:
        """The name of the dtype, such as `Float`, if the type says."""
        dtype = self.dtype()
        return None if dtype is None else _SCALAR_NAMES.get(str(dtype).rpartition(".")[2])

    def contiguous(self) -> TensorType:
        """The type with strides as of contiguous tensors."""
        sizes = self.sizes()
        if sizes is None:
            raise RuntimeError("contiguous(): this type of tensors does not say its sizes")
        return self._with(strides=list(contiguous_strides(sizes)))

    def with_sizes(self, sizes: Sequence[int] | None) -> TensorType:
        """The type with these sizes."""
        return self._with(sizes=None if sizes is None else list(sizes),
                          strides=None if sizes is None else list(contiguous_strides(sizes)))

    def with_dtype(self, dtype: Any) -> TensorType:
        """The type with this dtype."""
        return self._with(dtype=dtype)

    def with_device(self, device: Any) -> TensorType:
        """The type with this device."""
        return self._with(device=device)

    def _with(self, **facts: Any) -> TensorType:
        kept = {k: v for k, v in {**self._facts, **facts}.items() if v is not None}
        return self._new(_facts=kept)

    def str(self) -> str:
        facts = self._facts
        if not facts:
            return "Tensor"
        parts = [str(size) for size in facts.get("sizes") or ["*"]]
        if "strides" in facts:
            parts.append(f"strides={facts['strides']}")
        if "requires_grad" in facts:
            parts.append(f"requires_grad={int(facts['requires_grad'])}")
        if "device" in facts:
            parts.append(f"device={facts['device']}")
        return f"{self.scalarType() or 'Tensor'}({', '.join(parts)})"

    def _is_kind_of(self, other: Type) -> bool:
        return isinstance(other, TensorType) and other._facts.items() <= self._facts.items()

    def _key(self) -> Any:
        return tuple((k, str(v)) for k, v in sorted(self._facts.items()))


_SCALAR_NAMES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
                 "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char",
                 "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
                 "complex128": "ComplexDouble", "complex32": "ComplexHalf"}


def _check(cls: type, *parts: Any) -> None:
    for part in parts:
        if not isinstance(part, Type):
            raise TypeError(f"torch._C.{cls.__name__} is made of torch._C.Type objects, such as "
                            f"torch.IntType.get(), but got {part!r}")


class _OfElements(Type):
    """A type that is made of one other."""

    def __init__(self, element: Type):
        _check(type(self), element)
        self._parts = (element,)

    def getElementType(self) -> Type:
        """What it holds."""
        return self._parts[0]

    @property
    def annotation_str(self) -> builtins.str:
        return f"{self._name}[{self._parts[0].annotation_str}]"

    def str(self) -> str:
        return f"{self._name}[{self._parts[0].str()}]"


def _list_of(name: str, kind: Any) -> Any:
    def make() -> ListType:
        return ListType(kind.get())
    make.__name__, make.__qualname__ = name, f"ListType.{name}"
    make.__doc__ = f"`List[{kind._name}]`."
    return staticmethod(make)


class ListType(_OfElements):
    """The type of lists of one type."""

    _name = "List"

    def str(self) -> str:
        return f"{self._parts[0].str()}[]"

    ofInts = _list_of("ofInts", IntType)
    ofFloats = _list_of("ofFloats", FloatType)
    ofComplexDoubles = _list_of("ofComplexDoubles", ComplexType)
    ofBools = _list_of("ofBools", BoolType)
    ofStrings = _list_of("ofStrings", StringType)
    ofTensors = _list_of("ofTensors", TensorType)


class FutureType(_OfElements):
    """The type of futures of one type."""

    _name = "Future"

    def _is_kind_of(self, other: Type) -> bool:
        return type(other) is type(self) and self._parts[0].isSubtypeOf(other._parts[0])


class AwaitType(FutureType):
    """The type of calls that are yet to be made."""

    _name = "Await"

    def str(self) -> str:
        return f"Await({self._parts[0].str()})"


class RRefType(FutureType):
    """The type of references to values of other processes."""

    _name = "RRef"


class DictType(Type):
    """The type of dicts with keys of one type and values of another."""

    def __init__(self, key: Type, value: Type):
        _check(DictType, key, value)
        if not isinstance(key, (AnyType, IntType, BoolType, FloatType, ComplexType, StringType,
                                TensorType, DeviceObjType)):
            raise RuntimeError(f"Cannot create dict for key type '{key.str()}', only int, float, "
                               "complex, Tensor, device and string keys are supported")
        self._parts = (key, value)

    def getKeyType(self) -> Type:
        """The type of keys."""
        return self._parts[0]

    def getValueType(self) -> Type:
        """The type of values."""
        return self._parts[1]

    @property
    def annotation_str(self) -> builtins.str:
        return f"Dict[{self._parts[0].annotation_str}, {self._parts[1].annotation_str}]"

    def str(self) -> str:
        return f"Dict({self._parts[0].str()}, {self._parts[1].str()})"


class TupleType(Type):
    """The type of tuples of these types."""

    def __init__(self, elements: Sequence[Type]):
        _check(TupleType, *elements)
        self._parts = tuple(elements)

    def elements(self) -> list[Type]:
        """The types of the elements."""
        return list(self._parts)

    @property
    def annotation_str(self) -> builtins.str:
        return f"Tuple[{', '.join(p.annotation_str for p in self._parts) or '()'}]"

    def str(self) -> str:
        return f"({', '.join(p.str() for p in self._parts)})"

    def _is_kind_of(self, other: Type) -> bool:
        return isinstance(other, TupleType) and len(other._parts) == len(self._parts) and all(
            mine.isSubtypeOf(theirs) for mine, theirs in zip(self._parts, other._parts))


def _members(type_: Type) -> tuple[Type, ...]:
    """The types that a union, or a number, can be."""
    if isinstance(type_, NumberType):
        return IntType.get(), FloatType.get(), ComplexType.get()
    return type_._parts if isinstance(type_, UnionType) else (type_,)


_UNION_ORDER = ("Any Enum Tensor Tuple List Dict Float Complex Future Await RRef Int None String "
                "Generator Bool Optional DeviceObj StreamObj Class PyObject Interface SymInt "
                "SymBool Number").split()


def _place_in_union(type_: Type) -> tuple[int, str]:
    """Where a type stands in the list of a union's members."""
    kind = type_.kind().removesuffix("Type")
    place = _UNION_ORDER.index(kind) if kind in _UNION_ORDER else len(_UNION_ORDER)
    return place, type_.annotation_str


class UnionType(Type):
    """The type of values that are of one of these types."""

    def __new__(cls, members: Any = ()) -> Any:
        if cls is UnionType and NoneType.get() in members and len(set(members)) == 2:
            made = object.__new__(OptionalType)
            made._set(members)
            return made
        return object.__new__(cls)

    def __init__(self, members: Sequence[Type]):
        _check(UnionType, *members)
        self._set(members)

    def _set(self, members: Sequence[Type]) -> None:
        flat = {part for member in members for part in (
            member._parts if isinstance(member, UnionType) else (member,))}
        numbers = set(_members(NumberType.get()))
        if numbers <= flat:
            flat = flat - numbers | {NumberType.get()}
        self._parts = tuple(sorted(flat, key=_place_in_union))
        if len(self._parts) == 1:
            only = self._parts[0]
            raise RuntimeError(f"the types of this union come down to the single type {only}: use "
                               "that type instead")

    @property
    def annotation_str(self) -> builtins.str:
        return f"Union[{', '.join(p.annotation_str for p in self._parts)}]"

    def str(self) -> str:
        return f"Union({', '.join(p.str() for p in self._parts)})"

    def _is_kind_of(self, other: Type) -> bool:
        return all(part.isSubtypeOf(other) for part in self._parts)


class OptionalType(UnionType):
    """The type of values that are of one type, or None."""

    def __init__(self, element: Any):
        if isinstance(element, Type):
            self._set([element, NoneType.get()])
        elif not self._parts:
            _check(OptionalType, element)

    @staticmethod
    def ofTensor() -> OptionalType:
        """`Optional[Tensor]`."""
        return OptionalType(TensorType.get())

    def getElementType(self) -> Type:
        """What it is if it is not None."""
        rest = [part for part in self._parts if not isinstance(part, NoneType)]
        return rest[0] if len(rest) == 1 else UnionType(rest)

    @property
    def annotation_str(self) -> builtins.str:
        return f"Optional[{self.getElementType().annotation_str}]"

    def str(self) -> str:
        return f"{self.getElementType().str()}?"


class ClassType(Type):
    """A class, by its name: no class is scripted."""

    def name(self) -> builtins.str:
        """The last part of the name."""
        return self._name.rpartition(".")[2]

    def qualified_name(self) -> builtins.str:
        """The whole name."""
        return self._name


class InterfaceType(Type):
    """The type of a scripted interface. There are none."""


class EnumType(Type):
    """The type of a scripted enumeration. There are none."""


@matched("(arg0: collections.abc.Sequence[c10::Type]) -> c10::Type", isinstance_of={
    "collections.abc.Sequence[c10::Type]": (list, tuple)})
def unify_type_list(types: Sequence[Type]) -> Type:
    """The type that all of these are."""
    if not types:
        raise RuntimeError("Cannot get unified type from empty list")
    for place, type_ in enumerate(types):
        if type_ != types[0]:
            raise RuntimeError(f"Could not unify type list since element {place} of type "
                               f"{type_.str()} did not match the types before it "
                               f"({types[0].str()})")
    return types[0]


__all__ = ["AnyType", "AwaitType", "BoolType", "ClassType", "ComplexType", "DeviceObjType",
           "DictType", "EnumType", "FloatType", "FutureType", "IntType", "InterfaceType",
           "ListType", "NoneType", "NumberType", "OptionalType", "PyObjectType", "RRefType",
           "StreamObjType", "StringType", "SymBoolType", "SymIntType", "TensorType", "TupleType",
           "Type", "UnionType", "unify_type_list"]

for _name in __all__:
    if _name != "unify_type_list":
        globals()[_name].__module__ = "torch"
