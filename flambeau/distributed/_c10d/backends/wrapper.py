"""A backend that compares the calls of all processes before it runs them: `DebugLevel.DETAIL`."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.distributed._c10d import options as o
from flambeau.distributed._c10d.backends.backend import Backend
from flambeau.distributed._c10d.backends.gloo import ProcessGroupGloo
from flambeau.distributed._c10d.messages import object_to_tensor, tensor_to_object
from flambeau.distributed._c10d.work import Work
from flambeau.utils._pytree import tree_leaves

_ROOM = 1024                            # bytes for the description of a call


class ProcessGroupWrapper(Backend):
    """Runs the collectives of `wrapped_pg`, unless the processes call different ones, or the same
    with tensors of different shapes or types: then each raises."""

    def __init__(self, wrapped_pg: Backend, helper: ProcessGroupGloo):
        self.wrapped_pg, self._helper = wrapped_pg, helper
        super().__init__(wrapped_pg.rank(), wrapped_pg.size())
        self._options = wrapped_pg.options

    def name(self) -> str:
        """The name of the backend that runs the collectives."""
        return self.wrapped_pg.name()

    def _run(self, name: str, *arguments: Any) -> Work:
        self._sequence_number += 1
        self._compare(name, arguments[:-1])
        return self.wrapped_pg._run(name, *arguments)

    def _compare(self, name: str, tensors: Any) -> None:
        mine = self._description(name, tensors)
        data = object_to_tensor(mine)[0]
        sent = flambeau.zeros(_ROOM, dtype=flambeau.uint8)
        sent[:data.numel()] = data
        found = [flambeau.empty_like(sent) for _ in range(self.size())]
        self._helper.run_allgather([found], [sent], o.AllgatherOptions()).wait()
        for rank, part in enumerate(found):
            other = tensor_to_object(part, _ROOM)
            if other != mine:
                raise RuntimeError(
                    f"Detected mismatch between collectives on ranks. Rank {self.rank()} is "
                    f"running collective: {_worded(mine)}, but Rank {rank} is running collective: "
                    f"{_worded(other)}.")

    def _description(self, name: str, tensors: Any) -> tuple[Any, ...]:
        leaves = [t for t in tree_leaves(tensors) if isinstance(t, flambeau.Tensor)]
        shapes = [] if name in ("gather", "scatter") else [list(t.shape) for t in leaves][:8]
        types = sorted({str(t.dtype) for t in leaves})
        return (self._sequence_number - 1, name.strip("_").upper(), shapes, types)

    def send(self, tensors: Any, dstRank: int, tag: int = 0) -> Work:
        """Messages are not compared."""
        return self.wrapped_pg.send(tensors, dstRank, tag)

    def recv(self, tensors: Any, srcRank: int, tag: int = 0) -> Work:
        """Messages are not compared."""
        return self.wrapped_pg.recv(tensors, srcRank, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        """Messages are not compared."""
        return self.wrapped_pg.recv_anysource(tensors, tag)

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """`barrier` that says who has not come."""
        self.wrapped_pg.monitored_barrier(timeout, wait_all_ranks)

    def shutdown(self) -> None:
        """End both backends."""
        self._helper.shutdown()
        self.wrapped_pg.shutdown()


def _worded(call: tuple[Any, ...]) -> str:
    number, name, shapes, types = call
    return (f"CollectiveFingerPrint(SequenceNumber={number}, OpType={name}, TensorShape={shapes}, "
            f"TensorDtypes={', '.join(types)})")
