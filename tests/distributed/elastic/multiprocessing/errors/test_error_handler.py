"""Error files."""
from __future__ import annotations

import json
import time

import pytest

from flambeau.distributed.elastic.multiprocessing.errors import ErrorHandler

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


def test_an_error_is_written(error_file):
    try:
        raise ValueError("bad")
    except ValueError as error:
        ErrorHandler().record_exception(error)
    message = json.loads(error_file.read_text())["message"]
    assert message["message"] == "ValueError: bad"
    assert message["extraInfo"]["py_callstack"].startswith("Traceback")
    assert int(message["extraInfo"]["timestamp"]) == pytest.approx(time.time(), abs=5)


def test_without_a_file(monkeypatch, child_file):
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    ErrorHandler().record_exception(ValueError("bad"))
    ErrorHandler().dump_error_file(str(child_file), 7)


def test_the_file_of_a_child(error_file, child_file):
    error_file.write_text("was here before")
    ErrorHandler().dump_error_file(str(child_file), 7)
    assert json.loads(error_file.read_text())["message"]["errorCode"] == 7
    ErrorHandler().dump_error_file(str(child_file))
    assert json.loads(error_file.read_text()) == CHILD


@pytest.mark.parametrize("about", [{"message": "plain"}, {"x": 1}])
def test_messages_without_a_code(about, error_file, child_file):
    child_file.write_text(json.dumps(about))
    ErrorHandler().dump_error_file(str(child_file), 7)
    assert json.loads(error_file.read_text()) == about


def test_codes():
    about = {"message": {"errorCode": 5}}
    ErrorHandler().override_error_code_in_rootcause_data("file", about)
    assert about == {"message": {"errorCode": 0}}
