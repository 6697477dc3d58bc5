"""The shape of a nested container, and the shape as text."""
from __future__ import annotations

import enum
import json
import warnings
from collections import defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from flambeau.utils._pytree_nodes import (
    BUILTIN_TYPES,
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    is_namedtuple_instance,
)

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


def node_type(tree: Any) -> Any:
    """The type under which a container is registered; that of leaves isn't."""
    kind = type(tree)
    return namedtuple if kind not in SUPPORTED_NODES and is_namedtuple_instance(tree) else kind


class TreeSpec:
    """The shape of a nested container: its type, what makes it again, and its children's shapes.

    >>> spec = flambeau.utils._pytree.tree_structure([1, {"a": 2, "b": 3}])
    >>> spec.num_leaves, spec.num_children, spec.num_nodes
    (3, 2, 5)
    >>> spec.unflatten("xyz")
    ['x', {'a': 'y', 'b': 'z'}]
    """

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]):
        self.type, self._context, self._children = type, context, children_specs
        self.num_children = len(children_specs)
        self.num_nodes: int = 1 + sum([c.num_nodes for c in children_specs])
        self.num_leaves: int = 1 if type is None else sum([c.num_leaves for c in children_specs])

    @property
    def context(self) -> Any:
        """What makes the container again beside its children."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The shapes of the children."""
        return self._children

    def is_leaf(self) -> bool:
        """Whether this is the shape of what is no container."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The shapes of the children, as a list of one's own."""
        return self._children.copy()

    def child(self, index: int) -> TreeSpec:
        """The shape of one child."""
        return self._children[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The nested container of this shape with the given leaves."""
        found = list(leaves)
        if len(found) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(found)} but the spec refers "
                f"to a pytree that holds {self.num_leaves} items ({self}).")
        return _unflatten(iter(found), self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What stands in `tree` at the places of this shape's leaves, each of which may be a
        container. Dictionaries of any kind are read in the order of this shape's keys."""
        found: list[Any] = []
        _flatten_up_to(self, tree, found)
        return found

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (isinstance(other, TreeSpec) and self.type == other.type
                and self._context == other._context and self._children == other._children)

    def __hash__(self) -> int:
        return hash((self.type, self.num_nodes, self.num_leaves))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        between = ",\n" + " " * (indent + 2)
        children = between.join([c.__repr__(indent + 2) for c in self._children])
        return f"TreeSpec({self.type.__name__}, {self._context}, [{children}])"


class LeafSpec(TreeSpec):
    """The shape of what is no container."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


LEAF = LeafSpec()


def _unflatten(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    return SUPPORTED_NODES[spec.type].unflatten_fn(
        [_unflatten(leaves, c) for c in spec._children], spec._context)


def _flatten_up_to(spec: TreeSpec, tree: Any, found: list[Any]) -> None:
    if spec.type is None:
        found.append(tree)
        return
    for child, child_spec in zip(_children_like(spec, tree), spec._children):
        _flatten_up_to(child_spec, child, found)


def _children_like(spec: TreeSpec, tree: Any) -> list[Any]:
    """The children of a container that must be of the kind of a shape."""
    kind = node_type(tree)
    if spec.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES:
        keys = spec._context[1] if spec.type is defaultdict else spec._context
        if len(tree) != len(keys) or any(k not in tree for k in keys):
            missing, extra = set(keys) - set(tree), set(tree) - set(keys)
            raise ValueError("Node keys mismatch"
                             + (f"; missing key(s): {missing}" if missing else "")
                             + (f"; extra key(s): {extra}" if extra else "") + ".")
        return [tree[k] for k in keys]
    if kind != spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {kind!r}.")
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got "
                         f"{len(children)}.")
    if context != spec._context and kind is not deque:      # deques may differ in maximal length
        if kind in BUILTIN_TYPES:
            raise ValueError(f"Node context mismatch for node type {kind!r}; expected "
                             f"{spec._context!r}, but got {context!r}.")
        raise ValueError(f"Node context mismatch for custom node type {kind!r}.")
    return children


def check_spec(treespec: Any) -> None:
    """Raise PyTorch's error if this is no shape."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError("Expected `treespec` to be an instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")


# ---- shapes made by hand ------------------------------------------------------------------------


def treespec_leaf() -> TreeSpec:
    """The shape of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The shape of a tuple of these."""
    children = list(iterable)
    if any(not isinstance(c, TreeSpec) for c in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /,
                  **kwargs: TreeSpec) -> TreeSpec:
    """The shape of a dictionary of these."""
    made = dict(mapping, **kwargs)
    if any(not isinstance(c, TreeSpec) for c in made.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {made!r}.")
    return TreeSpec(dict, list(made), list(made.values()))


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The shape as its container is printed, with an asterisk for each leaf.

    >>> treespec_pprint(flambeau.utils._pytree.tree_structure([1, {"a": 2}]))
    "[*, {'a': *}]"
    """
    return repr(treespec.unflatten([_Asterisk()] * treespec.num_leaves))


# ---- as text ------------------------------------------------------------------------------------


class EnumEncoder(json.JSONEncoder):
    """Writes members of enumerations, which JSON lacks, with their classes."""

    def default(self, obj: Any) -> Any:
        if isinstance(obj, enum.Enum):
            return {"__enum__": True, "fqn": f"{type(obj).__module__}:{type(obj).__qualname__}",
                    "name": obj.name}
        return super().default(obj)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """Reads what `EnumEncoder` writes."""
    if "__enum__" not in obj:
        return obj
    import importlib
    module, _, name = obj["fqn"].partition(":")
    return attrgetter(name)(importlib.import_module(module))[obj["name"]]


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A shape as JSON: what `treespec_loads` reads. A context is written by what its type was
    registered with, or must be what JSON can hold.

    >>> spec = flambeau.utils._pytree.tree_structure({"a": (1, 2)})
    >>> treespec_loads(treespec_dumps(spec)) == spec
    True
    """
    check_spec(treespec)
    if protocol not in (None, DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps([DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL, _to_plain(treespec)],
                      cls=EnumEncoder)


def _to_plain(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg.")
    if known.to_dumpable_context is not None:
        context = known.to_dumpable_context(spec._context)
    else:
        try:
            context = json.dumps(spec._context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError("Unable to serialize context. Please make the context json dump-able, "
                            "or register a custom serializer using _register_pytree_node."
                            ) from error
    return {"type": known.serialized_type_name, "context": context,
            "children_spec": [_to_plain(c) for c in spec._children]}


def treespec_loads(serialized: str) -> TreeSpec:
    """The shape that `treespec_dumps` has written."""
    protocol, plain = json.loads(serialized, object_hook=enum_object_hook)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _from_plain(plain)


def _from_plain(plain: dict[str, Any]) -> TreeSpec:
    name = plain["type"]
    if name is None:
        return LEAF
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    read: Callable[[Any], Any] | None = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    try:
        context = (read(plain["context"]) if read is not None else
                   json.loads(plain["context"], object_hook=enum_object_hook))
    except TypeError as error:
        raise TypeError("Unable to deserialize context. Please make the context json load-able, "
                        "or register a custom serializer using _register_pytree_node.") from error
    return TreeSpec(kind, context, [_from_plain(c) for c in plain["children_spec"]])


def pytree_to_str(treespec: TreeSpec) -> str:
    """`treespec_dumps` under its old name."""
    warnings.warn("`pytree_to_str` is deprecated. Please use `treespec_dumps` instead.",
                  FutureWarning, stacklevel=2)
    return treespec_dumps(treespec)


def str_to_pytree(json: str) -> TreeSpec:
    """`treespec_loads` under its old name."""
    warnings.warn("`str_to_pytree` is deprecated. Please use `treespec_loads` instead.",
                  FutureWarning, stacklevel=2)
    return treespec_loads(json)
