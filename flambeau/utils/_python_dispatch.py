"""`TorchDispatchMode`: sees every op that runs, below the composites.

>>> import flambeau
>>> class Log(TorchDispatchMode):
...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
...         print(func)
...         return func(*args, **(kwargs or {}))
>>> with Log():
...     y = flambeau.ones(2).exp() + 1
aten.ones.default
aten.exp.default
aten.add.Tensor
"""
from __future__ import annotations

from typing import Any

from flambeau.core import modes
from flambeau.core.op import Op, public, table
from flambeau.core.tensor import Tensor, plain
from flambeau.ops import load

# Ops with several overloads in PyTorch: which one a call is, by its canonical arguments.
_OVERLOADS = {"select": "int", "slice": "Tensor", "transpose": "int", "sum": "dim_IntList",
              "mean": "dim", "index": "Tensor", "any": "dim", "all": "dim", "split": "Tensor"}


class OpOverload:
    """One op under the name that PyTorch's dispatcher has for it: `aten.mul.Tensor`."""

    def __init__(self, op: Op, name: str, overload: str):
        self._op, self._opname, self._overloadname = op, name, overload
        self.__name__ = f"{name}.{overload}"
        self.__module__ = "torch._ops.aten"
        self.namespace = "aten"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op.call(*args, **kwargs)

    def name(self) -> str:
        return f"aten::{self._opname}"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        return getattr(aten, self._opname)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._opname}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """All overloads of one name: `aten.mul`."""

    def __init__(self, op: Op, name: str):
        self._op, self.__name__ = op, name

    def overloads(self) -> list[str]:
        return [overload_of(self._op)._overloadname]

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return _overload(self._op, self.__name__, overload)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    __repr__ = __str__


class _Aten:
    """The ops by name, as `torch.ops.aten`."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        op = None if name.startswith("__") else _op_named(name)
        if op is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        packet = OpOverloadPacket(op, name)
        self.__dict__[name] = packet
        return packet


def _op_named(name: str) -> Op | None:
    """The op that PyTorch's dispatcher knows as `name`: one of the table, an in-place form, or a
    public function or method of tensors that isn't an op of its own here."""
    own = _OWN_NAMES.get(name, name)

    def in_table() -> Op | None:
        return table.get(own) or table.get(f"nn.functional.{own}") \
            or getattr(table.get(own[:-1]) if own.endswith("_") else None, "inplace_op", None)

    if in_table() is None:
        load(lambda: in_table() is not None)
    op = in_table()
    function = None if op else public["torch"].get(own) or getattr(Tensor, own, None)
    if callable(function):
        op = Op(name, "composite", composite=True, function=function, call=function)
    elif op is None and name.startswith("_"):       # one of PyTorch's own parts
        def missing(*args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError(f"aten::{name} is an internal op of PyTorch that flambeau "
                                      "does not have")

        op = Op(name, "composite", composite=True, function=missing, call=missing)
    return op


aten = _Aten()
ATEN_NAMES = {"cast": "_to_copy", "_sum_all": "sum", "_mean_all": "mean", "_clone": "clone",
              "_bernoulli_sample": "bernoulli", "expand_to": "expand", "view_as_shape": "view",
              "permute_dims": "permute"}
_OWN_NAMES = {v: k for k, v in ATEN_NAMES.items() if k in table} | {
    "_unsafe_view": "view_as_shape", "_conj": "conj", "_local_scalar_dense": "item",
    "_pin_memory": "pin_memory", "_fft_c2c": "fft_c2c"}
_known: dict[tuple[str, str], OpOverload] = {}


def _overload(op: Op, name: str, overload: str) -> OpOverload:
    key = name, overload
    if key not in _known:
        _known[key] = OpOverload(op, name, overload)
    return _known[key]


def overload_of(op: Op, canonical: tuple[Any, ...] = ()) -> OpOverload:
    """The overload that a call of `op` is."""
    base = op.functional if op.inplace and op.functional is not None else op
    overload = "default"
    if base.kind == "pointwise" and len(base.tensors) == 2:
        overload = "Tensor"
        if base.name == "pow" and canonical:
            first, second = (isinstance(c, Tensor) for c in canonical[:2])
            overload = ("Tensor" if second else "Scalar") if not first else (
                "Tensor_Tensor" if second else "Tensor_Scalar")
    elif base.name in _OVERLOADS:
        overload = _OVERLOADS[base.name]
        if base.name in ("sum", "mean", "any", "all") and canonical and canonical[1] is None:
            overload = "default"
    return _overload(op, ATEN_NAMES.get(op.name, op.name), overload)


class _DispatchLevel(modes.Level):
    """Hands each op to a mode's `__torch_dispatch__`."""

    def __init__(self, mode: TorchDispatchMode):
        self.mode = mode

    def __call__(self, op: Op, canonical: tuple[Any, ...]) -> Any:
        inputs = (op.functional if op.inplace else op).inputs(canonical)
        types = tuple({type(t): None for t in inputs if isinstance(t, Tensor)
                       and type(t) not in plain})
        return self.mode.__torch_dispatch__(overload_of(op, canonical), types, canonical, {})

    makes = True

    def composite(self, op: Op, run: Any, args: Any, kwargs: Any) -> Any:
        """A call that makes a tensor."""
        stack = modes.levels.get()
        token = modes.levels.set(stack[:stack.index(self)])
        try:
            return self.mode.__torch_dispatch__(_overload(op, op.name, "default"), (), args, kwargs)
        finally:
            modes.levels.reset(token)


class TorchDispatchMode:
    """While entered, each op that runs is handed to `__torch_dispatch__(func, types, args, kwargs)`
    instead; inside it the mode is set aside. Modes nest, the innermost comes first."""

    def __init__(self, _dispatch_key: Any = None):
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        level = _DispatchLevel(self)
        self.__dict__.setdefault("_entered_levels", []).append(level)
        level.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.__dict__["_entered_levels"].pop().__exit__(*exception)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """Deprecated: make the mode, to be entered."""
        return cls(*args, **kwargs)


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode of this thread."""
    stack = _get_current_dispatch_mode_stack()
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return [lv.mode for lv in modes.levels.get() if isinstance(lv, _DispatchLevel)]


class _disable_current_modes:
    """Inside, no dispatch mode is active."""

    def __enter__(self) -> list[TorchDispatchMode]:
        found = _get_current_dispatch_mode_stack()
        self._token = modes.levels.set(tuple(
            lv for lv in modes.levels.get() if not isinstance(lv, _DispatchLevel)))
        return found

    def __exit__(self, *exception: Any) -> None:
        modes.levels.reset(self._token)


def is_traceable_wrapper_subclass(value: Any) -> bool:
    """Does a tensor wrap others in the way that tracers can take apart?"""
    return isinstance(value, Tensor) and hasattr(type(value), "__tensor_flatten__") \
        and hasattr(type(value), "__tensor_unflatten__")


__all__ = ["OpOverload", "OpOverloadPacket", "TorchDispatchMode", "aten",
           "is_traceable_wrapper_subclass"]
