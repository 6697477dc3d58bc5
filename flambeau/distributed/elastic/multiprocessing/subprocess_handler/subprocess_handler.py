"""`SubprocessHandler`."""
from __future__ import annotations

import os
import signal
import subprocess
from typing import IO, Any

from flambeau.numa.binding import NumaOptions, _maybe_wrap_command_args_with_numa_binding

__all__ = ["SubprocessHandler"]


class SubprocessHandler:
    """A program that runs as a worker, in a process group of its own: `close` reaches also what
    it has started. Empty names of files leave its output to go where that of the agent goes."""

    def __init__(self, entrypoint: str, args: tuple[Any, ...], env: dict[str, str],
                 stdout: str | None, stderr: str | None, local_rank_id: int,
                 numa_options: NumaOptions | None):
        # they stay open as long as the program runs
        self._stdout: IO[str] | None = open(stdout, "w") if stdout else None     # noqa: SIM115
        self._stderr: IO[str] | None = open(stderr, "w") if stderr else None     # noqa: SIM115
        command = _maybe_wrap_command_args_with_numa_binding(
            (entrypoint, *map(str, args)), gpu_index=local_rank_id, numa_options=numa_options)
        self.local_rank_id = local_rank_id
        self.proc: subprocess.Popen[bytes] = self._popen(command, {**os.environ, **env})

    def _popen(self, args: tuple[str, ...], env: dict[str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(args=args, env=env, stdout=self._stdout, stderr=self._stderr,
                                start_new_session=True)

    def close(self, death_sig: signal.Signals | None = None) -> None:
        """Send a signal to the program and what it has started."""
        os.killpg(self.proc.pid, death_sig or signal.SIGTERM)
        for file in (self._stdout, self._stderr):
            if file is not None:
                file.close()
