"""A lock that is a file, so that of several processes one does a job and the others wait."""
from __future__ import annotations

import os
import time
import warnings


class FileBaton:
    """`try_acquire()` makes the file if it is not there; `release()` removes it."""

    def __init__(self, lock_file_path: str, wait_seconds: float = 0.1,
                 warn_after_seconds: float | None = None):
        self.lock_file_path = lock_file_path
        self.wait_seconds, self.warn_after_seconds = wait_seconds, warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Make the file; False if another has."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Wait until the file is gone."""
        start, warned = time.time(), False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if (self.warn_after_seconds is not None and not warned
                    and time.time() - start > self.warn_after_seconds):
                warned = True
                warnings.warn(f'Waited on lock file "{self.lock_file_path}" for '
                              f"{self.warn_after_seconds} seconds.", stacklevel=2)

    def release(self) -> None:
        """Remove the file."""
        if self.fd is not None:
            os.close(self.fd)
        os.remove(self.lock_file_path)


__all__ = ["FileBaton"]
