"""Saving and loading in PyTorch's checkpoint format, both ways.

A checkpoint is a zip archive: ``data.pkl`` holds the objects as a pickle in which tensors are
calls of named functions (see ``_checkpoint_names``), ``data/0``, ``data/1`` … hold the memory that
the tensors look at. Files from ``torch.save`` load here and files from here in ``torch.load``.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import secrets
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

import flambeau
from flambeau._serialization import options
from flambeau._serialization.checkpoint_names import find_global, global_name, reduce_for_checkpoint
from flambeau._serialization.names import (  # noqa: F401
    INT_SIZE,
    IS_WINDOWS,
    LONG_SIZE,
    SHORT_SIZE,
    STORAGE_KEY_SEPARATOR,
    UNSAFE_MESSAGE,
    SourceChangeWarning,
    StorageType,
    check_module_version_greater_or_equal,
    get_source_lines_and_file,
    mkdtemp,
    normalize_storage_type,
    storage_to_tensor_type,
    validate_cuda_device,
    validate_hpu_device,
)
from flambeau._serialization.options import (
    MAP_PRIVATE,
    MAP_SHARED,
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from flambeau._serialization.quick_pickler import NeedsNames, quick_pickle
from flambeau._serialization.weights_unpickler import (
    Unpickler,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from flambeau._serialization.zip_writer import ZipWriter
from flambeau._support.own_methods import adopt
from flambeau.kernels.moving.checksums import crc32
from flambeau.storage import TypedStorage, UntypedStorage, element_type, storage_of

__all__ = [
    "MAP_PRIVATE",
    "MAP_SHARED",
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]

# What `load` takes as `map_location`, for annotations.
MAP_LOCATION = (Callable[[UntypedStorage, str], UntypedStorage] | flambeau.device | str
                | dict[str, str] | None)

DEFAULT_PROTOCOL = 2
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
# Both begin as PyTorch's do; the second is for names that can be allowed.
_ADVICE = """\
Weights only load failed. In PyTorch 2.6, we changed the default value of the `weights_only` \
argument in `torch.load` from `False` to `True`. Re-running `torch.load` with `weights_only` set \
to `False` will likely succeed, but it can result in arbitrary code execution. Do it only if you \
got the file from a trusted source.
    WeightsUnpickler error: """
_ADVICE_ON_NAMES = """\
Weights only load failed. This file can still be loaded, to do so you have two options, \
\x1b[1mdo those steps only if you trust the source of the checkpoint\x1b[0m.\x20
    (1) Load it with `weights_only=False`: that can run any code that the file contains.
    (2) Load it with `weights_only=True`, and allow what it names:
    WeightsUnpickler error: """

# Saving -------------------------------------------------------------------------------------------


def save(obj: object, f: Any, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL,
         _use_new_zipfile_serialization: bool = True,
         _disable_byteorder_record: bool = False) -> None:
    """Write an object, its tensors included, to a file.

    Args:
        obj: nearly anything: a tensor, a `state_dict`, nested containers.
        f: a path, or a binary file object. A path is written whole or, on an error, not at all.
        pickle_module: the module whose `Pickler` writes objects other than tensors.
        pickle_protocol: the protocol of the pickle inside.

    Example::

        >>> import flambeau as torch, io
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.ones(2)}, file)
        >>> torch.load(io.BytesIO(file.getvalue()))
        {'weight': tensor([1., 1.])}
    """
    write = _write_zip if _use_new_zipfile_serialization else _write_legacy
    if isinstance(f, str | os.PathLike):
        path = os.fspath(f)
        archive = os.path.splitext(os.path.basename(path))[0] or "archive"
        with _replacing(path) as file:
            write(obj, file, pickle_module, pickle_protocol, archive)
    elif hasattr(f, "write"):
        write(obj, f, pickle_module, pickle_protocol, "archive")
    else:
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[Any]:
    """A file that takes the place of `path` once it is complete, and leaves no trace otherwise."""
    path = os.path.realpath(path)
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    if os.path.exists(path) and not os.path.isfile(path):  # a device, a pipe
        with open(path, "wb") as file:
            yield file
        return
    temporary = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "xb") as file:
            yield file
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


class _Storages:
    """The storages that a pickle refers to, numbered in the order of their appearance."""

    def __init__(self) -> None:
        self.keys: dict[int, str] = {}
        self.found: list[UntypedStorage] = []
        self.dtypes: list[Any] = []

    def clear(self) -> None:
        for each in (self.keys, self.found, self.dtypes):
            each.clear()

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        if isinstance(obj, TypedStorage):
            storage, dtype = obj.untyped(), obj.dtype
            kind, count = getattr(flambeau.storage, obj.pickle_storage_type()), len(obj)
        elif isinstance(obj, UntypedStorage):
            storage, dtype, kind, count = obj, flambeau.uint8, UntypedStorage, len(obj)
        else:
            return None
        key = self.keys.get(id(storage))
        if key is None:
            key = self.keys[id(storage)] = str(len(self.found))
            self.found.append(storage)
            self.dtypes.append(dtype)
        elif self.dtypes[int(key)] is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data "
                               "as different types")
        return "storage", kind, key, location_tag(storage), count


class _StoragesWithViews(_Storages):
    """The old form has a fifth item: the storage as a view of another."""

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        reference = super().persistent_id(obj)
        return reference and (*reference, None)


# values of which most of a pickle is made, which are never written in another way
_PLAIN = frozenset({int, bool, str, tuple, type(None)})


# the one in Python: the C one does not let names be changed
_PythonPickler: Any = pickle._Pickler


class _Pickler(_PythonPickler):
    """Writes flambeau's objects under PyTorch's names, whatever this package was imported as."""

    def __init__(self, file: Any, protocol: int, storages: _Storages):
        super().__init__(file, protocol)
        self.persistent_id = storages.persistent_id

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if type(obj) not in _PLAIN or self.proto >= 4:      # which has frames to look after
            return super().save(obj, save_persistent_id)
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
        else:
            self.dispatch[type(obj)](self, obj)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, flambeau.dtype | flambeau.qscheme):
            return repr(obj).removeprefix("torch.")
        return reduce_for_checkpoint(obj)

    def name_of(self, obj: Any, name: str) -> tuple[str, str] | None:
        """The module and name under which to write what is written by name; None for Python's."""
        return global_name(obj, name)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        known = self.name_of(obj, name or getattr(obj, "__qualname__", None) or obj.__name__)
        if known is None:
            return super().save_global(obj, name)
        if self.proto >= 4:
            self.save(known[0])
            self.save(known[1])
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + "{}\n{}\n".format(*known).encode())
        self.memoize(obj)

    def save_type(self, obj: type) -> None:
        if obj in (type(None), type(NotImplemented), type(...)):
            return super().save_type(obj)
        return self.save_global(obj)

    dispatch = {**_PythonPickler.dispatch, type: save_type,
                type(lambda: 0): save_global}


def _pickle(obj: Any, file: Any, pickle_module: Any, protocol: int, storages: _Storages) -> None:
    if pickle_module is pickle:
        if 2 <= protocol < 4:
            try:
                file.write(quick_pickle(obj, protocol, storages))
                return
            except NeedsNames:
                storages.clear()
        _Pickler(file, protocol, storages).dump(obj)
        return

    class Pickler(pickle_module.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return storages.persistent_id(obj)

        def reducer_override(self, obj: Any) -> Any:
            reduced = reduce_for_checkpoint(obj)
            if reduced is NotImplemented and hasattr(super(), "reducer_override"):
                return super().reducer_override(obj)
            return reduced

    Pickler(file, protocol).dump(obj)


def _write_zip(obj: Any, file: Any, pickle_module: Any, protocol: int, archive: str) -> None:
    buffer, storages = io.BytesIO(), _Storages()
    _pickle(obj, buffer, pickle_module, protocol, storages)
    checksum, alignment = 0, options.save.storage_alignment
    writer = ZipWriter(file, alignment)

    def write(name: str, data: Any) -> None:
        nonlocal checksum
        of_entry = writer.write(f"{archive}/{name}", data)
        checksum = zlib.crc32(struct.pack("<I", of_entry), checksum)

    write("data.pkl", buffer.getbuffer())
    write(".format_version", b"1")
    write(".storage_alignment", str(alignment).encode())
    write("byteorder", sys.byteorder.encode())
    for key, storage in enumerate(storages.found):
        skip = options.of_thread.skip_data
        write(f"data/{key}", bytes(storage.nbytes()) if skip else storage._readable())
    write("version", b"3\n")
    write(".data/serialization_id", f"{len(storages.found):020d}{checksum:020d}".encode())
    writer.finish()


def _write_legacy(obj: Any, file: Any, pickle_module: Any, protocol: int, archive: str) -> None:
    """The format before PyTorch 1.6: pickles one after the other, then the storages."""
    storages = _StoragesWithViews()
    sizes = {"short": 2, "int": 4, "long": 4}
    system = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little",
              "type_sizes": sizes}
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle.dump(header, file, protocol)
    _pickle(obj, file, pickle_module, protocol, storages)
    pickle.dump([str(key) for key in range(len(storages.found))], file, protocol)
    file.flush()
    for storage, dtype in zip(storages.found, storages.dtypes, strict=True):
        file.write(struct.pack("<q", len(storage) // dtype.itemsize))
        file.write(storage._readable().data)


# Where storages go --------------------------------------------------------------------------------

_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []


def register_package(priority: int, tagger: Callable[[Any], str | None],
                     deserializer: Callable[[Any, str], Any]) -> None:
    """Teach `save` to tag storages with a location of your own, and `load` to restore them.

    `tagger(storage)` gives the tag, or None; `deserializer(storage, location)` the restored
    storage, or None. Those with the lowest priority number are asked first.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """The tag that a file gives to where a storage is, such as ``"cpu"``."""
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag is not None:
            return tag
    raise RuntimeError(f"don't know how to determine data location of {type(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage, moved to where its tag says."""
    for _, _, deserializer in _packages:
        result = deserializer(storage, location)
        if result is not None:
            return result
    kind = str(location).partition(":")[0]
    if kind in ("cuda", "mps", "xpu", "hpu"):
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}."
            "is_available() is False. If you are running on a CPU-only machine, please use "
            "torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    kind = storage.type() if isinstance(storage, flambeau.Tensor) else \
        f"torch.storage.{type(storage).__name__}"
    raise RuntimeError(f"don't know how to restore data location of {kind} (tagged with "
                       f"{location})")


def _built_in(priority: int, kind: str) -> None:
    register_package(
        priority,
        lambda storage: kind if storage.device.type == kind else None,
        lambda storage, location: storage.to(device=kind) if location == kind else None,
    )


_built_in(10, "cpu")
_built_in(22, "meta")


def _restorer(map_location: Any) -> Callable[[Any, str], Any]:
    """`map_location` as a function of a storage and the tag in the file."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, tag: default_restore_location(storage, map_location.get(tag, tag))
    if isinstance(map_location, str | flambeau.device):
        target = str(map_location)
        return lambda storage, tag: default_restore_location(
            storage, "cpu" if target.startswith("cpu") else target)
    if not callable(map_location):
        raise TypeError(f"'{type(map_location).__name__}' object is not callable\nmap_location is "
                        "a device, its name, a dict or a function")

    def restore(storage: Any, tag: str) -> Any:
        try:
            result = map_location(storage, tag)
        except Exception as error:          # not to be taken for one of the file
            raise _RaisedByUser from error
        return default_restore_location(storage, tag) if result is None else result

    return restore


_PART = 1 << 18             # bytes that are read, and then checked while they are in the cache
_INFLATED = 1 << 28         # bytes from which on a record may not have been much smaller


class _RaisedByUser(Exception):
    """Its cause was raised by a function of the user."""


# Loading ------------------------------------------------------------------------------------------


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *,
         weights_only: bool | None = None, mmap: bool | None = None,
         **pickle_load_args: Any) -> Any:
    """Read what `save`, here or in PyTorch, has written.

    Args:
        f: a path, or a binary file object that can seek.
        map_location: where tensors go: a device, its name, a dict from locations in the file to
            others, or a function of a storage and its location.
        pickle_module: the module whose `Unpickler` reads objects other than tensors.
        weights_only: True (the default, unless `pickle_module` is given) builds only data and
            runs no code of the file's choosing; see `add_safe_globals`. False trusts the file.
        mmap: map the file into memory instead of reading it; `f` must be a path then. Writing to
            the tensors does not change the file, unless `set_default_mmap_options` says so.
        pickle_load_args: passed on to the `Unpickler` (`encoding`, `errors`).
    """
    if mmap is None:
        mmap = options.load.mmap
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    is_path = isinstance(f, str | os.PathLike)
    if mmap and not is_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    if not is_path and not (hasattr(f, "seek") and hasattr(f, "read")):
        raise AttributeError(
            f"'{type(f).__name__}' object has no attribute 'seek'. You can only torch.load from a "
            "file that is seekable. Please pre-load the data into a buffer like io.BytesIO and try "
            "to load from it instead."
        )
    restore = _restorer(map_location)
    with open(f, "rb") if is_path else contextlib.nullcontext(f) as file:
        start = file.tell()
        signature = file.read(4)
        file.seek(start)
        if signature == b"PK\x03\x04":
            archive = _Archive(file, os.fspath(f) if mmap else None)
            with _errors_of_users():
                return archive.load(restore, weights_only, pickle_module, pickle_load_args)
        if mmap:
            raise RuntimeError("mmap can only be used with files saved with "
                               "`torch.save(_use_new_zipfile_serialization=True), please "
                               "torch.save your checkpoint with this option in order to use mmap.")
        with _errors_of_users():
            return _load_legacy(file, restore, weights_only, pickle_module, pickle_load_args)


@contextlib.contextmanager
def _errors_of_users() -> Iterator[None]:
    try:
        yield
    except _RaisedByUser as error:
        raise error.__cause__ from None


def _unpickle(file: Any, persistent_load: Callable[[Any], Any], weights_only: bool,
              pickle_module: Any, arguments: dict[str, Any]) -> Any:
    """Run one pickle of a checkpoint, in the way that the user chose."""
    if weights_only:
        encoding = arguments.get("encoding", "utf-8")
        try:
            return Unpickler(file, persistent_load, encoding=encoding).load()
        except (RuntimeError, ImportError, MemoryError, _RaisedByUser):
            raise                           # NotImplementedError is a RuntimeError
        except pickle.UnpicklingError as error:
            advice = _ADVICE_ON_NAMES if "add_safe_globals" in str(error) else _ADVICE
            raise pickle.UnpicklingError(advice + str(error)) from None
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise pickle.UnpicklingError(f"{_ADVICE}the pickle is damaged ({reason})") from error
    kind = _trusting((pickle_module or pickle).Unpickler)
    unpickler = kind(file, **{"encoding": "utf-8", **arguments})
    unpickler.persistent_load = persistent_load
    return unpickler.load()


@lru_cache(maxsize=8)
def _trusting(unpickler: Any) -> Any:
    """A class of unpicklers that find our objects under PyTorch's names, and any others."""
    class TrustingUnpickler(unpickler):
        def find_class(self, module_name: str, name: str) -> Any:
            try:
                return find_global(module_name, name)
            except LookupError:
                return super().find_class(module_name, name)
    return TrustingUnpickler


def _reference(saved_id: Any, length: int) -> tuple[Any, ...]:
    """The parts of a reference to a storage: kind, key, location, number of elements, …"""
    if (not isinstance(saved_id, tuple) or len(saved_id) != length
            or saved_id[0] not in ("storage", b"storage")):
        raise pickle.UnpicklingError(f"Unknown persistent id {saved_id!r}")
    kind, key, location, count = saved_id[1:5]
    if not isinstance(count, int) or count < 0:
        raise pickle.UnpicklingError(f"a storage has no {count!r} elements")
    if kind is not UntypedStorage and not hasattr(kind, "dtype"):
        raise pickle.UnpicklingError(f"{kind!r} is not a storage type")
    return (kind, _text(key), _text(location), count, *saved_id[5:])


def _text(value: Any) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else value


def _storage(array: np.ndarray, kind: Any, location: str, restore: Any) -> Any:
    """The storage on an array, restored to its place, as a file refers to it."""
    storage = restore(storage_of(flambeau.core.tensor.wrap(array)), location)
    dtype = flambeau.uint8 if kind is UntypedStorage else kind.dtype
    return TypedStorage(wrap_storage=storage.untyped(), dtype=dtype)


class _Archive:
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
            raise RuntimeError(
                "PytorchStreamReader failed reading zip archive: failed finding central "
                "directory. This is an internal miniz error. If you are seeing this error, there "
                "is a high likelihood that your checkpoint file is corrupted. This can happen if "
                "the checkpoint was not saved properly, was transferred incorrectly, or the file "
                f"was modified after saving.\n{error}"
            ) from None
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
            if _read_into(self.file, part) != len(part):
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
            kind, key, location, count = _reference(saved_id, 5)
            if key not in loaded:
                dtype = element_type(flambeau.uint8 if kind is UntypedStorage else kind.dtype)
                array = self.array(f"data/{key}", dtype, count)
                if order != sys.byteorder:
                    array = array.byteswap()
                loaded[key] = _storage(array, kind, location, restore)
            return loaded[key]

        buffer = io.BytesIO(self.read("data.pkl"))
        return _unpickle(buffer, persistent_load, weights_only, pickle_module, arguments)


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
        self._archive = _Archive(self._file, os.fspath(source) if by_path else None)

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


def _read_into(file: Any, data: memoryview) -> int:
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


def _load_legacy(file: Any, restore: Any, weights_only: bool, pickle_module: Any,
                 arguments: dict[str, Any]) -> Any:
    """Read the format before PyTorch 1.6."""
    def no_storages(saved_id: Any) -> Any:
        raise pickle.UnpicklingError(f"Unknown persistent id {saved_id!r}")

    def part(persistent_load: Callable[[Any], Any] = no_storages) -> Any:
        return _unpickle(file, persistent_load, weights_only, pickle_module, arguments)

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
        kind, key, location, count, view = _reference(saved_id, 6)
        if view is not None:
            raise NotImplementedError("load: storages that are views of other storages, as "
                                      "PyTorch wrote them before version 0.4")
        if key not in storages:
            dtype = element_type(flambeau.uint8 if kind is UntypedStorage else kind.dtype)
            _check_room(file, count * dtype.itemsize)
            array = np.empty(count, dtype)
            storages[key] = array, _storage(array, kind, location, restore)
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
        if _read_into(file, data) != len(data):
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


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that `load(f, weights_only=True)` would refuse."""
    import pickletools

    with open(f, "rb") if isinstance(f, str | os.PathLike) else contextlib.nullcontext(f) as file:
        data = _Archive(file, None).read("data.pkl")
    machine = Unpickler(io.BytesIO(), lambda saved_id: None)
    refused: dict[str, None] = {}
    strings: list[str] = []
    for opcode, argument, _ in pickletools.genops(data):
        if "UNICODE" in opcode.name:
            strings.append(argument)
        if opcode.name not in ("GLOBAL", "STACK_GLOBAL"):
            continue
        words = argument.split(" ") if opcode.name == "GLOBAL" else strings[-2:]
        try:
            machine.find(*words)
        except pickle.UnpicklingError:
            refused[".".join(words)] = None
    return list(refused)


adopt(globals(), "_serialization.")
