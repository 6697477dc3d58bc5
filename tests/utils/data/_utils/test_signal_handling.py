"""The ids of worker processes, and whether one has failed."""
import subprocess
import sys

import pytest

from flambeau.utils.data._utils import signal_handling as handling


def test_ids_are_remembered_once():
    handling._set_worker_pids(12345, (1,))
    try:
        with pytest.raises(ValueError, match="should be called only once for each"):
            handling._set_worker_pids(12345, (2,))
    finally:
        handling._remove_worker_pids(12345)
    with pytest.raises(ValueError, match="Cannot find worker information"):
        handling._remove_worker_pids(12345)


@pytest.mark.parametrize("status", [0, 3])
def test_a_worker_that_failed(status):
    worker = subprocess.Popen([sys.executable, "-S", "-c", f"raise SystemExit({status})"])
    handling._set_worker_pids(54321, (worker.pid,))
    try:
        handling.os.waitid(handling.os.P_PID, worker.pid,
                           handling.os.WEXITED | handling.os.WNOWAIT)
        if status:
            with pytest.raises(RuntimeError, match="exited unexpectedly with exit code 3"):
                handling._error_if_any_worker_fails()
        else:
            handling._error_if_any_worker_fails()
    finally:
        handling._remove_worker_pids(54321)
        worker.wait()
    handling._error_if_any_worker_fails()
