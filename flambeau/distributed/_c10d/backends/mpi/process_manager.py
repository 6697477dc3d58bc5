"""What MPICH asks its launcher when it starts, answered from a store.

A process that calls `MPI_Init` learns from the launcher who else is there: it writes lines of text
(the protocol PMI-1) to a socket whose number stands in `PMI_FD`. `mpiexec` is at the other end
usually; here it is a thread of the process itself, which answers from the store that all processes
share. So any launcher will do: torchrun, `mp.spawn`, Slurm, Kubernetes.
"""
from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

from flambeau.distributed._c10d.stores import Store

_VARIABLES = ("PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_SPAWNED")


class ProcessManager:
    """Answers the MPI library of this process, number `rank` of `size`. All processes give the
    same `name`, one that no job has had before: MPICH names its shared memory after it."""

    def __init__(self, store: Store, rank: int, size: int, name: str, mapping: str):
        self.store: Store | None = store            # until the library has started
        self.rank, self.size, self.name, self.mapping = rank, size, name, mapping
        self.ours, self.theirs = socket.socketpair()
        self._barriers = 0
        threading.Thread(target=self._serve, daemon=True, name="pmi").start()

    def environment(self) -> dict[str, str]:
        """What tells the library where to ask."""
        values = (self.theirs.fileno(), self.rank, self.size, 0)
        return dict(zip(_VARIABLES, map(str, values)))

    def _serve(self) -> None:
        try:
            for line in self._lines():
                reply = self._answer(line)
                self.ours.sendall(reply.encode() + b"\n")
        except (OSError, RuntimeError):         # the library, or the store, has gone
            self.ours.close()

    def _lines(self) -> Iterator[str]:
        with self.ours.makefile("rb") as stream:
            for line in stream:
                yield line.decode().strip()

    def _answer(self, line: str) -> str:
        fields = dict(part.split("=", 1) for part in line.split(" ") if "=" in part)
        command = fields.get("cmd", "")
        if command == "put":
            value = line.split("value=", 1)[1]              # it may contain spaces
            self.store.set(f"{self.name}/{fields['key']}", value)
            return "cmd=put_result rc=0 msg=success"
        if command == "get":
            return self._get(fields["key"])
        if command == "barrier_in":
            self._barriers += 1
            self.store.barrier(f"{self.name}/barrier{self._barriers}", self.size)
            return "cmd=barrier_out rc=0"
        if command == "abort":
            os._exit(int(fields.get("exitcode", 1)) or 1)
        return {
            "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024",
            "get_appnum": "cmd=appnum rc=0 appnum=0",
            "get_my_kvsname": f"cmd=my_kvsname rc=0 kvsname={self.name}",
            "get_universe_size": f"cmd=universe_size rc=0 size={self.size}",
            "finalize": "cmd=finalize_ack rc=0",
        }.get(command, f"cmd={command}_result rc=-1 msg=unknown")

    def _get(self, key: str) -> str:
        if key == "PMI_process_mapping":
            return f"cmd=get_result rc=0 msg=success value={self.mapping}"
        full = f"{self.name}/{key}"
        if key.startswith("PMI_") or not self.store.check([full]):
            return "cmd=get_result rc=-1 msg=key_not_found value=unknown"
        return f"cmd=get_result rc=0 msg=success value={self.store.get(full).decode()}"


def process_mapping(hosts: list[str]) -> str:
    """Which processes share a machine, as MPICH reads it: (first machine, machines, processes on
    each) for each stretch of ranks.

    >>> process_mapping(["a", "a", "b", "b", "a"])
    '(vector,(0,1,2),(1,1,2),(0,1,1))'
    """
    numbers = {host: i for i, host in enumerate(dict.fromkeys(hosts))}
    stretches: list[list[int]] = []
    for host in hosts:
        if not stretches or stretches[-1][0] != numbers[host]:
            stretches.append([numbers[host], 1, 0])
        stretches[-1][2] += 1
    return "(vector," + ",".join("({},{},{})".format(*s) for s in stretches) + ")"
