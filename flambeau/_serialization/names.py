"""Constants and small functions of `torch.serialization`, for code that takes them from there."""
from __future__ import annotations

import contextlib
import struct
import sys
import warnings
from collections.abc import Iterator
from typing import Any

INT_SIZE, LONG_SIZE, SHORT_SIZE = (struct.Struct(f"={kind}").size for kind in "ilh")
IS_WINDOWS = sys.platform == "win32"
STORAGE_KEY_SEPARATOR = ","
UNSAFE_MESSAGE = ("Re-running `torch.load` with `weights_only` set to `False` will likely succeed, "
                  "but it can result in arbitrary code execution. Do it only if you got the file "
                  "from a trusted source.")


class SourceChangeWarning(Warning):
    """Warns that the source of a saved class is not what it was. Sources are not kept."""


def check_module_version_greater_or_equal(module: Any, req_version_tuple: tuple[int, ...],
                                          error_if_malformed: bool = True) -> bool:
    """Is a module's version at least this one?

    >>> check_module_version_greater_or_equal(flambeau, (2, 0))
    True
    """
    parts = module.__version__.split(".")
    try:
        version = tuple(type(wanted)(part) for wanted, part in zip(req_version_tuple, parts))
    except ValueError as error:
        message = (f"'{module.__name__}' module version string is malformed "
                   f"'{module.__version__}' and cannot be compared with tuple {req_version_tuple}")
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True
    return version >= req_version_tuple


def validate_cuda_device(location: str) -> int:
    """RuntimeError: there is no CUDA device."""
    raise RuntimeError("Attempting to deserialize object on a CUDA device but "
                       "torch.cuda.is_available() is False. If you are running on a CPU-only "
                       "machine, please use torch.load with map_location=torch.device('cpu') to "
                       "map your storages to the CPU.")


def validate_hpu_device(location: str) -> int:
    """RuntimeError: there is no HPU."""
    raise RuntimeError("The HPU device module is not registered. If you are running on a CPU-only "
                       "machine, please use torch.load with map_location=torch.device('cpu') to "
                       "map your storages to the CPU.")


def normalize_storage_type(storage_type: Any) -> Any:
    """The class of this package that has the name of a storage class."""
    import flambeau
    return getattr(flambeau, storage_type.__name__)


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder that is there until the block ends."""
    import tempfile
    with tempfile.TemporaryDirectory() as path:
        yield path
