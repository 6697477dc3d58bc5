"""Checkpoints as Hugging Face keeps them: files of safetensors and an index of what is where.

The files are written and read by the package `safetensors`.
"""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from flambeau.core.tensor import wrap
from flambeau.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from flambeau.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItemType

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_INDEX = "model.safetensors.index.json"


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors into `model-0000i-of-0000n.safetensors` in a folder.

    fqn_to_index_mapping  the number of the file for each name, from 1; one file without it
    save_distributed      each process writes its own part: NotImplementedError
    """

    def __init__(self, path: Any, fqn_to_index_mapping: dict[str, int] | None = None,
                 thread_count: int = 1, save_distributed: bool = False,
                 enable_consolidation: bool = False, thread_count_consolidation: int = 1):
        super().__init__(path)
        if save_distributed and not enable_consolidation:
            raise NotImplementedError("HuggingFaceStorageWriter(save_distributed=True): one "
                                      "process has the whole; leave it out")
        self.file_of = fqn_to_index_mapping or {}

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> None:
        """Carry out a plan."""
        from safetensors.numpy import save_file
        files: dict[int, dict[str, Any]] = {}
        for item in plan:
            if item.type is WriteItemType.BYTE_IO:
                raise TypeError(f"{item.index.fqn}: safetensors hold tensors only")
            number = self.file_of.get(item.index.fqn, 1)
            files.setdefault(number, {})[item.index.fqn] = \
                planner.resolve_data(item).detach().contiguous()._array
        self.path.mkdir(parents=True, exist_ok=True)
        last, where, total = max(files, default=1), {}, 0
        for number, tensors in files.items():
            name = f"model-{number:05d}-of-{last:05d}.safetensors"
            save_file(tensors, self.path / f".{name}")
            os.replace(self.path / f".{name}", self.path / name)    # whole, or not there
            where.update(dict.fromkeys(tensors, name))
            total += sum(t.nbytes for t in tensors.values())
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))}
        (self.path / _INDEX).write_text(json.dumps(index, indent=2))


class HuggingFaceStorageReader(FileSystemReader):
    """Reads all files of safetensors in a folder."""

    def __init__(self, path: Any, thread_count: int = 1):
        super().__init__(path)

    def values(self) -> dict[str, Any]:
        """All tensors that are there, with their sizes."""
        if self._values is None:
            files = sorted(Path(self.path).glob("*.safetensors"))
            if not files:
                raise FileNotFoundError(f"{self.path}: no file of safetensors is there")
            from safetensors.numpy import load_file
            self._values = {name: ("tensor", wrap(array), array.shape)
                            for file in files for name, array in load_file(file).items()}
        return self._values
