"""The collectives of process groups and backends, in all forms in which they can be called.

A collective takes lists of tensors and an object of options. It can also be called with one tensor,
and with what the options would say in their place: `group.broadcast(tensor, 0)`. `Calls` brings
these forms into the first one and hands it to `_run(name, tensors, …, options)`.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from typing import Any

from flambeau import Tensor
from flambeau._support.c_functions import incompatible
from flambeau.distributed._c10d import options as o
from flambeau.distributed._c10d.reduce_op import ReduceOp


def _options(called: str, cls: type, positional: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The options that were given, or options made of what was given in their place."""
    given = [*positional, *keywords.values()]
    if len(given) == 1 and isinstance(given[0], cls):
        return given[0]
    made = cls()
    names = {"op": "reduceOp", "root": "rootRank"}
    known = {f.name for f in fields(cls)}
    for value in positional:
        name = "reduceOp" if isinstance(value, ReduceOp) else \
            "timeout" if isinstance(value, timedelta) else "rootRank"
        if value is not None:
            keywords = {**keywords, name: value}
    for name, value in keywords.items():
        target = names.get(name, name)
        if target not in known:
            raise incompatible(called, [f"(self, tensors, opts: {cls.__name__})"], positional,
                               keywords)
        if value is not None:
            setattr(made, target, value)
    return made


def _listed(value: Any, depth: int) -> Any:
    """A tensor, or a list, as a list of that depth."""
    have, inner = 0, value
    while isinstance(inner, (list, tuple)):
        have, inner = have + 1, (inner[0] if inner else None)
    for _ in range(depth - have):
        value = [value]
    return value


def _takes(name: str, cls: type, *depths: int, names: tuple[str, ...] = (),
           doc: str) -> Callable[..., Any]:
    """The method `name`, whose tensors come in lists of these depths."""
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        written = [f"(self, {', '.join(names)}, opts)"]
        if not isinstance(self, Calls) or len(args) > len(depths) + 3:
            raise incompatible(name, written, (self, *args), kwargs)
        given = list(args[:len(depths)])
        for at in range(len(given), len(depths)):
            found = next((n for n in names[at].split("/") if n in kwargs), None)
            if found is None:
                raise incompatible(name, written, args, kwargs)
            given.append(kwargs.pop(found))
        if len(depths) == 2 and depths[0] != depths[1] and isinstance(given[1], Tensor):
            given[0] = [given[0]]                   # the form for one tensor
        tensors = [_listed(value, depth) for value, depth in zip(given, depths)]
        return self._run(name, *tensors, _options(name, cls, args[len(depths):], kwargs))
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{doc} Gives the `Work` to wait for."
    return method


class Calls:
    """Collectives: each hands its tensors, in lists, and its options to `_run`."""

    broadcast = _takes(
        "broadcast", o.BroadcastOptions, 1, names=("tensors/tensor",),
        doc="Copy the root's tensor into that of each rank.")
    allreduce = _takes(
        "allreduce", o.AllreduceOptions, 1, names=("tensors/tensor",),
        doc="Reduce the tensors of all ranks, by options.reduceOp (a sum), in place.")
    allreduce_coalesced = _takes(
        "allreduce_coalesced", o.AllreduceCoalescedOptions, 1, names=("tensors",),
        doc="`allreduce` of several tensors at once.")
    reduce = _takes(
        "reduce", o.ReduceOptions, 1, names=("tensors/tensor",),
        doc="Reduce the tensors of all ranks into that of the root; the others' are undefined "
            "afterwards.")
    allgather = _takes(
        "allgather", o.AllgatherOptions, 2, 1,
        names=("output_tensors", "input_tensors/input_tensor"),
        doc="Gather the tensors of all ranks in each: output_tensors[0][r] is that of rank r.")
    _allgather_base = _takes(
        "_allgather_base", o.AllgatherOptions, 0, 0, names=("output", "input"),
        doc="Gather the tensors of all ranks in each, one after the other along dim 0 of `output`.")
    allgather_coalesced = _takes(
        "allgather_coalesced", o.AllgatherOptions, 2, 1, names=("output_lists", "input_list"),
        doc="`allgather` of several tensors: output_lists[r] are those of rank r.")
    allgather_into_tensor_coalesced = _takes(
        "allgather_into_tensor_coalesced", o.AllgatherOptions, 1, 1, names=("outputs", "inputs"),
        doc="`all_gather_single` of several tensors at once.")
    gather = _takes(
        "gather", o.GatherOptions, 2, 1, names=("output_tensors", "input_tensors/input_tensor"),
        doc="Gather the tensors of all ranks at the root; elsewhere `output_tensors` is empty.")
    scatter = _takes(
        "scatter", o.ScatterOptions, 1, 2, names=("output_tensors/output_tensor", "input_tensors"),
        doc="Hand input_tensors[0][r] of the root to rank r; elsewhere `input_tensors` is empty.")
    reduce_scatter = _takes(
        "reduce_scatter", o.ReduceScatterOptions, 1, 2,
        names=("output_tensors", "input_tensors/input_tensor"),
        doc="Reduce input_tensors[0][r] of all ranks into the output of rank r.")
    _reduce_scatter_base = _takes(
        "_reduce_scatter_base", o.ReduceScatterOptions, 0, 0,
        names=("outputTensor/output", "inputTensor/input"),
        doc="Reduce over all ranks, and hand the r-th part of dim 0 to rank r.")
    reduce_scatter_tensor_coalesced = _takes(
        "reduce_scatter_tensor_coalesced", o.ReduceScatterOptions, 1, 1,
        names=("outputs", "inputs"),
        doc="`reduce_scatter_single` of several tensors at once.")
    alltoall = _takes(
        "alltoall", o.AllToAllOptions, 1, 1,
        names=("output_tensors/output_tensor", "input_tensors/input_tensor"),
        doc="Send input_tensors[r] to rank r; output_tensors[r] is what came from it.")
    alltoall_base = _takes(
        "alltoall_base", o.AllToAllOptions, 0, 0, 0, 0,
        names=("output", "input", "output_split_sizes", "input_split_sizes"),
        doc="Send the r-th part of dim 0 to rank r, and join what comes from all. The parts "
            "have the sizes given, or the same one.")
    barrier = _takes(
        "barrier", o.BarrierOptions, doc="Wait until all ranks are here.")

    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base

    def _run(self, name: str, *arguments: Any) -> Any:
        raise NotImplementedError
