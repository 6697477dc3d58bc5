"""States of processes."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau.distributed.elastic.utils.process_state import (
    is_uninterruptible_state,
    read_proc_state,
)

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


def test_states_of_processes():
    assert read_proc_state(os.getpid()) in ("R", "S")
    assert read_proc_state(2 ** 22 + 1) is None


def test_a_process_that_has_ended():
    process = subprocess.Popen([sys.executable, "-Sc", ""], stdout=subprocess.PIPE)
    process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert read_proc_state(process.pid) == "Z"
    process.communicate()
    assert read_proc_state(process.pid) is None


@pytest.mark.parametrize("state", ["D", "S", "R", "Z", "", None])
def test_the_one_that_hears_no_signal(state):
    assert is_uninterruptible_state(state) is (state == "D")
