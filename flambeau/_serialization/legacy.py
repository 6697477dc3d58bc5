"""The format before PyTorch 1.6: pickles one after the other, then the storages."""
from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau
from flambeau._serialization.pickling import StoragesWithViews, write_pickle
from flambeau._serialization.unpickling import read_pickle, storage_reference, typed_storage
from flambeau._serialization.zip_reader import read_into
from flambeau.storage import UntypedStorage, element_type

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def write_legacy(obj: Any, file: Any, pickle_module: Any, protocol: int, archive: str) -> None:
    """The format before PyTorch 1.6: pickles one after the other, then the storages."""
    storages = StoragesWithViews()
    sizes = {"short": 2, "int": 4, "long": 4}
    system = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little",
              "type_sizes": sizes}
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle.dump(header, file, protocol)
    write_pickle(obj, file, pickle_module, protocol, storages)
    pickle.dump([str(key) for key in range(len(storages.found))], file, protocol)
    file.flush()
    for storage, dtype in zip(storages.found, storages.dtypes, strict=True):
        file.write(struct.pack("<q", len(storage) // dtype.itemsize))
        file.write(storage._readable().data)


def load_legacy(file: Any, restore: Any, weights_only: bool, pickle_module: Any,
                 arguments: dict[str, Any]) -> Any:
    """Read the format before PyTorch 1.6."""
    def no_storages(saved_id: Any) -> Any:
        raise pickle.UnpicklingError(f"Unknown persistent id {saved_id!r}")

    def part(persistent_load: Callable[[Any], Any] = no_storages) -> Any:
        return read_pickle(file, persistent_load, weights_only, pickle_module, arguments)

    if not file.read(1):
        raise EOFError("" if weights_only else "Ran out of input")
    file.seek(-1, os.SEEK_CUR)
    head = file.read(262)
    file.seek(-len(head), os.SEEK_CUR)
    if head[257:262] == b"ustar":
        raise NotImplementedError("load: this is a tar file of PyTorch 0.1; save it anew with a "
                                  "PyTorch of today to read it here")
    magic = part()
    if magic != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = part()
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    part()  # sizes of C types where the file was written; they change nothing
    storages: dict[str, Any] = {}

    def persistent_load(saved_id: Any) -> Any:
        kind, key, location, count, view = storage_reference(saved_id, 6)
        if view is not None:
            raise NotImplementedError("load: storages that are views of other storages, as "
                                      "PyTorch wrote them before version 0.4")
        if key not in storages:
            dtype = element_type(flambeau.uint8 if kind is UntypedStorage else kind.dtype)
            _check_room(file, count * dtype.itemsize)
            array = np.empty(count, dtype)
            storages[key] = array, typed_storage(array, kind, location, restore)
        return storages[key][1]

    result = part(persistent_load)
    keys = part()
    if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(storages):
        raise RuntimeError(f"the file lists the storages {keys}, and its objects refer to "
                           f"{list(storages)}: it is damaged")
    for key in keys:
        array, size = storages[key][0], file.read(8)
        if size != struct.pack("<q", len(array)):
            raise RuntimeError(f"the storage {key} does not have the {len(array)} elements that "
                               "its tensors need: the file is damaged")
        data = array.view(np.uint8).data
        if read_into(file, data) != len(data):
            raise RuntimeError(f"unexpected EOF, expected {len(data)} more bytes. The file might "
                               "be corrupted.")
    return result


def _check_room(file: Any, nbytes: int) -> None:
    """No memory for more than the file can hold."""
    here = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(here)
    if nbytes > size - here:
        raise RuntimeError(f"unexpected EOF, expected {nbytes} more bytes. The file might be "
                           "corrupted.")
