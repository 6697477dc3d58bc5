"""Functions that make tensors of sizes and numbers: the options that all of them take, once.

    zeros = factory(f"zeros(SymInt[] size, *, {OPTIONS}) -> Tensor", kernel=np.zeros)
    zeros_like = factory(f"zeros_like(Tensor self, *, {OPTIONS}, {FORMAT}) -> Tensor",
                         kernel=np.zeros, like=True)

A kernel gets the other arguments (of a function that is `like` a tensor, that tensor's shape
first) and a NumPy type, and gives an array. `csrc/calling/factory.cpp` does the same for tensors on
the CPU that nobody watches.
"""
from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from flambeau._support.settings import warn_of_complex_half
from flambeau._support.source_locations import native
from flambeau.core import devices, dtypes, late_bound, type_info
from flambeau.core.calling.call import store_out
from flambeau.core.dtypes import as_numpy_dtype, default_float, from_numpy_dtype
from flambeau.core.modes import is_inference_mode_enabled
from flambeau.core.op import Op, module_of, table
from flambeau.core.promotion import type_name
from flambeau.core.shapes import extents_of
from flambeau.core.tensor import LEAF, Tensor, alias, as_leaf, new_tensor
from flambeau.dispatch.canonical import AS_IS, EXTENTS, NUMBER, Argument, Overload
from flambeau.dispatch.declaration import namespace_of, out_variant, publish
from flambeau.dispatch.facts import Record, check_words
from flambeau.dispatch.function import Function, describe
from flambeau.kernels.moving import views
from flambeau.schema.parser import Schema, parse
from flambeau.schema.signature import function_signature, in_order, method_signature
from flambeau.transforms import meta

OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
FORMAT = "MemoryFormat? memory_format=None"
_OWN = ("dtype", "layout", "device", "pin_memory", "requires_grad", "memory_format", "out")
# The same order is that of `Typed` in `csrc/calling/factory.cpp`.
_TYPED = ("default", "fixed", "self", "value", "whole", "floating")


class Factory(Record):
    """What is declared of a function that makes tensors.

    texts       a schema for each overload, in PyTorch's notation
    kernel      canonical arguments and a NumPy type to an array; raises what PyTorch would
    negative    what is said of negative extents, where that is another text
    hollow      the kernel of tensors without values, where strides are asked for
    native      the name of a kernel in C for what is usual: it says NotImplemented of the rest
    type        the type of elements if none is given: "default", "floating" (that, or the complex
                one of complex numbers), "value" (that of the last argument), "whole" (int64 if all
                arguments are integers), or a NumPy type. With a tensor `self` it is that tensor's
    like        is the shape that of the tensor?
    fill        instead of a kernel: of the arguments but the size, and a type, what writes random
                numbers into an array
    drawing     what makes such a tensor as levels of `vmap` want it, and what fills `out`
    slices      what computes the tensor where an argument that stands for a number is one slice
                of a batch: of the canonical arguments and `dtype`
    missing     values of canonical arguments that an overload lacks
    out         is there an `out=` form? If not of all overloads, a tuple of their names
    counted     does `out` keep another shape, if it has as many elements?
    method      is it a method rather than a function?
    """
    texts: tuple[str, ...]
    kernel: Any = None
    hollow: Any = None
    fill: Any = None
    drawing: Any = None
    native: str = ""
    negative: str = ""
    type: Any = "default"
    like: bool = False
    slices: Any = None
    missing: dict[str, Any] = {}
    out: Any = False
    counted: bool = False
    method: bool = False
    doc: str = ""
    published: Any = None
    typed_by_out = False
    out_device: str = "device type {found} does not match device type of out parameter ({out})"
    out_reported_as: Any = ""
    overlap: str = ""
    out_rows = False
    out_resized: Any = False
    out_type = out_cast = autocast = ""                         # nothing is said of these
    explicit = True                     # modes that look below autograd see the call
    aten: tuple[Any, ...] = ()         # … as it is
    aten_calls: Any = None

    def __init__(self, **facts: Any) -> None:
        super().__init__(**facts)
        check_words(facts)
        self.name = self.texts[0].partition("(")[0].partition(".")[0]
        self.function = not self.method
        self.namespace = namespace_of(self.name)
        self.module = module_of(self.namespace)
        self.out_reported_as = self.out_reported_as or f"aten::{self.name}"
        if self.fill is not None:
            self.kernel = self._filled

    @cached_property
    def schemas(self) -> tuple[Schema, ...]:
        return tuple([parse(text) for text in self.texts])

    @cached_property
    def op(self) -> Op:
        op = Op(self.name, "creation", key=self.name, composite=True, declaration=self,
                namespace=self.namespace if self.function else None, doc=self.doc)
        op.function = op.call = op.published = self.published
        op.direct = op.body = self.published.twin.unwatched
        return op

    @property
    def ops(self) -> tuple[Op, ...]:
        return (self.op,)

    # ---- its overloads ---------------------------------------------------------------------------

    def overloads(self, bound: bool) -> tuple[Overload, ...]:
        """How the function, or the method, is called, in the order in which that is tried."""
        made = [self.overload(schema, bound) for schema in self.schemas]
        order = in_order([overload.signature for overload in made])
        return tuple(sorted(made, key=lambda overload: order.index(overload.signature)))

    def overload(self, schema: Schema, bound: bool) -> Overload:
        stores = self.out is True or (bool(self.out) and schema.overload in self.out)
        signature = method_signature(schema) if bound else function_signature(
            schema, out_variant(schema) if stores else None)
        own = (schema.parameters[0], *signature.parameters) if bound else signature.parameters
        names = [p.name for p in own]
        return Overload(signature, own, self.arguments(names), self.op,
                        names.index("out") if "out" in names else -1)

    @cached_property
    def names(self) -> list[str]:
        """Of the canonical arguments: those of the longest overload."""
        longest = max(self.schemas, key=lambda s: len(s.parameters)).parameters
        return [p.name for p in longest if p.name not in (*_OWN, "self", "names")]

    def arguments(self, names: list[str]) -> tuple[Argument, ...]:
        tensors = {p.name for schema in self.schemas for p in schema.parameters if p.is_tensor}
        return tuple([Argument(names.index(n) if n in names else -1, EXTENTS if n == "size" else
                               NUMBER if n in tensors else AS_IS, self.missing.get(n))
                      for n in self.names])

    def facts(self, overload: Overload) -> tuple[Any, ...]:
        """What C is told."""
        names = ["self" if p.name == "input" else p.name for p in overload.parameters]
        own = "self" if "self" in names else self.type
        places = [names.index(n) if n in names else -1 for n in ("self", *_OWN[:-1])]
        by_size = self.fill is None and (self.like or self.names[:1] == ["size"])
        return (_TYPED.index(own) if isinstance(own, str) else 1, own,
                _meta_tensor if by_size and self.hollow is None else None, self.like,
                self.fill is not None, *places)

    # ---- a call ----------------------------------------------------------------------------------

    def _filled(self, *canonical: Any) -> np.ndarray:
        """An array of random numbers."""
        shape, given = self._split_shape(canonical)
        array = np.empty(shape, canonical[-1])
        self.fill(*given)(array)
        return array

    def _split_shape(self, canonical: Any) -> tuple[Any, Any]:
        """The shape that arguments ask for, and those that `fill` takes."""
        if self.like or "size" in self.names:
            at = 0 if self.like else self.names.index("size")
            return canonical[at], (*canonical[:at], *canonical[at + 1:])
        return (canonical[0],), canonical

    def make(self, overload: Overload, values: list[Any]) -> Tensor:
        """The tensor that the values of a call ask for."""
        names = ["self" if p.name == "input" else p.name for p in overload.parameters]
        options = {n: v for n, v in zip(names, values) if n in (*_OWN, "self")}
        own, out = options.get("self"), options.get("out")
        if own is not None and hasattr(own, "_level") and self.fill is None:
            return self._of_slices(own, overload, values)
        canonical = [a.constant if a.parameter < 0 else values[a.parameter]
                     for a in overload.arguments]
        if self.slices is not None and any(hasattr(v, "_level") for v in canonical):
            return self.slices(*canonical, options["dtype"])
        canonical = [extents_of(v, said=self.negative) if a.role == EXTENTS else
                     self._number(v, n, values) if a.role == NUMBER else v
                     for n, a, v in zip(self.names, overload.arguments, canonical)]
        if self.like:
            canonical.insert(0, own._array.shape)
        array_type = self._type(own, out, options.get("dtype"), canonical)
        if array_type.kind == "W":
            warn_of_complex_half()
        where = devices.checked(own._device if own is not None and options["device"] is None
                                else options["device"])
        if options.get("layout") not in (None, type_info.strided):
            return late_bound.without_entries(
                self.name, canonical[0], array_type, options["layout"],
                bool(options.get("requires_grad")), where)
        if options.get("pin_memory"):
            raise devices.cannot_pin()
        memory_format, wanted = options.get("memory_format"), bool(options.get("requires_grad"))
        leaf = wanted and out is None
        if self.fill is not None:
            shape, given = self._split_shape((*canonical, array_type))
            keeps = self.like and memory_format is not type_info.contiguous_format
            if out is not None:
                drawn = self.drawing[1](self.name, out, shape, self.fill(*given))
                return as_leaf(drawn) if wanted else drawn
            result = self.drawing[0](shape, array_type, self.fill(*given), where,
                                     own._array if keeps else None, leaf)
        else:
            result = finish(self._array(own, canonical, array_type, where, options), where, leaf)
        if memory_format not in (None, type_info.preserve_format, type_info.contiguous_format):
            result = result.contiguous(memory_format=memory_format)
        if out is not None:
            if self.counted and out._array.size == result._array.size:
                result = result.view(out._array.shape)
            result = store_out(out, self.op, result)
        return as_leaf(result) if wanted and not leaf else result

    def _array(self, own: Any, canonical: list[Any], array_type: np.dtype, where: Any,
               options: dict[str, Any]) -> np.ndarray:
        kernel = self.kernel
        keeps = self.like and options.get("memory_format") in (None, type_info.preserve_format)
        shape = canonical[0] if canonical else ()
        if not keeps or views.is_row_major(own._array):
            if where is not devices.cpu and (self.like or "size" in self.names):
                return meta.meta_array(shape, array_type) if self.hollow is None \
                    else self.hollow(*canonical, array_type)
            return kernel(*canonical, array_type)
        if where is not devices.cpu:
            return meta.enlarged(meta.miniature(own._array), shape, array_type)
        if views.is_dense(own._array):
            made = kernel((own._array.size,), *canonical[1:], array_type)
            return views.laid_out_like(own._array, made)
        order = views.memory_order(own._array)
        made = kernel([shape[d] for d in order], *canonical[1:], array_type)
        return views.in_order(made, order)

    def _of_slices(self, own: Any, overload: Overload, values: list[Any]) -> Tensor:
        """Under `vmap`: for each slice."""
        if self.like:
            return own._level.wrap(self.make(overload, [own._value, *values[1:]]), own._bdim)
        below = own._value
        while hasattr(below, "_value"):
            below = below._value
        return own._level.repeated(self.make(overload, [below, *values[1:]]))

    def _number(self, value: Any, name: str, values: list[Any]) -> Any:
        """The number in a tensor, or the value itself."""
        if not isinstance(value, Tensor):
            return value
        if value._array.ndim:
            raise RuntimeError(f"{self.name} only supports 0-dimensional start and end tensors, "
                               "but got " + " and ".join([
                                   f"{n} with {v._array.ndim} dimension(s)"
                                   for n, v in zip(("start", "end"), values)
                                   if isinstance(v, Tensor)]) + ".")
        return value.item()

    def _type(self, own: Any, out: Any, dtype: Any, canonical: list[Any]) -> np.dtype:
        wanted = as_numpy_dtype(dtype)
        if out is not None:
            return check_out_dtype(out, wanted)
        if wanted is not None:
            return wanted
        if own is not None:
            return own._array.dtype
        if isinstance(self.type, np.dtype):
            return self.type
        if self.type == "default" or (self.type == "floating" and not any(
                isinstance(v, complex) for v in canonical)):
            return default_float()
        return type_of_numbers(canonical[-1:] if self.type == "value" else canonical,
                               self.type == "whole")


def type_of_numbers(values: list[Any], whole: bool = False) -> np.dtype:
    """That of Python's numbers; of truths int64 if they count as integers, as in ranges."""
    if whole:
        integers = all(isinstance(v, int) for v in values)
        return np.dtype(np.int64) if integers else default_float()
    if any(isinstance(v, complex) for v in values):
        return dtypes.default_complex()
    if any(isinstance(v, float) for v in values):
        return default_float()
    return np.dtype(np.bool_ if all(isinstance(v, bool) for v in values) else np.int64)


def check_out_dtype(out: Tensor, wanted: np.dtype | None) -> np.dtype:
    """The type of `out=`, which must be the one that is wanted."""
    if wanted is not None and wanted != out._array.dtype:
        raise RuntimeError(f"dtype {type_name(from_numpy_dtype(wanted))} does not match dtype of "
                           f"out parameter ({type_name(out.dtype)})")
    return out._array.dtype


def _meta_tensor(shape: tuple[int, ...], array_type: np.dtype) -> Tensor:
    """A tensor on meta."""
    return alias(meta.meta_array(shape, array_type), meta.MetaTensor)


def finish(array: np.ndarray, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new leaf tensor around `array`."""
    where = devices.checked(device)
    if where is not devices.cpu:
        result = alias(meta.laid_out_as(array) if array.flags.writeable else array, meta.MetaTensor)
    else:
        result = new_tensor()
        result._array = array
        result._base = result._counter = result._edge = None
    if requires_grad:
        if array.dtype not in dtypes.FLOATING:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require "
                               "gradients")
        result._edge = LEAF
    if is_inference_mode_enabled():
        result._inference = True
    return result


class FactoryFunction(Function):
    """The function, or the method, of a factory."""

    declaration: Any

    @property
    def seen(self) -> Op:
        return self.op

    def unwatched(self, *args: Any, **kwargs: Any) -> Any:
        """A call that no level and no mode is asked about."""
        return self.run(args, kwargs)

    def compute(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.declaration.make(*self.choose(args, kwargs))

    def described(self) -> Any:
        made = self.declaration
        kernel = getattr(native, f"make_{made.native}") if made.native else made.kernel
        return [describe(o, kernel, "factory", made.facts(o)) for o in self.overloads]


def factory(*schemas: str, **declared: Any) -> Any:
    """Declare a function that makes tensors; see `Factory`."""
    declaration = Factory(texts=schemas, **declared)
    table.declare({declaration.name: partial(getattr, declaration, "op")})
    function = publish(declaration, declaration, FactoryFunction)
    declaration.published = function if declaration.function else vars(Tensor)[declaration.name]
    return function


__all__ = ["FORMAT", "OPTIONS", "Factory", "factory", "finish"]
