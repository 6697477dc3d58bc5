"""`Node`: one step of a graph."""
from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterator
from typing import Any

import flambeau

BASE_TYPES = (str, int, float, bool, complex, flambeau.dtype, flambeau.Tensor, flambeau.device,
              flambeau.memory_format, flambeau.layout, type(Ellipsis), type(None))
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`a` with `fn` applied to all that is inside its tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        found = [map_aggregate(x, fn) for x in a]
        return type(a)(*found) if hasattr(a, "_fields") else tuple(found)
    if isinstance(a, list):
        return [map_aggregate(x, fn) for x in a]
    if isinstance(a, dict):
        return {key: map_aggregate(value, fn) for key, value in a.items()}
    if isinstance(a, slice):
        return slice(*[map_aggregate(x, fn) for x in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """`a` with `fn` applied to the nodes in it."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def qualified_name(function: Any) -> str:
    """The name under which a function can be found: `torch.nn.functional.relu`, `operator.add`."""
    name = function.__name__
    if getattr(builtins, name, None) is function:
        return name
    module = function.__module__ or "torch"
    if module == "_operator":
        return f"_operator.{name}"
    if module.startswith("torch._ops."):
        return f"torch.ops.{module.removeprefix('torch._ops.')}.{name}"
    head, dot, rest = module.partition(".")
    for space in (("torch" if head == "flambeau" else head) + dot + rest, "torch",
                  "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft"):
        if space.startswith("torch") and find_in_torch(f"{space}.{name}") is function:
            return f"{space}.{name}"
    return f"{('torch' if head == 'flambeau' else head) + dot + rest}.{name}"


def find_in_torch(name: str) -> Any:
    """What `torch.a.b` is; None if it is not there."""
    found: Any = flambeau
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


def _format(arg: Any) -> str:
    if isinstance(arg, list):
        return f"[{', '.join(map(_format, arg))}]"
    if isinstance(arg, tuple):
        return f"({', '.join(map(_format, arg))}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def type_repr(value: Any) -> str:
    """A type as code writes it."""
    if isinstance(value, type) and not isinstance(value, types.GenericAlias):
        if value.__module__ == "builtins":
            return value.__qualname__
        head, dot, rest = value.__module__.partition(".")
        if find_in_torch(f"torch.{value.__qualname__}") is value:
            return f"torch.{value.__qualname__}"
        return f"{'torch' if head == 'flambeau' else head}{dot}{rest}.{value.__qualname__}"
    if value is ...:
        return "..."
    return value.__name__ if isinstance(value, types.FunctionType) else repr(value)


class Node:
    """One step of a graph: what is done (`op`), with what (`target`), on which `args` and `kwargs`.

    op             target
    placeholder    the name of the function's parameter; its default is the only arg
    get_attr       the dotted name of an attribute of the module
    call_function  the function
    call_module    the dotted name of a submodule
    call_method    the name of a method of the first arg
    output         "output"; the only arg is what the function returns
    """

    def __init__(self, graph: Any, name: str, op: str, target: Any, args: tuple[Any, ...],
                 kwargs: dict[str, Any], return_type: Any = None):
        assert op in OPS, f"op '{op}' is not in _legal_ops"
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has "
                                 f"type {type(target)} but a Callable is expected")
        elif not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                             f"{type(target)} but a str is expected")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._inputs: dict[Node, None] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    def __repr__(self) -> str:
        return self.name

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        raise TypeError("Node: copy the whole graph")

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, kwargs)

    def _set(self, args: Any, kwargs: Any) -> None:
        """Take new arguments, and tell the nodes in them."""
        for node in self._inputs:
            node.users.pop(self, None)
        self._inputs = {}
        self._args = map_aggregate(tuple(args), lambda x: x)
        self._kwargs = map_aggregate(dict(kwargs), lambda x: x)
        map_arg((self._args, self._kwargs), lambda n: self._inputs.setdefault(n))
        for node in self._inputs:
            node.users.setdefault(self)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in the arguments, each once."""
        return list(self._inputs)

    @property
    def stack_trace(self) -> str | None:
        """Where the step was recorded, if the tracer has kept it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace a positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument."""
        assert 0 <= idx <= len(self._args), "insert_args index must be between 0 and len(self.args)"
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace a keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def prepend(self, x: Node) -> None:
        """Move `x` in front of this node."""
        assert self.graph is x.graph, "Attempting to move a Node into a different Graph"
        if self is x:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Move `x` behind this node."""
        if self._next is not x:
            self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def replace_all_uses_with(self, replace_with: Node,
                              delete_user_cb: Callable[[Node], bool] = lambda user: True, *,
                              propagate_meta: bool = False) -> list[Node]:
        """Let the users of this node use another; gives them."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use `new_input` in place of `old_input`."""
        self._set(*map_arg((self._args, self._kwargs),
                           lambda n: new_input if n is old_input else n))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Does this step do more than compute its value?"""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in side_effects:
                return True
            name = getattr(self.target, "__name__", "")
            return impure_random and name in _RANDOM and qualified_name(self.target).startswith(
                "torch.")
        if self.op == "call_module" and self.graph.owning_module is not None:
            module = self.graph.owning_module.get_submodule(self.target)
            return getattr(module, "_is_impure", False)
        return self.op == "call_method" and self.target.endswith("_") \
            and not self.target.endswith("__")

    def _pretty_target(self) -> str:
        if isinstance(self.target, str):
            return self.target
        if getattr(builtins, self.target.__name__, None) is self.target:
            return f"builtins.{self.target.__name__}"
        return qualified_name(self.target).replace("_operator.", "operator.")

    def format_node(self, placeholder_names: list[str] | None = None,
                    maybe_return_typename: list[str] | None = None, *,
                    include_tensor_metadata: bool = False) -> str | None:
        """The line of this node in the graph's text."""
        users = f"[num_users={len(self.users)}]"
        typed = f"{type_repr(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {typed}{users} = "
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}{self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}{self.op}[target={self._pretty_target()}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_repr(self.type)}"
            return f"return {self.args[0]}"
        return (f"{head}{self.op}[target={self._pretty_target()}](args = {_format(self.args)}, "
                f"kwargs = {_format(self.kwargs)})")


_RANDOM = ("bernoulli", "multinomial", "normal", "rand", "rand_like", "randint", "randint_like",
           "randn", "randn_like", "randperm")
side_effects: set[Any] = set()


def has_side_effect(fn: Any) -> Any:
    """Keep calls of this function, used or not, when dead code is eliminated."""
    side_effects.add(fn)
    return fn


class NodeList:
    """The nodes of a graph, in order."""

    def __init__(self, graph: Any, direction: str = "_next"):
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            following = getattr(node, self.direction)
            if not node._erased:
                yield node
            # nodes put in behind this one, meanwhile, count
            node = following if node._erased else getattr(node, self.direction)

    def __reversed__(self) -> NodeList:
        return NodeList(self.graph, "_prev" if self.direction == "_next" else "_next")
