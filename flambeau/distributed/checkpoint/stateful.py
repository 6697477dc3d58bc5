"""`Stateful`: objects whose state can be saved and loaded."""
from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """What has `state_dict` and `load_state_dict`: `save` and `load` call them."""

    def state_dict(self) -> dict[str, Any]:
        """The state, as a dict."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""


StatefulT = TypeVar("StatefulT", bound=Stateful)
