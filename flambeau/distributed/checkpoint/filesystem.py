"""Checkpoints in a folder. The files are flambeau's own; PyTorch's `.distcp` files are not read."""
from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import flambeau
from flambeau.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItemType,
)

_FILE = "values.pt"


class FileSystemWriter:
    """Writes what a plan says into a folder."""

    def __init__(self, path: Any, **options: Any):
        self.path = Path(path)

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> None:
        """Carry out a plan."""
        values = {}
        for item in plan:
            data = planner.resolve_data(item)
            about = item.tensor_data
            if item.type is WriteItemType.BYTE_IO:
                values[item.index.fqn] = "bytes", data.getvalue()
            else:
                values[item.index.fqn] = "tensor", data.detach(), tuple(about.size)
        self.path.mkdir(parents=True, exist_ok=True)
        flambeau.save(values, self.path / _FILE)


class FileSystemReader:
    """Reads what a plan says from a folder."""

    def __init__(self, path: Any, **options: Any):
        self.path = Path(path)
        self._values: Any = None

    def values(self) -> dict[str, Any]:
        """All that the checkpoint holds, as it was written."""
        if self._values is None:
            if (self.path / ".metadata").exists() and not (self.path / _FILE).exists():
                raise NotImplementedError(f"{self.path}: checkpoints that PyTorch's "
                                          "torch.distributed.checkpoint has written")
            self._values = flambeau.load(self.path / _FILE, weights_only=True)
        return self._values

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> None:
        """Carry out a plan."""
        for item in plan:
            value = self.values()[item.storage_index.fqn][1]
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(value))
            else:
                target = planner.resolve_tensor(item)
                target.copy_(value)
                planner.commit_tensor(item, target)
