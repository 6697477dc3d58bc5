"""Checkpoints that several processes write and read together; here, one.

A plan says what is written: an item for each tensor or other value of the state. Planners make
plans and may change what is written; a storage writer carries them out.

>>> import tempfile, flambeau
>>> folder = tempfile.mkdtemp()
>>> _ = save({"w": flambeau.ones(2), "step": 3}, checkpoint_id=folder)
>>> state = {"w": flambeau.zeros(2), "step": 0}
>>> load(state, checkpoint_id=folder)
>>> state
{'w': tensor([1., 1.]), 'step': 3}
"""
from __future__ import annotations

from flambeau.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from flambeau.distributed.checkpoint.planner import (
    DefaultLoadPlanner,
    DefaultSavePlanner,
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    MetadataIndex,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorProperties,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from flambeau.distributed.checkpoint.saving import CheckpointException, load, save

__all__ = ["CheckpointException", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader",
           "FileSystemWriter", "LoadItemType", "LoadPlan", "LoadPlanner", "MetadataIndex",
           "ReadItem", "SavePlan", "SavePlanner", "TensorProperties", "TensorWriteData",
           "WriteItem", "WriteItemType", "load", "save"]
