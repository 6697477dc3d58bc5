"""Workers of one machine: how they start and end; values from PyTorch."""
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
)


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
    from flambeau.distributed.elastic.multiprocessing.api import signals_held
    workers = None
    with pytest.raises(SignalException), signals_held():
        workers = start(sys.executable, "-c", "import time; time.sleep(60)")
        os.kill(os.getpid(), signal.SIGTERM)
        pids = workers.pids()
    workers.close()
    assert pids and all(handler.proc.poll() is not None
                        for handler in workers.subprocess_handlers.values())


def test_time_is_over():
    context = start(sys.executable, ("-Sc", "import time; time.sleep(60)"))
    assert context.wait(timeout=0.05, period=0.01) is None
    assert context.wait(timeout=0) is None
    context.close()
    context.close()


def test_signals_become_exceptions():
    from flambeau.distributed.elastic.multiprocessing import api
    with pytest.raises(SignalException, match=r"Process .* got signal: 15") as error:
        api._terminate_process_handler(15, None)
    assert error.value.sigval is signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_workers_are_told(number):
    code = "import time; print('up', flush=True); time.sleep(60)"
    context = start(sys.executable, ("-Sc", code))
    context.close(number, timeout=10)
    handlers = context.subprocess_handlers.values()
    assert [handler.proc.poll() for handler in handlers] == [-number]
