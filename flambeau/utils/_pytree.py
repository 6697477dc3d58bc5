"""Nested containers of tensors: flatten to a list of leaves and a description, and back."""
from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class TreeSpec:
    """The shape of a nested container: its type, what makes it again, and its children's shapes."""

    __slots__ = ("children_specs", "context", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]):
        self.type, self.context, self.children_specs = type, context, children_specs

    @property
    def num_leaves(self) -> int:
        return 1 if self.type is None else sum(c.num_leaves for c in self.children_specs)

    @property
    def num_children(self) -> int:
        return len(self.children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, TreeSpec) and self.type == other.type
                and self.context == other.context and self.children_specs == other.children_specs)

    def __hash__(self) -> int:
        return hash((self.type, len(self.children_specs)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        between = ",\n" + " " * (indent + 2)
        children = between.join([c.__repr__(indent + 2) for c in self.children_specs])
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """The shape of what is no container."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()
Context = Any
PyTree = Any
KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


class SequenceKey(NamedTuple):
    """A step of a path: into a sequence."""
    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """A step of a path: into a dictionary."""
    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


class GetAttrKey(NamedTuple):
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
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
_names: dict[Any, str] = {}         # under which a type stands in dumped shapes


def register_pytree_node(cls: Any, flatten_fn: Callable[..., Any], unflatten_fn: Callable[..., Any],
                         *, serialized_type_name: str | None = None,
                         flatten_with_keys_fn: Callable[..., Any] | None = None, **_: Any) -> None:
    """Make `cls` a container: `flatten_fn(x)` gives (children, context), `unflatten_fn(children,
    context)` makes it again; `flatten_with_keys_fn(x)` gives ((key, child) pairs, context)."""
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    _names[cls] = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"


def register_dataclass(cls: Any, *, field_names: list[str] | None = None,
                       drop_field_names: list[str] | None = None,
                       serialized_type_name: str | None = None) -> None:
    """Make a dataclass a container of its fields: those of `field_names`, or all that its
    constructor takes but `drop_field_names`.

    >>> import dataclasses, flambeau
    >>> Point = dataclasses.make_dataclass("Point", ["x", "y"])
    >>> register_dataclass(Point)
    >>> tree_map(lambda n: n + 1, Point(1, 2))
    Point(x=2, y=3)
    """
    import dataclasses
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
    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
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
    register_pytree_node(cls, lambda x: ([], x), lambda _, x: x,
                         flatten_with_keys_fn=lambda x: ([], x))


def _list_flatten(x: Any) -> tuple[list[Any], Any]:
    return list(x), None


def _list_flatten_with_keys(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(i), child) for i, child in enumerate(x)], None


def _dict_flatten(x: Any) -> tuple[list[Any], Any]:
    return list(x.values()), list(x)


def _dict_flatten_with_keys(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(key), child) for key, child in x.items()], list(x)


def _dict_unflatten(children: Any, keys: Any) -> dict[Any, Any]:
    return dict(zip(keys, children))


_register_pytree_node = register_pytree_node
register_pytree_node(tuple, _list_flatten, lambda c, _: tuple(c),
                     flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(list, _list_flatten, lambda c, _: list(c),
                     flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(dict, _dict_flatten, _dict_unflatten,
                     flatten_with_keys_fn=_dict_flatten_with_keys)
register_pytree_node(namedtuple, lambda x: (list(x), type(x)), lambda c, cls: cls(*c),
                     flatten_with_keys_fn=lambda x: (
                         [(GetAttrKey(n), c) for n, c in zip(x._fields, x)], type(x)))
register_pytree_node(OrderedDict, _dict_flatten, lambda c, k: OrderedDict(zip(k, c)),
                     flatten_with_keys_fn=_dict_flatten_with_keys)
register_pytree_node(defaultdict, lambda x: (list(x.values()), [x.default_factory, list(x)]),
                     lambda c, k: defaultdict(k[0], zip(k[1], c)),
                     flatten_with_keys_fn=lambda x: (
                         [(MappingKey(k), c) for k, c in x.items()], [x.default_factory, list(x)]))
register_pytree_node(deque, lambda x: (list(x), x.maxlen), lambda c, n: deque(c, n),
                     flatten_with_keys_fn=lambda x: (_list_flatten_with_keys(x)[0], x.maxlen))


def is_namedtuple(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def _get_node_type(tree: Any) -> Any:
    """The type under which a container is registered; that of leaves isn't."""
    return namedtuple if is_namedtuple(tree) and type(tree) not in SUPPORTED_NODES else type(tree)


def _kind(tree: Any) -> Any:
    kind = _get_node_type(tree)
    return kind if kind in SUPPORTED_NODES else None


def tree_flatten(
        tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a nested container, from left to right, and its shape.

    >>> tree_flatten({"a": 1, "b": (2, 3)})[0]
    [1, 2, 3]
    """
    kind = _kind(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        return [tree], _LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    leaves: list[Any] = []
    specs = []
    for child in children:
        found, spec = tree_flatten(child, is_leaf)
        leaves += found
        specs.append(spec)
    return leaves, TreeSpec(kind, context, specs)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The nested container of this shape with the given leaves."""
    return _unflatten(iter(list(leaves)), treespec)


def _unflatten(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    return SUPPORTED_NODES[spec.type].unflatten_fn(
        [_unflatten(leaves, c) for c in spec.children_specs], spec.context)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """The container with `func` applied to each leaf (and to those at its place in `rests`)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(r, is_leaf)[0] for r in rests]
    return tree_unflatten([func(*xs) for xs in zip(leaves, *others)], spec)


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """`tree_map` on the leaves of one type (or several)."""
    return tree_map(lambda x: func(x) if isinstance(x, kind) else x, tree, is_leaf=is_leaf)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_leaves(tree: Any, is_leaf: Any = None) -> list[Any]:
    """The leaves alone."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Any = None) -> TreeSpec:
    """The shape alone."""
    return tree_flatten(tree, is_leaf)[1]


def tree_iter(tree: Any, is_leaf: Any = None) -> Any:
    return iter(tree_leaves(tree, is_leaf))


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    return all(pred(x) for x in tree_leaves(tree, is_leaf))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    return any(pred(x) for x in tree_leaves(tree, is_leaf))


def broadcast_to_and_flatten(tree: Any, treespec: TreeSpec) -> list[Any] | None:
    """Leaves of `tree`, one of which may stand for a part of `treespec`; None if they differ."""
    if treespec.type is None:
        return [tree] if _kind(tree) is None else None
    if _kind(tree) is None:
        return [tree] * treespec.num_leaves
    if _kind(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != len(treespec.children_specs) or context != treespec.context:
        return None
    result: list[Any] = []
    for child, spec in zip(children, treespec.children_specs):
        found = broadcast_to_and_flatten(child, spec)
        if found is None:
            return None
        result += found
    return result


_broadcast_to_and_flatten = broadcast_to_and_flatten


# ---- paths --------------------------------------------------------------------------------------


def tree_flatten_with_path(
        tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves, each with the keys that lead to it, and the shape.

    >>> [(keystr(path), leaf) for path, leaf in tree_flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    kind = _kind(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        return [((), tree)], _LEAF
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a "
                         "flatten_with_keys_fn argument to register_pytree_node.")
    pairs, context = with_keys(tree)
    leaves: list[Any] = []
    specs = []
    for key, child in pairs:
        found, spec = tree_flatten_with_path(child, is_leaf)
        leaves += [((key, *path), leaf) for path, leaf in found]
        specs.append(spec)
    return leaves, TreeSpec(kind, context, specs)


def tree_leaves_with_path(tree: Any, is_leaf: Any = None) -> list[tuple[KeyPath, Any]]:
    """The leaves, each with its path."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any,
                       is_leaf: Any = None) -> Any:
    """`tree_map` with a function that is given the path first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [tree_flatten(r, is_leaf)[0] for r in rests]
    return tree_unflatten([func(path, leaf, *more)
                           for (path, leaf), *more in zip(found, *others)], spec)


def keystr(path: KeyPath) -> str:
    """A path as Python would write the access."""
    return "".join([str(key) for key in path])


def key_get(obj: Any, path: KeyPath) -> Any:
    """What a path leads to."""
    for key in path:
        obj = key.get(obj)
    return obj


# ---- as text ------------------------------------------------------------------------------------


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A shape as JSON: what `treespec_loads` reads. Contexts must be what JSON can hold.

    >>> spec = tree_structure({"a": (1, 2)})
    >>> treespec_loads(treespec_dumps(spec)) == spec
    True
    """
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")

    def plain(spec: TreeSpec) -> dict[str, Any]:
        if spec.type is None:
            return {"type": None, "context": None, "children_spec": []}
        return {"type": _names[spec.type], "context": json.dumps(spec.context),
                "children_spec": [plain(c) for c in spec.children_specs]}

    return json.dumps([1, plain(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """The shape that `treespec_dumps` has written."""
    protocol, tree = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    types = {name: cls for cls, name in _names.items()}

    def shape(plain: dict[str, Any]) -> TreeSpec:
        if plain["type"] is None:
            return _LEAF
        return TreeSpec(types[plain["type"]], json.loads(plain["context"]),
                        [shape(c) for c in plain["children_spec"]])

    return shape(tree)
