"""`torch.ops.c10d`: collectives of process groups as ops, as dispatch modes are shown them."""
from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flambeau import Tensor, ops
from flambeau.distributed._c10d import options as o
from flambeau.library import Library

_GROUP = "__torch__.torch.classes.c10d.ProcessGroup process_group"
_REDUCE = "__torch__.torch.classes.c10d.ReduceOp reduce_op"
_WORK = "__torch__.torch.classes.c10d.Work"
_TIMED = "bool async_op=True, int timeout=-1"

# For each collective: tensors, what its options say, what it gives beside the work; the options.
_COLLECTIVES: dict[str, tuple[str, str, str, type]] = {
    "broadcast": ("Tensor[] tensors", f"int root_rank, int root_tensor, {_TIMED}", "Tensor[]",
                  o.BroadcastOptions),
    "allreduce": ("Tensor[] tensors", f"{_REDUCE}, Tensor? sparse_indices, {_TIMED}", "Tensor[]",
                  o.AllreduceOptions),
    "allreduce_coalesced": ("Tensor[] tensors", f"{_REDUCE}, {_TIMED}", "",
                            o.AllreduceCoalescedOptions),
    "reduce": ("Tensor[] tensors", f"{_REDUCE}, int root_rank, int root_tensor, {_TIMED}", "",
               o.ReduceOptions),
    "allgather": ("Tensor[][] output_tensors, Tensor[] input_tensors", _TIMED, "Tensor[][]",
                  o.AllgatherOptions),
    "_allgather_base": ("Tensor output_tensor, Tensor input_tensor", _TIMED, "Tensor",
                        o.AllgatherOptions),
    "allgather_coalesced": ("Tensor[][] output_lists, Tensor[] input_list", "bool async_op=True",
                            "", o.AllgatherOptions),
    "allgather_into_tensor_coalesced": ("Tensor[] outputs, Tensor[] inputs", "bool async_op=True",
                                        "", o.AllgatherOptions),
    "gather": ("Tensor[][] output_tensors, Tensor[] input_tensors", f"int root_rank, {_TIMED}", "",
               o.GatherOptions),
    "scatter": ("Tensor[] output_tensors, Tensor[][] input_tensors", f"int root_rank, {_TIMED}",
                "Tensor[]", o.ScatterOptions),
    "reduce_scatter": ("Tensor[] output_tensors, Tensor[][] input_tensors", f"{_REDUCE}, {_TIMED}",
                       "Tensor[]", o.ReduceScatterOptions),
    "_reduce_scatter_base": ("Tensor output_tensor, Tensor input_tensor", f"{_REDUCE}, {_TIMED}",
                             "Tensor", o.ReduceScatterOptions),
    "reduce_scatter_tensor_coalesced": ("Tensor[] outputs, Tensor[] inputs",
                                        f"{_REDUCE}, {_TIMED}", "", o.ReduceScatterOptions),
    "alltoall": ("Tensor[] output_tensors, Tensor[] input_tensors", _TIMED, "Tensor[]",
                 o.AllToAllOptions),
    "alltoall_base": ("Tensor output, Tensor input", f"int[] output_split_sizes, int[] "
                      f"input_split_sizes, {_TIMED}", "", o.AllToAllOptions),
}
_FIELDS = {"reduce_op": "reduceOp", "root_rank": "rootRank", "root_tensor": "rootTensor",
           "async_op": "asyncOp", "timeout": "timeout"}

library = Library("c10d", "FRAGMENT")


def _kernel(name: str) -> Callable[..., Any]:
    """Run a collective that is called as an op."""
    tensors, given, result, cls = _COLLECTIVES[name]
    count = tensors.count(",") + 1
    names = [part.partition("=")[0].split()[-1] for part in given.split(",")]
    defaults = {"async_op": True, "timeout": -1}

    def kernel(*args: Any, **kwargs: Any) -> Any:
        group, values = args[count], {**defaults, **dict(zip(names, args[count + 1:])), **kwargs}
        made = cls()
        for key, value in values.items():
            if key == "timeout":
                value = o.UNSET if value < 0 else timedelta(milliseconds=value)
            if key in _FIELDS:
                setattr(made, _FIELDS[key], value)
        splits = [values[key] for key in ("output_split_sizes", "input_split_sizes")
                  if key in values]
        work = group._run_below(name, *args[:count], *splits, made)
        return (args[0], work) if result else work
    return kernel


for _name, (_tensors, _given, _result, _) in _COLLECTIVES.items():
    library.define(f"{_name}_({_tensors}, {_GROUP}, {_given}) -> "
                   + (f"({_result}, {_WORK})" if _result else _WORK))
    library.impl(f"{_name}_", _kernel(_name), "CompositeExplicitAutograd")


# ---- what is no collective ----------------------------------------------------------------------

def _limit(timeout: int) -> timedelta | None:
    return None if timeout < 0 else timedelta(milliseconds=timeout)


def _barrier(tensor: Tensor, group: Any, device_ids: list[int], async_op: bool = True,
             timeout: int = -1) -> Any:
    given = o.BarrierOptions(asyncOp=async_op)
    given.timeout = _limit(timeout) or o.UNSET
    return group._run_below("barrier", given)


def _check_for_nan(tensor: Tensor) -> None:
    if tensor.is_floating_point() and bool(tensor.isnan().any()):
        raise RuntimeError("NaN found in input tensor.")


for _schema, _run in (
        (f"send(Tensor[] tensors, {_GROUP}, int dst, int tag) -> {_WORK}",
         lambda tensors, group, dst, tag: group.send(tensors, dst, tag)),
        (f"recv_(Tensor[] tensors, {_GROUP}, int src, int tag) -> {_WORK}",
         lambda tensors, group, src, tag: group.recv(tensors, src, tag)),
        (f"recv_any_source_(Tensor[] tensors, {_GROUP}, int tag) -> {_WORK}",
         lambda tensors, group, tag: group.recv_anysource(tensors, tag)),
        (f"barrier(Tensor tensor, {_GROUP}, int[] device_ids, {_TIMED}) -> {_WORK}", _barrier),
        (f"monitored_barrier_(Tensor tensor, {_GROUP}, int[] device_ids, int timeout, "
         "bool wait_all_ranks) -> ()", lambda tensor, group, device_ids, timeout, wait_all_ranks:
         group.monitored_barrier(_limit(timeout), wait_all_ranks)),
        ("check_for_nan(Tensor tensor) -> ()", _check_for_nan)):
    library.define(_schema)
    library.impl(_schema.partition("(")[0], _run, "CompositeExplicitAutograd")


def shown(group: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    """Run a collective as an op, so that dispatch modes see it; None for one that is no op."""
    if name not in _COLLECTIVES:
        return None
    tensors, given, result, _ = _COLLECTIVES[name]
    count, options = tensors.count(",") + 1, arguments[-1]
    values: list[Any] = []
    for part in given.split(","):
        key = part.partition("=")[0].split()[-1]
        if key in ("output_split_sizes", "input_split_sizes"):
            values.append(list(arguments[count + (key[0] == "i")]))
        elif key == "timeout":
            limit = options.timeout
            values.append(-1 if limit is o.UNSET else int(limit.total_seconds() * 1000))
        else:
            values.append(getattr(options, _FIELDS[key]) if key in _FIELDS else None)
    found = getattr(ops.c10d, f"{name}_").default(*arguments[:count], group, *values)
    return found[-1] if result else found
