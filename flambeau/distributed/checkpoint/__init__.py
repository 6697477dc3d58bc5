"""Checkpoints that several processes write and read together, in pieces.

A plan says what is written: an item for each value of the state, and for each piece of a tensor.
Planners make plans and may change what is written; a storage writer carries them out. A checkpoint
that was written by some processes can be read by any number of them.

>>> import tempfile, flambeau
>>> folder = tempfile.mkdtemp()
>>> _ = save({"w": flambeau.ones(2), "step": 3}, checkpoint_id=folder)
>>> state = {"w": flambeau.zeros(2), "step": 0}
>>> load(state, checkpoint_id=folder)
>>> state
{'w': tensor([1., 1.]), 'step': 3}
"""
from __future__ import annotations

from flambeau.distributed.checkpoint.api import CheckpointException
from flambeau.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from flambeau.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from flambeau.distributed.checkpoint.hf_storage import *
from flambeau.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.optimizer import load_sharded_optimizer_state_dict
from flambeau.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from flambeau.distributed.checkpoint.quantized_hf_storage import QuantizedHuggingFaceStorageReader
from flambeau.distributed.checkpoint.state_dict_loader import load, load_state_dict
from flambeau.distributed.checkpoint.state_dict_saver import async_save, save, save_state_dict
from flambeau.distributed.checkpoint.storage import StorageReader, StorageWriter
