"""What checkpoints ask of a file system, and that of this machine."""
from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flambeau._support.lazy.modules import stand_in

__all__ = ["FileSystem", "FileSystemBase"]


class FileSystemBase(ABC):
    """What is asked of a file system."""

    @contextmanager
    @abstractmethod
    def create_stream(self, path: str | os.PathLike, mode: str) -> Iterator[io.IOBase]:
        """An open file."""

    @abstractmethod
    def concat_path(self, path: str | os.PathLike, suffix: str) -> str | os.PathLike:
        """The path of a file in a folder."""

    @abstractmethod
    def rename(self, path: str | os.PathLike, new_path: str | os.PathLike) -> None:
        """Give a file another name."""

    @abstractmethod
    def init_path(self, path: str | os.PathLike) -> str | os.PathLike:
        """A path, as the file system has it."""

    @abstractmethod
    def mkdir(self, path: str | os.PathLike) -> None:
        """Make a folder, and those on the way to it."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Can checkpoints of that name be here?"""

    @abstractmethod
    def exists(self, path: str | os.PathLike) -> bool:
        """Is there a file?"""

    @abstractmethod
    def rm_file(self, path: str | os.PathLike) -> None:
        """Remove a file."""


class FileSystem(FileSystemBase):
    """The file system of this machine."""

    @contextmanager
    def create_stream(self, path: str | os.PathLike, mode: str) -> Iterator[io.IOBase]:
        with open(path, mode) as stream:
            yield stream                                        # type: ignore[misc]

    def concat_path(self, path: str | os.PathLike, suffix: str) -> Path:
        return Path(path) / suffix

    def init_path(self, path: str | os.PathLike) -> Path:
        return Path(path)

    def rename(self, path: str | os.PathLike, new_path: str | os.PathLike) -> None:
        Path(path).rename(new_path)

    def mkdir(self, path: str | os.PathLike) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        if isinstance(checkpoint_id, Path):
            return True
        if "://" in str(checkpoint_id):
            return False
        return any(parent.exists() and os.access(str(parent), os.W_OK)
                   for parent in Path(checkpoint_id).parents)

    def exists(self, path: str | os.PathLike) -> bool:
        return Path(path).exists()

    def rm_file(self, path: str | os.PathLike) -> None:
        Path(path).unlink()

    def ls(self, path: str | os.PathLike) -> list[str]:
        """What is in a folder."""
        return [str(entry) for entry in Path(path).iterdir()]
stand_in("distributed.checkpoint.filesystem", FileSystem, FileSystemBase)
