"""An agent whose workers are processes of this machine."""
from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from flambeau.distributed.elastic.agent.server import WorkerSpec, WorkerState
from flambeau.distributed.elastic.agent.server import local_elastic_agent as module
from flambeau.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from flambeau.distributed.elastic.rendezvous import RendezvousParameters
from flambeau.distributed.elastic.rendezvous.registry import get_rendezvous_handler


@pytest.fixture(autouse=True)
def signals():
    kept = {name: signal.getsignal(name) for name in (
        signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)}
    yield
    for name, handler in kept.items():
        signal.signal(name, handler)


def agent(tmp_path, entrypoint, *args, count=2, logs=None, **options):
    handler = get_rendezvous_handler(RendezvousParameters(
        "c10d", str(tmp_path / "store"), "run", 1, 1, "localhost", store_type="file",
        last_call_timeout=1))
    spec = WorkerSpec("trainer", count, handler, entrypoint=entrypoint, args=args,
                      max_restarts=options.pop("max_restarts", 0), monitor_interval=0.02,
                      virtual_local_rank=options.pop("virtual_local_rank", False))
    return LocalElasticAgent(spec, logs or DefaultLogsSpecs(), exit_barrier_timeout=5, **options)


NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_NAME",
         "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_MAX_RESTARTS")


def environment(*more):
    return [os.environ.get(name) for name in (*NAMES, *more)]


def test_workers_know_who_they_are(tmp_path):
    result = agent(tmp_path, environment, "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES",
                   start_method="fork", virtual_local_rank=True).run()
    assert result.state is WorkerState.SUCCEEDED
    assert [values[:9] for values in result.return_values.values()] == [
        [str(rank), "2", "0", "2", "0", "trainer", "0", "run", "0"] for rank in range(2)]
    assert [values[10] for values in result.return_values.values()] == ["0", "1"]


def test_a_program_that_works_at_last(tmp_path):
    code = ("import os, sys; print(sys.argv[1], os.environ['LOCAL_RANK']); "
            "sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')")
    logs = DefaultLogsSpecs(str(tmp_path), redirects=Std.OUT)
    result = agent(tmp_path, sys.executable, "-Sc", code, "file_${local_rank}", logs=logs,
                   max_restarts=1).run()
    assert result.state is WorkerState.SUCCEEDED and result.return_values == {0: None, 1: None}
    found = sorted(path.read_text() for path in tmp_path.rglob("stdout.log")
                   if "attempt_1" in str(path))
    assert found == ["file_0 0\n", "file_1 1\n"]


def test_a_program_that_fails(tmp_path):
    result = agent(tmp_path, sys.executable, "-Sc", "import os; os._exit(7)", count=1).run()
    assert result.is_failed() and result.failures[0].exitcode == 7


@pytest.mark.parametrize(("explicit", "variable", "found"), [
    (None, None, 0.0), (None, "3", 3.0), (None, "x", 0.0), (5, "3", 5.0), (-1, None, 0.0)])
def test_limits_for_the_kernel(explicit, variable, found, monkeypatch):
    name = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"
    monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(name, variable)
    assert module._resolve_uninterruptible_state_timeout(explicit) == found


def test_one_that_hangs_in_the_kernel(tmp_path, monkeypatch):
    found = agent(tmp_path, sys.executable, "-Sc", "", uninterruptible_state_timeout=1)
    monkeypatch.setattr(module, "read_proc_state", lambda pid: "D" if pid == 7 else "S")
    assert found._update_uninterruptible_dwell(7, "trainer", 1) == pytest.approx(0, abs=0.5)
    time.sleep(0.02)
    assert found._update_uninterruptible_dwell(7, "trainer", 1) >= 0.02
    assert found._update_uninterruptible_dwell(8, "trainer", 1) is None


def test_the_time_when_it_was_alive():
    proxy = module._AliveCallbackProxy()
    assert proxy() == pytest.approx(time.time(), abs=2)
    proxy.set_delegate(lambda: 7)
    assert proxy() == 7
