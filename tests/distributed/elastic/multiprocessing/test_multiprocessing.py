"""How workers are started: what has to be there for each of them."""
from __future__ import annotations

import pytest

from flambeau.distributed.elastic import multiprocessing
from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes


@pytest.mark.parametrize(("args", "envs", "words"), [
    ({1: ()}, {0: {}}, "args"), ({0: (), 1: ()}, {0: {}}, "envs"), ({0: ()}, {1: {}}, "envs")])
def test_each_rank_has_its_own(args, envs, words):
    with pytest.raises(RuntimeError, match=words):
        start_processes("test", "/bin/true", args, envs, DefaultLogsSpecs())


def test_a_program_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="/of/nobody"):
        start_processes("test", "/of/nobody", {0: ()}, {0: {}}, DefaultLogsSpecs())


def test_a_string_is_a_program_and_a_function_runs_elsewhere(monkeypatch):
    started = []

    class Context:
        def __init__(self, **options):
            started.append(options)

        def start(self):
            started[-1]["started"] = True
    for name in ("SubprocessContext", "MultiprocessContext"):
        monkeypatch.setattr(multiprocessing, name,
                            lambda kind=name, **options: Context(kind=kind, **options))
    for entrypoint in ("program", print):
        start_processes("t", entrypoint, {0: (1,)}, {0: {"A": "b"}}, DefaultLogsSpecs(),
                        start_method="fork")
    first, second = started
    assert first["kind"] == "SubprocessContext" and "start_method" not in first
    assert second["kind"] == "MultiprocessContext" and second["start_method"] == "fork"
    assert all(s["started"] and s["args"] == {0: (1,)} and s["envs"] == {0: {"A": "b"}}
               for s in started)


def test_a_failed_start_is_closed(monkeypatch):
    closed = []

    class Context:
        def __init__(self, **options):
            pass

        def start(self):
            raise KeyError("mine")

        def close(self):
            closed.append(self)
    monkeypatch.setattr(multiprocessing, "SubprocessContext", Context)
    with pytest.raises(KeyError, match="mine"):
        start_processes("t", "program", {0: ()}, {0: {}}, DefaultLogsSpecs())
    assert len(closed) == 1
