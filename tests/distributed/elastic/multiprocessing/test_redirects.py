"""Sending what a process prints to a file."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flambeau.distributed.elastic.multiprocessing import redirects

PROGRAM = """
import os, sys
from {package}.distributed.elastic.multiprocessing.redirects import *
print("before")
with redirect_stdout(sys.argv[1]), redirect_stderr(sys.argv[2]):
    print("python")
    os.system("echo child; echo error >&2")
    try:
        with redirect("stdout", sys.argv[1] + "2"):
            print("inner")
            raise KeyError
    except KeyError:
        print("again")
print("after")
"""


def test_all_that_is_printed(tmp_path):
    out, err = tmp_path / "out", tmp_path / "err"
    package = redirects.__name__.partition(".")[0]
    found = subprocess.run([sys.executable, "-c", PROGRAM.format(package=package), out, err],
                           capture_output=True, text=True, timeout=120, check=True)
    assert found.stdout == "before\nafter\n" and "error" not in found.stderr
    assert out.read_text() == "python\nchild\nagain\n" and err.read_text() == "error\n"
    assert Path(f"{out}2").read_text() == "inner\n"


def test_streams_that_are_none(tmp_path):
    with (pytest.raises(ValueError, match=r"unknown standard stream <stdin>, must be one of \{"),
          redirects.redirect("stdin", str(tmp_path / "x"))):
        pass
    assert not list(tmp_path.iterdir())


def test_the_c_library():
    assert redirects.get_libc().fflush(None) == 0
