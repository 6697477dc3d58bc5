"""The types that schemas name, as objects: `Tensor`, `int[2]?`, `Dict(str, Tensor)`.

>>> kind = parse_type("int[2]?")
>>> kind, kind.kind(), kind.getElementType().getElementType()
(Optional[List[int]], 'OptionalType', int)
"""
from __future__ import annotations

import re
from functools import cache
from typing import Any


class Type:
    """The type of an argument: `str` as TorchScript writes it, `declared` as schemas do."""

    def __init__(self, text: str = "", declared: str = ""):
        self.text, self.declared = text, declared or text

    def kind(self) -> str:
        """The name of the class."""
        return type(self).__name__

    @property
    def annotation_str(self) -> str:
        """The type as an annotation."""
        return str(self)

    def str(self) -> Any:
        """The type as text."""
        return str(self)

    def containedTypes(self) -> list[Type]:
        """The types of what is inside."""
        return []

    def isSubtypeOf(self, other: Type) -> bool:
        """Does every value of this type have the other, too?"""
        return self == other or isinstance(other, AnyType) or (
            isinstance(other, OptionalType) and (isinstance(self, NoneType)
                                                 or self.isSubtypeOf(other.getElementType()))) or (
            isinstance(other, NumberType) and isinstance(self, (IntType, FloatType, ComplexType)))

    def __str__(self) -> Any:
        return self.text

    def __repr__(self) -> Any:
        return self.__str__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((type(self), str(self)))


def _single_type(name: str, text: str) -> Any:
    def initialise(self: Any, declared: str = "") -> None:
        Type.__init__(self, text, declared or text)

    made = type(name, (Type,), {"__init__": initialise, "__doc__": f"The type `{text}`.",
                                "get": staticmethod(lambda: made()), "__module__": "torch"})
    return made


AnyType = _single_type("AnyType", "Any")
BoolType = _single_type("BoolType", "bool")
ComplexType = _single_type("ComplexType", "complex")
DeviceObjType = _single_type("DeviceObjType", "Device")
FloatType = _single_type("FloatType", "float")
IntType = _single_type("IntType", "int")
NoneType = _single_type("NoneType", "NoneType")
NumberType = _single_type("NumberType", "number")
PyObjectType = _single_type("PyObjectType", "PyObject")
StreamObjType = _single_type("StreamObjType", "Stream")
StringType = _single_type("StringType", "str")
SymBoolType = _single_type("SymBoolType", "SymBool")
SymIntType = _single_type("SymIntType", "SymInt")
TensorType = _single_type("TensorType", "Tensor")
_GeneratorType = _single_type("_GeneratorType", "Generator")


class _TypeWithElement(Type):
    """A type around another."""

    def __init__(self, element: Type, declared: str = ""):
        super().__init__(declared=declared)
        self._element = element

    def getElementType(self) -> Type:
        """The type of what is inside."""
        return self._element

    def containedTypes(self) -> list[Type]:
        return [self._element]

    def __str__(self) -> Any:
        return f"{type(self).__name__.removesuffix('Type')}[{self._element}]"


class OptionalType(_TypeWithElement):
    """`T?`: one of `T`, or None."""

    @staticmethod
    def ofTensor() -> OptionalType:
        """`Tensor?`."""
        return OptionalType(TensorType())


class ListType(_TypeWithElement):
    """`T[]`: a list."""

    @staticmethod
    def ofInts() -> ListType:
        """`int[]`."""
        return ListType(IntType())

    @staticmethod
    def ofFloats() -> ListType:
        """`float[]`."""
        return ListType(FloatType())

    @staticmethod
    def ofBools() -> ListType:
        """`bool[]`."""
        return ListType(BoolType())

    @staticmethod
    def ofTensors() -> ListType:
        """`Tensor[]`."""
        return ListType(TensorType())

    @staticmethod
    def ofStrings() -> ListType:
        """`str[]`."""
        return ListType(StringType())


class FutureType(_TypeWithElement):
    """A value that is not there yet."""


class AwaitType(_TypeWithElement):
    """A value that is computed when it is asked for."""


class RRefType(_TypeWithElement):
    """A value of another process."""


class TupleType(Type):
    """Several values, each of its type."""

    def __init__(self, elements: list[Type]):
        super().__init__()
        self._elements = list(elements)

    def elements(self) -> list[Type]:
        """The types of the values."""
        return self._elements

    containedTypes = elements

    def __str__(self) -> Any:
        return f"Tuple[{', '.join(map(str, self._elements))}]"


class UnionType(TupleType):
    """One of several types."""

    def __str__(self) -> Any:
        return f"Union[{', '.join(map(str, self._elements))}]"


class DictType(Type):
    """`Dict(K, V)`."""

    def __init__(self, key: Type, value: Type):
        super().__init__()
        self._key, self._value = key, value

    def getKeyType(self) -> Type:
        """The type of the keys."""
        return self._key

    def getValueType(self) -> Type:
        """The type of the values."""
        return self._value

    def containedTypes(self) -> list[Type]:
        return [self._key, self._value]

    def __str__(self) -> Any:
        return f"Dict[{self._key}, {self._value}]"


class ClassType(Type):
    """A class of the program's own, by its name."""

    def name(self) -> str:
        """The last part of the name."""
        return self.text.rpartition(".")[2]

    def qualified_name(self) -> str:
        """The whole name."""
        return self.text


for _cls in (Type, OptionalType, ListType, FutureType, AwaitType, RRefType, TupleType, UnionType,
             DictType, ClassType):
    _cls.__module__ = "torch"

_SINGLE: dict[str, Any] = {
    "Tensor": TensorType, "int": IntType, "SymInt": IntType, "float": FloatType, "bool": BoolType,
    "complex": ComplexType, "str": StringType, "Scalar": NumberType, "number": NumberType,
    "Any": AnyType, "Device": DeviceObjType, "ScalarType": IntType, "Layout": IntType,
    "MemoryFormat": IntType, "QScheme": IntType, "Generator": _GeneratorType, "NoneType": NoneType,
    "Stream": StreamObjType, "SymBool": BoolType, "SymFloat": FloatType, "Dimname": StringType,
    "PyObject": PyObjectType, "()": NoneType}


@cache
def parse_type(declared: str) -> Type:
    """The type that a schema writes, marks of aliases left out."""
    text = re.sub(r"\((\w[\w|]*!?|\*)( -> [\w*|]+)?\)", "", declared).strip()
    if text.endswith("?"):
        return OptionalType(parse_type(text[:-1]), text)
    found = re.fullmatch(r"(.+)\[\d*\]", text)
    if found:
        return ListType(parse_type(found[1]), text)
    found = re.fullmatch(r"Dict\(([^,]+),\s*(.+)\)", text)
    if found:
        return DictType(parse_type(found[1]), parse_type(found[2]))
    if text.startswith("(") and text.endswith(")") and text != "()":
        return TupleType([parse_type(part.strip()) for part in text[1:-1].split(",")])
    if text in _SINGLE:
        return _SINGLE[text](text)
    return ClassType(text)


def real_name(kind: Type) -> Any:
    """A type with the names of schemas for what TorchScript holds as a number."""
    if isinstance(kind, (OptionalType, ListType)):
        return type(kind)(real_name(kind.getElementType()), kind.declared)
    made = type(kind).__new__(type(kind))
    Type.__init__(made, "number" if isinstance(kind, NumberType) else kind.declared, kind.declared)
    return made if type(kind) in (IntType, FloatType, BoolType, StringType) else kind


__all__ = ["AnyType", "AwaitType", "BoolType", "ClassType", "ComplexType", "DeviceObjType",
           "DictType", "FloatType", "FutureType", "IntType", "ListType", "NoneType", "NumberType",
           "OptionalType", "PyObjectType", "RRefType", "StreamObjType", "StringType",
           "SymBoolType", "SymIntType", "TensorType", "TupleType", "Type", "UnionType",
           "parse_type", "real_name"]
