"""A backend of which one process is enough: the others are imagined.

Each acts as if it had what this one has, so that collectives give results of the right shape.
"""
from __future__ import annotations

from typing import Any

from flambeau import Tensor, no_grad
from flambeau.distributed._c10d.backends.backend import Backend, Options
from flambeau.distributed._c10d.work import Work
from flambeau.futures import Future


class FakeWork(Work):
    """A collective that is done."""

    seq_id = -1

    def wait(self, timeout: Any = None) -> bool:
        """It is done."""
        return True

    def getFuture(self) -> Future:
        """A future that is done."""
        return self.get_future()


class FakeOptions(Options):
    """How the imagined processes behave."""

    def __init__(self) -> None:
        super().__init__("fake")
        self.fake_option, self.error_on_collective = 0, False


class FakeProcessGroup(Backend):
    """Process `rank` of `size`, of which there is no other."""

    Options: Any = FakeOptions
    supports_splitting = True

    def __init__(self, rank: int, size: int, options: Any = None):
        super().__init__(rank, size)
        self._options = options or FakeOptions()

    @staticmethod
    def _create_internal(rank: int, size: int, options: Any = None) -> FakeProcessGroup:
        return FakeProcessGroup(rank, size, options)

    def name(self) -> str:
        """fake"""
        return "fake"

    def _run(self, name: str, *arguments: Any) -> Work:
        if getattr(self._options, "error_on_collective", False):
            raise RuntimeError("FakeProcessGroup collective operation error (error_on_collective="
                               "true)")
        copy = _COPIES.get(name.strip("_"))
        if copy is not None:
            with no_grad():
                copy(*arguments[:-1])
        return FakeWork(arguments[0] if arguments[:-1] else [])

    def send(self, tensors: list[Tensor], dstRank: int, tag: int = 0) -> Work:
        """Nobody gets it."""
        return self._run("send", tensors, None)

    def recv(self, tensors: list[Tensor], srcRank: int, tag: int = 0) -> Work:
        """Nothing comes."""
        return self._run("recv", tensors, None)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Work:
        """Nothing comes."""
        return self._run("recv", tensors, None)

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """Nobody is waited for."""


def _gather(outputs: list[list[Tensor]], inputs: list[Tensor]) -> None:
    for found, tensor in zip(outputs, inputs):
        for output in found:
            output.copy_(tensor)


def _gather_whole(output: Tensor, tensor: Tensor) -> None:
    rows = output.numel() // max(tensor.numel(), 1)
    output.view(rows, -1).copy_(tensor.reshape(1, -1).expand(rows, -1))


def _gather_wholes(outputs: list[Tensor], inputs: list[Tensor]) -> None:
    for output, tensor in zip(outputs, inputs):
        _gather_whole(output, tensor)


_COPIES: dict[str, Any] = {"allgather": _gather, "allgather_base": _gather_whole,
           "allgather_into_tensor_coalesced": _gather_wholes}
FakeProcessGroup.__module__ = FakeWork.__module__ = "torch._C._distributed_c10d"
