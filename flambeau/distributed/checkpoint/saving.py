"""`save` and `load`: a planner, a storage, and the steps between them."""
from __future__ import annotations

from typing import Any

from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from flambeau.distributed.checkpoint.planner import (
    DefaultLoadPlanner,
    DefaultSavePlanner,
    MetadataIndex,
    TensorProperties,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)


class CheckpointException(BaseException):
    """Processes have failed: `failures` maps their ranks to the errors."""

    def __init__(self, msg: str, failures: dict[int, Any]):
        super().__init__(msg, failures)
        self.failures = failures


def _storage(given: Any, checkpoint_id: Any, kind: type) -> Any:
    if given is not None:
        return given
    if checkpoint_id is None:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is "
                           "None.")
    return kind(checkpoint_id)


def save(state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None,
         planner: Any = None, process_group: Any = None, no_dist: bool = False,
         use_collectives: bool = True) -> dict[str, WriteItem]:
    """Write a state into the folder `checkpoint_id`; gives the description of what is there.

    Objects with a `state_dict` method are written as what it gives.
    """
    if not no_dist:
        dist.only_alone("checkpoint.save", process_group)
    writer = _storage(storage_writer, checkpoint_id, FileSystemWriter)
    planner = planner or DefaultSavePlanner()
    planner.set_up_planner({name: value.state_dict() if hasattr(value, "state_dict") else value
                            for name, value in state_dict.items()}, is_coordinator=True)
    plans, description = planner.create_global_plan([planner.create_local_plan()])
    writer.write_data(planner.finish_plan(plans[0]), planner)
    return description


def load(state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_reader: Any = None,
         planner: Any = None, process_group: Any = None, no_dist: bool = False) -> None:
    """Fill a state, in place, from the folder `checkpoint_id`."""
    reader = _storage(storage_reader, checkpoint_id, FileSystemReader)
    planner = planner or DefaultLoadPlanner()
    description = {}
    for name, (kind, value, *size) in reader.values().items():
        about = (TensorWriteData(TensorProperties(value.dtype), size[0])
                 if kind == "tensor" else None)
        description[name] = WriteItem(MetadataIndex(name), WriteItemType[
            "TENSOR" if kind == "tensor" else "BYTE_IO"], about)
    states = {name: value.state_dict() if hasattr(value, "state_dict") else value
              for name, value in state_dict.items()}
    planner.set_up_planner(states, description, is_coordinator=True)
    plan, = planner.create_global_plan([planner.create_local_plan()])
    reader.read_data(planner.finish_plan(plan), planner)
    for name, value in state_dict.items():
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(states[name])
        else:
            state_dict[name] = states[name]
