"""Ops that programs register: a schema, kernels by key, and how a call finds its way to one.

A call goes through what PyTorch's goes through, in that order: functions that override, autocast,
batching, the graph, dispatch modes and subclasses, and last the kernel of the device.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._library.arguments import bind, split
from flambeau._library.fake_impl import run_fake
from flambeau._ops import OpOverload, OpOverloadPacket, _OpNamespace, ops
from flambeau._support.devices.backends import could_not_run
from flambeau._support.scopes import within
from flambeau.core import modes
from flambeau.core.calling import overrides
from flambeau.dispatch.aten.keys import DispatchKey, below_autograd, keys_of, parse_key
from flambeau.schema.function_schema import FunctionSchema
from flambeau.schema.types import ClassType

K: Any = DispatchKey
_AUTOGRAD = (K.AutogradCPU, K.Autograd, K.AutogradMeta)
_FAKE_HELP = (
    "attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
    "registered. You may have run into this message while using an operator with PT2 compilation "
    "APIs (torch.compile/torch.export); in order to use this operator with those APIs you'll need "
    "to add a fake impl. Please use register_fake to add one: no fake implementation was "
    "registered.")


class CustomOp:
    """One overload of an op of the program's: its schema, kernels, and rules."""

    def __init__(self, namespace: str, schema: str, tags: Iterable[Any] = ()):
        self.schema = FunctionSchema(schema, namespace)
        self._gives_tensor = [r.declared for r in self.schema.returns] == ["Tensor"]
        self.namespace, self.name = namespace, self.schema.name.partition("::")[2]
        self.overload_name = self.schema.overload_name or "default"
        self.tags = list(tags)
        self.kernels: dict[Any, Callable[..., Any]] = {}
        self.device_kernels: dict[str, Callable[..., Any]] = {}     # of `register_kernel`
        self.dispatch_rules: dict[type, Callable[..., Any]] = {}
        self.fake: Any = None
        self.backward: Any = None
        self.setup_context: Any = None
        self.vmap: Any = None
        self.autocast_dtype: Any = None
        self.always_recorded = False        # of `custom_op`: no graph through the kernel
        self.overload: Any = None
        self._function: Any = None

    @property
    def qualified_name(self) -> str:
        """`namespace::name`."""
        return f"{self.namespace}::{self.name}"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments, in order, with defaults filled in and types looked at."""
        return bind(self.schema, args, kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the op."""
        return self.called(self.overload, args, kwargs)

    def called(self, named: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the op for a call of the overload, or of the packet, `named`."""
        values = self.bind(args, kwargs)
        relevant = flat(values)
        if overrides.has_torch_function(relevant):
            return overrides.handle_torch_function(named, relevant, *args, **kwargs)
        rule = self.kernels.get(K.AutocastCPU)
        if rule is not None and flambeau.is_autocast_enabled("cpu"):
            return self.run(rule, values)
        if self.autocast_dtype is not None and flambeau.is_autocast_enabled("cpu"):
            from flambeau.amp._policy import cast
            values = tuple(cast(value, self.autocast_dtype) for value in values)
            with flambeau.autocast("cpu", enabled=False):
                return self.dispatch(values)
        return self.dispatch(values)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    # ---- from the outside inwards ---------------------------------------------------------------

    def dispatch(self, values: tuple[Any, ...]) -> Any:
        """Run the op on all its arguments: for a batch, with a gradient, or just so."""
        if below_autograd.get():
            return self.below(values)
        for key in _AUTOGRAD:
            if key in self.kernels:
                return self.run(self.kernels[key], values)
        if self.is_composite and not self._has_meta_kernel(values):
            return self.run(self.kernels[K.CompositeImplicitAutograd], values)
        stack: Any = modes.levels.get()
        if stack and not stack[-1].makes:
            return function_of(self)(values)
        if not self.always_recorded and self.backward is None:
            return self.below(values)       # the graph goes through the kernel
        if flambeau.is_grad_enabled() and any(t.requires_grad for t in tensors_in(values)):
            return function_of(self)(values)
        return self.below(values)

    @property
    def is_composite(self) -> bool:
        """Is there nothing but a function of other ops?"""
        return K.CompositeImplicitAutograd in self.kernels and not (
            {K.CPU, K.CompositeExplicitAutograd} & self.kernels.keys())

    def _has_meta_kernel(self, values: tuple[Any, ...]) -> bool:
        """Is there a kernel of shapes, and a tensor that has only a shape?"""
        return (K.Meta in self.kernels or self.fake is not None) and any(
            t.is_meta for t in tensors_in(values))

    def below(self, values: tuple[Any, ...]) -> Any:
        """Run the op below autograd: modes and subclasses first."""
        stack: Any = modes.levels.get()
        if stack and stack[-1].makes:
            args, kwargs = self.schema.arranged(values)
            return within(modes.levels, stack[:-1], stack[-1].ask, self.overload, tuple(args),
                          kwargs)
        if overrides.find_override(values) is not None:
            from flambeau.dispatch.aten.subclass import show
            args, kwargs = self.schema.arranged(values)
            return show(self.overload, *args, **kwargs)
        return self.kernel(values)

    def kernel(self, values: tuple[Any, ...]) -> Any:
        """Run the kernel for the device of the arguments."""
        tensors = tensors_in(values)
        found = self._kernel_for("meta" if any(t.is_meta for t in tensors) else "cpu")
        if not self.always_recorded:
            return self.run(found, values, tensors)
        with flambeau.no_grad():
            result = self.run(found, values, tensors)
        self._finish(values, result, tensors)
        return result

    def _kernel_for(self, device: str) -> Callable[..., Any]:
        if device == "meta":
            for found in (self.kernels.get(K.Meta), self.fake,
                          self.kernels.get(K.CompositeImplicitAutograd),
                          None if self.always_recorded else
                          self.kernels.get(K.CompositeExplicitAutograd)):
                if found is not None:
                    return found
            raise NotImplementedError(f"{self.qualified_name}: {_FAKE_HELP}")
        if device in self.device_kernels:
            return self.device_kernels[device]
        for key in (K.CPU, K.CompositeExplicitAutograd, K.CompositeImplicitAutograd):
            if key in self.kernels:
                return self.kernels[key]
        raise could_not_run(self.qualified_name, "CPU", *[key.name for key in self.kernels])

    def run(self, function: Callable[..., Any], values: tuple[Any, ...], tensors: Any = ()) -> Any:
        """Call a kernel, whose own defaults hold for what is left out at the end."""
        args, kwargs = self.schema.arranged(values)
        if getattr(function, "takes_keyset", False):
            keys = keys_of(tensors[0]) if tensors else keys_of(flambeau.empty(0))
            return function(keys, *args, **kwargs)
        if function is self.fake:
            return run_fake(function, self.overload, args, kwargs)
        result = function(*args, **kwargs)
        if self._gives_tensor and result is not None and not isinstance(result, Tensor):
            raise RuntimeError(f"Unable to cast {result} to Tensor")
        return tuple(result) if type(result) is list and len(self.schema.returns) > 1 else result

    def _finish(self, values: Any, result: Any, tensors: list[Tensor]) -> None:
        """Count what was written to, and see that results are new tensors."""
        from flambeau._support.source_locations import bump
        for argument, value in zip(self.schema.arguments, values):
            if argument.is_write:
                for tensor in tensors_in((value,)):
                    bump(tensor)
        held = {id(t) for t in tensors}
        for tensor in tensors_in((result,)):
            if id(tensor) in held:
                raise RuntimeError(
                    f"{self.qualified_name} (with implementation in "
                    f"{getattr(self._kernel_for('cpu'), '__module__', '???')}): The output of this "
                    "custom operator (1) must not also be an input to this custom operator and "
                    "(2) may not alias any inputs to this custom operator or other returns. The "
                    "most common way to trigger this error is if we have y = custom_op(x) and y "
                    "and x are the same Tensor. Please instead return a clone of the offending "
                    "output tensor(s) (e.g. return x.clone()) or refactor the custom operator to "
                    "not return y.")
            held.add(id(tensor))


def flat(values: Any) -> list[Any]:
    """What is in a call, lists opened."""
    found: list[Any] = []
    for value in values:
        found += value if isinstance(value, (tuple, list)) else (value,)
    return found


def tensors_in(values: Any) -> list[Tensor]:
    """The tensors in a call."""
    return [v for v in flat(values) if isinstance(v, Tensor)]


# ---- in the graph -------------------------------------------------------------------------------

def function_of(op: CustomOp) -> Callable[[tuple[Any, ...]], Any]:
    """What runs an op as an `autograd.Function`: lists of tensors are opened for it."""
    if op._function is None:
        op._function = _make_function(op)
    made = op._function

    def call(values: tuple[Any, ...]) -> Any:
        structure = tuple([(type(v), len(v)) if isinstance(v, (list, tuple)) else None
                           for v in values])
        return made.apply(structure, *flat(values))
    return call


def _closed(structure: Any, opened: Any) -> tuple[Any, ...]:
    """The arguments as the op's schema has them."""
    rest = iter(opened)
    return tuple([next(rest) if shape is None else shape[0]([next(rest) for _ in range(shape[1])])
                  for shape in structure])


def _make_function(op: CustomOp) -> Any:
    class Generated(flambeau.autograd.Function):
        @staticmethod
        def forward(structure: Any, *opened: Any) -> Any:
            return op.below(_closed(structure, opened))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            structure, *opened = inputs
            ctx.structure = structure
            values = _closed(structure, opened)
            ctx.needs_input_grad = ctx.needs_input_grad[1:]
            if op.backward is None or op.setup_context is None:
                return
            args, kwargs = split(op.schema, values)
            if kwargs:
                op.setup_context(ctx=ctx, inputs=args, keyword_only_inputs=kwargs, output=output)
            else:
                op.setup_context(ctx, args, output)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if op.backward is None:
                raise RuntimeError(f"Trying to backward through {op.namespace}.{op.name}.default "
                                   "but no autograd formula was registered. Please use "
                                   "register_autograd to add one.")
            return (None, *_opened_grads(op, ctx.structure, op.backward(ctx, *grads)))

        @staticmethod
        def vmap(info: Any, in_dims: Any, structure: Any, *opened: Any) -> Any:
            values, dims = _closed(structure, opened), _closed(structure, in_dims[1:])
            if op.vmap is not None:
                args, kwargs = split(op.schema, values)
                return op.vmap(info, dims[:len(args)], *args, **kwargs)
            return _one_by_one(op, info, dims, values)
    name = f"GeneratedBackwardFor_{op.namespace}_{op.name}_{op.overload_name}"
    made: Any = type(name.replace("Backward", "", 1), (Generated,), {})
    made.__name__ = name
    made._backward_cls.__name__ = f"{name}Backward"
    return made


def _opened_grads(op: CustomOp, structure: Any, produced: Any) -> list[Any]:
    """A gradient for each opened argument."""
    produced = tuple(produced) if isinstance(produced, (tuple, list)) else (produced,)
    shapes = structure[:sum(not a.keyword_only for a in op.schema.arguments)]
    while len(produced) > len(shapes) and produced[-1] is None:
        produced = produced[:-1]
    if len(produced) != len(shapes):
        raise RuntimeError(f"Expected the return from backward to be of the same structure as the "
                           f"inputs. Got: {len(produced)} gradients (return from backward), "
                           f"{len(shapes)} (inputs)")
    found: list[Any] = []
    for shape, grad in zip(structure, (*produced, *[None] * (len(structure) - len(shapes)))):
        if shape is None:
            found.append(grad)
        else:
            found += [None] * shape[1] if grad is None else grad
    return found


def _one_by_one(op: CustomOp, info: Any, dims: Any, values: Any) -> Any:
    """The op on each slice, for lack of a batching rule."""
    def slice_of(value: Any, dim: Any, i: int) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([slice_of(v, d, i) for v, d in zip(value, dim)])
        return value if dim is None else value.select(dim, i)
    results = [op.dispatch(tuple([slice_of(v, d, i) for v, d in zip(values, dims)]))
               for i in range(info.batch_size)]
    if isinstance(results[0], Tensor):
        return flambeau.stack(results), 0
    return tuple(map(flambeau.stack, zip(*results))), (0,) * len(results[0])


# ---- finding and making ops ---------------------------------------------------------------------

def custom_of(overload: OpOverload) -> CustomOp | None:
    """The registered op that an overload is; None for one of flambeau's own."""
    run = overload._run
    return run if isinstance(run, CustomOp) else None


def lookup(op: Any) -> CustomOp:
    """The op that a name, an overload, a packet or a `CustomOpDef` means."""
    if isinstance(op, str):
        overload = overload_named(op)
    elif isinstance(op, OpOverload):
        overload = op
    elif isinstance(op, OpOverloadPacket):
        overload = op.default if "default" in op.overloads() else op.overload(op.overloads()[0])
    else:
        overload = op._opoverload
    found = custom_of(overload)
    if found is None:
        raise RuntimeError(f"operator {overload.name()} is not one that a library has defined")
    return found


def overload_named(name: str) -> OpOverload:
    """The overload that `namespace::name.overload` means."""
    space, separator, rest = name.partition("::")
    if not separator:
        raise ValueError(f'Expected `qualname` to be of the form "namespace::name", but got {name}.'
                         " The qualname passed to the torch.library APIs must consist of a "
                         "namespace and a name, e.g. aten::sin")
    base, _, overload = rest.partition(".")
    packet = getattr(getattr(ops, space), base)
    if not overload and "default" not in packet.overloads():
        overload = packet.overloads()[0]
    return getattr(packet, overload or "default")


def define(namespace: str, schema: str, tags: Iterable[Any] = ()) -> CustomOp:
    """Add an overload to a namespace."""
    op = CustomOp(namespace, schema, tags)
    for argument in (*op.schema.arguments, *op.schema.returns):
        _check_known(argument.type, schema)
    space: _OpNamespace = getattr(ops, namespace)
    packet = vars(space).get(op.name)
    if packet is not None and op.overload_name in packet._overloads:
        raise RuntimeError(f"Tried to register an operator ({namespace}::{schema}) with the same "
                           "name and overload name multiple times. Each overload's schema should "
                           "only be registered with a single call to def().")
    packet = space.packet(op.name) if packet is None else packet
    packet._call = _caller(packet)
    op.overload = packet.declare(op.overload_name, op.schema._text, op, op.tags)
    return op


_CLASSES = ("Storage", "AnyEnumType", "QuantizerType")      # that schemas name as they are


def _check_known(kind: Any, schema: str) -> None:
    """Is it a type of schemas? Names in small letters stand for any, those with dots for
    classes."""
    for inner in kind.containedTypes() if hasattr(kind, "containedTypes") else ():
        _check_known(inner, schema)
    if isinstance(kind, ClassType):
        name = str(kind)
        if name[:1].isupper() and "." not in name and "(" not in name and name not in _CLASSES:
            raise RuntimeError(f"unknown type specifier {name}. Common valid schema types include "
                               "Tensor, SymInt, int, float, bool, Scalar; for a full list, please "
                               f"see PyTorch's aten/src/ATen/native/README.md#func :\n{schema}\n")


def _caller(packet: OpOverloadPacket) -> Callable[..., Any]:
    """A call of a packet: the first overload whose schema the arguments fit."""
    def call(*args: Any, **kwargs: Any) -> Any:
        return _fitting(packet, args, kwargs).called(packet, args, kwargs)
    return call


def _fitting(packet: OpOverloadPacket, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    overloads = list(packet._overloads.values())
    if len(overloads) == 1:
        return overloads[0]._run
    wrong = []
    for overload in overloads:
        op: Any = overload._run
        try:
            op.bind(args, kwargs)
            return op
        except RuntimeError as error:
            wrong.append(f"{error}\n")
    raise RuntimeError("Overloaded torch operator invoked from Python failed to match any "
                       "schema:\n" + "\n".join(wrong))


def called_overload(named: OpOverload | OpOverloadPacket, args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> CustomOp | None:
    """The op of the program's that such a call runs; None if it is not one."""
    op = named._run if isinstance(named, OpOverload) else _fitting(named, args, kwargs)
    return op if isinstance(op, CustomOp) else None


def forget(op: CustomOp) -> None:
    """Take an op out of its namespace."""
    space = getattr(ops, op.namespace)
    packet = vars(space).get(op.name)
    if packet is not None and packet._overloads.get(op.overload_name) is op.overload:
        del packet._overloads[op.overload_name]
        if not packet._overloads:
            delattr(space, op.name)


def key_for_device(kind: str | None) -> Any:
    """The key of kernels for a type of devices."""
    if kind in (None, "default"):
        return K.CompositeExplicitAutograd
    if isinstance(kind, str) and kind[:1].isupper():
        return parse_key(kind)
    flambeau.device(kind)                   # raises for what is no type of devices
    return parse_key({"cpu": "CPU", "meta": "Meta", "cuda": "CUDA", "xpu": "XPU", "mps": "MPS",
                      "hpu": "HPU", "xla": "XLA", "mtia": "MTIA"}.get(str(kind), "PrivateUse1"))


def check_qualname(name: str) -> tuple[str, str]:
    """Namespace and name of `namespace::name`."""
    space, separator, rest = name.partition("::")
    if not separator or not space or "::" in rest:
        raise ValueError(f'Expected `qualname` to be of the form "namespace::name", but got {name}.'
                         " The qualname passed to the torch.library APIs must consist of a "
                         "namespace and a name, e.g. aten::sin")
    return space, rest


__all__ = ["CustomOp", "below_autograd", "called_overload", "check_qualname", "custom_of", "define",
           "flat", "forget", "function_of", "key_for_device", "lookup", "overload_named",
           "tensors_in"]
