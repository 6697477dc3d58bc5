"""Pickles of checkpoints as objects, built from data alone or in trust."""
from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import flambeau
from flambeau._serialization.checkpoint_names import find_global
from flambeau._serialization.locations import RaisedByUser
from flambeau._serialization.weights_unpickler import Unpickler
from flambeau.storage import TypedStorage, UntypedStorage, storage_of

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


def read_pickle(file: Any, persistent_load: Callable[[Any], Any], weights_only: bool,
              pickle_module: Any, arguments: dict[str, Any]) -> Any:
    """Run one pickle of a checkpoint, in the way that the user chose."""
    if weights_only:
        encoding = arguments.get("encoding", "utf-8")
        try:
            return Unpickler(file, persistent_load, encoding=encoding).load()
        except (RuntimeError, ImportError, MemoryError, RaisedByUser):
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
    own = unpickler.find_class is not pickle.Unpickler.find_class

    class TrustingUnpickler(unpickler):
        def find_class(self, module_name: str, name: str) -> Any:
            if own and module_name.partition(".")[0] != "torch":
                return super().find_class(module_name, name)    # what the user finds instead
            try:
                return find_global(module_name, name)
            except LookupError:
                return super().find_class(module_name, name)
    return TrustingUnpickler


def storage_reference(saved_id: Any, length: int) -> tuple[Any, ...]:
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


def typed_storage(array: np.ndarray, kind: Any, location: str, restore: Any) -> Any:
    """The storage on an array, restored to its place, as a file refers to it."""
    storage = restore(storage_of(flambeau.core.tensor.wrap(array)), location)
    dtype = flambeau.uint8 if kind is UntypedStorage else kind.dtype
    return TypedStorage(wrap_storage=storage.untyped(), dtype=dtype)
