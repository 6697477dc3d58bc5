"""Checkpoints in a folder, in PyTorch's format.

`.metadata` is a pickle that describes the state and says where each value is: in which file
`__{rank}_{number}.distcp`, from which byte on. There each value is what `flambeau.save` writes.
"""
from __future__ import annotations

import contextlib
import io
import os
import pickle
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._serialization.checkpoint_names import find_global
from flambeau._serialization.pickling import CheckpointPickler, Storages
from flambeau.distributed._shard._utils import narrow_tensor_by_index
from flambeau.distributed.checkpoint._extension import ExtensionRegistry, Transforms
from flambeau.distributed.checkpoint._file_systems import FileSystem, FileSystemBase
from flambeau.distributed.checkpoint.metadata import Metadata, StorageMeta
from flambeau.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from flambeau.distributed.checkpoint.staging import BlockingAsyncStager
from flambeau.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from flambeau.distributed.checkpoint.utils import _create_file_view
from flambeau.futures import Future, _completed

__all__ = ["FileSystem", "FileSystemBase", "FileSystemReader", "FileSystemWriter",
           "SerializationFormat"]

_metadata_fn: str = ".metadata"
CURRENT_DCP_VERSION = "1.0.0"
DEFAULT_SUFFIX = ".distcp"


@dataclass
class _StorageInfo:
    """Where a value is."""
    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if v is not None}


@dataclass
class _StoragePrefix:
    """How the names of a process's files begin."""
    prefix: str


class SerializationFormat(Enum):
    """What values look like in files."""
    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


def _generate_uuid() -> str:
    return str(uuid.uuid4())


# ---- writing ------------------------------------------------------------------------------------

def _item_size(item: WriteItem) -> int:
    """How many bytes of values an item has."""
    assert item.tensor_data is not None
    count = 1
    for size in item.tensor_data.chunk.sizes:
        count *= size
    return count * flambeau._utils._element_size(item.tensor_data.properties.dtype)


def _split_by_size_and_type(bins: int, items: list[WriteItem]) -> list[list[WriteItem]]:
    """The items in so many lists, of about one size each."""
    if bins == 1:
        return [items]
    found: list[list[WriteItem]] = [[] for _ in range(bins)]
    sizes = [0] * bins
    others = [item for item in items if item.type == WriteItemType.BYTE_IO]
    tensors = [item for item in items if item.type != WriteItemType.BYTE_IO]
    for i, item in enumerate(others):
        found[i % bins].append(item)
    for item in sorted(tensors, key=_item_size, reverse=True):
        smallest = sizes.index(min(sizes))
        found[smallest].append(item)
        sizes[smallest] += _item_size(item)
    return found


class _Appended(io.RawIOBase):
    """What follows in a file, as a file of its own: places in it count from its beginning."""

    def __init__(self, stream: Any):
        self._stream, self._start = stream, stream.tell()

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._stream.write(data)

    def tell(self) -> int:
        return self._stream.tell() - self._start

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_SET:
            offset += self._start
        return self._stream.seek(offset, whence) - self._start


def _write_item(transforms: Transforms, stream: io.IOBase, data: io.BytesIO | Tensor,
                write_item: WriteItem, storage_key: str) -> WriteResult:
    """Append a value to a file."""
    offset, file = stream.tell(), stream
    changed = io.BytesIO()
    if transforms.extensions:
        stream = changed
    if write_item.type == WriteItemType.BYTE_IO:
        assert isinstance(data, io.BytesIO)
        stream.write(data.getbuffer())
    else:
        assert isinstance(data, Tensor) and data.device == flambeau.device("cpu")
        flambeau.save(data.detach().contiguous().clone() if _is_part(data) else data,
                      _Appended(stream))
    size = stream.tell() - (offset if stream is file else 0)
    if stream is not file:
        file.write(transforms.written(changed.getvalue()))
    return WriteResult(write_item.index, size, _StorageInfo(
        storage_key, offset, file.tell() - offset, transforms.descriptors()))


def _is_part(tensor: Tensor) -> bool:
    """Is its storage larger than it is? It would be written whole."""
    return tensor.untyped_storage().nbytes() != tensor.numel() * tensor.element_size()


class _FileSystemWriter(StorageWriter):
    """Writes checkpoints into a folder: see `FileSystemWriter`."""

    def __init__(self, path: str | os.PathLike, single_file_per_rank: bool = True,
                 sync_files: bool = True, thread_count: int = 1,
                 per_thread_copy_ahead: int = 10_000_000, overwrite: bool = True,
                 _extensions: Sequence[Any] | None = None,
                 serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
                 *args: Any, **kwargs: Any):
        super().__init__()
        self.transforms = Transforms(_extensions or ())
        self.fs: FileSystemBase = FileSystem()
        self.path: Any = self.fs.init_path(path)
        self.single_file_per_rank, self.sync_files = single_file_per_rank, sync_files
        self.thread_count, self.per_thread_copy_ahead = thread_count, per_thread_copy_ahead
        self.save_id = _generate_uuid()
        self.overwrite, self.serialization_format = overwrite, serialization_format
        self.rank: int | None = None
        self.use_collectives = True

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Begin another checkpoint."""
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = _generate_uuid()

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Learn of the process."""
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def _metadata_exists(self) -> bool:
        return self.fs.exists(self._get_metadata_path(
            None if self.use_collectives else self.rank))

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Make the folder; a checkpoint that is there is overwritten if it may be."""
        self.fs.mkdir(self.path)
        if self._metadata_exists() and not self.overwrite:
            raise RuntimeError(f"Checkpoint already exists and self.overwrite={self.overwrite}.")
        if self.rank is not None and not self.use_collectives:
            return replace(plan, storage_data=_StoragePrefix(f"__{self.rank}_"))
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each process names for its files."""
        return [replace(plan, storage_data=_StoragePrefix(f"__{i}_"))
                if plan.storage_data is None else plan for i, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write this process's files."""
        prefix = plan.storage_data.prefix
        if self.single_file_per_rank:
            buckets = [b for b in _split_by_size_and_type(self.thread_count, plan.items) if b]
        else:
            buckets = [[item] for item in plan.items]
        names = [f"{prefix}{i}{DEFAULT_SUFFIX}" for i in range(len(buckets))]
        write = partial(self._write_file, planner=planner)
        future: Future[list[WriteResult]] = Future()
        if self.thread_count > 1 and len(buckets) > 1:
            with ThreadPoolExecutor(self.thread_count) as pool:
                parts = list(pool.map(write, names, buckets))
        else:
            parts = list(map(write, names, buckets))
        future.set_result([result for part in parts for result in part])
        return future

    def _write_file(self, name: str, items: list[WriteItem],
                    planner: SavePlanner) -> list[WriteResult]:
        bytes_first = sorted(items, key=lambda item: item.type != WriteItemType.BYTE_IO)
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            results = []
            for item in bytes_first:
                data = planner.resolve_data(item)
                if isinstance(data, Tensor):
                    data = data.detach().cpu()
                results.append(_write_item(self.transforms, stream, data, item, name))
            self._sync(stream)
        return results

    def _sync(self, stream: io.IOBase) -> None:
        """Have a file on the disk; files that are elsewhere have no number."""
        if self.sync_files:
            stream.flush()
            with contextlib.suppress(AttributeError, io.UnsupportedOperation):
                os.fsync(stream.fileno())

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the description, whole or not at all."""
        metadata.version, metadata.storage_meta = CURRENT_DCP_VERSION, self.storage_meta()
        metadata.storage_data = {
            result.index: result.storage_data for part in results for result in part}
        path = self._get_metadata_path(None if self.use_collectives else self.rank)
        temporary = self.fs.concat_path(self.path, f"{os.path.basename(path)}.tmp")
        with self.fs.create_stream(temporary, "wb") as stream:
            CheckpointPickler(stream, 4, Storages()).dump(metadata)
            self._sync(stream)
        if self.fs.exists(path):
            self.fs.rm_file(path)
        self.fs.rename(temporary, path)

    def storage_meta(self) -> StorageMeta | None:
        """Which checkpoint this is."""
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    def _get_metadata_path(self, rank: int | None = None) -> str | os.PathLike:
        name = _metadata_fn if rank is None else f"__{rank}{_metadata_fn}"
        return self.fs.concat_path(self.path, name)

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Can this be a folder?"""
        return FileSystem.validate_checkpoint_id(checkpoint_id)


class FileSystemWriter(_FileSystemWriter, BlockingAsyncStager):
    """Writes checkpoints into a folder: a file for each process, and the description `.metadata`.

    With `single_file_per_rank=False` each value has a file; `thread_count` files are written at a
    time. Unless `overwrite`, a checkpoint that is there raises.

    >>> import tempfile, os, flambeau
    >>> folder = tempfile.mkdtemp()
    >>> from flambeau.distributed import checkpoint
    >>> _ = checkpoint.save({"w": flambeau.ones(2)}, storage_writer=FileSystemWriter(folder))
    >>> sorted(os.listdir(folder))
    ['.metadata', '__0_0.distcp']
    """

    def __init__(self, path: str | os.PathLike, single_file_per_rank: bool = True,
                 sync_files: bool = True, thread_count: int = 1,
                 per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False,
                 overwrite: bool = True, _extensions: Sequence[Any] | None = None,
                 serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE):
        _FileSystemWriter.__init__(
            self, path, single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead,
            overwrite, _extensions, serialization_format)
        BlockingAsyncStager.__init__(self, cache_staged_state_dict=cache_staged_state_dict)

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """A copy of the state, which is written while the state changes."""
        self.per_thread_copy_ahead = 0
        return super().stage(state_dict)


# ---- reading ------------------------------------------------------------------------------------

# What the description of a checkpoint is made of; nothing else is looked up.
_MODULES = ("torch.distributed.checkpoint.", "torch.distributed._shard.",
            "torch.distributed._tensor.", "torch.distributed.tensor.")
_NAMES = {("torch", "Size"), ("torch.serialization", "_get_layout"), ("pathlib", "PosixPath"),
          ("pathlib", "PurePosixPath"), ("pathlib", "WindowsPath"),
          ("collections", "OrderedDict"), ("builtins", "set"), ("builtins", "frozenset"),
          ("builtins", "slice")}


class _MetadataUnpickler(pickle.Unpickler):
    """Reads descriptions; what else a pickle might call is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and isinstance(getattr(flambeau, name, None), flambeau.dtype):
            return getattr(flambeau, name)
        if (module, name) not in _NAMES and not module.startswith(_MODULES):
            raise pickle.UnpicklingError(f"{module}.{name} has no place in the metadata of a "
                                         "checkpoint")
        try:
            return find_global(module, name)
        except LookupError:
            if module == "pathlib":
                return Path
            return super().find_class(module, name)


def _fill(item: Any, planner: LoadPlanner, tensor: Tensor,
          misfit: str = "mismatch sizes") -> None:
    """Copy what an item of a plan names of a tensor that has been read to where it goes."""
    tensor = narrow_tensor_by_index(tensor, item.storage_offsets, item.lengths)
    target = planner.resolve_tensor(item).detach()
    assert target.size() == tensor.size(), (
        f"req {item.storage_index} {misfit} {target.size()} vs {tensor.size()}")
    target.copy_(tensor)
    planner.commit_tensor(item, target)


class FileSystemReader(StorageReader):
    """Reads checkpoints from a folder, whoever has written them: flambeau or PyTorch."""

    def __init__(self, path: str | os.PathLike, _extension_registry: Any = None):
        super().__init__()
        self.extension_registry = _extension_registry or ExtensionRegistry()
        self.fs: FileSystemBase = FileSystem()
        self.path: Any = self.fs.init_path(path)
        self.storage_data: dict[Any, Any] = {}
        self.load_id = _generate_uuid()
        self.rank: int | None = None
        self.use_collectives = True

    def _slice_file(self, file: io.IOBase, sinfo: _StorageInfo) -> io.IOBase:
        return _create_file_view(file, sinfo.offset, sinfo.length)

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Begin with another checkpoint."""
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = _generate_uuid()

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read what the plan says, file by file."""
        by_file: dict[str, list[Any]] = {}
        for item in plan.items:
            place = self.storage_data[item.storage_index]
            by_file.setdefault(place.relative_path, []).append((place, item))
        for name, items in by_file.items():
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                for place, item in items:
                    data = self._slice_file(stream, place).read(place.length)
                    self._read_item(io.BytesIO(self._transformed(data, place)), item, planner)
        return _completed(None)

    def _transformed(self, data: bytes, place: _StorageInfo) -> bytes:
        """The bytes as they were before the extensions that the checkpoint names."""
        names = getattr(place, "transform_descriptors", None)
        return data if not names else Transforms(
            self.extension_registry.from_descriptor_list(names)).read(data)

    @staticmethod
    def _read_item(data: io.BytesIO, item: Any, planner: LoadPlanner) -> None:
        if item.type == LoadItemType.BYTE_IO:
            planner.load_bytes(item, data)
            return
        _fill(item, planner, flambeau.load(data, map_location="cpu", weights_only=True))

    def _get_metadata_path(self, rank: int | None = None) -> str | os.PathLike:
        name = _metadata_fn if rank is None else f"__{rank}{_metadata_fn}"
        return self.fs.concat_path(self.path, name)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The description of what is there."""
        with self.fs.create_stream(self._get_metadata_path(kwargs.get("rank")), "rb") as file:
            metadata = _MetadataUnpickler(file).load()
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any,
                              **kwargs: Any) -> None:
        """Learn where what is."""
        self.storage_data = metadata.storage_data
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)
        assert self.storage_data is not None

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Can this be a folder?"""
        return FileSystem.validate_checkpoint_id(checkpoint_id)
