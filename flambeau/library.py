"""Ops of the user's own, and other kernels for those that are there.

>>> import flambeau
>>> @custom_op("doc::scale", mutates_args=())
... def scale(x: flambeau.Tensor, by: float = 2.0) -> flambeau.Tensor:
...     return x * by
>>> scale.register_autograd(lambda ctx, grad: (grad * ctx.by, None),
...                         setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))
>>> x = flambeau.ones(2, requires_grad=True)
>>> flambeau.ops.doc.scale(x, 3.0).sum().backward()
>>> x.grad
tensor([3., 3.])
"""
from __future__ import annotations

import copy
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._schema import MISSING, parse_schema
from flambeau.core import modes
from flambeau.core import op as core_op
from flambeau.core.tensor import wrap

namespaces: dict[str, Namespace] = {}       # what `torch.ops.<name>` finds


# ---- schemas ------------------------------------------------------------------------------------

_TYPES = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str",
          flambeau.dtype: "ScalarType", flambeau.device: "Device"}


def _schema_type(annotation: Any, mutated: str) -> str | None:
    if annotation in _TYPES:
        name = _TYPES[annotation]
        return f"Tensor({mutated}!)" if mutated and name == "Tensor" else name
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType) and type(None) in args and len(args) == 2:
        inner = _schema_type(next(a for a in args if a is not type(None)), mutated)
        return inner and f"{inner}?"
    if origin is typing.Union and set(args) == {int, float, bool}:
        return "Scalar"
    if origin in (list, typing.Sequence, Sequence) and args:
        inner = _schema_type(args[0], "")
        return inner and f"{inner}[]"
    return None


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any,
                 op_name: str | None = None, tags: Any = ()) -> str:
    """The schema that the type annotations of a function say.

    >>> def f(x: Tensor, n: int, y: Tensor | None = None) -> Tensor: ...
    >>> infer_schema(f, mutates_args=())
    '(Tensor x, SymInt n, Tensor? y=None) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)

    def wrong(message: str) -> ValueError:
        return ValueError(f"infer_schema(func): {message} Got func with signature {signature})")
    parts, letters, starred = [], iter("abcdefghijklmnopqrstuvwxyz"), False
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise wrong("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            parts.append("*")
        if name not in hints:
            raise wrong(f"Parameter {name} must have a type annotation.")
        changed = mutates_args == "unknown" or name in mutates_args
        kind = _schema_type(hints[name], next(letters) if changed else "")
        if kind is None:
            raise wrong(f"Parameter {name} has unsupported type {hints[name]}.")
        default = parameter.default
        if default is parameter.empty:
            parts.append(f"{kind} {name}")
        elif default is None or isinstance(default, (int, float, bool)):
            parts.append(f"{kind} {name}={default}")
        elif isinstance(default, str):
            parts.append(f'{kind} {name}="{default}"')
        else:
            raise wrong(f"Parameter {name} has an unsupported default value type {type(default)}. "
                        "Please file an issue on GitHub so we can prioritize this.")
    returned = hints.get("return", None)
    if returned is type(None) or returned is None:
        result = "()"
    elif typing.get_origin(returned) is tuple:
        result = f"({', '.join(str(_schema_type(r, '')) for r in typing.get_args(returned))})"
    else:
        result = _schema_type(returned, "")
    if result is None:
        raise wrong(f"Return has unsupported type {returned}.")
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


# ---- ops ----------------------------------------------------------------------------------------

class CustomOp:
    """An op of the user's: a schema, kernels, and what was registered beside them."""

    def __init__(self, namespace: str, name: str, schema: str):
        self.namespace, self.name = namespace, name
        _, self.arguments, self.result = parse_schema(schema)
        self.schema = schema[schema.index("("):]
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake = self.backward = self.setup_context = self.vmap = None
        self.autocast_dtype: Any = None

    @property
    def qualified_name(self) -> str:
        """`namespace::name`."""
        return f"{self.namespace}::{self.name}"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments, in order, with defaults filled in and types looked at."""
        positional = [a for a in self.arguments if not a.keyword_only]
        if len(args) > len(positional):
            raise RuntimeError(f"{self.qualified_name}() expected at most {len(positional)} "
                               f"argument(s) but received {len(args)} argument(s). Declaration: "
                               f"{self.qualified_name}{self.schema}")
        given = dict(zip((a.name for a in positional), args)) | kwargs
        bound = []
        for argument in self.arguments:
            value = given.pop(argument.name, argument.default)
            if value is MISSING:
                raise RuntimeError(f"{self.qualified_name}() is missing value for argument "
                                   f"'{argument.name}'. Declaration: {self.qualified_name}"
                                   f"{self.schema}")
            if re.fullmatch(r"Tensor(\(\w!\))?", argument.type) and not isinstance(value, Tensor):
                raise RuntimeError(f"{self.qualified_name}() Expected a value of type 'Tensor' "
                                   f"for argument '{argument.name}' but instead found type "
                                   f"'{type(value).__name__}'.")
            bound.append(value)
        if given:
            raise RuntimeError(f"{self.qualified_name}() got unexpected keyword argument(s) "
                               f"{sorted(given)}")
        return tuple(bound)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the op: on shapes, with a gradient, for a batch, or just so."""
        values = self.bind(args, kwargs)
        if self.autocast_dtype is not None and flambeau.is_autocast_enabled("cpu"):
            from flambeau.amp._policy import cast
            values = tuple(cast(value, self.autocast_dtype) for value in values)
            with flambeau.autocast("cpu", enabled=False):
                return self.dispatch(values)
        return self.dispatch(values)

    def dispatch(self, values: tuple[Any, ...]) -> Any:
        tensors = [v for v in _flat(values) if isinstance(v, Tensor)]
        if any(t.is_meta for t in tensors):
            if self.fake is None:
                raise NotImplementedError(f"{self.qualified_name}: no fake implementation was "
                                          "registered. Please use register_fake to add one.")
            return self.run(self.fake, values)
        for key in ("CompositeImplicitAutograd", "Autograd", "AutogradCPU"):
            if key in self.kernels:
                return self.run(self.kernels[key], values)
        if modes.levels.get() or (flambeau.is_grad_enabled()
                                  and any(t.requires_grad for t in tensors)):
            return _function_of(self).apply(*values)
        return self.kernel(values)

    def kernel(self, values: tuple[Any, ...]) -> Any:
        for key in ("CPU", "CompositeExplicitAutograd", ""):
            if key in self.kernels:
                return self.run(self.kernels[key], values)
        raise NotImplementedError(f"Could not run '{self.qualified_name}' with arguments from the "
                                  "'CPU' backend: no kernel was registered for it")

    def run(self, function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        split = sum(not a.keyword_only for a in self.arguments)
        return function(*values[:split], **{
            a.name: v for a, v in zip(self.arguments[split:], values[split:])})


def _flat(values: Any) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from value
        else:
            yield value


def _function_of(op: CustomOp) -> Any:
    """The `autograd.Function` of an op."""
    class Generated(flambeau.autograd.Function):
        @staticmethod
        def forward(*values: Any) -> Any:
            return op.kernel(values)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            if op.backward is not None and op.setup_context is not None:
                op.setup_context(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if op.backward is None:
                raise RuntimeError(f"Trying to backward through {op.namespace}.{op.name}.default "
                                   "but no autograd formula was registered. Please use "
                                   "register_autograd to add one.")
            return op.backward(ctx, *grads)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *values: Any) -> Any:
            if op.vmap is not None:
                return op.vmap(info, in_dims, *values)
            results = [op.dispatch(tuple(v if d is None else v.select(d, i)
                                         for v, d in zip(values, in_dims)))
                       for i in range(info.batch_size)]
            if isinstance(results[0], Tensor):
                return flambeau.stack(results), 0
            return tuple(map(flambeau.stack, zip(*results))), (0,) * len(results[0])
    name = f"GeneratedBackwardFor_{op.namespace}_{op.name}_default"
    made = type(name.replace("Backward", "", 1), (Generated,), {})
    made.__name__ = name
    return made


class Overload:
    """`torch.ops.<namespace>.<name>.default`."""

    def __init__(self, op: CustomOp):
        self._op = op
        self.namespace, self._overloadname = op.namespace, "default"
        self.__name__, self.__module__ = f"{op.name}.default", f"torch._ops.{op.namespace}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op.call(args, kwargs)

    @property
    def _schema(self) -> str:
        return f"{self._op.qualified_name}{self._op.schema}"

    def name(self) -> str:
        """`namespace::name`."""
        return self._op.qualified_name

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._op.name}', overload='default')>"


class OverloadPacket:
    """`torch.ops.<namespace>.<name>`."""

    def __init__(self, op: CustomOp):
        self._op = op
        self.default = Overload(op)
        self.__name__, self.__module__ = op.name, f"torch._ops.{op.namespace}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op.call(args, kwargs)

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return ["default"]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._op.namespace}.{self._op.name}')>"


class Namespace:
    """`torch.ops.<namespace>`."""

    def __init__(self, name: str):
        self._name = name
        self._owner: Library | None = None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self._name}'>"


def _lookup(op: Any) -> CustomOp:
    if isinstance(op, CustomOpDef):
        return op._op
    if isinstance(op, (Overload, OverloadPacket)):
        return op._op
    namespace, _, name = op.partition("::")
    packet = vars(namespaces.get(namespace, object)).get(name.removesuffix(".default"))
    if not isinstance(packet, OverloadPacket):
        raise RuntimeError(f"operator {op} does not exist")
    return packet._op


def _define(namespace: str, schema: str) -> CustomOp:
    name = parse_schema(schema)[0]
    space = namespaces.setdefault(namespace, Namespace(namespace))
    if name in vars(space):
        raise RuntimeError(f"Tried to register an operator ({namespace}::{schema}) with the same "
                           "name and overload name multiple times. Each overload's schema should "
                           "only be registered with a single call to def().")
    op = CustomOp(namespace, name, schema)
    setattr(space, name, OverloadPacket(op))
    return op


# ---- Library ------------------------------------------------------------------------------------

class Library:
    """Ops of a namespace: `DEF` makes it, `FRAGMENT` adds to it, `IMPL` gives kernels.

    Kernels for ops of `aten` take the place of flambeau's own, below autograd, until the library
    is destroyed.

    >>> import flambeau
    >>> library = Library("doc2", "DEF")
    >>> library.define("double(Tensor x) -> Tensor")
    'double'
    >>> library.impl("double", lambda x: 2 * x, "CPU")
    >>> flambeau.ops.doc2.double(flambeau.ones(1))
    tensor([2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._made: list[str] = []
        self._replaced: list[Any] = []
        if ns == "aten":
            if kind == "DEF":
                raise ValueError(f"{ns} is a reserved namespace. Please try creating a library "
                                 "with another name.")
            return
        space = namespaces.setdefault(ns, Namespace(ns))
        if kind == "DEF":
            if space._owner is not None:
                raise RuntimeError("Only a single TORCH_LIBRARY can be used to register the "
                                   f"namespace {ns}; please put all of your definitions in a "
                                   "single TORCH_LIBRARY block.")
            space._owner = self

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Add an op; gives its name."""
        if self.kind == "IMPL":
            raise RuntimeError("Library.define: a library of kind IMPL defines no ops")
        name = _define(self.ns, schema).name
        self._made.append(name)
        return name

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *,
             with_keyset: bool = False, allow_override: bool = False) -> None:
        """Give an op a kernel: a function of tensors."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type "
                            f"{type(fn)}")
        if with_keyset:
            raise NotImplementedError("Library.impl: with_keyset")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if self.ns == "aten":
            self._replace(str(op_name), fn, key)
            return
        name = op_name if isinstance(op_name, str) else op_name._op.name
        _lookup(f"{self.ns}::{name.split('::')[-1]}").kernels[key] = fn

    def _replace(self, name: str, fn: Callable[..., Any], key: str) -> None:
        if key not in ("CPU", "CompositeExplicitAutograd"):
            raise NotImplementedError(f"Library.impl: kernels of aten for {key}; CPU is offered")
        original = getattr(flambeau, name.split("::")[-1].split(".")[0], None)
        original = getattr(original, "op", None)
        if original is None:
            raise RuntimeError(f"operator aten::{name} does not exist")
        modes.replaced[original] = _with_kernel(original, fn)
        modes.interceptors.append(self)
        self._replaced.append(original)

    def _register_fake(self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, *,
                       allow_override: bool = True) -> None:
        _lookup(f"{self.ns}::{op_name.split('::')[-1]}").fake = fn

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Not offered."""
        raise NotImplementedError("Library.fallback")

    def _destroy(self) -> None:
        for op in self._replaced:
            modes.replaced.pop(op, None)
            modes.interceptors.remove(self)
        self._replaced.clear()
        space = namespaces.get(self.ns)
        for name in self._made:
            vars(space).pop(name, None)
        self._made.clear()
        if space is not None and space._owner is self:
            space._owner = None


def _with_kernel(op: Any, fn: Callable[..., Any]) -> Any:
    """An op with the derivative of `op` and another kernel, a function of tensors."""
    made = copy.copy(op)

    def kernel(*arrays: Any) -> Any:
        def tensor(value: Any) -> Any:
            return wrap(value) if hasattr(value, "dtype") and hasattr(value, "strides") else value
        with flambeau.no_grad():
            result = fn(*map(tensor, arrays))
        return tuple(r._array for r in result) if isinstance(result, tuple) else result._array
    if op.composite:
        made.direct, made.fused = fn, False
        return made
    made.kernel = kernel
    if op.kind == "pointwise":
        make = core_op.make_binary if len(op.tensors) == 2 else core_op.make_unary
        made.direct = make(made, (), core_op.ANY)
    else:
        made.direct = core_op.make_general(made, (), core_op.ANY, None)
    return made


# ---- the functions ------------------------------------------------------------------------------

class CustomOpDef:
    """What `custom_op` makes of a function."""

    def __init__(self, op: CustomOp, function: Callable[..., Any]):
        self._op, self._function = op, function
        self._namespace, self._name, self._qualname = op.namespace, op.name, op.qualified_name
        self._schema = op.schema
        self._opoverload = Overload(op)
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op.call(args, kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Give the op another kernel for devices of a type."""
        def register(fn: Any) -> Any:
            kinds = (device_types,) if isinstance(device_types, (str, type(None))) else device_types
            if None in kinds or "cpu" in kinds:
                self._op.kernels["CPU"] = fn
            return fn
        return register if fn is None else register(fn)

    def register_fake(self, fn: Any, /) -> Any:
        """Say what shapes the results have, for tensors on `meta`."""
        self._op.fake = fn
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None
                          ) -> None:
        """Give the op a derivative: `backward(ctx, *grads)`, and `setup_context(ctx, inputs,
        output)` that saves what it needs."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Any = None) -> Any:
        """Give the op a batching rule: `func(info, in_dims, *args)` gives results and their
        dims."""
        return register_vmap(self, func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Say which type the op shall run in under autocast."""
        register_autocast(self, device_type, cast_inputs)


def custom_op(name: str, fn: Any = None, /, *, mutates_args: Any, device_types: Any = None,
              schema: str | None = None, tags: Any = None) -> Any:
    """Makes an op, `namespace::name`, of a function on tensors: tracing and vmap see it as one.

    The schema follows from the type annotations. `mutates_args` names the arguments that the
    function writes to.
    """
    def make(function: Callable[..., Any]) -> CustomOpDef:
        namespace, separator, short = name.partition("::")
        if not separator:
            raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {name}")
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        vars(namespaces.setdefault(namespace, Namespace(namespace))).pop(short, None)
        op = _define(namespace, short + text[text.index("("):])
        op.kernels["" if device_types is None else "CPU"] = function
        return CustomOpDef(op, function)
    return make if fn is None else make(fn)


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Add an op: its qualified name, and "(Tensor x) -> Tensor"."""
    namespace, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(f"Expected `qualname` to be of the form `namespace::name`, got {qualname}")
    _define(namespace, name + schema)


def impl(qualname: str, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Give an op a kernel for devices of some types; a decorator without `func`."""
    def register(function: Callable[..., Any]) -> Any:
        kinds = (types,) if isinstance(types, str) else types
        for kind in kinds:
            key = {"cpu": "CPU", "default": "CompositeExplicitAutograd"}.get(kind, kind)
            _lookup(qualname).kernels[key] = function
        return function
    return register if func is None else register(func)


def register_fake(op: Any, func: Any = None, /, *, lib: Library | None = None,
                  _stacklevel: int = 1, allow_override: bool = False) -> Any:
    """Say what shapes an op's results have, for tensors on `meta`; a decorator without `func`."""
    def register(function: Any) -> Any:
        _lookup(op).fake = function
        return function
    return register if func is None else register(func)


def impl_abstract(qualname: str, func: Any = None, *, lib: Library | None = None,
                  _stacklevel: int = 1) -> Any:
    """The former name of `register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Give an op a kernel for devices of some types; a decorator without `func`."""
    name = op if isinstance(op, str) else _lookup(op).qualified_name
    return impl(name, "default" if device_types is None else device_types, func)


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None,
                      lib: Library | None = None) -> None:
    """Give an op a derivative: `backward(ctx, *grads)` and `setup_context(ctx, inputs, output)`."""
    found = _lookup(op)
    found.backward, found.setup_context = backward, setup_context


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Give an op a batching rule; a decorator without `func`."""
    def register(function: Any) -> Any:
        _lookup(op).vmap = function
        return function
    return register if func is None else register(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Say which type an op shall run in under autocast."""
    if device_type == "cpu":
        _lookup(op).autocast_dtype = cast_inputs


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, *,
                            lib: Any = None) -> Any:
    """Not offered."""
    raise NotImplementedError("torch.library.register_torch_dispatch")


def fallthrough_kernel() -> None:
    """Stands for "no kernel here, ask the next"."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def get_ctx() -> Any:
    """Not offered: fake implementations get no context."""
    raise NotImplementedError("torch.library.get_ctx: sizes that depend on data")


def get_kernel(op: Any, dispatch_key: Any) -> Callable[..., Any]:
    """The kernel of an op for a dispatch key."""
    found = _lookup(op).kernels
    key = str(dispatch_key).removeprefix("DispatchKey.")
    if key not in found:
        raise RuntimeError(f"no kernel of {op} for {dispatch_key}")
    return found[key]


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: Any = None) -> Any:
    """Not offered: Triton writes kernels for GPUs."""
    raise NotImplementedError("torch.library.triton_op: Triton writes kernels for GPUs")


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Not offered: Triton writes kernels for GPUs."""
    raise NotImplementedError("torch.library.wrap_triton: Triton writes kernels for GPUs")


__all__ = ["Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel", "impl",
           "impl_abstract", "infer_schema", "register_autocast", "register_fake",
           "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton"]
