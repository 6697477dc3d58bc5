"""Where the outputs of workers go; values from PyTorch."""
from __future__ import annotations

import os

import pytest

from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std, to_map
from flambeau.distributed.elastic.multiprocessing.api import LogsDest, LogsSpecs


def test_streams_by_name():
    assert Std.from_str("3") is Std.ALL
    assert Std.from_str("0:1,1:2") == {0: Std.OUT, 1: Std.ERR}
    for text in ("5", "0:5", "", "0:1,", "0:1 ,1:2", "12"):
        with pytest.raises(ValueError, match="does not match: <"):
            Std.from_str(text)


def test_streams_by_rank():
    assert to_map({0: Std.OUT}, 2) == {0: Std.OUT, 1: Std.NONE}
    assert to_map(Std.ERR, 2) == {0: Std.ERR, 1: Std.ERR} and to_map({5: Std.OUT}, 0) == {}
    assert Std.ALL & Std.ERR == Std.ERR and Std.OUT | Std.ERR == Std.ALL


@pytest.mark.parametrize(("redirects", "tee", "shown", "files"), [
    (Std.NONE, Std.NONE, {0}, (["", "null"], ["", "null"], [], [])),
    (Std.OUT, Std.NONE, {0}, (["stdout.log"] * 2, ["", "null"], [], [])),
    (Std.OUT, Std.ERR, {0}, (["stdout.log"] * 2, ["stderr.log"] * 2, [], [0])),
    (Std.NONE, Std.ALL, {1}, (["stdout.log"] * 2, ["stderr.log"] * 2, [1], [1])),
    (Std.NONE, {1: Std.OUT}, {0}, (["", "stdout.log"], ["", "null"], [], [])),
    (Std.NONE, Std.NONE, None, (["", ""], ["", ""], [], [])),
])
def test_where_output_goes(redirects, tee, shown, files, tmp_path):
    logs = DefaultLogsSpecs(str(tmp_path), redirects, tee, shown).reify({0: {}, 1: {}})
    found = [[os.path.basename(path) for path in names.values()]
             for names in (logs.stdouts, logs.stderrs)]
    assert (*found, list(logs.tee_stdouts), list(logs.tee_stderrs)) == files


def test_log_folders(tmp_path):
    specs = DefaultLogsSpecs(str(tmp_path / "new"))
    envs = {0: {"TORCHELASTIC_RUN_ID": "run", "TORCHELASTIC_RESTART_COUNT": "2"}}
    logs = specs.reify(envs)
    path = logs.error_files[0]
    assert envs[0]["TORCHELASTIC_ERROR_FILE"] == path
    parts = os.path.relpath(path, tmp_path).split(os.sep)
    assert parts[0] == "new" and parts[1].startswith("run_") and parts[2:] == [
        "attempt_2", "0", "error.json"]
    assert os.path.basename(logs.filtered_stdout) == "filtered_stdout.log"
    again = specs.reify({0: {"TORCHELASTIC_RESTART_COUNT": "3"}}).error_files[0]
    assert os.path.dirname(os.path.dirname(os.path.dirname(again))) == os.path.dirname(
        os.path.dirname(os.path.dirname(path)))             # one folder for a run
    with pytest.raises(NotADirectoryError, match="is a file"):
        DefaultLogsSpecs(__file__)


def test_no_files():
    logs = DefaultLogsSpecs(os.devnull).reify({0: {}})
    assert logs.error_files == {0: os.devnull} and logs.stdouts == {0: ""}
    assert logs.tee_stdouts == {0: os.devnull}


def test_specs_are_compared(tmp_path):
    specs = DefaultLogsSpecs(str(tmp_path), Std.OUT, {0: Std.ERR}, {0})
    assert specs == DefaultLogsSpecs(str(tmp_path), Std.OUT, {0: Std.ERR}, {0})
    assert specs != DefaultLogsSpecs(str(tmp_path), Std.ERR, {0: Std.ERR}, {0}) and specs != 3
    assert specs.root_log_dir == str(tmp_path)
    assert repr(specs).startswith(f"DefaultLogsSpecs(root_log_dir={tmp_path}, redirects=")


def test_of_the_user():
    class Own(LogsSpecs):
        def reify(self, envs):
            return LogsDest(stdouts=dict.fromkeys(envs, "x"))

        @property
        def root_log_dir(self):
            return "y"
    assert Own().reify({3: {}}) == LogsDest({3: "x"}, {}, {}, {}, {}, "", "")
    with pytest.raises(TypeError, match="abstract"):
        LogsSpecs()
