"""Collectives among the ranks of a `LocalTensor`: they exchange what one process has."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as c10d
from flambeau.distributed._c10d.backends.gloo import _REDUCTIONS
from flambeau.distributed._c10d.ops.functional import REDUCTIONS
from flambeau.distributed._c10d.work import Work

Exchange = Callable[[list[Tensor]], list[Tensor]]


def groups_like(group: Any, ranks: frozenset[int]) -> list[list[int]]:
    """The ranks of a group, and of those beside it: the program of each rank has a group of its
    own in that place, and they are alike."""
    mine = sorted(c10d.get_process_group_ranks(group))
    waiting, found = sorted(ranks), []
    while waiting:
        shifted = [rank - mine[0] + waiting[0] for rank in mine]
        if not set(shifted) <= set(waiting):
            raise NotImplementedError(f"groups like {mine} do not divide the ranks {sorted(ranks)}")
        found.append(shifted)
        waiting = [rank for rank in waiting if rank not in shifted]
    return found


def _exchange(ranks: frozenset[int], group: Any, source: Any, target: Any,
              exchange: Exchange) -> None:
    """Write into `target` what an exchange of the tensors of `source` gives each rank."""
    for members in groups_like(group, ranks):
        given = exchange([source._local_tensors[rank] for rank in members])
        for rank, tensor in zip(members, given):
            target._local_tensors[rank].copy_(tensor.view_as(target._local_tensors[rank]))


# ---- what the ranks of a group get --------------------------------------------------------------

def _reduced(tensors: list[Tensor], op: Any) -> Tensor:
    total = tensors[0].clone()
    name = op.name if hasattr(op, "name") else str(op).rsplit(".", 1)[-1]
    combine = _REDUCTIONS["SUM" if name == "AVG" else name]
    for tensor in tensors[1:]:
        total = combine(total, tensor)
    return total / len(tensors) if name == "AVG" else total


def _reduce_all(op: Any) -> Exchange:
    return lambda tensors: [_reduced(tensors, op)] * len(tensors)


def _gather(tensors: list[Tensor]) -> list[Tensor]:
    return [flambeau.cat(tensors) if tensors[0].dim() else flambeau.stack(tensors)] * len(tensors)


def _reduce_scatter(op: Any) -> Exchange:
    return lambda tensors: list(_reduced(tensors, op).chunk(len(tensors)))


def _from(place: int) -> Exchange:
    return lambda tensors: [tensors[place]] * len(tensors)


def _all_to_all(tensors: list[Tensor]) -> list[Tensor]:
    pieces = [tensor.chunk(len(tensors)) for tensor in tensors]
    return [flambeau.cat([row[place] for row in pieces]) for place in range(len(tensors))]


# ---- ops of torch.ops.c10d ----------------------------------------------------------------------

def _allreduce_(ranks: Any, tensors: Any, group: Any, op: Any, *rest: Any, **named: Any) -> Any:
    for tensor in tensors:
        _exchange(ranks, group, tensor, tensor, _reduce_all(op))
    return tensors, Work(tensors)


def _allreduce_coalesced_(ranks: Any, tensors: Any, group: Any, op: Any, *rest: Any,
                          **named: Any) -> Work:
    return _allreduce_(ranks, tensors, group, op)[1]


def _broadcast_(ranks: Any, tensors: Any, group: Any, root: int, *rest: Any, **named: Any) -> Any:
    for tensor in tensors:
        _exchange(ranks, group, tensor, tensor, _from(root))
    return tensors, Work(tensors)


def _reduce_(ranks: Any, tensors: Any, group: Any, op: Any, root: int, *rest: Any,
             **named: Any) -> Work:
    def exchange(given: list[Tensor]) -> list[Tensor]:
        total = _reduced(given, op)
        return [total if place == root else tensor for place, tensor in enumerate(given)]
    for tensor in tensors:
        _exchange(ranks, group, tensor, tensor, exchange)
    return Work(tensors)


def _allgather_(ranks: Any, outputs: Any, inputs: Any, group: Any, *rest: Any,
                **named: Any) -> Any:
    for output, tensor in zip(outputs, inputs):
        for place, part in enumerate(output):
            _exchange(ranks, group, tensor, part, _from(place))
    return outputs, Work(outputs)


def _allgather_base_(ranks: Any, output: Any, tensor: Any, group: Any, *rest: Any,
                     **named: Any) -> Any:
    _exchange(ranks, group, tensor, output, _gather)
    return output, Work(output)


def _allgather_into_tensor_coalesced_(ranks: Any, outputs: Any, inputs: Any, group: Any,
                                      *rest: Any, **named: Any) -> Work:
    for output, tensor in zip(outputs, inputs):
        _exchange(ranks, group, tensor, output, _gather)
    return Work(outputs)


def _reduce_scatter_base_(ranks: Any, output: Any, tensor: Any, group: Any, op: Any, *rest: Any,
                          **named: Any) -> Any:
    _exchange(ranks, group, tensor, output, _reduce_scatter(op))
    return output, Work(output)


def _reduce_scatter_(ranks: Any, outputs: Any, inputs: Any, group: Any, op: Any, *rest: Any,
                     **named: Any) -> Any:
    for output, parts in zip(outputs, inputs):
        for members in groups_like(group, ranks):
            for place, rank in enumerate(members):
                total = _reduced([parts[place]._local_tensors[other] for other in members], op)
                output._local_tensors[rank].copy_(total)
    return outputs, Work(outputs)


def _scatter_(ranks: Any, outputs: Any, inputs: Any, group: Any, root: int, *rest: Any,
              **named: Any) -> Any:
    for output, parts in zip(outputs, inputs):
        for members in groups_like(group, ranks):
            for place, rank in enumerate(members):
                output._local_tensors[rank].copy_(parts[place]._local_tensors[members[root]])
    return outputs, Work(outputs)


def _gather_(ranks: Any, outputs: Any, inputs: Any, group: Any, root: int, *rest: Any,
             **named: Any) -> Work:
    for output, tensor in zip(outputs, inputs):
        for members in groups_like(group, ranks):
            for place, rank in enumerate(members):
                output[place]._local_tensors[members[root]].copy_(tensor._local_tensors[rank])
    return Work(outputs)


def _alltoall_(ranks: Any, outputs: Any, inputs: Any, group: Any, *rest: Any, **named: Any) -> Any:
    for members in groups_like(group, ranks):
        for place, rank in enumerate(members):
            for other_place, other in enumerate(members):
                outputs[other_place]._local_tensors[rank].copy_(
                    inputs[place]._local_tensors[other])
    return outputs, Work(outputs)


def _alltoall_base_(ranks: Any, output: Any, tensor: Any, group: Any, output_sizes: Any,
                    input_sizes: Any, *rest: Any, **named: Any) -> Work:
    if list(output_sizes) or list(input_sizes):
        raise NotImplementedError("all_to_all_single with sizes in a LocalTensorMode")
    _exchange(ranks, group, tensor, output, _all_to_all)
    return Work(output)


# ---- ops of torch.ops._c10d_functional ----------------------------------------------------------

def _functional(make: Callable[..., Exchange]) -> Callable[..., Any]:
    """A collective that gives new tensors; `make` gets what is between tensor and group."""
    def run(ranks: frozenset[int], tensors: Any, *args: Any) -> Any:
        *given, group_name = args
        group = c10d._resolve_process_group(group_name)
        if isinstance(tensors, (list, tuple)):
            return [_one(ranks, tensor, group, make(*given)) for tensor in tensors]
        return _one(ranks, tensors, group, make(*given))
    return run


def _one(ranks: frozenset[int], tensor: Any, group: Any, exchange: Exchange) -> Any:
    results = {}
    for members in groups_like(group, ranks):
        given = exchange([tensor._local_tensors[rank] for rank in members])
        results.update({rank: made.clone() for rank, made in zip(members, given)})
    return type(tensor)(results)


def _op(name: str) -> Any:
    return REDUCTIONS[name.lower()]


def _functional_all_to_all(output_sizes: Any, input_sizes: Any) -> Exchange:
    if len({*output_sizes, *input_sizes}) > 1:
        raise NotImplementedError("all_to_all_single of uneven sizes in a LocalTensorMode")
    return _all_to_all


_FUNCTIONAL: dict[str, Callable[..., Any]] = {
    "all_reduce": _functional(lambda op: _reduce_all(_op(op))),
    "all_gather_into_tensor": _functional(lambda size: _gather),
    "reduce_scatter_tensor": _functional(lambda op, size: _reduce_scatter(_op(op))),
    "broadcast": _functional(lambda source: _from(source)),
    "all_to_all_single": _functional(_functional_all_to_all),
    "wait_tensor": lambda ranks, tensor: tensor,
}
for _name in ("all_reduce", "all_gather_into_tensor"):
    _FUNCTIONAL[f"{_name}_coalesced"] = _FUNCTIONAL[_name]
_FUNCTIONAL["reduce_scatter_tensor_coalesced"] = _FUNCTIONAL["reduce_scatter_tensor"]

_BY_OP: dict[str, Callable[..., Any]] = {
    "allreduce_": _allreduce_, "allreduce_coalesced_": _allreduce_coalesced_,
    "broadcast_": _broadcast_, "reduce_": _reduce_, "allgather_": _allgather_,
    "_allgather_base_": _allgather_base_,
    "allgather_into_tensor_coalesced_": _allgather_into_tensor_coalesced_,
    "_reduce_scatter_base_": _reduce_scatter_base_, "reduce_scatter_": _reduce_scatter_,
    "scatter_": _scatter_, "gather_": _gather_, "alltoall_": _alltoall_,
    "alltoall_base_": _alltoall_base_}


def collective(func: Any) -> Callable[..., Any] | None:
    """What does the collective of an op; None if nothing does."""
    table = _BY_OP if func.namespace == "c10d" else _FUNCTIONAL
    return table.get(func.overloadpacket.__name__)
