"""`local_map`: a function of local tensors, called with distributed ones."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.tensor import DTensor
from flambeau.distributed.tensor.placement_types import Placement
from flambeau.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["local_map"]

PlacementType = Sequence[Placement] | None
InputPlacements = tuple[PlacementType, ...] | None
OutputPlacements = PlacementType | tuple[PlacementType, ...]


def local_map(func: Callable[..., Any] | None = None, out_placements: OutputPlacements = None,
              in_placements: InputPlacements = None, in_grad_placements: InputPlacements = None,
              device_mesh: DeviceMesh | None = None, *, redistribute_inputs: bool = False
              ) -> Callable[..., Any]:
    """`func`, which takes and gives local tensors, as a function of distributed ones.

    `out_placements` say how what it gives lies, for each output, `in_placements` how what it takes
    has to lie, for each argument (None for what is no tensor), and `in_grad_placements` how the
    gradients of these lie. With `redistribute_inputs` arguments that lie in another way are
    placed anew, otherwise they raise. Without `func` it is a decorator.

    >>> from flambeau import distributed as dist
    >>> from flambeau.distributed.tensor import Shard, distribute_tensor
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> double = local_map(lambda x: x * 2, out_placements=[Shard(0)], in_placements=([Shard(0)],))
    >>> double(distribute_tensor(flambeau.ones(2), mesh, [Shard(0)])).full_tensor()
    tensor([2., 2.])
    >>> dist.destroy_process_group()
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements,
            in_grad_placements=in_grad_placements, device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs)
    return functools.partial(_local_map_wrapped, func, out_placements, in_placements,
                             in_grad_placements, device_mesh, redistribute_inputs)


def _local_map_wrapped(func: Callable[..., Any], out_placements: OutputPlacements,
                       in_placements: InputPlacements, in_grad_placements: InputPlacements,
                       device_mesh: DeviceMesh | None, redistribute_inputs: bool, *args: Any,
                       **kwargs: Any) -> Any:
    given, structure = tree_flatten(args)
    if in_placements is not None and len(in_placements) != len(given):
        raise AssertionError(f"in_placements length {len(in_placements)} does not match the number "
                             f"of input args {len(given)}!")
    distributed = [a for a in given if isinstance(a, DTensor)]
    mesh = device_mesh
    if mesh is None and distributed:
        mesh = distributed[0].device_mesh
    local = []
    for i, arg in enumerate(given):
        wanted = None if in_placements is None else in_placements[i]
        grads = None if in_grad_placements is None else in_grad_placements[i]
        local.append(_as_local(arg, in_placements is not None, wanted, grads, mesh,
                               redistribute_inputs))
    found = func(*tree_unflatten(local, structure), **kwargs)
    return _as_distributed(found, out_placements, mesh) if distributed else found


def _as_local(arg: Any, checked: bool, wanted: PlacementType, grads: PlacementType,
              mesh: DeviceMesh | None, redistribute: bool) -> Any:
    if not isinstance(arg, DTensor):
        if wanted is not None and not isinstance(arg, Tensor):
            raise AssertionError(f"Non-Tensor input {arg} expects None placements but received "
                                 f"{wanted}!")
        return arg
    if checked and wanted is None:
        raise AssertionError(f"DTensor input {arg} expects placements but received None!")
    if wanted is not None and arg.placements != tuple(wanted):
        if not redistribute:
            raise ValueError(
                f"arg {arg} in local_map has a mismatched placements: arg placements is "
                f"{arg.placements} but the input placements is {tuple(wanted)}! If "
                "redistribute_inputs is wanted, set redistribute_inputs=True to local_map.")
        arg = arg.redistribute(placements=wanted)
    return arg.to_local(grad_placements=grads)


def _as_distributed(found: Any, placements: Any, mesh: DeviceMesh | None) -> Any:
    results, structure = tree_flatten(found)
    every = placements if isinstance(placements, tuple) else (placements,)
    if len(every) != len(results):
        raise AssertionError("local_map requires one PlacementType be provided for each output "
                             f"value, received {len(every)} out_placements but {len(results)} is "
                             "expected!")
    made = []
    for result, lies in zip(results, every):
        if isinstance(result, Tensor):
            result = DTensor.from_local(result, mesh, lies, run_check=False)
        elif lies is not None:
            raise AssertionError(f"Non-tensor output {result} expects None placements but received "
                                 f"{lies}!")
        made.append(result)
    return tree_unflatten(made, structure)
