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
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import flambeau
from flambeau._serialization import options
from flambeau._serialization.checkpoint_names import get_layout as _get_layout  # noqa: F401
from flambeau._serialization.legacy import (  # noqa: F401
    MAGIC_NUMBER,
    PROTOCOL_VERSION,
    load_legacy,
    write_legacy,
)
from flambeau._serialization.locations import (
    default_restore_location,
    errors_of_users,
    location_tag,
    register_package,
    restorer,
)
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
    MAP_PRIVATE,  # noqa: F401
    MAP_SHARED,  # noqa: F401
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from flambeau._serialization.pickling import Storages, write_pickle
from flambeau._serialization.weights_unpickler import (
    Unpickler,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from flambeau._serialization.zip_reader import PyTorchFileReader, ZipReader  # noqa: F401
from flambeau._serialization.zip_writer import ZipWriter
from flambeau._support.own_methods import adopt
from flambeau.schema.errors import type_name
from flambeau.storage import UntypedStorage

__all__ = ["LoadEndianness", "SourceChangeWarning", "StorageType", "add_safe_globals",
           "check_module_version_greater_or_equal", "clear_safe_globals",
           "default_restore_location", "get_crc32_options", "get_default_load_endianness",
           "get_default_mmap_options", "get_safe_globals", "get_unsafe_globals_in_checkpoint",
           "load", "location_tag", "mkdtemp", "normalize_storage_type", "register_package",
           "safe_globals", "save", "set_crc32_options", "set_default_load_endianness",
           "set_default_mmap_options", "skip_data", "storage_to_tensor_type",
           "validate_cuda_device", "validate_hpu_device"]

# What `load` takes as `map_location`, for annotations.
MAP_LOCATION = (Callable[[UntypedStorage, str], UntypedStorage] | flambeau.device | str
                | dict[str, str] | None)

DEFAULT_PROTOCOL = 2

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
    _check_pickle_module(pickle_module)
    write = _write_zip if _use_new_zipfile_serialization else write_legacy
    if isinstance(f, str | os.PathLike):
        path = os.fspath(f)
        archive = os.path.splitext(os.path.basename(path))[0] or "archive"
        with _replacing(path) as file:
            write(obj, file, pickle_module, pickle_protocol, archive)
    elif hasattr(f, "write"):
        write(obj, f, pickle_module, pickle_protocol, "archive")
    else:
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute")


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


def _write_zip(obj: Any, file: Any, pickle_module: Any, protocol: int, archive: str) -> None:
    buffer, storages = io.BytesIO(), Storages()
    write_pickle(obj, buffer, pickle_module, protocol, storages)
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


def _check_pickle_module(pickle_module: Any) -> None:
    if not hasattr(pickle_module, "__name__"):
        raise AttributeError(f"'{type_name(pickle_module)}' object has no attribute '__name__'")


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
    if pickle_module is not None:
        _check_pickle_module(pickle_module)
    if mmap is None:
        mmap = options.load.mmap
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
        if unknown := [name for name in pickle_load_args if name != "encoding"]:
            raise TypeError(f"Unpickler.__init__() got an unexpected keyword argument "
                            f"'{unknown[0]}'")
    is_path = isinstance(f, str | os.PathLike)
    if not is_path:
        _check_seekable(f)
    with open(f, "rb") if is_path else contextlib.nullcontext(f) as file:
        restore = restorer(map_location)
        start = file.tell()
        signature = file.read(4)
        file.seek(start)
        if signature == b"PK\x03\x04":
            if mmap and not is_path:
                raise ValueError("f must be a file path in order to use the mmap argument")
            archive = ZipReader(file, os.fspath(f) if mmap else None)
            with errors_of_users():
                return archive.load(restore, weights_only, pickle_module, pickle_load_args)
        if mmap:
            raise RuntimeError("mmap can only be used with files saved with "
                               "`torch.save(_use_new_zipfile_serialization=True), please "
                               "torch.save your checkpoint with this option in order to use mmap.")
        with errors_of_users():
            return load_legacy(file, restore, weights_only, pickle_module, pickle_load_args)


def _check_seekable(file: Any) -> None:
    for name in ("seek", "tell", "read"):
        if not hasattr(file, name):
            raise AttributeError(
                f"'{type_name(file)}' object has no attribute '{name}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead.")


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that `load(f, weights_only=True)` would refuse."""
    import pickletools

    with open(f, "rb") if isinstance(f, str | os.PathLike) else contextlib.nullcontext(f) as file:
        _check_seekable(file)
        data = ZipReader(file, None).read("data.pkl")
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
