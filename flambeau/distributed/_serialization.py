"""`torch.save` and `torch.load` of a stream that is written, and read, from front to end.

A file of `torch.save` is an archive whose index comes last, which a socket cannot read. Here the
index comes first: a pickled list of the records' names and lengths, then the records.
"""
from __future__ import annotations

import io
import pickle
import zipfile
from dataclasses import dataclass
from typing import Any

import flambeau
from flambeau._serialization.pickling import CheckpointPickler, Storages
from flambeau.serialization import DEFAULT_PROTOCOL

__all__: list[str] = []


@dataclass
class _Entry:
    """A record: its name, whether it is the memory of a tensor, and its length."""

    key: str
    is_storage: bool
    length: int


class _PseudoZipFile:
    """Records by name, which travel as a stream."""

    def __init__(self) -> None:
        self.records: dict[str, tuple[object, int]] = {}

    def write_record(self, key: str, data: object, length: int) -> None:
        """Add a record."""
        self.records[key] = (data, length)

    def write_to(self, f: io.BufferedIOBase) -> None:
        """Write the index, and the records."""
        entries = [_Entry(key, key.startswith("data/"), length)
                   for key, (_, length) in self.records.items()]
        CheckpointPickler(f, DEFAULT_PROTOCOL, Storages()).dump(entries)
        for data, _ in self.records.values():
            f.write(data)           # type: ignore[arg-type]

    def read_from(self, f: io.BufferedIOBase) -> None:
        """Read what `write_to` has written."""
        for entry in _EntryUnpickler(f).load():
            data = f.read(entry.length)
            if len(data) != entry.length:
                raise EOFError(f"record {entry.key} has {entry.length} bytes, but the stream ends "
                               f"after {len(data)}")
            self.records[entry.key] = (data, entry.length)

    def has_record(self, key: str) -> bool:
        """Is there a record of that name?"""
        return key in self.records

    def get_record(self, key: str) -> object:
        """The record of that name."""
        return self.records[key][0]

    def get_storage_from_record(self, key: str, _length: int, _type: int) -> flambeau.Tensor:
        """The memory of a tensor, as bytes."""
        data: Any = self.records[key][0]
        return flambeau.frombuffer(bytearray(data), dtype=flambeau.uint8)

    def serialization_id(self) -> str:
        """Streams have none."""
        return ""


class _EntryUnpickler(pickle.Unpickler):
    """Reads an index, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "_Entry" and module.endswith("distributed._serialization"):
            return _Entry
        raise pickle.UnpicklingError(f"{module}.{name} has no place in the index of a stream")


def _streaming_save(obj: object, f: io.BufferedIOBase, pickle_module: Any = pickle,
                    pickle_protocol: int = DEFAULT_PROTOCOL) -> None:
    """`torch.save` to a stream that cannot go back."""
    whole = io.BytesIO()
    flambeau.save(obj, whole, pickle_module=pickle_module, pickle_protocol=pickle_protocol)
    records = _PseudoZipFile()
    with zipfile.ZipFile(whole) as archive:
        for info in archive.infolist():
            records.write_record(info.filename.partition("/")[2], archive.read(info),
                                 info.file_size)
    records.write_to(f)


def _streaming_load(f: io.BufferedIOBase, map_location: Any = None, pickle_module: Any = None, *,
                    weights_only: bool = True, **pickle_load_args: Any) -> object:
    """`torch.load` from such a stream; what comes after it is left in the stream.

    >>> import io
    >>> stream = io.BytesIO()
    >>> _streaming_save({"w": flambeau.ones(2)}, stream)
    >>> _ = stream.seek(0)
    >>> _streaming_load(stream)
    {'w': tensor([1., 1.])}
    """
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    records = _PseudoZipFile()
    records.read_from(f)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        for key, (data, _) in records.records.items():
            archive.writestr(f"archive/{key}", data)        # type: ignore[arg-type]
    whole.seek(0)
    options = {} if pickle_module is None else {"pickle_module": pickle_module}
    return flambeau.load(whole, map_location=map_location, weights_only=weights_only, **options,
                         **pickle_load_args)
