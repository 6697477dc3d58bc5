"""Copies of states, which are written while the states change."""
from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from flambeau.distributed._state_dict_utils import _copy_state_dict, _create_cpu_state_dict

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """Copies states for `async_save`."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Is `synchronize_staging` to be called before `async_save` returns?"""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Future[dict[str, Any]] | dict[str, Any]:
        """A copy of the state, or a future of it."""
        raise NotImplementedError(f"{self.__class__.__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Wait for the copy."""

    def close(self) -> None:
        """Give back what is held."""


@dataclass
class StagingOptions:
    """How states are copied; `use_async_staging` copies in a thread. Memory that is pinned or
    shared makes no difference on the CPU."""
    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies states in a thread, or at once without `use_async_staging`."""

    def __init__(self, config: StagingOptions = StagingOptions()):
        self._config = config
        self._staging_executor = ThreadPoolExecutor(max_workers=1) \
            if config.use_async_staging else None
        self._staging_future: Future[dict[str, Any]] | None = None

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> Any:
        """A copy of the state, or a future of it."""
        if self._staging_executor is None:
            return self._stage(state_dict)
        self._staging_future = self._staging_executor.submit(self._stage, state_dict)
        return self._staging_future

    def _stage(self, state_dict: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return _copied(state_dict)

    def synchronize_staging(self) -> None:
        """Wait for the copy."""
        if self._staging_future is not None:
            self._staging_future.result()

    def close(self) -> None:
        """End the thread."""
        if self._staging_executor is not None:
            self._staging_executor.shutdown(wait=True)


class BlockingAsyncStager(AsyncStager):
    """Copies states at once; into memory that is kept with `cache_staged_state_dict`."""

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False):
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache: dict[str, Any] | None = None

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """A copy of the state."""
        if not self.cache_staged_state_dict:
            return _copied(state_dict)
        if self.state_dict_cache is None:
            self.state_dict_cache = _create_cpu_state_dict(state_dict)
        return _copy_state_dict(state_dict, self.state_dict_cache, type_check=self.type_check)

    def synchronize_staging(self) -> None:
        """The copy is there."""

    def close(self) -> None:
        """Nothing is held."""


def _copied(state_dict: dict[str, Any]) -> dict[str, Any]:
    room = _create_cpu_state_dict(state_dict)
    return _copy_state_dict(state_dict, room, type_check=False)
