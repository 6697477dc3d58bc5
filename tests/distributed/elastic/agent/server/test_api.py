"""What agents do when workers end, fail and are joined by others."""
from __future__ import annotations

import json
import signal

import pytest

from flambeau.distributed import HashStore
from flambeau.distributed.elastic import metrics
from flambeau.distributed.elastic.agent.server import (
    RunResult,
    SimpleElasticAgent,
    WorkerSpec,
    WorkerState,
)
from flambeau.distributed.elastic.events import EventSource
from flambeau.distributed.elastic.multiprocessing import SignalException
from flambeau.distributed.elastic.multiprocessing.errors import ProcessFailure
from flambeau.distributed.elastic.rendezvous import (
    RendezvousGracefulExitError,
    RendezvousInfo,
    RendezvousStoreInfo,
)


class Meeting:
    """A rendezvous of one node, that others join when `waiting` says so."""

    def __init__(self, waiting=(), error=None):
        self.rounds, self.waiting, self.error = 0, list(waiting), error

    def next_rendezvous(self):
        if self.error:
            raise self.error
        self.rounds += 1
        return RendezvousInfo(HashStore(), 0, 1, RendezvousStoreInfo("here", 7))

    def num_nodes_waiting(self):
        return self.waiting.pop(0) if self.waiting else 0

    def get_run_id(self):
        return "run"

    def get_backend(self):
        return "meeting"


class Agent(SimpleElasticAgent):
    """An agent whose workers are in the states that it is given, one after the other."""

    def __init__(self, states, meeting=None, max_restarts=2):
        super().__init__(WorkerSpec("trainer", 2, meeting or Meeting(), entrypoint="/bin/work",
                                    max_restarts=max_restarts, monitor_interval=0.001), 5)
        self.states, self.done = list(states), []

    def _start_workers(self, worker_group):
        self.done.append("start")
        return {worker.local_rank: 100 + worker.local_rank for worker in worker_group.workers}

    def _stop_workers(self, worker_group):
        self.done.append("stop")

    def _monitor_workers(self, worker_group):
        state = self.states.pop(0)
        if isinstance(state, BaseException):
            raise state
        failures = {1: ProcessFailure(1, 101, 3, "none")} if state == "FAILED" else {}
        return RunResult(WorkerState(state), {0: "x", 1: "y"} if state == "SUCCEEDED" else {},
                         failures)

    def _shutdown(self, death_sig=signal.SIGTERM, timeout=30):
        self.done.append(("shutdown", death_sig))


END = ("shutdown", signal.SIGTERM)


@pytest.fixture
def told():
    class Keep(metrics.MetricHandler):
        def emit(self, metric_data):
            found[metric_data.name] = metric_data.value
    found = {}
    metrics.configure(Keep(), "torchelastic")
    yield found
    metrics.configure(metrics.NullMetricHandler(), "torchelastic")


def test_all_ends_well(told):
    agent = Agent(["HEALTHY", "SUCCEEDED"])
    result = agent.run()
    assert result.return_values == {0: "x", 1: "y"} and not result.is_failed()
    assert agent.done == ["start", END]
    group = agent.get_worker_group()
    assert (group.master_addr, group.master_port) == ("here", 7)
    assert (group.group_rank, group.group_world_size, group.state) == (0, 1, "SUCCEEDED")
    assert [(w.id, w.global_rank, w.world_size, w.role_rank) for w in group.workers] == [
        (100, 0, 2, 0), (101, 1, 2, 1)]
    assert told["workers.trainer.run_success_no_retries"] == 1
    assert told["workers.trainer.run_success_with_retries"] == 0
    assert told["workers.trainer.run_total"] == 1 and told["workers.trainer.flakiness"] == 0
    assert told["workers.trainer.remaining_restarts"] == 2


def test_failures_up_to_the_limit(told):
    agent = Agent(["FAILED", "UNHEALTHY", "FAILED"])
    result = agent.run()
    assert result.is_failed() and result.failures[1].exitcode == 3
    assert agent.done == ["start", "stop", "start", "stop", "start", "stop", END]
    assert told["workers.trainer.run_failed_with_retries"] == 1
    assert told["workers.trainer.flakiness"] == 100
    assert agent.get_worker_group().state is WorkerState.FAILED


def test_some_restarts_are_needed(told):
    assert not Agent(["FAILED", "SUCCEEDED"]).run().is_failed()
    assert told["workers.trainer.run_success_with_retries"] == 1
    assert told["workers.trainer.flakiness"] == 33


def test_others_come():
    meeting = Meeting(waiting=[0, 1, 0])
    agent = Agent(["HEALTHY", "HEALTHY", "HEALTHY", "SUCCEEDED"], meeting, max_restarts=0)
    assert not agent.run().is_failed() and meeting.rounds == 2
    assert agent.done == ["start", "stop", "start", END]


def test_a_node_that_is_not_needed():
    agent = Agent([], Meeting(error=RendezvousGracefulExitError("enough")))
    assert agent.run() in (RunResult(WorkerState.SUCCEEDED), None)      # None in PyTorch
    assert agent.done == [END]


def test_signals_are_passed_on():
    agent = Agent([SignalException("ended", signal.SIGINT)])
    with pytest.raises(SignalException):
        agent.run()
    assert agent.done == ["start", ("shutdown", signal.SIGINT)]


def test_states_that_say_nothing():
    agent = Agent(["STOPPED"])
    with pytest.raises(Exception, match=r"\[trainer\] Worker group in STOPPED state"):
        agent.run()


def test_events():
    agent = Agent(["SUCCEEDED"])
    agent.run()
    event = agent.get_event_succeeded()
    assert event.name == "torchelastic.worker.status.SUCCEEDED"
    assert event.source is EventSource.AGENT
    about = event.metadata
    assert {name: about[name] for name in (
        "run_id", "group_rank", "rdzv_backend", "role", "state", "agent_restarts", "raw_error",
        "global_rank", "worker_id", "duration_ms")} == {
        "run_id": "run", "group_rank": 0, "rdzv_backend": "meeting", "role": "trainer",
        "state": "SUCCEEDED", "agent_restarts": 0, "raw_error": None, "global_rank": None,
        "worker_id": None, "duration_ms": None}
    assert json.loads(about["metadata"]) == {"group_world_size": 1, "entry_point": "work"}
    worker = agent.get_worker_group().workers[1]
    about = agent._construct_event("FAILED", EventSource.WORKER, worker, exit_code=3,
                                   worker_pid=101).metadata
    assert (about["global_rank"], about["worker_id"]) == (1, "101")
    assert json.loads(about["metadata"]) == {
        "group_world_size": 1, "entry_point": "work", "local_rank": [1], "role_rank": [1],
        "role_world_size": [2], "exit_code": [3], "worker_pid": [101]}
    try:
        raise ValueError("bad")
    except ValueError:
        failed = agent.get_event_failed()
    assert "ValueError: bad" in failed.metadata["raw_error"]
