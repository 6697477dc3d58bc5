"""`Tracer`: runs a program with proxies, and keeps the graph of what it has done."""
from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.core import modes
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node
from flambeau.fx.proxy import Proxy, TracerBase

_wrapped: dict[tuple[int, str], tuple[dict[str, Any], str]] = {}


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
    _wrapped[id(frame.f_globals), name] = frame.f_globals, name
    return fn_or_name


def _find_proxy(*values: Any) -> Proxy | None:
    for value in values:
        if isinstance(value, Proxy):
            return value
        inner = value.values() if isinstance(value, dict) else value
        if isinstance(inner, (tuple, list)) or inner is not value:
            found = _find_proxy(*inner)
            if found is not None:
                return found
    return None


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which is recorded if a proxy is among its arguments."""
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made
    wrapper.__fx_already_patched = True
    return wrapper


@contextlib.contextmanager
def _patched(changes: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Set items of dicts and attributes of objects, until the block ends."""
    missing, before = object(), []
    for place, name, value in changes:
        if isinstance(place, dict):
            before.append((place, name, place.get(name, missing)))
            place[name] = value
        else:
            before.append((place, name, getattr(place, name)))
            setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in reversed(before):
            if not isinstance(place, dict):
                setattr(place, name, value)
            elif value is missing:
                del place[name]
            else:
                place[name] = value


class Tracer(TracerBase):
    """Runs a module or function with proxies for its arguments; `trace` gives the graph.

    Modules of `torch.nn`, containers apart, are single steps; override `is_leaf_module` to choose
    others. Functions of `autowrap_modules` and `autowrap_functions` are recorded as they are.
    """

    def __init__(self, autowrap_modules: tuple[ModuleType, ...] = (math,),
                 autowrap_functions: tuple[Callable[..., Any], ...] = (),
                 param_shapes_constant: bool = False):
        self._autowrapped = {id(value) for module in autowrap_modules
                             for name, value in vars(module).items()
                             if not name.startswith("_") and callable(value)}
        self._autowrapped.update(map(id, autowrap_functions))
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.module_stack: dict[str, Any] = {}
        self.traced_func_name = "forward"

    # ---- what a subclass may override -----------------------------------------------------------

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Is a call of this module one step, as opposed to what it is made of?"""
        module = type(m).__module__
        return module.startswith(("flambeau.nn", "torch.nn")) and not isinstance(m, nn.Sequential)

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> Any:
        """Called for each call of a module; `forward(*args, **kwargs)` looks inside."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def path_of_module(self, mod: nn.Module) -> str:
        """The dotted name of a submodule."""
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
        sources = []
        if isinstance(attr_val, nn.Parameter):
            sources.append(self.root.named_parameters())
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            sources.append(self.root.named_buffers())
        for source in sources:
            for name, value in source:
                if value is attr_val:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
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
            name = next((n for n, buffer in self.root.named_buffers() if buffer is a), None) \
                or self._attributes.get(id(a))
            if name is None:
                name = self.get_fresh_qualname("_tensor_constant")
                self._attributes[id(a)] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    # ---- tracing --------------------------------------------------------------------------------

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's `forward`, or of a function; `concrete_args` fixes arguments."""
        if isinstance(root, nn.Module):
            self.root, function = root, getattr(type(root), self.traced_func_name)
        else:
            self.root, function = nn.Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self._attributes = {id(value): f"{prefix}{'.' if prefix else ''}{name}"
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
        return self.graph

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
                        if id(value) in self._autowrapped]
        for space, name in list(_wrapped.values()):
            original = space.get(name, getattr(builtins, name, None))
            if original is not None:
                changes.append((space, name, _recording(original)))
        return changes

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool,
                             concrete_args: dict[str, Any] | None = None) -> tuple[Any, list[Any]]:
        """The function to call, and proxies for its arguments."""
        plain = inspect.unwrap(root_fn)
        code = plain.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:count])
        arguments: list[Any] = []
        if is_module:
            if not names:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            arguments.append(self.root)
            names = names[1:]
        parameters = inspect.signature(plain).parameters
        proxies = [self._placeholder(name, plain, parameters, concrete_args, i)
                   for i, name in enumerate(names)]
        positional = code.co_argcount - is_module
        keywords = dict(zip(names[positional:], proxies[positional:]))
        arguments += proxies[:positional]
        starred = code.co_varnames[count:]
        has_args = bool(code.co_flags & inspect.CO_VARARGS)
        rest = self._star("*" + starred[0], plain) if has_args else None
        more = self._star("**" + starred[int(has_args)], plain) \
            if code.co_flags & inspect.CO_VARKEYWORDS else None
        if rest is None and more is None and not keywords:
            return root_fn, arguments
        return self._with_stars(root_fn, keywords, rest, more), arguments

    @staticmethod
    def _with_stars(function: Any, keywords: Any, rest: Any, more: Any) -> Any:
        """A function of the plain arguments whose `*args` and `**kwargs` are proxies themselves."""
        if rest is None and more is None:
            return functools.wraps(function)(lambda *args: function(*args, **keywords))
        plain = inspect.unwrap(function)
        code = plain.__code__
        flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        extra = [value for value in (rest, more) if value is not None]
        # the starred parameters become ordinary ones, so that a proxy can be passed for each
        count = code.co_argcount + code.co_kwonlyargcount
        new = code.replace(co_flags=flags, co_argcount=count + len(extra), co_kwonlyargcount=0)
        import types
        made = types.FunctionType(new, plain.__globals__, plain.__name__, None, plain.__closure__)
        return functools.wraps(function)(
            lambda *args: made(*args, *keywords.values(), *extra))

    def _star(self, name: str, function: Any) -> Proxy:
        return self.create_proxy("placeholder", name, (), {})

    def _placeholder(self, name: str, function: Any, parameters: Any,
                     concrete_args: dict[str, Any] | None, position: int) -> Any:
        annotation = getattr(function, "__annotations__", {}).get(name)
        annotation = None if isinstance(annotation, str) else annotation
        if concrete_args is not None and name in concrete_args:
            return self._concrete(name, concrete_args[name])
        default = parameters[name].default
        args = () if default is inspect.Parameter.empty else (default,)
        return self.create_proxy("placeholder", name, args, {}, type_expr=annotation)

    def _concrete(self, name: str, value: Any) -> Any:
        """An argument with a fixed value: the graph checks that it is given."""
        if isinstance(value, (tuple, list, dict)):
            raise NotImplementedError("symbolic_trace: concrete_args with containers")
        proxy = self.create_proxy("placeholder", f"{name}_1", (), {})
        if isinstance(value, (bool, int, float)):
            message = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", flambeau._assert, (proxy == value, message), {})
        return value


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what `root`, a module or function, does, and whose graph can be changed.

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
    return GraphModule(tracer.root, graph, name)


__all__ = ["Node", "Tracer", "symbolic_trace", "wrap"]
