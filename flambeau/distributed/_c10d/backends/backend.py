"""`Backend`: what runs the collectives of a process group, for one type of device."""
from __future__ import annotations

from datetime import timedelta
from typing import Any

from flambeau._support.c_functions import bound_in_c
from flambeau.distributed._c10d.calls import Calls
from flambeau.distributed.constants import default_pg_timeout


class Options:
    """How a backend is made."""

    def __init__(self, backend: str = "undefined", timeout: timedelta = default_pg_timeout):
        self.backend, self._timeout = backend, timeout
        self.global_ranks_in_group: list[int] = []
        self.group_name = ""


@bound_in_c
class Backend(Calls):
    """Runs collectives. A backend has a method for each that it offers, named as in `Calls` and
    with `run_` before it, which takes lists of tensors and options and gives a `Work`."""

    Options: Any = Options
    supports_splitting = supports_coalescing = supports_time_estimate = False
    supports_shrinking = False
    bound_device_id: Any = None

    def __init__(self, rank: int, size: int):
        self._rank, self._size = rank, size
        self._options = Options(self.name())
        self._sequence_number = 0

    def name(self) -> str:
        """The name of the backend."""
        return getattr(self, "getBackendName", lambda: "undefined")()

    def rank(self) -> int:
        """The number of this process."""
        return self._rank

    def size(self) -> int:
        """The number of processes."""
        return self._size

    @property
    def options(self) -> Any:
        """How the backend was made."""
        return self._options

    def _get_backend_name(self) -> str:
        return self.name()

    def _run(self, name: str, *arguments: Any) -> Any:
        run = getattr(self, f"run_{name.strip('_')}", None)
        if run is None:
            raise RuntimeError(f"Backend {self.name()} does not support {name}")
        self._sequence_number += 1
        return run(*arguments)

    def _refuse(self, what: str) -> Any:
        raise RuntimeError(f"Backend {self.name()} does not support {what}")

    def _timeout_of(self, opts: Any) -> timedelta:
        """How long a collective may take."""
        given = getattr(opts, "timeout", None)
        return self.options._timeout if given is None or given < timedelta(0) else given

    # ---- messages -------------------------------------------------------------------------------

    def send(self, tensors: list[Any], dstRank: int, tag: int = 0) -> Any:
        """Send tensors to another process."""
        return self._refuse("send")

    def recv(self, tensors: list[Any], srcRank: int, tag: int = 0) -> Any:
        """Receive tensors from another process."""
        return self._refuse("recv")

    def recv_anysource(self, tensors: list[Any], tag: int = 0) -> Any:
        """Receive tensors from any process."""
        return self._refuse("recvAnysource")

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False
                          ) -> None:
        """`barrier` that says who has not come."""
        self._refuse("monitoredBarrier")

    # ---- life -----------------------------------------------------------------------------------

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long collectives may take."""
        self.options._timeout = timeout

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """End what runs in the background."""

    def abort(self) -> None:
        """End everything at once."""
        self.shutdown()

    def suspend(self) -> None:
        """Give memory back for a while."""
        self._refuse("suspend")

    def resume(self) -> None:
        """Take memory again."""
        self._refuse("resume")

    def memory_stats(self) -> dict[str, int]:
        """The memory that the backend holds."""
        return self._refuse("memory_stats")

    def shrink(self, ranks_to_exclude: list[int], shrink_flags: int = 0,
               opts_override: Any = None) -> Any:
        """A backend without some of the processes."""
        return self._refuse("shrink")

    def eager_connect_single_device(self, device: Any) -> None:
        """Make connections now: they are there."""

    def supports_tensor_alloc(self, device: Any) -> bool:
        """Has the backend memory of its own? No."""
        return False

    def allocate_tensor(self, size: int, *, dtype: Any, device: Any) -> Any:
        """A tensor in the backend's own memory."""
        return self._refuse("allocateTensor")

    @property
    def mem_allocator(self) -> Any:
        """What allocates the backend's own memory."""
        return self._refuse("getMemAllocator")

    def setUsePgForSymmMemRendezvous(self, value: bool) -> None:
        """Remembered: symmetric memory is shared through the store either way."""
        self._symmetric_memory_through_group = bool(value)

    def _start_coalescing(self) -> None:
        self._refuse("startCoalescing")

    def _end_coalescing(self) -> Any:
        return self._refuse("endCoalescing")

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence_number

    def _set_sequence_number_for_group(self) -> None:
        self._sequence_number = 0


Backend.__module__ = Options.__module__ = "torch._C._distributed_c10d"
