"""Reads checkpoints that are zip archives, as a whole or record by record."""
from __future__ import annotations

import io
import os
import struct
import sys
import zlib
from typing import Any

import numpy as np

import flambeau
from flambeau._serialization import options
from flambeau._serialization.options import MAP_SHARED
from flambeau._serialization.unpickling import read_pickle, storage_reference, typed_storage
from flambeau._support.c_functions import bound_in_c
from flambeau.kernels.moving.checksums import crc32
from flambeau.schema.errors import type_name
from flambeau.storage import UntypedStorage, element_type

_PART = 1 << 18             # bytes that are read, and then checked while they are in the cache
_INFLATED = 1 << 28         # bytes from which on a record may not have been much smaller


def opened(file: Any) -> Any:
    """The zip file of a path or of an open file."""
    import zipfile
    if not isinstance(file, str | os.PathLike) and not hasattr(file, "tell"):
        raise AttributeError(f"'{type_name(file)}' object has no attribute 'tell'")
    return zipfile.ZipFile(file)


class ZipReader:
    """A checkpoint as a zip file."""

    def __init__(self, file: Any, path: str | None):
        import zipfile

        self.file, self.path = file, path
        try:
            self.zip = zipfile.ZipFile(file)
            for info in self.zip.infolist():
                info.CRC = info.CRC or None
                # a checksum of 0 was not computed
            names = self.zip.namelist()
        except (zipfile.BadZipFile, NotImplementedError, struct.error, EOFError, OSError,
                UnicodeDecodeError) as error:
            small = file.seek(0, os.SEEK_END) < 22      # bytes of an empty archive
            why = "not a ZIP archive" if small else "failed finding central directory"
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: {why}. This is an internal miniz "
                "error. If you are seeing this error, there is a high likelihood that your "
                "checkpoint file is corrupted. This can happen if the checkpoint was not saved "
                "properly, was transferred incorrectly, or the file was modified after saving."
                f"\n{error}") from None
        pickles = [name for name in names if name.endswith("/data.pkl") and name.count("/") == 1]
        if not pickles:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found "
                               "(this zip file is not a checkpoint)")
        self.prefix = pickles[0].removesuffix("data.pkl")
        self.entries = {name.removeprefix(self.prefix): name for name in names}
        if "constants.pkl" in self.entries:
            raise NotImplementedError("load: this is a TorchScript archive, which holds compiled "
                                      "code; flambeau reads checkpoints of torch.save")

    def read(self, name: str) -> bytes:
        import zipfile

        if name not in self.entries:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        info = self.zip.getinfo(self.entries[name])
        if info.file_size > _INFLATED and info.file_size > 100 * info.compress_size:
            raise self._damaged(name, f"{info.compress_size} bytes inflate to {info.file_size}")
        try:
            return self.zip.read(info)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise self._damaged(name, error) from None

    def _damaged(self, name: str, reason: object) -> RuntimeError:
        return RuntimeError(f"PytorchStreamReader failed reading file {name}: {reason}. The file "
                            "is incomplete or damaged.")

    def array(self, name: str, dtype: np.dtype, count: int) -> np.ndarray:
        """The numbers of one entry, in memory of their own or mapped."""
        entry = self.entries.get(name)
        if entry is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        info = self.zip.getinfo(entry)
        if info.file_size != count * dtype.itemsize:
            raise self._damaged(name, f"it has {info.file_size} bytes, and the pickle asks for "
                                      f"{count} elements of {dtype.itemsize} bytes")
        if info.compress_type:
            return np.frombuffer(bytearray(self.read(name)), dtype)
        offset = self._data_offset(name, info)
        if self.path is not None and count:
            shared = options.load.mmap_flags == MAP_SHARED
            if shared:
                self._drop_checksum(info)
            return np.memmap(self.path, dtype, "r+" if shared else "c", offset, (count,)
                             ).view(np.ndarray)
        array = np.empty(count, dtype)
        if options.of_thread.skip_data:
            return array
        data = array.view(np.uint8).data
        self.file.seek(offset)
        checksum = 0
        for at in range(0, len(data), _PART):
            part = data[at:at + _PART]
            if read_into(self.file, part) != len(part):
                raise self._damaged(name, "it ends early")
            if info.CRC is not None:
                checksum = crc32(part, checksum)
        if info.CRC is not None and checksum != info.CRC:
            raise self._damaged(name, "its checksum is wrong")
        return array

    def _drop_checksum(self, info: Any) -> None:
        """Mark an entry as one without a checksum, as its data may change."""
        if info.CRC is None:
            return
        self.file.seek(self.zip.start_dir)
        directory = self.file.read()
        places, at = [info.header_offset + 14], 0
        while directory[at:at + 4] == b"PK\x01\x02":
            lengths = struct.unpack_from("<HHH", directory, at + 28)
            if directory[at + 46:at + 46 + lengths[0]] == info.filename.encode():
                places.append(self.zip.start_dir + at + 16)
            at += 46 + sum(lengths)
        with open(self.path, "r+b") as file:
            for place in places:
                file.seek(place)
                file.write(bytes(4))
        info.CRC = None

    def _data_offset(self, name: str, info: Any) -> int:
        """Where an uncompressed entry's bytes begin: behind its own header."""
        self.file.seek(info.header_offset)
        header = self.file.read(30)
        if len(header) != 30 or header[:4] != b"PK\x03\x04":
            raise self._damaged(name, "its header is wrong")
        return info.header_offset + 30 + sum(struct.unpack_from("<HH", header, 26))

    def load(self, restore: Any, weights_only: bool, pickle_module: Any,
             arguments: dict[str, Any]) -> Any:
        order = self.read("byteorder").decode() if "byteorder" in self.entries \
            else options.file_byte_order()
        if order not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {order}")
        loaded: dict[str, Any] = {}

        def persistent_load(saved_id: Any) -> Any:
            kind, key, location, count = storage_reference(saved_id, 5)
            if key not in loaded:
                dtype = element_type(flambeau.uint8 if kind is UntypedStorage else kind.dtype)
                array = self.array(f"data/{key}", dtype, count)
                if order != sys.byteorder:
                    array = array.byteswap()
                loaded[key] = typed_storage(array, kind, location, restore)
            return loaded[key]

        buffer = io.BytesIO(self.read("data.pkl"))
        return read_pickle(buffer, persistent_load, weights_only, pickle_module, arguments)


@bound_in_c
class PyTorchFileReader:
    """The records of a checkpoint one by one, for loaders that want only some of them.

    `source` is a path or an open binary file.

    >>> import io, flambeau
    >>> file = io.BytesIO()
    >>> flambeau.save(flambeau.arange(3.0), file)
    >>> reader = PyTorchFileReader(file)
    >>> reader.get_all_records()[:2], reader.has_record("data/1")
    (['data.pkl', '.format_version'], False)
    >>> reader.get_storage_from_record("data/0", 3, flambeau.float32)
    tensor([0., 1., 2.])
    """

    def __init__(self, source: Any):
        by_path = isinstance(source, (str, os.PathLike))
        self._file = open(source, "rb") if by_path else source  # noqa: SIM115  closed with the reader
        self._archive = ZipReader(self._file, os.fspath(source) if by_path else None)

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return list(self._archive.entries)

    def has_record(self, name: str) -> bool:
        """Is there a record of this name?"""
        return name in self._archive.entries

    def get_record(self, name: str) -> bytes:
        """The bytes of a record; RuntimeError if it isn't there or is damaged."""
        return self._archive.read(name)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """The memory of a record as a tensor of `numel` elements."""
        return flambeau.from_numpy(self._archive.array(name, dtype.numpy, numel))

    def get_record_size(self, name: str) -> int:
        """The number of bytes of a record."""
        return len(self._archive.read(name))

    def serialization_id(self) -> str:
        """What tells this file from others that were saved; empty where it says nothing."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


def read_into(file: Any, data: memoryview) -> int:
    """Fill `data` from a file; returns how many bytes there were."""
    if not hasattr(file, "readinto"):
        found = file.read(len(data))
        data[:len(found)] = found
        return len(found)
    filled = 0
    while filled < len(data):
        count = file.readinto(data[filled:])
        if not count:
            break
        filled += count
    return filled
