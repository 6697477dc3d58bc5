"""The ops under the names of PyTorch's dispatcher: `torch.ops.aten.mul.Tensor`.

An `OpOverload` is one signature of an op, an `OpOverloadPacket` all that share a name, `ops` finds
them by namespace and name. Which op of flambeau is shown as which overload of `aten`, and with
which arguments, `dispatch.aten` says; ops of programs come from `flambeau.library`.

>>> ops.aten.add.Tensor, str(ops.aten.add.Tensor._schema)
(<OpOverload(op='aten.add', overload='Tensor')>, 'aten::add.Tensor(Tensor self, Tensor other, *, \
Scalar alpha=1) -> Tensor')
"""
from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from flambeau._library.operator import OperatorBase
from flambeau._support.scopes import within
from flambeau._support.symbolic_names import Tag
from flambeau.core import modes
from flambeau.core.calling import overrides
from flambeau.core.modes import grad_enabled
from flambeau.core.op import Op, public, table
from flambeau.core.tensor import Tensor, tensor_types
from flambeau.dispatch.aten.keys import DispatchKey
from flambeau.dispatch.aten.schemas import Recorded, recorded, recorded_overload
from flambeau.ops import load
from flambeau.schema.function_schema import FunctionSchema


def _fitted(overloads: list[tuple[FunctionSchema, tuple[str, ...]]], args: tuple[Any, ...],
            kwargs: dict[str, Any], is_overload: bool = False) -> Any:
    """The schema, and the arguments, as PyTorch's dispatcher binds them; RuntimeError if they fit
    none."""
    from flambeau.dispatch.aten.wrong_calls import fitted
    return fitted(overloads, args, kwargs, is_overload)


class OpOverload(OperatorBase):
    """One signature of an op, under the name that PyTorch's dispatcher has for it."""

    def __init__(self, packet: OpOverloadPacket, overload: str, schema: str = "",
                 run: Callable[..., Any] | None = None, tags: Any = None):
        super().__init__()
        self._packet, self._overloadname = packet, overload
        self._run = run
        self._text = schema
        self._given_tags = tags
        self.namespace, self._opname = packet.namespace, packet.__name__
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__module__ = f"torch._ops.{self.namespace}"
        self.__qualname__ = self._name = self.name()

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All overloads of the name."""
        return self._packet

    _overloadpacket = overloadpacket

    @property
    def _recorded(self) -> Recorded | None:
        return recorded_overload(self._opname, self._overloadname) if self.namespace == "aten" \
            else None

    @cached_property
    def _facts(self) -> tuple[str, ...] | None:
        """What is recorded of PyTorch's overload; None if it has no such."""
        return None if (known := self._recorded) is None else known.facts

    @cached_property
    def _schema(self) -> FunctionSchema:
        known = self._recorded
        text = known.schema if known is not None else self._text or _generic_schema(self)
        return FunctionSchema(text, self.namespace)

    @property
    def tags(self) -> list[Tag]:
        """What is said of the op: `Tag.pointwise`, `Tag.core` …"""
        if self._given_tags is not None:
            return self._given_tags
        facts = getattr(self._recorded, "facts", ())
        found = [Tag[f] for f in facts if f in Tag.__members__]
        return found if "not_compliant" in facts else [Tag.pt2_compliant_tag, *found]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if modes.function_modes.get() or overrides.overriding_args(args, kwargs):
            return overrides.handle_torch_function(self, (*args, *kwargs.values()), *args, **kwargs)
        if self._facts is not None and not self._schema.takes_exactly(args, kwargs):
            _, args, kwargs = _fitted([(self._schema, self._facts)], args, kwargs, True)
        stack: Any = modes.levels.get()
        shown = stack and stack[-1].makes
        if shown and not _records(args, kwargs):
            return within(modes.levels, stack[:-1], stack[-1].ask, self, args, kwargs)
        rules = overrides.find_override(args, kwargs)
        if rules is not None and not _records(args, kwargs):
            from flambeau.dispatch.aten import subclass
            if rules is subclass.run and not subclass.disabled.get():
                return subclass.show(self, *args, **kwargs)
        run = self.run
        return stack[-1].body(run, *args, **kwargs) if shown and self._overloadname == "Scalar" \
            else run(*args, **kwargs)

    @property
    def run(self) -> Callable[..., Any]:
        """What computes it."""
        return self._run or self._shown_run() or self._adapted or self._packet._function

    op = _op = run

    @cached_property
    def _adapted(self) -> Callable[..., Any] | None:
        if self._facts is None:
            return None
        from flambeau.dispatch.aten.overloads import adapted
        return adapted(self)

    def _shown_run(self) -> Callable[..., Any] | None:
        """What the op of that name says computes this overload, if it is shown as that."""
        declaration = getattr(self._packet._op, "declaration", None)
        for form in declaration.aten if declaration is not None else ():
            if form.schema.partition("(")[0] == self.__name__.removesuffix(".default"):
                return form.run
        return None

    def redispatch(self, keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call the op below the keys that are not in the set."""
        return self.run(*args, **kwargs)

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Run the body of a composite; NotImplemented for an op that is none."""
        if kernel := self.py_kernels.get(DispatchKey.CompositeImplicitAutograd):
            return kernel(*args, **kwargs)
        return self.run(*args, **kwargs) if self._can_decompose() else NotImplemented

    def _can_decompose(self) -> bool:
        """Is it made of other ops, which all see autograd?"""
        return DispatchKey.CompositeImplicitAutograd in self.py_kernels \
            or self._is_composite("Implicit")

    def _is_composite(self, kind: str) -> bool:
        return kind.lower() in getattr(self._recorded, "facts", ())

    def _has_own_kernel(self, key: str) -> bool:
        if key in ("CompositeImplicitAutograd", "CompositeExplicitAutograd"):
            return self._is_composite(key[9:17])
        return self.namespace == "aten" and not self._is_composite("Implicit") and key in (
            "CPU", "Meta", "AutogradCPU", "Autograd")

    def name(self) -> str:
        """`aten::mul`, with the overload unless that is the default one."""
        overload = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._opname}{overload}"

    @property
    def is_view(self) -> bool:
        """Does the result look at an argument's memory?"""
        return not self._schema.is_mutable and any(
            a.alias_info is not None for a in self._schema.arguments)

    @property
    def _nondeterministic_seeded(self) -> bool:
        return Tag.nondeterministic_seeded in self.tags

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', " \
               f"overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _overload_named, (self.namespace, self._opname, self._overloadname)


class TorchBindOpOverload(OpOverload):
    """An overload that takes objects of custom classes."""


def _records(args: Any, kwargs: dict[str, Any]) -> bool:
    """Would a call with these arguments enter the graph?"""
    return grad_enabled() and any(
        t.requires_grad for arg in (*args, *kwargs.values())
        for t in (arg if type(arg) in (list, tuple) else (arg,)) if type(t) in tensor_types)


def _generic_schema(overload: OpOverload) -> str:
    """The schema of an op whose signature nobody has declared: its tensors, and what else."""
    op: Any = overload.overloadpacket._op
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

    def __init__(self, name: str, op: Op | None, namespace: str = "aten",
                 call: Callable[..., Any] | None = None):
        self.__name__, self.namespace = name, namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self._op, self._call = op, call
        self._overloads: dict[str, OpOverload] = {}
        self.__module__ = f"torch._ops.{namespace}"

    @property
    def _function(self) -> Callable[..., Any]:
        op: Any = self._op
        return op.published or op.function

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        if self.namespace != "aten":
            return list(self._overloads)
        return list(recorded().get(self.__name__, self._overloads)) or ["default"]

    _overload_names = property(overloads)

    @property
    def _schemas(self) -> dict[str, FunctionSchema]:
        return {"" if name == "default" else name: self.overload(name)._schema
                for name in self.overloads()}

    @cached_property
    def _recorded_overloads(self) -> list[tuple[FunctionSchema, tuple[str, ...]]]:
        """The schemas that PyTorch's dispatcher has, with what else is recorded of each, in the
        order in which they are tried."""
        known = recorded().get(self.__name__, {}) if self.namespace == "aten" else {}
        return sorted([(self.overload(name)._schema, one.facts) for name, one in known.items()],
                      key=lambda one: "generated" in one[1])

    @property
    def is_missing(self) -> bool:
        """Is it an op of PyTorch that flambeau does not have?"""
        return self._op is not None and getattr(self._op.call, "__name__", "") == "missing"

    @cached_property
    def _run_as_overloads(self) -> frozenset[str]:
        """The overloads that the function of the op does not take as it is."""
        return frozenset([schema.overload_name for schema, facts in self._recorded_overloads
                          if self.is_missing or "out" in facts])

    @property
    def op(self) -> Callable[..., Any]:
        """What a call of the packet runs."""
        return self._call or self._function

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        if overload not in self._overloads:
            known = self.namespace == "aten" and recorded().get(self.__name__)
            if (known and overload not in known) or self.namespace != "aten":
                raise AttributeError(f"The underlying op of '{self}' has no overload name "
                                     f"'{overload}'")
        return self.overload(overload)

    def overload(self, overload: str) -> OpOverload:
        """The overload of that name, made if there is none."""
        return self._overloads.get(overload) or self.declare(overload)

    def declare(self, overload: str, schema: str = "", run: Callable[..., Any] | None = None,
                tags: Any = None) -> OpOverload:
        """Make an overload; one of aten's that is there already keeps its identity, since programs
        have it in tables."""
        if (found := self._overloads.get(overload)) is None or self.namespace != "aten":
            found = self._overloads[overload] = OpOverload(self, overload, schema, run, tags)
        else:
            found._text, found._run, found._given_tags = schema, run, tags
            vars(found).pop("_schema", None)
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        for schema, _ in self._recorded_overloads:
            if schema.takes_exactly(args, kwargs):
                break
        else:
            if not self._recorded_overloads or modes.function_modes.get() \
                    or overrides.overriding_args(args, kwargs):
                return self.op(*args, **kwargs)
            schema, args, kwargs = _fitted(self._recorded_overloads, args, kwargs)
        if schema.overload_name in self._run_as_overloads:
            return self.overload(schema.overload_name or "default").run(*args, **kwargs)
        return self.op(*args, **kwargs)

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.overloads()})

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> Any:
        return _packet_named, (self.namespace, self.__name__)


def _packet_named(namespace: str, name: str) -> OpOverloadPacket:
    return getattr(getattr(ops, namespace), name)


def _overload_named(namespace: str, name: str, overload: str) -> OpOverload:
    return getattr(_packet_named(namespace, name), overload)


class _OpNamespace(types.ModuleType):
    """The ops of one namespace, by name: `torch.ops.aten`."""

    __file__ = "torch.ops"

    def __init__(self, name: str):
        super().__init__(f"torch.ops.{name}")
        self.name = name
        self._owner: Any = None                 # the library that has defined the namespace

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":
            raise AttributeError(name)
        prepare = _PREPARED.get(self.name)
        if prepare is not None:
            importlib.import_module(prepare)    # may bring the name
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")

    def __iter__(self) -> Iterator[str]:
        return iter([n for n, v in vars(self).items() if isinstance(v, OpOverloadPacket)])

    def packet(self, name: str, op: Op | None = None) -> OpOverloadPacket:
        """The packet of that name, made if there is none."""
        if name not in self.__dict__:
            self.__dict__[name] = OpOverloadPacket(name, op, self.name)
        return self.__dict__[name]


# Modules that put the ops of a namespace where they are looked for.
_PREPARED = {"c10d": "flambeau.distributed._c10d.ops.dispatcher",
             "prims": "flambeau._prims", "prim": "flambeau._prims",
             "profiler": "flambeau.autograd._record_function_ops",
             "quantized_decomposed": "flambeau.ao.quantization.fx._decomposed",
             "bucketing": "flambeau._inductor.fx_passes.bucketing",
             "ao": "flambeau._functorch._activation_offloading.offload_ops",
             **dict.fromkeys(
                 ("_c10d_functional", "_c10d_functional_autograd", "c10d_functional"),
                 "flambeau.distributed._functional_collectives"),
             "_dtensor": "flambeau.distributed.tensor._collective_utils",
             "symm_mem": "flambeau.distributed._symmetric_memory"}


class _AtenNamespace(_OpNamespace):
    """The ops of `aten`: those of flambeau, under PyTorch's names."""

    def __init__(self) -> None:
        super().__init__("aten")

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name in self.__dict__:
            return self.__dict__[name]
        op = None if name.startswith("__") and not name.endswith("__") else _op_named(name)
        if op is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        return self.packet(name, op)

    def packet(self, name: str, op: Op | None = None) -> OpOverloadPacket:
        if name not in self.__dict__:
            self.__dict__[name] = OpOverloadPacket(name, op or _op_named(name))
        return self.__dict__[name]


def _inplace_of(op: Op | None) -> Op | None:
    """The op that writes the result of another into its first tensor, if there is one."""
    if op is not None and op.declaration is not None and op.declaration.inplace:
        return op.declaration.inplace_ops[0]
    return getattr(op, "inplace_op", None)


def _op_named(name: str) -> Op | None:
    """The op that PyTorch's dispatcher knows as `name`: one of the table, an in-place form, or a
    public function or method of tensors that isn't an op of its own here."""
    def in_table() -> Op | None:
        return table.get(name) or table.get(f"nn.functional.{name}") \
            or (_inplace_of(table.get(name[:-1])) if name.endswith("_") else None)

    if name in ("__path__", "__all__", "__wrapped__"):
        return None
    if in_table() is None:
        load(lambda: in_table() is not None)
    if in_table() is None and "sparse" in name:
        importlib.import_module("flambeau.sparse")      # which has ops of its own
    op = in_table()
    function = None if op else public["torch"].get(name) or getattr(Tensor, name, None)
    if op is None and not callable(function):
        from flambeau.dispatch.aten import functions
        if name in recorded() or name == "is_non_overlapping_and_dense":   # which isn't recorded
            function = functions.find_function(name)
    if callable(function):
        op = Op(name, "composite", composite=True, function=function, call=function)
    elif op is None and name in recorded():
        def missing(*args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError(f"aten::{name} is an op of PyTorch's dispatcher that "
                                      "flambeau does not have")

        op = Op(name, "composite", composite=True, function=missing, call=missing)
    return op


_sought: set[str] = set()


def private_function(name: str) -> OpOverloadPacket | None:
    """The op behind a private name of `torch`, such as `torch._stack`, which the dispatcher knows
    too; None if there is none, or if it is one that flambeau does not have."""
    if name in _sought or name not in recorded():
        return None
    _sought.add(name)                   # which the search itself asks `torch` for
    try:
        op = _op_named(name)
    finally:
        _sought.discard(name)
    packet = None if op is None else ops.aten.packet(name, op)
    return None if packet is None or packet.is_missing else packet


class _Ops(types.ModuleType):
    """`torch.ops`: the namespaces of ops. Each name is one; what is in it, libraries define."""

    __file__ = "_ops.py"
    __path__: list[str] = []        # under `torch.ops`, the alias finds modules of `flambeau.ops`

    def __init__(self) -> None:
        super().__init__("torch.ops")

    def __repr__(self) -> str:
        return f"<module 'torch.ops' from '{self.__file__}'>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
        if name == "higher_order":
            from flambeau._library.higher_order import higher_order
            found: Any = higher_order
        elif name == "quantized":
            found = importlib.import_module("flambeau.ops.quantized.library")
        else:
            found = _OpNamespace(name)
        self.__dict__[name] = found
        return found

    def import_module(self, module: str) -> None:
        """Import a module that registers ops."""
        importlib.import_module(module)

    def load_library(self, path: Any) -> None:
        """Make the ops of an extension known, by the path of its file."""
        from flambeau._extensions import load_library
        load_library(path)

    @property
    def loaded_libraries(self) -> set[str]:
        """The files that `load_library` has been given."""
        from flambeau._extensions import loaded_libraries
        return loaded_libraries


ops = _Ops()
aten: Any = vars(ops).setdefault("aten", _AtenNamespace())

_LATE = ("HigherOrderOperator", "_HigherOrderNamespace", "_higher_order_ops")


def __getattr__(name: str) -> Any:
    """Higher-order ops, which stand in a module of their own."""
    if name in _LATE:
        return getattr(importlib.import_module("flambeau._library.higher_order"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "OperatorBase",  # noqa: F822
           "TorchBindOpOverload", "aten", "ops"]
