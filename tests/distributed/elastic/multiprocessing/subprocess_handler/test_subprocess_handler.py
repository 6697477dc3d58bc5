"""A worker that is a program."""
from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

SLEEP = ("-Sc", "import time; time.sleep(60)")


def start(args, tmp_path=None, **env):
    out, err = (str(tmp_path / name) if tmp_path else "" for name in ("out", "err"))
    return SubprocessHandler(sys.executable, args, env, out, err, 3, None)


def test_output_goes_to_files(tmp_path):
    code = "import os, sys; print(os.environ['WHO'], sys.argv[1]); sys.stderr.write('bad')"
    handler = start(("-Sc", code, 7), tmp_path, WHO="me")
    assert handler.proc.wait(30) == 0 and handler.local_rank_id == 3
    assert (tmp_path / "out").read_text() == "me 7\n" and (tmp_path / "err").read_text() == "bad"


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGKILL])
def test_the_end(number):
    handler = start(SLEEP)
    handler.close(number)
    assert handler.proc.wait(30) == -(number or signal.SIGTERM)


def test_what_it_has_started_ends_too(tmp_path):
    code = ("import subprocess, sys; "
            "print(subprocess.Popen([sys.executable, '-Sc', 'import time; time.sleep(60)']).pid, "
            "flush=True); import time; time.sleep(60)")
    handler = start(("-Sc", code), tmp_path)
    while not (tmp_path / "out").read_text().endswith("\n"):
        assert handler.proc.poll() is None
    child = int((tmp_path / "out").read_text())
    handler.close()
    handler.proc.wait(30)
    status = Path(f"/proc/{child}/stat")
    for _ in range(1000):
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            break
        subprocess.run([sys.executable, "-Sc", ""], check=True)
    else:
        pytest.fail("the child lives")


def test_programs_that_are_none():
    with pytest.raises(FileNotFoundError):
        SubprocessHandler("/no/such/program", (), {}, "", "", 0, None)
