"""Writing down a program as it runs: which overload was called, on what, with what result.

A function mode sees public calls with their users' arguments. A level below it sees what no
function mode is asked about, such as indexing, and the bodies of composites that PyTorch's
dispatcher does not know. A call that is written down runs with both set aside.
"""
from __future__ import annotations

import contextlib
import functools
import sys
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._library import operators
from flambeau._ops import OpOverload, OpOverloadPacket
from flambeau._support.scopes import Scope
from flambeau.core import modes
from flambeau.export._trace import overloads
from flambeau.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from flambeau.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from flambeau.overrides import TorchFunctionMode
from flambeau.utils import _pytree


@dataclass(frozen=True)
class Ref:
    """The value of a step: an input (step -1, by name) or a result, or a part of one."""
    step: int
    part: int | None = None
    name: str = ""


@dataclass
class Step:
    """One call: arguments hold `Ref`s in place of tensors."""
    name: str
    overload: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    modules: dict[str, tuple[str, str]]
    stack: str = ""


@dataclass
class Trace:
    """A program that ran once."""
    steps: list[Step] = field(default_factory=list)
    outputs: Any = None
    shapes: dict[Ref, tuple[int, ...]] = field(default_factory=dict)
    constants: dict[str, Tensor] = field(default_factory=dict)


current: ContextVar[Any] = ContextVar("capture", default=None)


def record_now(call: overloads.Call, run: Callable[[], Any]) -> Any:
    """Run a call for the capture that is at work."""
    return current.get().record(call, run)


def is_result(tensor: Tensor) -> bool:
    """Has the program that is being captured computed this tensor?"""
    return current.get().ref(tensor).step >= 0


class Capture(modes.Level):
    """Writes down the calls made while it is entered."""

    observes = True

    def __init__(self, inputs: dict[str, Tensor], names: dict[int, str],
                 modules: dict[int, str]):
        self.trace, self._names, self._modules = Trace(), names, modules
        self._refs: dict[int, Ref] = {}
        self._kept: list[Any] = []
        self._path: dict[str, tuple[str, str]] = {}
        self._active = False
        self._mode = _PublicCalls(self)
        for name, tensor in inputs.items():
            self._note(tensor, Ref(-1, name=name))

    # ---- values ---------------------------------------------------------------------------------

    def _note(self, tensor: Tensor, ref: Ref) -> None:
        self._refs[id(tensor)] = ref
        self._kept.append(tensor)           # or its id would be given to another
        self.trace.shapes[ref] = tuple(tensor.shape)

    def knows(self, tensor: Tensor) -> bool:
        """Has the program computed this tensor, or been given it?"""
        return id(tensor) in self._refs

    def ref(self, tensor: Tensor) -> Ref:
        """What stands for a tensor; one that came from elsewhere is a constant."""
        if id(tensor) not in self._refs:
            name = self._names.get(id(tensor)) or f"lifted_tensor_{len(self.trace.constants)}"
            self.trace.constants[name] = tensor
            self._note(tensor, Ref(-1, name=f"c_{name.replace('.', '_')}"))
        return self._refs[id(tensor)]

    def refs(self, values: Any) -> Any:
        """`values` with a `Ref` for each tensor."""
        if isinstance(values, Tensor):
            return self.ref(values)
        if isinstance(values, (list, tuple)):
            return [self.refs(v) for v in values] if isinstance(values, list) \
                else tuple([self.refs(v) for v in values])
        if isinstance(values, dict):
            return {k: self.refs(v) for k, v in values.items()}
        return values

    # ---- calls ----------------------------------------------------------------------------------

    def record(self, call: overloads.Call, run: Callable[[], Any]) -> Any:
        """Run a call, unseen, and write it down."""
        args, kwargs = self.refs(call.args), self.refs(call.kwargs)
        op = overloads.declared(call.name)
        if op is not None and op.kind == "creation":
            call = call._replace(kwargs=_placed(call))
            kwargs = self.refs(call.kwargs)
        with self.unseen():
            result = run()
        number = len(self.trace.steps)
        self.trace.steps.append(Step(call.name, call.overload, args, kwargs, result,
                                     dict(self._path), _where()))
        if isinstance(result, Tensor):
            self._note(result, Ref(number))
        elif isinstance(result, (tuple, list)):
            for i, part in enumerate(result):
                if isinstance(part, Tensor):
                    self._note(part, Ref(number, i))
        return result

    def public(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A public call: written down if the dispatcher knows it."""
        if isinstance(function, (OpOverload, OpOverloadPacket)) and function.namespace != "aten":
            return self._custom(function, args, kwargs)
        if is_itself(function, args, kwargs):
            return args[0]
        call = _public_call(function, args, kwargs)
        if function.__name__ in ("tensor", "as_tensor", "from_numpy") and call is None:
            return self._fresh(function(*args, **kwargs))
        if call is None:
            return function(*args, **kwargs)        # its parts will be seen
        return self.record(call, lambda: function(*args, **kwargs))

    def _custom(self, function: OpOverload | OpOverloadPacket, args: tuple[Any, ...],
                kwargs: dict[str, Any]) -> Any:
        """A call of an op of the program's: one step, unless it is made of other ops."""
        op = operators.called_overload(function, args, kwargs)
        if op is None or op.is_composite:
            return function(*args, **kwargs)
        given, named = op.schema.arranged(op.bind(args, kwargs))
        call = overloads.Call(op.qualified_name, op.overload_name, tuple(given), named)
        return self.record(call, lambda: function(*args, **kwargs))

    def _fresh(self, value: Tensor) -> Tensor:
        """A tensor made of numbers: a constant, and a copy of it for each run."""
        if self.knows(value):
            return value
        copied = self.record(overloads.Call("lift_fresh_copy", "default", (value,), {}),
                             value.clone)
        return self.record(overloads.Call("detach_", "default", (copied,), {}), copied.detach_)

    def composite(self, op: Any, run: Any, args: Any, kwargs: Any) -> Any:
        """A call that the dispatcher does not know: the calls in its body are."""
        if not self._active:
            return run(*args, **kwargs)
        with self._mode:
            return run(*args, **kwargs)

    def __call__(self, op: Any, args: tuple[Any, ...]) -> Any:
        """A call that no function mode has seen, with canonical arguments."""
        if not self._active:
            return op.call(*args)
        call = overloads.of_canonical(op, args)
        return self.record(call, lambda: op.call(*args))

    # ---- around the program ---------------------------------------------------------------------

    def _enter_module(self, module: nn.Module, inputs: Any) -> None:
        name = self._modules.get(id(module))
        if name is not None:
            kind = type(module)
            module_name = kind.__module__.replace("flambeau", "torch", 1)
            self._path[name] = (name, f"{module_name}.{kind.__qualname__}")

    def _leave_module(self, module: nn.Module, inputs: Any, output: Any) -> None:
        name = self._modules.get(id(module))
        if name is not None:
            self._path.pop(name, None)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Inside, calls are written down."""
        hooks = [register_module_forward_pre_hook(self._enter_module),
                 register_module_forward_hook(self._leave_module, always_call=True)]
        try:
            with self, self._mode, Changed((current, self)), _watched(self):
                self._active = True
                yield
        finally:
            self._active = False
            for hook in hooks:
                hook.remove()

    def unseen(self) -> Changed:
        """Inside, nothing is written down."""
        return Changed((modes.levels, ()), (vars(self), "_active", False))

    @property
    def active(self) -> bool:
        """Is the program itself running, not the inside of one of its calls?"""
        return self._active


class Changed(Scope):
    """Some changes, for a while."""

    def __init__(self, *changes: Any):
        self._changes = changes


class _PublicCalls(TorchFunctionMode):
    """Hands public calls to a capture."""

    sees_members = False                # `_watched` looks after those that count

    def __init__(self, capture: Capture):
        super().__init__()
        self._capture = capture

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self._capture.active:
            return func(*args, **kwargs or {})
        return self._capture.public(func, tuple(args), dict(kwargs or {}))


def _placed(call: overloads.Call) -> dict[str, Any]:
    """Arguments of a call that makes a tensor, with where it is made."""
    if call.args and isinstance(call.args[0], Tensor):
        return {**call.kwargs, "pin_memory": False}
    return {**{k: v for k, v in call.kwargs.items() if k not in ("device", "pin_memory")},
            "device": flambeau.device(call.kwargs.get("device") or "cpu"), "pin_memory": False}


def _public_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
                 ) -> overloads.Call | None:
    name = function.__name__
    kwargs = {k: v for k, v in kwargs.items() if k != "requires_grad" or v}
    if name == "write" and "scaled_second" in function.__qualname__:
        return None
    if name == "sub" and len(args) == 2 and not isinstance(args[0], Tensor):
        return overloads.of_public(flambeau.rsub, (args[1], args[0]), kwargs)
    return overloads.of_public(function, args, kwargs)


def is_itself(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Is it a call that gives its tensor itself, before the dispatcher is asked?"""
    return function.__name__ == "contiguous" and args[0].is_contiguous(
        memory_format=kwargs.get("memory_format") or flambeau.contiguous_format)


def _where() -> str:
    """The lines of `forward` methods that led here."""
    frames = [f for f in traceback.extract_stack(sys._getframe(2)) if f.name == "forward"]
    return "".join(traceback.format_list(frames))


# ---- methods of tensors that no mode is asked about ---------------------------------------------

_LOOKS = ("__bool__", "__int__", "__float__", "__index__", "__complex__", "item", "tolist", "numpy")
_CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
          "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
          "bool": "bool"}
_ATTRIBUTES = {"T": "numpy_T", "mT": "mT", "mH": "mH", "H": "matrix_H"}
_METHODS = ("to", "type_as", "unflatten", "zero_", "detach", "new_zeros", "new_ones", "new_full",
            "new_empty", "__and__", "__or__", "__xor__")


@contextlib.contextmanager
def _watched(capture: Capture) -> Iterator[None]:
    """Inside, these methods hand what they do to the capture, and the program cannot turn a tensor
    that it has computed into a number."""
    own = {name: vars(Tensor)[name] for name in
           (*_LOOKS, *_CASTS, *_ATTRIBUTES, *_METHODS, "__getitem__", "__setitem__")
           if hasattr(Tensor, name) and name in vars(Tensor)}      # asked for, it is loaded

    def watch(name: str, watched: Callable[..., Any]) -> None:
        original = own[name]

        def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            if not capture.active:
                return original(self, *args, **kwargs)
            return watched(self, *args, **kwargs)
        setattr(Tensor, name, method)

    def look(name: str) -> Callable[..., Any]:
        def looked(self: Tensor, *args: Any) -> Any:
            if capture.knows(self):
                raise GuardOnDataDependentSymNode(
                    self, f"Could not guard on data-dependent expression: Tensor.{name} of a value "
                    "that depends on the inputs. A program that is exported cannot branch on "
                    "values, nor take numbers out of tensors.\n\n"
                    "consider using data-dependent friendly APIs such as torch.where and "
                    f"torch.cond.\n\nThe following call raised this error:\n{_where()}")
            return own[name](self, *args)
        return looked

    def known(name: str) -> Callable[..., Any]:
        def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            found = overloads.of_public(own[name], (self, *args), kwargs)
            if found is None:
                return own[name](self, *args, **kwargs)
            return capture.record(found, lambda: own[name](self, *args, **kwargs))
        return call

    def cast(dtype: Any) -> Callable[..., Any]:
        return lambda self, **kwargs: self.to(dtype, **kwargs)

    for name in own:
        if name in _LOOKS:
            watch(name, look(name))
        elif name in _CASTS:
            watch(name, cast(getattr(flambeau, _CASTS[name])))
        elif name in _METHODS:
            watch(name, known(name))
        elif name in _ATTRIBUTES:
            _watch_attribute(capture, name, own[name])
    take = own["__getitem__"]
    watch("__getitem__", lambda self, index: _index(capture, self, index, take))
    watch("__setitem__", lambda self, index, value: _put(capture, self, index, value))
    try:
        yield
    finally:
        for name, original in own.items():
            setattr(Tensor, name, original)


def _watch_attribute(capture: Capture, name: str, original: Any) -> None:
    def read(self: Tensor) -> Any:
        if not capture.active:
            return original.__get__(self)
        call = overloads.Call(_ATTRIBUTES[name], "default", (self,), {})
        return capture.record(call, lambda: original.__get__(self))
    setattr(Tensor, name, property(read))


def _index(capture: Capture, x: Tensor, index: Any, take: Callable[..., Any]) -> Tensor:
    """`x[index]`, step by step: selects, slices, new dimensions, then tensors."""
    items = index if isinstance(index, tuple) else (index,)
    if any(isinstance(i, bool) for i in items):
        return take(x, index)
    items = tuple([flambeau.tensor(i) if isinstance(i, (list, range)) else i for i in items])
    named = sum(i.ndim if isinstance(i, Tensor) and i.dtype is flambeau.bool else
                i is not None and i is not Ellipsis for i in items)
    dim, found = 0, x
    tensors: list[Tensor | None] = []
    for item in items:
        before = (slice(None),) * dim
        if item is Ellipsis:
            dim += x.ndim - named
        elif item is None:
            found, dim = flambeau.unsqueeze(found, dim), dim + 1
        elif isinstance(item, slice):
            if item != slice(None):
                start, stop, step = item.start, item.stop, item.step
                call = overloads.call_of("slice", "Tensor", {
                    "self": found, "dim": dim, "start": 0 if start is None else start,
                    "end": sys.maxsize if stop is None else stop,
                    "step": 1 if step is None else step})
                found = capture.record(call, functools.partial(take, found, (*before, item)))
            dim += 1
        elif isinstance(item, Tensor):
            tensors += [None] * (dim - len(tensors)) + [item]
            dim += 1
        else:
            found = flambeau.select(found, dim, item.__index__())
    if tensors:
        call = overloads.Call("index", "Tensor", (found, tensors), {})
        where = tuple([slice(None) if t is None else t for t in tensors])
        return capture.record(call, lambda: take(found, where))
    return flambeau.alias(found) if found is x and hasattr(flambeau, "alias") else found


def _put(capture: Capture, x: Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`, step by step."""
    items = index if isinstance(index, tuple) else (index,)
    if not isinstance(value, Tensor):
        value = capture._fresh(flambeau.tensor(value, dtype=x.dtype))
    if any(isinstance(i, (Tensor, list)) for i in items):
        if all(isinstance(i, (Tensor, list)) for i in items):
            x.index_put_(tuple([flambeau.as_tensor(i) for i in items]), value)
            return
        raise NotImplementedError("export: assignment to an index that mixes tensors with others")
    x[index].copy_(value)


def run(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any],
        inputs: dict[str, Tensor], names: dict[int, str]) -> Trace:
    """The trace of `module(*args, **kwargs)`; `inputs` are the tensors that have names already,
    `names` those of constants."""
    modules = {id(m): name for name, m in module.named_modules()}
    capture = Capture(inputs, names, modules)
    with capture.running():
        result = module(*args, **kwargs)
    capture.trace.outputs = _pytree.tree_map(
        lambda v: capture.ref(v) if isinstance(v, Tensor) else v, result)
    return capture.trace
