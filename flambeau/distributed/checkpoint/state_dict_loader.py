"""`load`: a planner, a storage, and the steps between them."""
from __future__ import annotations

import os
import warnings
from typing import Any, cast

from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.checkpoint._storage_utils import _storage_setup
from flambeau.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
)
from flambeau.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from flambeau.distributed.checkpoint.stateful import Stateful
from flambeau.distributed.checkpoint.storage import StorageReader
from flambeau.distributed.checkpoint.utils import (
    _all_gather_keys,
    _api_bc_check,
    _DistWrapper,
    _profile,
    tell_more,
)

__all__ = ["load", "load_state_dict"]


def load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader,
                    process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
                    planner: LoadPlanner | None = None) -> None:
    """The older form of `load`."""
    warnings.warn("`load_state_dict` is deprecated and will be removed in future versions. Please "
                  "use `load` instead.", FutureWarning, stacklevel=2)
    storage_reader.reset()
    with _profile():
        _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist,
                         planner)


@_api_bc_check
def load(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
         storage_reader: StorageReader | None = None, planner: LoadPlanner | None = None,
         process_group: Any = None, no_dist: bool = False) -> None:
    """Fill a state, in place, from a checkpoint: each process the pieces that it has.

    How the state was in pieces when it was saved, and by how many processes, makes no difference.
    `load_state_dict` of objects that are `Stateful` is called.

    >>> import tempfile
    >>> from flambeau.distributed.checkpoint import save
    >>> folder = tempfile.mkdtemp()
    >>> _ = save({"w": flambeau.ones(2), "step": 3}, checkpoint_id=folder)
    >>> state = {"w": flambeau.zeros(2), "step": 0}
    >>> load(state, checkpoint_id=folder)
    >>> state
    {'w': tensor([1., 1.]), 'step': 3}
    """
    no_dist = no_dist or not dist.is_initialized()
    with _profile():
        reader = cast(StorageReader, _storage_setup(storage_reader, checkpoint_id, reader=True))
        keys = list(state_dict) if no_dist else sorted(_all_gather_keys(state_dict, process_group))
        states = {key: state_dict[key].state_dict() if isinstance(state_dict[key], Stateful)
                  else state_dict[key] for key in keys if key in state_dict}
        _load_state_dict(states, reader, process_group, no_dist=no_dist, planner=planner)
        for key in keys:
            if key not in state_dict:
                continue
            if isinstance(state_dict[key], Stateful):
                state_dict[key].load_state_dict(states[key])
            else:
                state_dict[key] = states[key]


def _load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader,
                     process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
                     planner: LoadPlanner | None = None) -> None:
    together = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = DefaultLoadPlanner() if planner is None else planner
    whole = True

    def local_step() -> LoadPlan:
        nonlocal whole
        try:
            about = storage_reader.read_metadata()
        except FileNotFoundError:           # each process may have its own description
            try:
                about = storage_reader.read_metadata(rank=together.rank)
                whole = False
            except (FileNotFoundError, TypeError):
                about = None
            if about is None:
                raise
        planner.set_up_planner(state_dict, about, together.is_coordinator)
        tell_more(storage_reader.set_up_storage_reader, about, together.is_coordinator,
                  rank=together.rank, use_collectives=whole)
        return storage_reader.prepare_local_plan(planner.create_local_plan())

    def global_step(plans: list[LoadPlan]) -> list[LoadPlan]:
        return storage_reader.prepare_global_plan(planner.create_global_plan(plans))

    def read_data(plan: LoadPlan) -> None:
        storage_reader.read_data(planner.finish_plan(plan), planner).wait()
    plan = together.reduce_scatter("plan", local_step, global_step)
    together.all_gather("read", lambda: read_data(plan))


def _load_state_dict_from_keys(keys: set[str] | str | None = None, *,
                               checkpoint_id: str | os.PathLike | None = None,
                               storage_reader: StorageReader | None = None,
                               process_group: Any = None) -> dict[str, Any]:
    """All of a checkpoint, or what is under some names."""
    no_dist = not dist.is_initialized()
    reader = cast(StorageReader, _storage_setup(storage_reader, checkpoint_id, reader=True))
    if isinstance(keys, str):
        keys = {keys}
    state: dict[str, Any] = {}
    _load_state_dict(state, reader, process_group, no_dist=no_dist,
                     planner=_EmptyStateDictLoadPlanner(keys=keys))
    return state
