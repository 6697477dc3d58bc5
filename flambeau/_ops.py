"""The ops under the names of PyTorch's dispatcher: `torch.ops.aten.mul.Tensor`.

An `OpOverload` is one signature of an op, an `OpOverloadPacket` all that share a name. Which op of
flambeau is shown as which overload, and with which arguments, `_dispatch` says.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from flambeau._schema import FunctionSchema
from flambeau.core import modes
from flambeau.core.modes import grad_enabled
from flambeau.core.op import Op, public, table
from flambeau.core.tensor import Tensor, tensor_types
from flambeau.ops import load


class OpOverload:
    """One signature of an op, under the name that PyTorch's dispatcher has for it."""

    def __init__(self, packet: OpOverloadPacket, overload: str, schema: str = "",
                 run: Callable[..., Any] | None = None):
        self._packet, self._overloadname = packet, overload
        self._run = run
        self._text = schema
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.__name__
        self.__module__ = "torch._ops.aten"
        self.namespace, self._opname = "aten", packet.__name__

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All overloads of the name."""
        return self._packet

    @cached_property
    def _schema(self) -> FunctionSchema:
        return FunctionSchema(self._text or _generic_schema(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        stack: Any = modes.levels.get()
        if stack and stack[-1].makes and not _records(args, kwargs):
            token = modes.levels.set(stack[:-1])
            try:
                return stack[-1].ask(self, args, kwargs)
            finally:
                modes.levels.reset(token)
        return self.run(*args, **kwargs)

    @property
    def run(self) -> Callable[..., Any]:
        """What computes it."""
        return self._run or self._packet._function

    def name(self) -> str:
        """`aten::mul`, with the overload unless that is the default one."""
        overload = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._opname}{overload}"

    @property
    def is_view(self) -> bool:
        """Does the result look at an argument's memory?"""
        return not self._schema.is_mutable and any(
            a.alias_info is not None for a in self._schema.arguments)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', " \
               f"overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _overload_named, (self._opname, self._overloadname)


def _records(args: Any, kwargs: dict[str, Any]) -> bool:
    """Would a call with these arguments enter the graph?"""
    return grad_enabled() and any(
        t.requires_grad for arg in (*args, *kwargs.values())
        for t in (arg if type(arg) in (list, tuple) else (arg,)) if type(t) in tensor_types)


def _generic_schema(overload: OpOverload) -> str:
    """The schema of an op whose signature nobody has declared: its tensors, and what else."""
    op = overload.overloadpacket._op
    base = op.functional if op.inplace else op
    if base.variadic:
        tensors = ["Tensor[] tensors"]
    else:
        tensors = [f"Tensor{'(a)' if base.view and not i else ''} {t}"
                   for i, t in enumerate(base.tensors)]
    result = "Tensor(a)" if base.view else "Tensor"
    if op.inplace:
        tensors[0], result = f"Tensor(a!) {base.tensors[0]}", "Tensor(a!)"
    arguments = ", ".join([*tensors, *(f"Any {p}" for p in base.params)])
    name = overload.__name__.removesuffix(".default")
    return f"{name}({arguments}) -> {result}"


class OpOverloadPacket:
    """All overloads of one name: `aten.mul`."""

    def __init__(self, name: str, op: Op | None):
        self.__name__ = self._qualified = name
        self._op = op
        self._overloads: dict[str, OpOverload] = {}
        self.__module__ = "torch._ops.aten"

    @property
    def _function(self) -> Callable[..., Any]:
        op: Any = self._op
        return op.published or op.function

    def overloads(self) -> list[str]:
        """The names of the overloads that are declared."""
        _declare()
        return list(self._overloads) or ["default"]

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        if overload not in self._overloads:
            self.declare(overload)
        return self._overloads[overload]

    def declare(self, overload: str, schema: str = "",
                run: Callable[..., Any] | None = None) -> OpOverload:
        """Make an overload."""
        found = self._overloads[overload] = OpOverload(self, overload, schema, run)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def _declare() -> None:
    """See to it that the overloads that are shown are declared."""
    from flambeau._dispatch import common_forms, network_forms  # noqa: F401


def _overload_named(name: str, overload: str) -> OpOverload:
    return getattr(getattr(aten, name), overload)


class _OpNamespace:
    """The ops by name, as `torch.ops.aten`."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        _declare()                          # may bring the name
        if name in self.__dict__:
            return self.__dict__[name]
        op = None if name.startswith("__") else _op_named(name)
        if op is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        return self.packet(name, op)

    def packet(self, name: str, op: Op | None = None) -> OpOverloadPacket:
        """The packet of that name, made if there is none."""
        if name not in self.__dict__:
            self.__dict__[name] = OpOverloadPacket(name, op or _op_named(name))
        return self.__dict__[name]


def _op_named(name: str) -> Op | None:
    """The op that PyTorch's dispatcher knows as `name`: one of the table, an in-place form, or a
    public function or method of tensors that isn't an op of its own here."""
    def in_table() -> Op | None:
        return table.get(name) or table.get(f"nn.functional.{name}") \
            or getattr(table.get(name[:-1]) if name.endswith("_") else None, "inplace_op", None)

    if in_table() is None:
        load(lambda: in_table() is not None)
    op = in_table()
    function = None if op else public["torch"].get(name) or getattr(Tensor, name, None)
    if callable(function):
        op = Op(name, "composite", composite=True, function=function, call=function)
    elif op is None and name.startswith("_"):       # one of PyTorch's own parts
        def missing(*args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError(f"aten::{name} is an internal op of PyTorch that flambeau "
                                      "does not have")

        op = Op(name, "composite", composite=True, function=missing, call=missing)
    return op


aten: Any = _OpNamespace()

__all__ = ["OpOverload", "OpOverloadPacket", "aten"]
