"""Workers of one machine: where their output goes, how they end; values from PyTorch."""
from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from flambeau.distributed.elastic.multiprocessing import (
    DefaultLogsSpecs,
    SignalException,
    Std,
    start_processes,
    to_map,
)
from flambeau.distributed.elastic.multiprocessing.api import signals_held


@pytest.fixture(autouse=True)
def signals():
    kept = {name: signal.getsignal(name) for name in (
        signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)}
    yield
    for name, handler in kept.items():
        signal.signal(name, handler)


def start(entrypoint, *args, **options):
    logs = options.pop("logs_specs", None) or DefaultLogsSpecs()
    return start_processes("test", entrypoint, dict(enumerate(args)),
                           {i: {"WHO": str(i)} for i in range(len(args))}, logs, **options)


def test_streams_by_name():
    assert Std.from_str("3") is Std.ALL
    assert Std.from_str("0:1,1:2") == {0: Std.OUT, 1: Std.ERR}
    assert to_map({0: Std.OUT}, 2) == {0: Std.OUT, 1: Std.NONE}
    for text in ("5", "0:5", "", "0:1,"):
        with pytest.raises(ValueError, match="does not match: <"):
            Std.from_str(text)


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
    path = specs.reify(envs).error_files[0]
    assert envs[0]["TORCHELASTIC_ERROR_FILE"] == path
    parts = os.path.relpath(path, tmp_path).split(os.sep)
    assert parts[0] == "new" and parts[1].startswith("run_") and parts[2:] == [
        "attempt_2", "0", "error.json"]
    with pytest.raises(NotADirectoryError, match="is a file"):
        DefaultLogsSpecs(__file__)


def test_programs_show_what_they_write(tmp_path, capsys):
    context = start("/bin/echo", ("hi",), ("ho", "filtered"),
                    logs_specs=DefaultLogsSpecs(str(tmp_path), tee=Std.OUT),
                    duplicate_stdout_filters=["filt"])
    result = context.wait(period=0.02)
    assert not result.is_failed() and result.return_values == {0: None, 1: None}
    assert sorted(capsys.readouterr().out.splitlines()) == ["[test0]:hi", "[test1]:ho filtered"]
    assert Path(result.stdouts[0]).read_text() == "hi\n"
    assert Path(context.filtered_stdout.name).read_text() == "[test1]:ho filtered\n"


def test_a_failure_ends_the_others():
    code = "import os, sys, time; time.sleep(0.1); {}"
    context = start(sys.executable, ("-Sc", code.format("time.sleep(60)")),
                    ("-Sc", code.format("sys.exit(int(os.environ['WHO']) + 2)")))
    pids = context.pids()
    result = context.wait(period=0.02)
    assert result.failures[1].exitcode == 3 and result.failures[0].exitcode == -signal.SIGTERM
    assert result.failures[1].pid == pids[1]
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def double(value):
    print("in", os.environ["WHO"])
    return value * 2


def raises(value):
    raise ValueError(value)


def test_functions(tmp_path):
    context = start(double, (1,), (2,), start_method="fork",
                    logs_specs=DefaultLogsSpecs(str(tmp_path), redirects=Std.OUT))
    result = context.wait(timeout=30, period=0.02)
    assert result.return_values == {0: 2, 1: 4} and not result.is_failed()
    assert Path(result.stdouts[1]).read_text() == "in 1\n"
    context = start(raises, ("bad",), start_method="fork",
                    logs_specs=DefaultLogsSpecs(str(tmp_path)))
    failure = context.wait(timeout=30, period=0.02).failures[0]
    assert failure.exitcode == 1 and failure.message["message"] == "ValueError: bad"


def test_what_cannot_be_started():
    with pytest.raises(RuntimeError, match=r"envs, local rank mapping mismatch, expected: \{0\}, "
                                           r"actual: set\(\)"):
        start_processes("n", print, {0: ()}, {}, DefaultLogsSpecs())
    with pytest.raises(ValueError, match="cannot find context for 'x'"):
        start(print, (), start_method="x")
    with pytest.raises(OSError):
        start("/no/such/program", ())


def test_a_signal_while_workers_start_is_heard_when_they_are_known():
    workers = None
    with pytest.raises(SignalException), signals_held():
        workers = start(sys.executable, "-c", "import time; time.sleep(60)")
        os.kill(os.getpid(), signal.SIGTERM)
        pids = workers.pids()
    workers.close()
    assert pids and all(handler.proc.poll() is not None
                        for handler in workers.subprocess_handlers.values())
