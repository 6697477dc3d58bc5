"""Nested containers of tensors: flatten to a list of leaves and a description, and back."""
from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any


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

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


LeafSpec = TreeSpec(None, None, [])
_nodes: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {}


def register_pytree_node(cls: Any, flatten_fn: Callable[..., Any], unflatten_fn: Callable[..., Any],
                         **_: Any) -> None:
    """Make `cls` a container: `flatten_fn(x)` gives (children, context), `unflatten_fn(children,
    context)` makes it again."""
    _nodes[cls] = flatten_fn, unflatten_fn


_register_pytree_node = register_pytree_node
register_pytree_node(tuple, lambda x: (list(x), None), lambda c, _: tuple(c))
register_pytree_node(list, lambda x: (list(x), None), lambda c, _: list(c))
register_pytree_node(dict, lambda x: (list(x.values()), list(x)), lambda c, k: dict(zip(k, c)))
register_pytree_node(OrderedDict, lambda x: (list(x.values()), list(x)),
                     lambda c, k: OrderedDict(zip(k, c)))
register_pytree_node(defaultdict, lambda x: (list(x.values()), (x.default_factory, list(x))),
                     lambda c, k: defaultdict(k[0], zip(k[1], c)))
register_pytree_node(deque, lambda x: (list(x), x.maxlen), lambda c, n: deque(c, n))
register_pytree_node(namedtuple, lambda x: (list(x), type(x)), lambda c, cls: cls(*c))


def is_namedtuple(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def _kind(tree: Any) -> Any:
    cls = type(tree)
    if cls in _nodes:
        return cls
    return namedtuple if is_namedtuple(tree) else None


def tree_flatten(
        tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a nested container, from left to right, and its shape.

    >>> tree_flatten({"a": 1, "b": (2, 3)})[0]
    [1, 2, 3]
    """
    kind = _kind(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        return [tree], LeafSpec
    children, context = _nodes[kind][0](tree)
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
    return _nodes[spec.type][1]([_unflatten(leaves, c) for c in spec.children_specs], spec.context)


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
    children, context = _nodes[treespec.type][0](tree)
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
