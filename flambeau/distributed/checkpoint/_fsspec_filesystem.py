"""Checkpoints wherever the library `fsspec` reaches: `s3://…`, `gs://…`, `memory://…`."""
from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flambeau.distributed.checkpoint.filesystem import (
    FileSystemBase,
    FileSystemReader,
    FileSystemWriter,
    SerializationFormat,
)

__all__ = ["FsspecReader", "FsspecWriter"]


def _fsspec() -> Any:
    try:
        import fsspec
    except ImportError as error:
        raise ImportError("checkpoints at a URL need the library fsspec: pip install "
                          "'flambeau[checkpoint]'") from error
    return fsspec


class FileSystem(FileSystemBase):
    """A file system of `fsspec`."""

    def __init__(self) -> None:
        self.fs: Any = None

    @contextmanager
    def create_stream(self, path: str | os.PathLike, mode: str) -> Iterator[io.IOBase]:
        assert self.fs is not None
        with self.fs.open(os.fspath(path), mode) as stream:
            try:
                yield stream
            except BaseException:
                if mode.strip("rb"):            # half a file is worse than none
                    with contextlib.suppress(Exception):
                        self.rm_file(path)
                raise

    def concat_path(self, path: str | os.PathLike, suffix: str) -> str:
        return os.path.join(path, suffix)

    def init_path(self, path: str | os.PathLike, **kwargs: Any) -> str | os.PathLike:
        self.fs, _ = _fsspec().core.url_to_fs(path, **kwargs)
        return path

    def rename(self, path: str | os.PathLike, new_path: str | os.PathLike) -> None:
        self.fs.mv(path, new_path)

    def mkdir(self, path: str | os.PathLike) -> None:
        self.fs.makedirs(path, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        if isinstance(checkpoint_id, os.PathLike):
            return False
        try:
            _fsspec().core.url_to_fs(checkpoint_id)
        except (ImportError, ValueError):
            return False
        return True

    def exists(self, path: str | os.PathLike) -> bool:
        return self.fs.exists(path)

    def rm_file(self, path: str | os.PathLike) -> None:
        self.fs.rm(path)

    def ls(self, path: str | os.PathLike) -> list[str]:
        """What is in a folder."""
        return list(self.fs.ls(path, detail=False))


class FsspecWriter(FileSystemWriter):
    """`FileSystemWriter` at a URL; `kwargs` go to the file system."""

    def __init__(self, path: str | os.PathLike, single_file_per_rank: bool = True,
                 sync_files: bool = True, thread_count: int = 1,
                 per_thread_copy_ahead: int = 10_000_000, overwrite: bool = True,
                 _extensions: Sequence[Any] | None = None,
                 serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
                 **kwargs: Any):
        super().__init__(".", single_file_per_rank, sync_files, thread_count,
                         per_thread_copy_ahead, overwrite=overwrite, _extensions=_extensions,
                         serialization_format=serialization_format)
        files = FileSystem()
        self.fs: Any = files
        self.path: Any = files.init_path(path, **kwargs)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Does `fsspec` reach it?"""
        return FileSystem.validate_checkpoint_id(checkpoint_id)


class FsspecReader(FileSystemReader):
    """`FileSystemReader` at a URL; `kwargs` go to the file system."""

    def __init__(self, path: str | os.PathLike, **kwargs: Any):
        super().__init__(".")
        files = FileSystem()
        self.fs: Any = files
        self.path: Any = files.init_path(path, **kwargs)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Does `fsspec` reach it?"""
        return FileSystem.validate_checkpoint_id(checkpoint_id)
