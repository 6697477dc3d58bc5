"""Small functions that code takes from `torch.storage`."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import flambeau
from flambeau.storage.base import TYPED_STORAGES, StorageBase
from flambeau.storage.typed import LEGACY_NAMES

HAS_NUMPY = True
_StorageBase = StorageBase
_share_memory_map: dict[int, Any] = {}


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Say that storages of numbers will be gone; those of bytes stay."""
    warnings.warn(TYPED_STORAGES, UserWarning, stacklevel=stacklevel + 1)


def _dtype_to_storage_type_map() -> dict[Any, str]:
    """The name of the storage class of each dtype that has one."""
    return {getattr(flambeau, dtype): name for dtype, name in LEGACY_NAMES.items()}


def _storage_type_to_dtype_map() -> dict[str, Any]:
    """The dtype of each storage class, by its name."""
    return {name: getattr(flambeau, dtype) for dtype, name in LEGACY_NAMES.items()}


def _get_dtype_from_pickle_storage_type(pickle_storage_type: str) -> Any:
    """The dtype of a storage class, by its name."""
    try:
        return _storage_type_to_dtype_map()[pickle_storage_type]
    except KeyError:
        raise KeyError(f'pickle storage type "{pickle_storage_type}" is not recognized') from None


def _isint(x: Any) -> bool:
    return isinstance(x, (int, np.integer))
