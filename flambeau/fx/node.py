"""`Node`: one step of a graph."""
from __future__ import annotations

import builtins
import copy
import inspect
import math
import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import flambeau
from flambeau._library.operator import OperatorBase
from flambeau._support.symbolic_names import SymBool, SymFloat, SymInt
from flambeau.dispatch.aten.schemas import name_of, recorded
from flambeau.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from flambeau.fx.operator_schemas import ArgsKwargsPair

base_types = (str, int, float, bool, complex, flambeau.dtype, flambeau.Tensor, flambeau.device,
              flambeau.memory_format, flambeau.layout, OperatorBase, SymInt, SymBool, SymFloat)
CONSTANTS = (*base_types, type(Ellipsis), type(None))
BaseArgumentTypes: Any = Union[base_types]                                       # noqa: UP007
Argument = Union[tuple["Argument", ...], Sequence["Argument"], Mapping[str, "Argument"],
                 slice, range, "Node", BaseArgumentTypes, None]
Target = Callable[..., Any] | str
ArgumentT = Any
_legal_ops = dict.fromkeys(("placeholder", "call_method", "call_module", "call_function",
                            "get_attr", "output", "root"))
dtype_abbrs = {dtype: dtype.abbr for dtype in vars(flambeau).values()
               if isinstance(dtype, flambeau.dtype) and dtype.abbr != dtype.name}


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`a` with `fn` applied to all that is inside its tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        found = [map_aggregate(x, fn) for x in a]
        return type(a)(*found) if hasattr(a, "_fields") else tuple(found)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(*[map_aggregate(x, fn) for x in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """`a` with `fn` applied to the nodes in it."""
    assert callable(fn), "torch.fx.map_arg(a, fn): fn must be a callable"
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


# ---- names ---------------------------------------------------------------------------------------

def _find_module_of_method(orig_method: Callable[..., Any]) -> str:
    """The module where a function without one is found by its name."""
    if orig_method.__module__ is not None:
        return orig_method.__module__
    for space in ("torch", "torch.nn.functional"):
        if find_in_torch(f"{space}.{orig_method.__name__}") is orig_method:
            return space
    raise RuntimeError(f"cannot find module for {orig_method}")


def _get_qualified_name(func: Any) -> str:
    """The name under which a function can be found: `torch.nn.functional.relu`, `operator.add`."""
    name = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    module = getattr(func, "__module__", None) or "torch"
    if module == "_operator":
        return f"_operator.{name}"
    if module.startswith("torch._ops."):
        return f"torch.ops.{module.removeprefix('torch._ops.')}.{name}"
    if isinstance(func, types.MethodDescriptorType | types.WrapperDescriptorType):
        return f"{_torch_name(func.__objclass__.__module__)}.{func.__objclass__.__name__}.{name}"
    if isinstance(func, types.FunctionType | types.MethodType) and name == "<lambda>":
        source = inspect.getsource(func).strip()
        if source.startswith("lambda"):
            return source
        raise RuntimeError(f"Unable to represent lambda {func}")
    module = _torch_name(module)
    for space in (module, "torch", "torch.nn.functional", "torch.linalg", "torch.special",
                  "torch.fft", "torch.Tensor"):
        if space.startswith("torch") and find_in_torch(f"{space}.{name}") is func:
            return f"{space}.{name}"
    return f"{module}.{name}"


def _torch_name(module: str) -> str:
    """The name of one of flambeau's modules as programs write it."""
    head, dot, rest = module.partition(".")
    return ("torch" if head == "flambeau" else head) + dot + rest


def find_in_torch(name: str) -> Any:
    """What `torch.a.b` is; None if it is not there."""
    found: Any = flambeau
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


def _format_arg(arg: Any, max_list_len: float = math.inf) -> str:
    """An argument as the text of graphs shows it."""
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        shown = ", ".join(f"{n}={_format_arg(v)}" for n, v in zip(arg._fields, arg))
        return f"{type(arg).__name__}({shown})"
    if isinstance(arg, list | tuple):
        inner = [_format_arg(a) for a in arg[:int(min(max_list_len, len(arg)))]]
        more = f", ...[total_len={len(arg)}]" if len(arg) > len(inner) else ""
        text = ", ".join(inner) + more
        if isinstance(arg, list):
            return f"[{text}]"
        return f"({text}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def _type_repr(obj: Any) -> str:
    """A type as code writes it."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        if find_in_torch(f"torch.{obj.__qualname__}") is obj:
            return f"torch.{obj.__qualname__}"
        return f"{_torch_name(obj.__module__)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, types.FunctionType) else repr(obj)


# ---- what does more than compute a value ---------------------------------------------------------

_EFFECTS_OF_OPS = frozenset("""
    aten._assert_async.msg aten._assert_async.default aten._assert_scalar.default
    aten._assert_tensor_metadata.default aten.sym_constrain_range.default
    aten.sym_constrain_range_for_size.default profiler._record_function_enter
    profiler._record_function_enter.default profiler._record_function_enter_new
    profiler._record_function_enter_new.default profiler._record_function_exit
    profiler._record_function_exit._RecordFunction prims._sink_tokens.default
    inductor.accumulate_grad_.default inductor.resize_storage_bytes_.default
""".split())
_side_effectful_functions: set[Any] = {flambeau._assert, operator.setitem}
_side_effectful_need_to_be_preserved_pre_dispatch: list[Any] = []


def has_side_effect(fn: Any) -> Any:
    """Keep calls of this function, used or not, when dead code is eliminated."""
    _side_effectful_functions.add(fn)
    return fn


def _is_impure_function(target: Any, impure_random: bool) -> bool:
    if target in _side_effectful_functions:
        return True
    if isinstance(target, OperatorBase) or hasattr(target, "overloads"):
        if str(target) in _EFFECTS_OF_OPS:
            return True
        schema = getattr(target, "_schema", None)
        return schema is not None and (schema.is_mutable
                                       or (impure_random and target._nondeterministic_seeded))
    if getattr(target, "__name__", "") == "_set_grad_enabled":
        return True
    overloads = recorded().get(name_of(target), {})
    return any("Generator? generator" in overload.line for overload in overloads.values())


# ---- Node ----------------------------------------------------------------------------------------


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

    tag: str                                    # passes that split a graph give it
    attrs_for_lowering: dict[str, Any]

    def __init__(self, graph: Any, name: str, op: str, target: Any, args: tuple[Any, ...],
                 kwargs: dict[str, Any], return_type: Any = None):
        assert op in _legal_ops, f"op '{op}' is not in _legal_ops"
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has "
                                 f"type {flambeau.typename(target)} but a Callable is expected")
        elif not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                             f"{flambeau.typename(target)} but a str is expected")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._sort_key: tuple[int, ...] = ()
        self._repr_fn: Callable[[Node], str] | None = None
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._update_args_kwargs(args, kwargs)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        """The node that takes this one's place in a copy of the graph."""
        nodes = list(copy.deepcopy(self.graph, memo).nodes)
        return nodes[list(self.graph.nodes).index(self)]

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
        """Positional arguments; to change them, assign a new tuple."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._update_args_kwargs(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Keyword arguments; to change them, assign a new dict."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, kwargs)

    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        """Take new arguments, and tell the nodes in them."""
        for node in self._input_nodes:
            node.users.pop(self, None)
        found: dict[Node, None] = {}

        def look(value: Any) -> Any:
            if isinstance(value, Node):
                found.setdefault(value)
            return value
        self._args = map_aggregate(tuple(args), look)
        self._kwargs = map_aggregate(dict(kwargs), look)
        self._input_nodes = found
        for node in found:
            node.users.setdefault(self)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in the arguments, each once."""
        return list(self._input_nodes)

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
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args), got "
                                 f"{idx}")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace a keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    # ---- place in the graph ---------------------------------------------------------------------

    def prepend(self, x: Node) -> None:
        """Move `x` in front of this node."""
        self._prepend(x)

    def _prepend(self, x: Node) -> None:
        if not isinstance(x, Node):
            raise TypeError("_prepend() argument must be a Node")
        assert self.graph is x.graph, "Attempting to move a Node into a different Graph"
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x
        x._sort_key = _key_between(before, self)

    def append(self, x: Node) -> None:
        """Move `x` behind this node."""
        if self._next is not x:
            self._next._prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def _rename(self, candidate: str) -> None:
        """Take a name like `candidate` that is free."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)

    # ---- uses -----------------------------------------------------------------------------------

    def replace_all_uses_with(self, replace_with: Node,
                              delete_user_cb: Callable[[Node], bool] | None = None, *,
                              propagate_meta: bool = False) -> list[Node]:
        """Let the users of this node use another; gives them."""
        if propagate_meta:
            assert not replace_with.meta, (
                "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                "replace_with already has .meta keys")
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        hooks = getattr(self.graph.owning_module, "_replace_hooks", ())
        for user in users:
            for hook in hooks:
                hook(old=self, new=replace_with.name, user=user)
            user._replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use `new_input` in place of `old_input`."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def _replace_input_with(self, old_input: Node, new_input: Node) -> None:
        self._update_args_kwargs(*map_arg((self._args, self._kwargs),
                                          lambda n: new_input if n is old_input else n))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Does this step do more than compute its value?"""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return _is_impure_function(self.target, impure_random)
        if self.op == "call_module":
            assert self.graph.owning_module is not None, (
                "self.graph.owning_module not set for purity check")
            module = self.graph.owning_module.get_submodule(self.target)
            return getattr(module, "_is_impure", False)
        return False

    def normalized_arguments(self, root: Any, arg_types: Any = None, kwarg_types: Any = None,
                             normalize_to_only_use_kwargs: bool = False) -> ArgsKwargsPair | None:
        """The arguments with names as the target's signature has them; None if there is none."""
        from flambeau.fx.operator_schemas import normalize_function, normalize_module
        if self.op == "call_function":
            return normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types,
                                      normalize_to_only_use_kwargs=normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs,
                                    normalize_to_only_use_kwargs)
        return None

    # ---- text -----------------------------------------------------------------------------------

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        name = getattr(target, "__name__", None)
        if name is None:
            return str(target)
        if getattr(builtins, name, None) is target:
            return f"builtins.{name}"
        return _get_qualified_name(target).replace("_operator.", "operator.")

    def format_node(self, placeholder_names: list[str] | None = None,
                    maybe_return_typename: list[str] | None = None, *,
                    include_tensor_metadata: bool = False) -> str | None:
        """The line of this node in the graph's text."""
        users = f"[num_users={len(self.users)}]"
        typed = f"{_type_repr(self.type)} " if self.type is not None else ""
        seen = self._metadata_text() if include_tensor_metadata else ""
        head = f"%{self.name} : {typed}{users}{seen} = "
        if self.op == "placeholder":
            if placeholder_names is not None:
                shown = f": {_type_repr(self.type)}" if self.type is not None else ""
                default = f" = {self.args[0]}" if self.args else ""
                placeholder_names.append(f"{self.target}{shown}{default}")
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}{self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}{self.op}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        return (f"{head}{self.op}[target={self._pretty_print_target(self.target)}](args = "
                f"{_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})")

    def _metadata_text(self) -> str:
        value = self.meta.get("val", self.meta.get("tensor_meta"))
        dtype = getattr(value, "dtype", None)
        return "" if dtype is None else f"[{dtype_abbrs.get(dtype, dtype)}{list(value.shape)}]"




def _key_between(before: Node, after: Node) -> tuple[int, ...]:
    """A key that sorts a node between two others; that of a graph's root is empty."""
    low, high = before._sort_key, after._sort_key
    if not high:
        return (low[0] + 1,) if low else (0,)
    if not low:
        return (high[0] - 1,)
    if high[:len(low)] == low:
        return (*low, high[len(low)] - 1)
    return (*low, 0)


class NodeList:
    """The nodes of a graph, in order."""

    def __init__(self, graph: Any, direction: str = "_next"):
        assert direction in ("_next", "_prev"), "direction must be '_next' or '_prev'"
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


__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]
