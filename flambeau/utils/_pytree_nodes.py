"""What nested containers are made of: the registered types, and the keys that lead into them."""
from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau.core import return_types
from flambeau.core.shapes import Size

NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A step of a path: into a sequence."""
    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A step of a path: into a dictionary."""
    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A step of a path: into a field."""
    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """How containers of a type come apart and together again."""
    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Any, Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None


class SerializeNodeDef(NamedTuple):
    """What a type is called in dumped shapes, and how its context becomes JSON and back."""
    typ: Any
    serialized_type_name: str
    to_dumpable_context: Callable[[Any], Any] | None = None
    from_dumpable_context: Callable[[Any], Any] | None = None


class ConstantNode(NamedTuple):
    """The context of an object that is part of the shape."""
    value: Any


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[Any] = set()


def register_pytree_node(cls: Any, flatten_fn: Callable[..., Any], unflatten_fn: Callable[..., Any],
                         *, serialized_type_name: str | None = None,
                         to_dumpable_context: Callable[[Any], Any] | None = None,
                         from_dumpable_context: Callable[[Any], Any] | None = None,
                         flatten_with_keys_fn: Callable[..., Any] | None = None) -> None:
    """Make `cls` a container: `flatten_fn(x)` gives (children, context), `unflatten_fn(children,
    context)` makes it again; `flatten_with_keys_fn(x)` gives ((key, child) pairs, context). The
    rest says what `treespec_dumps` writes: a name, and the context as what JSON can hold."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    register(
        cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context, from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn)


def register(cls: Any, flatten_fn: Any, unflatten_fn: Any, *, serialized_type_name: Any = None,
             to_dumpable_context: Any = None, from_dumpable_context: Any = None,
             flatten_with_keys_fn: Any = None) -> None:
    """`register_pytree_node`, also of a type that is known already."""
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be "
                         "None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = serialized_type_name or NO_SERIALIZED_TYPE_NAME_FOUND
    SUPPORTED_SERIALIZED_TYPES[cls] = SerializeNodeDef(
        cls, name, to_dumpable_context, from_dumpable_context)
    if serialized_type_name:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def deregister_pytree_node(cls: Any) -> None:
    """Make the objects of a registered type leaves again."""
    del SUPPORTED_NODES[cls]
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(
        SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name, None)
    CONSTANT_NODES.discard(cls)


def register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Give a class of named tuples a name in dumped shapes."""
    SUPPORTED_SERIALIZED_TYPES[cls] = SerializeNodeDef(cls, serialized_type_name)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def register_dataclass(cls: Any, *, field_names: list[str] | None = None,
                       drop_field_names: list[str] | None = None,
                       serialized_type_name: str | None = None) -> None:
    """Make a dataclass a container of its fields: those of `field_names`, or all that its
    constructor takes but `drop_field_names`.

    >>> import dataclasses
    >>> from flambeau.utils._pytree import tree_map
    >>> Point = dataclasses.make_dataclass("Point", ["x", "y"])
    >>> register_dataclass(Point)
    >>> tree_map(lambda n: n + 1, Point(1, 2))
    Point(x=2, y=3)
    """
    make: Any = cls
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"register_dataclass() can only be used with dataclasses. Got {cls}")
    own = [f.name for f in dataclasses.fields(cls) if f.init]
    if field_names is None:
        field_names = [n for n in own if n not in (drop_field_names or [])]
    unknown = [n for n in field_names if n not in own]
    if unknown:
        raise ValueError(f"register_dataclass() of {make.__name__}: it has no field "
                         f"{unknown[0]!r}, only {', '.join(own)}")

    def flatten(x: Any) -> tuple[list[Any], Any]:
        names = [n for n in field_names if getattr(x, n, None) is not None]
        return [getattr(x, n) for n in names], names

    def with_keys(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
        children, names = flatten(x)
        return [(GetAttrKey(n), child) for n, child in zip(names, children)], names

    def unflatten(children: Any, names: Any) -> Any:
        return make(**dict(zip(names, children)),
                    **{n: None for n in field_names if n not in names})
    register(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
             flatten_with_keys_fn=with_keys)


def register_constant(cls: Any) -> None:
    """Make the objects of a class, which must have `__eq__` and `__hash__`, parts of the shape of
    what contains them: they have no leaves."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` "
                        "implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` "
                        "implementation.")
    register(cls, lambda x: ([], ConstantNode(x)), lambda _, held: held.value,
             flatten_with_keys_fn=lambda x: ([], ConstantNode(x)))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: Any) -> bool:
    """Whether `register_constant` knows the class."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


# ---- named tuples -------------------------------------------------------------------------------


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class is one that `collections.namedtuple` makes, or a subclass."""
    fields = getattr(cls, "_fields", None)
    return (isinstance(cls, type) and issubclass(cls, tuple)
            and not issubclass(cls, return_types.ReturnType)
            and type(fields) is tuple and all(type(f) is str for f in fields)
            and callable(getattr(cls, "_make", None)) and callable(getattr(cls, "_asdict", None)))


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is a named tuple."""
    return isinstance(obj, tuple) and is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether an object is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is one of Python's or ours whose tuples have fields and counts of them."""
    return isinstance(cls, type) and issubclass(cls, tuple) and all(
        isinstance(getattr(cls, n, None), int)
        for n in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))


def is_structseq_instance(obj: Any) -> bool:
    """Whether an object is of such a class (`torch.max(x, 0)`, `time.localtime()`)."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether an object is of such a class, or is one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


# ---- Python's containers ------------------------------------------------------------------------


def _sequence(x: Any) -> tuple[list[Any], Any]:
    return list(x), None


def _sequence_with_keys(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(i), child) for i, child in enumerate(x)], None


def _mapping(x: Any) -> tuple[list[Any], Any]:
    return list(x.values()), list(x)


def _mapping_with_keys(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(key), child) for key, child in x.items()], list(x)


def _factory_to_text(context: Any) -> dict[str, Any]:
    factory, keys = context
    return {"default_factory_module": factory.__module__ if factory else None,
            "default_factory_name": factory.__qualname__ if factory else None,
            "dict_context": keys}


def _factory_from_text(plain: dict[str, Any]) -> list[Any]:
    import importlib
    if plain["default_factory_module"] is None:
        return [None, plain["dict_context"]]
    return [getattr(importlib.import_module(plain["default_factory_module"]),
                    plain["default_factory_name"]), plain["dict_context"]]


def _namedtuple_to_text(cls: Any) -> str:
    known = SUPPORTED_SERIALIZED_TYPES.get(cls)
    if known is None or known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a "
            "serializated_type_name. Please register using `_register_namedtuple`.")
    return known.serialized_type_name


def _namedtuple_from_text(name: str) -> Any:
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a "
            "serializated name.")
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


register(tuple, _sequence, lambda children, _: tuple(children),
         serialized_type_name="builtins.tuple", flatten_with_keys_fn=_sequence_with_keys)
register(list, _sequence, lambda children, _: list(children),
         serialized_type_name="builtins.list", flatten_with_keys_fn=_sequence_with_keys)
register(dict, _mapping, lambda children, keys: dict(zip(keys, children)),
         serialized_type_name="builtins.dict", flatten_with_keys_fn=_mapping_with_keys)
register(namedtuple, lambda x: (list(x), type(x)), lambda children, cls: cls(*children),
         serialized_type_name="collections.namedtuple",
         to_dumpable_context=_namedtuple_to_text, from_dumpable_context=_namedtuple_from_text,
         flatten_with_keys_fn=lambda x: (
             [(GetAttrKey(n), child) for n, child in zip(x._fields, x)], type(x)))
register(OrderedDict, _mapping, lambda children, keys: OrderedDict(zip(keys, children)),
         serialized_type_name="collections.OrderedDict", flatten_with_keys_fn=_mapping_with_keys)
register(defaultdict, lambda x: (list(x.values()), [x.default_factory, list(x)]),
         lambda children, context: defaultdict(context[0], zip(context[1], children)),
         serialized_type_name="collections.defaultdict",
         to_dumpable_context=_factory_to_text, from_dumpable_context=_factory_from_text,
         flatten_with_keys_fn=lambda x: (_mapping_with_keys(x)[0], [x.default_factory, list(x)]))
register(deque, lambda x: (list(x), x.maxlen), lambda children, length: deque(children, length),
         serialized_type_name="collections.deque",
         flatten_with_keys_fn=lambda x: (_sequence_with_keys(x)[0], x.maxlen))

BUILTIN_TYPES = frozenset(SUPPORTED_NODES)
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})

register(Size, _sequence, lambda children, _: Size(children), serialized_type_name="torch.Size",
         flatten_with_keys_fn=_sequence_with_keys)


def _register_results(cls: type) -> None:
    register(cls, _sequence, lambda children, _: cls(children),
             flatten_with_keys_fn=_sequence_with_keys)


for _returned in return_types.ReturnType.__subclasses__():
    _register_results(_returned)
return_types.watchers.append(_register_results)
