"""What is said of processes that have failed; values from PyTorch."""
from __future__ import annotations

import json

import pytest

from flambeau.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ProcessFailure,
    record,
)

CHILD = {"message": {"message": "m", "errorCode": 5,
                     "extraInfo": {"py_callstack": "cs", "timestamp": "12"}}}


@pytest.fixture
def error_file(monkeypatch, tmp_path):
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))
    return path


@pytest.fixture
def child_file(tmp_path):
    path = tmp_path / "child.json"
    path.write_text(json.dumps(CHILD))
    return path


@record
def fails(error):
    raise error


def test_an_error_is_written(error_file):
    with pytest.raises(ValueError, match="bad"):
        fails(ValueError("bad"))
    message = json.loads(error_file.read_text())["message"]
    assert message["message"] == "ValueError: bad"
    assert "in fails" in message["extraInfo"]["py_callstack"]
    failure = ProcessFailure(1, 99, 1, str(error_file))
    error = ChildFailedError("train", {4: failure})
    assert error.get_first_failure() == (4, failure) and "ValueError: bad" in str(error)


def test_an_exit_is_no_error(error_file):
    assert fails(SystemExit(0)) is None
    with pytest.raises(SystemExit):
        fails(SystemExit(3))
    assert not error_file.exists()


def test_the_error_of_a_child_becomes_the_own(error_file, child_file):
    with pytest.raises(ChildFailedError):
        fails(ChildFailedError("n", {3: ProcessFailure(0, 98, 1, str(child_file))}))
    assert json.loads(error_file.read_text())["message"]["errorCode"] == 1
    error_file.unlink()
    with pytest.raises(ChildFailedError):               # a child that left no file
        fails(ChildFailedError("n", {3: ProcessFailure(0, 98, 1, "none")}))
    assert not error_file.exists()


def test_words_of_failures(child_file):
    first = ProcessFailure(0, 98, 1, str(child_file))
    error = ChildFailedError("n", {3: first})
    assert error.format_msg("#", "+").replace(str(child_file), "FILE").splitlines()[2:] == [
        "n FAILED", error.format_msg("#", "+").splitlines()[3], "Failures:",
        "  <NO_OTHER_FAILURES>", error.format_msg("#", "+").splitlines()[6],
        "Root Cause (first observed failure):", "[0]:",
        f"  time      : {first.timestamp_isoformat()}",
        error.format_msg().splitlines()[10], "  rank      : 3 (local_rank: 0)",
        "  exitcode  : 1 (pid: 98) ", "  error_file: FILE", "  traceback : cs",
        error.format_msg("#", "+").splitlines()[-1]]
    killed = ProcessFailure(1, 99, -9, "none")
    assert killed.signal_name() == "SIGKILL"
    assert killed.message == "Signal 9 (SIGKILL) received by PID 99"
    both = ChildFailedError("n", {0: killed, 3: first})
    assert both.get_first_failure() == (3, first)
    assert "exitcode  : -9 (pid: 99)  (SIGKILL)" in str(both)


def test_broken_files_and_none(tmp_path):
    path = tmp_path / "reply.json"
    path.write_text('{"message": "plain", "timestamp": "13"}')
    found = ProcessFailure(0, 98, 1, str(path))
    assert (found.message, found.timestamp) == ("plain", 13)
    path.write_text('{"x": 1}')
    with pytest.raises(KeyError):
        ProcessFailure(0, 98, 1, str(path))
    with pytest.raises(AssertionError):
        ChildFailedError("n", {})
    assert ProcessFailure(0, 98, -900, "none").signal_name() == "<N/A>"


def test_results_and_names_are_kept():
    @record
    def work(a, b=2):
        """Works."""
        return a + b
    assert work(1, b=5) == 6 and (work.__name__, work.__doc__) == ("work", "Works.")


def test_handlers_of_the_user():
    class Own:
        def __init__(self):
            self.seen = []

        def initialize(self):
            self.seen.append("begun")

        def record_exception(self, e):
            self.seen.append(e)
    own, error = Own(), KeyError("x")
    with pytest.raises(KeyError):
        record(fails.__wrapped__, own)(error)
    assert own.seen == ["begun", error]
