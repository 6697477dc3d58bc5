"""A public function, or a method, in Python: what every call goes through.

(1) Does a level, a mode or an overriding type want the call? (2) The values are bound to one of the
function's signatures, or PyTorch's TypeError is raised. (3) They become canonical. (4) The op of
that signature runs. `csrc/calling/function.cpp` does the same for plain tensors that nobody
watches, and leaves all else to this twin; ``FLAMBEAU_FAST=0`` leaves C out.
"""
from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from inspect import Signature as InspectSignature
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau._support.source_locations import native
from flambeau.core import devices, dtypes, late_bound
from flambeau.core.calling import overrides
from flambeau.core.calling.call import store_out
from flambeau.core.calling.overrides import intercept
from flambeau.core.generator import Generator
from flambeau.core.modes import interceptors
from flambeau.core.op import Op
from flambeau.core.shapes import Size
from flambeau.core.tensor import Tensor, wrap
from flambeau.core.type_info import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from flambeau.core.views import check_inplace
from flambeau.dispatch.canonical import (
    Overload,
    make_fast_binder,
    may_be_number,
    with_out_dtype,
)
from flambeau.kernels._extension import Misfit
from flambeau.kernels.refused import characters, no_kernel
from flambeau.schema import errors
from flambeau.schema.arguments import NoFurtherOverload, bind
from flambeau.schema.parser import MISSING, Parameter
from flambeau.schema.signature import NUMPY_NAMES, Signature, python_signature

if TYPE_CHECKING:
    from flambeau.dispatch.declaration import Alias, Declaration


# ---- calls ---------------------------------------------------------------------------------------

class Function:
    """A function, or with `bound` the method, of all overloads of a declaration."""

    published: Any              # what users call
    writes = False              # to its first tensor?
    tensor_kind = 0             # of parameters, to C: plain tensors
    operates = False            # as an operator, it says NotImplemented for a TypeError

    def __init__(self, declaration: Declaration | Alias, bound: bool):
        self.declaration, self.bound = declaration, bound
        self.name = self.__name__ = self.__qualname__ = declaration.name
        self.__module__, self.__doc__ = declaration.module, declaration.doc
        self.twin = self

    @property
    def numbers(self) -> bool:
        """Do numbers stand for tensors?"""
        return getattr(self.declaration, "numbers", False)

    @cached_property
    def op(self) -> Op:
        """That of the first overload."""
        return self.declaration.ops[0]

    @cached_property
    def seen(self) -> Op:
        """The op of a call, before its overload is known, as modes and overriding types see it."""
        op = copy(self.op)
        op.published, op.binder = self.published, self
        if op.kind == "creation":
            op.direct = lambda *args, **kwargs: self.run(args, kwargs)
        return op

    @cached_property
    def overloads(self) -> tuple[Overload, ...]:
        """In the order in which they are tried."""
        return self.declaration.overloads(self.bound)

    @property
    def __signature__(self) -> InspectSignature:
        """What `inspect` and editors show."""
        shown = [o for o in self.overloads if not o.signature.is_deprecated]
        several = any(o.signature.takes_numbers_one_by_one for o in shown)
        found = python_signature([o.parameters for o in shown], "Any", several, self.numbers)
        return found.replace(parameters=[
            p.replace(annotation=Tensor) if p.annotation == "Tensor" else p
            for p in found.parameters.values()])

    @cached_property
    def takes_nothing(self) -> bool:
        """Is this a method without arguments?"""
        return self.bound and not any(o.signature.parameters for o in self.overloads)

    @cached_property
    def quick(self) -> Any:
        """What binds the calls that surely fit, for each overload."""
        return [(make_fast_binder(o, self.numbers), o.takes, o) for o in self.overloads
                if not o.signature.is_deprecated]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.operates:
            try:
                return self.call(args, kwargs)
            except TypeError:
                if not (args and (isinstance(args[0], Tensor) or self.name in _TAKES_ANY)):
                    raise
                array = args[1] if self.name == "__eq__" and len(args) == 2 else None
                if isinstance(array, np.ndarray) and array.dtype.kind in "biufc":
                    return self.call((args[0], wrap(array)), {})    # no other operator does this
                return NotImplemented
        return self.call(args, kwargs)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if interceptors:
            return intercept(self.seen, args, kwargs, self.takes_nothing)
        if overrides.needs_override(args, kwargs):
            return overrides.call(self.seen, args, kwargs)
        return self.run(args, kwargs)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call, when no mode and no type has taken it over."""
        try:
            return self.compute(args, kwargs)
        except (IndexError, RuntimeError) as error:
            if getattr(self.declaration, "first", None) is not None:
                overload, values = self.choose(args, kwargs)
                raise_value_errors(overload.op, values)
            if isinstance(error, Misfit):
                raise late_bound.too_large((*args, *kwargs.values()), error) or error from None
            raise
        except (ValueError, MemoryError) as error:
            better = late_bound.too_large((*args, *kwargs.values()), error)
            if better is None:
                raise
            raise better from None

    def compute(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The op that the arguments fit, and its result."""
        op, canonical, out = self.bind(args, kwargs)
        try:
            result = op.call(*canonical) if self.writes or op.composite else op.plain(canonical)
        except (IndexError, RuntimeError, TypeError) as error:
            if out is not None:
                late_bound.refuse_out(out, op, canonical, error)
            raise
        return result if out is None else store_out(out, op, result, canonical)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any], shown: bool = False
             ) -> tuple[Op, Any, Any]:
        """The op of a call, its canonical arguments, and `out`; if the op is to be `shown`, the
        arguments know what was given."""
        overload, values = self.choose(args, kwargs)
        op = overload.op
        out = None if overload.out < 0 else values[overload.out]
        if isinstance(out, (tuple, list)):
            size = overload.parameters[overload.out].size
            if size and len(out) != size:
                raise TypeError(f"expected tuple of {size} elements but got {len(out)}")
        try:
            canonical = self.canonical(overload, values)
        except (IndexError, RuntimeError) as error:
            if out is not None:
                late_bound.refuse_out(out, op, tuple(values), error)
            refuse_type(op, values)
            raise
        if isinstance(out, Tensor) and op.declaration.typed_by_out:
            canonical = with_out_dtype(out, op, canonical)
        return op, overload.shown(canonical, values) if shown else canonical, out

    def canonical(self, overload: Overload, values: list[Any]) -> tuple[Any, ...]:
        """What the op of an overload gets for users' values."""
        return overload.canonical(values)

    def choose(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Overload, list[Any]]:
        """The overload of a call, and the values of its parameters.

        TypeError, in PyTorch's words, if the call fits no signature.
        """
        given = len(args) + len(kwargs)
        for quick, takes, overload in self.quick:       # the deprecated ones are not among them
            if given in takes:
                values = quick(args, kwargs)
                if values is not None:
                    return overload, values
        said = []
        before, args = (args[:1], args[1:]) if self.bound else ((), args)
        if self.bound and not (before and isinstance(before[0], Tensor)):
            raise TypeError(errors.no_instance(self.name, before))
        for overload in self.overloads:
            try:
                values = bind(overload.signature, self.name, args, kwargs,
                              numbers_as_tensors=self.numbers)
            except NoFurtherOverload as error:
                raise TypeError(str(error)) from None
            if not isinstance(values, str):
                if overload.signature.is_deprecated:
                    warn_of_overload(self.name, overload.signature, [
                        o.signature for o in self.overloads if not o.signature.is_deprecated])
                return overload, [*before, *values]
            said.append(values)
            if "failed to unpack" in values:
                break
        raise self.argument_error(said, args, kwargs)

    def argument_error(self, said: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]
                       ) -> TypeError:
        """The error of a call that fits no signature, each of which has `said` why."""
        if said and "failed to unpack" in said[-1]:
            return TypeError(said[-1])
        signatures = [overload.signature for overload in self.overloads]
        if self.takes_nothing:
            return TypeError(errors.takes_nothing(self.name, len(args), bool(kwargs)))
        return TypeError(errors.fits_none(self.name, signatures, said, args, kwargs))

    def described(self) -> Any:
        """The overloads as C reads them; None if all calls are the twin's."""
        kind = "inplace" if self.writes else "op"
        declared = [o.op.functional.declaration for o in self.overloads if self.writes]
        if any(d.needs_preparing and d.inplace_first is not None for d in declared):
            return None
        return [describe(o, kind=kind, numbers=self.numbers, tensors=self.tensor_kind)
                for o in self.overloads if not o.signature.is_deprecated]

    def refused_by(self, instance: Any, count: int, named: bool) -> TypeError | None:
        """The error of `f = instance.method; f(…)` with `count` arguments and perhaps some by name,
        which PyTorch says otherwise than that of `instance.method(…)`: C asks, which can tell them
        apart. None if there is nothing to be said but what is said of the function."""
        if not self.takes_nothing:
            return None
        return TypeError(errors.takes_nothing(self.name, count, named, type(instance).__name__))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<method '{self.__name__}' of 'torch._C.TensorBase' objects>" if self.bound else \
            f"<built-in method {self.__name__} of type object at {id(self):#x}>"

    def __reduce__(self) -> str:
        return self.__qualname__            # a global of its module, as functions are


class InplaceFunction(Function):
    """`cumsum_` of `cumsum`: the result is written to the first tensor."""

    writes = True

    def __init__(self, declaration: Declaration | Alias, bound: bool):
        super().__init__(declaration, bound)
        self.name = self.__name__ = self.__qualname__ = f"{declaration.name}_"
        self.__module__ = "torch" if self.bound else declaration.module
        self.__doc__ = f"Write the result of `{declaration.name}` into this tensor; returns that."

    @cached_property
    def op(self) -> Op:
        return self.declaration.inplace_ops[0]

    @cached_property
    def overloads(self) -> tuple[Overload, ...]:
        inplace = {op.functional: op for op in self.declaration.inplace_ops}
        return tuple([o.leading_to(inplace[o.op])
                      for o in self.declaration.overloads(self.bound, writes=True)
                      if o.op in inplace])

    def compute(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        op, canonical, _ = self.bind(args, kwargs)
        written = args[0] if args else kwargs.get("input", kwargs.get("self"))
        if canonical[0] is not written and type(canonical[0]) is type(written) is Tensor:
            # what is computed with is a copy of another type
            return late_bound.write_result(op, written, args[1:], kwargs, public=True)
        return op.call(*canonical)

    def canonical(self, overload: Overload, values: list[Any]) -> tuple[Any, ...]:
        first = overload.op.functional.declaration.inplace_first
        try:
            if first is not None:
                first(*[a.constant if a.parameter < 0 else values[a.parameter]
                        for a in overload.arguments])
            return overload.canonical(values)
        except (IndexError, RuntimeError):
            written = values[overload.arguments[0].parameter]
            if type(written) is Tensor:
                check_inplace(written, False, apart=False)      # autograd's refusals come first
            raise


def warn_of_overload(name: str, signature: Signature, others: list[Signature]) -> None:
    """Once in a program: further such calls of any function are not spoken of."""
    text = f"This overload of {name} is deprecated:\n\t{name}{signature}"
    if others:
        text += "\nConsider using one of the following signatures instead:" + "".join(
            [f"\n\t{name}{other}" for other in others])
    warn_once(text, key="deprecated overload")


def raise_value_errors(op: Op, values: list[Any]) -> None:
    """Raise what PyTorch says of users' values before it looks at dimensions."""
    first = getattr(op.declaration, "first", None)
    if first is not None:
        first(*values[:len(op.schema.parameters)])


def refuse_type(op: Op, values: list[Any]) -> None:
    """Raise what the op says of the type of the first tensor's elements, where that is a sentence:
    PyTorch says it before it looks at dimensions. What is so "on CPU" its kernels say, later."""
    raise_value_errors(op, values)
    if op.refuses and isinstance(values[0], Tensor):
        said, kinds = op.refuses
        if not isinstance(said, str) and said.__code__.co_argcount != 1:
            return                      # that asks for the dimensions, too
        x = values[0]._array
        if x.dtype.char in characters(kinds):
            said = said if isinstance(said, str) else said(x)
            if " " in said and not said.endswith("on CPU"):
                raise no_kernel(said, x.dtype)


# ---- the same in C -------------------------------------------------------------------------------

# The order of `Kind` in `csrc/binding/binder.h`; a list of any other kind is left to the twin.
_KINDS = {"Tensor": 0, "Scalar": 2, "int": 3, "float": 5, "bool": 6, "ScalarType": 7, "Device": 8,
          "Layout": 9, "MemoryFormat": 10, "str": 11, "Generator": 12, "object": 13, "PyObject": 13}
_LISTS = {"Tensor": 1, "int": 4, "float": 15, "bool": 16, "Scalar": 17}
_TENSOR_OR_NUMBER, OWN_TENSOR, _OTHER = 14, 18, 19


def describe(overload: Overload, target: Any = None, kind: str = "op", facts: Any = None,
             numbers: bool = False, tensors: int = 0) -> Any:
    """An overload as C reads it: what it calls (the op, if nothing else is said), and how. Do
    `numbers` fit where tensors are wanted? `tensors`: the kind of those parameters."""
    parameters = [_describe_parameter(p, numbers, tensors) for p in overload.parameters]
    arguments = [(a.parameter, a.role, a.constant) for a in overload.arguments]
    op = overload.op.functional or overload.op
    declared = op.declaration
    if kind != "factory" and declared.needs_preparing:
        kind, facts = "prepared" if kind == "op" else "prepared inplace", declared.canonical
    elif kind == "op" and declared.in_c is not None:
        facts = declared.in_c()
    own = declared.typed_by_out or (kind == "inplace" and declared.inplace_first)
    stored = op if op.composite and not own else None
    return parameters, arguments, target or op.call, overload.out, kind, facts, stored


def _describe_parameter(p: Parameter, numbers: bool, tensors: int) -> Any:
    kind = (_LISTS if p.is_list else _KINDS).get(p.kind, _OTHER) or tensors
    if numbers and kind == 0 and may_be_number(p):
        kind = _TENSOR_OR_NUMBER
    value = p.value
    return (kind, p.size, p.nullable, p.by_name, p.name, NUMPY_NAMES.get(p.name),
            value is not MISSING, None if value is MISSING else value)


def in_front(twin: Function) -> Callable[..., Any]:
    """The callable that users get: C, if the extension is there, which calls the `twin`."""
    if native is None:
        return twin

    def overloads() -> Any:
        return twin.described()

    made: Any = native.make_function(twin, overloads, twin.bound, twin.operates)
    made.__name__ = made.__qualname__ = twin.__name__
    made.__doc__, made.__module__ = twin.__doc__, twin.__module__
    return made


# Operators that overriding types see themselves, and not as the method of another name.
_SEEN = frozenset("""
    __eq__ __pow__ __ipow__ __floordiv__ __and__ __or__ __xor__ __lshift__ __rshift__
    __iand__ __ior__ __ixor__ __ilshift__ __irshift__
""".split())

# Those that say NotImplemented whatever their first operand is: they are no slots of a type.
_TAKES_ANY = frozenset(("__rsub__", "__pow__", "__ipow__"))


def operator(twin: Function, symbol: str) -> Callable[..., Any]:
    """The method for an operator: overriding types see the method that has a name, but for those
    of `_SEEN`; with one operand it is that method."""
    named = getattr(Tensor, twin.name) if twin.declaration.method and symbol not in _SEEN else None
    if named is not None and "," not in twin.declaration.texts[0].rpartition("->")[0]:
        return named                            # nothing is parsed before the first call
    called = twin.name if symbol in ("__pow__", "__ipow__") else symbol     # as PyTorch calls them
    twin.name, twin.__name__, twin.__qualname__ = symbol, called, called
    twin.operates = True
    made = in_front(twin)
    twin.published = named or made
    return made


if native is not None:
    native.know_types(dtypes.dtype, devices.device, layout, memory_format, Generator, Size,
                      strided, preserve_format, contiguous_format, channels_last, channels_last_3d)
