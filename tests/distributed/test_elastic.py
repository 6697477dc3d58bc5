"""Metrics and error files of torchelastic."""
from __future__ import annotations

import json

import pytest

from flambeau.distributed.elastic import metrics
from flambeau.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ProcessFailure,
    record,
)


def test_metrics_go_to_the_handler_of_their_group():
    class Keep(metrics.MetricHandler):
        def __init__(self):
            self.seen = []

        def emit(self, metric_data):
            self.seen.append((metric_data.group_name, metric_data.name, metric_data.value))
    mine = Keep()
    metrics.configure(mine, "mine")
    metrics.put_metric("a", 1, "mine")
    metrics.put_metric("a", 1, "others")

    @metrics.prof(group="mine")
    def work():
        return 3
    assert work() == 3
    assert mine.seen[0] == ("mine", "a", 1) and len(mine.seen) == 3


def test_errors_are_recorded(monkeypatch, tmp_path):
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    @record
    def fails():
        raise ValueError("bad")
    with pytest.raises(ValueError, match="bad"):
        fails()
    message = json.loads(path.read_text())["message"]
    assert message["message"] == "ValueError: bad"
    assert "in fails" in message["extraInfo"]["py_callstack"]
    failure = ProcessFailure(1, 99, 1, str(path))
    error = ChildFailedError("train", {4: failure})
    assert error.get_first_failure() == (4, failure) and "ValueError: bad" in str(error)
    killed = ProcessFailure(0, 99, -9, "none")
    assert killed.signal_name() == "SIGKILL" and "SIGKILL" in killed.message
