"""`Tracer`: runs a program with proxies, and keeps the graph of what it has done."""
from __future__ import annotations

import builtins
import collections
import copy
import functools
import inspect
import math
import warnings
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.core import modes
from flambeau.core.return_types import ReturnType
from flambeau.fx._lazy_graph_module import _make_graph_module
from flambeau.fx._patching import _find_proxy, _patched, _recording
from flambeau.fx.graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node
from flambeau.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from flambeau.utils import _pytree as pytree

_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_proxyable_classes: dict[type, None] = {}
_is_fx_tracing_flag = False


def is_fx_tracing() -> bool:
    """Is a program being traced, by proxies or below Python?"""
    return _is_fx_tracing_flag


def is_fx_tracing_warning() -> None:
    """Warn that `is_fx_tracing` does not tell the ways of tracing apart."""
    warnings.warn("is_fx_tracing will return true for both fx.symbolic_trace and torch.export. "
                  "Please use is_fx_symbolic_tracing() for specifically fx.symbolic_trace or "
                  "torch.compiler.is_compiling() for specifically torch.export/compile.",
                  stacklevel=3)


def is_fx_symbolic_tracing() -> bool:
    """Is a program being traced with proxies?"""
    return _is_fx_tracing_flag and not flambeau.compiler.is_compiling()


class ProxyableClassMeta(type):
    """The metaclass of classes whose instances, made while a program is traced, are steps of it.

    >>> import flambeau
    >>> from flambeau import fx
    >>> class Pair(metaclass=ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> gm = fx.symbolic_trace(lambda x: Pair(x, x))
    >>> gm(flambeau.ones(1)).left
    tensor([1.])
    """

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]):
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = cls.__new__(cls)             # type: ignore[call-overload]
        if not is_fx_tracing():
            cls.__init__(instance, *args, **kwargs)     # type: ignore[misc]
            return instance
        found = _find_proxy(args, kwargs)
        if found is not None:
            return found.tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)         # type: ignore[misc]
        return instance


class PHBase:
    """Stands, in `concrete_args`, for a value that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """`PH` with data that the node of the input gets as attributes."""

    def __init__(self, ph_key: str | None = None):
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _assert_is_none(value: Any, msg: str) -> None:
    """`assert value is None`, as a step of a graph."""
    assert value is None, msg


def wrap(fn_or_name: Any) -> Any:
    """Record calls of a function of the program's as one step, in the module that says so.

    Use it at module scope, as a decorator or with the name of a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or "
                           "string name")
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


class Tracer(TracerBase):
    """Runs a module or function with proxies for its arguments; `trace` gives the graph.

    Modules of `torch.nn`, containers apart, are single steps; override `is_leaf_module` to choose
    others. Functions of `autowrap_modules` and `autowrap_functions` are recorded as they are.
    """

    def __init__(self, autowrap_modules: tuple[ModuleType, ...] = (math,),
                 autowrap_functions: tuple[Callable[..., Any], ...] = (),
                 param_shapes_constant: bool = False):
        super().__init__()
        self._autowrap_function_ids = {id(value) for module in autowrap_modules
                                       for name, value in vars(module).items()
                                       if not name.startswith("_") and callable(value)}
        self._autowrap_function_ids.update(map(id, autowrap_functions))
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[nn.Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: dict[str, Any] = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple[str, Any]] = {}
        self.tensor_attrs: dict[Any, str] = {}

    # ---- what a subclass may override -----------------------------------------------------------

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Is a call of this module one step, as opposed to what it is made of?"""
        module = type(m).__module__
        return module.startswith(("flambeau.nn", "torch.nn", "flambeau.ao.nn", "torch.ao.nn")) \
            and not isinstance(m, nn.Sequential)

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> Any:
        """Called for each call of a module; `forward(*args, **kwargs)` looks inside."""
        name = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(name, type(m))) as scope:
            count = self.num_calls.get(name, 0)
            key = f"{scope.module_path}@{count}" if count else scope.module_path
            self.module_stack[key] = (name, scope.module_type)
            self.num_calls[name] = count + 1
            try:
                if not self.is_leaf_module(m, name):
                    return forward(*args, **kwargs)
                return self.create_proxy("call_module", name, args, kwargs)
            finally:
                self.module_stack.pop(key, None)

    def path_of_module(self, mod: nn.Module) -> str:
        """The dotted name of a submodule."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def get_fresh_qualname(self, prefix: str) -> str:
        """The name of an attribute that the root does not have."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Called for each attribute of a module that is a parameter, buffer or module."""
        if isinstance(attr_val, nn.Parameter):
            source: Any = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            source = self.root.named_buffers()
        else:
            return attr_val
        for name, value in source:
            if value is attr_val:
                if name not in parameter_proxy_cache:
                    options: dict[str, Any] = {}
                    if self.param_shapes_constant and isinstance(attr_val, nn.Parameter):
                        options["proxy_factory_fn"] = functools.partial(
                            ParameterProxy, self, name=name, param=attr_val)
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {},
                                                                    **options)
                return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node: tensors become attributes of the root."""
        if isinstance(a, nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, nn.Module):
            for name, module in self.root.named_modules():
                if module is a:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, ReturnType):
            return super().create_arg(tuple(a))
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        if isinstance(a, (Tensor, pytree.TreeSpec)):
            name = self.tensor_attrs.get(id(a))
            if name is None:
                prefix = "_tensor_constant" if isinstance(a, Tensor) else "_constant"
                name = self.get_fresh_qualname(prefix)
                self.tensor_attrs[id(a)] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    # ---- tracing --------------------------------------------------------------------------------

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's `forward`, or of a function; `concrete_args` fixes arguments."""
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            return self._trace(root, concrete_args)
        finally:
            _is_fx_tracing_flag = before

    def _trace(self, root: Any, concrete_args: dict[str, Any] | None) -> Graph:
        if isinstance(root, nn.Module):
            assert hasattr(type(root), self.traced_func_name), (
                f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            self.root, function = root, getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, function = nn.Module(), root
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is not None:
            self.graph._co_fields = {
                "co_name": code.co_name, "co_filename": code.co_filename,
                "co_firstlineno": code.co_firstlineno}
        self.tensor_attrs = {id(value): f"{prefix}{'.' if prefix else ''}{name}"
                             for prefix, module in self.root.named_modules()
                             for name, value in module.__dict__.items()
                             if isinstance(value, Tensor)}
        called, arguments = self.create_args_for_root(function, isinstance(root, nn.Module),
                                                      concrete_args)
        modes.interceptors.append(self)     # every call then asks whether a proxy is among its
        try:                                # arguments, before it looks at them
            with _patched(self._patches(called)):
                result = called(*arguments)
        finally:
            modes.interceptors.remove(self)
        returns = function.__annotations__.get("return") if hasattr(function, "__annotations__") \
            else None
        self.create_node("output", "output", (self.create_arg(result),), {},
                         type_expr=None if isinstance(returns, str) else returns)
        self.submodule_paths = None
        return self.graph

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = Tracer.__new__(type(self))
        for name, value in self.__dict__.items():
            shared = name == "_autowrap_search"
            made.__dict__[name] = copy.copy(value) if shared else copy.deepcopy(value, memo)
        return made

    def _patches(self, function: Any) -> list[tuple[Any, str, Any]]:
        parameters: dict[str, Proxy] = {}
        call, get = nn.Module.__call__, nn.Module.__getattr__

        def module_call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            return self.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        def module_getattr(module: nn.Module, name: str) -> Any:
            return self.getattr(name, get(module, name), parameters)
        changes: list[tuple[Any, str, Any]] = [(nn.Module, "__call__", module_call),
                                               (nn.Module, "__getattr__", module_getattr)]
        spaces = [vars(module) for module in self._autowrap_search]
        spaces.append(getattr(inspect.unwrap(function), "__globals__", {}))
        for space in spaces:
            changes += [(space, name, _recording(value)) for name, value in list(space.items())
                        if id(value) in self._autowrap_function_ids]
        for (_, name), space in list(_wrapped_fns_to_patch.items()):
            original = space.get(name, getattr(builtins, name, None))
            if original is not None:
                changes.append((space, name, _recording(original)))
        for cls, name in _wrapped_methods_to_patch:
            changes.append((cls, name, _create_wrapped_method(cls, name)))
        return changes

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool,
                             concrete_args: dict[str, Any] | tuple[Any, ...] | None = None
                             ) -> tuple[Any, list[Any]]:
        """The function to call, and proxies for its arguments."""
        plain = inspect.unwrap(root_fn)
        if not hasattr(plain, "__code__"):
            raise AssertionError(f"Expected FunctionType, got {type(plain)}")
        code = plain.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:count])
        arguments: list[Any] = []
        if is_module:
            if not names:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            arguments.append(self.root)
            names = names[1:]
        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args):
                raise RuntimeError(f"Tracing expected {len(names)} arguments but got "
                                   f"{len(concrete_args)} concrete arguments")
            concrete_args = dict(zip(names, concrete_args))
        parameters = inspect.signature(plain).parameters
        proxies = [self._proxy_placeholder(name, concrete_args, parameters, plain)
                   for name in names]
        positional = code.co_argcount - is_module
        keywords = dict(zip(names[positional:], proxies[positional:]))
        starred = code.co_varnames[count:]
        has_args = bool(code.co_flags & inspect.CO_VARARGS)
        rest = self._star("*" + starred[0]) if has_args else None
        more = self._star("**" + starred[int(has_args)]) \
            if code.co_flags & inspect.CO_VARKEYWORDS else None
        if concrete_args is not None and not all(map(pytree.tree_is_leaf, proxies)):
            return self._flattened(root_fn, names, proxies, keywords, rest, more, arguments)
        arguments += proxies[:positional]
        if rest is None and more is None and not keywords:
            return root_fn, arguments
        return self._with_stars(root_fn, keywords, rest, more), arguments

    def _flattened(self, function: Any, names: list[str], proxies: list[Any],
                   keywords: dict[str, Any], rest: Any, more: Any, arguments: list[Any]) -> Any:
        """For arguments that are containers: a function of their leaves."""
        # the leaves that the graph has as inputs; fixed ones have a placeholder, too
        leaves, spec = pytree.tree_flatten(proxies)
        count = len(proxies) - len(keywords)
        codegen = _PyTreeCodeGen(_PyTreeInfo(list(names), spec, None))
        self.graph._codegen = codegen

        def flat(*given: Any) -> Any:
            values = pytree.tree_unflatten(list(given[len(arguments):]), spec)
            called = self._with_stars(function, dict(zip(keywords, values[count:])), rest, more) \
                if keywords or rest is not None or more is not None else function
            found = called(*arguments, *values[:count])
            flat_found, out_spec = pytree.tree_flatten(found)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return flat_found
        functools.update_wrapper(flat, function)
        return flat, [*arguments, *leaves]

    @staticmethod
    def _with_stars(function: Any, keywords: Any, rest: Any, more: Any) -> Any:
        """A function of the plain arguments whose `*args` and `**kwargs` are proxies themselves."""
        if rest is None and more is None:
            return functools.wraps(function)(lambda *args: function(*args, **keywords))
        plain = inspect.unwrap(function)
        code = plain.__code__
        extra = [value for value in (rest, more) if value is not None]
        # the starred parameters become ordinary ones, so that a proxy can be passed for each
        made = _patch_function(plain, code.co_argcount + code.co_kwonlyargcount + len(extra))
        return functools.wraps(function)(
            lambda *args: made(*args, *keywords.values(), *extra))

    def _star(self, name: str) -> Proxy:
        return self.create_proxy("placeholder", name, (), {})

    def _proxy_placeholder(self, name: str, concrete_args: dict[str, Any] | None,
                           parameters: Any, function: Any) -> Any:
        if concrete_args is not None and name in concrete_args:
            return self._concrete(name, concrete_args[name], parameters[name].default)
        annotation = getattr(function, "__annotations__", {}).get(name)
        default = parameters[name].default
        args = () if default is inspect.Parameter.empty else (default,)
        return self.create_proxy("placeholder", name, args, {}, type_expr=None if isinstance(
            annotation, str) else annotation)

    def _concrete(self, name: str, given: Any, default: Any) -> Any:
        """An argument with a fixed value, or fixed parts: the graph checks that they are given."""
        count = 0
        args = () if default is inspect.Parameter.empty else (default,)

        def fix(value: Any) -> Any:
            nonlocal count
            count += 1
            if isinstance(value, PHBase):
                def make(node: Node) -> Proxy:
                    _transfer_attrs(value, node)
                    return Proxy(node, self)
                return self.create_proxy("placeholder", f"{name}_{count}", (), {},
                                         proxy_factory_fn=None if value is PH else make)
            proxy = self.create_proxy("placeholder", f"{name}_{count}", args, {})
            message = f"{name} has been specialized to have value {value} but got another value"
            if isinstance(value, (bool, int, float, str)) and not isinstance(value, Proxy):
                flambeau._assert(proxy == value, message)
            elif value is None:
                self.create_proxy("call_function", _assert_is_none, (proxy, message), {})
            else:
                warnings.warn(f"Was not able to add assertion to guarantee correct input {name} to "
                              "specialized function. It is up to the user to make sure that your "
                              "inputs match the inputs you specialized the function with.",
                              stacklevel=2)
            return value
        return pytree.tree_map(fix, given)


def _patch_function(fn: FunctionType, nargs: int) -> FunctionType:
    """A function whose starred parameters are ordinary ones; it has `nargs` in all."""
    code = fn.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    made = code.replace(co_flags=flags, co_argcount=nargs, co_kwonlyargcount=0,
                        co_posonlyargcount=0)
    return FunctionType(made, fn.__globals__, fn.__name__, None, fn.__closure__)


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    return _recording(orig_fn)


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    """A method whose calls are recorded if a proxy is among the arguments."""
    original = getattr(cls, name)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return original(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)
    return wrapper


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what `root`, a module or function, does, and whose graph can be changed.

    `concrete_args` fixes arguments; in containers, `PH` stands for what stays an input.

    >>> def f(x, y):
    ...     return flambeau.relu(x) + 2 * y
    >>> print(symbolic_trace(f).code.strip())
    def forward(self, x, y):
        relu = torch.relu(x);  x = None
        mul = 2 * y;  y = None
        add = relu + mul;  relu = mul = None
        return add

    Reed et al., "Torch.fx: Practical Program Capture and Transformation for Deep Learning in
    Python", 2021, https://arxiv.org/abs/2112.08429.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


wrap("_assert_is_none")
__all__ = ["PH", "Node", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer",
           "is_fx_symbolic_tracing", "is_fx_tracing", "symbolic_trace", "wrap"]
