"""`torch.ops.ao`: copies of activations to the memory of the host, and back.

All memory is the host's here: the copies are tensors of their own.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flambeau import Tensor
from flambeau.library import Library

_library = Library("ao", "FRAGMENT")


def _define(schema: str, function: Any) -> None:
    name = _library.define(schema)
    _library.impl(name, function, "CompositeExplicitAutograd")


def _reload(tensor: Tensor, device: Any) -> Tensor:
    return tensor.to(device, copy=True)


_define("offload(Tensor tensor) -> Tensor", lambda tensor: tensor.to("cpu", copy=True))
_define("reload(Tensor tensor, Device device) -> Tensor", _reload)
_define("wait_tensor(Tensor tensor, Tensor? keepalive=None) -> Tensor",
        lambda tensor, keepalive=None: tensor.clone())


@contextlib.contextmanager
def pinned_memory_pool() -> Iterator[None]:
    """Inside, copies to the host share a pool of pinned memory: there is none without a device."""
    yield


__all__ = ["pinned_memory_pool"]
