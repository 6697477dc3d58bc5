"""`ProcessGroup`: processes that take part in collectives together."""
from __future__ import annotations

import enum
from datetime import timedelta
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.c_functions import bound_in_c
from flambeau.core import modes
from flambeau.distributed._c10d.backends.backend import Backend
from flambeau.distributed._c10d.calls import Calls
from flambeau.distributed._c10d.stores import PrefixStore, Store
from flambeau.distributed._c10d.work import Work
from flambeau.distributed.constants import default_pg_timeout


class BackendType(enum.Enum):
    """The kinds of backends."""
    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, CUSTOM = 0, 1, 2, 5, 3, 4, 6

    def __repr__(self) -> str:
        return f"<BackendType.{self.name}: {self.value}>"

    def __int__(self) -> int:
        return self.value


_Kind = BackendType


@bound_in_c
class ProcessGroup(Calls):
    """Processes that take part in collectives together. Each type of device has a backend, which
    runs the collectives of tensors there; classes of users may run them themselves."""

    BackendType = BackendType
    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, CUSTOM = BackendType
    bound_device_id: Any = None
    use_pg_for_symm_mem_rendezvous = False

    def __init__(self, store: Any, rank: int, size: int | None = None):
        if size is None:
            store, rank, size = None, store, rank
        self._store: Store | None = store
        self._rank, self._size = rank, size
        self._name = self._description = ""
        self._backends: dict[str, Backend] = {}
        self._types: dict[_Kind, Backend] = {}
        self._default = BackendType.UNDEFINED

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes."""
        return self._size

    def name(self) -> str:
        """The name of the backend."""
        getter = getattr(self, "getBackendName", None)
        if getter is not None:
            return getter()
        if self._default is BackendType.CUSTOM or self._default in self._types:
            return self._default_backend().name()
        return self._default.name.lower()

    @property
    def group_name(self) -> str:
        """The name of the group, the same in all its processes."""
        return self._name

    @group_name.setter
    def group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_desc(self) -> str:
        """What the group is for."""
        return self._description

    @group_desc.setter
    def group_desc(self, text: str) -> None:
        self._description = text

    def _set_group_name(self, name: str) -> None:
        self.group_name = name

    def _set_group_desc(self, text: str) -> None:
        self.group_desc = text

    def get_group_store(self) -> Store | None:
        """The store through which the processes have met, if they have met in one."""
        return self._store

    # ---- backends -------------------------------------------------------------------------------

    def _register_backend(self, device: Any, backend_type: _Kind,
                          backend: Backend | None = None) -> None:
        found = backend or self._types.get(backend_type)
        if found is None:
            raise RuntimeError(f"Backend {backend_type} is not there to be registered")
        self._backends[flambeau.device(device).type] = found
        self._types[backend_type] = found

    def _set_default_backend(self, backend_type: _Kind) -> None:
        self._default = backend_type

    def _default_backend(self) -> Backend:
        found = self._types.get(self._default) or next(iter(self._types.values()), None)
        if found is None:
            raise RuntimeError(f"Could not find the default backend type {self._default.value} "
                               f"for Process Group with name {self._default.name.lower()}.")
        return found

    def _get_backend(self, device: Any) -> Backend:
        kind = flambeau.device(device).type
        if kind not in self._backends:
            raise RuntimeError(f"No backend type associated with device type {kind}")
        return self._backends[kind]

    @property
    def _device_types(self) -> list[Any]:
        return [flambeau.device(kind) for kind in self._backends]

    def _backend_id(self, backend_type: _Kind) -> int:
        return id(self._types.get(backend_type, self))

    def _id(self) -> int:
        return id(self)

    def _get_backend_name(self) -> str:
        return self.name()

    def boxed(self) -> ProcessGroup:
        """Itself: there is nothing to wrap it in."""
        return self

    @staticmethod
    def unbox(group: ProcessGroup) -> ProcessGroup:
        """The group that `boxed` gave."""
        return group

    # ---- collectives ----------------------------------------------------------------------------

    def _run(self, name: str, *arguments: Any) -> Work:
        if modes.levels.get():
            from flambeau.distributed._c10d.ops.dispatcher import shown
            work = shown(self, name, arguments)
            if work is not None:
                return work
        return self._run_below(name, *arguments)

    def _run_below(self, name: str, *arguments: Any) -> Work:
        """Run a collective that dispatch modes have seen."""
        tensor = _first_tensor(arguments[:-1])
        backend = self._default_backend() if tensor is None else self._get_backend(tensor.device)
        return getattr(backend, name)(*arguments)

    def send(self, tensors: list[Tensor], dstRank: int, tag: int = 0) -> Work:
        """Send tensors to another process."""
        return self._get_backend(tensors[0].device).send(tensors, dstRank, tag)

    def recv(self, tensors: list[Tensor], srcRank: int, tag: int = 0) -> Work:
        """Receive tensors from another process."""
        return self._get_backend(tensors[0].device).recv(tensors, srcRank, tag)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Work:
        """Receive tensors from any process."""
        return self._get_backend(tensors[0].device).recv_anysource(tensors, tag)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False
                          ) -> None:
        """`barrier` that says which processes have not come."""
        self._default_backend().monitored_barrier(timeout, wait_all_ranks)

    # ---- life -----------------------------------------------------------------------------------

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long collectives may take."""
        for backend in self._types.values():
            backend.set_timeout(timeout)

    def shutdown(self) -> None:
        """End what runs in the background."""
        for backend in {id(b): b for b in self._types.values()}.values():
            backend.shutdown()

    def abort(self) -> None:
        """End everything at once."""
        for backend in {id(b): b for b in self._types.values()}.values():
            backend.abort()

    def split_group(self, ranks: list[int], timeout: timedelta | None = None, opts: Any = None,
                    group_name: str | None = None, group_desc: str | None = None,
                    device_types: Any = None) -> ProcessGroup | None:
        """A group of some of the members, `ranks` of this one; None for the others."""
        from flambeau.distributed._c10d.groups import group_of_members
        if self._rank not in ranks:
            return None
        name = group_name or f"{self._name}:split:{'_'.join(map(str, ranks))}"
        return group_of_members(self, ranks, timeout, name, group_desc or "undefined")

    def merge_remote_group(self, store: Store, size: int, timeout: timedelta = default_pg_timeout,
                           group_name: str | None = None, group_desc: str | None = None
                           ) -> ProcessGroup:
        """One group of this one and others, of `size` processes, which meet in a store."""
        from flambeau.distributed._c10d.groups import made_group
        name = group_name or f"{self._name}:merged"
        meeting = PrefixStore(name, store)
        if self._rank == 0:
            first = meeting.add("taken", self._size) - self._size
            self._store.set(f"{name}/first", str(first))
        first = int(self._store.get(f"{name}/first"))
        group = made_group(meeting, first + self._rank, size, "gloo", timeout, name)
        group._set_group_desc(group_desc or "undefined")
        return group

    def _start_coalescing(self, device_type: Any) -> None:
        self._get_backend(device_type)._start_coalescing()

    def _end_coalescing(self, device_type: Any) -> Work:
        return self._get_backend(device_type)._end_coalescing()

    def _get_sequence_number_for_group(self) -> int:
        return self._default_backend()._get_sequence_number_for_group()

    def _set_sequence_number_for_group(self) -> None:
        self._default_backend()._set_sequence_number_for_group()

    def _has_hooks(self) -> bool:
        return False

    def _register_on_completion_hook(self, hook: Any) -> None:
        self._only_nccl("onCompletion hook")

    def _wait_for_pending_works(self) -> None:
        self._only_nccl("waitForPendingWorks")

    def _only_nccl(self, what: str) -> None:
        raise RuntimeError(f"Only ProcessGrouppNCCL supports {what}, but got {self.name()} "
                           "backend.")                          # spelt as PyTorch spells it

    def _enable_collectives_timing(self) -> None:
        """Timing would need events of a device."""


def _first_tensor(values: Any) -> Tensor | None:
    for value in values:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, (list, tuple)):
            found = _first_tensor(value)
            if found is not None:
                return found
    return None


ProcessGroup.__module__ = "torch.distributed.distributed_c10d"
