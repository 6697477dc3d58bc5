"""Hooks on what nodes save: pack replaces a saved tensor when it is saved, unpack gives it back."""
from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from flambeau._support.c_functions import matched
from flambeau._support.scopes import Scope, inside
from flambeau.core import modes
from flambeau.core.autograd.backward_errors import freed_error
from flambeau.core.autograd.graph import Node, Packed, output_edges, saved_tensor_hooks, unpack
from flambeau.core.tensor import Tensor, alias, gradient_edge

active: ContextVar[tuple[Any, ...]] = ContextVar("saved_tensors_hooks", default=())
# the levels of this thread, where a dispatch mode has set itself and those inside aside for an op
set_aside: ContextVar[tuple[Any, ...] | None] = ContextVar("levels_set_aside", default=None)
disabled: ContextVar[str | None] = ContextVar("saved_tensors_hooks_disabled", default=None)


@matched("(arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None",
         {"collections.abc.Callable": Callable}, name="_push_saved_tensors_default_hooks")
def _checked(pack_hook: Any, unpack_hook: Any) -> tuple[Any, Any]:
    return pack_hook, unpack_hook


class saved_tensors_hooks(Scope):
    """Inside, each tensor that a node saves is replaced by `pack_hook(tensor)`; backward gets it
    back through `unpack_hook(packed)`.

    >>> import flambeau
    >>> a = flambeau.ones(2, requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t * 1, lambda t: t * 10):
    ...     y = a * a
    >>> y.sum().backward(); a.grad
    tensor([20., 20.])
    """

    _gives: Any = None

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def _changes(self) -> Any:
        message = disabled.get()
        if message is not None:
            raise RuntimeError(message)
        return ((active, (*active.get(), _checked(self.pack_hook, self.unpack_hook))),
                (saved_tensor_hooks, True))


@matched("(error_message: str, fail_if_non_empty: bool = True) -> None",
         name="_saved_tensors_hooks_disable")
def _checked_message(error_message: str) -> str:
    return error_message


def disable_saved_tensors_hooks(error_message: str) -> Any:
    """Inside, entering `saved_tensors_hooks` raises RuntimeError with this message."""
    return _HooksDisabled(error_message)


class _HooksDisabled(Scope):
    """Where hooks of saved tensors raise a message."""

    _gives: Any = None

    def __init__(self, error_message: str):
        self.message = error_message

    def _changes(self) -> Any:
        if active.get():
            raise RuntimeError(self.message)
        return (disabled, _checked_message(self.message)),

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import functools

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return inside(type(self)(self.message), function, *args, **kwargs)
        return wrapped


def pack_node(node: Any) -> None:
    """Apply the innermost hooks of this thread to all tensors that `node` has just saved."""
    stack = active.get()
    if not stack:
        return
    pack, unpack_hook = stack[-1]
    node.simple, node.packed = False, True      # its unpack hooks may register hooks on it
    entries = list(node.saved)
    for i, kind in enumerate(node.saved_kinds):
        if kind in ("tensor", "result"):
            entries[i] = _packed(node, entries[i], kind, pack, unpack_hook)
        elif kind == "tensors":
            entries[i] = [_packed(node, e, "tensor", pack, unpack_hook) for e in entries[i]]
    node.saved = tuple(entries)


class Opened:
    """Stands for a node whose saved values are packed while it is applied: each unpacked once."""

    def __init__(self, node: Any):
        self.saved = tuple([unpack(node, i) for i in range(len(node.saved_kinds))])
        self.edges = node.edges
        if node.outputs == 1:
            self.dtype = node.dtype
        self.saved_kinds = ("value",) * len(self.saved)


def _packed(node: Any, entry: Any, kind: str, pack: Any, unpack_hook: Any) -> Any:
    if type(entry) is Packed:                   # an instance of a subclass, kept as it is
        given = entry.unpack(entry.value)
        find = None if given._edge is None else lambda node: node
        counter = given._counter
    elif type(entry) is not tuple:
        return entry
    elif kind == "tensor":
        tensor = entry[0]
        edge = gradient_edge(tensor)
        counter = tensor._counter
        find = None if edge is None else (lambda node: edge)
        given = tensor
    else:
        array, counter, _, index = entry
        find = None if array.dtype.kind in "bui" else lambda node: output_edges(node)[index]
        given = alias(array, Tensor)
        given._counter, given._edge = counter, None if find is None else find(node)
    before = counter[0] if counter else 0
    value = inside(without_hooks_and_grad(), pack, given)
    if (given._counter[0] if given._counter else 0) != before:
        raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors "
                           "provided as input to pack hook cannot be modified by in-place "
                           "operations as this can lead to unexpected side-effects. Please open an "
                           "issue if you need to perform in-place operations on the input to a "
                           "pack hook.")
    return Packed(value, unpack_hook, find)


class without_hooks_and_grad(Scope):
    """Run a pack hook: no hooks inside it, no recording, and dispatch modes in force again that
    were set aside for the op which saves."""

    def _changes(self) -> Any:
        changes: Any = (active, ()), (modes.grad_mode, False)
        levels = set_aside.get()
        return changes if levels is None else (*changes, (modes.levels, levels), (set_aside, None))


def register_on_node(handle: SavedTensor, pack: Any, unpack_hook: Any) -> None:
    """`node._raw_saved_x.register_hooks(pack, unpack)`."""
    node = handle._node
    if node.saved is None:
        raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. "
                           "Saved intermediate values of the graph are freed when you call "
                           ".backward() or autograd.grad(). Specify retain_graph=True if you need "
                           "to backward through the graph a second time or if you need to access "
                           "saved variables after calling backward.")
    entry = handle.entry()
    if type(entry) is Packed:
        raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been "
                           "set. Hint: only one pair of hooks is allowed at a time.")
    if type(entry) is not tuple:
        raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
    for hook in (pack, unpack_hook):
        if not callable(hook):
            raise TypeError("register_hooks(): incompatible function arguments: two callables "
                            "are expected")
    node.simple = False
    entries = list(node.saved)
    kind = node.saved_kinds[handle._index].removesuffix("s")
    packed = _packed(node, entry, kind, pack, unpack_hook)
    if handle._part is None:
        entries[handle._index] = packed
    else:
        entries[handle._index] = [packed if i == handle._part else e
                                  for i, e in enumerate(entries[handle._index])]
    node.saved = tuple(entries)


class SavedTensor:
    """A handle on one saved value, on which pack and unpack hooks can be registered."""

    _node: Node
    _index: int | None              # None stands for an absent tensor
    _part: int | None               # of a list of tensors: which

    def __new__(cls, *args: Any, **kwargs: Any) -> SavedTensor:
        if args or kwargs:
            raise TypeError("__init__(): incompatible constructor arguments. The following "
                            "argument types are supported:\n    1. torch._C._autograd."
                            "SavedTensor()")
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    @classmethod
    def of(cls, node: Node, index: int | None, part: int | None = None) -> SavedTensor:
        self = object.__new__(cls)
        self._node, self._index, self._part = node, index, part
        return self

    @classmethod
    def handle(cls, node: Node, index: int) -> Any:
        """A handle on the saved value of that number, a list of them for a list of tensors; what
        is no tensor stays as it is."""
        kind = node.saved_kinds[index]
        if kind == "value":
            return unpack(node, index)
        if kind == "tensors" and node.saved is not None:
            return [cls.of(node, index, i) for i in range(len(node.saved[index]))]
        return cls.of(node, index)

    def entry(self) -> Any:
        """What the node keeps."""
        if self._node.saved is None:
            raise freed_error(self._node)
        if self._index is None:
            return None
        entry = self._node.saved[self._index]
        return entry if self._part is None else entry[self._part]

    def register_hooks(self, *hooks: Callable[[Any], Any]) -> None:
        """Replace the saved value by `pack(value)` now; `unpack_hook` gives it back in backward."""
        if len(hooks) != 2:
            raise TypeError("register_hooks(): incompatible function arguments: a pack and an "
                            f"unpack hook are expected, {len(hooks)} were given")
        register_on_node(self, *hooks)

    @property
    def data(self) -> Any:
        entry = self.entry()
        if type(entry) is Packed:
            return entry.value
        if self._index is None:
            return None
        value = unpack(self._node, self._index)
        return value if self._part is None else value[self._part]

    @property
    def unpack_hook(self) -> Any:
        entry = None if self._node.saved is None else self.entry()
        return entry.unpack if type(entry) is Packed else None


__all__ = ["SavedTensor", "disable_saved_tensors_hooks", "saved_tensors_hooks"]
