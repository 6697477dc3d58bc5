"""What streams of checkpoints go through on their way to files, such as a compression."""
from __future__ import annotations

import abc
import importlib.util
import io
from collections.abc import Sequence
from typing import IO, Any

__all__ = ["Extension", "ExtensionRegistry", "StreamTransformExtension", "ZStandard"]


class Extension(abc.ABC):
    """Something that changes how checkpoints are kept; a checkpoint names those it needs."""

    @staticmethod
    @abc.abstractmethod
    def registry_name() -> str:
        """The name under which readers find it."""

    @staticmethod
    @abc.abstractmethod
    def from_descriptor(version: str) -> Extension:
        """The extension that a checkpoint asks for in that version."""

    @abc.abstractmethod
    def get_descriptor(self) -> str:
        """`NAME/VERSION`, which the checkpoint remembers."""


class StreamTransformExtension(Extension):
    """An extension that changes the bytes."""

    @abc.abstractmethod
    def transform_to(self, output: IO[bytes]) -> IO[bytes]:
        """A stream to write to, which writes what it makes of that to `output`. It is closed
        before `output` is."""

    @abc.abstractmethod
    def transform_from(self, input: IO[bytes]) -> IO[bytes]:
        """A stream that reads what was written, from what is in `input`."""


class ZStandard(StreamTransformExtension):
    """Compression by Zstandard: the package `zstandard` or `pyzstd`."""

    def __init__(self) -> None:
        if not self.is_available():
            raise ValueError("ZStandard extension is unavailable because no module named "
                             "'zstandard' or 'pyzstd'")

    @staticmethod
    def is_available() -> bool:
        """Is one of the packages there?"""
        return any(map(importlib.util.find_spec, ("zstandard", "pyzstd")))

    @staticmethod
    def from_descriptor(version: str) -> ZStandard:
        """The extension of version 1."""
        if version.partition(".")[0] != "1":
            raise ValueError(f"Unknown extension {version=}")
        if not ZStandard.is_available():
            raise ValueError("Stream with ZStandard compression cannot be processed because no "
                             "module named 'zstandard' or 'pyzstd'")
        return ZStandard()

    @staticmethod
    def registry_name() -> str:
        """stream.zstd"""
        return "stream.zstd"

    def get_descriptor(self) -> str:
        """stream.zstd/1"""
        return f"{self.registry_name()}/1"

    def transform_to(self, output: IO[bytes]) -> IO[bytes]:
        """A stream that compresses what is written to it."""
        if importlib.util.find_spec("zstandard"):
            import zstandard
            return zstandard.ZstdCompressor().stream_writer(output, closefd=False)
        import pyzstd
        return pyzstd.ZstdFile(output, "wb")

    def transform_from(self, input: IO[bytes]) -> IO[bytes]:
        """A stream that gives what was compressed."""
        if importlib.util.find_spec("zstandard"):
            import zstandard
            return io.BytesIO(zstandard.ZstdDecompressor().stream_reader(input).read())
        import pyzstd
        return pyzstd.ZstdFile(input, "rb")


class ExtensionRegistry:
    """The extensions that a reader knows.

    >>> ExtensionRegistry().from_descriptor_list([])
    []
    """

    def __init__(self) -> None:
        self.extensions: dict[str, type[Extension]] = {ZStandard.registry_name(): ZStandard}

    def register(self, cls: type[Extension]) -> None:
        """Add a kind of extension."""
        self.extensions[cls.registry_name()] = cls

    def from_descriptor_list(self, descriptors: Sequence[str]) -> Sequence[Extension]:
        """The extensions that a checkpoint names."""
        found: list[Extension] = []
        for descriptor in descriptors:
            name, _, version = descriptor.partition("/")
            if name not in self.extensions:
                raise ValueError(f"Unknown extension {name=}")
            found.append(self.extensions[name].from_descriptor(version))
        return found


class Transforms:
    """Extensions one after the other: the first is nearest to the file."""

    def __init__(self, extensions: Sequence[Any] = ()):
        self.extensions = list(extensions)

    def descriptors(self) -> list[str] | None:
        """What a checkpoint remembers of them."""
        return [extension.get_descriptor() for extension in self.extensions] or None

    def written(self, data: bytes) -> bytes:
        """What stands in the file for these bytes."""
        for extension in reversed(self.extensions):
            output = io.BytesIO()
            with extension.transform_to(_Kept(output)) as stream:
                stream.write(data)
            data = output.getvalue()
        return data

    def read(self, data: bytes) -> bytes:
        """The bytes for which this stands in the file."""
        for extension in self.extensions:
            data = extension.transform_from(io.BytesIO(data)).read()
        return data


class _Kept(io.RawIOBase):
    """A stream into another, which stays open."""

    def __init__(self, stream: IO[bytes]):
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._stream.write(data)
