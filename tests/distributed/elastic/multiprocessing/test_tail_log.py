"""Showing what log files hold."""
from __future__ import annotations

import io
import threading

import pytest

from flambeau.distributed.elastic.multiprocessing.tail_log import TailLog, tail_logfile


def test_lines_have_prefixes(tmp_path):
    files = {rank: tmp_path / str(rank) for rank in range(3)}
    shown = io.StringIO()
    tail = TailLog("work", {rank: str(path) for rank, path in files.items()}, shown,
                   {0: "[zero]:"}, interval_sec=0.01).start()
    assert not tail.stopped()
    for rank, path in files.items():
        if rank != 2:                       # that one never writes
            path.write_text(f"a{rank}\nb{rank}\n")
    tail.stop()
    assert tail.stopped()
    assert sorted(shown.getvalue().splitlines()) == [
        "[work1]:a1", "[work1]:b1", "[zero]:a0", "[zero]:b0"]


def test_lines_that_are_chosen(tmp_path):
    path = tmp_path / "log"
    path.write_text("yes 1\nno\nyes 2\n")
    shown = io.StringIO()
    TailLog("x", {0: str(path)}, shown, log_line_filter=lambda line: "yes" in line).start().stop()
    assert shown.getvalue() == "[x0]:yes 1\n[x0]:yes 2\n"


def test_lines_come_while_they_are_written(tmp_path):
    path, shown, finished = tmp_path / "log", io.StringIO(), threading.Event()
    thread = threading.Thread(target=tail_logfile, args=(
        "> ", str(path), shown, finished, 0.01, lambda line: True))
    thread.start()
    with path.open("w") as file:
        for line in ("a\n", "b\n"):
            file.write(line)
            file.flush()
            while line not in shown.getvalue():
                assert thread.is_alive()
    finished.set()
    thread.join(10)
    assert shown.getvalue() == "> a\n> b\n"


@pytest.mark.parametrize("content", [b"\xff\n", b"no end"])
def test_odd_files(content, tmp_path):
    path, shown, finished = tmp_path / "log", io.StringIO(), threading.Event()
    path.write_bytes(content)
    finished.set()
    tail_logfile("", str(path), shown, finished, 0.01, lambda line: True)
    assert shown.getvalue() == content.decode(errors="replace")


def test_no_files():
    tail = TailLog("x", {}, io.StringIO()).start()
    tail.stop()
    assert tail.stopped()
