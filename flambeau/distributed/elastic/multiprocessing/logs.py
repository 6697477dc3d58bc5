"""Where the outputs of workers go: `Std`, `LogsSpecs`, `LogsDest`."""
from __future__ import annotations

import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntFlag

from flambeau.distributed.elastic.utils.logging import get_logger

logger = get_logger(__name__)
_VALUE_REGEX, _MAPPING_REGEX = r"^[0123]$", r"^(\d:[0123],)*(\d:[0123])$"


class Std(IntFlag):
    """Standard streams."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """The streams that a number stands for, or a list by local rank.

        >>> Std.from_str("0:3,1:0")
        {0: <Std.ALL: 3>, 1: <Std.NONE: 0>}
        """
        if re.match(_VALUE_REGEX, vm):
            return Std(int(vm))
        if re.match(_MAPPING_REGEX, vm):
            return {int(rank): Std(int(value))
                    for rank, value in (item.split(":") for item in vm.split(","))}
        raise ValueError(f"{vm} does not match: <{_VALUE_REGEX}> or <{_MAPPING_REGEX}>")


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """Streams by local rank.

    >>> to_map({0: Std.OUT}, 2)
    {0: <Std.OUT: 1>, 1: <Std.NONE: 0>}
    """
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


@dataclass
class LogsDest:
    """Files by local rank: outputs that are redirected, those that are shown too, errors."""

    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)
    filtered_stdout: str = field(default_factory=str)
    filtered_stderr: str = field(default_factory=str)


class LogsSpecs(ABC):
    """Says where outputs go, once it is known which workers there are.

    Args:
        log_dir: the folder of all files.
        redirects: streams that go to files.
        tee: streams that go to files and are shown.
        local_ranks_filter: show only what these local ranks write.
    """

    def __init__(self, log_dir: str | None = None, redirects: Std | dict[int, Std] = Std.NONE,
                 tee: Std | dict[int, Std] = Std.NONE,
                 local_ranks_filter: set[int] | None = None):
        self._root_log_dir, self._redirects, self._tee = log_dir, redirects, tee
        self._local_ranks_filter = local_ranks_filter

    @abstractmethod
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The files of workers with these environments."""

    @property
    @abstractmethod
    def root_log_dir(self) -> str:
        """The folder of all files."""


class DefaultLogsSpecs(LogsSpecs):
    """`{log_dir}/{run}_{random}/attempt_{n}/{local rank}/stdout.log`, `stderr.log`, `error.json`.

    >>> specs = DefaultLogsSpecs(redirects=Std.OUT)
    >>> os.path.basename(specs.reify({0: {}}).stdouts[0])
    'stdout.log'
    """

    def __init__(self, log_dir: str | None = None, redirects: Std | dict[int, Std] = Std.NONE,
                 tee: Std | dict[int, Std] = Std.NONE,
                 local_ranks_filter: set[int] | None = None):
        if log_dir == os.devnull:
            pass
        elif not log_dir:
            log_dir = tempfile.mkdtemp(prefix="torchelastic_")
        elif not os.path.exists(log_dir):
            os.makedirs(log_dir, exist_ok=True)
        elif os.path.isfile(log_dir):
            raise NotADirectoryError(f"log_dir: {log_dir} is a file")
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._run_log_dir: str | None = None

    @property
    def root_log_dir(self) -> str:
        """The folder of all files."""
        return str(self._root_log_dir)

    def _make_log_dir(self, log_dir: str | None, rdzv_run_id: str) -> str:
        """A new folder for one run."""
        folder = tempfile.mkdtemp(prefix=f"{rdzv_run_id}_", dir=log_dir)
        logger.info("log directory set to: %s", folder)
        return folder

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Files for workers with these environments, which learn their error file from theirs."""
        count = len(envs)
        redirects, tee = to_map(self._redirects, count), to_map(self._tee, count)
        attempt_dir = self._attempt_dir(envs)
        found = LogsDest(filtered_stdout=os.path.join(attempt_dir, "filtered_stdout.log"),
                         filtered_stderr=os.path.join(attempt_dir, "filtered_stderr.log"))
        nowhere = attempt_dir == os.devnull
        for rank in range(count):
            stdout, stderr, errors = self._files(attempt_dir, rank)
            envs[rank]["TORCHELASTIC_ERROR_FILE"] = found.error_files[rank] = errors
            shown = self._local_ranks_filter is None or rank in self._local_ranks_filter
            for stream, file, files, tee_files in (
                    (Std.OUT, stdout, found.stdouts, found.tee_stdouts),
                    (Std.ERR, stderr, found.stderrs, found.tee_stderrs)):
                if (redirects[rank] | tee[rank]) & stream and not nowhere:
                    files[rank] = file
                else:
                    files[rank] = "" if shown or nowhere else os.devnull
                if nowhere or (tee[rank] & stream and shown):
                    tee_files[rank] = file
        return found

    def _attempt_dir(self, envs: dict[int, dict[str, str]]) -> str:
        if self._root_log_dir == os.devnull:
            return os.devnull
        env = next(iter(envs.values()), {})
        if self._run_log_dir is None:
            self._run_log_dir = self._make_log_dir(
                self._root_log_dir, env.get("TORCHELASTIC_RUN_ID", "test_run_id"))
        folder = os.path.join(self._run_log_dir,
                              f"attempt_{env.get('TORCHELASTIC_RESTART_COUNT', '0')}")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        return folder

    def _files(self, attempt_dir: str, rank: int) -> tuple[str, str, str]:
        """stdout, stderr and error file of a rank."""
        if attempt_dir == os.devnull:
            return (os.devnull,) * 3
        folder = os.path.join(attempt_dir, str(rank))
        os.makedirs(folder)
        return (os.path.join(folder, "stdout.log"), os.path.join(folder, "stderr.log"),
                os.path.join(folder, "error.json"))

    def __repr__(self) -> str:
        return (f"DefaultLogsSpecs(root_log_dir={self._root_log_dir}, redirects={self._redirects},"
                f" tee={self._tee}, local_ranks_filter={self._local_ranks_filter})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DefaultLogsSpecs) and all(
            getattr(self, name) == getattr(other, name)
            for name in ("_root_log_dir", "_redirects", "_tee", "_local_ranks_filter"))

    __hash__ = LogsSpecs.__hash__
