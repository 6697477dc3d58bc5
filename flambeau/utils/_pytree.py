"""Nested containers of tensors: flatten to a list of leaves and a description, and back."""
from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any

from flambeau._support.own_methods import adopt
from flambeau.utils._pytree_nodes import (
    BUILTIN_TYPES,
    CONSTANT_NODES,
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    ConstantNode,
    GetAttrKey,
    MappingKey,
    NodeDef,
    SequenceKey,
    deregister_pytree_node,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register,
    register_constant,
    register_dataclass,
    register_namedtuple,
    register_pytree_node,
)
from flambeau.utils._pytree_spec import (
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
    EnumEncoder,
    LeafSpec,
    TreeSpec,
    check_spec,
    enum_object_hook,
    pytree_to_str,
    str_to_pytree,
    treespec_dict,
    treespec_dumps,
    treespec_leaf,
    treespec_loads,
    treespec_pprint,
    treespec_tuple,
)
from flambeau.utils._pytree_spec import LEAF as _LEAF_SPEC
from flambeau.utils._pytree_spec import node_type as _get_node_type

__all__ = ["BUILTIN_TYPES", "CONSTANT_NODES", "DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL",
           "NO_SERIALIZED_TYPE_NAME_FOUND", "SERIALIZED_TYPE_TO_PYTHON_TYPE", "STANDARD_DICT_TYPES",
           "SUPPORTED_NODES", "SUPPORTED_SERIALIZED_TYPES", "ConstantNode", "Context",
           "EnumEncoder", "GetAttrKey", "KeyEntry", "KeyPath", "LeafSpec", "MappingKey", "NodeDef",
           "PyTree", "PyTreeSpec", "SequenceKey", "TreeSpec", "arg_tree_leaves", "enum_object_hook",
           "is_constant_class", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance",
           "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr",
           "map_only", "pytree_to_str", "register_constant", "register_dataclass",
           "register_pytree_node", "str_to_pytree", "tree_all", "tree_all_only", "tree_any",
           "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter",
           "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only",
           "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten",
           "treespec_dict", "treespec_dumps", "treespec_leaf", "treespec_loads", "treespec_pprint",
           "treespec_tuple"]

Context = Any
PyTree = Any
PyTreeSpec = TreeSpec
KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]
IsLeaf = Callable[[Any], bool] | None
_register_namedtuple = register_namedtuple
_deregister_pytree_node = deregister_pytree_node
for _name, _type in {"tuple": tuple, "list": list, "dict": dict, "namedtuple": namedtuple,
                     "ordereddict": OrderedDict, "odict": OrderedDict, "deque": deque,
                     "defaultdict": defaultdict}.items():
    _node = SUPPORTED_NODES[_type]
    globals().update({f"_{_name}_flatten": _node.flatten_fn,
                      f"_{_name}_unflatten": _node.unflatten_fn,
                      f"_{_name}_flatten_with_keys": _node.flatten_with_keys_fn})


def _register_pytree_node(cls: Any, flatten_fn: Any, unflatten_fn: Any, to_str_fn: Any = None,
                          maybe_from_str_fn: Any = None, **kwargs: Any) -> None:
    """`register_pytree_node`, which may say so again of a type that is registered."""
    register(cls, flatten_fn, unflatten_fn, **kwargs)


# ---- apart and together -------------------------------------------------------------------------


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether this is no container, or is held for a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a nested container, from left to right, and its shape.

    >>> tree_flatten({"a": 1, "b": (2, 3)})[0]
    [1, 2, 3]
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    kind = _get_node_type(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = node.flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(c, leaves, is_leaf) for c in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The nested container of this shape with the given leaves."""
    check_spec(treespec)
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves alone."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The shape alone."""
    return tree_flatten(tree, is_leaf)[1]


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterable[Any]:
    """The leaves, one after the other."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
    else:
        for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
            yield from tree_iter(child, is_leaf)


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of the arguments of a call."""
    return tree_leaves((args, kwargs))


# ---- functions of the leaves --------------------------------------------------------------------


def _matches(type_or_types_or_pred: Any) -> Callable[[Any], bool]:
    """The test that a type, several, or a function stand for."""
    wanted = type_or_types_or_pred
    if isinstance(wanted, type) or hasattr(wanted, "__args__") or (
            isinstance(wanted, tuple) and all(isinstance(t, type) for t in wanted)):
        return lambda x: isinstance(x, wanted)
    if callable(wanted):
        return wanted
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Any]:
    """Let a function leave alone what isn't of the type (or types, or fails the test).

    >>> map_only(int)(lambda n: n + 1)("a")
    'a'
    """
    chosen = _matches(type_or_types_or_pred)
    return lambda func: lambda x: func(x) if chosen(x) else x


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
             is_leaf: IsLeaf = None) -> PyTree:
    """The container with `func` applied to each leaf, and to what stands at its place in `rests`.

    >>> tree_map(lambda x, y: (x, y), {"a": 1, "b": 2}, {"b": [3, 4], "a": 5})
    {'a': (1, 5), 'b': (2, [3, 4])}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(r) for r in rests]))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
              is_leaf: IsLeaf = None) -> PyTree:
    """Call `func` on each leaf for its effect, and give the container back."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for values in zip(leaves, *[spec.flatten_up_to(r) for r in rests]):
        func(*values)
    return tree


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree,
                  is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` on the leaves of one type (or several, or that pass a test)."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree,
                   is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map_` on the leaves of one type (or several, or that pass a test)."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves pass."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a leaf passes."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree,
                  is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves of one type (or several) pass."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree,
                  is_leaf: IsLeaf = None) -> bool:
    """Whether a leaf of one type (or several) passes."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec,
                             is_leaf: IsLeaf = None) -> list[Any] | None:
    """Leaves of `tree`, one of which may stand for a part of `treespec`; None if they differ."""
    leaf = tree_is_leaf(tree, is_leaf)
    if treespec.is_leaf():
        return [tree] if leaf else None
    if leaf:
        return [tree] * treespec.num_leaves
    kind = _get_node_type(tree)
    if kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result: list[Any] = []
    for child, spec in zip(children, treespec.children_specs):
        found = broadcast_to_and_flatten(child, spec, is_leaf)
        if found is None:
            return None
        result += found
    return result


_broadcast_to_and_flatten = broadcast_to_and_flatten


# ---- paths --------------------------------------------------------------------------------------


def tree_flatten_with_path(
        tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves, each with the keys that lead to it, and the shape.

    >>> [(keystr(path), leaf) for path, leaf in tree_flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    kind = _get_node_type(tree)
    if tree_is_leaf(tree, is_leaf):
        return [((), tree)], _LEAF_SPEC
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


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves, each with its path."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
                       is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` with a function that is given the path first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten([func(path, leaf, *more)
                           for (path, leaf), *more in zip(found, *others)])


def keystr(kp: KeyPath) -> str:
    """A path as Python would write the access."""
    return "".join([str(key) for key in kp])


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What a path leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


adopt(globals(), "utils._pytree_")
