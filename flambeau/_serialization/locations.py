"""Where storages are, as files say it, and where `load` puts them."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import flambeau
from flambeau.schema.errors import type_name

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
    if not isinstance(location, str | bytes):
        raise TypeError(f"expected string or bytes-like object, got '{type_name(location)}'")
    kind = str(location).partition(":")[0]
    if kind in ("cuda", "mps", "xpu", "hpu"):
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}."
            "is_available() is False. If you are running on a CPU-only machine, please use "
            "torch.load with map_location=torch.device('cpu') to map your storages to the CPU.")
    kind = storage.type() if isinstance(storage, flambeau.Tensor) else \
        f"torch.storage.{type(storage).__name__}"
    raise RuntimeError(f"don't know how to restore data location of {kind} (tagged with "
                       f"{location})")


def _built_in(priority: int, kind: str) -> None:
    register_package(priority, lambda storage: kind if storage.device.type == kind else None,
                     lambda storage,
                     location: storage.to(device=kind) if location == kind else None)


_built_in(10, "cpu")
_built_in(22, "meta")


def restorer(map_location: Any) -> Callable[[Any, str], Any]:
    """`map_location` as a function of a storage and the tag in the file."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, tag: default_restore_location(storage, map_location.get(tag, tag))
    if isinstance(map_location, str | flambeau.device):
        target = str(map_location)
        return lambda storage, tag: default_restore_location(
            storage, "cpu" if target.startswith("cpu") else target)

    def restore(storage: Any, tag: str) -> Any:
        if not callable(map_location):
            raise RaisedByUser from TypeError(
                f"'{type_name(map_location)}' object is not callable\nmap_location is a device, "
                "its name, a dict or a function")
        try:
            result = map_location(storage, tag)
        except Exception as error:          # not to be taken for one of the file
            raise RaisedByUser from error
        return default_restore_location(storage, tag) if result is None else result

    return restore


class RaisedByUser(Exception):
    """Its cause was raised by a function of the user."""


@contextlib.contextmanager
def errors_of_users() -> Iterator[None]:
    try:
        yield
    except RaisedByUser as error:
        raise error.__cause__ from None
