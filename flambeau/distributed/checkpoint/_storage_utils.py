"""The storage of a checkpoint of which only the name is given."""
from __future__ import annotations

import os
from typing import Any


def _storage_setup(storage: Any, checkpoint_id: str | os.PathLike | None,
                   reader: bool = False) -> Any:
    """`storage`, or one for the folder `checkpoint_id`."""
    from flambeau.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
    if storage:
        if checkpoint_id is not None:
            storage.reset(checkpoint_id)
        return storage
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is "
                           "None.")
    kind: Any = FileSystemReader if reader else FileSystemWriter
    if kind.validate_checkpoint_id(checkpoint_id):
        return kind(checkpoint_id) if reader else kind(checkpoint_id, single_file_per_rank=True)
    if "://" in str(checkpoint_id):
        from flambeau.distributed.checkpoint._fsspec_filesystem import FsspecReader, FsspecWriter
        return FsspecReader(checkpoint_id) if reader else FsspecWriter(
            checkpoint_id, single_file_per_rank=True)
    raise RuntimeError("Cannot detect which StorageReader or StorageWriter to use. Please specify "
                       "the storage_reader/storage_writer.")
