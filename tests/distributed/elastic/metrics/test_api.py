"""Metrics of torchelastic."""
from __future__ import annotations

import time

import pytest

from flambeau.distributed.elastic import metrics
from flambeau.distributed.elastic.metrics import api


class Keep(metrics.MetricHandler):
    def __init__(self):
        self.seen = []

    def emit(self, metric_data):
        self.seen.append(metric_data)


@pytest.fixture
def kept():
    handler = Keep()
    metrics.configure(handler, "mine")
    yield handler.seen
    metrics.configure(metrics.NullMetricHandler(), "mine")


def outer(fail=False):
    if fail:
        raise ValueError


def names(kept):
    return [(metric.name, metric.value) for metric in kept]


def test_metrics_go_to_the_handler_of_their_group(kept):
    metrics.put_metric("a", 1, "mine")
    metrics.put_metric("a", 1, "others")
    metrics.getStream("mine").add_value("b", 2)
    assert names(kept) == [("a", 1), ("b", 2)] and kept[0].group_name == "mine"
    assert kept[0].timestamp == pytest.approx(time.time(), abs=5)
    assert isinstance(kept[0].timestamp, float)


def test_the_default_handler():
    handler = Keep()
    metrics.configure(handler)
    try:
        metrics.put_metric("a", 1, "a group that nobody knows")
    finally:
        metrics.configure(metrics.NullMetricHandler())
    assert names(handler.seen) == [("a", 1)]


def test_a_function_is_timed_under_its_name(kept):
    class Model:
        @metrics.prof(group="mine")
        def step(self):
            raise KeyError
    timed = metrics.prof(outer, group="mine")
    assert timed() is None and timed.__name__ == "outer"
    with pytest.raises(ValueError):
        timed(fail=True)
    with pytest.raises(KeyError):
        Model().step()
    found = [metric.name for metric in kept]
    model = "test_a_function_is_timed_under_its_name.<locals>.Model.step"
    assert found == ["test_api.outer.success", "test_api.outer.duration.ms",
                     "test_api.outer.failure", "test_api.outer.duration.ms",
                     f"{model}.failure", f"{model}.duration.ms"]
    assert all(type(metric.value) is int for metric in kept)


def test_old_names(kept):
    with pytest.warns(FutureWarning, match="Deprecated, use `@prof` instead"):
        timed = metrics.profile("mine")(outer)
    with pytest.warns(FutureWarning, match="use `put_metric"):
        timed()
    assert [name for name, _ in names(kept)] == ["outer.success", "outer.duration.ms"]
    with pytest.warns(FutureWarning, match="use `put_metric"):
        metrics.publish_metric("mine", "a", 3)
    assert names(kept)[-1] == ("a", 3)


def test_the_console(capsys):
    api.ConsoleMetricHandler().emit(metrics.MetricData(12, "group", "name", 3))
    assert capsys.readouterr().out == "[12][group]: name=3\n"


def test_parameters():
    assert metrics.MetricsConfig().params == {}
    assert metrics.MetricsConfig({"a": "b"}).params == {"a": "b"}
    assert metrics.get_elapsed_time_ms(time.time() - 2) == pytest.approx(2000, abs=500)
    metrics.initialize_metrics()
