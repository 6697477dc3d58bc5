"""A device of some process: `_remote_device`."""
from __future__ import annotations

from typing import Any

import flambeau

__all__: list[str] = []


class _remote_device:
    """A device, and the process that has it: its rank, or its name in RPC.

    >>> place = _remote_device("rank:1/cpu")
    >>> place.rank(), place.device()
    (1, device(type='cpu'))
    """

    def __init__(self, remote_device: str | flambeau.device):
        message = (f"Could not parse remote_device: {remote_device}. The valid format is "
                   "'<workername>/<device>' or 'rank:<rank>/<device>' or '<device>'")
        self._worker_name: str | None = None
        self._rank: int | None = None
        self._device: str | int | flambeau.device | None = None
        if isinstance(remote_device, flambeau.device):
            self._device = remote_device
        elif not isinstance(remote_device, str):
            raise TypeError(f"Invalid type for remote_device: {type(remote_device)}")
        else:
            owner, _, device = remote_device.partition("/")
            if "/" in device or not owner:
                raise ValueError(message)
            if "/" in remote_device:
                self._worker_name, self._device = owner, device
            elif _is_device(owner):
                self._device = owner
            else:
                self._worker_name, self._device = owner, "cpu"
        if self._worker_name is not None and self._worker_name.startswith("rank:"):
            rank = self._worker_name.removeprefix("rank:")
            if not rank.isdigit():
                raise ValueError(message)
            self._rank, self._worker_name = int(rank), None
        self._device = flambeau.device(self._device)

    def worker_name(self) -> str | None:
        """The name of the process in RPC, if it was given."""
        return self._worker_name

    def rank(self) -> int | None:
        """The rank of the process, if it was given."""
        return self._rank

    def device(self) -> Any:
        """The device on that process."""
        return self._device

    def __repr__(self) -> str:
        if self._worker_name is not None:
            return f"{self._worker_name}/{self._device}"
        return f"rank:{self._rank}/{self._device}" if self._rank is not None else str(self._device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _remote_device) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self._worker_name, self._device, self._rank


def _is_device(name: str) -> bool:
    try:
        flambeau.device(name)
    except RuntimeError:
        return False
    return True
