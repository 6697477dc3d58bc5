"""Checkpoints as Hugging Face keeps them: files of safetensors and an index of what is where.

The files are written and read by the package `safetensors`.
"""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.core.tensor import wrap
from flambeau.distributed.checkpoint._consolidate_hf_safetensors import (
    _pieces,
    _size_of_whole,
    consolidate_safetensors_files,
)
from flambeau.distributed.checkpoint._hf_utils import (
    CUSTOM_METADATA_KEY,
    DTYPE_MAP,
    SAVED_OFFSETS_KEY,
    SHARDED_DIR_NAME,
    SUFFIX,
    _gen_file_name,
    _metadata_fn,
)
from flambeau.distributed.checkpoint.filesystem import (
    FileSystemReader,
    FileSystemWriter,
    _fill,
    _StorageInfo,
)
from flambeau.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItemType,
)
from flambeau.distributed.checkpoint.storage import WriteResult
from flambeau.futures import Future, _completed

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors into `model-0000i-of-0000n.safetensors` in a folder.

    fqn_to_index_mapping  the number of the file for each name, from 1; one file without it
    save_distributed      each process writes its own pieces, which say where in the whole they lie
    enable_consolidation  and the pieces are put together into whole files
    """

    def __init__(self, path: str, fqn_to_index_mapping: dict[str, int] | None = None,
                 thread_count: int = 1, save_distributed: bool = False,
                 enable_consolidation: bool = False, thread_count_consolidation: int = 1):
        super().__init__(path)
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed = save_distributed
        self.enable_consolidation = enable_consolidation
        self.consolidated_output_path: Path | None = None
        if enable_consolidation:
            self.consolidated_output_path = self.path
            self.path = self.path / SHARDED_DIR_NAME
            self.save_distributed = True
        self.thread_count_consolidation = thread_count_consolidation

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Tell each process its number, and which name goes into which file."""
        import dataclasses
        return [dataclasses.replace(plan, storage_data=(i, self.fqn_to_index_mapping or {}))
                for i, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write this process's files."""
        from safetensors.numpy import save_file
        number, file_of = plan.storage_data
        files: dict[int, list[Any]] = {}
        for item in plan.items:
            if item.type is WriteItemType.BYTE_IO:
                raise TypeError(f"{item.index.fqn}: safetensors hold tensors only")
            files.setdefault(file_of.get(item.index.fqn, 1), []).append(item)
        self.path.mkdir(parents=True, exist_ok=True)
        last = max(file_of.values(), default=1)
        results = []
        for at, items in files.items():
            name = _gen_file_name(at, last, number + 1 if self.save_distributed else None)
            tensors, places = {}, {}
            for item in items:
                value = planner.resolve_data(item)
                assert isinstance(value, Tensor)
                tensors[item.index.fqn] = array = value.detach().cpu().contiguous()._array
                places[item.index.fqn] = {
                    SAVED_OFFSETS_KEY: list(item.tensor_data.chunk.offsets)}
                results.append(WriteResult(item.index, array.nbytes,
                                           _StorageInfo(name, 0, array.nbytes)))
            about = {"format": "pt"}
            if self.save_distributed:
                about[CUSTOM_METADATA_KEY] = json.dumps(places)
            save_file(tensors, self.path / f".{name}", metadata=about)
            os.replace(self.path / f".{name}", self.path / name)    # whole, or not there
        return _completed(results)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the index; or put the pieces together."""
        if self.save_distributed:
            if self.consolidated_output_path is not None:
                mapping = self.fqn_to_index_mapping or dict.fromkeys(
                    metadata.state_dict_metadata, 1)
                consolidate_safetensors_files(
                    str(self.path), str(self.consolidated_output_path), mapping,
                    self.thread_count_consolidation)
            return
        every = [result for part in results for result in part]
        index = {"metadata": {"total_size": sum(r.size_in_bytes for r in every)},
                 "weight_map": {r.index.fqn: r.storage_data.relative_path
                                for r in sorted(every, key=lambda r: r.index.fqn)}}
        (self.path / _metadata_fn).write_text(json.dumps(index, indent=2))


class HuggingFaceStorageReader(FileSystemReader):
    """Reads all files of safetensors in a folder."""

    def __init__(self, path: str, thread_count: int = 1):
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self) -> Metadata:
        """What is there: the heads of all files say it."""
        if not any(Path(self.path).glob(f"*{SUFFIX}")):
            raise FileNotFoundError(f"{self.path}: no file of safetensors is there")
        about: dict[str, Any] = {}
        places: dict[MetadataIndex, Any] = {}
        for name, pieces in _pieces(self.path).items():
            about[name] = TensorStorageMetadata(
                TensorProperties(dtype=_DTYPES[pieces[0].dtype]),
                flambeau.Size(_size_of_whole(pieces)),
                [ChunkStorageMetadata(flambeau.Size(piece.offsets), flambeau.Size(piece.sizes))
                 for piece in pieces])
            places.update((MetadataIndex(name, piece.offsets), piece.path.name)
                          for piece in pieces)
        return Metadata(about, storage_data=places, storage_meta=StorageMeta(load_id=self.load_id))

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read what the plan says, file by file."""
        from safetensors import safe_open
        by_file: dict[str, list[Any]] = {}
        for item in plan.items:
            by_file.setdefault(self.storage_data[item.storage_index], []).append(item)
        for name, items in by_file.items():
            with safe_open(Path(self.path) / name, framework="numpy") as file:
                for item in items:
                    _fill(item, planner, self._tensor(file, item.storage_index.fqn))
        return _completed(None)

    def _tensor(self, file: Any, name: str) -> Any:
        return wrap(file.get_tensor(name))


_DTYPES = {**DTYPE_MAP, "BOOL": flambeau.bool, "F8_E4M3": flambeau.float8_e4m3fn,
           "F8_E5M2": flambeau.float8_e5m2, "U16": flambeau.uint16, "U32": flambeau.uint32,
           "U64": flambeau.uint64}
