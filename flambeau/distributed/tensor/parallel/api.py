"""`parallelize_module`: a plan applied to the modules of a model."""
from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from flambeau import nn
from flambeau.distributed.device_mesh import DeviceMesh, _mesh_resources
from flambeau.distributed.tensor.parallel.style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(module: nn.Module, device_mesh: DeviceMesh | None = None,
                       parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None, *,
                       src_data_rank: int | None = 0) -> nn.Module:
    """`module`, cut over a mesh of one dimension as a plan says: a style for the module itself, or
    styles by the names of modules in it, in which `*`, `?` and `[…]` stand for any name on that
    level. Process `src_data_rank` has the parameters to begin with (None: each process has the
    same, and nothing is sent).

    >>> from flambeau.distributed.tensor.parallel import ColwiseParallel
    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> layers = nn.ModuleDict({"up": nn.Linear(2, 4), "gate": nn.Linear(2, 4)})
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> layers = parallelize_module(layers, mesh, {"*": ColwiseParallel()})
    >>> layers["gate"].bias.placements
    (Shard(dim=0),)
    >>> dist.destroy_process_group()
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if parallelize_plan is None:
        warnings.warn("No parallelize_plan is provided and auto-parallel is not supported at the "
                      "moment, so this parallelize_module call will do nothing.", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError("Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for "
                        f"parallelize_plan, {type(parallelize_plan)} found!")
    for path, style in parallelize_plan.items():
        _apply_below(module, path, style, mesh, src_data_rank)
    return module


def _apply_below(module: nn.Module, path: str, style: Any, mesh: DeviceMesh,
                 src_data_rank: int | None) -> None:
    """Apply a style to the modules that a path of patterns names."""
    if path == "":
        parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
        return
    pattern, _, rest = path.partition(".")
    found = [(name, child) for name, child in module.named_children() if fnmatch(name, pattern)]
    if not found:
        warnings.warn(f"Parallelize plan key {pattern!r} could not be resolved: no submodule "
                      f"matching token {pattern!r} in module {module}, skipping this plan entry.",
                      stacklevel=3)
    for name, child in found:
        if rest:
            _apply_below(child, rest, style, mesh, src_data_rank)
        else:
            made = parallelize_module(child, mesh, style, src_data_rank=src_data_rank)
            module.register_module(name, made)
