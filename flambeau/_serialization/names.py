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


class StorageType:
    """What a storage class is where only its dtype matters; made from the name of the class."""

    def __init__(self, name: str):
        from flambeau._serialization.storage_names import _get_dtype_from_pickle_storage_type
        self._dtype = _get_dtype_from_pickle_storage_type(name)

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def storage_to_tensor_type(storage: Any) -> Any:
    """The tensor class that goes with a storage's class."""
    kind = type(storage)
    return getattr(sys.modules[kind.__module__], kind.__name__.replace("Storage", "Tensor"))


def get_source_lines_and_file(obj: Any, error_msg: str | None = None
                              ) -> tuple[list[str], int, str | None]:
    """The source of a function or class: its lines, the number of the first, and the file."""
    import inspect
    filename = None
    try:
        filename = inspect.getsourcefile(obj)
        lines, first = inspect.getsourcelines(obj)
    except OSError as error:
        text = (f"Can't get source for {obj}. TorchScript requires source access in order to carry "
                "out compilation, make sure original .py files are available.")
        raise OSError(f"{text}\n{error_msg}" if error_msg else text) from error
    return lines, first, filename


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder that is there until the block ends."""
    import tempfile
    with tempfile.TemporaryDirectory() as path:
        yield path
