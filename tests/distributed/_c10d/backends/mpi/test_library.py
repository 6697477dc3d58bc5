"""Shared memory that processes have left."""
import os
import time

import pytest

from flambeau.distributed._c10d.backends.mpi import library


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_memory_that_nobody_has_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "_MEMORY", (f"{tmp_path}/mpich_shm_", f"{tmp_path}/ucx_shm_"))
    left, old, other = (tmp_path / n for n in ("ucx_shm_1", "mpich_shm_2", "kept_3"))
    for path in (left, old, other):
        path.write_bytes(b"x")
    os.utime(old, (1, 1))
    with open(tmp_path / "ucx_shm_4", "wb"):
        library.remove_memory_of_nobody(time.time() - 30)
        assert sorted(os.listdir(tmp_path)) == ["kept_3", "mpich_shm_2", "ucx_shm_4"]
        library._unlink_memory()                # its own, and what is old
    assert os.listdir(tmp_path) == ["kept_3"]
