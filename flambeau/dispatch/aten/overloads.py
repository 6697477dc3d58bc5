"""What runs an overload of `torch.ops.aten` that the function of its name does not take as it is:
one that has its results written to tensors given by name, and one whose backend has no kernel.

>>> import flambeau
>>> values, indices = flambeau.empty(0), flambeau.empty(0, dtype=flambeau.int64)
>>> out = flambeau.ops.aten.kthvalue.values(
...     flambeau.tensor([3.0, 1.0]), 1, values=values, indices=indices)
>>> out[0] is values, values, indices
(True, tensor(1.), tensor(1))
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.devices.backends import has_no_kernel
from flambeau.core import type_info
from flambeau.dispatch.aten.wrong_calls import store
from flambeau.transforms.meta import NO_META_KERNEL


def adapted(overload: Any) -> Callable[..., Any] | None:
    """What runs the overload; None if the function of its packet does, as it is."""
    facts = overload._facts or ()
    if "generated" in facts:
        return _generated_implementation(overload)
    if overload._packet.is_missing:
        return _with_backend_check(overload, facts)
    names = [argument.name for argument in overload._schema.arguments if argument.is_out]
    return _writing_to(overload, names) if names and names != ["out"] else None


# ---- backends ------------------------------------------------------------------------------------

_LAYOUTS = {type_info.sparse_coo: "SparseCPU", type_info.mkldnn: "MkldnnCPU",
            type_info.strided: "CPU", type_info.jagged: "NestedTensorCPU"}
_RISING = ("CPU", "Meta", "QuantizedCPU", "MkldnnCPU", "SparseCPU", "SparseCsrCPU",
           "NestedTensorCPU")


def _backend(tensor: Tensor) -> str:
    if tensor.is_nested:
        return "NestedTensorCPU"
    if tensor.is_quantized:
        return "QuantizedCPU"
    if tensor.is_meta:
        return "Meta"
    return _LAYOUTS.get(tensor.layout, "SparseCsrCPU")


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def backend_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """The backend that a call goes to, by its tensors; None if there are none."""
    return max(map(_backend, _tensors((*args, *kwargs.values()))), key=_RISING.index, default=None)


def _with_backend_check(overload: Any, facts: tuple[str, ...]) -> Callable[..., Any]:
    """The function of an op, for the backends that have a kernel."""
    composed = {"implicit", "explicit", "structured"}.intersection(facts)

    def called(*args: Any, **kwargs: Any) -> Any:
        backend = backend_of(args, kwargs)
        name = overload.name().removeprefix("aten::")
        if backend == "Meta" and "no_meta" in facts:
            raise NotImplementedError(f"aten::{name}: {NO_META_KERNEL}")
        known = {"CPU", "Meta", *facts} - ({"CPU"} if "no_cpu" in facts else set())
        if not composed and (backend or "CPU") not in known:
            raise has_no_kernel(name, backend or "CPU", facts)
        return overload._packet._function(*args, **kwargs)
    return called


# ---- results that are written to tensors --------------------------------------------------------

def _generated_implementation(overload: Any) -> Callable[..., Any] | None:
    """What runs an overload that PyTorch generates: of a functional one, if it has `out=`, or else
    of one that works in place."""
    packet, schema = overload._packet, overload._schema
    own = [a for a in schema.arguments if not a.is_out]
    wanted = [a.name for a in own]
    if len(own) < len(schema.arguments):
        functional = next((other for name in packet.overloads() if name != overload._overloadname
                           for other in [packet.overload(name)]
                           if [a.name for a in other._schema.arguments] == wanted), None)

        def stored(*args: Any, **kwargs: Any) -> Any:
            function = packet._function if functional is None else functional.run
            return store(schema, function, args, kwargs)
        return stored
    if not packet.is_missing:
        return None
    inplace = getattr(flambeau.ops.aten, f"{packet.__name__}_").overload(overload._overloadname)
    return lambda self, *args, **kwargs: inplace.run(self.clone(), *args, **kwargs)


def _writing_to(overload: Any, names: list[str]) -> Callable[..., Any]:
    """The function of an op, which takes the tensors of these names as `out=`."""
    def called(*args: Any, **kwargs: Any) -> Any:
        function = overload._packet._function
        if not _takes_out(function, len(names)):
            return store(overload._schema, function, args, kwargs)
        outs = tuple(kwargs.pop(name) for name in names)
        found = function(*args, **kwargs, out=outs if len(outs) > 1 else outs[0])
        return tuple(found) if len(outs) > 1 else found
    return called


def _takes_out(function: Any, count: int) -> bool:
    """Has a function an overload that writes as many results?"""
    overloads = getattr(getattr(function, "twin", None), "overloads", None)
    if overloads is None:
        return "out" in inspect.signature(function).parameters
    return any(p.name == "out" and (p.size or 1) == count
               for overload in overloads for p in overload.signature.parameters)


__all__ = ["adapted", "backend_of"]
